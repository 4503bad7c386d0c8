#include "device/onednn/logical.h"

#include <string.h>

#include "device/onednn/onednn_lower.h"

hwnas_status hwnas_onednn_plain(dnnl_graph_logical_tensor_t *out, const hwnas_onednn_source *source,
                                int tensor)
{
    const hwnas_tensor *t = &source->graph->tensors[tensor];
    dnnl_dims_t dims = {1}, strides = {1};
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; stride *= dims[i--]) {
        dims[i] = t->dims[i];
        strides[i] = stride;
    }
    const dnnl_graph_tensor_property_t property = t->kind == HWNAS_TENSOR_WEIGHT
                                                      ? dnnl_graph_tensor_property_constant
                                                      : dnnl_graph_tensor_property_variable;
    TRY_DNNL("describe", t->name,
             dnnl_graph_logical_tensor_init_with_strides(out, (size_t)tensor, source->kept[tensor],
                                                         t->rank ? t->rank : 1, dims, strides,
                                                         property));
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_image(dnnl_graph_logical_tensor_t *out, const hwnas_onednn_source *source,
                                int tensor)
{
    TRY(hwnas_onednn_plain(out, source, tensor));
    const int64_t *dims = source->graph->tensors[tensor].dims;
    const dnnl_dims_t strides = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    memcpy(out->layout.strides, strides, 4 * sizeof *strides);
    return HWNAS_OK;
}
