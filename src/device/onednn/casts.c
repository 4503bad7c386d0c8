/* casts.c: which nodes are computed in bf16 or f16, and the casts around them. */
#include "device/onednn/casts.h"

#include <stdlib.h>

#include "device/onednn/onednn_lower.h"
#include "device/onednn/windows.h"
#include "graph/op.h"
#include "graph/rewrite.h"
#include "graph/rounding.h"

static const hwnas_node *dequantize_before(const hwnas_graph *graph, const hwnas_node *node, int i)
{
    const int producer = hwnas_node_input(graph, node, i)->producer;
    const hwnas_node *before = producer < 0 ? NULL : &graph->nodes[producer];
    return before && before->op->id == HWNAS_OP_DEQUANTIZE_LINEAR ? before : NULL;
}

/* Bytes that are dequantised for a product with floats are kept as floats: oneDNN 3.7 ends the
 * process when it cuts a graph with such a product. Groups have none of it. */
static void keep_half_products(hwnas_onednn_source *s)
{
    const hwnas_graph *graph = s->graph;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        if (node->op->class != HWNAS_CLASS_PRODUCT)
            continue;
        const hwnas_node *const before[] = {dequantize_before(graph, node, 0),
                                              dequantize_before(graph, node, 1)};
        for (int i = 0; i < 2; i++)
            if (before[i] && !before[1 - i])
                s->kept[before[i]->inputs[0]] = dnnl_f32;
    }
}

typedef struct caster {
    bool is_emulated;
    const hwnas_onednn_source *from;
    hwnas_onednn_source *to;
    dnnl_data_type_t type;
    hwnas_dtype dtype; /* the same */
    int *low;  /* by tensor of `from`: the new one of the low type, or -1 */
    int *full; /* and as floats */
} caster;

/* The sum behind a product, which oneDNN fuses with it and then, where bf16 is emulated, has only
 * reference code for: seconds for a layer. */
