/* onnx_read_index.c: values moved about: padded, repeated, shuffled, chosen, numbered. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* The inputs or, before opset 11, attributes `pads` and `value`; since opset 18 of some axes alone.
 * Less than nothing is cut off. */
hwnas_status hwnas_onnx_read_pad(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                 const char *name)
{
    enum { PADS = 1, VALUE, AXES };
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "pads");
    int64_t pads[2 * HWNAS_MAX_RANK] = {0}, n = 0;
    hwnas_onnx_list axes;
    builder b;
    int x, mode = 0;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    TRY(hwnas_onnx_read_list(&axes, r, node, "axes", AXES));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const hwnas_tensor *known = given ? NULL : hwnas_onnx_build_known(&b, PADS, "pads");
    n = given ? (int64_t)given->n_ints : known ? hwnas_tensor_count(known) : 0;
    const int64_t n_axes = axes.n < 0 ? in.rank : axes.n;
    if (n != 2 * n_axes || n_axes > HWNAS_MAX_RANK)
        hwnas_onnx_refuse(&b, "pads", "are not two for each axis");
    for (int64_t i = 0; i < n && b.status == HWNAS_OK; i++)
        pads[i] = given ? given->ints[i] : hwnas_onnx_whole(known->data[i]);
    double value = hwnas_onnx_float(node, "value", 0);
    if (!given && hwnas_onnx_has_input(node, VALUE)) {
        known = hwnas_onnx_build_known(&b, VALUE, "constant_value");
        value = known ? known->data[0] : 0;
    }
    while (mode < 4 && !hwnas_onnx_is_word(node, "mode", modes[mode], mode == 0))
        mode++;
    if (mode == 4)
        hwnas_onnx_refuse(&b, "mode", "is unknown to us");
    hwnas_attr attrs[] = {{.is_set = true, .n = in.rank},
                          {.is_set = true, .n = in.rank},
                          hwnas_attr_number(value),
                          hwnas_attr_int(mode)};
    bool pads_any = false;
    for (int64_t i = 0; i < n_axes && b.status == HWNAS_OK; i++) {
        int64_t axis = axes.n < 0 ? i : axes.items[i], before = pads[i], after = pads[n_axes + i];
        axis += axis < 0 ? in.rank : 0;
        if (axis < 0 || axis >= in.rank || before > 1 << 30 || after > 1 << 30 ||
            before < -in.dims[axis] || after < -in.dims[axis]) {
            hwnas_onnx_refuse(&b, "pads", "are out of range");
            break;
        }
        if (before < 0 || after < 0)
            x = hwnas_onnx_cut(&b, x, axis, before < 0 ? -before : 0,
                               in.dims[axis] + (after < 0 ? after : 0), 1);
        attrs[0].ints[axis] = before < 0 ? 0 : before;
        attrs[1].ints[axis] = after < 0 ? 0 : after;
        pads_any |= before > 0 || after > 0;
    }
    if (pads_any)
        x = hwnas_onnx_make(&b, HWNAS_OP_PAD, attrs, x, -1);
    return hwnas_onnx_built(out, &b, x);
}

/* Repeats axes from `first` on, each as a dimension of 1 before it that is expanded: up to three at
 * once, with what lies before them and between them, are seven dimensions. Gives the axis that is
 * next; `dims` are those of what is made. */
static int tile_axes(int *x, builder *b, int64_t *dims, int rank, const int64_t *by, int first)
{
    enum { AT_ONCE = 3 };
    int64_t from[HWNAS_MAX_RANK] = {1};
    hwnas_attr to = {.is_set = true, .n = 1, .ints = {1}};
    int n_repeated = 0, end = rank;
    for (int i = 0; i < rank; i++) {
        if (i >= first && i < end && by[i] > 1 && n_repeated++ == AT_ONCE)
            end = i;
        if (i >= first && i < end && by[i] > 1) {
            from[to.n] = from[to.n + 1] = to.ints[to.n + 1] = 1;
            to.ints[to.n] = by[i];
            to.n += 2;
        }
        from[to.n - 1] *= dims[i];
        to.ints[to.n - 1] *= dims[i];
    }
    if (!n_repeated)
        return rank;
    *x = hwnas_onnx_make(b, HWNAS_OP_EXPAND, &to, hwnas_onnx_reshape(b, *x, to.n, from), -1);
    for (int i = first; i < end && b->status == HWNAS_OK; i++)
        dims[i] *= by[i];
    return end;
}

