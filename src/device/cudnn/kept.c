#include "device/cudnn/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/home.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    LARGEST_FILE = 64 << 20,
    WRITES = 64, /* between two looks at how much there is */
};

/* NULL: nothing is kept. */
static char *directory(void)
{
    const char *given = getenv("HWNAS_PLANS");
    if (given)
        return *given ? hwnas_strdup(given) : NULL;
    return hwnas_cache_path("plans");
}

char *hwnas_kept_path(const char *name)
{
    char *place = directory();
    char *path = place ? hwnas_printf("%s/%s", place, name) : NULL;
    free(place);
    return path;
}

bool hwnas_kept_read(char **out, size_t *n, const char *path)
{
    if (!path || !hwnas_file_exists(path))
        return false;
    if (hwnas_file_read(out, n, path, LARGEST_FILE) != HWNAS_OK) {
        hwnas_error_clear();
        return false;
    }
    utimensat(AT_FDCWD, path, NULL, 0); /* it was used now */
    return true;
}

typedef struct kept {
    char *path;
    size_t bytes;
    struct timespec used;
} kept;

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const kept *)a)->used, *y = &((const kept *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_ours(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".plan") || !strcmp(dot, ".cubin"));
}

void hwnas_kept_prune(const char *place, size_t limit)
{
    size_t n = 0, capacity = 0, sum = 0;
    kept *all = NULL;
    DIR *files = opendir(place);
    for (struct dirent *e; files && (e = readdir(files));) {
        struct stat s;
        kept one = {.path = hwnas_printf("%s/%s", place, e->d_name)};
        if (!is_ours(e->d_name) || stat(one.path, &s)) {
            free(one.path);
            continue;
        }
        one.bytes = (size_t)s.st_size;
        one.used = s.st_mtim;
        sum += one.bytes;
        HWNAS_GROW(all, n, capacity);
        all[n++] = one;
    }
    if (files)
        closedir(files);
    if (n)
        qsort(all, n, sizeof *all, by_use);
    for (size_t i = 0; i < n; i++) {
        if (sum > limit && !unlink(all[i].path))
            sum -= all[i].bytes;
        free(all[i].path);
    }
    free(all);
}

void hwnas_kept_write(const char *path, const void *bytes, size_t n)
{
    static int n_writes; /* of any thread: how many exactly does not matter */
    hwnas_make_folders(path);
    if (hwnas_file_write(path, bytes, n) != HWNAS_OK)
        hwnas_error_clear();
    if (__atomic_fetch_add(&n_writes, 1, __ATOMIC_RELAXED) % WRITES)
        return;
    char *place = directory();
    if (place)
        hwnas_kept_prune(place, HWNAS_KEPT_BYTES);
    free(place);
}
