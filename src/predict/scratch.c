#include "predict/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* All that is ever put into one, beside net*.onnx and the like. */
static const char *const names[] = {"rows.csv", "results.csv", "fit.json", "fit.md", "socket"};
static const char *const suffixes[] = {".onnx", ".py", ".yaml"};
static const char prefix[] = "hwnas-scratch.";

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (hwnas_starts_with(name, "net") && hwnas_ends_with(name, suffixes[i]))
            return true;
    return false;
}

static const char *place_of(const char *where)
{
    const char *tmp = getenv("TMPDIR");
    return where ? where : tmp && *tmp ? tmp : "/tmp";
}

/* Opens and locks a folder of our own user; -1: it is another's, or in use. */
static int open_locked(const char *folder)
{
    struct stat ours, there;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    /* A sweep may have removed a new one before it was locked. */
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &ours) && !lstat(folder, &there) &&
        ours.st_ino == there.st_ino && ours.st_uid == geteuid())
        return fd;
    close(fd);
    return -1;
}

hwnas_status hwnas_scratch_open(hwnas_scratch *out, const char *where)
{
    hwnas_place place = {.file = place_of(where)};
    for (int i = 0; i < 100; i++) {
        hwnas_scratch made = {.folder = hwnas_printf("%s/%sXXXXXX", place.file, prefix)};
        if (!mkdtemp(made.folder)) {
            free(made.folder);
            break;
        }
        made.lock = open_locked(made.folder);
        if (made.lock >= 0) {
            *out = made;
            return HWNAS_OK;
        }
        free(made.folder);
    }
    return hwnas_fail(HWNAS_E_IO, &place, "cannot make a temporary directory: %s", strerror(errno));
}

/* Python's compiled modules, when the program has imported what it was given. */
static void remove_cache(int folder)
{
    const int fd = openat(folder, "__pycache__", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *cache = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; cache && (entry = readdir(cache));)
        if (hwnas_starts_with(entry->d_name, "net."))
            unlinkat(dirfd(cache), entry->d_name, 0);
    if (cache)
        closedir(cache);
    else if (fd >= 0)
        close(fd);
    unlinkat(folder, "__pycache__", AT_REMOVEDIR);
}

static void remove_all(const char *path, int folder)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; files && (entry = readdir(files));)
        if (is_ours(entry->d_name))
            unlinkat(folder, entry->d_name, 0);
    if (files)
        closedir(files);
    else if (fd >= 0)
        close(fd);
    remove_cache(folder);
    rmdir(path);
}

static void forget(hwnas_scratch *scratch)
{
    close(scratch->lock);
    free(scratch->folder);
    *scratch = (hwnas_scratch){.folder = NULL};
}

void hwnas_scratch_close(hwnas_scratch *scratch)
{
    if (!scratch->folder)
        return;
    remove_all(scratch->folder, scratch->lock);
    forget(scratch);
}

hwnas_status hwnas_scratch_keep(hwnas_scratch *scratch, const char *path)
{
    const hwnas_place place = {.file = path};
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(scratch->lock, 0777 & ~mask) || rename(scratch->folder, path))
        return hwnas_fail(HWNAS_E_IO, &place, "cannot write the directory: %s", strerror(errno));
    forget(scratch);
    return HWNAS_OK;
}

void hwnas_scratch_sweep(const char *where)
{
    DIR *all = opendir(place_of(where));
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (!hwnas_starts_with(entry->d_name, prefix))
            continue;
        char *path = hwnas_printf("%s/%s", place_of(where), entry->d_name);
        const int fd = open_locked(path);
        if (fd >= 0) {
            remove_all(path, fd);
            close(fd);
        }
        free(path);
    }
    if (all)
        closedir(all);
}
