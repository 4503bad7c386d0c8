/* lines.cu: one value of many, or many of many, along some dimensions. A block has a line at a
 * time, of softmax several that are short.
 *
 * The dimensions of a line are views of their own, so that a line may lie in memory as it likes. */
#include "kernel.h"

/* What a line begins with. */
DEVICE float kernel_reduce_start(int code)
{
    switch (code) {
    case HWNAS_REDUCE_MAX:
        return -INFINITY;
    case HWNAS_REDUCE_MIN:
        return INFINITY;
    case HWNAS_REDUCE_PROD:
        return 1;
    }
    return 0;
}

DEVICE float kernel_reduce_value(int code, float x)
{
    switch (code) {
    case HWNAS_REDUCE_L1:
        return fabsf(x);
    case HWNAS_REDUCE_L2:
    case HWNAS_REDUCE_SUM_SQUARE:
        return x * x;
    case HWNAS_REDUCE_LOG_SUM_EXP:
        return expf(x);
    }
    return x;
}

DEVICE float kernel_reduce_join(int code, float x, float y)
{
    switch (code) {
    case HWNAS_REDUCE_MAX:
        return fmaxf(x, y);
    case HWNAS_REDUCE_MIN:
        return fminf(x, y);
    case HWNAS_REDUCE_PROD:
        return x * y;
    }
    return x + y;
}

DEVICE float kernel_reduce_end(int code, float all, float n)
{
    switch (code) {
    case HWNAS_REDUCE_MEAN:
        return all / n;
    case HWNAS_REDUCE_L2:
        return sqrtf(all);
    case HWNAS_REDUCE_LOG_SUM:
    case HWNAS_REDUCE_LOG_SUM_EXP:
        return logf(all);
    }
    return all;
}

/* Joins what every `lanes` threads have in `all`, a power of 2; the result is where the first of
 * them has its own. */
#define JOIN_LANES(all, lanes, code)                                                               \
    for (int half_ = (lanes) / 2; half_ > 0; half_ /= 2)                                           \
        THREADS(t)                                                                                 \
            if (t % (lanes) < half_)                                                               \
                all[t] = kernel_reduce_join(code, all[t], all[t + half_]);
/* The same of the whole block; the result is in all[0]. */
#define JOIN_THREADS(all, code) JOIN_LANES(all, N_THREADS, code)

/* views: 0 the output and 1 the input, both without the reduced dimensions; 2 those, of the input.
 * ints: [0] the kind, [1] how many values a line has. */
KERNEL(hwnas_reduce)
{
    SHARED float all[N_THREADS];
    SHARED float greatest;
    FOR_BLOCKS(line) {
        const int from = OFFSET(1, line);
        const int n = job.ints[1];
        THREADS(t) {
            all[t] = -INFINITY;
            if (CODE ==
                HWNAS_REDUCE_LOG_SUM_EXP) /* the greatest is taken off, so that none overflows */
                for (int i = t; i < n; i += N_THREADS)
                    all[t] = fmaxf(all[t], LOAD(1, from + OFFSET(2, i)));
        }
        if (CODE == HWNAS_REDUCE_LOG_SUM_EXP)
            JOIN_THREADS(all, HWNAS_REDUCE_MAX)
        THREADS(t)
            if (t == 0)
                greatest =
                    CODE == HWNAS_REDUCE_LOG_SUM_EXP && fabsf(all[0]) != INFINITY ? all[0] : 0;
        THREADS(t) {
            all[t] = kernel_reduce_start(CODE);
            for (int i = t; i < n; i += N_THREADS) {
                const float x = LOAD(1, from + OFFSET(2, i)) - greatest;
                all[t] = kernel_reduce_join(CODE, all[t], kernel_reduce_value(CODE, x));
            }
        }
        JOIN_THREADS(all, CODE)
        THREADS(t)
            if (t == 0)
                STORE(0, OFFSET(0, line), kernel_reduce_end(CODE, all[0], (float)n) + greatest);
    }
}

/* views: 0 the output and 1 the input, without the axis. ints: [1] the axis' length, [2] its step
 * in the output, [3] in the input; [4] threads of a line, [5] lines. A block has as many lines at a
 * time as it has threads for, and n counts those. */
KERNEL(hwnas_softmax)
{
    SHARED float all[N_THREADS];
    SHARED float greatest[N_THREADS];
    const int n = job.ints[1], lanes = job.ints[4], n_lines = job.ints[5];
    FOR_BLOCKS(block) {
        const int first = block * (N_THREADS / lanes);
        THREADS(t) {
            const int line = first + t / lanes;
            all[t] = -INFINITY;
            for (int i = t % lanes; i < n && line < n_lines; i += lanes)
                all[t] = fmaxf(all[t], LOAD(1, OFFSET(1, line) + i * job.ints[3]));
        }
        JOIN_LANES(all, lanes, HWNAS_REDUCE_MAX)
        THREADS(t)
            greatest[t] = all[t - t % lanes];
        THREADS(t) {
            const int line = first + t / lanes;
            all[t] = 0;
            for (int i = t % lanes; i < n && line < n_lines; i += lanes)
                all[t] += expf(LOAD(1, OFFSET(1, line) + i * job.ints[3]) - greatest[t]);
        }
        JOIN_LANES(all, lanes, HWNAS_REDUCE_SUM)
        THREADS(t) {
            const int line = first + t / lanes;
            for (int i = t % lanes; i < n && line < n_lines; i += lanes)
                STORE(0, OFFSET(0, line) + i * job.ints[2],
                      expf(LOAD(1, OFFSET(1, line) + i * job.ints[3]) - greatest[t]) /
                          all[t - t % lanes]);
        }
    }
}

