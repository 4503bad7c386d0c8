#include "profile/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_number.h"
#include "base/str.h"
#include "device/device.h"
#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/rounding.h"
#include "profile/limits.h"

enum {
    MAX_LISTED = 4, /* nodes of a layer that are all in its name ... */
    MAX_NAME = 48,  /* ... where they are no longer than this together */
};

typedef struct maker {
    hwnas_arena *arena;
    const hwnas_graph *graph;
    hwnas_precision precision;
    double value_bytes; /* of one value inside the network */
    int weight_bits;    /* of products, where they are fewer; or 0 */
    int *step_of;       /* by node */
    bool *leaves;       /* by tensor: read by another step than its own, or from outside */
    int *counted;       /* by tensor: the last step that has counted it, plus 1 */
    const hwnas_roofline *roofline;
    double all_weights; /* bytes, of the network */
} maker;

const char *hwnas_bound_name(hwnas_bound bound)
{
    static const char *const names[] = {"-", "compute", "cache", "memory"};
    return names[bound];
}

static double bytes_of_value(hwnas_precision precision)
{
    switch (precision) {
    case HWNAS_BF16:
    case HWNAS_F16:
        return 2;
    case HWNAS_S8:
        return 1;
    default:
        return 4;
    }
}

/* Bits of a weight that is read packed, with its share of a scale; 0: it is not. */
static double bits_of_weight(const maker *m, int tensor)
{
    enum { KERNEL = 1, SCALE_BITS = 32 };
    const hwnas_graph *g = m->graph;
    const hwnas_tensor *t = &g->tensors[tensor];
    for (size_t n = 0; n < g->n_nodes && t->kind == HWNAS_TENSOR_WEIGHT && t->rank == 2; n++) {
        const hwnas_node *node = &g->nodes[n];
        const bool is_matrix = node->op->id == HWNAS_OP_LINEAR || node->op->id == HWNAS_OP_MATMUL;
        if (node->inputs[0] == tensor && hwnas_is_packed_kernel(g, node))
            return hwnas_packed_bits(t);
        if (is_matrix && m->weight_bits && node->inputs[KERNEL] == tensor)
            return m->weight_bits + (double)SCALE_BITS / HWNAS_PACKED_GROUP;
    }
    return 0;
}

/* What a quantization makes, and kernels of bytes. */
static bool is_byte(const maker *m, int tensor)
{
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    return (t->dtype == HWNAS_INT8 || t->dtype == HWNAS_UINT8) &&
           (t->kind == HWNAS_TENSOR_WEIGHT ||
            (t->producer >= 0 && m->graph->nodes[t->producer].op->id == HWNAS_OP_QUANTIZE_LINEAR));
}

/* A kernel that is kept as bf16. */
static bool is_rounded(const hwnas_graph *graph, int tensor)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].inputs[0] == tensor && hwnas_is_rounded_kernel(graph, &graph->nodes[n]))
            return true;
    return false;
}

/* Whole numbers and what comes from or goes to outside stay as they are. */
static double tensor_bytes(const maker *m, int tensor)
{
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    const double bits = bits_of_weight(m, tensor);
    if (bits)
        return (double)hwnas_tensor_count(t) * bits / 8;
    if (is_byte(m, tensor))
        return (double)hwnas_tensor_count(t);
    if (t->kind == HWNAS_TENSOR_WEIGHT && is_rounded(m->graph, tensor))
        return (double)hwnas_tensor_count(t) * bytes_of_value(HWNAS_BF16);
    const bool stays = t->kind == HWNAS_TENSOR_INPUT || hwnas_dtype_is_whole(t->dtype);
    return stays ? (double)hwnas_tensor_bytes(t) : m->value_bytes * (double)hwnas_tensor_count(t);
}

/* Which tensors are seen outside of the step that computes them. */
static void find_leaving(maker *m, const hwnas_step_times *times)
{
    const hwnas_graph *g = m->graph;
    m->step_of = hwnas_alloc((g->n_nodes + 1) * sizeof *m->step_of);
    m->leaves = hwnas_alloc((g->n_tensors + 1) * sizeof *m->leaves);
    m->counted = hwnas_alloc((g->n_tensors + 1) * sizeof *m->counted);
    for (size_t s = 0; s < times->n; s++)
        for (size_t k = 0; k < times->steps[s].n_nodes; k++)
            m->step_of[times->steps[s].nodes[k]] = (int)s;
    for (size_t n = 0; n < g->n_nodes; n++)
        for (int i = 0; i < g->nodes[n].n_inputs; i++) {
            const int tensor = g->nodes[n].inputs[i], producer = g->tensors[tensor].producer;
            m->leaves[tensor] |= producer < 0 || m->step_of[producer] != m->step_of[n];
        }
    for (size_t i = 0; i < g->n_outputs; i++)
        m->leaves[g->outputs[i]] = true;
    for (size_t i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].kind == HWNAS_TENSOR_WEIGHT)
            m->all_weights += tensor_bytes(m, (int)i);
}

