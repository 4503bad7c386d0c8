#define _GNU_SOURCE /* dladdr */

#include "base/home.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <threads.h>

#include "base/file.h"
#include "base/folders.h"
#include "base/mem.h"
#include "base/str.h"

#define LIBRARY "libhwnas.so.0"

static struct {
    char *data, *program, *library, *modules;
} places; /* kept until the process ends */

/* A program's name is as it was typed, a library's is a path. */
static bool is_library(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && strstr(slash, ".so");
}

static char *find_own_file(bool *is_shared)
{
    Dl_info info;
    *is_shared = dladdr(&places, &info) && info.dli_fname && is_library(info.dli_fname);
    return hwnas_file_real(*is_shared ? info.dli_fname : "/proc/self/exe");
}

char *hwnas_own_file(void)
{
    bool is_shared;
    return find_own_file(&is_shared);
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

/* ---- The folders of the installation ---- */

/* What follows of `path` behind `prefix`, a folder above it; NULL: it is none. */
static const char *behind(const char *path, const char *prefix)
{
    const size_t n = strlen(prefix);
    return !strncmp(path, prefix, n) && (path[n] == '/' || !path[n]) ? path + n : NULL;
}

/* The prefix of this installation, by the folder that we lie in: /opt/x of /opt/x/lib, where lib
 * was configured to be PREFIX/lib. NULL: our folder has another name. Yours to free(). */
static char *find_prefix(const char *folder, bool is_shared)
{
    const char *below = behind(is_shared ? HWNAS_LIB_FOLDER : HWNAS_BIN_FOLDER, HWNAS_PREFIX);
    if (!below || !hwnas_ends_with(folder, below))
        return NULL;
    return hwnas_printf("%.*s", (int)(strlen(folder) - strlen(below)), folder);
}

/* A file or folder that was configured to be `configured`, where it is now. Yours to free(). */
static char *find_installed(const char *prefix, const char *configured)
{
    struct stat st;
    const char *below = behind(configured, HWNAS_PREFIX);
    char *moved = prefix && below ? hwnas_printf("%s%s", prefix, below) : NULL;
    if (moved && !stat(moved, &st))
        return moved;
    free(moved);
    return hwnas_strdup(configured);
}

static void find_places(void)
{
    bool is_shared;
    char *folder = find_own_file(&is_shared), *build = hwnas_file_real(HWNAS_BUILD_FOLDER);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        *slash = '\0';
    if (folder && build && behind(folder, build)) {
        places.data = hwnas_strdup(HWNAS_SOURCE_FOLDER);
        places.program = hwnas_strdup(HWNAS_BUILD_FOLDER "/hwnas");
        places.library = hwnas_strdup(HWNAS_BUILD_FOLDER "/" LIBRARY);
        places.modules = hwnas_strdup(HWNAS_BUILD_FOLDER);
    } else {
        char *prefix = folder ? find_prefix(folder, is_shared) : NULL;
        places.data = find_installed(prefix, HWNAS_DATA_FOLDER);
        places.program = find_installed(prefix, HWNAS_BIN_FOLDER "/hwnas");
        places.library = find_installed(prefix, HWNAS_LIB_FOLDER "/" LIBRARY);
        places.modules = find_installed(prefix, HWNAS_MODULE_FOLDER);
        free(prefix);
    }
    free(folder);
    free(build);
}

static void find_places_once(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, find_places);
}

const char *hwnas_data_root(void)
{
    find_places_once();
    return places.data;
}

const char *hwnas_program_file(void)
{
    find_places_once();
    return places.program;
}

const char *hwnas_library_file(void)
{
    find_places_once();
    return places.library;
}

const char *hwnas_module_folder(void)
{
    find_places_once();
    return places.modules;
}

const char *hwnas_torch_python(void)
{
    const char *given = getenv("HWNAS_TORCH_PYTHON");
    return given && *given ? given : "/usr/bin/python3";
}
