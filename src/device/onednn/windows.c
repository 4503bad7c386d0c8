/* windows.c: oneDNN 3.7 on processors with AVX-512 and AMX, found by tests/unit/test_random_graphs.c
 * and then by 5,500 convolutions of random shapes in each precision. */
#include "device/onednn/windows.h"

#include "graph/op.h"

enum { HEIGHT = 2, WIDTH = 3 }; /* dimensions of an image */

hwnas_onednn_window hwnas_onednn_window_of(const hwnas_node *node)
{
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints; /* top, left, bottom, right */
    const int64_t *stride = hwnas_node_attr(node, "stride")->ints;
    return (hwnas_onednn_window){{stride[0], stride[1]}, {pad[0], pad[1]}, {pad[2], pad[3]}};
}

/* How many columns the kernel reaches over beyond the image and the padding on its left. */
static int64_t reach_beyond(const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t dilation = hwnas_node_attr(node, "dilation")->ints[1];
    const int64_t reach = (hwnas_node_input(graph, node, 1)->dims[WIDTH] - 1) * dilation + 1;
    return reach - hwnas_node_input(graph, node, 0)->dims[WIDTH] -
           hwnas_node_attr(node, "pad")->ints[1];
}

static bool makes_a_column(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_node_output(graph, node)->rank == 4 &&
           hwnas_node_output(graph, node)->dims[WIDTH] == 1;
}

/* With AMX, and in f32 from images of one channel, a convolution of one column goes wrong when its
 * stride to the right is not 1, which it never takes. Then nothing is to lie behind the kernel. */
hwnas_onednn_window hwnas_onednn_conv_window(const hwnas_graph *graph, const hwnas_node *node)
{
    hwnas_onednn_window w = hwnas_onednn_window_of(node);
    if (w.stride[1] > 1 && makes_a_column(graph, node) && reach_beyond(graph, node) >= 0) {
        w.stride[1] = 1;
        w.after[1] = reach_beyond(graph, node);
    }
    return w;
}

/* Columns of the image lie behind the kernel. One pixel, one row and depthwise ones come out right. */
static bool strides_beyond(const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *dims = hwnas_node_input(graph, node, 1)->dims;
    const bool is_depthwise =
        dims[1] == 1 && hwnas_node_attr(node, "groups")->ints[0] == dims[0] && dims[0] > 1;
    return makes_a_column(graph, node) && hwnas_node_attr(node, "stride")->ints[1] > 1 &&
           reach_beyond(graph, node) < 0 && dims[HEIGHT] * dims[WIDTH] > 1 &&
           hwnas_node_output(graph, node)->dims[HEIGHT] > 1 && !is_depthwise;
}

/* Whether one of the kernel's places along an axis lies over padding alone. */
static bool is_blank_along(const hwnas_graph *graph, const hwnas_node *node, int axis)
{
    const int64_t n_in = hwnas_node_input(graph, node, 0)->dims[HEIGHT + axis];
    const int64_t n_out = hwnas_node_output(graph, node)->dims[HEIGHT + axis];
    const int64_t taps = hwnas_node_input(graph, node, 1)->dims[HEIGHT + axis];
    const int64_t step = hwnas_node_attr(node, "dilation")->ints[axis];
    const hwnas_onednn_window w = hwnas_onednn_window_of(node);
    for (int64_t i = 0; i < n_out; i++) {
        const int64_t first = i * w.stride[axis] - w.before[axis];
        const int64_t tap = first < 0 ? (step - 1 - first) / step : 0; /* the first on the image */
        if (tap >= taps || first + tap * step >= n_in)
            return true;
    }
    return false;
}

bool hwnas_onednn_has_blank_window(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_node_output(graph, node)->rank == 4 &&
           (is_blank_along(graph, node, 0) || is_blank_along(graph, node, 1));
}

/* Whether a window reaches over padding along an axis. */
static bool reaches_padding(const hwnas_graph *graph, const hwnas_node *node, int axis)
{
    const hwnas_onednn_window w = hwnas_onednn_window_of(node);
    const int64_t n_out = hwnas_node_output(graph, node)->dims[HEIGHT + axis];
    const int64_t reach = (hwnas_node_input(graph, node, 1)->dims[HEIGHT + axis] - 1) *
                          hwnas_node_attr(node, "dilation")->ints[axis];
    return w.before[axis] || (n_out - 1) * w.stride[axis] + reach >=
                                 hwnas_node_input(graph, node, 0)->dims[HEIGHT + axis];
}

/* Of signed bytes, where each group has one channel, and windows reach over the padding at the
 * sides and over none above or below: the columns there are wrong with VNNI. Depthwise ones, and
 * kernels of one row or one column, come out right. */
static bool is_wrong_at_the_sides(const hwnas_graph *graph, const hwnas_node *node,
                                  const hwnas_tensor *bytes)
{
    const int64_t *dims = hwnas_node_input(graph, node, 1)->dims;
    const bool is_depthwise = hwnas_node_attr(node, "groups")->ints[0] == dims[0] && dims[0] > 1;
    return bytes->dtype == HWNAS_INT8 && hwnas_node_output(graph, node)->rank == 4 &&
           dims[1] == 1 && !is_depthwise && dims[HEIGHT] > 1 && dims[WIDTH] > 1 &&
           !reaches_padding(graph, node, 0) && reaches_padding(graph, node, 1);
}

bool hwnas_onednn_is_wrong(const hwnas_graph *graph, const hwnas_node *node)
{
    const int producer = hwnas_node_input(graph, node, 0)->producer;
    const hwnas_node *before = producer < 0 ? NULL : &graph->nodes[producer];
    return strides_beyond(graph, node) ||
           (before && before->op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
            (hwnas_onednn_has_blank_window(graph, node) ||
             is_wrong_at_the_sides(graph, node, hwnas_node_input(graph, before, 0))));
}

/* Kernels of one column, where the channels fill more than one vector and no half of one at the end. */
bool hwnas_onednn_is_wrong_in_f16(const hwnas_graph *graph, const hwnas_node *node)
{
    enum { VECTOR = 32 };
    if (node->op->id != HWNAS_OP_CONV || !makes_a_column(graph, node))
        return false;
    const int64_t *dims = hwnas_node_input(graph, node, 1)->dims;
    return dims[WIDTH] == 1 && dims[HEIGHT] > 1 && dims[1] > VECTOR && dims[1] % (VECTOR / 2);
}
