/* broadcasts.c: which elementwise operators of two tensors, and softmax, run row by row; where the
 * operands of each row are. */
#include "device/onednn/broadcasts.h"

#include "device/onednn/broadcast_rows.h"
#include "graph/op.h"

typedef hwnas_onednn_group group;
typedef hwnas_onednn_broadcast broadcasts;

/* ---- Which nodes ---- */

static bool is_binary(const hwnas_node *node)
{
    dnnl_alg_kind_t alg;
    return hwnas_onednn_binary(&alg, node);
}

static bool is_number(const hwnas_tensor *t)
{
    return t->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(t) == 1;
}

/* Which input is worked on, the other one being the operand; -1: neither. */
static int main_input(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    if (hwnas_node_is_whole(graph, node) || !is_binary(node) || out->rank < 2)
        return -1;
    for (int i = 0; i < (node->op->commutes ? 2 : 1); i++) {
        const hwnas_tensor *in = hwnas_node_input(graph, node, i);
        if (in->kind != HWNAS_TENSOR_WEIGHT && hwnas_same_shape(in, out) &&
            hwnas_node_input(graph, node, 1 - i)->rank <= out->rank)
            return i;
    }
    return -1;
}

/* The same of what stands alone: the first, where neither has the result's shape. */
static int first_input(const hwnas_graph *graph, const hwnas_node *node)
{
    const int input = main_input(graph, node);
    return input < 0 ? 0 : input;
}

static const hwnas_tensor *operand_of(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_node_input(graph, node, 1 - main_input(graph, node));
}

/* Of the result's dimension `i`; 1 where the operand is repeated. */
static int64_t dim_of(const hwnas_tensor *operand, const hwnas_tensor *out, int i)
{
    const int at = i - (out->rank - operand->rank);
    return at < 0 ? 1 : operand->dims[at];
}

/* So little that a partition of oneDNN's takes longer to begin, 3 to 5 us, than loops to end: what
 * a decoder does to one token between its products. */
static bool is_little(const hwnas_tensor *out)
{
    enum { MOST = 1 << 13 };
    return hwnas_tensor_count(out) <= MOST;
}

/* Whether the values differ along a dimension that is neither the first nor one of the last two. */
static bool differs_between(const hwnas_tensor *operand, const hwnas_tensor *out)
{
    for (int i = 1; i < out->rank - 2; i++)
        if (dim_of(operand, out, i) > 1)
            return true;
    return false;
}

/* Repeated along the last dimension and along one before others that it has: oneDNN has reference code
 * for such an operand, 60 ns for a value. */
static bool is_column_of_each(const hwnas_tensor *operand, const hwnas_tensor *out)
{
    bool is_repeated = false;
    for (int i = 0; i < out->rank - 1; i++) {
        const int64_t n = dim_of(operand, out, i);
        if (n > 1 && is_repeated)
            return out->dims[out->rank - 1] > 1 && dim_of(operand, out, out->rank - 1) == 1;
        is_repeated |= n == 1 && out->dims[i] > 1;
    }
    return false;
}

/* Repeated along all but the first of three dimensions or more, for which oneDNN has no fast code
 * either. */
static bool is_one_for_each(const hwnas_tensor *operand, const hwnas_tensor *out)
{
    return out->rank >= 3 && dim_of(operand, out, 0) > 1 &&
           hwnas_tensor_count(operand) == out->dims[0];
}

static bool keeps_rows(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0),
                       *out = hwnas_node_output(graph, node);
    return node->op->id == HWNAS_OP_RESHAPE && in->rank > 0 && out->rank > 0 &&
           in->kind == HWNAS_TENSOR_ACTIVATION && in->dtype == HWNAS_FLOAT32 &&
           in->dims[in->rank - 1] == out->dims[out->rank - 1];
}

static bool is_last_axis(const hwnas_graph *graph, const hwnas_node *softmax)
{
    const int64_t axis = hwnas_node_attr(softmax, "axis")->ints[0];
    return axis == -1 || axis == hwnas_node_output(graph, softmax)->rank - 1;
}

/* Rows are read as they are: none of the inputs is an image with channels last. */
static bool reads_plain(const hwnas_fusion *f, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (hwnas_onednn_finder_of(f)->layouts[node->inputs[i]] == HWNAS_ONEDNN_IMAGE)
            return false;
    return true;
}

/* The node that makes a tensor for one reader alone and may be worked on with it, or -1. */
static int free_maker(const hwnas_fusion *f, int tensor)
{
    const int node = f->graph->tensors[tensor].producer;
    return node >= 0 && hwnas_lone_reader(&f->uses[tensor]) >= 0 &&
                   f->uses[tensor].n_inputs == 1 && /* it is no operand of the same node */
                   f->group_of[node] == HWNAS_FUSION_NO_GROUP
               ? node
               : -1;
}

