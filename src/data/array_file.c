#include "data/array_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/str.h"

enum { CHUNK = 1 << 15 }; /* bytes that are decoded at a time; a multiple of each item */

static hwnas_place place_of(const hwnas_array_file *a)
{
    return (hwnas_place){.file = a->path};
}

char *hwnas_dims_text(int rank, const int64_t *dims)
{
    hwnas_str text = {0};
    for (int i = 0; i < rank; i++)
        hwnas_str_addf(&text, "%s%" PRId64, i ? ", " : "(", dims[i]);
    hwnas_str_add(&text, rank == 0 ? "()" : rank == 1 ? ",)" : ")");
    return text.s;
}

/* ---- Elements ---- */

/* `n` elements of type `type`, whose bytes the machine has in its order, as doubles. */
#define DECODE(type, value)                                                                        \
    do {                                                                                           \
        for (size_t i = 0; i < n; i++) {                                                           \
            type item;                                                                             \
            memcpy(&item, bytes + i * sizeof item, sizeof item);                                   \
            out[i] = (double)(value);                                                              \
        }                                                                                          \
    } while (0)

static void decode(double *out, const unsigned char *bytes, size_t n, hwnas_dtype dtype)
{
    switch (dtype) {
    case HWNAS_FLOAT32:
        DECODE(float, item);
        return;
    case HWNAS_FLOAT64:
        DECODE(double, item);
        return;
    case HWNAS_FLOAT16:
        DECODE(uint16_t, hwnas_half_value(item));
        return;
    case HWNAS_INT64:
        DECODE(int64_t, item);
        return;
    case HWNAS_INT32:
        DECODE(int32_t, item);
        return;
    case HWNAS_INT16:
        DECODE(int16_t, item);
        return;
    case HWNAS_INT8:
        DECODE(int8_t, item);
        return;
    case HWNAS_UINT64:
        DECODE(uint64_t, item);
        return;
    case HWNAS_UINT32:
        DECODE(uint32_t, item);
        return;
    case HWNAS_UINT16:
        DECODE(uint16_t, item);
        return;
    case HWNAS_UINT8:
        DECODE(uint8_t, item);
        return;
    case HWNAS_BOOL:
        DECODE(uint8_t, item != 0);
        return;
    case HWNAS_BFLOAT16: /* no file has it */
    case HWNAS_N_DTYPES:
        break;
    }
}

size_t hwnas_array_item_bytes(hwnas_dtype dtype)
{
    static const size_t bytes[HWNAS_N_DTYPES] = {
        [HWNAS_FLOAT32] = 4, [HWNAS_FLOAT64] = 8, [HWNAS_FLOAT16] = 2, [HWNAS_INT64] = 8,
        [HWNAS_INT32] = 4,   [HWNAS_INT16] = 2,   [HWNAS_INT8] = 1,    [HWNAS_UINT64] = 8,
        [HWNAS_UINT32] = 4,  [HWNAS_UINT16] = 2,  [HWNAS_UINT8] = 1,   [HWNAS_BOOL] = 1,
    };
    return bytes[dtype];
}

static bool is_machine_big_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 0;
}

static void turn_bytes(unsigned char *bytes, size_t n, size_t item)
{
    for (size_t i = 0; i < n; i++, bytes += item)
        for (size_t k = 0; k < item / 2; k++) {
            const unsigned char byte = bytes[k];
            bytes[k] = bytes[item - 1 - k];
            bytes[item - 1 - k] = byte;
        }
}

/* ---- Opening ---- */

hwnas_status hwnas_array_take(hwnas_array_file *array, void *bytes, size_t n)
{
    size_t got;
    const hwnas_place place = place_of(array);
    TRY(hwnas_byte_stream_read(&got, array->stream, bytes, n));
    if (got == n)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, &place, "the file ends within the header of the array");
}

static hwnas_status check_dims(hwnas_array_file *a)
{
    const int64_t most = (int64_t)1 << 40;
    const hwnas_place place = place_of(a);
    if (a->rank < 1)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the array is a single number"),
                          "its first dimension counts the samples");
    a->row_count = 1;
    for (int i = 1; i < a->rank; i++) {
        if (a->dims[i] < 1 || a->row_count > most / a->dims[i])
            return hwnas_fail(HWNAS_E_INPUT, &place, "dimension %d of the array is %" PRId64, i,
                              a->dims[i]);
        a->row_count *= a->dims[i];
    }
    if (a->dims[0] < 1)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the array has no rows: there are no samples");
    return HWNAS_OK;
}

