#include "onnx/onnx_build.h"

#include <string.h>

/* More is not a network but a file that was made to be large. */
enum { MAX_NODES = 1 << 17, MAX_VALUES = 1 << 24 };

typedef hwnas_onnx_builder builder;

hwnas_status hwnas_onnx_build(builder *b, int *input, hwnas_onnx_reader *r,
                              const Onnx__NodeProto *node, const char *name)
{
    *b = (builder){.r = r, .node = node, .name = name};
    TRY(hwnas_onnx_input(input, r, node, 0));
    b->fallback = *input;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_built(int *out, builder *b, int tensor)
{
    const int producer = b->r->graph->tensors[tensor].producer;
    if (b->status != HWNAS_OK)
        return hwnas_context(b->status, "%s", hwnas_onnx_describe(b->node).s);
    if (b->n && producer >= 0 && (size_t)producer + 1 == b->r->graph->n_nodes)
        b->r->graph->nodes[producer].name =
            hwnas_arena_string(b->r->graph->arena, b->name, strlen(b->name));
    *out = tensor;
    return HWNAS_OK;
}

void hwnas_onnx_refuse(builder *b, const char *what, const char *why)
{
    if (b->status == HWNAS_OK)
        b->status = hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' %s", what, why);
}

hwnas_tensor hwnas_onnx_tensor(const builder *b, int tensor)
{
    return b->r->graph->tensors[tensor];
}

int hwnas_onnx_build_input(builder *b, size_t i)
{
    int input = b->fallback;
    if (b->status == HWNAS_OK)
        b->status = hwnas_onnx_input(&input, b->r, b->node, i);
    return b->status == HWNAS_OK ? input : b->fallback;
}

const hwnas_tensor *hwnas_onnx_build_known(builder *b, size_t i, const char *what)
{
    const hwnas_tensor *known = NULL;
    if (b->status == HWNAS_OK && !hwnas_onnx_has_input(b->node, i))
        hwnas_onnx_refuse(b, what, "is absent");
    if (b->status == HWNAS_OK)
        b->status = hwnas_onnx_constant(&known, b->r, b->node->input[i],
                                        hwnas_onnx_describe(b->node).s);
    if (b->status == HWNAS_OK && !known)
        hwnas_onnx_refuse(b, what, "is computed from the network's input");
    return known;
}

static const char *next_name(builder *b)
{
    return hwnas_arena_printf(b->r->graph->arena, "%s.%d", b->name, ++b->n);
}

int hwnas_onnx_make_n(builder *b, hwnas_op_id op, const hwnas_attr *attrs, int n, const int *inputs)
{
    const hwnas_op *row = hwnas_ops[op];
    int made = b->fallback;
    if (b->status == HWNAS_OK && b->r->graph->n_nodes > MAX_NODES)
        hwnas_onnx_refuse(b, b->name, "would make the network larger than 2^17 nodes");
    for (int i = row->max_inputs; i < n && b->status == HWNAS_OK; i++)
        b->status = hwnas_onnx_take_weight(b->r, row, i - row->max_inputs, inputs[i]);
    if (b->status == HWNAS_OK)
        b->status = hwnas_graph_add_node(&made, b->r->graph, row, next_name(b), attrs, n, inputs,
                                         false);
    return b->status == HWNAS_OK ? made : b->fallback;
}

int hwnas_onnx_make(builder *b, hwnas_op_id op, const hwnas_attr *attrs, int x, int y)
{
    return hwnas_onnx_make_n(b, op, attrs, y < 0 ? 1 : 2, (const int[]){x, y});
}

static hwnas_attr list(int n, const int64_t *items)
{
    hwnas_attr attr = {.is_set = true, .n = n};
    if (n > 0)
        memcpy(attr.ints, items, (size_t)n * sizeof *items);
    return attr;
}

int hwnas_onnx_reshape(builder *b, int x, int n, const int64_t *dims)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    if (n > HWNAS_MAX_RANK) {
        hwnas_onnx_refuse(b, b->name, "needs more than 8 dimensions");
        return x;
    }
    if (in.rank == n && !memcmp(in.dims, dims, (size_t)n * sizeof *dims))
        return x;
    const hwnas_attr shape = list(n, dims);
    return hwnas_onnx_make(b, HWNAS_OP_RESHAPE, &shape, x, -1);
}

int hwnas_onnx_transpose(builder *b, int x, int n, const int64_t *order)
{
    bool is_same = true;
    for (int i = 0; i < n; i++)
        is_same &= order[i] == i;
    const hwnas_attr attr = list(n, order);
    return is_same ? x : hwnas_onnx_make(b, HWNAS_OP_TRANSPOSE, &attr, x, -1);
}

