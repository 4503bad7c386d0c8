#define XXH_STATIC_LINKING_ONLY 1 /* a state on the stack */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/home.h"
#include "base/mem.h"
#include "base/str.h"

/* What a path leads to that is neither a file nor a directory. */
static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

void hwnas_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

hwnas_status hwnas_file_open(int *out, size_t *size, const char *path)
{
    const hwnas_place place = {.file = path};
    struct stat st;
    /* A pipe that nobody writes to would hold up open() for ever. */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        if (error == ENXIO) /* a socket, or a device without a driver */
            return hwnas_fail(HWNAS_E_INPUT, &place, "this is not a regular file");
        return hwnas_fail(error == ENOENT ? HWNAS_E_NOT_FOUND : HWNAS_E_IO, &place,
                          "cannot open the file: %s", strerror(error));
    }
    if (S_ISREG(st.st_mode)) {
        *out = fd;
        *size = (size_t)st.st_size;
        return HWNAS_OK;
    }
    close(fd);
    if (S_ISDIR(st.st_mode))
        return hwnas_fail(HWNAS_E_INPUT, &place, "this is a directory, a file was expected");
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is %s, a regular file was expected",
                                 kind_of(st.st_mode)),
                      "write it to a file first: some files are read more than once");
}

static hwnas_status too_large(const char *path, size_t limit)
{
    const hwnas_place place = {.file = path};
    return hwnas_fail(HWNAS_E_INPUT, &place, "the file is larger than %zu MiB", limit >> 20);
}

hwnas_status hwnas_file_read(char **out, size_t *length, const char *path, size_t limit)
{
    hwnas_status status = HWNAS_OK;
    char *text = NULL;
    size_t n = 0, size = 0;
    int fd = -1;
    const hwnas_place place = {.file = path};
    TRY(hwnas_file_open(&fd, &size, path));
    if (size > limit) {
        status = too_large(path, limit);
        goto out;
    }
    /* Files of the kernel have no size, and others may grow meanwhile. */
    for (size_t capacity = size + 2;; capacity *= 2) {
        text = hwnas_realloc(text, capacity);
        ssize_t got = 1;
        while (n + 1 < capacity && got != 0) {
            got = read(fd, text + n, capacity - n - 1);
            if (got < 0 && errno != EINTR) {
                status =
                    hwnas_fail(HWNAS_E_IO, &place, "cannot read the file: %s", strerror(errno));
                goto out;
            }
            n += got > 0 ? (size_t)got : 0;
        }
        if (n > limit) {
            status = too_large(path, limit);
            goto out;
        }
        if (got == 0)
            break;
    }
    text[n] = '\0';
    *out = text;
    if (length)
        *length = n;
    text = NULL;
out:
    free(text);
    close(fd);
    return status;
}

/* UTF-16 and UTF-32 by their byte order marks, or by two first characters of ASCII. */
static bool is_wide(const char *t, size_t n)
{
    if (n >= 2 && (!memcmp(t, "\xff\xfe", 2) || !memcmp(t, "\xfe\xff", 2)))
        return true;
    return n >= 4 && !t[0] != !t[1] && !t[0] == !t[2] && !t[1] == !t[3];
}

hwnas_status hwnas_file_read_text(char **out, size_t *length, const char *path, size_t limit)
{
    static const char mark[] = "\xef\xbb\xbf"; /* Windows begins UTF-8 with it */
    const hwnas_place place = {.file = path, .line = 1, .column = 1};
    char *text = NULL;
    size_t n = 0;
    if (hwnas_ends_with(path, ".onnx") && hwnas_file_exists(path))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                       "this is an ONNX model, a text file was expected"),
            "'hwnas profile' measures a model, and 'hwnas optimize' searches for faster ones");
    TRY(hwnas_file_read(&text, &n, path, limit));
    if (is_wide(text, n)) {
        free(text);
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not UTF-8 but UTF-16"),
                          "save the file as UTF-8; what some editors call 'Unicode' is UTF-16");
    }
    if (n >= 3 && !memcmp(text, mark, 3)) {
        n -= 3;
        memmove(text, text + 3, n + 1);
    }
    *out = text;
    if (length)
        *length = n;
    return HWNAS_OK;
}

