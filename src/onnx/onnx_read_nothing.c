/* onnx_read_nothing.c: what has no values, such as the cache before the first token. No tensor of
 * the graph can be it, so the reader knows its dimensions and hands them on through nodes. */
#include <inttypes.h>
#include <string.h>

#include "graph/op.h"
#include "graph/ops/elementwise.h"
#include "onnx/onnx_reader.h"

typedef hwnas_onnx_named named;
typedef hwnas_onnx_reader reader;

/* A length below 0 is none: whoever takes the constant refuses it. */
static bool has_no_values(size_t rank, const int64_t *dims)
{
    int64_t least = 1;
    for (size_t i = 0; i < rank; i++)
        least = dims[i] < least ? dims[i] : least;
    return least == 0;
}

bool hwnas_onnx_is_nothing(const reader *r, const char *name)
{
    const named *from = hwnas_onnx_find_origin(r, name);
    return from && (from->is_empty || (from->constant && has_no_values(from->constant->n_dims,
                                                                       from->constant->dims)));
}

bool hwnas_onnx_reads_nothing(const reader *r, const Onnx__NodeProto *node, size_t n)
{
    for (size_t i = 0; i < n && i < node->n_input; i++)
        if (hwnas_onnx_is_nothing(r, node->input[i]))
            return true;
    return false;
}

/* Of what has no values; NULL: it has some, or a constant has more than a tensor of ours can. */
static const int64_t *empty_dims(int *rank, const reader *r, const char *name)
{
    const named *from = hwnas_onnx_find_origin(r, name);
    if (!from || !hwnas_onnx_is_nothing(r, name))
        return NULL;
    if (from->constant && from->constant->n_dims > HWNAS_MAX_RANK)
        return NULL;
    *rank = from->constant ? (int)from->constant->n_dims : from->empty_rank;
    return from->constant ? from->constant->dims : from->empty_dims;
}

hwnas_status hwnas_onnx_dims(int *rank, int64_t *dims, reader *r, const Onnx__NodeProto *node,
                             size_t i)
{
    int input;
    const int64_t *from =
        hwnas_onnx_has_input(node, i) ? empty_dims(rank, r, node->input[i]) : NULL;
    if (!from) {
        TRY(hwnas_onnx_input(&input, r, node, i));
        *rank = r->graph->tensors[input].rank;
        from = r->graph->tensors[input].dims;
    }
    memcpy(dims, from, (size_t)*rank * sizeof *dims);
    return HWNAS_OK;
}

bool hwnas_onnx_give_nothing(reader *r, const char *name, int rank, const int64_t *dims)
{
    if (!has_no_values((size_t)rank, dims))
        return false;
    if (is_empty(name))
        return true;
    named *value = hwnas_onnx_find_value(r, name);
    value->is_empty = true;
    value->is_extra = false;
    value->empty_rank = rank;
    value->empty_dims = hwnas_arena_copy(r->graph->arena, dims, (size_t)rank * sizeof *dims);
    return true;
}

/* ---- value by value ---- */

enum { ALL = HWNAS_MAX_NODE_INPUTS };

/* What gives the common shape of so many inputs, beside operators whose rows say that they work
 * value by value. */
static const struct {
    const char *type;
    size_t n_inputs;
} keepers[] = {
    {"BitShift", 2},   {"CastLike", 1}, {"DequantizeLinear", 1},
    {"LogSoftmax", 1}, {"Max", ALL},    {"Mean", ALL},
    {"Min", ALL},      {"PRelu", 1},    {"QuantizeLinear", 1},
    {"Softmax", 1},    {"Sum", ALL},    {"Trilu", 1},
};

static size_t n_broadcast(const Onnx__NodeProto *node, const hwnas_op *op)
{
    for (size_t i = 0; i < sizeof keepers / sizeof *keepers; i++)
        if (!strcmp(keepers[i].type, node->op_type))
            return keepers[i].n_inputs;
    return op && op->is_elementwise ? (size_t)op->max_inputs : 0;
}

hwnas_status hwnas_onnx_keep_nothing(reader *r, const Onnx__NodeProto *node, const hwnas_op *op)
{
    const size_t n = n_broadcast(node, op);
    hwnas_tensor in = {0}, all = {0};
    if (!hwnas_onnx_reads_nothing(r, node, n))
        return HWNAS_OK;
    for (size_t i = 0; i < n && i < node->n_input; i++) {
        const hwnas_tensor before = all;
        TRY(hwnas_onnx_dims(&in.rank, in.dims, r, node, i));
        if (!hwnas_broadcast_shape(&all, &before, &in))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s cannot join the shapes %s and %s",
                              hwnas_onnx_describe(node).s, hwnas_tensor_shape(&before).s,
                              hwnas_tensor_shape(&in).s);
    }
    (void)hwnas_onnx_give_nothing(r, node->output[0], all.rank, all.dims);
    return HWNAS_OK;
}

