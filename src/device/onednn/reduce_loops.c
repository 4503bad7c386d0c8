/* reduce_loops.c: eight values at a time, in as many accumulators as keep the adders busy. What is
 * not a number is a sum that is none, and is passed over by extremes. */
#include "device/onednn/reduce_loops.h"

#include <math.h>

#include "device/onednn/function_values.h"

enum { AT_ONCE = HWNAS_REDUCE_COLUMNS / HWNAS_HALF_LANES, SHORT = 32 };

HWNAS_INLINE void load(hwnas_half *x, const float *from)
{
    *x = *(const hwnas_half *)from;
}

HWNAS_INLINE void add(hwnas_half *all, const hwnas_half *x)
{
    *all += *x;
}

HWNAS_INLINE void add_size(hwnas_half *all, const hwnas_half *x)
{
    *all += (hwnas_half)((hwnas_word_half)*x & 0x7fffffffu);
}

HWNAS_INLINE void add_square(hwnas_half *all, const hwnas_half *x)
{
    *all += *x * *x;
}

HWNAS_INLINE void multiply(hwnas_half *all, const hwnas_half *x)
{
    *all *= *x;
}

HWNAS_INLINE void keep_greater(hwnas_half *all, const hwnas_half *x)
{
    hwnas_choose_half(all, all, x, x, all);
}

HWNAS_INLINE void keep_lesser(hwnas_half *all, const hwnas_half *x)
{
    hwnas_choose_half(all, x, all, x, all);
}

/* One of each of eight rows. A vector that is written piece by piece cannot be read at once. */
HWNAS_INLINE void take_each(hwnas_half *x, const float *from, int64_t n)
{
    *x = (hwnas_half){from[0],     from[n],     from[2 * n], from[3 * n],
                      from[4 * n], from[5 * n], from[6 * n], from[7 * n]};
}

/* The lanes from `step` on, which is 4, 2 or 1, at the beginning. */
HWNAS_INLINE void lanes_from(hwnas_half *out, const hwnas_half *v, int step)
{
    const hwnas_half x = *v;
    *out = step == 4   ? __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7)
           : step == 2 ? __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3)
                       : __builtin_shufflevector(x, x, 1, 1, 1, 1, 1, 1, 1, 1);
}

/* `FIRST` takes a vector of values in, `MERGE` another accumulator; `FIRST_ONE` is `b`
 * with one value `a` more.
 *  */
#define REDUCE(NAME, START, FIRST, MERGE, FIRST_ONE)                                               \
    HWNAS_INLINE float NAME##_of_row(const float *in, int64_t n)                                   \
    {                                                                                              \
        hwnas_half all[AT_ONCE], x;                                                                \
        int64_t at = 0;                                                                            \
        for (int k = 0; k < AT_ONCE; k++)                                                          \
            all[k] = (hwnas_half){0} + START;                                                      \
        for (; at + HWNAS_REDUCE_COLUMNS <= n; at += HWNAS_REDUCE_COLUMNS)                         \
            for (int k = 0; k < AT_ONCE; k++) {                                                    \
                load(&x, in + at + k * HWNAS_HALF_LANES);                                          \
                FIRST(&all[k], &x);                                                                \
            }                                                                                      \
        for (; at + HWNAS_HALF_LANES <= n; at += HWNAS_HALF_LANES) {                               \
            load(&x, in + at);                                                                     \
            FIRST(&all[0], &x);                                                                    \
        }                                                                                          \
        x = (hwnas_half){0} + START;                                                               \
        memcpy(&x, in + at, (size_t)(n - at) * sizeof *in);                                        \
        FIRST(&all[0], &x);                                                                        \
        for (int k = AT_ONCE / 2; k; k /= 2)                                                       \
            for (int i = 0; i < k; i++)                                                            \
                MERGE(&all[i], &all[i + k]);                                                       \
        for (int step = HWNAS_HALF_LANES / 2; step; step /= 2) {                                   \
            lanes_from(&x, &all[0], step);                                                         \
            MERGE(&all[0], &x);                                                                    \
        }                                                                                          \
        return all[0][0];                                                                          \
    }                                                                                              \
    HWNAS_CLONES static void NAME##_rows(float *out, const float *in, int64_t n_rows, int64_t n)   \
    {                                                                                              \
        int64_t row = 0;                                                                           \
        for (; row + HWNAS_HALF_LANES <= n_rows && n < SHORT; row += HWNAS_HALF_LANES) {           \
            hwnas_half all = (hwnas_half){0} + START, x;                                           \
            for (int64_t k = 0; k < n; k++) {                                                      \
                take_each(&x, in + row * n + k, n);                                                \
                FIRST(&all, &x);                                                                   \
            }                                                                                      \
            *(hwnas_half *)(out + row) = all;                                                      \
        }                                                                                          \
        for (; row < n_rows; row++)                                                                \
            out[row] = NAME##_of_row(in + row * n, n);                                             \
    }                                                                                              \
    HWNAS_INLINE int64_t NAME##_of_columns(float *out, const float *in, int64_t n, int64_t apart,  \
                                           int64_t at, int64_t width, int n_vectors)               \
    {                                                                                              \
        hwnas_half all[AT_ONCE], x;                                                                \
        for (; at + n_vectors * HWNAS_HALF_LANES <= width; at += n_vectors * HWNAS_HALF_LANES) {   \
            for (int k = 0; k < n_vectors; k++)                                                    \
                all[k] = (hwnas_half){0} + START;                                                  \
            for (int64_t row = 0; row < n; row++)                                                  \
                for (int k = 0; k < n_vectors; k++) {                                              \
                    load(&x, in + row * apart + at + k * HWNAS_HALF_LANES);                        \
                    FIRST(&all[k], &x);                                                            \
                }                                                                                  \
            for (int k = 0; k < n_vectors; k++)                                                    \
                *(hwnas_half *)(out + at + k * HWNAS_HALF_LANES) = all[k];                         \
        }                                                                                          \
        return at;                                                                                 \
    }                                                                                              \
    HWNAS_CLONES static void NAME##_columns(float *out, const float *in, int64_t n, int64_t apart, \
                                            int64_t width)                                         \
    {                                                                                              \
        int64_t at = NAME##_of_columns(out, in, n, apart, 0, width, AT_ONCE);                      \
        at = NAME##_of_columns(out, in, n, apart, at, width, AT_ONCE / 2);                         \
        at = NAME##_of_columns(out, in, n, apart, at, width, 1);                                   \
        for (; at < width; at++) {                                                                 \
            float b = START;                                                                       \
            for (int64_t row = 0; row < n; row++) {                                                \
                const float a = in[row * apart + at];                                              \
                b = FIRST_ONE;                                                                     \
            }                                                                                      \
            out[at] = b;                                                                           \
        }                                                                                          \
    }                                                                                              \
    const hwnas_reduce_loops hwnas_reduce_##NAME = {NAME##_rows, NAME##_columns};

REDUCE(sums, 0.0f, add, add, b + a)
REDUCE(sizes, 0.0f, add_size, add, b + hwnas_size_of(a))
REDUCE(squares, 0.0f, add_square, add, b + a * a)
REDUCE(products, 1.0f, multiply, multiply, b *a)
REDUCE(greatest, -INFINITY, keep_greater, keep_greater, hwnas_pick(a > b, a, b))
REDUCE(least, INFINITY, keep_lesser, keep_lesser, hwnas_pick(a < b, a, b))