bool hwnas_file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

char *hwnas_file_real(const char *path)
{
    char *real;
    while (!(real = realpath(path, NULL)) && errno == ENOMEM)
        hwnas_out_of_memory();
    return real;
}

FILE *hwnas_file_stream(const char *path)
{
    FILE *stream;
    while (!(stream = fopen(path, "re")) && errno == ENOMEM)
        hwnas_out_of_memory();
    return stream;
}

/* The directory of a name, which loses that; what is left in `base`. */
static bool find_directory(struct stat *out, const char **base, char *name)
{
    char *slash = strrchr(name, '/');
    *base = slash ? slash + 1 : name;
    if (!slash)
        return !stat(".", out);
    if (slash == name)
        return !stat("/", out);
    *slash = '\0';
    return !stat(name, out);
}

static bool is_one_inode(const struct stat *x, const struct stat *y)
{
    return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

bool hwnas_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    const bool has_a = !stat(a, &x), has_b = !stat(b, &y);
    if (has_a || has_b)
        return has_a && has_b && is_one_inode(&x, &y) && S_ISREG(x.st_mode);
    char *first = hwnas_file_follow(a), *second = hwnas_file_follow(b);
    const char *p, *q;
    const bool is_same = find_directory(&x, &p, first) && find_directory(&y, &q, second) &&
                         is_one_inode(&x, &y) && !strcmp(p, q);
    free(first);
    free(second);
    return is_same;
}

hwnas_status hwnas_file_check_output(const char *output, const char *input)
{
    const hwnas_place place = {.file = output};
    if (!output)
        return HWNAS_OK;
    if (input && hwnas_file_is_same(output, input))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "this would be written over what is read from it"),
            "give the output another name");
    return hwnas_file_try(output);
}

/* What is there, but is not a regular file, says so itself. */
static hwnas_status fail_missing(const char *name)
{
    const hwnas_place place = {.file = name};
    int fd = -1;
    size_t size;
    hwnas_status status = hwnas_file_open(&fd, &size, name);
    if (status == HWNAS_OK) /* it has come meanwhile */
        close(fd);
    return status != HWNAS_OK && status != HWNAS_E_NOT_FOUND
               ? status
               : hwnas_fail(HWNAS_E_NOT_FOUND, &place, "there is no such file");
}

/* Appends the names of the files of a folder, without the suffix; and of those in folders there. */
static void list_names(hwnas_str *out, const char *folder, const char *suffix)
{
    glob_t found = {0};
    char *here = hwnas_printf("%s/*%s", folder, suffix);
    char *below = hwnas_printf("%s/*/*%s", folder, suffix);
    const bool any = !glob(here, 0, NULL, &found);
    (void)glob(below, any ? GLOB_APPEND : 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *base = strrchr(found.gl_pathv[i], '/') + 1;
        hwnas_str_addf(out, "%.*s/", (int)(strlen(base) - strlen(suffix)), base);
    }
    globfree(&found);
    free(here);
    free(below);
}

/* The name, of those in the list, that may have been meant; yours to free(). NULL: none. */
static char *nearest_name(const char *name, const hwnas_str *list)
{
    enum { MOST = 512 };
    const char *names[MOST + 1] = {NULL};
    char *copy = hwnas_strdup(list->n ? list->s : ""), *rest = copy, *one;
    for (size_t n = 0; n < MOST && (one = strsep(&rest, "/"));)
        if (*one)
            names[n++] = one;
    const char *near = hwnas_nearest(name, names);
    char *found = near ? hwnas_strdup(near) : NULL;
    free(copy);
    return found;
}