hwnas_status hwnas_onnx_read_tile(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    hwnas_onnx_list repeats;
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    TRY(hwnas_onnx_read_list(&repeats, r, node, "", 1));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    if (repeats.n != in.rank)
        hwnas_onnx_refuse(&b, "repeats", "are not one for each axis");
    for (int i = 0; i < repeats.n; i++)
        if (repeats.items[i] < 1 || repeats.items[i] > 1 << 24)
            hwnas_onnx_refuse(&b, "repeats", "are out of range");
    int64_t dims[HWNAS_MAX_RANK];
    memcpy(dims, in.dims, sizeof dims);
    for (int i = 0; i < in.rank && b.status == HWNAS_OK;)
        i = tile_axes(&x, &b, dims, in.rank, repeats.items, i);
    return hwnas_onnx_built(out, &b, hwnas_onnx_reshape(&b, x, in.rank, dims));
}

/* ---- depth and space ---- */

hwnas_status hwnas_onnx_read_depth_space(int *out, hwnas_onnx_reader *r,
                                         const Onnx__NodeProto *node, const char *name)
{
    const bool to_space = !strcmp(node->op_type, "DepthToSpace");
    const bool is_crd = hwnas_onnx_is_word(node, "mode", "CRD", false);
    const int64_t s = hwnas_onnx_int(node, "blocksize", 0);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const int64_t *d = in.dims;
    if (in.rank != 4 || s < 1 || s > 1 << 12 ||
        (to_space ? d[1] % (s * s) : d[2] % s || d[3] % s)) {
        hwnas_onnx_refuse(&b, "blocksize", "does not divide the input");
        return hwnas_onnx_built(out, &b, x);
    }
    if (to_space && is_crd) {
        x = hwnas_onnx_reshape(&b, x, 6, (int64_t[]){d[0], d[1] / (s * s), s, s, d[2], d[3]});
        x = hwnas_onnx_transpose(&b, x, 6, (int64_t[]){0, 1, 4, 2, 5, 3});
    } else if (to_space) {
        x = hwnas_onnx_reshape(&b, x, 6, (int64_t[]){d[0], s, s, d[1] / (s * s), d[2], d[3]});
        x = hwnas_onnx_transpose(&b, x, 6, (int64_t[]){0, 3, 4, 1, 5, 2});
    } else {
        x = hwnas_onnx_reshape(&b, x, 6, (int64_t[]){d[0], d[1], d[2] / s, s, d[3] / s, s});
        x = hwnas_onnx_transpose(&b, x, 6, (int64_t[]){0, 3, 5, 1, 2, 4});
    }
    const int64_t channels = to_space ? d[1] / (s * s) : d[1] * (s * s);
    const int64_t height = to_space ? d[2] * s : d[2] / s, width = to_space ? d[3] * s : d[3] / s;
    x = hwnas_onnx_reshape(&b, x, 4, (int64_t[]){d[0], channels, height, width});
    return hwnas_onnx_built(out, &b, x);
}

/* ---- triangles and diagonals ---- */

hwnas_status hwnas_onnx_read_trilu(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    const bool is_upper = hwnas_onnx_int(node, "upper", 1);
    builder b;
    int x, mask;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const hwnas_tensor *k =
        hwnas_onnx_has_input(node, 1) ? hwnas_onnx_build_known(&b, 1, "k") : NULL;
    const double shift = k ? k->data[0] : 0;
    if (in.rank < 2) {
        hwnas_onnx_refuse(&b, "input", "is not a matrix");
        return hwnas_onnx_built(out, &b, x);
    }
    const int64_t rows = in.dims[in.rank - 2], columns = in.dims[in.rank - 1];
    float *kept = hwnas_onnx_values_of(&mask, &b, 2, (int64_t[]){rows, columns}, HWNAS_BOOL);
    for (int64_t i = 0; kept && i < rows * columns; i++) {
        const double over = (double)(i % columns - i / columns) - shift;
        kept[i] = is_upper ? over >= 0 : over <= 0;
    }
    const int zero = hwnas_onnx_number(&b, 0, in.dtype);
    return hwnas_onnx_built(
        out, &b, hwnas_onnx_make_n(&b, HWNAS_OP_WHERE, NULL, 3, (const int[]){mask, x, zero}));
}