/* What the file has behind its header, where that is known, is what the header says. */
static hwnas_status check_length(const hwnas_array_file *a)
{
    const int64_t left = hwnas_byte_stream_left(a->stream);
    const double want =
        (double)a->dims[0] * (double)a->row_count * (double)hwnas_array_item_bytes(a->dtype);
    const hwnas_place place = place_of(a);
    if (left < 0 || (double)left == want)
        return HWNAS_OK;
    char *dims = hwnas_dims_text(a->rank, a->dims);
    const hwnas_status status = hwnas_fail(
        HWNAS_E_INPUT, &place, "the array has %" PRId64 " bytes of values; its shape %s needs %.0f",
        left, dims, want);
    free(dims);
    return hwnas_hint(status, "was the file copied whole?");
}

static hwnas_status read_header(hwnas_array_file *a)
{
    unsigned char start[4];
    size_t got;
    bool is_npy, is_idx = false;
    const hwnas_place place = place_of(a);
    TRY(hwnas_byte_stream_read(&got, a->stream, start, sizeof start));
    if (got < sizeof start)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the file is empty, or nearly so");
    TRY(hwnas_npy_read_header(a, &is_npy, start));
    if (!is_npy)
        TRY(hwnas_idx_read_header(a, &is_idx, start));
    if (!is_npy && !is_idx)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is no file of arrays"),
                          ".npy and .npz of NumPy and IDX of MNIST are read, also behind gzip");
    TRY(check_dims(a));
    return check_length(a);
}

/* Opens the file, and reads to the first row. */
static hwnas_status begin(hwnas_array_file *a)
{
    char *member = a->name ? hwnas_printf("%s.npy", a->name) : NULL;
    hwnas_status status = hwnas_byte_stream_open(&a->stream, a->path, member);
    free(member);
    if (status == HWNAS_OK)
        status = read_header(a);
    return status != HWNAS_OK && a->name ? hwnas_context(status, "array '%s'", a->name) : status;
}

hwnas_status hwnas_array_open(hwnas_array_file **out, const char *path, const char *name)
{
    hwnas_array_file *a = hwnas_alloc(sizeof *a);
    a->path = hwnas_strdup(path);
    a->name = name ? hwnas_strdup(name) : NULL;
    const hwnas_status status = begin(a);
    if (status == HWNAS_OK)
        *out = a;
    else
        hwnas_array_close(a);
    return status;
}

void hwnas_array_close(hwnas_array_file *array)
{
    if (!array)
        return;
    hwnas_byte_stream_close(array->stream);
    free(array->path);
    free(array->name);
    free(array);
}

/* ---- Rows ---- */

static hwnas_status ends_early(const hwnas_array_file *a, int64_t row)
{
    const hwnas_place place = place_of(a);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "the file ends within row %" PRId64 " of %" PRId64, row,
                                 a->dims[0]),
                      "was it copied whole?");
}

/* Behind the last row there is nothing; archives check their sums when they are asked. */
static hwnas_status check_end(hwnas_array_file *a)
{
    char byte;
    size_t got;
    const hwnas_place place = place_of(a);
    TRY(hwnas_byte_stream_read(&got, a->stream, &byte, 1));
    if (!got)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, &place, "the file goes on behind the last of %" PRId64 " rows",
                      a->dims[0]);
}

hwnas_status hwnas_array_read(double *out, hwnas_array_file *array, int64_t n)
{
    unsigned char bytes[CHUNK];
    const size_t item = hwnas_array_item_bytes(array->dtype);
    const int64_t count = n * array->row_count;
    for (int64_t at = 0; at < count;) {
        const size_t left = (size_t)(count - at);
        const size_t some = left < CHUNK / item ? left : CHUNK / item;
        size_t got;
        TRY(hwnas_byte_stream_read(&got, array->stream, bytes, some * item));
        if (got < some * item)
            return ends_early(array, array->next_row + at / array->row_count);
        if (array->is_big_endian != is_machine_big_endian())
            turn_bytes(bytes, some, item);
        decode(out + at, bytes, some, array->dtype);
        at += (int64_t)some;
    }
    array->next_row += n;
    return array->next_row == array->dims[0] ? check_end(array) : HWNAS_OK;
}

hwnas_status hwnas_array_rewind(hwnas_array_file *array)
{
    hwnas_byte_stream_close(array->stream);
    array->stream = NULL;
    array->next_row = 0;
    return begin(array);
}
