/* arrays.c: arrays in memory to files, and from files of their values alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "graph/dtype.h"

static bool is_whole(const hwnas_array_info *array)
{
    for (int type = 0; type < HWNAS_N_DTYPES; type++)
        if (!strcmp(hwnas_dtype_name((hwnas_dtype)type), array->type))
            return hwnas_dtype_is_whole((hwnas_dtype)type);
    return false;
}

/* NEP 1, version 1: values begin at a multiple of 64 bytes. */
static void add_npy(hwnas_str *out, const hwnas_array_info *array, const float *values)
{
    enum { ALIGNMENT = 64, FIXED = 10 };
    const uint16_t one = 1;
    const char order = *(const char *)&one ? '<' : '>';
    hwnas_str header = {0};
    hwnas_str_addf(&header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order,
                   is_whole(array) ? "i8" : "f4");
    for (int i = 0; i < array->rank; i++)
        hwnas_str_addf(&header, "%" PRId64 ", ", array->dims[i]);
    hwnas_str_add(&header, "), }");
    while ((FIXED + header.n + 1) % ALIGNMENT)
        hwnas_str_add(&header, " ");
    hwnas_str_add(&header, "\n");
    const char start[FIXED] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header.n & 255), (char)(header.n >> 8)};
    hwnas_str_addn(out, start, FIXED);
    hwnas_str_addn(out, header.s, header.n);
    hwnas_str_done(&header);
    if (!is_whole(array)) {
        hwnas_str_addn(out, (const char *)values, (size_t)array->count * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < array->count; i++) {
        const int64_t value = (int64_t)values[i];
        hwnas_str_addn(out, (const char *)&value, sizeof value);
    }
}

static hwnas_status fail_zip(const char *path, const char *why)
{
    return hwnas_fail(HWNAS_E_LIBRARY, NULL, "libzip cannot make %s: %s", path, why);
}

/* Members that are stored, not packed, as numpy.savez() writes them. */
static hwnas_status add_members(zip_t *zip, const char *path, size_t n,
                                const hwnas_array_info *arrays, const hwnas_str *bytes)
{
    for (size_t i = 0; i < n; i++) {
        char *name = hwnas_printf("%s.npy", arrays[i].name);
        zip_source_t *from = zip_source_buffer(zip, bytes[i].s, bytes[i].n, 0);
        const zip_int64_t index = from ? zip_file_add(zip, name, from, 0) : -1;
        free(name);
        if (index < 0)
            zip_source_free(from);
        if (index < 0 || zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0))
            return fail_zip(path, zip_strerror(zip));
    }
    return HWNAS_OK;
}

static hwnas_status read_source(hwnas_str *out, const char *path, zip_source_t *source)
{
    char bytes[1 << 14];
    if (zip_source_open(source))
        return fail_zip(path, zip_error_strerror(zip_source_error(source)));
    for (zip_int64_t n; (n = zip_source_read(source, bytes, sizeof bytes)) > 0;)
        hwnas_str_addn(out, bytes, (size_t)n);
    zip_source_close(source);
    return HWNAS_OK;
}

static hwnas_status add_npz(hwnas_str *out, const char *path, size_t n,
                            const hwnas_array_info *arrays, const hwnas_str *bytes)
{
    hwnas_status status;
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, &error);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_TRUNCATE, &error) : NULL;
    if (!zip) {
        status = fail_zip(path, zip_error_strerror(&error));
        zip_source_free(source);
        zip_error_fini(&error);
        return status;
    }
    zip_source_keep(source); /* the archive gives it back when it is closed */
    status = add_members(zip, path, n, arrays, bytes);
    if (status == HWNAS_OK && zip_close(zip))
        status = fail_zip(path, zip_strerror(zip));
    else if (status == HWNAS_OK)
        zip = NULL;
    if (zip)
        zip_discard(zip);
    if (status == HWNAS_OK)
        status = read_source(out, path, source);
    zip_source_free(source);
    zip_error_fini(&error);
    return status;
}

static hwnas_status write_npz(const char *path, size_t n, const hwnas_array_info *arrays,
                              const float *const *values)
{
    hwnas_str *bytes = hwnas_alloc((n + 1) * sizeof *bytes), all = {0};
    for (size_t i = 0; i < n; i++)
        add_npy(&bytes[i], &arrays[i], values[i]);
    hwnas_status status = add_npz(&all, path, n, arrays, bytes);
    if (status == HWNAS_OK)
        status = hwnas_file_write(path, all.s, all.n);
    for (size_t i = 0; i < n; i++)
        hwnas_str_done(&bytes[i]);
    free(bytes);
    hwnas_str_done(&all);
    return status;
}

hwnas_status hwnas_arrays_write(const char *path, size_t n, const hwnas_array_info *arrays,
                                const float *const *values)
{
    IN_C_LOCALE;
    const hwnas_place place = {.file = path};
    hwnas_str bytes = {0};
    if (hwnas_ends_with(path, ".npz"))
        return write_npz(path, n, arrays, values);
    const bool is_npy = hwnas_ends_with(path, ".npy");
    if (is_npy && n != 1)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "a .npy has one array, there are %zu", n),
            "write them to a .npz");
    for (size_t i = 0; i < n; i++)
        if (is_npy)
            add_npy(&bytes, &arrays[i], values[i]);
        else
            hwnas_str_addn(&bytes, (const char *)values[i],
                           (size_t)arrays[i].count * sizeof **values);
    const hwnas_status status = hwnas_file_write(path, bytes.s, bytes.n);
    hwnas_str_done(&bytes);
    return status;
}

/* ---- Values alone ---- */

static hwnas_status read_values(float *out, const char *path, int fd, size_t bytes)
{
    const hwnas_place place = {.file = path};
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(fd, (char *)out + done, bytes - done);
        if (got < 0 && errno != EINTR)
            return hwnas_fail(HWNAS_E_IO, &place, "cannot read the file: %s", strerror(errno));
        if (got == 0)
            return hwnas_fail(HWNAS_E_IO, &place, "the file got shorter while it was read");
        done += got > 0 ? (size_t)got : 0;
    }
    return HWNAS_OK;
}

static hwnas_status check_size(const char *path, size_t size, size_t n,
                               const hwnas_array_info *arrays)
{
    const hwnas_place place = {.file = path};
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++)
        wanted += (size_t)arrays[i].count * sizeof(float);
    if (size == wanted)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "the file has %zu bytes, the arrays take %zu in fp32", size,
                                 wanted),
                      "files that say themselves what they hold end in .npy, .npz, .gz or -ubyte");
}

hwnas_status hwnas_arrays_read(float **out, const char *path, size_t n,
                               const hwnas_array_info *arrays)
{
    hwnas_status status = HWNAS_OK;
    size_t size;
    int fd;
    TRY(hwnas_file_open(&fd, &size, path));
    float **values = hwnas_alloc((n + 1) * sizeof *values);
    TRY_OUT(check_size(path, size, n, arrays));
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = (size_t)arrays[i].count * sizeof **values;
        TRY_OUT(hwnas_try_alloc((void **)&values[i], bytes, "an array"));
        TRY_OUT(read_values(values[i], path, fd, bytes));
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = values[i];
        values[i] = NULL;
    }
out:
    for (size_t i = 0; i < n; i++)
        free(values[i]);
    free(values);
    close(fd);
    return status;
}