/* What stands before a softmax, the last first; the first of them is no reshape. */
static int find_before(int nodes[HWNAS_FUSION_LONGEST], const hwnas_fusion *f, int softmax)
{
    const hwnas_graph *graph = f->graph;
    int n = 0, n_whole = 0, tensor = graph->nodes[softmax].inputs[0], at;
    while (n + 1 < HWNAS_FUSION_LONGEST && (at = free_maker(f, tensor)) >= 0) {
        const hwnas_node *node = &graph->nodes[at];
        const int input = keeps_rows(graph, node) ? 0 : main_input(graph, node);
        if (input < 0 || !reads_plain(f, node))
            break;
        nodes[n++] = at;
        n_whole = is_binary(node) ? n : n_whole;
        tensor = node->inputs[input];
    }
    return n_whole;
}

/* oneDNN's attention is fast with one operand at most, of which the heads share the values. */
static bool is_slow_attention(const hwnas_graph *graph, const int *nodes, int n)
{
    int n_operands = 0;
    for (int i = 0; i < n; i++) {
        const hwnas_node *node = &graph->nodes[nodes[i]];
        if (!is_binary(node))
            return true;
        const hwnas_tensor *operand = operand_of(graph, node);
        n_operands += !is_number(operand);
        if (differs_between(operand, hwnas_node_output(graph, node)) || n_operands > 1)
            return true;
    }
    return false;
}

static void begin(hwnas_fusion *f, group *g, int last)
{
    hwnas_fusion_take(f, g, last);
    g->chain.takes = 0;
    g->bias = -1;
    g->layout = HWNAS_ONEDNN_PLAIN;
    g->is_broadcast = true;
}

static bool may_begin(const hwnas_fusion *f, int node)
{
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    return finder->is_refused && !finder->is_refused[node] &&
           !hwnas_node_is_whole(f->graph, &f->graph->nodes[node]);
}

bool hwnas_onednn_take_scores(hwnas_fusion *f, void *into, int node)
{
    int before[HWNAS_FUSION_LONGEST];
    if (f->graph->nodes[node].op->id != HWNAS_OP_SOFTMAX || !may_begin(f, node) ||
        !is_last_axis(f->graph, &f->graph->nodes[node]) || !reads_plain(f, &f->graph->nodes[node]))
        return false;
    int n = find_before(before, f, node);
    const bool is_quicker = hwnas_onednn_finder_of(f)->has_attention && n > 0 &&
                            is_little(hwnas_node_output(f->graph, &f->graph->nodes[node]));
    if (!is_quicker && !is_slow_attention(f->graph, before, n))
        return false;
    while (n > 0)
        hwnas_fusion_take(f, into, before[--n]);
    begin(f, into, node);
    return true;
}

/* oneDNN takes the first operand for one of the result's shape. */
static bool expands_first(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    return !hwnas_same_shape(hwnas_node_input(graph, node, 0), out) &&
           (!node->op->commutes || !hwnas_same_shape(hwnas_node_input(graph, node, 1), out));
}

/* Outside of images, where the library's primitives were not asked. */
static bool is_slow_outside(const hwnas_fusion *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->graph;
    if (hwnas_onednn_finder_of(f)->layouts[node->output] == HWNAS_ONEDNN_IMAGE ||
        !reads_plain(f, node) || main_input(graph, node) < 0)
        return false;
    const hwnas_tensor *out = hwnas_node_output(graph, node), *other = operand_of(graph, node);
    return is_little(out) || (!hwnas_same_shape(other, out) &&
                              (differs_between(other, out) || is_column_of_each(other, out) ||
                               is_one_for_each(other, out)));
}

bool hwnas_onednn_take_broadcast(hwnas_fusion *f, void *into, int node)
{
    const hwnas_node *first = &f->graph->nodes[node];
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    if (!finder->is_refused || hwnas_node_is_whole(f->graph, first) || !is_binary(first) ||
        !(finder->is_refused[node] || expands_first(f->graph, first) || is_slow_outside(f, first)))
        return false;
    begin(f, into, node);
    return true;
}

/* ---- Compiling ---- */

/* An operand along the dimensions of a result, as these follow each other in memory. */
typedef struct view {
    int rank;
    int64_t dims[HWNAS_MAX_RANK],
        strides[HWNAS_MAX_RANK]; /* of the result; of the operand, values */
} view;

/* What is compiled. */
typedef struct maker {
    const hwnas_graph *graph;
    const hwnas_onednn_layout *layouts; /* by tensor */
    const group *group;
    hwnas_onednn_step *step;
    broadcasts *made;
    int n_last; /* dimensions that are a row */
} maker;

static const hwnas_node *node_of(const maker *m, int k)
{
    return &m->graph->nodes[m->group->chain.nodes[k]];
}

static bool is_image(const maker *m, int tensor)
{
    return m->layouts[tensor] == HWNAS_ONEDNN_IMAGE;
}

/* From one value to the next along dimension `i`. */
static int64_t stride_of(const maker *m, int tensor, int i)
{
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    int64_t stride = 1;
    if (is_image(m, tensor) && i == 1)
        return 1;
    for (int k = i + 1; k < t->rank; k++)
        stride *= t->dims[k];
    return is_image(m, tensor) && i > 1 ? stride * t->dims[1] : stride;
}

