/* nvrtc.c: compiles kernels of ours, with the types and ranks of what they are for as constants. */
#define _GNU_SOURCE 1 /* strsep() */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "device/cudnn/kept.h"
#include "device/cudnn/driver.h"

enum { MAX_OPTIONS = 64 };

typedef struct nvrtc_api {
    __typeof__(&nvrtcGetErrorString) error_string;
    __typeof__(&nvrtcVersion) version;
    __typeof__(&nvrtcGetNumSupportedArchs) n_architectures;
    __typeof__(&nvrtcGetSupportedArchs) architectures;
    __typeof__(&nvrtcCreateProgram) create;
    __typeof__(&nvrtcDestroyProgram) destroy;
    __typeof__(&nvrtcCompileProgram) compile;
    __typeof__(&nvrtcGetProgramLogSize) log_size;
    __typeof__(&nvrtcGetProgramLog) log;
    __typeof__(&nvrtcGetCUBINSize) cubin_size;
    __typeof__(&nvrtcGetCUBIN) cubin;
    __typeof__(&nvrtcGetPTXSize) ptx_size;
    __typeof__(&nvrtcGetPTX) ptx;
} nvrtc_api;

#define SYMBOL(FUNCTION, MEMBER)                                                                   \
    {                                                                                              \
#FUNCTION, offsetof(nvrtc_api, MEMBER)                                                     \
    }
static const hwnas_symbol symbols[] = {
    SYMBOL(nvrtcGetErrorString, error_string),
    SYMBOL(nvrtcVersion, version),
    SYMBOL(nvrtcGetNumSupportedArchs, n_architectures),
    SYMBOL(nvrtcGetSupportedArchs, architectures),
    SYMBOL(nvrtcCreateProgram, create),
    SYMBOL(nvrtcDestroyProgram, destroy),
    SYMBOL(nvrtcCompileProgram, compile),
    SYMBOL(nvrtcGetProgramLogSize, log_size),
    SYMBOL(nvrtcGetProgramLog, log),
    SYMBOL(nvrtcGetCUBINSize, cubin_size),
    SYMBOL(nvrtcGetCUBIN, cubin),
    SYMBOL(nvrtcGetPTXSize, ptx_size),
    SYMBOL(nvrtcGetPTX, ptx),
    {NULL, 0},
};

static hwnas_status open_nvrtc(const nvrtc_api **out)
{
    static nvrtc_api api;
    static bool is_open;
    char file[HWNAS_LIBRARY_NAME];
    void *library = NULL;
    if (!is_open) {
        TRY(hwnas_nvrtc_open(&library, file));
        TRY(hwnas_library_symbols(&api, symbols, library, file));
        is_open = true;
    }
    *out = &api;
    return HWNAS_OK;
}

static const char *source_named(const char *name)
{
    const hwnas_kernel_source *s = hwnas_kernel_sources;
    while (strcmp(s->name, name))
        s++;
    return s->text;
}

/* The first line of NVRTC's log that tells of an error. */
static hwnas_status refused(const nvrtc_api *api, nvrtcProgram program, nvrtcResult result,
                            const char *kernel, int sm)
{
    size_t n = 0;
    api->log_size(program, &n);
    char *log = hwnas_alloc(n + 1);
    if (n)
        api->log(program, log);
    const char *line = strstr(log, "error");
    line = line ? line : log;
    hwnas_status status =
        hwnas_fail(HWNAS_E_LIBRARY, NULL, "NVRTC cannot compile '%s' for sm_%d: %s: %.*s", kernel,
                   sm, api->error_string(result), (int)strcspn(line, "\n"), line);
    free(log);
    return status;
}

static const char *const headers[] = {"kernel_job.h", "kernel.h", "functions.h"};
enum { N_HEADERS = sizeof headers / sizeof *headers };

/* What to compile for: the architecture itself, or where this NVRTC is older the newest that it
 * knows below. One that is older than all stays, and NVRTC says that it does not know it. */
static int target_of(const nvrtc_api *api, int sm)
{
    int n = 0, known = 0;
    if (api->n_architectures(&n) != NVRTC_SUCCESS || n <= 0)
        return sm;
    int *all = hwnas_alloc((size_t)n * sizeof *all);
    if (api->architectures(all) == NVRTC_SUCCESS)
        for (int i = 0; i < n; i++)
            if (all[i] <= sm && all[i] > known)
                known = all[i];
    free(all);
    return known ? known : sm;
}

/* The program compiled; for another architecture than the GPU's as PTX, of which the driver makes
 * code. */
static nvrtcResult compile_program(const nvrtc_api *api, nvrtcProgram program, int target, int sm,
                                   const char *lines)
{
    char architecture[40], *copy = hwnas_strdup(lines), *rest = copy;
    const char *options[MAX_OPTIONS];
    int n = 0;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d",
             target == sm ? "sm" : "compute", target);
    options[n++] = architecture;
    options[n++] = "--std=c++17";
    for (char *line; n < MAX_OPTIONS && (line = strsep(&rest, "\n"));)
        if (*line)
            options[n++] = line;
    const nvrtcResult result = api->compile(program, n, options);
    free(copy);
    return result;
}

