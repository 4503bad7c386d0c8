/* source.c: which type each value of a graph is kept in. */
#include "device/onednn/source.h"

#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>

#include "base/half.h"
#include "graph/op.h"
#include "graph/pack_weights.h"

/* Whether scale and zero point are known, as oneDNN wants them. Of activations it has one for each
 * channel only now and then (3.7). */
static bool has_known_scale(const hwnas_graph *graph, const hwnas_node *node)
{
    if (hwnas_node_attr(node, "block_size")->ints[0] ||
        (hwnas_node_input(graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT &&
         hwnas_tensor_count(hwnas_node_input(graph, node, 1)) != 1))
        return false;
    for (int i = 1; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return true;
}

static bool is_byte(const hwnas_tensor *tensor)
{
    return tensor->dtype == HWNAS_INT8 || tensor->dtype == HWNAS_UINT8;
}

/* Tensors that only dequantisations of known scales read, and that are weights or come of a
 * quantisation, are kept as bytes. */
static void keep_bytes(hwnas_onednn_source *s)
{
    const hwnas_graph *graph = s->graph;
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &graph->tensors[t];
        const hwnas_node *from = tensor->producer < 0 ? NULL : &graph->nodes[tensor->producer];
        if (is_byte(tensor) &&
            (from ? from->op->id == HWNAS_OP_QUANTIZE_LINEAR && has_known_scale(graph, from)
                  : tensor->kind == HWNAS_TENSOR_WEIGHT))
            s->kept[t] = tensor->dtype == HWNAS_INT8 ? dnnl_s8 : dnnl_u8;
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const bool dequantizes =
            node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR && has_known_scale(graph, node);
        for (int i = 0; i < node->n_inputs; i++)
            if (!dequantizes || i > 0)
                s->kept[node->inputs[i]] = dnnl_f32;
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        s->kept[graph->outputs[i]] = dnnl_f32;
}

void hwnas_onednn_source_init(hwnas_onednn_source *out, const hwnas_graph *graph)
{
    *out = (hwnas_onednn_source){.graph = graph};
    out->kept = hwnas_alloc((graph->n_tensors + 1) * sizeof *out->kept);
    for (size_t i = 0; i < graph->n_tensors; i++)
        out->kept[i] = dnnl_f32;
    keep_bytes(out);
}

/* Numbers of nodes by those of the graph that was made first. */
static void follow(int *origin, size_t n, const int *before)
{
    for (size_t i = 0; i < n && before; i++)
        origin[i] = origin[i] < 0 ? -1 : before[origin[i]];
}

hwnas_status hwnas_onednn_source_packed(hwnas_onednn_source *out, const hwnas_graph *graph,
                                        int bits)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *packing = NULL, *unpacked = NULL;
    int *first = NULL, *origin = NULL, *packed = NULL;
    if (bits)
        TRY_OUT(hwnas_graph_pack_weights(&packing, &first, graph, bits));
    TRY_OUT(hwnas_graph_unpack_weights(&unpacked, &origin, &packed, packing ? packing : graph));
    follow(origin, unpacked->n_nodes, first);
    hwnas_onednn_source_init(out, unpacked);
    out->made = unpacked;
    out->origin = origin;
    out->packed_node = packed;
    out->packed_graph = packing ? packing : graph;
    out->made_packed_graph = packing;
    packing = NULL;
out:
    free(first);
    hwnas_graph_free(packing);
    return status;
}

void hwnas_onednn_source_done(hwnas_onednn_source *source)
{
    hwnas_graph_free(source->made_packed_graph);
    free(source->packed_node);
    hwnas_graph_free(source->made);
    free(source->kept);
    free(source->origin);
}

bool hwnas_onednn_has_low(const hwnas_onednn_source *source)
{
    for (size_t i = 0; i < source->graph->n_tensors; i++)
        if (source->kept[i] == dnnl_bf16 || source->kept[i] == dnnl_f16)
            return true;
    return false;
}

bool hwnas_onednn_changes_type(const hwnas_onednn_source *source, const hwnas_node *node)
{
    return source->kept[node->inputs[0]] != source->kept[node->output];
}

size_t hwnas_onednn_bytes(const hwnas_onednn_source *source, int tensor)
{
    return (size_t)hwnas_tensor_count(&source->graph->tensors[tensor]) *
           dnnl_data_type_size(source->kept[tensor]);
}

hwnas_status hwnas_onednn_fill(void *out, const hwnas_onednn_source *source, int tensor)
{
    const hwnas_tensor *weight = &source->graph->tensors[tensor];
    const dnnl_data_type_t type = source->kept[tensor];
    void *floats = NULL;
    if (type == dnnl_f32) {
        hwnas_tensor_fill(weight, out);
        return HWNAS_OK;
    }
    TRY(hwnas_try_alloc(&floats, (size_t)hwnas_tensor_bytes(weight), weight->name));
    hwnas_tensor_fill(weight, floats);
    for (int64_t i = 0, n = hwnas_tensor_count(weight); i < n; i++) {
        const float value = ((const float *)floats)[i];
        if (type == dnnl_s8)
            ((int8_t *)out)[i] = (int8_t)value;
        else if (type == dnnl_u8)
            ((uint8_t *)out)[i] = (uint8_t)value;
        else
            ((uint16_t *)out)[i] = type == dnnl_bf16 ? hwnas_bfloat16_of(value) : hwnas_half_of(value);
    }
    free(floats);
    return HWNAS_OK;
}
