/* dtype.h: what a tensor's values are.
 *
 * All are kept and computed as floats, which hold whole numbers up to 2^24 exactly, so buffers are
 * alike everywhere; files say the type. */
#ifndef HWNAS_GRAPH_DTYPE_H
#define HWNAS_GRAPH_DTYPE_H

#include <stdbool.h>

typedef enum hwnas_dtype {
    HWNAS_FLOAT32,
    HWNAS_FLOAT64,
    HWNAS_FLOAT16,
    HWNAS_BFLOAT16,
    HWNAS_INT64, /* token numbers, indices, shapes */
    HWNAS_INT32,
    HWNAS_INT16,
    HWNAS_INT8,
    HWNAS_UINT64,
    HWNAS_UINT32,
    HWNAS_UINT16,
    HWNAS_UINT8,
    HWNAS_BOOL, /* 0 or 1 */
    HWNAS_N_DTYPES
} hwnas_dtype;

const char *hwnas_dtype_name(hwnas_dtype dtype); /* "float32" */
bool hwnas_dtype_is_whole(hwnas_dtype dtype);    /* integers and truth values */

#endif
