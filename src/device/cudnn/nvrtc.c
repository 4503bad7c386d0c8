/* nvrtc.c: compiles kernels of ours, with the types and ranks of what they are for as constants. */
#define _GNU_SOURCE 1 /* strsep() */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cudnn/driver.h"

enum { MAX_OPTIONS = 64 };

typedef struct nvrtc_api {
    __typeof__(&nvrtcGetErrorString) error_string;
    __typeof__(&nvrtcCreateProgram) create;
    __typeof__(&nvrtcDestroyProgram) destroy;
    __typeof__(&nvrtcCompileProgram) compile;
    __typeof__(&nvrtcGetProgramLogSize) log_size;
    __typeof__(&nvrtcGetProgramLog) log;
    __typeof__(&nvrtcGetCUBINSize) cubin_size;
    __typeof__(&nvrtcGetCUBIN) cubin;
} nvrtc_api;

#define SYMBOL(FUNCTION, MEMBER)                                                                   \
    {                                                                                              \
#FUNCTION, offsetof(nvrtc_api, MEMBER)                                                     \
    }
static const hwnas_symbol symbols[] = {
    SYMBOL(nvrtcGetErrorString, error_string),
    SYMBOL(nvrtcCreateProgram, create),
    SYMBOL(nvrtcDestroyProgram, destroy),
    SYMBOL(nvrtcCompileProgram, compile),
    SYMBOL(nvrtcGetProgramLogSize, log_size),
    SYMBOL(nvrtcGetProgramLog, log),
    SYMBOL(nvrtcGetCUBINSize, cubin_size),
    SYMBOL(nvrtcGetCUBIN, cubin),
    {NULL, 0},
};

/* That of the CUDA that this was built with. */
static hwnas_status open_nvrtc(const nvrtc_api **out)
{
    static nvrtc_api api;
    static bool is_open;
    char file[32];
    void *library = NULL;
    if (!is_open) {
        snprintf(file, sizeof file, "libnvrtc.so.%d", CUDA_VERSION / 1000);
        TRY(hwnas_library_open(&library, file, "which compiles kernels"));
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

static hwnas_status compile(hwnas_image *out, const nvrtc_api *api, const char *file)
{
    static const char *const headers[] = {"kernel_job.h", "kernel.h", "functions.h"};
    enum { N_HEADERS = sizeof headers / sizeof *headers };
    hwnas_status status = HWNAS_OK;
    nvrtcProgram program = NULL;
    const char *texts[N_HEADERS], *options[MAX_OPTIONS];
    char architecture[40], *copy = hwnas_strdup(out->options), *rest = copy;
    int n = 0;
    for (int i = 0; i < N_HEADERS; i++)
        texts[i] = source_named(headers[i]);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", out->sm);
    options[n++] = architecture;
    options[n++] = "--std=c++17";
    for (char *line; n < MAX_OPTIONS && (line = strsep(&rest, "\n"));)
        if (*line)
            options[n++] = line;
    nvrtcResult result = api->create(&program, source_named(file), file, N_HEADERS, texts, headers);
    if (result == NVRTC_SUCCESS)
        result = api->compile(program, n, options);
    if (result == NVRTC_SUCCESS)
        result = api->cubin_size(program, &out->n_bytes);
    if (result != NVRTC_SUCCESS)
        TRY_OUT(refused(api, program, result, out->kernel, out->sm));
    TRY_OUT(hwnas_try_alloc(&out->bytes, out->n_bytes, out->kernel));
    api->cubin(program, out->bytes);
out:
    if (program)
        api->destroy(&program);
    free(copy);
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
    hwnas_status status = compile(image, api, file);
    if (status != HWNAS_OK) {
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
