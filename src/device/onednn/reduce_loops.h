/* reduce_loops.h: many values made one, as loops over vectors. */
#ifndef HWNAS_DEVICE_ONEDNN_REDUCE_LOOPS_H
#define HWNAS_DEVICE_ONEDNN_REDUCE_LOOPS_H

#include <stdint.h>

enum { HWNAS_REDUCE_COLUMNS = 64 }; /* at a time, in registers */

typedef struct hwnas_reduce_loops {
    /* Each of `n_rows` rows of `n` values that lie side by side. */
    void (*rows)(float *out, const float *in, int64_t n_rows, int64_t n);
    /* `width` columns of `n` rows that lie `apart` from each other. */
    void (*columns)(float *out, const float *in, int64_t n, int64_t apart, int64_t width);
} hwnas_reduce_loops;

extern const hwnas_reduce_loops hwnas_reduce_sums, hwnas_reduce_sizes, hwnas_reduce_squares,
    hwnas_reduce_products, hwnas_reduce_greatest, hwnas_reduce_least, hwnas_reduce_log_sums;

#endif
