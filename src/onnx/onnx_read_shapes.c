/* onnx_read_shapes.c: what exporters compute shapes with, and what changes shapes alone. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/rounding.h"
#include "onnx/onnx_build.h"

/* ---- constants ---- */

const Onnx__TensorProto *hwnas_onnx_constant_node(const Onnx__NodeProto *node)
{
    if (!node->op_type || strcmp(node->op_type, "Constant"))
        return NULL;
    const Onnx__AttributeProto *value = hwnas_onnx_attribute(node, "value");
    return value ? value->t : NULL;
}

/* A weight of whole numbers, or of others. */
static hwnas_status add_constant(int *out, hwnas_onnx_reader *r, const char *name, int rank,
                                 const int64_t *dims, const float *values, bool is_whole)
{
    TRY(hwnas_graph_add_constant(out, r->graph, name, rank, dims, values));
    r->graph->tensors[*out].dtype = is_whole ? HWNAS_INT64 : HWNAS_FLOAT32;
    return HWNAS_OK;
}

/* A Constant that says its values as a number or a list. */
hwnas_status hwnas_onnx_read_constant(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                      const char *name)
{
    const Onnx__AttributeProto *a = node->n_attribute ? node->attribute[0] : NULL;
    float values[1024];
    const bool is_whole = a && (a->has_i || a->n_ints), is_list = a && (a->n_ints || a->n_floats);
    const size_t n = !a ? 0 : a->n_ints ? a->n_ints : a->n_floats ? a->n_floats : 1;
    if (n == 0 || n > 1024 || (!is_list && !a->has_i && !a->has_f))
        return hwnas_onnx_unsupported(node, "value", "is not a tensor, number or short list");
    for (size_t i = 0; i < n; i++)
        values[i] = a->n_ints     ? (float)a->ints[i]
                    : a->n_floats ? a->floats[i]
                    : a->has_i    ? (float)a->i
                                  : a->f;
    const int64_t length = (int64_t)n;
    return add_constant(out, r, name, is_list, &length, values, is_whole);
}

hwnas_status hwnas_onnx_read_shape(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_dims(&rank, dims, r, node, 0));
    int64_t start = hwnas_onnx_int(node, "start", 0), end = hwnas_onnx_int(node, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end > rank ? rank : end;
    float values[HWNAS_MAX_RANK];
    int64_t n = 0;
    for (int64_t i = start < 0 ? 0 : start; i < end; i++)
        values[n++] = (float)dims[i];
    return hwnas_onnx_give_nothing(r, node->output[0], 1, &n)
               ? HWNAS_OK
               : add_constant(out, r, name, 1, &n, values, true);
}

hwnas_status hwnas_onnx_read_size(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    int input;
    float count = 0;
    if (!node->n_input || !hwnas_onnx_is_nothing(r, node->input[0])) {
        TRY(hwnas_onnx_input(&input, r, node, 0));
        count = (float)hwnas_tensor_count(&r->graph->tensors[input]);
    }
    return add_constant(out, r, name, 0, NULL, &count, true);
}