/* ---- another order, another shape ---- */

hwnas_status hwnas_onnx_read_transpose(int *out, reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    (void)out;
    (void)name;
    int rank;
    hwnas_onnx_list order;
    int64_t in[HWNAS_MAX_RANK], dims[HWNAS_MAX_RANK];
    unsigned seen = 0;
    if (!hwnas_onnx_reads_nothing(r, node, 1))
        return HWNAS_OK; /* the table says it */
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    TRY(hwnas_onnx_read_list(&order, r, node, "perm", node->n_input));
    for (int i = 0; i < rank; i++) {
        const int64_t from = order.n <= 0 ? rank - 1 - i : i < order.n ? order.items[i] : -1;
        if (from < 0 || from >= rank || order.n > rank || seen >> from & 1)
            return hwnas_onnx_unsupported(node, "perm", "does not name each dimension once");
        seen |= 1u << from;
        dims[i] = in[from];
    }
    (void)hwnas_onnx_give_nothing(r, node->output[0], rank, dims);
    return HWNAS_OK;
}

/* What the input has none of cannot have the shape. `why`: "the shape ..." */
static hwnas_status fail_shape(const Onnx__NodeProto *node, const char *why)
{
    return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: '%.100s' has no values, and the shape %s",
                      hwnas_onnx_describe(node).s, node->input[0], why);
}

hwnas_status hwnas_onnx_read_reshape(int *out, reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    (void)out;
    (void)name;
    int rank, open = -1;
    int64_t in[HWNAS_MAX_RANK];
    if (!hwnas_onnx_reads_nothing(r, node, 1))
        return HWNAS_OK; /* the table says it */
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    hwnas_onnx_list shape;
    const bool copies = !hwnas_onnx_int(node, "allowzero", 0);
    TRY(hwnas_onnx_read_list(&shape, r, node, "shape", 1));
    if (shape.n < 0)
        return fail_shape(node, "is missing");
    bool has_zero = false;
    for (int i = 0; i < shape.n; i++) {
        int64_t *dim = &shape.items[i];
        if (*dim < -1 || (*dim == -1 && open >= 0))
            return fail_shape(node, "has more than one length below 0, or one below -1");
        open = *dim == -1 ? i : open;
        if (*dim == 0 && copies && i >= rank)
            return fail_shape(node, "copies a dimension that is not there");
        *dim = *dim == 0 && copies ? in[i] : *dim;
        has_zero |= *dim == 0;
    }
    /* -1 is what is left: nothing, unless that could be any number. */
    if (has_zero && open >= 0)
        return fail_shape(node, "leaves a length open that could be any");
    if (!has_zero && open < 0)
        return fail_shape(node, "wants some");
    if (open >= 0)
        shape.items[open] = 0;
    (void)hwnas_onnx_give_nothing(r, node->output[0], shape.n, shape.items);
    return HWNAS_OK;
}

/* Also what has values may be expanded to what has none. */
hwnas_status hwnas_onnx_read_expand(int *out, reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    (void)out;
    (void)name;
    hwnas_tensor in = {0}, to = {0}, made = {0};
    hwnas_onnx_list shape;
    TRY(hwnas_onnx_read_list(&shape, r, node, "shape", 1));
    if (shape.n < 0 ||
        (!hwnas_onnx_reads_nothing(r, node, 1) && !has_no_values((size_t)shape.n, shape.items)))
        return HWNAS_OK; /* the table says it */
    TRY(hwnas_onnx_dims(&in.rank, in.dims, r, node, 0));
    to.rank = shape.n;
    memcpy(to.dims, shape.items, sizeof to.dims);
    if (hwnas_broadcast_shape(&made, &in, &to) &&
        hwnas_onnx_give_nothing(r, node->output[0], made.rank, made.dims))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "%s cannot make %s of %s", hwnas_onnx_describe(node).s,
                      hwnas_tensor_shape(&to).s, hwnas_tensor_shape(&in).s);
}

