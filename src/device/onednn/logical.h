/* logical.h: a tensor as oneDNN's graphs describe it: its number, type, dimensions and layout. */
#ifndef HWNAS_DEVICE_ONEDNN_LOGICAL_H
#define HWNAS_DEVICE_ONEDNN_LOGICAL_H

#include <oneapi/dnnl/dnnl_graph.h>

#include "device/onednn/source.h"

/* The tensor in plain row-major layout; a scalar has one dimension of 1. */
HWNAS_CHECKED hwnas_status hwnas_onednn_plain(dnnl_graph_logical_tensor_t *out,
                                              const hwnas_onednn_source *source, int tensor);
/* The tensor with its channels last; it has four dimensions. */
HWNAS_CHECKED hwnas_status hwnas_onednn_image(dnnl_graph_logical_tensor_t *out,
                                              const hwnas_onednn_source *source, int tensor);

#endif