hwnas_status hwnas_onnx_read_constant_of_shape(int *out, hwnas_onnx_reader *r,
                                               const Onnx__NodeProto *node, const char *name)
{
    enum { MOST = 1 << 24 };
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "value");
    hwnas_onnx_list shape;
    hwnas_dtype dtype = HWNAS_FLOAT32;
    float zero = 0, *value = &zero;
    TRY(hwnas_onnx_read_list(&shape, r, node, "", 0));
    if (given && given->t) {
        TRY(hwnas_onnx_dtype(&dtype, given->t->data_type, "the value of", name));
        TRY(hwnas_onnx_values(&value, r->graph->arena, given->t, 1, NULL));
    }
    if (shape.n < 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no shape", hwnas_onnx_describe(node).s);
    if (hwnas_onnx_give_nothing(r, node->output[0], shape.n, shape.items))
        return HWNAS_OK;
    TRY(hwnas_graph_add_weight(out, r->graph, name, shape.n, shape.items, HWNAS_INIT_ZERO, false));
    hwnas_tensor *tensor = &r->graph->tensors[*out];
    const int64_t n = hwnas_tensor_count(tensor);
    if (n > MOST)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s would have more than 2^24 values",
                          hwnas_onnx_describe(node).s);
    float *values = hwnas_arena_alloc(r->graph->arena, (size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = *value;
    tensor->data = values;
    tensor->dtype = dtype;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_range(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    enum { MOST = 1 << 20 };
    double ends[3];
    hwnas_dtype dtype = HWNAS_FLOAT32;
    for (size_t i = 0; i < 3; i++) {
        const hwnas_tensor *from = NULL;
        if (!hwnas_onnx_has_input(node, i))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no input %zu",
                              hwnas_onnx_describe(node).s, i);
        TRY(hwnas_onnx_constant(&from, r, node->input[i], hwnas_onnx_describe(node).s));
        if (!from)
            return hwnas_onnx_unsupported(node, "limit", "is computed from the network's input");
        ends[i] = from->data[0];
        dtype = from->dtype; /* all three have it */
    }
    const double length = ceil((ends[1] - ends[0]) / ends[2]);
    if (isnan(length) || length > MOST)
        return hwnas_onnx_unsupported(node, "limit", "gives no numbers, or more than 2^20");
    const int64_t n = length < 1 ? 0 : (int64_t)length;
    if (hwnas_onnx_give_nothing(r, node->output[0], 1, &n))
        return HWNAS_OK;
    float *values = hwnas_arena_alloc(r->graph->arena, (size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(ends[0] + (double)i * ends[2]);
    TRY(add_constant(out, r, name, 1, &n, values, true));
    r->graph->tensors[*out].dtype = dtype;
    return HWNAS_OK;
}

/* ---- other types ---- */

/* Whether all that read the node's output bring it back to floats of 32 bits, so that it rounds. */
static bool is_brought_back(const hwnas_onnx_reader *r, const Onnx__NodeProto *node)
{
    bool is_read = false;
    for (size_t i = 0; i < r->from->n_output; i++)
        if (!strcmp(r->from->output[i]->name, node->output[0]))
            return false;
    for (size_t i = 0; i < r->from->n_node; i++) {
        const Onnx__NodeProto *reader = r->from->node[i];
        for (size_t k = 0; k < reader->n_input; k++) {
            if (strcmp(reader->input[k], node->output[0]) != 0)
                continue;
            if (strcmp(reader->op_type, "Cast") != 0 ||
                hwnas_onnx_int(reader, "to", 0) != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
                return false;
            is_read = true;
        }
    }
    return is_read;
}

/* Between floats nothing happens, but where a file rounds to bfloat16 in the midst of floats of 32
 * bits: graph/rounding.h. Nor does it between a whole type and itself, which PyTorch writes behind
 * each QuantizeLinear of a network of bytes: what reads bytes would not see them behind it. */
hwnas_status hwnas_onnx_read_cast(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    int input;
    hwnas_dtype to;
    TRY(hwnas_onnx_input(&input, r, node, 0));
    TRY(hwnas_onnx_dtype(&to, (int32_t)hwnas_onnx_int(node, "to", 0), "the result of", name));
    const hwnas_dtype from = r->graph->tensors[input].dtype;
    const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {(int64_t)to}};
    if (from == to && hwnas_dtype_is_whole(to)) {
        *out = input;
        return HWNAS_OK;
    }
    const bool rounds =
        to == HWNAS_BFLOAT16 && !hwnas_dtype_is_whole(from) && is_brought_back(r, node);
    if (!rounds && !hwnas_dtype_is_whole(from) && !hwnas_dtype_is_whole(to)) {
        const int producer = r->graph->tensors[input].producer;
        if (producer >= 0 && hwnas_rounds(&r->graph->nodes[producer]))
            /* the last one's, as where several are one */
            r->graph->nodes[producer].name =
                hwnas_arena_string(r->graph->arena, name, strlen(name));
        *out = input;
        return HWNAS_OK;
    }
    return hwnas_onnx_add(out, r, HWNAS_OP_CAST, name, NULL, &attr, 1, &input);
}

/* ---- other shapes of the same values ---- */

static hwnas_status add_reshape(int *out, hwnas_onnx_reader *r, const char *name, int input, int n,
                                const int64_t *dims)
{
    hwnas_attr shape = {.is_set = true, .n = n};
    if (n)
        memcpy(shape.ints, dims, (size_t)n * sizeof *dims);
    return hwnas_onnx_add(out, r, HWNAS_OP_RESHAPE, name, NULL, &shape, 1, &input);
}

/* The node's first input, which may have no values, in the shape `dims`. */
static hwnas_status give_reshaped(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name, int n, const int64_t *dims)
{
    int input;
    if (hwnas_onnx_give_nothing(r, node->output[0], n, dims))
        return HWNAS_OK;
    TRY(hwnas_onnx_input(&input, r, node, 0));
    return add_reshape(out, r, name, input, n, dims);
}

hwnas_status hwnas_onnx_read_flatten(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    int64_t axis = hwnas_onnx_int(node, "axis", 1), in[HWNAS_MAX_RANK], dims[2] = {1, 1};
    int input, rank;
    const bool has_none = hwnas_onnx_reads_nothing(r, node, 1);
    if (axis > 0 && !has_none)
        return HWNAS_OK;
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis > rank)
        return hwnas_onnx_unsupported(node, "axis", "names a dimension that is not there");
    if (axis > 0 && !has_none) {
        const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {axis}};
        TRY(hwnas_onnx_input(&input, r, node, 0));
        return hwnas_onnx_add(out, r, HWNAS_OP_FLATTEN, name, NULL, &attr, 1, &input);
    }
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(dims[i >= axis], in[i], &dims[i >= axis]))
            return hwnas_onnx_unsupported(node, "axis", "gives a length beyond 2^63");
    return give_reshaped(out, r, node, name, 2, dims);
}

