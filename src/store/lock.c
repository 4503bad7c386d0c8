/* lock.c: an open file description lock keeps others out; beside it a plain POSIX lock, which the
 * kernel tells the owner of, says who it is. */
#define _GNU_SOURCE 1 /* F_OFD_SETLK */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* SQLite locks 512 bytes from 2^30 on (https://www.sqlite.org/fileformat.html, "lock-byte page").
 */
enum { LOCK_BYTE = (1 << 30) + 4096, SIGN_BYTE };

/* The files that this process has locked: to open and to close one of them again would drop
 * SQLite's locks. */
struct hwnas_locked_file {
    int fd;
    dev_t device;
    ino_t inode;
    struct hwnas_locked_file *next;
};

static struct hwnas_locked_file *locked_files;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool is_ours(const struct stat *st)
{
    bool is_found = false;
    pthread_mutex_lock(&mutex);
    for (const struct hwnas_locked_file *f = locked_files; f; f = f->next)
        is_found |= f->device == st->st_dev && f->inode == st->st_ino;
    pthread_mutex_unlock(&mutex);
    return is_found;
}

static struct flock one_byte(off_t at)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

static hwnas_status fail_held(long pid, const char *study)
{
    const hwnas_place place = {.file = study};
    char holder[64] = "another process";
    if (pid > 0)
        snprintf(holder, sizeof holder, "process %ld", pid);
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "the study is in use by %s", holder),
                      "wait until it ends or stop it; to look at the study meanwhile is fine");
}

/* Who holds a lock that we did not get; 0: nobody knows. */
static long holder_of(int fd)
{
    struct flock sign = one_byte(SIGN_BYTE);
    return fcntl(fd, F_GETLK, &sign) || sign.l_type == F_UNLCK ? 0 : (long)sign.l_pid;
}

/* Locks an open file; it is closed on failure. */
static hwnas_status lock(hwnas_lock *out, int fd, const char *study)
{
    const hwnas_place place = {.file = study};
    struct flock byte = one_byte(LOCK_BYTE);
    struct stat st;
    hwnas_status status = HWNAS_OK;
    if (fcntl(fd, F_OFD_SETLK, &byte))
        status =
            errno == EAGAIN || errno == EACCES
                ? fail_held(holder_of(fd), study)
                : hwnas_hint(
                      hwnas_fail(HWNAS_E_IO, &place, "cannot lock the study: %s", strerror(errno)),
                      "put it on a local disk: some network file systems have no locks");
    else if (fstat(fd, &st))
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot lock the study: %s", strerror(errno));
    if (status != HWNAS_OK) {
        close(fd);
        return status;
    }
    struct hwnas_locked_file *file = hwnas_alloc(sizeof *file);
    *file = (struct hwnas_locked_file){.fd = fd, .device = st.st_dev, .inode = st.st_ino};
    pthread_mutex_lock(&mutex);
    file->next = locked_files;
    locked_files = file;
    pthread_mutex_unlock(&mutex);
    *out = (hwnas_lock){file};
    hwnas_lock_sign(out);
    return HWNAS_OK;
}

/* The last holder may have put another file in its place between our open() and our lock. */
static bool is_still_there(const hwnas_lock *lock, const char *file)
{
    struct stat st;
    return !lstat(file, &st) && st.st_dev == lock->file->device && st.st_ino == lock->file->inode;
}

hwnas_status hwnas_lock_take(hwnas_lock *out, const char *file, const char *study)
{
    const hwnas_place place = {.file = study};
    for (;;) {
        struct stat st;
        if (!lstat(file, &st) && is_ours(&st))
            return fail_held((long)getpid(), study);
        const int fd = open(file, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return hwnas_hint(hwnas_fail(errno == ENOENT ? HWNAS_E_NOT_FOUND : HWNAS_E_IO, &place,
                                         "cannot write to %s: %s", file, strerror(errno)),
                              "look at its permissions");
        TRY(lock(out, fd, study));
        if (is_still_there(out, file))
            return HWNAS_OK;
        hwnas_lock_release(out);
    }
}

hwnas_status hwnas_lock_make(hwnas_lock *out, bool *is_there, const char *file, const char *study)
{
    const hwnas_place place = {.file = study};
    const int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    *is_there = fd < 0 && errno == EEXIST;
    if (*is_there)
        return HWNAS_OK;
    if (fd < 0)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_IO, &place, "cannot create %s: %s", file, strerror(errno)),
            "the directory of a study must exist and be writable");
    TRY(lock(out, fd, study));
    *is_there = !is_still_there(out, file); /* somebody took it for a dead process's */
    if (*is_there)
        hwnas_lock_release(out);
    return HWNAS_OK;
}

bool hwnas_lock_is_held(const char *file)
{
    struct stat st;
    if (!stat(file, &st) && is_ours(&st))
        return true;
    struct flock byte = one_byte(LOCK_BYTE);
    const int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool is_held = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &byte) && byte.l_type != F_UNLCK;
    if (fd >= 0)
        close(fd);
    return is_held;
}

void hwnas_lock_sign(const hwnas_lock *lock)
{
    struct flock sign = one_byte(SIGN_BYTE);
    if (lock->file && fcntl(lock->file->fd, F_SETLK, &sign))
        errno = 0; /* only for the message of who comes next */
}

int hwnas_lock_descriptor(const hwnas_lock *lock)
{
    return lock->file->fd;
}

void hwnas_lock_release(hwnas_lock *lock)
{
    struct hwnas_locked_file **at = &locked_files, *file = lock->file;
    if (!file)
        return;
    pthread_mutex_lock(&mutex);
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    pthread_mutex_unlock(&mutex);
    close(file->fd);
    free(file);
    *lock = (hwnas_lock){0};
}