int hwnas_onnx_cut(builder *b, int x, int64_t axis, int64_t begin, int64_t end, int64_t step)
{
    const hwnas_attr attrs[] = {hwnas_attr_int(begin), hwnas_attr_int(end), hwnas_attr_int(axis),
                                hwnas_attr_int(step)};
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    if (begin == 0 && axis < in.rank && end == in.dims[axis] && step == 1)
        return x;
    return hwnas_onnx_make(b, HWNAS_OP_SLICE, attrs, x, -1);
}

int hwnas_onnx_cast(builder *b, int x, hwnas_dtype to)
{
    const hwnas_attr attr = hwnas_attr_int(to);
    const hwnas_dtype from = hwnas_onnx_tensor(b, x).dtype;
    /* Between floats nothing happens, as where the file itself casts. */
    const bool is_same = from == to || (!hwnas_dtype_is_whole(from) && !hwnas_dtype_is_whole(to));
    return is_same ? x : hwnas_onnx_make(b, HWNAS_OP_CAST, &attr, x, -1);
}

int hwnas_onnx_reduce(builder *b, hwnas_op_id op, int x, int n, const int64_t *axes, bool keep)
{
    const hwnas_attr attrs[] = {list(n, axes), hwnas_attr_int(keep)};
    return hwnas_onnx_make(b, op, attrs, x, -1);
}

int hwnas_onnx_concat(builder *b, int n, const int *parts, int64_t axis)
{
    const hwnas_attr attr = hwnas_attr_int(axis);
    int joined[HWNAS_MAX_NODE_INPUTS], n_joined = 0;
    for (int at = 0; at < n; at += HWNAS_MAX_NODE_INPUTS) {
        const int left = n - at < HWNAS_MAX_NODE_INPUTS ? n - at : HWNAS_MAX_NODE_INPUTS;
        if (n_joined == HWNAS_MAX_NODE_INPUTS) {
            hwnas_onnx_refuse(b, b->name, "has too many parts");
            return parts[0];
        }
        joined[n_joined++] =
            left == 1 ? parts[at] : hwnas_onnx_make_n(b, HWNAS_OP_CONCAT, &attr, left, parts + at);
    }
    return n_joined == 1 ? joined[0]
                         : hwnas_onnx_make_n(b, HWNAS_OP_CONCAT, &attr, n_joined, joined);
}

float *hwnas_onnx_values_of(int *out, builder *b, int rank, const int64_t *dims, hwnas_dtype dtype)
{
    hwnas_graph *graph = b->r->graph;
    *out = b->fallback;
    if (b->status == HWNAS_OK)
        b->status = hwnas_graph_add_weight(out, graph, next_name(b), rank, dims, HWNAS_INIT_ZERO,
                                           false);
    if (b->status == HWNAS_OK && hwnas_tensor_count(&graph->tensors[*out]) > MAX_VALUES)
        hwnas_onnx_refuse(b, b->name, "would need more than 2^24 constants");
    if (b->status != HWNAS_OK) {
        *out = b->fallback;
        return NULL;
    }
    hwnas_tensor *tensor = &graph->tensors[*out];
    float *values = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(tensor));
    tensor->data = values;
    tensor->dtype = dtype;
    return values;
}

int hwnas_onnx_number(builder *b, double value, hwnas_dtype dtype)
{
    int made;
    float *values = hwnas_onnx_values_of(&made, b, 0, NULL, dtype);
    if (values)
        *values = (float)value;
    return made;
}

int hwnas_onnx_pick(builder *b, int x, int64_t axis, int64_t n, const float *positions)
{
    int numbers;
    float *values = hwnas_onnx_values_of(&numbers, b, 1, &n, HWNAS_INT64);
    const hwnas_attr attr = hwnas_attr_int(axis);
    if (values)
        memcpy(values, positions, (size_t)n * sizeof *values);
    return hwnas_onnx_make(b, HWNAS_OP_GATHER, &attr, x, numbers);
}

int hwnas_onnx_pad(builder *b, int x, int axis, int64_t before, int64_t after, double value,
                   int mode)
{
    hwnas_attr attrs[] = {{.is_set = true, .n = axis + 1},
                          {.is_set = true, .n = axis + 1},
                          hwnas_attr_number(value),
                          hwnas_attr_int(mode)};
    attrs[0].ints[axis] = before;
    attrs[1].ints[axis] = after;
    return before || after ? hwnas_onnx_make(b, HWNAS_OP_PAD, attrs, x, -1) : x;
}