/* The same values under another shape: a device need not move them. */
static bool is_view(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_RESHAPE || node->op->id == HWNAS_OP_FLATTEN;
}

/* It reads no more than it writes: of a table only the rows that are looked up. */
static bool picks(const hwnas_node *node)
{
    const hwnas_op_id id = node->op->id;
    return id == HWNAS_OP_GATHER || id == HWNAS_OP_GATHER_ELEMENTS || id == HWNAS_OP_GATHER_ND ||
           id == HWNAS_OP_SLICE;
}

/* Adds what the node reads and writes beyond its step. */
static void count_bytes(hwnas_layer *layer, maker *m, const hwnas_node *node, int step)
{
    const double most = picks(node) ? tensor_bytes(m, node->output) : INFINITY;
    for (int i = 0; i <= node->n_inputs; i++) {
        const int tensor = i < node->n_inputs ? node->inputs[i] : node->output;
        const bool is_weight = m->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
        if (!m->leaves[tensor] || m->counted[tensor] == step + 1)
            continue;
        m->counted[tensor] = step + 1;
        const double bytes = fmin(tensor_bytes(m, tensor), most);
        layer->bytes += bytes;
        layer->weight_bytes += is_weight ? bytes : 0;
    }
}

/* Characters of the path that all names share. */
static size_t shared_path(const hwnas_layer *layer)
{
    size_t shared = 0;
    for (size_t at = 0; layer->nodes[0][at]; at++) {
        for (size_t k = 1; k < layer->n_nodes; k++)
            if (layer->nodes[k][at] != layer->nodes[0][at])
                return shared;
        if (layer->nodes[0][at] == '/')
            shared = at + 1;
    }
    return shared;
}

/* "layer1/0/{conv1 relu1}" */
static const char *name_of(hwnas_arena *arena, const hwnas_layer *layer)
{
    const size_t n = layer->n_nodes, shared = n > 1 ? shared_path(layer) : 0;
    size_t length = shared;
    for (size_t k = 0; k < n; k++)
        length += strlen(layer->nodes[k]) - shared + 1;
    const bool is_long = n > MAX_LISTED || length > MAX_NAME;
    hwnas_str name = {0};
    hwnas_str_addf(&name, "%.*s%s", (int)shared, layer->nodes[0], n > 1 ? "{" : "");
    for (size_t k = 0; k < n; k++)
        if (!is_long || k == 0 || k == n - 1)
            hwnas_str_addf(&name, "%s%s", k ? " " : "", layer->nodes[k] + shared);
        else if (k == 1)
            hwnas_str_add(&name, " ...");
    hwnas_str_add(&name, n > 1 ? "}" : "");
    const char *kept = hwnas_arena_string(arena, name.s, name.n);
    hwnas_str_done(&name);
    return kept;
}

/* "conv relu", "13 conv 12 relu" */
static const char *ops_of(const maker *m, const hwnas_step_time *step)
{
    hwnas_str ops = {0};
    const hwnas_node *nodes = m->graph->nodes;
    for (size_t k = 0; k < step->n_nodes; k++) {
        const hwnas_op *op = nodes[step->nodes[k]].op;
        size_t n = 0, n_before = 0;
        for (size_t i = 0; i < step->n_nodes && step->n_nodes > MAX_LISTED; i++) {
            n += nodes[step->nodes[i]].op == op;
            n_before += i < k && nodes[step->nodes[i]].op == op;
        }
        if (n_before)
            continue;
        hwnas_str_add(&ops, k ? " " : "");
        if (n)
            hwnas_str_addf(&ops, "%zu ", n);
        hwnas_str_add(&ops, op->name);
    }
    const char *kept = hwnas_arena_string(m->arena, ops.s, ops.n);
    hwnas_str_done(&ops);
    return kept;
}

