/* libraries.c: opens libraries by name and fills tables with their functions. */
#define _GNU_SOURCE 1 /* dladdr() */
#include "device/cudnn/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

static void *open_in(const char *directory, const char *file)
{
    char *path = hwnas_printf("%s/%s", directory, file);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    free(path);
    return library;
}

hwnas_status hwnas_library_open(void **out, const char *file, const char *purpose)
{
    const char *home = getenv("CUDA_HOME");
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    char *why = library ? NULL : hwnas_printf("%.200s", dlerror());
    if (!library && home) {
        char *directory = hwnas_printf("%s/lib64", home);
        library = open_in(directory, file);
        free(directory);
    }
    if (!library)
        library = open_in(HWNAS_CUDA_LIBRARIES, file);
    if (library)
        *out = library;
    hwnas_status status = HWNAS_OK;
    if (!library)
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "no %s, %s: %s", file, purpose, why),
                       "install it, or name its directory in LD_LIBRARY_PATH");
    free(why);
    return status;
}

hwnas_status hwnas_library_symbols(void *table, const hwnas_symbol *symbols, void *library,
                                   const char *file)
{
    for (; symbols->name; symbols++) {
        void *address = dlsym(library, symbols->name);
        if (!address)
            return hwnas_fail(HWNAS_E_LIBRARY, NULL, "%s lacks the function %s", file,
                              symbols->name);
        memcpy((char *)table + symbols->at, &address, sizeof address);
    }
    return HWNAS_OK;
}

#define DRIVER "libcuda.so.1"

/* The directory of this module's file; yours to free(). */
static char *own_directory(void)
{
    Dl_info info;
    if (!dladdr((void *)(size_t)&hwnas_library_open, &info) || !info.dli_fname)
        return hwnas_strdup(".");
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? hwnas_printf("%.*s", (int)(slash - info.dli_fname), info.dli_fname)
                 : hwnas_strdup(".");
}

/* Beside the module, or above a benchmark or a unit test. cuDNN asks for the driver by its soname,
 * which ours has, and so finds what is open. */
static void *open_stand_in(void)
{
    static const char *const places[] = {"no-gpu", "../no-gpu", "../../no-gpu"};
    void *library = NULL;
    char *own = own_directory();
    for (size_t i = 0; !library && i < sizeof places / sizeof *places; i++) {
        char *directory = hwnas_printf("%s/%s", own, places[i]);
        library = open_in(directory, DRIVER);
        free(directory);
    }
    free(own);
    return library;
}

static void *real, *ours; /* drivers */

hwnas_status hwnas_driver_open(void **out, bool stand_in)
{
    if (!stand_in && ours)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "this process compiles without a GPU, and cannot use one any more");
    if (!stand_in && !real)
        TRY(hwnas_library_open(&real, DRIVER, "NVIDIA's driver"));
    if (stand_in && !real && !ours && !(ours = open_stand_in()))
        return hwnas_fail(HWNAS_E_LIBRARY, NULL,
                          "no-gpu/%s, which belongs to this module, is not beside it", DRIVER);
    *out = real ? real : ours;
    return HWNAS_OK;
}

#define SYMBOL(function, member)                                                                   \
    {                                                                                              \
#function, offsetof(hwnas_cudnn_api, member)                                               \
    }

static const hwnas_symbol cudnn_symbols[] = {
    SYMBOL(cudnnGetVersion, version),
    SYMBOL(cudnnGetCudartVersion, cudart_version),
    SYMBOL(cudnnGetErrorString, error_string),
    SYMBOL(cudnnGetLastErrorString, last_error),
    SYMBOL(cudnnBackendCreateDescriptor, create),
    SYMBOL(cudnnBackendDestroyDescriptor, destroy),
    SYMBOL(cudnnBackendSetAttribute, set),
    SYMBOL(cudnnBackendGetAttribute, get),
    SYMBOL(cudnnBackendFinalize, finalize),
    SYMBOL(cudnnBackendExecute, execute),
    {NULL, 0},
};

enum { OLDEST_CUDA = 12, NEWEST_CUDA = 13 }; /* by the names of the libraries */
static int cuda_of_cudnn;                    /* 0: it is not open */

/* 12040 is CUDA 12.4; 0: there is no driver. */
static int driver_version(void)
{
    int (*ask)(int *) = NULL;
    int version = 0;
    if (real)
        *(void **)&ask = dlsym(real, "cuDriverGetVersion");
    return ask && !ask(&version) ? version : 0;
}

hwnas_status hwnas_nvrtc_open(void **out, char *file)
{
    const int driver = driver_version() / 1000, fixed = cuda_of_cudnn;
    const int newest = fixed ? fixed : driver && driver < NEWEST_CUDA ? driver : NEWEST_CUDA;
    const int oldest = fixed ? fixed : OLDEST_CUDA;
    hwnas_status status = HWNAS_E_UNSUPPORTED;
    for (int cuda = newest; cuda >= oldest && status != HWNAS_OK; cuda--) {
        snprintf(file, HWNAS_LIBRARY_NAME, "libnvrtc.so.%d", cuda);
        if (status != HWNAS_OK)
            hwnas_error_clear();
        status = hwnas_library_open(out, file, "which compiles kernels");
    }
    return status == HWNAS_E_UNSUPPORTED && newest < oldest
               ? hwnas_fail(status, NULL, "the driver is for CUDA %d, older than %d", driver,
                            OLDEST_CUDA)
               : status;
}

/* A driver runs what was built for its CUDA or an older one. */
static hwnas_status check_driver(int cuda)
{
    const int driver = driver_version();
    if (!driver || driver / 1000 >= cuda)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                   "this cuDNN was built for CUDA %d, and the driver knows CUDA up to %d.%d", cuda,
                   driver / 1000, driver / 10 % 100),
        "install cuDNN for CUDA %d, or a newer driver", driver / 1000);
}

/* Its number is that of the CUDA that cuDNN was built for, as is NVRTC's. */
hwnas_status hwnas_cublas_library(void **out, char *file)
{
    snprintf(file, HWNAS_LIBRARY_NAME, "libcublasLt.so.%d", cuda_of_cudnn);
    return hwnas_library_open(out, file, "without which cuDNN aborts");
}

/* cublasLt first: cuDNN ends the process where it misses it. */
static hwnas_status open_companions(void)
{
    char file[HWNAS_LIBRARY_NAME];
    void *library;
    TRY(hwnas_cublas_library(&library, file));
    return hwnas_nvrtc_open(&library, file);
}

hwnas_status hwnas_cudnn_open(const hwnas_cudnn_api **out)
{
    static hwnas_cudnn_api api;
    static bool is_open;
    void *library = NULL;
    if (!is_open) {
        TRY(hwnas_library_open(&library, "libcudnn.so.9", "NVIDIA's library for networks"));
        TRY(hwnas_library_symbols(&api, cudnn_symbols, library, "libcudnn.so.9"));
        if (api.version() < 90800)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "cuDNN is older than 9.8: %zu",
                              api.version());
        const int cuda = (int)(api.cudart_version() / 1000);
        TRY(check_driver(cuda));
        cuda_of_cudnn = cuda;
        TRY(open_companions());
        is_open = true;
    }
    *out = &api;
    return HWNAS_OK;
}
