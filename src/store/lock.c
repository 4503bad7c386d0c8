/* lock.c: flock(2) on a file that comes and goes with its holder. */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static hwnas_status fail_held(int fd, const char *study)
{
    hwnas_place place = {.file = study};
    char text[32];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    long pid = strtol(text, NULL, 10); /* 0 for a moment after the lock was taken */
    char holder[64] = "another process";
    if (pid > 0)
        snprintf(holder, sizeof holder, "process %ld", pid);
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "the study is in use by %s", holder),
                      "wait until it ends or stop it; to look at the study meanwhile is fine");
}

/* The last holder removes the file, perhaps between our open() and our flock(). */
static bool is_still_there(int fd, const char *path)
{
    struct stat ours, theirs;
    return !fstat(fd, &ours) && !stat(path, &theirs) && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

static hwnas_status open_locked(int *out, const char *path, const char *study)
{
    hwnas_place place = {.file = study};
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_IO, &place, "cannot create %s: %s", path, strerror(errno)),
                "the directory of a study must exist and be writable");
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            hwnas_status status =
                errno == EWOULDBLOCK
                    ? fail_held(fd, study)
                    : hwnas_fail(HWNAS_E_IO, &place, "cannot lock %s: %s", path, strerror(errno));
            close(fd);
            return status;
        }
        if (is_still_there(fd, path)) {
            *out = fd;
            return HWNAS_OK;
        }
        close(fd);
    }
}

hwnas_status hwnas_lock_take(hwnas_lock *out, const char *study)
{
    int fd = -1;
    char *path = hwnas_printf("%s-lock", study);
    hwnas_status status = open_locked(&fd, path, study);
    if (status != HWNAS_OK) {
        free(path);
        return status;
    }
    /* Only for the message of who comes next, so a full disk does not matter. */
    if (ftruncate(fd, 0) || dprintf(fd, "%ld\n", (long)getpid()) < 0)
        errno = 0;
    *out = (hwnas_lock){.path = path, .fd = fd};
    return HWNAS_OK;
}

void hwnas_lock_release(hwnas_lock *lock)
{
    if (!lock->path)
        return;
    unlink(lock->path);
    close(lock->fd);
    free(lock->path);
    *lock = (hwnas_lock){0};
}
