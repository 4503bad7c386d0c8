/* source.c: which type each value of a graph is kept in. */
#include "device/onednn/source.h"

#include <stdlib.h>

#include <oneapi/dnnl/dnnl.h>

#include "base/half.h"
#include "device/onednn/onednn_lower.h"
#include "graph/op.h"
#include "graph/rewrite.h"

/* ---- 8-bit integers ---- */

/* Whether scale and zero point are known, as oneDNN wants them. */
static bool has_known_scale(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return true;
}

static bool is_byte(const hwnas_tensor *tensor)
{
    return tensor->dtype == HWNAS_INT8 || tensor->dtype == HWNAS_UINT8;
}

/* Tensors that only known reverses read, and that come of a quantisation or are weights, are kept
 * as bytes. */
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
        const bool reverses =
            node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR && has_known_scale(graph, node);
        for (int i = 0; i < node->n_inputs; i++)
            if (!reverses || i > 0)
                s->kept[node->inputs[i]] = dnnl_f32;
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        s->kept[graph->outputs[i]] = dnnl_f32;
}

static const hwnas_node *reverse_before(const hwnas_graph *graph, const hwnas_node *node, int i)
{
    const int producer = hwnas_node_input(graph, node, i)->producer;
    const hwnas_node *before = producer < 0 ? NULL : &graph->nodes[producer];
    return before && before->op->id == HWNAS_OP_DEQUANTIZE_LINEAR ? before : NULL;
}

/* The bytes that are reversed for a product with floats are floats all the way: oneDNN 3.7 ends the
 * process when it is to cut a graph with such a product. Groups have none of it. */
static void keep_half_products(hwnas_onednn_source *s)
{
    const hwnas_graph *graph = s->graph;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        if (node->op->class != HWNAS_CLASS_PRODUCT && node->op->id != HWNAS_OP_ZERO)
            continue; /* a zero is lowered as one */
        const hwnas_node *const reverses[] = {reverse_before(graph, node, 0),
                                              reverse_before(graph, node, 1)};
        for (int i = 0; i < 2; i++)
            if (reverses[i] && !reverses[1 - i])
                s->kept[reverses[i]->inputs[0]] = dnnl_f32;
    }
}

/* ---- bf16 and f16 ---- */

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

/* What oneDNN computes of floats, but for what is to fuse with quantisations; reshapes of what is
 * low already. */
static bool is_low(const caster *c, const hwnas_node *node)
{
    const hwnas_graph *graph = c->from->graph;
    for (int i = 0; i < node->n_inputs; i++) {
        const int producer = hwnas_node_input(graph, node, i)->producer;
        if (producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_DEQUANTIZE_LINEAR)
            return false;
    }
    if (c->is_emulated && adds_to_product(graph, node))
        return false;
    const hwnas_onednn_kind *own = hwnas_onednn_own(c->from, node);
    if (own == &hwnas_onednn_reshape)
        return c->low[node->inputs[0]] >= 0;
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
static hwnas_status cast_graph(hwnas_onednn_source *out, const hwnas_onednn_source *from,
                               dnnl_data_type_t type, bool is_emulated)
{
    const size_t n_tensors = from->graph->n_tensors, n_nodes = from->graph->n_nodes + n_tensors;
    hwnas_onednn_source to = {.kept = hwnas_alloc((2 * n_tensors + 1) * sizeof *to.kept),
                              .origin = hwnas_alloc((n_nodes + 1) * sizeof *to.origin)};
    caster c = {.is_emulated = is_emulated, .from = from, .to = &to, .type = type};
    c.dtype = type == dnnl_bf16 ? HWNAS_BFLOAT16 : HWNAS_FLOAT16;
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

hwnas_status hwnas_onednn_source_init(hwnas_onednn_source *out, const hwnas_graph *graph,
                                      hwnas_precision precision, bool is_emulated)
{
    hwnas_onednn_source s = {.graph = graph};
    s.kept = hwnas_alloc((graph->n_tensors + 1) * sizeof *s.kept);
    for (size_t i = 0; i < graph->n_tensors; i++)
        s.kept[i] = dnnl_f32;
    keep_bytes(&s);
    if (precision == HWNAS_BF16 || precision == HWNAS_F16) {
        keep_half_products(&s);
    } else {
        *out = s;
        return HWNAS_OK;
    }
    hwnas_status status =
        cast_graph(out, &s, precision == HWNAS_BF16 ? dnnl_bf16 : dnnl_f16, is_emulated);
    hwnas_onednn_source_done(&s);
    return status;
}

void hwnas_onednn_source_done(hwnas_onednn_source *source)
{
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
