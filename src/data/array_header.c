/* array_header.c: what files of arrays say of them before the values.
 *
 * .npy: NumPy Enhancement Proposal 1 and the documentation of numpy.lib.format: the magic
 * "\x93NUMPY", the version in two bytes, the length of the header in 2 bytes (version 1) or 4 (2
 * and 3), little-endian, and a dictionary as Python writes it: {'descr': '<f4', 'fortran_order':
 * False, 'shape': (60000, 28, 28), }.
 *
 * IDX: yann.lecun.com/exdb/mnist: two bytes of zero, the type, the number of dimensions, and each
 * of these in 4 bytes, big-endian. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/array_file.h"
#include "base/mem.h"

enum { MAX_NPY_HEADER = 1 << 16 };

static hwnas_place place_of(const hwnas_array_file *a)
{
    return (hwnas_place){.file = a->path};
}

/* ---- NumPy ---- */

static hwnas_status not_npy(const hwnas_array_file *a, const char *what)
{
    const hwnas_place place = place_of(a);
    return hwnas_fail(HWNAS_E_INPUT, &place, "the header of NumPy is wrong: %s", what);
}

/* The text behind "'key':" and spaces; NULL: there is no such key. */
static const char *find_key(const char *header, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = header; (at = strchr(at, '\'')); at++)
        if (!strncmp(at + 1, key, n) && at[1 + n] == '\'') {
            at += n + 2;
            at += strspn(at, " \t");
            return *at == ':' ? at + 1 + strspn(at + 1, " \t") : NULL;
        }
    return NULL;
}

/* "'<f4'": the order of the bytes, the kind and the size. */
static hwnas_status read_type(hwnas_array_file *a, const char *text)
{
    static const struct {
        char spelling[4];
        hwnas_dtype dtype;
    } rows[] = {
        {"f4", HWNAS_FLOAT32}, {"f8", HWNAS_FLOAT64}, {"f2", HWNAS_FLOAT16}, {"i8", HWNAS_INT64},
        {"i4", HWNAS_INT32},   {"i2", HWNAS_INT16},   {"i1", HWNAS_INT8},    {"u8", HWNAS_UINT64},
        {"u4", HWNAS_UINT32},  {"u2", HWNAS_UINT16},  {"u1", HWNAS_UINT8},   {"b1", HWNAS_BOOL},
    };
    const hwnas_place place = place_of(a);
    const size_t n = *text == '\'' ? strcspn(text + 1, "'") : 0;
    for (size_t i = 0; n == 3 && i < sizeof rows / sizeof *rows; i++)
        if (strchr("<>|=", text[1]) && !strncmp(text + 2, rows[i].spelling, 2)) {
            a->dtype = rows[i].dtype;
            a->is_big_endian = text[1] == '>';
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the array is of the type %.*s",
                                 (int)(n ? n + 2 : strcspn(text, "\n")), text),
                      "integers, floats of 16 to 64 bits and truth values are read: x.astype(...)");
}

/* "(60000, 28, 28)", "(7,)", "()" */
static hwnas_status read_shape(hwnas_array_file *a, const char *text)
{
    const hwnas_place place = place_of(a);
    if (*text++ != '(')
        return not_npy(a, "no shape");
    for (a->rank = 0;; a->rank++) {
        char *end;
        text += strspn(text, " ,");
        if (*text == ')')
            return HWNAS_OK;
        if (!isdigit((unsigned char)*text))
            return not_npy(a, "a dimension that is no number");
        if (a->rank == HWNAS_MAX_RANK)
            return hwnas_fail(HWNAS_E_INPUT, &place, "the array has more than %d dimensions",
                              HWNAS_MAX_RANK);
        errno = 0;
        a->dims[a->rank] = strtoll(text, &end, 10);
        if (errno || a->dims[a->rank] < 0)
            return not_npy(a, "a dimension that is too large");
        text = end;
    }
}

static hwnas_status read_dictionary(hwnas_array_file *a, const char *header)
{
    const hwnas_place place = place_of(a);
    const char *type = find_key(header, "descr"), *shape = find_key(header, "shape");
    const char *order = find_key(header, "fortran_order");
    if (!type || !shape || !order)
        return not_npy(a, "'descr', 'fortran_order' or 'shape' is missing");
    TRY(read_type(a, type));
    TRY(read_shape(a, shape));
    if (a->rank > 1 && strncmp(order, "False", 5))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "the array is in Fortran's order: its samples are scattered"),
                          "save np.ascontiguousarray(x)");
    return HWNAS_OK;
}

hwnas_status hwnas_npy_read_header(hwnas_array_file *array, bool *is_mine,
                                   const unsigned char *start)
{
    unsigned char rest[8]; /* "PY", the version, the length */
    *is_mine = !memcmp(start, "\x93NUM", 4);
    if (!*is_mine)
        return HWNAS_OK;
    TRY(hwnas_array_take(array, rest, 6));
    if (memcmp(rest, "PY", 2) || rest[2] < 1 || rest[2] > 3)
        return not_npy(array, "a version that is not 1, 2 or 3");
    if (rest[2] > 1)
        TRY(hwnas_array_take(array, rest + 6, 2));
    const size_t low = rest[4] | (size_t)rest[5] << 8;
    const size_t n = rest[2] > 1 ? low | (size_t)rest[6] << 16 | (size_t)rest[7] << 24 : low;
    if (n > MAX_NPY_HEADER)
        return not_npy(array, "it is longer than 64 KiB");
    char *header = hwnas_alloc(n + 1);
    hwnas_status status = hwnas_array_take(array, header, n);
    if (status == HWNAS_OK)
        status = read_dictionary(array, header);
    free(header);
    return status;
}

/* ---- IDX ---- */

hwnas_status hwnas_idx_read_header(hwnas_array_file *array, bool *is_mine,
                                   const unsigned char *start)
{
    static const struct {
        unsigned char code;
        hwnas_dtype dtype;
    } rows[] = {{0x08, HWNAS_UINT8}, {0x09, HWNAS_INT8},    {0x0B, HWNAS_INT16},
                {0x0C, HWNAS_INT32}, {0x0D, HWNAS_FLOAT32}, {0x0E, HWNAS_FLOAT64}};
    *is_mine = false;
    for (size_t i = 0; !start[0] && !start[1] && i < sizeof rows / sizeof *rows; i++)
        if (start[2] == rows[i].code && start[3] <= HWNAS_MAX_RANK) {
            *is_mine = true;
            array->dtype = rows[i].dtype;
        }
    if (!*is_mine)
        return HWNAS_OK;
    array->is_big_endian = true;
    array->rank = start[3];
    for (int i = 0; i < array->rank; i++) {
        unsigned char b[4];
        TRY(hwnas_array_take(array, b, sizeof b));
        array->dims[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    return HWNAS_OK;
}
