/* coupling_rules.c: which indices of an operator's inputs, weights and output go together. */
#include "derive/coupling.h"
#include "graph/op.h"

typedef hwnas_coupler coupler;

/* ---- Dimensions ---- */

static int64_t size(const coupler *c, int tensor, int dim)
{
    return c->graph->tensors[tensor].dims[dim];
}

static int rank(const coupler *c, int tensor)
{
    return c->graph->tensors[tensor].rank;
}

static void fix(coupler *c, int tensor, int dim)
{
    const int atom = hwnas_coupler_atom(c, tensor, dim);
    for (int64_t i = 0; i < size(c, tensor, dim); i++)
        hwnas_coupler_join(c, atom + (int)i, 0);
}

static bool is_fixed(coupler *c, int tensor, int dim)
{
    return hwnas_coupler_find(c, hwnas_coupler_atom(c, tensor, dim)) == 0;
}

static void fix_all(coupler *c, int tensor)
{
    for (int d = 0; d < rank(c, tensor); d++)
        fix(c, tensor, d);
}

/* Index by index, from some index of each on. */
static void join_indices(coupler *c, int tensor, int dim, int64_t from, int other, int other_dim,
                         int64_t other_from, int64_t n)
{
    const int a = hwnas_coupler_atom(c, tensor, dim) + (int)from;
    const int b = hwnas_coupler_atom(c, other, other_dim) + (int)other_from;
    for (int64_t i = 0; i < n; i++)
        hwnas_coupler_join(c, a + (int)i, b + (int)i);
}

/* Whole dimensions; one of size 1 that is broadcast has nothing to do with the other. */
static void join(coupler *c, int tensor, int dim, int other, int other_dim)
{
    if (size(c, tensor, dim) == size(c, other, other_dim))
        join_indices(c, tensor, dim, 0, other, other_dim, 0, size(c, tensor, dim));
}

/* Dimensions that are aligned at the last one. */
static void join_aligned(coupler *c, int tensor, int other)
{
    for (int i = 1; i <= rank(c, tensor) && i <= rank(c, other); i++)
        join(c, tensor, rank(c, tensor) - i, other, rank(c, other) - i);
}

/* ---- Rules ---- */

typedef void rule(coupler *c, const hwnas_node *node);

static void everything_fixed(coupler *c, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        fix_all(c, node->inputs[i]);
    fix_all(c, node->output);
}

/* Value by value, also with weights that are broadcast: activations, sums, normalisations. */
static void value_by_value(coupler *c, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        join_aligned(c, node->inputs[i], node->output);
}

/* The weights have a value for each channel. */
static void channel_by_channel(coupler *c, const hwnas_node *node)
{
    join_aligned(c, node->inputs[0], node->output);
    for (int i = 1; i < node->n_inputs; i++)
        join(c, node->inputs[i], 0, node->output, 1);
}

static void softmax(coupler *c, const hwnas_node *node)
{
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    value_by_value(c, node);
    fix(c, node->output, (int)(axis < 0 ? axis + rank(c, node->output) : axis));
}

static void fix_pixels(coupler *c, int tensor)
{
    for (int d = 2; d < rank(c, tensor); d++)
        fix(c, tensor, d);
}

static void window(coupler *c, const hwnas_node *node)
{
    join(c, node->inputs[0], 0, node->output, 0);
    join(c, node->inputs[0], 1, node->output, 1);
    fix_pixels(c, node->inputs[0]);
    fix_pixels(c, node->output);
}

/* Of an image, at the places of a grid. */
static void grid_sample(coupler *c, const hwnas_node *node)
{
    window(c, node);
    fix_all(c, node->inputs[1]);
}

/* Of a convolution in groups each group keeps as many channels as the others: what stands at one
 * index of its group goes together. A depthwise one has a group for each channel; there whole
 * groups go. */
