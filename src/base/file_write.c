/* file_write.c: a file is written without a name, or under a passing one, and takes the name that
 * it is for when it is whole and on the disk. */
#define _GNU_SOURCE 1 /* O_TMPFILE, euidaccess() */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_LINKS = 40 }; /* as the kernel has it */

struct hwnas_draft {
    char *path;      /* as the user wrote it */
    char *target;    /* where that leads; NULL: to a pipe or a device */
    char *temporary; /* the name until then; NULL: none */
    int fd;
    const void *bytes; /* of a stream: not written yet */
    size_t length;
};

static hwnas_status fail_write(const char *path, int error)
{
    static const struct {
        int error;
        const char *hint;
    } rows[] = {
        {ENOENT, "does its directory exist, and may you write there?"},
        {ENOTDIR, "does its directory exist, and may you write there?"},
        {EACCES, "does its directory exist, and may you write there?"},
        {EPERM, "does its directory exist, and may you write there?"},
        {EROFS, "does its directory exist, and may you write there?"},
        {ENOSPC, "make room there, or write to another disk"},
        {EDQUOT, "make room there, or write to another disk"},
        {ENXIO, "a pipe needs a program that reads from it before it is written"},
    };
    const hwnas_place place = {.file = path};
    hwnas_status status =
        hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s",
                   error == ENXIO ? "nobody reads from this pipe" : strerror(error));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].error == error)
            return hwnas_hint(status, "%s", rows[i].hint);
    return status;
}

char *hwnas_file_follow(const char *path)
{
    char *name = hwnas_strdup(path), link[4096];
    for (int i = 0; i < MAX_LINKS; i++) {
        const ssize_t n = readlink(name, link, sizeof link - 1);
        if (n < 0)
            break;
        link[n] = '\0';
        char *next = hwnas_file_beside(name, link);
        free(name);
        name = next;
    }
    return name;
}

/* What standard output writes to is not taken from under it. */
static bool is_stdout(const struct stat *st)
{
    struct stat out;
    return !fstat(STDOUT_FILENO, &out) && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

/* Whether a path leads to something that stays and is written to, by `st`, what is there. */
static bool is_stream(const struct stat *st)
{
    return !S_ISREG(st->st_mode) || is_stdout(st);
}

/* What is wrong with writing to what is there: an error's number, or 0. */
static int refuse(const char *path, const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? EISDIR
           : S_ISBLK(st->st_mode) /* a whole disk is not a place for a file */
               ? ENOTSUP
               : euidaccess(path, W_OK) ? errno : 0;
}

/* In the directory of `target`, as renames stay on one file system. It is drawn: processes of
 * several containers that share a directory may have one number. */
static char *temporary_name(const char *target)
{
    const char *slash = strrchr(target, '/');
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        id = (uint64_t)getpid();
    return hwnas_printf("%.*s.hwnas-%016" PRIx64 ".tmp", slash ? (int)(slash + 1 - target) : 0,
                        target, id);
}

/* A new file without a name, which is gone with its process: a descriptor, or -1. */
static int open_nameless(const char *target)
{
    char *directory = hwnas_strdup(target), *slash = strrchr(directory, '/');
    if (slash)
        slash[1] = '\0';
    const int fd = access("/proc/self/fd", X_OK)
                       ? -1
                       : open(slash ? directory : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(directory);
    return fd;
}

/* For file systems that have none such. */
static int open_named(char **name, const char *target)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    *name = temporary_name(target);
    return open(*name, flags, 0666);
}

/* A new file takes the mode, and if it may the owner, of the one it replaces. */
static int take_mode(int fd, const struct stat *old)
{
    struct stat st;
    if (fstat(fd, &st))
        return errno;
    if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid))
        errno = 0;
    return fchmod(fd, old->st_mode & 0777) ? errno : 0;
}

static int write_all(int fd, const void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        const ssize_t n = write(fd, (const char *)bytes + done, length - done);
        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int open_draft(hwnas_draft *d)
{
    struct stat st;
    const bool is_there = !stat(d->path, &st);
    if (!is_there && errno != ENOENT)
        return errno;
    int error = is_there ? refuse(d->path, &st) : 0;
    if (error || (is_there && is_stream(&st)))
        return error;
    d->target = hwnas_file_follow(d->path);
    d->fd = open_nameless(d->target);
    if (d->fd < 0)
        d->fd = open_named(&d->temporary, d->target);
    if (d->fd < 0) {
        error = errno;
        free(d->temporary); /* it is not ours */
        d->temporary = NULL;
        return error;
    }
    return is_there ? take_mode(d->fd, &st) : 0;
}

hwnas_status hwnas_draft_make(hwnas_draft **out, const char *path, const void *bytes, size_t length)
{
    hwnas_draft *d = hwnas_alloc(sizeof *d);
    *d = (hwnas_draft){.path = hwnas_strdup(path), .fd = -1, .bytes = bytes, .length = length};
    int error = open_draft(d);
    if (!error && d->target)
        error = write_all(d->fd, bytes, length);
    /* Without this a power cut after the rename may leave an empty file. */
    if (!error && d->target && fsync(d->fd))
        error = errno;
    if (error) {
        hwnas_draft_free(d);
        return fail_write(path, error);
    }
    *out = d;
    return HWNAS_OK;
}

bool hwnas_draft_is_stream(const hwnas_draft *draft)
{
    return !draft->target;
}

static int write_stream(hwnas_draft *d)
{
    struct stat st;
    if (stat(d->path, &st))
        return errno;
    /* A pipe without a reader would hold up open() for ever. */
    d->fd = is_stdout(&st) ? dup(STDOUT_FILENO)
                           : open(d->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (d->fd < 0)
        return errno;
    if (!is_stdout(&st) && fcntl(d->fd, F_SETFL, 0))
        return errno;
    return write_all(d->fd, d->bytes, d->length);
}

static void sync_directory(const char *path)
{
    char *directory = hwnas_strdup(path), *slash = strrchr(directory, '/');
    if (slash)
        slash[1] = '\0';
    const int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* the file is whole whether this succeeds or not */
        close(fd);
    }
    free(directory);
}

static int give_name(hwnas_draft *d)
{
    if (!d->temporary) {
        char from[64], *name = temporary_name(d->target);
        snprintf(from, sizeof from, "/proc/self/fd/%d", d->fd);
        if (linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) {
            free(name);
            return errno;
        }
        d->temporary = name;
    }
    if (rename(d->temporary, d->target))
        return errno;
    free(d->temporary);
    d->temporary = NULL;
    sync_directory(d->target);
    return 0;
}

hwnas_status hwnas_draft_publish(hwnas_draft *draft)
{
    const int error = draft->target ? give_name(draft) : write_stream(draft);
    return error ? fail_write(draft->path, error) : HWNAS_OK;
}

void hwnas_draft_free(hwnas_draft *draft)
{
    if (!draft)
        return;
    if (draft->temporary)
        unlink(draft->temporary);
    if (draft->fd >= 0)
        close(draft->fd);
    free(draft->temporary);
    free(draft->target);
    free(draft->path);
    free(draft);
}

hwnas_status hwnas_file_write(const char *path, const void *bytes, size_t length)
{
    hwnas_draft *draft;
    TRY(hwnas_draft_make(&draft, path, bytes, length));
    const hwnas_status status = hwnas_draft_publish(draft);
    hwnas_draft_free(draft);
    return status;
}

hwnas_status hwnas_file_try(const char *path)
{
    hwnas_draft *draft;
    TRY(hwnas_draft_make(&draft, path, "", 0));
    hwnas_draft_free(draft);
    return HWNAS_OK;
}
