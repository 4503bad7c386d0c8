/* log_sum_loops.c: the logarithm of a sum of exponentials. They are of values less the greatest, so
 * that none is infinite. The logarithm of several such sums is found in the same way, so that one
 * pass may follow another. */
#include <math.h>
#include <string.h>

#include "device/onednn/function_values.h"
#include "device/onednn/reduce_loops.h"

enum { LANES = 16 };

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
    float all[LANES] = {0}, rest[LANES];
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES)
        for (int k = 0; k < LANES; k++)
            all[k] += hwnas_exp_of(in[at + k] - greatest);
    for (int k = 0; k < LANES; k++)
        rest[k] = -INFINITY; /* adds nothing */
    memcpy(rest, in + at, (size_t)(n - at) * sizeof *in);
    for (int k = 0; k < LANES; k++)
        all[k] += hwnas_exp_of(rest[k] - greatest);
    for (int step = LANES / 2; step; step /= 2)
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

HWNAS_CLONES static void sums_of_columns(float *sums, const float *in, const float *greatest,
                                         int64_t n, int64_t apart, int64_t width)
{
    for (int64_t at = 0; at < width; at++)
        sums[at] = 0;
    for (int64_t row = 0; row < n; row++)
        for (int64_t at = 0; at < width; at++)
            sums[at] += hwnas_exp_of(in[row * apart + at] - greatest[at]);
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