static void conv(coupler *c, const hwnas_node *node)
{
    const int x = node->inputs[0], w = node->inputs[1], y = node->output;
    const int64_t groups = hwnas_node_attr(node, "groups")->ints[0];
    const int64_t in = size(c, x, 1), out = size(c, y, 1);
    const int x1 = hwnas_coupler_atom(c, x, 1), y1 = hwnas_coupler_atom(c, y, 1);
    join(c, x, 0, y, 0);
    fix_pixels(c, x);
    fix_pixels(c, y);
    fix_pixels(c, w);
    join(c, w, 0, y, 1);
    if (node->n_inputs > 2)
        join(c, node->inputs[2], 0, y, 1);
    if (groups == in && groups > 1) {
        for (int64_t o = 0; o < out; o++)
            hwnas_coupler_join(c, y1 + (int)o, x1 + (int)(o / (out / groups)));
        return;
    }
    for (int64_t g = 0; g < groups; g++) {
        const int64_t n_in = in / groups, n_out = out / groups;
        join_indices(c, x, 1, g * n_in, w, 1, 0, n_in);
        join_indices(c, y, 1, g * n_out, y, 1, 0, n_out);
    }
}

static void conv_transpose(coupler *c, const hwnas_node *node)
{
    if (hwnas_node_attr(node, "groups")->ints[0] != 1) {
        everything_fixed(c, node);
        return;
    }
    window(c, node);
    join(c, node->inputs[0], 1, node->inputs[1], 0);
    join(c, node->inputs[1], 1, node->output, 1);
    fix_pixels(c, node->inputs[1]);
    if (node->n_inputs > 2)
        join(c, node->inputs[2], 0, node->output, 1);
}

static void linear(coupler *c, const hwnas_node *node)
{
    join(c, node->inputs[0], 0, node->output, 0);
    join(c, node->inputs[0], 1, node->inputs[1], 1);
    join(c, node->inputs[1], 0, node->output, 1);
    if (node->n_inputs > 2)
        join(c, node->inputs[2], 0, node->output, 1);
}

static void matmul(coupler *c, const hwnas_node *node)
{
    const int a = node->inputs[0], b = node->inputs[1], y = node->output;
    const int ra = rank(c, a), rb = rank(c, b), ry = rank(c, y);
    join(c, a, ra - 1, b, rb - 2);
    join(c, a, ra - 2, y, ry - 2);
    join(c, b, rb - 1, y, ry - 1);
    for (int i = 3; i <= ra; i++)
        join(c, a, ra - i, y, ry - i);
    for (int i = 3; i <= rb; i++)
        join(c, b, rb - i, y, ry - i);
}

static void reduce(coupler *c, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const bool keeps = hwnas_node_attr(node, "keep")->ints[0];
    const int x = node->inputs[0];
    unsigned reduced = 0;
    for (int i = 0; i < axes->n; i++)
        reduced |= 1u << (axes->ints[i] < 0 ? axes->ints[i] + rank(c, x) : axes->ints[i]);
    for (int d = 0, to = 0; d < rank(c, x); d++) {
        const bool is_reduced = reduced >> d & 1;
        if (is_reduced)
            fix(c, x, d);
        else
            join(c, x, d, node->output, to);
        to += !is_reduced || keeps;
    }
}

static void transpose(coupler *c, const hwnas_node *node)
{
    for (int d = 0; d < rank(c, node->output); d++)
        join(c, node->inputs[0], (int)node->attrs->ints[d], node->output, d);
}

static int axis_of(const coupler *c, const hwnas_node *node)
{
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    return (int)(axis < 0 ? axis + rank(c, node->inputs[0]) : axis);
}

static void concat(coupler *c, const hwnas_node *node)
{
    const int axis = axis_of(c, node), y = node->output;
    int64_t at = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const int x = node->inputs[i];
        for (int d = 0; d < rank(c, x); d++)
            if (d != axis)
                join(c, x, d, y, d);
        join_indices(c, x, axis, 0, y, axis, at, size(c, x, axis));
        at += size(c, x, axis);
    }
}

