/* pytorch_flat_text.c: numbers, lists and types as Python has them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/pytorch_flat.h"

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

const char *hwnas_flat_list(hwnas_flat *f, int n, const int64_t *values)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = TEXT("%s%s%lld", text, i ? ", " : "", (long long)values[i]);
    return text;
}

const char *hwnas_flat_pair(hwnas_flat *f, const int64_t *values)
{
    return values[0] == values[1] ? TEXT("%lld", (long long)values[0])
                                  : TEXT("(%s)", hwnas_flat_list(f, 2, values));
}

const char *hwnas_flat_sides(hwnas_flat *f, const int64_t *pad)
{
    return TEXT("(%lld, %lld, %lld, %lld)", (long long)pad[1], (long long)pad[3], (long long)pad[0],
                (long long)pad[2]);
}

/* As few digits as a float32 needs to come back. */
const char *hwnas_flat_number(hwnas_flat *f, double value)
{
    char text[40];
    if (!isfinite(value))
        return isnan(value) ? "float(\"nan\")" : value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = 0;
        if (sscanf(text, "%lf", &back) == 1 && (float)back == (float)value)
            break;
    }
    return TEXT("%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

const char *hwnas_flat_dtype(hwnas_dtype dtype)
{
    static const char *const names[HWNAS_N_DTYPES] = {
        [HWNAS_INT64] = "torch.int64",  [HWNAS_INT32] = "torch.int32",
        [HWNAS_INT16] = "torch.int16",  [HWNAS_INT8] = "torch.int8",
        [HWNAS_UINT64] = "torch.int64", [HWNAS_UINT32] = "torch.int64",
        [HWNAS_UINT16] = "torch.int32", [HWNAS_UINT8] = "torch.uint8",
        [HWNAS_BOOL] = "torch.bool"};
    return names[dtype] ? names[dtype] : "torch.float32";
}
