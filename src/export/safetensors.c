#include "export/safetensors.h"

#include <endian.h>

static const struct {
    const char *name;
    int n_bytes; /* 0: float32 */
} kinds[HWNAS_N_DTYPES] = {
    [HWNAS_INT64] = {"I64", 8},  [HWNAS_INT32] = {"I32", 4},  [HWNAS_INT16] = {"I16", 2},
    [HWNAS_INT8] = {"I8", 1},    [HWNAS_UINT64] = {"I64", 8}, [HWNAS_UINT32] = {"I64", 8},
    [HWNAS_UINT16] = {"I32", 4}, [HWNAS_UINT8] = {"U8", 1},   [HWNAS_BOOL] = {"BOOL", 1},
};

/* Numbers of any width begin with the low byte. */
static void add_number(hwnas_str *to, float value, int n_bytes)
{
    const double wide = value >= 0x1p63f ? 0x1.fffffffffffffp62 : value;
    const uint64_t bits = htole64((uint64_t)(int64_t)wide);
    hwnas_str_addn(to, (const char *)&bits, (size_t)n_bytes);
}

static void add_float(hwnas_str *to, float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = value};
    bits.u = htole32(bits.u);
    hwnas_str_addn(to, (const char *)&bits.u, sizeof bits.u);
}

void hwnas_safetensors_add(hwnas_safetensors *to, const char *name, hwnas_dtype dtype, int rank,
                           const int64_t *dims, const float *values)
{
    const size_t begin = to->values.n;
    int64_t n = 1;
    hwnas_str_addf(&to->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", to->header.n ? "," : "{",
                   name, kinds[dtype].n_bytes ? kinds[dtype].name : "F32");
    for (int i = 0; i < rank; i++) {
        hwnas_str_addf(&to->header, "%s%lld", i ? "," : "", (long long)dims[i]);
        n *= dims[i];
    }
    for (int64_t i = 0; i < n; i++)
        if (kinds[dtype].n_bytes)
            add_number(&to->values, values[i], kinds[dtype].n_bytes);
        else
            add_float(&to->values, values[i]);
    hwnas_str_addf(&to->header, "],\"data_offsets\":[%zu,%zu]}", begin, to->values.n);
}

void hwnas_safetensors_write(hwnas_str *out, hwnas_safetensors *from)
{
    hwnas_str_add(&from->header, from->header.n ? "}" : "{}");
    while (from->header.n % 8) /* so that the values are aligned */
        hwnas_str_add(&from->header, " ");
    const uint64_t length = htole64(from->header.n);
    hwnas_str_addn(out, (const char *)&length, sizeof length);
    hwnas_str_addn(out, from->header.s, from->header.n);
    hwnas_str_addn(out, from->values.s ? from->values.s : "", from->values.n);
    hwnas_str_done(&from->header);
    hwnas_str_done(&from->values);
}