/* Which axes, as bits; negative ones count from the end of `rank`. */
static hwnas_status axes_of(unsigned *out, const Onnx__NodeProto *node, const hwnas_onnx_list *list,
                            int rank)
{
    *out = 0;
    for (int i = 0; i < list->n; i++) {
        const int64_t axis = list->items[i] + (list->items[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank || rank > HWNAS_MAX_RANK)
            return hwnas_onnx_unsupported(node, "axes", "names a dimension that is not there");
        *out |= 1u << axis;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_squeeze(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    hwnas_onnx_list list;
    unsigned axes;
    int rank, n = 0;
    int64_t in[HWNAS_MAX_RANK], dims[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    TRY(hwnas_onnx_read_list(&list, r, node, "axes", 1));
    TRY(axes_of(&axes, node, &list, rank));
    for (int i = 0; i < rank; i++) {
        const bool is_named = list.n >= 0 && (axes >> i & 1);
        if (is_named && in[i] != 1)
            return hwnas_onnx_unsupported(node, "axes", "names a dimension that is not 1");
        if (!is_named && (list.n >= 0 || in[i] != 1))
            dims[n++] = in[i];
    }
    return give_reshaped(out, r, node, name, n, dims);
}

hwnas_status hwnas_onnx_read_unsqueeze(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    hwnas_onnx_list list;
    unsigned axes;
    int in_rank, from = 0;
    int64_t in[HWNAS_MAX_RANK] = {0}, dims[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_dims(&in_rank, in, r, node, 0));
    TRY(hwnas_onnx_read_list(&list, r, node, "axes", 1));
    const int rank = in_rank + (list.n < 0 ? 0 : list.n);
    TRY(axes_of(&axes, node, &list, rank));
    for (int i = 0; i < rank; i++)
        dims[i] = axes >> i & 1 ? 1 : in[from++];
    if (from != in_rank)
        return hwnas_onnx_unsupported(node, "axes", "names a dimension twice");
    return give_reshaped(out, r, node, name, rank, dims);
}

/* Axes are an attribute in older opsets and an input in newer ones; without any it is over all of
 * them or, if the node says so, over none. */
hwnas_status hwnas_onnx_read_reduce(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    hwnas_onnx_list axes;
    int input;
    TRY(hwnas_onnx_input(&input, r, node, 0));
    TRY(hwnas_onnx_read_list(&axes, r, node, "axes", 1));
    if (axes.n <= 0 && hwnas_onnx_int(node, "noop_with_empty_axes", 0)) {
        *out = input;
        return HWNAS_OK;
    }
    hwnas_attr attrs[] = {{.is_set = true, .n = axes.n < 0 ? 0 : axes.n},
                          {.is_set = true, .n = 1, .ints = {hwnas_onnx_int(node, "keepdims", 1)}}};
    if (axes.n > 0)
        memcpy(attrs[0].ints, axes.items, sizeof axes.items);
    return hwnas_onnx_add(out, r, hwnas_op_by_onnx(node->op_type)->id, name, NULL, attrs, 1,
                          &input);
}

/* ---- parts ---- */

/* A bound beyond any dimension, such as the least number that there is, says "all of it". */
static int64_t within(int64_t bound)
{
    const int64_t most = INT64_C(1) << 40; /* elements of a tensor */
    return bound < -most ? -most : bound > most ? most : bound;
}

static hwnas_status add_slice(int *out, hwnas_onnx_reader *r, const char *name, const char *suffix,
                              int input, int64_t axis, int64_t begin, int64_t end, int64_t step)
{
    const hwnas_attr attrs[] = {{.is_set = true, .n = 1, .ints = {within(begin)}},
                                {.is_set = true, .n = 1, .ints = {within(end)}},
                                {.is_set = true, .n = 1, .ints = {axis}},
                                {.is_set = true, .n = 1, .ints = {step}}};
    return hwnas_onnx_add(out, r, HWNAS_OP_SLICE, name, suffix, attrs, 1, &input);
}

/* Backwards, the positions are numbers that are looked up. */
static hwnas_status add_backwards(int *tensor, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name, int64_t axis, int64_t begin, int64_t end,
                                  int64_t step)
{
    const hwnas_tensor in = r->graph->tensors[*tensor];
    hwnas_onnx_builder b = {.r = r, .node = node, .name = name, .fallback = *tensor};
    axis += axis < 0 ? in.rank : 0;
    if (axis < 0 || axis >= in.rank)
        return hwnas_onnx_unsupported(node, "axes", "names a dimension that is not there");
    const int64_t n = in.dims[axis];
    begin = begin < 0 ? begin + n : begin > n - 1 ? n - 1 : begin;
    end = end < -n ? -1 : end < 0 ? end + n : end;
    if (begin <= end || n > 1 << 24)
        return hwnas_onnx_unsupported(node, "steps", "take nothing, or too much");
    float *places = hwnas_arena_alloc(r->graph->arena, (size_t)n * sizeof *places);
    int64_t count = 0;
    for (int64_t i = begin; i > end && i >= 0; i += step < -n ? -n : step)
        places[count++] = (float)i;
    return hwnas_onnx_built(tensor, &b, hwnas_onnx_pick(&b, *tensor, axis, count, places));
}

/* How many of `n` places are taken; `step` is not 0. */
static int64_t length_of_cut(int64_t n, int64_t begin, int64_t end, int64_t step)
{
    const int64_t first = step < 0 && n ? -1 : 0, last = step < 0 && n ? n - 1 : n;
    begin += begin < 0 ? n : 0;
    begin = begin < 0 ? 0 : begin > last ? last : begin;
    end += end < 0 ? n : 0;
    end = end < first ? first : end > last ? last : end;
    if (step > 0)
        return begin < end ? 1 + (end - begin - 1) / step : 0;
    return begin > end ? 1 - (begin - end - 1) / step : 0;
}

/* Several axes are cut one after the other; an axis that is left whole is not cut. */
hwnas_status hwnas_onnx_read_slice(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    hwnas_onnx_list starts, ends, axes, steps;
    int rank, done;
    int64_t dims[HWNAS_MAX_RANK];
    const bool has_none = hwnas_onnx_reads_nothing(r, node, 1);
    TRY(hwnas_onnx_dims(&rank, dims, r, node, 0));
    TRY(hwnas_onnx_read_list(&starts, r, node, "starts", 1));
    TRY(hwnas_onnx_read_list(&ends, r, node, "ends", 2));
    TRY(hwnas_onnx_read_list(&axes, r, node, "axes", 3));
    TRY(hwnas_onnx_read_list(&steps, r, node, "steps", 4));
    if (starts.n < 0 || ends.n != starts.n || (axes.n >= 0 && axes.n != starts.n) ||
        (steps.n >= 0 && steps.n != starts.n))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: starts, ends, axes and steps do not match",
                          hwnas_onnx_describe(node).s);
    for (int i = 0; i < starts.n; i++) {
        int64_t axis = axes.n < 0 ? i : axes.items[i];
        const int64_t step = steps.n < 0 ? 1 : steps.items[i];
        axis += axis < 0 ? rank : 0;
        if (axis >= 0 && axis < rank && step != 0)
            dims[axis] = length_of_cut(dims[axis], starts.items[i], ends.items[i], step);
        else if (has_none) /* else it is refused where it is cut */
            return hwnas_onnx_unsupported(node, "axes",
                                          "names a dimension that is not there, or a step is 0");
    }
    if (hwnas_onnx_give_nothing(r, node->output[0], rank, dims))
        return HWNAS_OK;
    TRY(hwnas_onnx_input(&done, r, node, 0));
    for (int i = 0; i < starts.n; i++) {
        const int64_t axis = axes.n < 0 ? i : axes.items[i];
        const int64_t step = steps.n < 0 ? 1 : steps.items[i];
        const bool is_last = i + 1 == starts.n;
        char suffix[16] = "slice";
        suffix[5] = (char)('0' + i);
        if (step < 0) {
            TRY(add_backwards(&done, r, node,
                              is_last ? name
                                      : hwnas_arena_printf(r->graph->arena, "%s.%s", name, suffix),
                              axis, starts.items[i], ends.items[i], step));
            continue;
        }
        TRY(add_slice(&done, r, name, is_last ? NULL : suffix, done, axis, starts.items[i],
                      ends.items[i], step));
    }
    *out = done;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_split(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    hwnas_onnx_list sizes;
    int input, rank;
    int64_t dims[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_dims(&rank, dims, r, node, 0));
    TRY(hwnas_onnx_read_list(&sizes, r, node, "split", 1));
    int64_t axis = hwnas_onnx_int(node, "axis", 0), at = 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || (sizes.n >= 0 && (size_t)sizes.n != node->n_output))
        return hwnas_onnx_unsupported(node, "axis", "does not fit");
    const int64_t n = dims[axis], parts = (int64_t)node->n_output, even = (n + parts - 1) / parts;
    for (size_t i = 0; i < node->n_output; i++) {
        const int64_t size = sizes.n >= 0 ? sizes.items[i] : n - at < even ? n - at : even;
        const char *suffix = i ? hwnas_arena_printf(r->graph->arena, "part%zu", i) : NULL;
        const int64_t from = at;
        int part;
        if (size < 0 || size > n - at)
            return hwnas_onnx_unsupported(node, "split", "has sizes that are not the input's parts");
        dims[axis] = size;
        at += size;
        if (hwnas_onnx_give_nothing(r, node->output[i], rank, dims))
            continue;
        TRY(hwnas_onnx_input(&input, r, node, 0));
        TRY(add_slice(&part, r, name, suffix, input, axis, from, at, 1));
        if (i == 0)
            *out = part;
        else if (!is_empty(node->output[i]))
            TRY(hwnas_onnx_give(r, node->output[i], part));
    }
    return HWNAS_OK;
}
