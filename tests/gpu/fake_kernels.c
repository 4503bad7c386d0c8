/* fake_kernels.c: what NVRTC compiles and the driver loads: an image is "fake sm_90 NAME". */
#include <cuda.h>
#include <nvrtc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    int sm = 0;
    if (sscanf(image, "fake sm_%d", &sm) != 1)
        return CUDA_ERROR_INVALID_IMAGE;
    if (sm != FAKE_SM || fake_fault("old"))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *out = (CUmodule)strdup(image);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    free(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    char *has = strrchr((char *)module, ' ');
    if (!has || strcmp(has + 1, name))
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)(has + 1);
    return CUDA_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? "success" : "compilation";
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 0; /* of no NVRTC that there is */
    *minor = 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n,
                                      const char *const *headers, const char *const *names)
{
    (void)text;
    (void)name;
    (void)n;
    (void)headers;
    (void)names;
    *out = calloc(1, 256);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
    static const char wants[] = "-DWANT_", architecture[] = "--gpu-architecture=";
    const char *kernel = NULL, *sm = NULL;
    for (int i = 0; i < n; i++) {
        if (!strncmp(options[i], wants, sizeof wants - 1))
            kernel = options[i] + sizeof wants - 1;
        if (!strncmp(options[i], architecture, sizeof architecture - 1))
            sm = options[i] + sizeof architecture - 1;
    }
    if (!kernel || !sm)
        return NVRTC_ERROR_COMPILATION;
    snprintf((char *)program, 256, "fake %s %.*s", sm, (int)strcspn(kernel, "="), kernel);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *out)
{
    (void)program;
    *out = 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *out)
{
    (void)program;
    (void)out;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out)
{
    *out = strlen((char *)program) + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out)
{
    strcpy(out, (char *)program);
    return NVRTC_SUCCESS;
}