static bool adds_to_product(const hwnas_graph *graph, const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_ADD && hwnas_node_output(graph, node)->rank != 4 &&
           hwnas_node_input(graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT &&
           hwnas_node_input(graph, node, 1)->kind != HWNAS_TENSOR_WEIGHT;
}

/* What is rounded to bfloat16 is of the low type anyway, or of one that keeps more. */
static int before_roundings(const hwnas_graph *graph, int tensor)
{
    for (int at = tensor; at >= 0; at = hwnas_before_rounding(graph, at))
        tensor = at;
    return tensor;
}

/* What oneDNN computes with floats, except what fuses with quantisations; and reshapes of tensors that
 * are of the low type already. */
static bool is_low(const caster *c, const hwnas_node *node)
{
    const hwnas_graph *graph = c->from->graph;
    for (int i = 0; i < node->n_inputs; i++) {
        const int producer = hwnas_node_input(graph, node, i)->producer;
        if (producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_DEQUANTIZE_LINEAR)
            return false;
    }
    if (c->type == dnnl_f16 && hwnas_onednn_is_wrong_in_f16(graph, node))
        return false;
    if (c->is_emulated && adds_to_product(graph, node))
        return false;
    const hwnas_onednn_kind *own = hwnas_onednn_own(c->from, node);
    if (own == &hwnas_onednn_reshape)
        return c->low[before_roundings(graph, node->inputs[0])] >= 0;
    return !own && !hwnas_onednn_changes_type(c->from, node);
}

/* Scales and statistics of norms stay floats, which oneDNN takes beside values of a low type. */
static bool wants_low(const hwnas_node *node, int input)
{
    return input == 0 ||
           (node->op->id != HWNAS_OP_LAYER_NORM && node->op->id != HWNAS_OP_BATCH_NORM);
}

static hwnas_status add_cast(int *out, hwnas_rewrite *r, int tensor, hwnas_dtype dtype)
{
    const hwnas_attr to = {.is_set = true, .n = 1, .ints = {dtype}};
    const char *name = hwnas_arena_printf(r->to->arena, "%s/%s", r->to->tensors[tensor].name,
                                          hwnas_dtype_name(dtype));
    return hwnas_graph_add_node(out, r->to, hwnas_ops[HWNAS_OP_CAST], name, &to, 1, &tensor, false);
}

/* The tensor in one of the two types, of which it has one or is a weight. */
static hwnas_status get(int *out, hwnas_rewrite *r, int tensor, bool low)
{
    caster *c = r->context;
    tensor = before_roundings(r->from, tensor);
    int *wanted = low ? &c->low[tensor] : &c->full[tensor];
    const int other = low ? c->full[tensor] : c->low[tensor];
    if (*wanted < 0) {
        if (r->from->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT) {
            TRY(hwnas_rewrite_copy_weight(r, tensor));
            *wanted = r->place[tensor];
        } else {
            TRY(add_cast(wanted, r, other, low ? c->dtype : HWNAS_FLOAT32));
        }
        c->to->kept[*wanted] = low ? c->type : c->from->kept[tensor];
    }
    *out = *wanted;
    return HWNAS_OK;
}

static hwnas_status cast_nodes(hwnas_rewrite *r)
{
    caster *c = r->context;
    for (size_t i = 0; i < r->from->n_inputs; i++)
        c->full[r->from->inputs[i]] = r->place[r->from->inputs[i]];
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        if (hwnas_rounds(node))
            continue;
        const bool low = is_low(c, node);
        int inputs[HWNAS_MAX_NODE_INPUTS];
        for (int i = 0; i < node->n_inputs; i++)
            TRY(get(&inputs[i], r, node->inputs[i], low && wants_low(node, i)));
        c->to->origin[r->to->n_nodes] = (int)n;
        TRY(hwnas_rewrite_add_node(r, node, node->n_inputs, inputs, node->output));
        const int output = r->place[node->output];
        *(low ? &c->low[node->output] : &c->full[node->output]) = output;
        c->to->kept[output] = low ? c->type : c->from->kept[node->output];
    }
    for (size_t i = 0; i < r->from->n_outputs; i++) {
        const int output = r->from->outputs[i];
        TRY(get(&r->place[output], r, output, false));
    }
    return HWNAS_OK;
}

/* Each tensor has at most two forms, and each second form at most one cast. */
hwnas_status hwnas_onednn_cast(hwnas_onednn_source *out, hwnas_onednn_source *from,
                               hwnas_precision precision, bool is_emulated)
{
    const size_t n_tensors = from->graph->n_tensors, n_nodes = from->graph->n_nodes + n_tensors;
    hwnas_onednn_source to = {.kept = hwnas_alloc((2 * n_tensors + 1) * sizeof *to.kept),
                              .origin = hwnas_alloc((n_nodes + 1) * sizeof *to.origin)};
    const bool is_bf16 = precision == HWNAS_BF16;
    caster c = {.is_emulated = is_emulated, .from = from, .to = &to};
    c.type = is_bf16 ? dnnl_bf16 : dnnl_f16;
    c.dtype = is_bf16 ? HWNAS_BFLOAT16 : HWNAS_FLOAT16;
    keep_half_products(from);
    c.low = hwnas_alloc((n_tensors + 1) * sizeof *c.low);
    c.full = hwnas_alloc((n_tensors + 1) * sizeof *c.full);
    for (size_t i = 0; i < n_tensors; i++) {
        c.low[i] = c.full[i] = -1;
        to.kept[2 * i] = to.kept[2 * i + 1] = dnnl_f32;
    }
    for (size_t i = 0; i < n_nodes; i++)
        to.origin[i] = -1;
    hwnas_status status = hwnas_graph_remake(&to.made, from->graph, cast_nodes, &c);
    free(c.low);
    free(c.full);
    to.graph = to.made;
    if (status == HWNAS_OK)
        *out = to;
    else
        hwnas_onednn_source_done(&to);
    return status;
}
