/* fake_kernels.c: what NVRTC compiles and the driver loads: an image is "fake sm_90 NAME", or where
 * it is PTX, of which the driver makes code, "fake compute_80 NAME". */
#include <cuda.h>
#include <nvrtc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    int sm = 0;
    const bool is_ptx = sscanf(image, "fake compute_%d", &sm) == 1;
    if (!is_ptx && sscanf(image, "fake sm_%d", &sm) != 1)
        return CUDA_ERROR_INVALID_IMAGE;
    if ((is_ptx ? sm > FAKE_SM : sm != FAKE_SM) || fake_fault("old"))
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
    return result == NVRTC_SUCCESS                ? "success"
           : result == NVRTC_ERROR_INVALID_OPTION ? "invalid option"
           : result == NVRTC_ERROR_INTERNAL_ERROR ? "internal error"
                                                  : "compilation";
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

/* In ascending order; the last is the GPU's, which "newer" takes away. */
static const int architectures[] = {75, 80, FAKE_SM};

static int n_architectures(void)
{
    return (int)(sizeof architectures / sizeof *architectures) - (fake_fault("newer") != 0);
}

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *out)
{
    *out = n_architectures();
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, architectures, (size_t)n_architectures() * sizeof *out);
    return NVRTC_SUCCESS;
}

static bool is_known(const char *target)
{
    const char *number = strchr(target, '_');
    for (int i = 0; number && i < n_architectures(); i++)
        if (architectures[i] == atoi(number + 1))
            return true;
    return false;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
    static const char wants[] = "-DWANT_", architecture[] = "--gpu-architecture=";
    const char *kernel = NULL, *target = NULL;
    for (int i = 0; i < n; i++) {
        if (!strncmp(options[i], wants, sizeof wants - 1))
            kernel = options[i] + sizeof wants - 1;
        if (!strncmp(options[i], architecture, sizeof architecture - 1))
            target = options[i] + sizeof architecture - 1;
    }
    if (!kernel || !target)
        return NVRTC_ERROR_COMPILATION;
    if (!is_known(target))
        return NVRTC_ERROR_INVALID_OPTION;
    snprintf((char *)program, 256, "fake %s %.*s", target, (int)strcspn(kernel, "="), kernel);
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

static bool is_code(nvrtcProgram program)
{
    return !strncmp((char *)program, "fake sm_", 8);
}

/* There is none of what was compiled for no real architecture. */
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out)
{
    *out = is_code(program) ? strlen((char *)program) + 1 : 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out)
{
    if (!is_code(program) || fake_fault("unmade"))
        return NVRTC_ERROR_INTERNAL_ERROR;
    strcpy(out, (char *)program);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *out)
{
    *out = strlen((char *)program) + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *out)
{
    strcpy(out, (char *)program);
    return NVRTC_SUCCESS;
}
