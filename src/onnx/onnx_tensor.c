/* onnx_tensor.c: the values of ONNX's tensors, of whatever type and wherever they lie,
 * as floats. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "onnx/onnx_reader.h"

const int32_t hwnas_onnx_types[HWNAS_N_DTYPES] = {
    [HWNAS_FLOAT32] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    [HWNAS_FLOAT64] = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
    [HWNAS_FLOAT16] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
    [HWNAS_BFLOAT16] = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16,
    [HWNAS_INT64] = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    [HWNAS_INT32] = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    [HWNAS_INT16] = ONNX__TENSOR_PROTO__DATA_TYPE__INT16,
    [HWNAS_INT8] = ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
    [HWNAS_UINT64] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT64,
    [HWNAS_UINT32] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT32,
    [HWNAS_UINT16] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT16,
    [HWNAS_UINT8] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
    [HWNAS_BOOL] = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
};

hwnas_status hwnas_onnx_dtype(hwnas_dtype *out, int32_t type, const char *what, const char *name)
{
    for (int i = 0; i < HWNAS_N_DTYPES; i++)
        if (hwnas_onnx_types[i] == type) {
            *out = (hwnas_dtype)i;
            return HWNAS_OK;
        }
    const ProtobufCEnumValue *row =
        protobuf_c_enum_descriptor_get_value(&onnx__tensor_proto__data_type__descriptor, type);
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s '%s' is of type %s", what, name,
                      row ? row->name : "that is unknown to us");
}

/* ---- values as they lie in memory ---- */

static double from_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double from_bfloat(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* One value of a type at `at`, which need not be aligned. */
static double value_at(hwnas_dtype dtype, const unsigned char *at)
{
    union {
        float f;
        double d;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;
        uint8_t u8;
    } v = {0};
    memcpy(&v, at, hwnas_onnx_size(dtype));
    switch (dtype) {
    case HWNAS_FLOAT32:
        return v.f;
    case HWNAS_FLOAT64:
        return v.d;
    case HWNAS_FLOAT16:
        return from_half(v.u16);
    case HWNAS_BFLOAT16:
        return from_bfloat(v.u16);
    case HWNAS_INT64:
        return (double)v.i64;
    case HWNAS_INT32:
        return v.i32;
    case HWNAS_INT16:
        return v.i16;
    case HWNAS_INT8:
        return v.i8;
    case HWNAS_UINT64:
        return (double)v.u64;
    case HWNAS_UINT32:
        return v.u32;
    case HWNAS_UINT16:
        return v.u16;
    case HWNAS_UINT8:
    case HWNAS_BOOL:
    case HWNAS_N_DTYPES:
        break;
    }
    return v.u8;
}

size_t hwnas_onnx_size(hwnas_dtype dtype)
{
    static const size_t sizes[HWNAS_N_DTYPES] = {4, 8, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};
    return sizes[dtype];
}

/* ---- where they lie ---- */

const char *hwnas_onnx_find_entry(Onnx__StringStringEntryProto *const *entries, size_t n,
                                  const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (entries[i]->key && !strcmp(entries[i]->key, key))
            return entries[i]->value;
    return NULL;
}

bool hwnas_onnx_is_external(const Onnx__TensorProto *tensor)
{
    return tensor->has_data_location &&
           tensor->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
}

/* A number of bytes among the entries of external data; `absent` where there is none. */
static bool entry_number(uint64_t *out, const Onnx__TensorProto *from, const char *key,
                         uint64_t absent)
{
    const char *text = hwnas_onnx_find_entry(from->external_data, from->n_external_data, key);
    char *end;
    *out = absent;
    if (!text)
        return true;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return end > text && !*end && !errno && *text != '-';
}

static hwnas_status read_at(void *out, int fd, size_t n_bytes, size_t offset, const char *path)
{
    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n = pread(fd, (char *)out + done, n_bytes - done, (off_t)(offset + done));
        if (n == 0 || (n < 0 && errno != EINTR))
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot read %s: %s", path,
                              n ? strerror(errno) : "it was cut short meanwhile");
        done += n > 0 ? (size_t)n : 0;
    }
    return HWNAS_OK;
}

/* Opens the file beside the model that has `n_bytes` of a tensor from `offset` on. */
static hwnas_status open_external(int *out, const char *path, const char *tensor, size_t offset,
                                  size_t n_bytes)
{
    int fd = -1;
    size_t size = 0;
    hwnas_status status = hwnas_file_open(&fd, &size, path);
    if (status == HWNAS_OK && (size < offset || size - offset < n_bytes)) {
        close(fd);
        status = hwnas_fail(HWNAS_E_IO, NULL, "the file is too short");
    }
    if (status == HWNAS_OK)
        *out = fd;
    else
        status = hwnas_hint(hwnas_fail(status == HWNAS_E_INPUT ? status : HWNAS_E_IO, NULL,
                                       "cannot read the values of '%s' from %s: %s", tensor, path,
                                       hwnas_last_error()->message),
                            "it belongs beside the model, whole");
    return status;
}

