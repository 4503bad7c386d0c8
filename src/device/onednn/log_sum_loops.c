/* log_sum_loops.c: the logarithm of a sum of exponentials. They are of values less the greatest, so
 * that none is infinite. The logarithm of several such sums is found in the same way, so that one
 * pass may follow another. */
#include <math.h>
#include <string.h>

#include "device/onednn/function_values.h"
#include "device/onednn/reduce_loops.h"

/* Where the greatest is infinite, or none is a number. */
static float plain(const float *in, int64_t n, int64_t apart)
{
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        all += exp((double)in[i * apart]);
    return (float)log(all);
}

HWNAS_CLONES static float sum_of_row(const float *in, int64_t n, float greatest)
{
    float all[HWNAS_LANES] = {0}, rest[HWNAS_LANES];
    int64_t at = 0;
    for (; at + HWNAS_LANES <= n; at += HWNAS_LANES)
        for (int k = 0; k < HWNAS_LANES; k++)
            all[k] += hwnas_exp_of(in[at + k] - greatest);
    for (int k = 0; k < HWNAS_LANES; k++)
        rest[k] = -INFINITY; /* adds nothing */
    memcpy(rest, in + at, (size_t)(n - at) * sizeof *in);
    for (int k = 0; k < HWNAS_LANES; k++)
        all[k] += hwnas_exp_of(rest[k] - greatest);
    for (int step = HWNAS_LANES / 2; step; step /= 2)
        for (int k = 0; k < step; k++)
            all[k] += all[k + step];
    return all[0];
}

static void log_sums_rows(float *out, const float *in, int64_t n_rows, int64_t n)
{
    hwnas_reduce_greatest.rows(out, in, n_rows, n);
    for (int64_t row = 0; row < n_rows; row++)
        out[row] = isfinite(out[row]) ? out[row] + logf(sum_of_row(in + row * n, n, out[row]))
                                      : plain(in + row * n, n, 1);
}

HWNAS_INLINE void add_columns(float *sums, const float *in, const float *greatest)
{
    HWNAS_EACH_LANE(k)
    sums[k] += hwnas_exp_of(in[k] - greatest[k]);
}

/* Of columns that are not whole vectors the last one is filled up. */
HWNAS_CLONES static void sums_of_columns(float *sums, const float *in, const float *greatest,
                                         int64_t n, int64_t apart, int64_t width)
{
    const int64_t whole = width / HWNAS_LANES * HWNAS_LANES;
    const size_t rest = (size_t)(width - whole) * sizeof *in;
    float values[HWNAS_LANES] = {0}, limits[HWNAS_LANES] = {0};
    memset(sums, 0, HWNAS_REDUCE_COLUMNS * sizeof *sums);
    memcpy(limits, greatest + whole, rest);
    for (int64_t row = 0; row < n; row++, in += apart) {
        for (int64_t at = 0; at < whole; at += HWNAS_LANES)
            add_columns(sums + at, in + at, greatest + at);
        if (!rest)
            continue;
        memcpy(values, in + whole, rest);
        add_columns(sums + whole, values, limits);
    }
}

static void log_sums_columns(float *out, const float *in, int64_t n, int64_t apart, int64_t width)
{
    float sums[HWNAS_REDUCE_COLUMNS];
    hwnas_reduce_greatest.columns(out, in, n, apart, width);
    for (int64_t begin = 0; begin < width; begin += HWNAS_REDUCE_COLUMNS) {
        const int64_t left = width - begin;
        const int64_t now = left < HWNAS_REDUCE_COLUMNS ? left : HWNAS_REDUCE_COLUMNS;
        sums_of_columns(sums, in + begin, out + begin, n, apart, now);
        for (int64_t at = begin; at < begin + now; at++)
            out[at] =
                isfinite(out[at]) ? out[at] + logf(sums[at - begin]) : plain(in + at, n, apart);
    }
}

const hwnas_reduce_loops hwnas_reduce_log_sums = {log_sums_rows, log_sums_columns};
