#define _GNU_SOURCE 1 /* F_OFD_SETLK */
#include "predict/claims.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

struct hwnas_claims {
    char *path;
    int fd;
};

enum { IN_USE = 0 }; /* the byte that whoever has the file open has a shared lock of */

static off_t place_of(hwnas_digest digest)
{
    char first[16] = {0};
    memcpy(first, digest.hex, sizeof first - 1); /* 60 bits: two networks of one place only wait */
    return 1 + (off_t)strtoull(first, NULL, 16);
}

static bool set_lock(const hwnas_claims *claims, short type, off_t place)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
    int result;
    do
        result = fcntl(claims->fd, F_OFD_SETLK, &lock);
    while (result && errno == EINTR);
    return !result;
}

static hwnas_status fail_io(const hwnas_claims *claims)
{
    hwnas_place place = {.file = claims->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "cannot lock the file: %s", strerror(errno)),
                      "the directory of the results must be writable, and its file system must "
                      "have locks");
}

/* The last to use the file removes it, perhaps between our open() and our lock. */
static bool is_still_there(const hwnas_claims *claims)
{
    struct stat ours, theirs;
    return !fstat(claims->fd, &ours) && !lstat(claims->path, &theirs) &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

hwnas_status hwnas_claims_open(hwnas_claims **out, const char *results)
{
    hwnas_status status = HWNAS_OK;
    hwnas_claims *claims = hwnas_alloc(sizeof *claims);
    claims->path = hwnas_printf("%s-lock", results);
    for (;;) {
        claims->fd =
            open(claims->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (claims->fd < 0)
            break;
        errno = 0;
        if (set_lock(claims, F_RDLCK, IN_USE) && is_still_there(claims)) {
            *out = claims;
            return HWNAS_OK;
        }
        const int error = errno;
        close(claims->fd);
        errno = error;
        if (error != EAGAIN && error != EACCES && error != ENOENT && error != 0)
            break;
    }
    status = fail_io(claims);
    free(claims->path);
    free(claims);
    return status;
}

void hwnas_claims_close(hwnas_claims *claims)
{
    if (!claims)
        return;
    if (set_lock(claims, F_WRLCK, IN_USE)) /* nobody else has it open */
        unlink(claims->path);
    close(claims->fd);
    free(claims->path);
    free(claims);
}

hwnas_status hwnas_claims_take(bool *is_ours, hwnas_claims *claims, hwnas_digest digest)
{
    *is_ours = set_lock(claims, F_WRLCK, place_of(digest));
    return *is_ours || errno == EAGAIN || errno == EACCES ? HWNAS_OK : fail_io(claims);
}

void hwnas_claims_give_up(hwnas_claims *claims, hwnas_digest digest)
{
    set_lock(claims, F_UNLCK, place_of(digest));
}