/* views: 0 the output and 1 the input, without the dimensions that are one; 2 those of the output,
 * 3 of the input; 4 the scale and, with ints[2], 5 the bias, both over those. ints: [1] values in a
 * line; [3] nothing is taken away first, as in rms_norm. numbers: [0] is added to the variance. */
KERNEL(hwnas_layer_norm)
{
    SHARED float all[N_THREADS];
    SHARED float mean, factor;
    FOR_BLOCKS(line) {
        const int to = OFFSET(0, line), from = OFFSET(1, line), n = job.ints[1];
        THREADS(t) {
            all[t] = 0;
            for (int i = t; i < n; i += N_THREADS)
                all[t] += LOAD(1, from + OFFSET(3, i));
        }
        JOIN_THREADS(all, HWNAS_REDUCE_SUM)
        THREADS(t)
            if (t == 0)
                mean = job.ints[3] ? 0 : all[0] / (float)n;
        THREADS(t) {
            all[t] = 0;
            for (int i = t; i < n; i += N_THREADS) {
                const float x = LOAD(1, from + OFFSET(3, i)) - mean;
                all[t] += x * x;
            }
        }
        JOIN_THREADS(all, HWNAS_REDUCE_SUM)
        THREADS(t)
            if (t == 0)
                factor = 1 / sqrtf(all[0] / (float)n + job.numbers[0]);
        THREADS(t)
            for (int i = t; i < n; i += N_THREADS) {
                const float x =
                    (LOAD(1, from + OFFSET(3, i)) - mean) * factor * LOAD(4, OFFSET(4, i));
                STORE(0, to + OFFSET(2, i), job.ints[2] ? x + LOAD(5, OFFSET(5, i)) : x);
            }
    }
}

/* Whether value x at place i goes before y at place k; `sign` -1: the least first. `is_last`: of
 * equal ones the last. What is no number goes after all that are. */
DEVICE int kernel_goes_before(float x, int i, float y, int k, float sign, int is_last)
{
    if (x != x || y != y)
        return x == x || (y != y && i < k);
    if (x != y)
        return sign * x > sign * y;
    return is_last ? i > k : i < k;
}

/* views: 0 the output, 1 the input, without the axis. ints: [1] the axis' length, [3] its step in
 * the input, [4] of equal ones the last. numbers: [0] 1 or -1, as in kernel_goes_before(). */
KERNEL(hwnas_arg)
{
    SHARED float values[N_THREADS];
    SHARED int places[N_THREADS];
    FOR_BLOCKS(line) {
        const int from = OFFSET(1, line), n = job.ints[1];
        THREADS(t) {
            places[t] = t < n ? t : 0;
            values[t] = LOAD(1, from + places[t] * job.ints[3]);
            for (int i = t + N_THREADS; i < n; i += N_THREADS) {
                const float x = LOAD(1, from + i * job.ints[3]);
                if (kernel_goes_before(x, i, values[t], places[t], job.numbers[0], job.ints[4])) {
                    values[t] = x;
                    places[t] = i;
                }
            }
        }
        for (int half = N_THREADS / 2; half > 0; half /= 2)
            THREADS(t)
                if (t < half && kernel_goes_before(values[t + half], places[t + half], values[t],
                                                   places[t], job.numbers[0], job.ints[4])) {
                    values[t] = values[t + half];
                    places[t] = places[t + half];
                }
        THREADS(t)
            if (t == 0)
                STORE(0, OFFSET(0, line), (float)places[0]);
    }
}

/* Each value counts those that go before it, which is its place among the first `count`. views: 0
 * the output, 1 the input, without the axis. ints: [1] the axis' length, [2] its step in the
 * output, [3] in the input, [4] how many, [5] places, not values. numbers: [0] 1 or -1, as in
 * kernel_goes_before(). */
KERNEL(hwnas_top_k)
{
    FOR_BLOCKS(line) {
        const int to = OFFSET(0, line), from = OFFSET(1, line), n = job.ints[1];
        THREADS(t)
            for (int i = t; i < n; i += N_THREADS) {
                const float x = LOAD(1, from + i * job.ints[3]);
                int place = 0;
                for (int k = 0; k < n && place < job.ints[4]; k++)
                    place += kernel_goes_before(LOAD(1, from + k * job.ints[3]), k, x, i,
                                                job.numbers[0], 0);
                if (place < job.ints[4])
                    STORE(0, to + place * job.ints[2], job.ints[5] ? (float)i : x);
            }
    }
}

/* views: 0 the output, 1 the input, without the axis. ints: [1] the axis' length, [2] its step in
 * the output, [3] in the input, [4] without the value itself, [5] from the end. A thread has a
 * line. */
KERNEL(hwnas_cum_sum)
{
    FOR_EACH(line) {
        const int to = OFFSET(0, line), from = OFFSET(1, line), n = job.ints[1];
        double sum = 0;
        for (int k = 0; k < n; k++) {
            const int i = job.ints[5] ? n - 1 - k : k;
            const double before = sum;
            sum += LOAD(1, from + i * job.ints[3]);
            STORE(0, to + i * job.ints[2], (float)(job.ints[4] ? before : sum));
        }
    }
}
