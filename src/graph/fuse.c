/* fuse.c: operators that were written as several. A device has one fast operator for each of these;
 * exporters for older ONNX write what it is made of. */
#include <stdlib.h>
#include <string.h>

#include "graph/pattern.h"

enum { MAX_ATTRS = 3 };

/* The node where an operator ends: what it becomes. */
typedef struct replacement {
    const struct row *row; /* NULL: it stays, unless it is inside */
    bool is_inside;        /* it is a part of another one's, and goes */
    int tensors[HWNAS_PATTERN_N_VARIABLES];
    hwnas_attr attrs[MAX_ATTRS];
} replacement;

typedef struct fuser {
    const hwnas_graph *graph;
    hwnas_uses *uses;
    replacement *all; /* by node */
    replacement next; /* what is being looked for */
} fuser;

/* ---- What patterns do not say ---- */

/* Finds the operator's attributes. False: it is another one after all. */
typedef bool read_match(hwnas_attr *attrs, const fuser *f, const hwnas_match *match);

static bool has_no_attrs(hwnas_attr *attrs, const fuser *f, const hwnas_match *match)
{
    (void)attrs, (void)f, (void)match;
    return true;
}

static bool is_by_tanh(hwnas_attr *attrs, const fuser *f, const hwnas_match *match)
{
    (void)f, (void)match;
    attrs[0] = (hwnas_attr){.is_set = true, .n = 1, .ints = {1}};
    return true;
}

static bool is_softmax(hwnas_attr *attrs, const fuser *f, const hwnas_match *match)
{
    const hwnas_attr *axes = hwnas_node_attr(match->reduction, "axes");
    (void)f;
    attrs[0] = (hwnas_attr){.is_set = true, .n = 1, .ints = {axes->ints[0]}};
    return axes->n == 1;
}

/* Is there a weight for each value of the last dimensions? It may have dimensions of 1 before,
 * where nobody else reads it and they can be taken away. */
static bool is_weight_of(const fuser *f, int tensor, const hwnas_tensor *x, int n_dims)
{
    const hwnas_tensor *weight = &f->graph->tensors[tensor];
    const int n_more = weight->rank - n_dims;
    if (n_more < 0 || (n_more > 0 && (f->uses[tensor].n_inputs > 1 || f->uses[tensor].is_output)))
        return false;
    for (int i = 0; i < n_more; i++)
        if (weight->dims[i] != 1)
            return false;
    return !memcmp(weight->dims + n_more, x->dims + x->rank - n_dims,
                   (size_t)n_dims * sizeof *x->dims);
}

/* Of the last dimensions. */
static bool is_norm(hwnas_attr *attrs, const fuser *f, const hwnas_match *match)
{
    enum { AXIS, EPSILON };
    const hwnas_attr *axes = hwnas_node_attr(match->reduction, "axes");
    const hwnas_tensor *x = &f->graph->tensors[match->tensors[HWNAS_PATTERN_X]];
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] != x->rank - axes->n + i)
            return false;
    for (int i = HWNAS_PATTERN_SCALE; i < HWNAS_PATTERN_N_VARIABLES; i++)
        if (match->tensors[i] >= 0 && !is_weight_of(f, match->tensors[i], x, axes->n))
            return false;
    attrs[AXIS] = (hwnas_attr){.is_set = true, .n = 1, .ints = {-axes->n}};
    attrs[EPSILON] = (hwnas_attr){.is_set = true, .number = match->number};
    return axes->n > 0 && match->number >= 0 && match->number <= 1;
}

/* ---- The operators ---- */

#define CENTRED "(+ x (- (mean x)))"
#define ROOT_OF_VARIANCE "(^ (+ (mean (* (^ " CENTRED " 2))) #) -0.5)"
#define ROOT_OF_SQUARES "(^ (+ (mean (* (^ x 2))) #) -0.5)"
#define BELOW_GREATEST "(+ x (- (reduce_max x)))"
#define SIXTH "0.16666666666666667"