/* Bytes in a file beside the model; yours to free(). */
static hwnas_status read_external(unsigned char **out, const char *folder,
                                  const Onnx__TensorProto *from, size_t n_bytes)
{
    hwnas_status status = HWNAS_OK;
    const char *location =
        hwnas_onnx_find_entry(from->external_data, from->n_external_data, "location");
    uint64_t offset, length;
    int fd = -1;
    void *bytes = NULL;
    char *path = NULL;
    if (!folder || is_empty(location) || *location == '/' || strstr(location, ".."))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "the values of '%s' are in another file, '%s', where we do not look",
                          from->name, location ? location : "");
    path = hwnas_printf("%s/%s", folder, location);
    if (!entry_number(&offset, from, "offset", 0) ||
        !entry_number(&length, from, "length", n_bytes) || length != n_bytes ||
        offset > INT64_MAX) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' has other than %zu bytes in '%s'",
                            from->name, n_bytes, location);
        goto out;
    }
    TRY_OUT(open_external(&fd, path, from->name, offset, n_bytes));
    TRY_OUT(hwnas_try_alloc(&bytes, n_bytes, from->name));
    TRY_OUT(read_at(bytes, fd, n_bytes, offset, path));
    *out = bytes;
    bytes = NULL;
out:
    if (fd >= 0)
        close(fd);
    free(bytes);
    free(path);
    return status;
}

/* ONNX keeps small types in lists of a larger one. */
static double typed_value(const Onnx__TensorProto *from, hwnas_dtype dtype, size_t i)
{
    switch (dtype) {
    case HWNAS_FLOAT32:
        return from->float_data[i];
    case HWNAS_FLOAT64:
        return from->double_data[i];
    case HWNAS_INT64:
        return (double)from->int64_data[i];
    case HWNAS_UINT64:
    case HWNAS_UINT32:
        return (double)from->uint64_data[i];
    case HWNAS_FLOAT16:
        return from_half((uint16_t)from->int32_data[i]);
    case HWNAS_BFLOAT16:
        return from_bfloat((uint16_t)from->int32_data[i]);
    default:
        return from->int32_data[i];
    }
}

static size_t n_typed_values(const Onnx__TensorProto *from, hwnas_dtype dtype)
{
    switch (dtype) {
    case HWNAS_FLOAT32:
        return from->n_float_data;
    case HWNAS_FLOAT64:
        return from->n_double_data;
    case HWNAS_INT64:
        return from->n_int64_data;
    case HWNAS_UINT64:
    case HWNAS_UINT32:
        return from->n_uint64_data;
    default:
        return from->n_int32_data;
    }
}

/* Where the values of a tensor lie as bytes: `read`, which is yours to free(), or in the file;
 * NULL: in a list of a larger type. Nothing is allocated for values that are not there, whatever
 * the dimensions claim. */
static hwnas_status find_bytes(const unsigned char **out, unsigned char **read, hwnas_dtype *dtype,
                               const Onnx__TensorProto *from, int64_t count, const char *folder)
{
    *read = NULL;
    TRY(hwnas_onnx_dtype(dtype, from->has_data_type ? from->data_type : 0, "constant", from->name));
    const size_t size = hwnas_onnx_size(*dtype);
    if (hwnas_onnx_is_external(from)) {
        TRY(read_external(read, folder, from, (size_t)count * size));
        *out = *read;
        return HWNAS_OK;
    }
    const size_t n = from->has_raw_data ? from->raw_data.len / size : n_typed_values(from, *dtype);
    if (n != (size_t)count || (from->has_raw_data && from->raw_data.len % size))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'%s' has data of %zu values where %" PRId64 " values belong", from->name,
                          n, count);
    *out = from->has_raw_data ? from->raw_data.data : NULL;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_values(float **out, hwnas_arena *arena, const Onnx__TensorProto *from,
                               int64_t count, const char *folder)
{
    hwnas_dtype dtype;
    unsigned char *read;
    const unsigned char *bytes;
    TRY(find_bytes(&bytes, &read, &dtype, from, count, folder));
    const size_t size = hwnas_onnx_size(dtype);
    float *values = hwnas_arena_alloc(arena, (size_t)count * sizeof *values);
    if (!bytes)
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)typed_value(from, dtype, (size_t)i);
    else if (dtype == HWNAS_FLOAT32)
        memcpy(values, bytes, (size_t)count * size);
    else
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)value_at(dtype, bytes + (size_t)i * size);
    free(read);
    *out = values;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_bytes(const unsigned char **out, void **owned,
                              const Onnx__TensorProto *from, int64_t count, const char *folder)
{
    hwnas_dtype dtype;
    unsigned char *read;
    void *narrowed;
    TRY(find_bytes(out, &read, &dtype, from, count, folder));
    *owned = read;
    if (*out)
        return HWNAS_OK;
    TRY(hwnas_try_alloc(&narrowed, (size_t)count, from->name));
    for (int64_t i = 0; i < count; i++)
        ((unsigned char *)narrowed)[i] = (unsigned char)from->int32_data[i];
    *out = *owned = narrowed;
    return HWNAS_OK;
}
