/* broadcasts.c: which elementwise operators of two tensors, and softmax, run row by row; where the
 * operands of each row are. */
#include "device/onednn/broadcasts.h"

#include "device/onednn/broadcast_rows.h"
#include "graph/op.h"

typedef hwnas_onednn_group group;
typedef hwnas_onednn_operation operation;
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

bool hwnas_onednn_take_broadcast(hwnas_fusion *f, void *into, int node)
{
    const hwnas_graph *graph = f->graph;
    const hwnas_node *first = &graph->nodes[node];
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    if (!may_begin(f, node) || finder->layouts[first->output] == HWNAS_ONEDNN_IMAGE ||
        !reads_plain(f, first) || main_input(graph, first) < 0)
        return false;
    const hwnas_tensor *out = hwnas_node_output(graph, first), *operand = operand_of(graph, first);
    if (!is_little(out) && (hwnas_same_shape(operand, out) ||
                            (!differs_between(operand, out) && !is_column_of_each(operand, out))))
        return false;
    begin(f, into, node);
    return true;
}

/* ---- Compiling ---- */

/* How many of the last dimensions are a row: each operand either has all of them or none. */
static int dims_of_rows(const hwnas_graph *graph, const group *g)
{
    const hwnas_tensor *out = &graph->tensors[g->chain.output];
    int n = out->rank;
    for (int k = 0; k < g->chain.n_nodes; k++) {
        const hwnas_node *node = &graph->nodes[g->chain.nodes[k]];
        if (!is_binary(node))
            return 1;
        const hwnas_tensor *operand = operand_of(graph, node);
        const bool is_repeated = dim_of(operand, out, out->rank - 1) == 1;
        for (int same = 1; same < n; same++) {
            const int at = out->rank - 1 - same;
            if (dim_of(operand, out, at) != (is_repeated ? 1 : out->dims[at]))
                n = same;
        }
    }
    return n;
}

/* Where an operand's values of each row are: dimensions that it passes alike are one. */
static void find_rows(operation *o, const hwnas_tensor *operand, const hwnas_tensor *out,
                      int n_last)
{
    int64_t stride = 1;
    for (int i = out->rank - 1; i >= out->rank - n_last; i--)
        stride *= dim_of(operand, out, i);
    o->is_per_value = stride > 1;
    for (int i = out->rank - n_last - 1; i >= 0; i--) {
        const int64_t has = dim_of(operand, out, i), step = has > 1 ? stride : 0;
        const int last = o->rank - 1;
        stride *= has;
        if (out->dims[i] == 1)
            continue;
        if (last >= 0 && o->strides[last] * o->dims[last] == step) {
            o->dims[last] *= out->dims[i];
            continue;
        }
        o->dims[o->rank] = out->dims[i];
        o->strides[o->rank++] = step;
    }
}

static void add_operation(broadcasts *b, hwnas_onednn_step *step, const hwnas_graph *graph,
                          const hwnas_node *node, int n_last)
{
    const int operand = node->inputs[1 - main_input(graph, node)];
    const hwnas_tensor *t = &graph->tensors[operand];
    operation *o = &b->operations[b->n_operations++];
    *o = (operation){.input = -1};
    hwnas_onednn_binary(&o->alg, node);
    if (is_number(t)) {
        hwnas_tensor_fill(t, &o->number);
        return;
    }
    o->input = (int)step->n_inputs;
    b->reads_itself |= operand == step->input_ids[0];
    step->input_ids[step->n_inputs++] = operand;
    find_rows(o, t, hwnas_node_output(graph, node), n_last);
}

hwnas_status hwnas_onednn_broadcast_compile(hwnas_onednn_step *step, const hwnas_graph *graph,
                                            const group *g, hwnas_arena *arena)
{
    const hwnas_tensor *out = &graph->tensors[g->chain.output];
    const hwnas_node *first = &graph->nodes[g->chain.nodes[0]];
    const int n_last = dims_of_rows(graph, g);
    broadcasts *b = step->state = hwnas_alloc(sizeof *b);
    b->n = b->n_rows = 1;
    for (int i = 0; i < out->rank; i++)
        *(i < out->rank - n_last ? &b->n_rows : &b->n) *= out->dims[i];
    step->n_inputs = step->n_outputs = 1;
    step->input_ids =
        hwnas_arena_alloc(arena, (1 + (size_t)g->chain.n_nodes) * sizeof *step->input_ids);
    step->input_ids[0] = first->inputs[main_input(graph, first)];
    step->output_ids = hwnas_arena_copy(arena, &g->chain.output, sizeof *step->output_ids);
    for (int k = 0; k < g->chain.n_nodes; k++) {
        const hwnas_node *node = &graph->nodes[g->chain.nodes[k]];
        b->ends_with_softmax |= node->op->id == HWNAS_OP_SOFTMAX;
        if (is_binary(node))
            add_operation(b, step, graph, node, n_last);
    }
    return HWNAS_OK;
}
