#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

hwnas_status hwnas_file_read(char **out, size_t *length, const char *path, size_t limit)
{
    hwnas_status status = HWNAS_OK;
    char *text = NULL;
    size_t n = 0, capacity = 0;
    hwnas_place place = {.file = path};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hwnas_fail(errno == ENOENT ? HWNAS_E_NOT_FOUND : HWNAS_E_IO, &place,
                          "cannot open the file: %s", strerror(errno));
    struct stat st;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "this is a directory, a file was expected");
        goto out;
    }
    for (;;) {
        if (n + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            text = hwnas_realloc(text, capacity);
        }
        ssize_t got = read(fd, text + n, capacity - n - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = hwnas_fail(HWNAS_E_IO, &place, "cannot read the file: %s", strerror(errno));
            goto out;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > limit) {
            status = hwnas_fail(HWNAS_E_INPUT, &place, "the file is larger than %zu MiB",
                                limit >> 20);
            goto out;
        }
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

/* The file beside `path` that is to take its place. Its name is yours to free(), on failure too. */
static hwnas_status open_temporary(char **name, int *fd, const char *path)
{
    const hwnas_place place = {.file = path};
    struct stat st;
    *name = hwnas_printf("%s.tmp.%ld", path, (long)getpid());
    if (!stat(path, &st) && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if ((*fd = open(*name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) >= 0)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s", strerror(errno));
}

hwnas_status hwnas_file_try(const char *path)
{
    char *temporary;
    int fd;
    hwnas_status status = open_temporary(&temporary, &fd, path);
    if (status == HWNAS_OK) {
        close(fd);
        unlink(temporary);
    }
    free(temporary);
    return status;
}

hwnas_status hwnas_file_write(const char *path, const void *bytes, size_t length)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = path};
    char *temporary;
    int fd;
    TRY_OUT(open_temporary(&temporary, &fd, path));
    for (size_t done = 0; done < length;) {
        ssize_t n = write(fd, (const char *)bytes + done, length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            status = hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s", strerror(errno));
            break;
        }
        done += (size_t)n;
    }
    if (close(fd) && status == HWNAS_OK)
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s", strerror(errno));
    if (status == HWNAS_OK && rename(temporary, path))
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s", strerror(errno));
    if (status != HWNAS_OK)
        unlink(temporary);
out:
    free(temporary);
    return status;
}

bool hwnas_file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

hwnas_status hwnas_file_find(char **out, const char *name, const char *room, const char *suffix)
{
    if (strchr(name, '/') || hwnas_ends_with(name, suffix) || hwnas_file_exists(name)) {
        if (!hwnas_file_exists(name)) {
            hwnas_place place = {.file = name};
            return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "there is no such file");
        }
        *out = hwnas_strdup(name);
        return HWNAS_OK;
    }
    const char *path = getenv("HWNAS_PATH");
    char *roots = hwnas_printf("%s%s%s:%s", path ? path : "", path ? ":" : "", HWNAS_SOURCE_DIR,
                               HWNAS_DATA_DIR);
    hwnas_str looked = {0};
    char *found = NULL, *rest = roots;
    for (char *root; !found && (root = strsep(&rest, ":"));) {
        if (!*root)
            continue;
        char *candidate = hwnas_printf("%s/%s/%s%s", root, room, name, suffix);
        if (hwnas_file_exists(candidate)) {
            found = candidate;
        } else {
            hwnas_str_addf(&looked, "%s%s/%s", looked.n ? ", " : "", root, room);
            free(candidate);
        }
    }
    free(roots);
    hwnas_status status = HWNAS_OK;
    if (found)
        *out = found;
    else
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no '%s' in %s", name, room),
            "looked for %s%s in %s; a path to a file works too", name, suffix, looked.s);
    hwnas_str_done(&looked);
    return status;
}

char *hwnas_file_beside(const char *from, const char *path)
{
    const char *slash = strrchr(from, '/');
    if (*path == '/' || !slash)
        return hwnas_strdup(path);
    return hwnas_printf("%.*s/%s", (int)(slash - from), from, path);
}
