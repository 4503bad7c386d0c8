#include "data/byte_stream.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"

struct hwnas_byte_stream {
    char *path;
    int64_t left; /* -1: not known */
    gzFile plain; /* zlib passes on what is not packed */
    zip_t *zip;
    zip_file_t *member;
};

static hwnas_place place_of(const char *path)
{
    return (hwnas_place){.file = path};
}

static hwnas_status broken_zip(const char *path, zip_error_t *error)
{
    const hwnas_place place = place_of(path);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the archive cannot be read: %s",
                                 zip_error_strerror(error)),
                      "was it copied whole? 'unzip -t' tests it");
}

static hwnas_status open_zip(zip_t **out, const char *path)
{
    hwnas_status status;
    zip_error_t error;
    int code, fd;
    size_t size;
    TRY(hwnas_file_open(&fd, &size, path));
    *out = zip_fdopen(fd, ZIP_CHECKCONS, &code); /* on success the descriptor is its own */
    if (*out)
        return HWNAS_OK;
    close(fd);
    zip_error_init_with_code(&error, code);
    status = broken_zip(path, &error);
    zip_error_fini(&error);
    return status;
}

static hwnas_status open_member(hwnas_byte_stream *s, const char *member)
{
    zip_stat_t stat;
    const hwnas_place place = place_of(s->path);
    TRY(open_zip(&s->zip, s->path));
    const zip_int64_t index = zip_name_locate(s->zip, member, ZIP_FL_ENC_RAW);
    if (index < 0)
        return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "the archive has no member '%s'", member);
    if (zip_stat_index(s->zip, (zip_uint64_t)index, 0, &stat) ||
        !(s->member = zip_fopen_index(s->zip, (zip_uint64_t)index, 0)))
        return broken_zip(s->path, zip_get_error(s->zip));
    s->left = stat.valid & ZIP_STAT_SIZE && stat.size <= INT64_MAX ? (int64_t)stat.size : -1;
    return HWNAS_OK;
}

static hwnas_status open_plain(hwnas_byte_stream *s)
{
    enum { BUFFER = 1 << 17 };
    int fd;
    size_t size;
    TRY(hwnas_file_open(&fd, &size, s->path));
    s->plain = gzdopen(fd, "rb");
    if (!s->plain) {
        close(fd);
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory to unpack %s", s->path);
    }
    gzbuffer(s->plain, BUFFER);
    s->left = gzdirect(s->plain) ? (int64_t)size : -1;
    return HWNAS_OK;
}

hwnas_status hwnas_byte_stream_open(hwnas_byte_stream **out, const char *path, const char *member)
{
    hwnas_byte_stream *s = hwnas_alloc(sizeof *s);
    s->path = hwnas_strdup(path);
    const hwnas_status status = member ? open_member(s, member) : open_plain(s);
    if (status == HWNAS_OK)
        *out = s;
    else
        hwnas_byte_stream_close(s);
    return status;
}

void hwnas_byte_stream_close(hwnas_byte_stream *stream)
{
    if (!stream)
        return;
    if (stream->plain)
        gzclose_r(stream->plain);
    if (stream->member)
        zip_fclose(stream->member);
    if (stream->zip)
        zip_discard(stream->zip);
    free(stream->path);
    free(stream);
}

static hwnas_status fail_plain(const hwnas_byte_stream *s)
{
    const hwnas_place place = place_of(s->path);
    const int system = errno;
    int code;
    const char *text = gzerror(s->plain, &code);
    if (code == Z_ERRNO)
        return hwnas_fail(HWNAS_E_IO, &place, "cannot read the file: %s", strerror(system));
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the packed file is damaged or cut off: %s",
                                 *text ? text : "gzip's checks fail"),
                      "was it copied whole? 'gzip -t' tests it");
}

hwnas_status hwnas_byte_stream_read(size_t *out, hwnas_byte_stream *stream, void *bytes, size_t n)
{
    enum { MOST = 1 << 30 }; /* zlib counts in ints */
    size_t got = 0;
    while (got < n) {
        const size_t want = n - got < MOST ? n - got : MOST;
        char *to = (char *)bytes + got;
        const int64_t some = stream->member ? zip_fread(stream->member, to, want)
                                            : gzread(stream->plain, to, (unsigned)want);
        if (some < 0)
            return stream->member ? broken_zip(stream->path, zip_file_get_error(stream->member))
                                  : fail_plain(stream);
        got += (size_t)some;
        if (some == 0)
            break;
    }
    int code = Z_OK;
    if (stream->plain && got < n)
        gzerror(stream->plain, &code); /* a packed file that is cut off reads as one that ends */
    if (code != Z_OK && code != Z_STREAM_END)
        return fail_plain(stream);
    if (stream->left >= (int64_t)got)
        stream->left -= (int64_t)got;
    *out = got;
    return HWNAS_OK;
}

int64_t hwnas_byte_stream_left(const hwnas_byte_stream *stream)
{
    return stream->left;
}

hwnas_status hwnas_is_zip(bool *out, const char *path)
{
    char start[4];
    size_t n;
    hwnas_byte_stream *stream;
    TRY(hwnas_byte_stream_open(&stream, path, NULL));
    const hwnas_status status = hwnas_byte_stream_read(&n, stream, start, sizeof start);
    hwnas_byte_stream_close(stream);
    /* A member begins with the first, an archive without any with the second. */
    *out = status == HWNAS_OK && n == sizeof start &&
           (!memcmp(start, "PK\3\4", 4) || !memcmp(start, "PK\5\6", 4));
    return status;
}

hwnas_status hwnas_zip_list(char ***out, const char *path)
{
    enum { MAX_MEMBERS = 1 << 16 };
    zip_t *zip;
    const hwnas_place place = place_of(path);
    TRY(open_zip(&zip, path));
    const zip_int64_t n = zip_get_num_entries(zip, 0);
    if (n > MAX_MEMBERS) {
        zip_discard(zip);
        return hwnas_fail(HWNAS_E_INPUT, &place, "the archive has more than %d members",
                          MAX_MEMBERS);
    }
    char **names = hwnas_alloc(((size_t)n + 1) * sizeof *names);
    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
        names[i] = hwnas_strdup(name ? name : "");
    }
    zip_discard(zip);
    *out = names;
    return HWNAS_OK;
}

void hwnas_zip_list_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}