/* Dimensions of 1 are left out, except for the last one where `keeps_last`. */
static view view_of(const maker *m, const hwnas_node *node, int input, bool keeps_last)
{
    static const int of_image[] = {0, 2, 3, 1};
    view v = {0};
    const int tensor = node->inputs[input];
    const hwnas_tensor *t = &m->graph->tensors[tensor], *out = hwnas_node_output(m->graph, node);
    for (int i = 0; i < out->rank; i++) {
        const int axis = is_image(m, node->output) ? of_image[i] : i;
        if (out->dims[axis] == 1 && !(keeps_last && i == out->rank - 1))
            continue;
        v.dims[v.rank] = out->dims[axis];
        v.strides[v.rank++] =
            dim_of(t, out, axis) > 1 ? stride_of(m, tensor, axis - (out->rank - t->rank)) : 0;
    }
    return v;
}

/* How many of the last dimensions are a row: each operand walks along all of them as along one. */
static int dims_of_rows(const maker *m)
{
    const view a = view_of(m, node_of(m, 0), first_input(m->graph, node_of(m, 0)), false);
    const view b = view_of(m, node_of(m, 0), 1 - first_input(m->graph, node_of(m, 0)), false);
    int at = a.rank - 1;
    while (at > 0 && a.strides[at - 1] == a.strides[at] * a.dims[at] &&
           b.strides[at - 1] == b.strides[at] * b.dims[at])
        at--;
    return at < 0 ? 0 : a.rank - at;
}

/* Where an operand's values of each row are: dimensions that it passes alike are one. */
static hwnas_onednn_operand find_rows(const maker *m, const hwnas_node *node, int input)
{
    const view v = view_of(m, node, input, m->made->ends_with_softmax);
    hwnas_onednn_operand o = {.input = (int)m->step->n_inputs,
                              .step = v.rank ? v.strides[v.rank - 1] : 0};
    for (int i = v.rank - m->n_last - 1; i >= 0; i--) {
        const int last = o.rank - 1;
        if (last >= 0 && o.strides[last] * o.dims[last] == v.strides[i]) {
            o.dims[last] *= v.dims[i];
            continue;
        }
        o.dims[o.rank] = v.dims[i];
        o.strides[o.rank++] = v.strides[i];
    }
    m->step->input_ids[m->step->n_inputs++] = node->inputs[input];
    return o;
}

static void begin_with(const maker *m, const hwnas_node *node)
{
    const int input = first_input(m->graph, node), tensor = node->inputs[input];
    m->made->first = find_rows(m, node, input);
    m->made->may_overwrite =
        m->graph->tensors[tensor].kind == HWNAS_TENSOR_ACTIVATION &&
        hwnas_same_shape(&m->graph->tensors[tensor], hwnas_node_output(m->graph, node)) &&
        is_image(m, tensor) == is_image(m, node->output);
}

static void add_operation(const maker *m, const hwnas_node *node)
{
    broadcasts *b = m->made;
    const int input = 1 - first_input(m->graph, node);
    const hwnas_tensor *t = hwnas_node_input(m->graph, node, input);
    hwnas_onednn_operation *o = &b->operations[b->n_operations++];
    hwnas_onednn_binary(&o->alg, node);
    if (is_number(t)) {
        o->other = (hwnas_onednn_operand){.input = -1};
        hwnas_tensor_fill(t, &o->other.number);
        return;
    }
    b->may_overwrite &= node->inputs[input] != m->step->input_ids[0];
    o->other = find_rows(m, node, input);
}

hwnas_status hwnas_onednn_broadcast_compile(hwnas_onednn_step *step, const hwnas_graph *graph,
                                            const group *g, const hwnas_onednn_layout *layouts,
                                            hwnas_arena *arena)
{
    maker m = {.graph = graph, .layouts = layouts, .group = g, .step = step, .n_last = 1};
    const int n = g->chain.n_nodes;
    broadcasts *b = m.made = step->state = hwnas_alloc(sizeof *b);
    b->ends_with_softmax = node_of(&m, n - 1)->op->id == HWNAS_OP_SOFTMAX;
    if (!b->ends_with_softmax)
        m.n_last = dims_of_rows(&m);
    step->n_inputs = 0;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_alloc(arena, (1 + (size_t)n) * sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &g->chain.output, sizeof *step->output_ids);
    begin_with(&m, node_of(&m, 0));
    const view v = view_of(&m, node_of(&m, n - 1), 0, b->ends_with_softmax);
    b->n = b->n_rows = 1;
    for (int i = 0; i < v.rank; i++)
        *(i < v.rank - m.n_last ? &b->n_rows : &b->n) *= v.dims[i];
    for (int k = 0; k < n; k++)
        if (is_binary(node_of(&m, k)))
            add_operation(&m, node_of(&m, k));
    return HWNAS_OK;
}
