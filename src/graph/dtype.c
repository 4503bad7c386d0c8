#include "graph/dtype.h"

static const struct {
    const char *name;
    bool is_whole;
} rows[HWNAS_N_DTYPES] = {
    [HWNAS_FLOAT32] = {"float32", false},   [HWNAS_FLOAT64] = {"float64", false},
    [HWNAS_FLOAT16] = {"float16", false},   [HWNAS_BFLOAT16] = {"bfloat16", false},
    [HWNAS_INT64] = {"int64", true},        [HWNAS_INT32] = {"int32", true},
    [HWNAS_INT16] = {"int16", true},        [HWNAS_INT8] = {"int8", true},
    [HWNAS_UINT64] = {"uint64", true},      [HWNAS_UINT32] = {"uint32", true},
    [HWNAS_UINT16] = {"uint16", true},      [HWNAS_UINT8] = {"uint8", true},
    [HWNAS_BOOL] = {"bool", true},
};

const char *hwnas_dtype_name(hwnas_dtype dtype)
{
    return rows[dtype].name;
}

bool hwnas_dtype_is_whole(hwnas_dtype dtype)
{
    return rows[dtype].is_whole;
}