static void name_layer(hwnas_layer *layer, const maker *m, const hwnas_step_time *step)
{
    const char **nodes = hwnas_arena_alloc(m->arena, step->n_nodes * sizeof *nodes);
    for (size_t k = 0; k < step->n_nodes; k++) {
        const char *name = m->graph->nodes[step->nodes[k]].name;
        nodes[k] = hwnas_arena_string(m->arena, name, strlen(name));
    }
    layer->n_nodes = step->n_nodes;
    layer->nodes = nodes;
    /* Between precisions values are converted, which the network does not know of. */
    layer->name = step->n_nodes ? name_of(m->arena, layer) : "(conversion)";
    layer->ops = step->n_nodes ? ops_of(m, step) : "(conversion)";
}

/* The roofline. Weights come from where all weights of the network have room, as each run reads
 * them all; activations from where those of this step have. */
static void bound_layer(hwnas_layer *layer, const maker *m)
{
    layer->least_seconds = NAN;
    if (!m->roofline || (!layer->macs && !(layer->bytes > 0)))
        return;
    const double activations = layer->bytes - layer->weight_bytes;
    const double compute = layer->compute_seconds;
    const double move = activations / hwnas_roofline_bandwidth(m->roofline, activations) +
                        layer->weight_bytes / hwnas_roofline_bandwidth(m->roofline, m->all_weights);
    const double weights_beyond =
        m->all_weights > m->roofline->cache_bytes ? layer->weight_bytes : 0;
    const double beyond = activations > m->roofline->cache_bytes ? activations : 0;
    layer->least_seconds = fmax(compute, move);
    layer->bound = compute > move                                 ? HWNAS_BOUND_COMPUTE
                   : weights_beyond + beyond > 0.5 * layer->bytes ? HWNAS_BOUND_MEMORY
                                                                  : HWNAS_BOUND_CACHE;
}

static int by_time(const void *a, const void *b)
{
    const hwnas_layer *x = a, *y = b;
    if (x->time.p50 != y->time.p50)
        return x->time.p50 < y->time.p50 ? 1 : -1;
    return x->position < y->position ? -1 : 1;
}

static void make_layer(hwnas_layer *layer, maker *m, const hwnas_step_time *step, size_t position)
{
    layer->position = position;
    layer->how = hwnas_arena_string(m->arena, step->how, strlen(step->how));
    layer->time = step->time;
    name_layer(layer, m, step);
    for (size_t k = 0; k < step->n_nodes; k++) {
        const hwnas_node *node = &m->graph->nodes[step->nodes[k]];
        const int64_t macs = hwnas_node_macs(m->graph, node);
        layer->macs += macs;
        if (m->roofline)
            layer->compute_seconds +=
                2 * (double)macs /
                hwnas_limits_flops(m->roofline,
                                   hwnas_product_precision(m->graph, node, m->precision));
        if (step->n_nodes > 1 || !is_view(node))
            count_bytes(layer, m, node, (int)position);
    }
    bound_layer(layer, m);
}

hwnas_layers *hwnas_layers_new(hwnas_arena *arena, const hwnas_graph *folded,
                               hwnas_precision precision, const hwnas_step_times *times,
                               const hwnas_roofline *roofline)
{
    hwnas_layers *out = hwnas_arena_alloc(arena, sizeof *out);
    maker m = {.arena = arena,
               .graph = folded,
               .precision = precision,
               .value_bytes = bytes_of_value(precision),
               .weight_bits = hwnas_precision_weight_bits(precision),
               .roofline = roofline};
    find_leaving(&m, times);
    *out = (hwnas_layers){.n = times->n,
                          .n_samples = times->n_samples,
                          .whole = times->whole,
                          .ratio = times->ratio,
                          .mark = times->mark,
                          .has_roofline = roofline != NULL,
                          .layers = hwnas_arena_alloc(arena, times->n * sizeof *out->layers)};
    if (roofline)
        out->roofline = *roofline;
    for (size_t i = 0; i < times->n; i++) {
        make_layer(&out->layers[i], &m, &times->steps[i], i);
        out->sum += times->steps[i].time.p50;
    }
    qsort(out->layers, out->n, sizeof *out->layers, by_time);
    free(m.step_of);
    free(m.leaves);
    free(m.counted);
    return out;
}

