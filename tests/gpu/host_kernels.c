#include "host_kernels.h"

#include <string.h>

#include "device/cudnn/kernels/elementwise.cu"
#include "device/cudnn/kernels/indexed.cu"
#include "device/cudnn/kernels/lines.cu"
#include "device/cudnn/kernels/product.cu"
#include "device/cudnn/kernels/recurrent.cu"
#include "device/cudnn/kernels/window.cu"

#define ROW(NAME) {#NAME, NAME}
static const struct {
    const char *name;
    void (*run)(hwnas_kernel_job job, kernel_launch launch);
} rows[] = {
    ROW(hwnas_elementwise), ROW(hwnas_reshape), ROW(hwnas_gather), ROW(hwnas_gather_elements),
    ROW(hwnas_gather_nd), ROW(hwnas_scatter_elements), ROW(hwnas_scatter_nd), ROW(hwnas_reduce),
    ROW(hwnas_softmax), ROW(hwnas_layer_norm), ROW(hwnas_arg), ROW(hwnas_top_k),
    ROW(hwnas_cum_sum), ROW(hwnas_pool), ROW(hwnas_pad), ROW(hwnas_upsample), ROW(hwnas_matmul),
    ROW(hwnas_conv), ROW(hwnas_conv_transpose), ROW(hwnas_recurrent),
};

bool host_kernel_run(const char *name, const hwnas_kernel_job *job, int n_blocks, int n_threads,
                     bool is_backward)
{
    const kernel_launch launch = {n_blocks, n_threads, is_backward};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) {
            rows[i].run(*job, launch);
            return true;
        }
    return false;
}

float host_load(const void *at, int type, int i)
{
    return kernel_load(at, type, i);
}

void host_store(void *at, int type, int i, float value)
{
    kernel_store(at, type, i, value);
}
