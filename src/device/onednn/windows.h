/* windows.h: how kernels go over images, and convolutions that oneDNN computes wrongly. */
#ifndef HWNAS_DEVICE_ONEDNN_WINDOWS_H
#define HWNAS_DEVICE_ONEDNN_WINDOWS_H

#include <oneapi/dnnl/dnnl.h>

#include "graph/graph.h"

/* Of height and width, in pixels; padding before is at the top and left. */
typedef struct hwnas_onednn_window {
    dnnl_dims_t stride, before, after;
} hwnas_onednn_window;

/* As the node says: a pool, or a convolution of either kind. */
hwnas_onednn_window hwnas_onednn_window_of(const hwnas_node *node);
/* One with the same result that oneDNN 3.7 computes correctly; the node is a `conv`. */
hwnas_onednn_window hwnas_onednn_conv_window(const hwnas_graph *graph, const hwnas_node *node);

/* A `conv` for which there is none, or that multiplies bytes and has a blank window, or signed
 * bytes of one channel and padding at its sides alone. */
bool hwnas_onednn_is_wrong(const hwnas_graph *graph, const hwnas_node *node);
/* A `conv` one of whose windows lies over padding alone. There oneDNN 3.7's convolutions of bytes
 * read what nobody has written. */
bool hwnas_onednn_has_blank_window(const hwnas_graph *graph, const hwnas_node *node);
/* A `conv` that oneDNN 3.7 computes wrongly in f16, or ends the process. */
bool hwnas_onednn_is_wrong_in_f16(const hwnas_graph *graph, const hwnas_node *node);

#endif
