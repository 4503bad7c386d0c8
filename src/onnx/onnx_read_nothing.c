/* onnx_read_nothing.c: what has no values, such as the cache before the first token. No tensor of
 * the graph can be it, so the reader knows its dimensions and hands them on through nodes that only
 * pass values on. */
#include <inttypes.h>
#include <string.h>

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

const int64_t *hwnas_onnx_empty_dims(int *rank, const reader *r, const char *name)
{
    const named *from = hwnas_onnx_find_origin(r, name);
    if (!from || !hwnas_onnx_is_nothing(r, name))
        return NULL;
    if (from->constant && from->constant->n_dims > HWNAS_MAX_RANK)
        return NULL;
    *rank = from->constant ? (int)from->constant->n_dims : from->empty_rank;
    return from->constant ? from->constant->dims : from->empty_dims;
}

void hwnas_onnx_set_nothing(reader *r, named *value, int rank, const int64_t *dims)
{
    value->is_empty = true;
    value->empty_rank = rank;
    value->empty_dims =
        dims ? hwnas_arena_copy(r->graph->arena, dims, (size_t)rank * sizeof *dims) : NULL;
}

void hwnas_onnx_give_nothing(reader *r, const Onnx__NodeProto *node, int rank, const int64_t *dims)
{
    hwnas_onnx_set_nothing(r, hwnas_onnx_find_value(r, node->output[0]), rank, dims);
}

/* The dimensions of the node's first input where these are known and it has no values; else NULL.
 */
static const int64_t *first_dims(int *rank, const reader *r, const Onnx__NodeProto *node)
{
    return node->n_input ? hwnas_onnx_empty_dims(rank, r, node->input[0]) : NULL;
}

/* ---- another order, another shape ---- */

hwnas_status hwnas_onnx_read_transpose(int *out, reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    (void)out;
    (void)name;
    int rank;
    const int64_t *in = first_dims(&rank, r, node);
    if (!in)
        return HWNAS_OK; /* the table says it */
    hwnas_onnx_list order;
    int64_t dims[HWNAS_MAX_RANK];
    unsigned seen = 0;
    TRY(hwnas_onnx_read_list(&order, r, node, "perm", node->n_input));
    for (int i = 0; i < rank; i++) {
        const int64_t from = order.n <= 0 ? rank - 1 - i : i < order.n ? order.items[i] : -1;
        if (from < 0 || from >= rank || order.n > rank || seen >> from & 1)
            return hwnas_onnx_unsupported(node, "perm", "does not name each dimension once");
        seen |= 1u << from;
        dims[i] = in[from];
    }
    hwnas_onnx_give_nothing(r, node, rank, dims);
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
    const int64_t *in = first_dims(&rank, r, node);
    if (!in)
        return HWNAS_OK; /* the table says it */
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
    hwnas_onnx_give_nothing(r, node, shape.n, shape.items);
    return HWNAS_OK;
}

/* ---- beside others ---- */

/* Whether a part without values goes with one of these dimensions. One of a single dimension goes
 * with all, as PyTorch has it. */
static bool fits_beside(const reader *r, const char *part, int with_rank, const int64_t *with,
                        int64_t axis)
{
    int rank;
    const int64_t *dims = hwnas_onnx_empty_dims(&rank, r, part);
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

/* Parts of which none has values: their dimensions, where all are known. */
static hwnas_status join_nothing(reader *r, const Onnx__NodeProto *node)
{
    const int64_t *known = NULL;
    int64_t dims[HWNAS_MAX_RANK], axis, length = 0;
    bool are_known = true;
    int rank = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        int n = 0;
        const int64_t *part = hwnas_onnx_empty_dims(&n, r, node->input[i]);
        are_known &= part != NULL;
        if (part && n > rank) {
            known = part;
            rank = n;
        }
    }
    if (!are_known || !known) {
        hwnas_onnx_give_nothing(r, node, 0, NULL);
        return HWNAS_OK;
    }
    TRY(check_parts(&axis, r, node, rank, known));
    memcpy(dims, known, (size_t)rank * sizeof *dims);
    for (size_t i = 0; i < node->n_input; i++) {
        int n = 0;
        const int64_t *part = hwnas_onnx_empty_dims(&n, r, node->input[i]);
        if (n == rank && __builtin_add_overflow(length, part[axis], &length))
            return hwnas_onnx_unsupported(node, "axis", "gives a length beyond 2^63");
    }
    dims[axis] = length;
    hwnas_onnx_give_nothing(r, node, rank, dims);
    return HWNAS_OK;
}

/* Parts without values do not count. */
hwnas_status hwnas_onnx_read_concat(int *out, reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    int inputs[HWNAS_MAX_NODE_INPUTS], n = 0;
    int64_t axis;
    bool is_plain = node->n_input > 1 && node->n_input <= HWNAS_MAX_NODE_INPUTS;
    for (size_t i = 0; i < node->n_input; i++)
        is_plain &= !hwnas_onnx_is_nothing(r, node->input[i]);
    if (is_plain)
        return HWNAS_OK;
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