static json_t *layer_json(const hwnas_layer *layer)
{
    json_t *nodes = json_array();
    for (size_t k = 0; k < layer->n_nodes; k++)
        json_array_append_new(nodes, json_string(layer->nodes[k]));
    const bool is_bound = layer->bound != HWNAS_BOUND_NONE;
    return json_pack("{s:s, s:s, s:o, s:s, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:o, s:o}", "name",
                     layer->name, "operators", layer->ops, "nodes", nodes, "how", layer->how,
                     "position", (json_int_t)layer->position, "p50_seconds", layer->time.p50,
                     "p50_low_seconds", layer->time.low, "p50_high_seconds", layer->time.high,
                     "macs", (json_int_t)layer->macs, "bytes", layer->bytes, "weight_bytes",
                     layer->weight_bytes, "least_seconds",
                     is_bound ? json_real(layer->least_seconds) : json_null(), "bound",
                     is_bound ? json_string(hwnas_bound_name(layer->bound)) : json_null());
}

json_t *hwnas_layers_json(const hwnas_layers *layers)
{
    json_t *list = json_array();
    for (size_t i = 0; i < layers->n; i++)
        json_array_append_new(list, layer_json(&layers->layers[i]));
    return json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "samples",
        (json_int_t)layers->n_samples, "whole_seconds", layers->whole.p50, "whole_low_seconds",
        layers->whole.low, "whole_high_seconds", layers->whole.high, "sum_seconds", layers->sum,
        "ratio", layers->ratio.p50, "ratio_low", layers->ratio.low, "ratio_high",
        layers->ratio.high, "mark_seconds", layers->mark, "roofline",
        layers->has_roofline ? hwnas_roofline_json(&layers->roofline) : json_null(), "list", list);
}

static const char *text_of(hwnas_arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? hwnas_arena_string(arena, text, strlen(text)) : "";
}

static hwnas_bound bound_of(const json_t *layer)
{
    const char *name = json_string_value(json_object_get(layer, "bound"));
    for (hwnas_bound bound = HWNAS_BOUND_COMPUTE; name && bound <= HWNAS_BOUND_MEMORY; bound++)
        if (!strcmp(name, hwnas_bound_name(bound)))
            return bound;
    return HWNAS_BOUND_NONE;
}

static hwnas_layer layer_of(hwnas_arena *arena, const json_t *json)
{
    const double macs = hwnas_json_number(json, "macs");
    return (hwnas_layer){.name = text_of(arena, json, "name"),
                         .ops = text_of(arena, json, "operators"),
                         .how = text_of(arena, json, "how"),
                         .position = (size_t)json_integer_value(json_object_get(json, "position")),
                         .time = {.p50 = hwnas_json_number(json, "p50_seconds"),
                                  .low = hwnas_json_number(json, "p50_low_seconds"),
                                  .high = hwnas_json_number(json, "p50_high_seconds")},
                         .macs = macs > 0 && macs < 9e18 ? (int64_t)macs : 0,
                         .bytes = hwnas_json_number(json, "bytes"),
                         .weight_bytes = hwnas_json_number(json, "weight_bytes"),
                         .least_seconds = hwnas_json_number(json, "least_seconds"),
                         .bound = bound_of(json)};
}

hwnas_layers *hwnas_layers_of_json(hwnas_arena *arena, const json_t *json)
{
    const json_t *list = json_object_get(json, "list"),
                 *roofline = json_object_get(json, "roofline");
    hwnas_layers *out = hwnas_arena_alloc(arena, sizeof *out);
    *out = (hwnas_layers){.n = json_array_size(list),
                          .n_samples = (size_t)json_integer_value(json_object_get(json, "samples")),
                          .layers =
                              hwnas_arena_alloc(arena, json_array_size(list) * sizeof *out->layers),
                          .whole = {.p50 = hwnas_json_number(json, "whole_seconds"),
                                    .low = hwnas_json_number(json, "whole_low_seconds"),
                                    .high = hwnas_json_number(json, "whole_high_seconds")},
                          .mark = hwnas_json_number(json, "mark_seconds"),
                          .ratio = {.p50 = hwnas_json_number(json, "ratio"),
                                    .low = hwnas_json_number(json, "ratio_low"),
                                    .high = hwnas_json_number(json, "ratio_high")},
                          .has_roofline = json_is_object(roofline)};
    for (size_t i = 0; i < out->n; i++) {
        out->layers[i] = layer_of(arena, json_array_get(list, i));
        out->sum += out->layers[i].time.p50;
    }
    if (out->has_roofline)
        hwnas_roofline_of_json(&out->roofline, roofline);
    return out;
}