static void slice(coupler *c, const hwnas_node *node)
{
    const int axis = axis_of(c, node), x = node->inputs[0], y = node->output;
    for (int d = 0; d < rank(c, x); d++)
        if (d != axis)
            join(c, x, d, y, d);
    const bool is_run = hwnas_node_attr(node, "step")->ints[0] == 1 && size(c, y, axis) > 1;
    if (is_run) { /* a single index cannot go */
        join_indices(c, x, axis, hwnas_node_attr(node, "begin")->ints[0], y, axis, 0,
                     size(c, y, axis));
        return;
    }
    fix(c, x, axis);
    fix(c, y, axis);
}

static void gather(coupler *c, const hwnas_node *node)
{
    const int table = node->inputs[0], indices = node->inputs[1], y = node->output;
    const int axis = axis_of(c, node), n_new = rank(c, indices);
    fix(c, table, axis);
    fix_all(c, indices);
    for (int d = 0; d < rank(c, table); d++)
        if (d != axis)
            join(c, table, d, y, d < axis ? d : d - 1 + n_new);
    for (int d = 0; d < n_new; d++)
        fix(c, y, axis + d);
}

/* ---- Reshapes ---- */

/* One dimension that is several on the other side: index i of it is the index
 * i / (product of the dimensions behind) % n of each of these. When an index of it goes, the shape
 * stays one only if an index of *one* of the several goes: the factor. The first that nothing fixes
 * is it, as heads in (heads, width of a head); the others are fixed. */
typedef struct factors {
    int whole, whole_dim; /* the one dimension */
    int parts;            /* the tensor of the several */
    int begin, end;       /* their dimensions */
} factors;

static void join_factor(coupler *c, const factors *f, int factor)
{
    const int whole = hwnas_coupler_atom(c, f->whole, f->whole_dim);
    const int part = hwnas_coupler_atom(c, f->parts, factor);
    const int64_t n = size(c, f->parts, factor);
    int64_t behind = 1;
    for (int d = factor + 1; d < f->end; d++)
        behind *= size(c, f->parts, d);
    for (int64_t i = 0; i < size(c, f->whole, f->whole_dim); i++)
        hwnas_coupler_join(c, whole + (int)i, part + (int)(i / behind % n));
    for (int d = f->begin; d < f->end; d++)
        if (d != factor)
            fix(c, f->parts, d);
}

/* `choice` counts the factors from `begin` that turned out to be fixed. One is given up at a time,
 * and only once all nodes were looked at: others may be fixed because of it. */
static void join_factors(coupler *c, const factors *f, int *choice)
{
    const int n = f->end - f->begin;
    while (*choice < n && size(c, f->parts, f->begin + *choice) == 1)
        ++*choice;
    if (*choice < n && c->may_change && is_fixed(c, f->parts, f->begin + *choice)) {
        ++*choice;
        c->is_changed = true;
        return;
    }
    if (*choice < n) {
        join_factor(c, f, f->begin + *choice);
        return;
    }
    fix(c, f->whole, f->whole_dim);
    for (int d = f->begin; d < f->end; d++)
        fix(c, f->parts, d);
}

/* The shortest runs of dimensions, of both sides, that hold as many values. */
static void find_run(const coupler *c, int x, int *x_end, int y, int *y_end)
{
    int64_t in = size(c, x, (*x_end)++), out = size(c, y, (*y_end)++);
    while (in != out && (in < out ? *x_end < rank(c, x) : *y_end < rank(c, y)))
        if (in < out)
            in *= size(c, x, (*x_end)++);
        else
            out *= size(c, y, (*y_end)++);
}

