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
    int n_users;
    bool is_shared;
    dev_t device;
    ino_t inode;
    struct hwnas_locked_file *next;
};

static struct hwnas_locked_file *locked_files;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* With the mutex. */
static struct hwnas_locked_file *find_ours(const struct stat *st)
{
    struct hwnas_locked_file *f = locked_files;
    while (f && (f->device != st->st_dev || f->inode != st->st_ino))
        f = f->next;
    return f;
}

static bool is_ours(const struct stat *st)
{
    pthread_mutex_lock(&mutex);
    const bool is_found = find_ours(st) != NULL;
    pthread_mutex_unlock(&mutex);
    return is_found;
}

/* Another part of this process shares the file: so do we, by the same lock. */
static bool join_ours(hwnas_lock *out, const struct stat *st)
{
    pthread_mutex_lock(&mutex);
    struct hwnas_locked_file *file = find_ours(st);
    const bool may_join = file && file->is_shared;
    if (may_join) {
        file->n_users++;
        out->file = file;
    }
    pthread_mutex_unlock(&mutex);
    return may_join;
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

static hwnas_status set_lock(int fd, bool is_shared, const char *study)
{
    const hwnas_place place = {.file = study};
    struct flock byte = one_byte(LOCK_BYTE);
    byte.l_type = is_shared ? F_RDLCK : F_WRLCK;
    if (!fcntl(fd, F_OFD_SETLK, &byte))
        return HWNAS_OK;
    if (errno == EAGAIN || errno == EACCES)
        return fail_held(holder_of(fd), study);
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "cannot lock the study: %s", strerror(errno)),
                      "put it on a local disk: some network file systems have no locks");
}

/* Locks an open file; it is closed on failure. */
static hwnas_status lock(hwnas_lock *out, int fd, bool is_shared, const char *study)
{
    const hwnas_place place = {.file = study};
    struct stat st;
    hwnas_status status = set_lock(fd, is_shared, study);
    if (status == HWNAS_OK && fstat(fd, &st))
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot lock the study: %s", strerror(errno));
    if (status != HWNAS_OK) {
        close(fd);
        return status;
    }
    struct hwnas_locked_file *file = hwnas_alloc(sizeof *file);
    *file = (struct hwnas_locked_file){
        .fd = fd, .n_users = 1, .is_shared = is_shared, .device = st.st_dev, .inode = st.st_ino};
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

static hwnas_status take(hwnas_lock *out, const char *file, bool is_shared, const char *study)
{
    const hwnas_place place = {.file = study};
    for (;;) {
        struct stat st;
        const bool is_there = !lstat(file, &st);
        if (is_there && is_shared && join_ours(out, &st))
            return HWNAS_OK;
        if (is_there && is_ours(&st))
            return fail_held((long)getpid(), study);
        const int fd = open(file, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return hwnas_hint(hwnas_fail(errno == ENOENT ? HWNAS_E_NOT_FOUND : HWNAS_E_IO, &place,
                                         "cannot write to %s: %s", file, strerror(errno)),
                              "look at its permissions");
        TRY(lock(out, fd, is_shared, study));
        if (is_still_there(out, file))
            return HWNAS_OK;
        hwnas_lock_release(out);
    }
}

hwnas_status hwnas_lock_take(hwnas_lock *out, const char *file, const char *study)
{
    return take(out, file, false, study);
}

hwnas_status hwnas_lock_share(hwnas_lock *out, const char *file, const char *study)
{
    return take(out, file, true, study);
}

hwnas_status hwnas_lock_relax(hwnas_lock *lock, const char *study)
{
    TRY(set_lock(lock->file->fd, true, study));
    pthread_mutex_lock(&mutex);
    lock->file->is_shared = true;
    pthread_mutex_unlock(&mutex);
    return HWNAS_OK;
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
    TRY(lock(out, fd, false, study));
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
    *lock = (hwnas_lock){0};
    pthread_mutex_lock(&mutex);
    const bool is_last = !--file->n_users;
    while (*at != file)
        at = &(*at)->next;
    if (is_last)
        *at = file->next;
    pthread_mutex_unlock(&mutex);
    if (!is_last)
        return;
    close(file->fd);
    free(file);
}
