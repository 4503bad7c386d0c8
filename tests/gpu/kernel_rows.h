/* kernel_rows.h: the kernels' text, and the table of them; compiled in more than one way. */
#include <string.h>

#include "device/cudnn/kernels/elementwise.cu"
#include "device/cudnn/kernels/indexed.cu"
#include "device/cudnn/kernels/lines.cu"
#include "device/cudnn/kernels/product.cu"
#include "device/cudnn/kernels/recurrent.cu"
#include "device/cudnn/kernels/window.cu"

typedef void kernel_of_host(hwnas_kernel_job job, kernel_launch launch);

#define ROW(NAME)                                                                                  \
    {                                                                                              \
#NAME, NAME                                                                                \
    }
static const struct {
    const char *name;
    kernel_of_host *run;
} rows[] = {
    ROW(hwnas_elementwise),     ROW(hwnas_reshape),   ROW(hwnas_gather),
    ROW(hwnas_gather_elements), ROW(hwnas_gather_nd), ROW(hwnas_scatter_elements),
    ROW(hwnas_scatter_nd),      ROW(hwnas_reduce),    ROW(hwnas_softmax),
    ROW(hwnas_layer_norm),      ROW(hwnas_arg),       ROW(hwnas_top_k),
    ROW(hwnas_cum_sum),         ROW(hwnas_pool),      ROW(hwnas_pad),
    ROW(hwnas_upsample),        ROW(hwnas_matmul),    ROW(hwnas_conv),
    ROW(hwnas_conv_transpose),  ROW(hwnas_recurrent), ROW(hwnas_grid_sample),
};

/* NULL: there is none of that name. */
static kernel_of_host *kernel_named(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return rows[i].run;
    return NULL;
}