static hwnas_status compile(hwnas_image *out, const nvrtc_api *api, const char *file)
{
    hwnas_status status = HWNAS_OK;
    nvrtcProgram program = NULL;
    const char *texts[N_HEADERS];
    const int target = target_of(api, out->sm);
    const bool is_code = target == out->sm;
    for (int i = 0; i < N_HEADERS; i++)
        texts[i] = source_named(headers[i]);
    nvrtcResult result = api->create(&program, source_named(file), file, N_HEADERS, texts, headers);
    if (result == NVRTC_SUCCESS)
        result = compile_program(api, program, target, out->sm, out->options);
    if (result == NVRTC_SUCCESS)
        result = (is_code ? api->cubin_size : api->ptx_size)(program, &out->n_bytes);
    if (result != NVRTC_SUCCESS)
        TRY_OUT(refused(api, program, result, out->kernel, target));
    TRY_OUT(hwnas_try_alloc(&out->bytes, out->n_bytes, out->kernel));
    result = (is_code ? api->cubin : api->ptx)(program, out->bytes);
    if (result != NVRTC_SUCCESS)
        TRY_OUT(refused(api, program, result, out->kernel, target));
out:
    if (program)
        api->destroy(&program);
    return status;
}

/* ---- On disk: a checksum, then the image ---- */

/* All that makes an image another one. */
static char *kept_path(const hwnas_image *image, const nvrtc_api *api, const char *file)
{
    int major = 0, minor = 0;
    api->version(&major, &minor);
    uint64_t source = 0;
    for (int i = 0; i < N_HEADERS; i++)
        source = XXH64(source_named(headers[i]), strlen(source_named(headers[i])), source);
    source = XXH64(source_named(file), strlen(source_named(file)), source);
    char *what =
        hwnas_printf("%d.%d sm_%d %s %s", major, minor, image->sm, image->kernel, image->options);
    char *name = hwnas_printf("%016llx%016llx.cubin", (unsigned long long)source,
                              (unsigned long long)XXH64(what, strlen(what), source));
    char *path = hwnas_kept_path(name);
    free(name);
    free(what);
    return path;
}

static bool load_kept(hwnas_image *image, const char *path)
{
    char *bytes;
    size_t n;
    uint64_t sum;
    if (!hwnas_kept_read(&bytes, &n, path))
        return false;
    const bool is_whole = n > sizeof sum && (memcpy(&sum, bytes, sizeof sum),
                                             sum == XXH64(bytes + sizeof sum, n - sizeof sum, 0));
    if (is_whole) {
        image->n_bytes = n - sizeof sum;
        image->bytes = hwnas_alloc(image->n_bytes);
        memcpy(image->bytes, bytes + sizeof sum, image->n_bytes);
    }
    free(bytes);
    return is_whole;
}

static void keep(const hwnas_image *image, const char *path)
{
    const uint64_t sum = XXH64(image->bytes, image->n_bytes, 0);
    char *bytes = hwnas_alloc(sizeof sum + image->n_bytes);
    memcpy(bytes, &sum, sizeof sum);
    memcpy(bytes + sizeof sum, image->bytes, image->n_bytes);
    hwnas_kept_write(path, bytes, sizeof sum + image->n_bytes);
    free(bytes);
}

static hwnas_status load_or_compile(hwnas_image *image, const nvrtc_api *api, const char *file)
{
    char *path = kept_path(image, api, file);
    hwnas_status status = HWNAS_OK;
    if (!load_kept(image, path)) {
        status = compile(image, api, file);
        if (status == HWNAS_OK && path)
            keep(image, path);
    }
    free(path);
    return status;
}

static struct {
    pthread_mutex_t lock;
    size_t n, capacity;
    hwnas_image **all;
} images = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const hwnas_image *find(const char *kernel, const char *options, int sm)
{
    for (size_t i = 0; i < images.n; i++) {
        const hwnas_image *image = images.all[i];
        if (image->sm == sm && !strcmp(image->kernel, kernel) && !strcmp(image->options, options))
            return image;
    }
    return NULL;
}

static hwnas_status make(const hwnas_image **out, const char *kernel, const char *file,
                         const char *options, int sm)
{
    const nvrtc_api *api;
    if ((*out = find(kernel, options, sm)))
        return HWNAS_OK;
    TRY(open_nvrtc(&api));
    hwnas_image *image = hwnas_alloc(sizeof *image);
    *image = (hwnas_image){.kernel = kernel, .sm = sm, .options = hwnas_strdup(options)};
    hwnas_status status = load_or_compile(image, api, file);
    if (status != HWNAS_OK) {
        free(image->bytes);
        free(image->options);
        free(image);
        return status;
    }
    HWNAS_GROW(images.all, images.n, images.capacity);
    images.all[images.n++] = image;
    *out = image;
    return HWNAS_OK;
}

hwnas_status hwnas_image_make(const hwnas_image **out, const char *kernel, const char *file,
                              const char *options, int sm)
{
    pthread_mutex_lock(&images.lock);
    hwnas_status status = make(out, kernel, file, options, sm);
    pthread_mutex_unlock(&images.lock);
    return status;
}