hwnas_status hwnas_file_find(char **out, const char *name, const char *room, const char *suffix)
{
    if (strchr(name, '/') || hwnas_ends_with(name, suffix) || hwnas_file_exists(name)) {
        if (!hwnas_file_exists(name))
            return fail_missing(name);
        *out = hwnas_strdup(name);
        return HWNAS_OK;
    }
    const char *path = getenv("HWNAS_PATH");
    char *roots = hwnas_printf("%s:%s", path ? path : "", hwnas_data_root());
    hwnas_str looked = {0}, there = {0};
    char *found = NULL, *rest = roots;
    for (char *root; !found && (root = strsep(&rest, ":"));) {
        if (!*root)
            continue;
        char *candidate = hwnas_printf("%s/%s/%s%s", root, room, name, suffix);
        if (hwnas_file_exists(candidate)) {
            found = candidate;
        } else {
            char *folder = hwnas_printf("%s/%s", root, room);
            hwnas_str_addf(&looked, "%s%s", looked.n ? ", " : "", folder);
            list_names(&there, folder, suffix);
            free(folder);
            free(candidate);
        }
    }
    free(roots);
    char *near = found ? NULL : nearest_name(name, &there);
    hwnas_status status = HWNAS_OK;
    if (found)
        *out = found;
    else
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no '%s' in %s", name, room),
            "%s%s%slooked for %s%s in %s; a path to a file works too", near ? "did you mean '" : "",
            near ? near : "", near ? "'? " : "", name, suffix, looked.s);
    free(near);
    hwnas_str_done(&there);
    hwnas_str_done(&looked);
    return status;
}

size_t hwnas_file_name_length(const char *text)
{
    const char *last = strrchr(text, '#');
    size_t n = strlen(text);
    char *name = hwnas_strdup(text);
    bool is_there = hwnas_file_exists(name);
    while (!is_there && n > 0) {
        while (n > 0 && name[n - 1] != '#')
            n--;
        if (n > 0)
            name[--n] = '\0';
        is_there = n > 0 && hwnas_file_exists(name);
    }
    free(name);
    return is_there || !last ? (n ? n : strlen(text)) : (size_t)(last - text);
}

char *hwnas_file_beside(const char *from, const char *path)
{
    const char *slash = strrchr(from, '/');
    if (*path == '/' || !slash)
        return hwnas_strdup(path);
    return hwnas_printf("%.*s/%s", (int)(slash - from), from, path);
}

char *hwnas_program_find(const char *name)
{
    if (strchr(name, '/'))
        return hwnas_file_exists(name) && !access(name, X_OK) ? hwnas_strdup(name) : NULL;
    char *path = hwnas_strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin"), *rest = path;
    char *found = NULL;
    for (char *folder; !found && (folder = strsep(&rest, ":"));) {
        found = hwnas_printf("%s/%s", *folder ? folder : ".", name);
        if (access(found, X_OK) || !hwnas_file_exists(found)) {
            free(found);
            found = NULL;
        }
    }
    free(path);
    return found;
}

char *hwnas_file_hash(const char *path)
{
    enum { PART = 1 << 20 };
    int fd;
    size_t size;
    ssize_t got;
    if (hwnas_file_open(&fd, &size, path) != HWNAS_OK) {
        hwnas_error_clear();
        return NULL;
    }
    char *part = hwnas_alloc(PART);
    XXH3_state_t state; /* not XXH3_createState(), which may be without memory */
    XXH3_128bits_reset(&state);
    while ((got = read(fd, part, PART)) != 0 && (got > 0 || errno == EINTR))
        XXH3_128bits_update(&state, part, got > 0 ? (size_t)got : 0);
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    free(part);
    close(fd);
    if (got < 0)
        return NULL;
    return hwnas_printf("%016llx%016llx", (unsigned long long)hash.high64,
                        (unsigned long long)hash.low64);
}
