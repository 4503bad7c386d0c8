#define _GNU_SOURCE /* dladdr */

#include "base/home.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <threads.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#ifndef HWNAS_BUILD_DIR /* fuzz targets have none */
#define HWNAS_BUILD_DIR HWNAS_SOURCE_DIR
#endif

static char *root; /* kept until the process ends */

char *hwnas_own_folder(void)
{
    Dl_info info;
    /* A program's name is as it was typed, a library's is a path. */
    const bool is_path = dladdr(&root, &info) && info.dli_fname && strstr(info.dli_fname, ".so");
    char *file = hwnas_file_real(is_path ? info.dli_fname : "/proc/self/exe");
    char *slash = file ? strrchr(file, '/') : NULL;
    if (slash)
        *slash = '\0';
    return file;
}

char *hwnas_cache_path(const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/') /* the specification of XDG ignores a relative one */
        return hwnas_printf("%s/hwnas/%s", cache, name);
    return home && *home == '/' ? hwnas_printf("%s/.cache/hwnas/%s", home, name) : NULL;
}

void hwnas_make_folders(const char *file)
{
    char *path = hwnas_strdup(file);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    free(path);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void find_root(void)
{
    char *folder = hwnas_own_folder(), *build = hwnas_file_real(HWNAS_BUILD_DIR);
    if (folder && build && hwnas_starts_with(folder, build)) {
        root = hwnas_strdup(HWNAS_SOURCE_DIR);
    } else {
        root = hwnas_printf("%s/../share/hwnas", folder ? folder : "");
        if (!folder || !is_folder(root)) {
            free(root);
            root = hwnas_strdup(HWNAS_DATA_DIR);
        }
    }
    free(folder);
    free(build);
}

const char *hwnas_data_root(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, find_root);
    return root;
}