static void reshape(coupler *c, const hwnas_node *node)
{
    enum { BITS = 4 }; /* of a run's choice, 8 dimensions at most; `factor` has room for 7 runs */
    const int x = node->inputs[0], y = node->output;
    int *choices = &c->factor[node - c->graph->nodes];
    for (int i = 0, k = 0, run = 0; i < rank(c, x) && k < rank(c, y); run++) {
        const int i0 = i, k0 = k;
        find_run(c, x, &i, y, &k);
        int choice = *choices >> BITS * run & ((1 << BITS) - 1);
        if (i - i0 == 1 && k - k0 == 1) {
            join(c, x, i0, y, k0);
        } else if (i - i0 == 1) {
            join_factors(c, &(factors){x, i0, y, k0, k}, &choice);
        } else if (k - k0 == 1) {
            join_factors(c, &(factors){y, k0, x, i0, i}, &choice);
        } else {
            for (int d = i0; d < i; d++)
                fix(c, x, d);
            for (int d = k0; d < k; d++)
                fix(c, y, d);
        }
        *choices = (*choices & ~(((1 << BITS) - 1) << BITS * run)) | choice << BITS * run;
    }
}

/* ---- All of them ---- */

/* Of an operator that is not here nothing is known: all is fixed. */
static rule *const rules[HWNAS_N_OPS] = {
    [HWNAS_OP_AVG_POOL] = window,
    [HWNAS_OP_BATCH_NORM] = channel_by_channel,
    [HWNAS_OP_CONCAT] = concat,
    [HWNAS_OP_CONV] = conv,
    [HWNAS_OP_CONV_TRANSPOSE] = conv_transpose,
    [HWNAS_OP_EXPAND] = value_by_value,
    [HWNAS_OP_FLATTEN] = reshape,
    [HWNAS_OP_GATHER] = gather,
    [HWNAS_OP_GLOBAL_AVG_POOL] = window,
    [HWNAS_OP_GRID_SAMPLE] = grid_sample,
    [HWNAS_OP_LAYER_NORM] = value_by_value,
    [HWNAS_OP_LINEAR] = linear,
    [HWNAS_OP_MATMUL] = matmul,
    [HWNAS_OP_MAX_POOL] = window,
    [HWNAS_OP_MEAN] = reduce,
    [HWNAS_OP_PRELU] = value_by_value,
    [HWNAS_OP_REDUCE_MAX] = reduce,
    [HWNAS_OP_REDUCE_SUM] = reduce,
    [HWNAS_OP_RESHAPE] = reshape,
    [HWNAS_OP_RMS_NORM] = value_by_value,
    [HWNAS_OP_SLICE] = slice,
    [HWNAS_OP_SOFTMAX] = softmax,
    [HWNAS_OP_TRANSPOSE] = transpose,
    [HWNAS_OP_UPSAMPLE] = window,
};

/* Functions of each value, by their class or one by one. */
static bool is_value_by_value(const hwnas_op *op)
{
    static const bool also[HWNAS_N_OPS] = {
        [HWNAS_OP_ABS] = true,     [HWNAS_OP_CAST] = true, [HWNAS_OP_CLIP] = true,
        [HWNAS_OP_DROPOUT] = true, [HWNAS_OP_ERF] = true,  [HWNAS_OP_EXP] = true,
        [HWNAS_OP_LOG] = true,     [HWNAS_OP_MAX] = true,  [HWNAS_OP_MIN] = true,
        [HWNAS_OP_NEG] = true,     [HWNAS_OP_POW] = true,  [HWNAS_OP_RECIPROCAL] = true,
        [HWNAS_OP_SCALE] = true,   [HWNAS_OP_SQRT] = true, [HWNAS_OP_WHERE] = true,
    };
    return op->class == HWNAS_CLASS_ACTIVATION || op->class == HWNAS_CLASS_ARITHMETIC ||
           also[op->id];
}

void hwnas_coupler_apply(hwnas_coupler *c, int node)
{
    const hwnas_node *n = &c->graph->nodes[node];
    rule *found = rules[n->op->id];
    if (!found)
        found = is_value_by_value(n->op) ? value_by_value : everything_fixed;
    found(c, n);
}