hwnas_status hwnas_onnx_read_eye(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                 const char *name)
{
    const int64_t k = hwnas_onnx_int(node, "k", 0), type = hwnas_onnx_int(node, "dtype", 0);
    builder b;
    int x, made;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    hwnas_dtype dtype = in.dtype;
    if (type)
        TRY(hwnas_onnx_dtype(&dtype, (int32_t)type, "the result of", name));
    float *values = in.rank == 2 ? hwnas_onnx_values_of(&made, &b, 2, in.dims, dtype) : NULL;
    if (!values) {
        hwnas_onnx_refuse(&b, "input", "is not a matrix");
        return hwnas_onnx_built(out, &b, x);
    }
    for (int64_t i = 0; i < in.dims[0] * in.dims[1]; i++)
        values[i] = i % in.dims[1] - i / in.dims[1] == k;
    return hwnas_onnx_built(out, &b, made);
}

/* ---- chosen and numbered ---- */

/* Places of a new axis that are equal to the index; one from the end counts from there. */
hwnas_status hwnas_onnx_read_one_hot(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    enum { DEPTH = 1, VALUES };
    int64_t axis = hwnas_onnx_int(node, "axis", -1), dims[HWNAS_MAX_RANK + 1];
    builder b;
    int x, places;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const hwnas_tensor *known = hwnas_onnx_build_known(&b, DEPTH, "depth");
    const int values = hwnas_onnx_build_input(&b, VALUES);
    const int64_t depth = known ? hwnas_onnx_whole(known->data[0]) : 0;
    axis += axis < 0 ? in.rank + 1 : 0;
    if (axis < 0 || axis > in.rank || in.rank == HWNAS_MAX_RANK || depth < 1) {
        hwnas_onnx_refuse(&b, "axis", "or the depth is out of range");
        return hwnas_onnx_built(out, &b, x);
    }
    for (int i = 0; i < in.rank + 1; i++)
        dims[i] = i < axis ? in.dims[i] : i == axis ? 1 : in.dims[i - 1];
    x = hwnas_onnx_cast(&b, x, HWNAS_INT64);
    const int shifted = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x,
                                        hwnas_onnx_number(&b, (double)depth, HWNAS_INT64));
    const int is_negative =
        hwnas_onnx_make(&b, HWNAS_OP_LESS, NULL, x, hwnas_onnx_number(&b, 0, HWNAS_INT64));
    x = hwnas_onnx_make_n(&b, HWNAS_OP_WHERE, NULL, 3, (const int[]){is_negative, shifted, x});
    x = hwnas_onnx_reshape(&b, x, in.rank + 1, dims);
    for (int i = 0; i < in.rank + 1; i++)
        dims[i] = i == axis ? depth : 1;
    float *numbers = hwnas_onnx_values_of(&places, &b, in.rank + 1, dims, HWNAS_INT64);
    for (int64_t i = 0; numbers && i < depth; i++)
        numbers[i] = (float)i;
    x = hwnas_onnx_make(&b, HWNAS_OP_EQUAL, NULL, x, places);
    const int off = hwnas_onnx_cut(&b, values, 0, 0, 1, 1),
              on = hwnas_onnx_cut(&b, values, 0, 1, 2, 1);
    return hwnas_onnx_built(
        out, &b, hwnas_onnx_make_n(&b, HWNAS_OP_WHERE, NULL, 3, (const int[]){x, on, off}));
}

/* Two outputs: the values, and where they are. */
hwnas_status hwnas_onnx_read_top_k(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    builder b;
    int x, given = HWNAS_ONNX_NOT_MADE;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const Onnx__AttributeProto *k = hwnas_onnx_attribute(node, "k");
    const hwnas_tensor *known = k ? NULL : hwnas_onnx_build_known(&b, 1, "K");
    const int64_t count = k ? k->i : known ? hwnas_onnx_whole(known->data[0]) : 0;
    if (count < 1)
        hwnas_onnx_refuse(&b, "K", "is less than 1");
    hwnas_attr attrs[] = {hwnas_attr_int(hwnas_onnx_int(node, "axis", -1)), hwnas_attr_int(count),
                          hwnas_attr_int(hwnas_onnx_int(node, "largest", 1)), hwnas_attr_int(1)};
    if (hwnas_onnx_is_read(r, node, 1)) {
        given = hwnas_onnx_make(&b, HWNAS_OP_TOP_K, attrs, x, -1);
        if (b.status == HWNAS_OK)
            TRY(hwnas_onnx_give(r, node->output[1], given));
    }
    attrs[3] = hwnas_attr_int(0);
    const bool has_values = given == HWNAS_ONNX_NOT_MADE || hwnas_onnx_is_read(r, node, 0);
    return hwnas_onnx_built(out, &b,
                            has_values ? hwnas_onnx_make(&b, HWNAS_OP_TOP_K, attrs, x, -1) : given);
}

