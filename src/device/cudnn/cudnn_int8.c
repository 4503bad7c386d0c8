#include "device/cudnn/cudnn_int8.h"

#include <math.h>
#include <stdlib.h>

#include "device/ranges.h"
#include "graph/op.h"
#include "graph/quantize_graph.h"

enum { VALUES, SCALE, ZERO };

/* ---- Making them ---- */

static void make_up(hwnas_range *ranges, const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_tensors; i++)
        ranges[i] = (hwnas_range){-1, 1};
}

/* So that bytes are signed, and zero is 0. */
static void make_even(hwnas_range *ranges, const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const float largest = fmaxf(ranges[i].high, -ranges[i].low);
        ranges[i] = (hwnas_range){-largest, largest};
    }
}

hwnas_status hwnas_cudnn_quantize(hwnas_graph **out, int **origin, hwnas_cuda_device *device,
                                  const hwnas_graph *graph, const hwnas_exec_options *options)
{
    const hwnas_quantize_form form = HWNAS_QUANTIZE_FUSED;
    hwnas_range *ranges = hwnas_alloc((graph->n_tensors + 1) * sizeof *ranges);
    hwnas_status status = HWNAS_OK;
    if (device->is_dry)
        make_up(ranges, graph);
    else
        TRY_OUT(hwnas_device_ranges(ranges, &device->base, graph, options, form));
    make_even(ranges, graph);
    TRY_OUT(hwnas_graph_quantize(out, origin, graph, ranges, NULL, form, 8));
out:
    free(ranges);
    return status;
}

/* ---- Finding them ---- */

static bool is_all_zero(const hwnas_tensor *weight)
{
    const int64_t n = hwnas_tensor_count(weight);
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    bool is_zero = true;
    hwnas_tensor_fill(weight, values);
    for (int64_t i = 0; i < n; i++)
        is_zero &= values[i] == 0;
    free(values);
    return is_zero;
}

/* Scales are known, and zero is 0. */
static bool is_around_zero(const hwnas_graph *graph, const hwnas_node *node)
{
    if (hwnas_node_input(graph, node, SCALE)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    if (node->n_inputs <= ZERO)
        return true;
    const hwnas_tensor *zero = hwnas_node_input(graph, node, ZERO);
    return zero->kind == HWNAS_TENSOR_WEIGHT && is_all_zero(zero);
}

static bool has_one_scale(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_input(graph, node, SCALE)) == 1;
}

bool hwnas_cudnn_makes_int8(const hwnas_graph *graph, const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_QUANTIZE_LINEAR && has_one_scale(graph, node) &&
           hwnas_node_output(graph, node)->dtype == HWNAS_INT8 && is_around_zero(graph, node);
}

int hwnas_cudnn_dequantize_of(const hwnas_graph *graph, int tensor)
{
    const int made_by = graph->tensors[tensor].producer;
    if (made_by < 0 || graph->nodes[made_by].op->id != HWNAS_OP_DEQUANTIZE_LINEAR)
        return -1;
    const hwnas_node *node = &graph->nodes[made_by];
    const hwnas_tensor *bytes = hwnas_node_input(graph, node, VALUES);
    const bool is_made_here = bytes->producer >= 0 &&
                              hwnas_cudnn_makes_int8(graph, &graph->nodes[bytes->producer]);
    return bytes->dtype == HWNAS_INT8 && is_around_zero(graph, node) &&
                   (bytes->kind == HWNAS_TENSOR_WEIGHT || (is_made_here && has_one_scale(graph, node)))
               ? made_by
               : -1;
}

/* A scale for each output, or one. */
static bool has_scales_of_outputs(const hwnas_graph *graph, const hwnas_node *reverse,
                                  const hwnas_node *product)
{
    const int last = hwnas_node_input(graph, product, 1)->rank - 1;
    const int output_axis = product->op->id == HWNAS_OP_MATMUL ? last : 0;
    return has_one_scale(graph, reverse) ||
           hwnas_node_attr(reverse, "axis")->ints[0] == output_axis;
}

bool hwnas_cudnn_multiplies_int8(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->class != HWNAS_CLASS_PRODUCT)
        return false;
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *kernel = hwnas_node_input(graph, node, 1);
    const int values = hwnas_cudnn_dequantize_of(graph, node->inputs[0]);
    const int weights = hwnas_cudnn_dequantize_of(graph, node->inputs[1]);
    if (values < 0 || weights < 0 ||
        hwnas_node_input(graph, &graph->nodes[values], VALUES)->kind == HWNAS_TENSOR_WEIGHT ||
        hwnas_node_input(graph, &graph->nodes[weights], VALUES)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    if (node->n_inputs > 2 && hwnas_node_input(graph, node, 2)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    const bool is_grouped = node->op->id == HWNAS_OP_CONV && kernel->dims[1] != in->dims[1];
    return !is_grouped && kernel->rank >= 2 &&
           has_scales_of_outputs(graph, &graph->nodes[weights], node);
}