hwnas_status hwnas_onnx_read_gather(int *out, reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    (void)out;
    (void)name;
    int rank, n_index, n = 0;
    int64_t in[HWNAS_MAX_RANK], index[HWNAS_MAX_RANK], dims[2 * HWNAS_MAX_RANK];
    if (!hwnas_onnx_reads_nothing(r, node, 2))
        return HWNAS_OK; /* the table says it */
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    TRY(hwnas_onnx_dims(&n_index, index, r, node, 1));
    int64_t axis = hwnas_onnx_int(node, "axis", 0);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || rank - 1 + n_index > HWNAS_MAX_RANK)
        return hwnas_onnx_unsupported(node, "axis", "does not fit");
    for (int i = 0; i < rank; i++)
        if (i != axis)
            dims[n++] = in[i];
        else
            for (int k = 0; k < n_index; k++)
                dims[n++] = index[k];
    if (hwnas_onnx_give_nothing(r, node->output[0], n, dims))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "%s looks values up in '%.100s', which has none",
                      hwnas_onnx_describe(node).s, node->input[0]);
}

/* ---- beside others ---- */

/* Whether a part without values goes with one of these dimensions. One of a single dimension goes
 * with all, as PyTorch has it. */
static bool fits_beside(const reader *r, const char *part, int with_rank, const int64_t *with,
                        int64_t axis)
{
    int rank;
    const int64_t *dims = empty_dims(&rank, r, part);
    bool fits = !dims || rank == 1 || rank == with_rank;
    for (int i = 0; dims && fits && rank == with_rank && i < rank; i++)
        fits = i == axis || dims[i] == with[i];
    return fits;
}

/* The parts without values fit to one of these dimensions, and the axis is one of them. */
static hwnas_status check_parts(int64_t *axis, const reader *r, const Onnx__NodeProto *node,
                                int rank, const int64_t *dims)
{
    const int64_t given = hwnas_onnx_int(node, "axis", 0);
    *axis = given < 0 ? given + rank : given;
    if (*axis < 0 || *axis >= rank)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: there is no axis %" PRId64,
                          hwnas_onnx_describe(node).s, given);
    for (size_t i = 0; i < node->n_input; i++)
        if (hwnas_onnx_is_nothing(r, node->input[i]) &&
            !fits_beside(r, node->input[i], rank, dims, *axis))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: '%.100s' has another shape than the others",
                              hwnas_onnx_describe(node).s, node->input[i]);
    return HWNAS_OK;
}

/* Parts of which none has values. */
static hwnas_status join_nothing(reader *r, const Onnx__NodeProto *node)
{
    int64_t dims[HWNAS_MAX_RANK], part[HWNAS_MAX_RANK], axis, length = 0;
    int rank = 0, n;
    for (size_t i = 0; i < node->n_input; i++) {
        TRY(hwnas_onnx_dims(&n, part, r, node, i));
        if (n > rank)
            memcpy(dims, part, sizeof dims);
        rank = n > rank ? n : rank;
    }
    TRY(check_parts(&axis, r, node, rank, dims));
    for (size_t i = 0; i < node->n_input; i++) {
        TRY(hwnas_onnx_dims(&n, part, r, node, i));
        if (n == rank && __builtin_add_overflow(length, part[axis], &length))
            return hwnas_onnx_unsupported(node, "axis", "gives a length beyond 2^63");
    }
    dims[axis] = length;
    (void)hwnas_onnx_give_nothing(r, node->output[0], rank, dims);
    return HWNAS_OK;
}

/* Parts without values do not count. */
hwnas_status hwnas_onnx_read_concat(int *out, reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    int inputs[HWNAS_MAX_NODE_INPUTS], n = 0;
    int64_t axis;
    if (node->n_input > 1 && node->n_input <= HWNAS_MAX_NODE_INPUTS &&
        !hwnas_onnx_reads_nothing(r, node, node->n_input))
        return HWNAS_OK; /* the table says it */
    for (size_t i = 0; i < node->n_input; i++) {
        if (hwnas_onnx_is_nothing(r, node->input[i]))
            continue;
        if (n == HWNAS_MAX_NODE_INPUTS)
            return hwnas_onnx_unsupported(node, "inputs", "are more than 64");
        TRY(hwnas_onnx_input(&inputs[n++], r, node, i));
    }
    if (n == 0)
        return join_nothing(r, node);
    const hwnas_tensor *with = &r->graph->tensors[inputs[0]];
    TRY(check_parts(&axis, r, node, with->rank, with->dims));
    const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {axis}};
    if (n > 1)
        return hwnas_onnx_add(out, r, HWNAS_OP_CONCAT, name, NULL, &attr, n, inputs);
    *out = inputs[0];
    return HWNAS_OK;
}