/* By a condition that is known. */
hwnas_status hwnas_onnx_read_compress(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                      const char *name)
{
    const bool has_axis = hwnas_onnx_attribute(node, "axis");
    int64_t axis = hwnas_onnx_int(node, "axis", 0), n = 0;
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor *condition = hwnas_onnx_build_known(&b, 1, "condition");
    if (!condition)
        return hwnas_onnx_built(out, &b, x);
    const int64_t length = hwnas_tensor_count(condition);
    float *chosen = hwnas_arena_alloc(r->graph->arena, (size_t)length * sizeof *chosen);
    for (int64_t i = 0; i < length; i++)
        if (condition->data[i] != 0)
            chosen[n++] = (float)i;
    if (!has_axis)
        x = hwnas_onnx_reshape(&b, x, 1,
                               (int64_t[]){hwnas_tensor_count(&r->graph->tensors[x])});
    return hwnas_onnx_built(out, &b, hwnas_onnx_pick(&b, x, axis, n, chosen));
}

/* Of lengths that are known: the first of each sequence backwards, the rest as it is. */
hwnas_status hwnas_onnx_read_reverse_sequence(int *out, hwnas_onnx_reader *r,
                                              const Onnx__NodeProto *node, const char *name)
{
    const int64_t time = hwnas_onnx_int(node, "time_axis", 0);
    const int64_t batch = hwnas_onnx_int(node, "batch_axis", 1);
    builder b;
    int x, places;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const hwnas_tensor *lengths = hwnas_onnx_build_known(&b, 1, "sequence_lens");
    if (time < 0 || time > 1 || batch != 1 - time || in.rank < 2 || !lengths ||
        hwnas_tensor_count(lengths) != in.dims[batch]) {
        hwnas_onnx_refuse(&b, "sequence_lens", "do not fit");
        return hwnas_onnx_built(out, &b, x);
    }
    float *index = hwnas_onnx_values_of(&places, &b, in.rank, in.dims, HWNAS_INT64);
    const int64_t n = hwnas_tensor_count(&in), rest = n / in.dims[0] / in.dims[1];
    for (int64_t i = 0; index && i < n; i++) {
        const int64_t at[] = {i / rest / in.dims[1], i / rest % in.dims[1]};
        const double length = lengths->data[at[batch]], t = (double)at[time];
        index[i] = (float)(t < length ? length - 1 - t : t);
    }
    const hwnas_attr attr = hwnas_attr_int(time);
    return hwnas_onnx_built(out, &b,
                            hwnas_onnx_make(&b, HWNAS_OP_GATHER_ELEMENTS, &attr, x, places));
}

/* Whole numbers times, or divided by, a power of 2. */
hwnas_status hwnas_onnx_read_bit_shift(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    const bool is_left = hwnas_onnx_is_word(node, "direction", "LEFT", false);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_dtype dtype = hwnas_onnx_tensor(&b, x).dtype;
    const int two = hwnas_onnx_number(&b, 2, HWNAS_FLOAT32);
    int power = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, two, hwnas_onnx_build_input(&b, 1));
    if (is_left) /* what goes beyond the type is lost */
        power = hwnas_onnx_cast(&b, power, dtype);
    else
        x = hwnas_onnx_cast(&b, x, HWNAS_FLOAT32);
    x = hwnas_onnx_make(&b, is_left ? HWNAS_OP_MUL : HWNAS_OP_DIV, NULL, x, power);
    if (hwnas_onnx_tensor(&b, x).dtype != dtype)
        x = hwnas_onnx_cast(&b, x, dtype);
    return hwnas_onnx_built(out, &b, x);
}

/* The type of another tensor. */
hwnas_status hwnas_onnx_read_cast_like(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_dtype to = hwnas_onnx_tensor(&b, hwnas_onnx_build_input(&b, 1)).dtype;
    const hwnas_dtype from = hwnas_onnx_tensor(&b, x).dtype;
    if (hwnas_dtype_is_whole(to) || hwnas_dtype_is_whole(from))
        x = hwnas_onnx_cast(&b, x, to);
    return hwnas_onnx_built(out, &b, x);
}