/* Of several that end at one node the first counts. */
static const struct row {
    hwnas_op_id op;
    const char *pattern;
    read_match *read;
} rows[] = {
    {HWNAS_OP_GELU, "(* (+ (erf (* x 0.70710678118654752)) 1) x 0.5)", has_no_attrs},
    {HWNAS_OP_GELU, "(* (+ (tanh (* (+ x (* (^ x 3) 0.044715)) 0.79788456080286536)) 1) x 0.5)",
     is_by_tanh},
    {HWNAS_OP_GELU, "(* (+ (tanh (* x (+ (* (^ x 2) 0.044715) 1) 0.79788456080286536)) 1) x 0.5)",
     is_by_tanh},
    {HWNAS_OP_HARD_SWISH, "(* (clip (+ x 3) 0 6) x " SIXTH ")", has_no_attrs},
    {HWNAS_OP_HARD_SWISH, "(* (hard_sigmoid x " SIXTH " 0.5) x)", has_no_attrs},
    {HWNAS_OP_HARD_SIGMOID, "(* (clip (+ x 3) 0 6) " SIXTH ")", has_no_attrs},
    {HWNAS_OP_HARD_SIGMOID, "(clip (+ (* x " SIXTH ") 0.5) 0 1)", has_no_attrs},
    {HWNAS_OP_MISH, "(* (tanh (softplus x)) x)", has_no_attrs},
    {HWNAS_OP_MISH, "(* (tanh (log (+ (exp x) 1))) x)", has_no_attrs},
    {HWNAS_OP_SIGMOID, "(* (^ (+ (exp (+ (- x))) 1) -1))", has_no_attrs},
    {HWNAS_OP_SOFTMAX, "(* (^ (reduce_sum (exp " BELOW_GREATEST ")) -1) (exp " BELOW_GREATEST "))",
     is_softmax},
    {HWNAS_OP_SOFTMAX, "(* (^ (reduce_sum (exp x)) -1) (exp x))", is_softmax},
    {HWNAS_OP_LAYER_NORM, "(+ (* " ROOT_OF_VARIANCE " " CENTRED " S) B)", is_norm},
    {HWNAS_OP_LAYER_NORM,
     "(+ (* " ROOT_OF_VARIANCE " x S) (- (* " ROOT_OF_VARIANCE " (mean x) S)) B)", is_norm},
    {HWNAS_OP_LAYER_NORM, "(* " ROOT_OF_VARIANCE " " CENTRED " S)", is_norm},
    {HWNAS_OP_LAYER_NORM, "(* " ROOT_OF_VARIANCE " " CENTRED ")", is_norm},
    {HWNAS_OP_RMS_NORM, "(* " ROOT_OF_SQUARES " x S)", is_norm},
    {HWNAS_OP_RMS_NORM, "(* " ROOT_OF_SQUARES " x)", is_norm},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- Finding them ---- */

static bool accepts(const hwnas_match *match, void *context)
{
    fuser *f = context;
    for (int i = 0; i < match->n_nodes; i++)
        if (f->all[match->nodes[i]].is_inside)
            return false;
    f->next = (replacement){.row = f->next.row};
    memcpy(f->next.tensors, match->tensors, sizeof match->tensors);
    return f->next.row->read(f->next.attrs, f, match);
}

/* Whether an operator ends at a node. */
static bool find(fuser *f, const hwnas_pattern *const *patterns, int n)
{
    hwnas_match match;
    for (int i = 0; i < N_ROWS; i++) {
        f->next.row = &rows[i];
        if (!hwnas_pattern_match(&match, patterns[i], f->graph, f->uses, n, accepts, f))
            continue;
        for (int k = 0; k < match.n_nodes; k++)
            f->all[match.nodes[k]].is_inside = true;
        f->all[n] = f->next;
        return true;
    }
    return false;
}

/* From the last node back, so that no end of a part is taken for the whole. */
static bool find_all(fuser *f)
{
    const hwnas_pattern *patterns[N_ROWS];
    hwnas_arena *arena = hwnas_arena_new();
    bool is_found = false;
    for (int i = 0; i < N_ROWS; i++)
        patterns[i] = hwnas_pattern_parse(arena, rows[i].pattern);
    for (int n = (int)f->graph->n_nodes; n-- > 0;)
        if (!f->all[n].is_inside)
            is_found |= find(f, patterns, n);
    hwnas_arena_free(arena);
    return is_found;
}

/* ---- Replacing them ---- */

/* A weight without the dimensions of 1 before those of the operator. */
static hwnas_status take_weight(int *out, hwnas_rewrite *r, int tensor, int n_dims)
{
    if (r->place[tensor] < 0)
        TRY(hwnas_rewrite_copy_weight(r, tensor));
    *out = r->place[tensor];
    hwnas_tensor *weight = &r->to->tensors[*out];
    memmove(weight->dims, weight->dims + weight->rank - n_dims,
            (size_t)n_dims * sizeof *weight->dims);
    weight->rank = n_dims;
    return HWNAS_OK;
}

/* The scale where none is written. */
static hwnas_status add_one(int *out, hwnas_rewrite *r, const hwnas_node *node)
{
    const char *name = hwnas_arena_printf(r->to->arena, "%s.one", node->name);
    return hwnas_graph_add_constant(out, r->to, name, 1, (const int64_t[]){1}, (const float[]){1});
}

static hwnas_status replace(hwnas_rewrite *r, const hwnas_node *node, const replacement *by)
{
    const hwnas_op *op = hwnas_ops[by->row->op];
    int inputs[HWNAS_PATTERN_N_VARIABLES], n = 1;
    if (r->place[by->tensors[HWNAS_PATTERN_X]] < 0)
        TRY(hwnas_rewrite_copy_weight(r, by->tensors[HWNAS_PATTERN_X]));
    inputs[0] = r->place[by->tensors[HWNAS_PATTERN_X]];
    for (int i = HWNAS_PATTERN_SCALE; i < HWNAS_PATTERN_N_VARIABLES; i++)
        if (by->tensors[i] >= 0)
            TRY(take_weight(&inputs[n++], r, by->tensors[i], -(int)by->attrs[0].ints[0]));
    if (op->min_weights && n == 1)
        TRY(add_one(&inputs[n++], r, node));
    TRY(hwnas_graph_add_node(&r->place[node->output], r->to, op, node->name, by->attrs, n, inputs,
                             false));
    hwnas_rewrite_keep_name(r, node->output);
    return HWNAS_OK;
}

static hwnas_status fuse_nodes(hwnas_rewrite *r)
{
    const fuser *f = r->context;
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        if (f->all[n].row)
            TRY(replace(r, node, &f->all[n]));
        else if (!f->all[n].is_inside)
            TRY(hwnas_rewrite_copy_node(r, node));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_graph_fuse(hwnas_graph **out, const hwnas_graph *graph)
{
    fuser f = {.graph = graph, .uses = hwnas_graph_uses(graph, NULL, NULL)};
    f.all = hwnas_alloc((graph->n_nodes + 1) * sizeof *f.all);
    const bool is_found = find_all(&f);
    hwnas_status status = is_found ? hwnas_graph_remake(out, graph, fuse_nodes, &f) : HWNAS_OK;
    free(f.all);
    free(f.uses);
    return status;
}
