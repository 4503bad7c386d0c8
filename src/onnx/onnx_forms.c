/* onnx_forms.c: how operators are written that are not one node of ONNX with our inputs. What reads
 * them is in onnx_read*.c and, where several nodes are one operator, in graph/fuse.c. */
#include <math.h>
#include <string.h>

#include "graph/rounding.h"
#include "onnx/onnx_writer.h"

/* Nodes of one form: their names begin with that of the operator. */
typedef struct form {
    hwnas_onnx_writer *w;
    const hwnas_node *node;
} form;

static const char *name_of(const form *f, const char *suffix)
{
    return hwnas_arena_printf(f->w->arena, "%s.%s", f->node->name, suffix);
}

static const char *input_of(const form *f, int i)
{
    return f->w->from->tensors[f->node->inputs[i]].name;
}

static const char *output_of(const form *f)
{
    return hwnas_node_output(f->w->from, f->node)->name;
}

/* A node inside of the form, whose output is as `shape` says; gives its name. */
static const char *add_of(const form *f, const hwnas_tensor *shape, const char *type,
                          const char *suffix, const char *a, const char *b)
{
    const char *name = name_of(f, suffix);
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, type, name, name, 0);
    to->input[to->n_input++] = text(a);
    if (b)
        to->input[to->n_input++] = text(b);
    hwnas_onnx_add_shape(f->w, name, shape);
    return name;
}

/* The same of the form's own shape. */
static const char *add(const form *f, const char *type, const char *suffix, const char *a,
                       const char *b)
{
    return add_of(f, hwnas_node_output(f->w->from, f->node), type, suffix, a, b);
}

/* The last node has the operator's own name. */
static void add_last(const form *f, const char *type, const char *a, const char *b)
{
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, type, f->node->name, output_of(f), 0);
    to->input[to->n_input++] = text(a);
    to->input[to->n_input++] = text(b);
}

static const char *number(const form *f, const char *suffix, double value)
{
    const float narrowed = (float)value;
    return hwnas_onnx_add_floats(f->w, name_of(f, suffix), 0, 1, &narrowed);
}

/* ONNX has Gelu since opset 20. Before: x (1 + erf(x / sqrt(2))) / 2, or with tanh, see ops/gelu.c.
 */
static void write_gelu(const form *f)
{
    const char *x = input_of(f, 0), *part;
    if (hwnas_node_attr(f->node, "tanh")->ints[0]) {
        part = add(f, "Mul", "square", x, x);
        part = add(f, "Mul", "cube", part, x);
        part = add(f, "Mul", "small", part, number(f, "cubic", 0.044715));
        part = add(f, "Add", "sum", x, part);
        part = add(f, "Mul", "scaled", part, number(f, "factor", sqrt(2 / M_PI)));
        part = add(f, "Tanh", "tanh", part, NULL);
    } else {
        part = add(f, "Mul", "scaled", x, number(f, "factor", sqrt(0.5)));
        part = add(f, "Erf", "erf", part, NULL);
    }
    part = add(f, "Add", "shifted", part, number(f, "one", 1));
    part = add(f, "Mul", "product", x, part);
    add_last(f, "Mul", part, number(f, "half", 0.5));
}

/* ONNX has Mish since opset 18: x tanh(softplus(x)). */
static void write_mish(const form *f)
{
    const char *part = add(f, "Softplus", "softplus", input_of(f, 0), NULL);
    add_last(f, "Mul", input_of(f, 0), add(f, "Tanh", "tanh", part, NULL));
}

/* ONNX has RMSNormalization since opset 23: x / sqrt(mean(x^2) + epsilon) * scale. */
static void write_rms_norm(const form *f)
{
    const char *x = input_of(f, 0), *mean = name_of(f, "mean"), *part;
    const int64_t axis = hwnas_node_attr(f->node, "axis")->ints[0];
    hwnas_tensor one = *hwnas_node_output(f->w->from, f->node); /* a value for each mean */
    int64_t axes[HWNAS_MAX_RANK], n = 0;
    for (int64_t i = axis + (axis < 0 ? one.rank : 0); i < one.rank; i++) {
        axes[n++] = i;
        one.dims[i] = 1;
    }
    part = add(f, "Mul", "square", x, x);
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "ReduceMean", mean, mean, 2);
    to->input[to->n_input++] = text(part);
    hwnas_onnx_add_ints(f->w, to, "axes", (size_t)n, axes);
    hwnas_onnx_add_int(f->w, to, "keepdims", 1);
    hwnas_onnx_add_shape(f->w, mean, &one);
    part = add_of(f, &one, "Add", "sum", mean,
                  number(f, "epsilon", hwnas_node_attr(f->node, "epsilon")->number));
    part = add_of(f, &one, "Sqrt", "root", part, NULL);
    part = add(f, "Div", "quotient", x, part);
    add_last(f, "Mul", part, input_of(f, 1));
}

/* Resize takes its factors as a list of floats, and says where pixels lie. */
static void write_upsample(const form *f)
{
    const int64_t *by = hwnas_node_attr(f->node, "by")->ints;
    const bool is_linear = hwnas_node_attr(f->node, "linear")->ints[0];
    const float scales[] = {1, 1, (float)by[0], (float)by[1]};
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "Resize", f->node->name, output_of(f), 3);
    to->input[to->n_input++] = text(input_of(f, 0));
    to->input[to->n_input++] = text(""); /* a region of interest */
    to->input[to->n_input++] = text(hwnas_onnx_add_floats(f->w, name_of(f, "by"), 1, 4, scales));
    hwnas_onnx_add_word(f->w, to, "mode", is_linear ? "linear" : "nearest");
    hwnas_onnx_add_word(f->w, to, "coordinate_transformation_mode",
                        is_linear ? "half_pixel" : "asymmetric");
    if (!is_linear)
        hwnas_onnx_add_word(f->w, to, "nearest_mode", "floor");
}

/* A product with one zero or, as no other operator of ONNX both skips and multiplies by a constant,
 * a depthwise convolution with one for each channel. */
static void write_zero(const form *f)
{
    const int64_t stride = hwnas_node_attr(f->node, "stride")->ints[0];
    if (stride == 1) {
        add_last(f, "Mul", input_of(f, 0), input_of(f, 1));
        return;
    }
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "Conv", f->node->name, output_of(f), 2);
    to->input[to->n_input++] = text(input_of(f, 0));
    to->input[to->n_input++] = text(input_of(f, 1));
    hwnas_onnx_add_int(f->w, to, "group", hwnas_node_input(f->w->from, f->node, 1)->dims[0]);
    hwnas_onnx_add_ints(f->w, to, "strides", 2, (const int64_t[]){stride, stride});
}

/* The type by its number. Files of ours have floats of 32 bits, so what rounds to fewer casts back.
 */
static void write_cast(const form *f)
{
    const char *x = input_of(f, 0);
    if (hwnas_rounds(f->node)) {
        const char *low = name_of(f, "low");
        Onnx__NodeProto *round = hwnas_onnx_add_node(f->w, "Cast", low, low, 1);
        round->input[round->n_input++] = text(x);
        hwnas_onnx_add_int(f->w, round, "to", ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16);
        x = low;
    }
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "Cast", f->node->name, output_of(f), 1);
    to->input[to->n_input++] = text(x);
    hwnas_onnx_add_int(f->w, to, "to", hwnas_onnx_written((hwnas_dtype)f->node->attrs->ints[0]));
}

/* What is new at the beginnings, then at the ends; and its value. */
static void write_pad(const form *f)
{
    const int rank = hwnas_node_input(f->w->from, f->node, 0)->rank;
    const hwnas_attr *before = hwnas_node_attr(f->node, "before"), *after = before + 1;
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    int64_t pads[2 * HWNAS_MAX_RANK];
    memcpy(pads, before->ints, (size_t)rank * sizeof *pads);
    memcpy(pads + rank, after->ints, (size_t)rank * sizeof *pads);
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "Pad", f->node->name, output_of(f), 1);
    to->input[to->n_input++] = text(input_of(f, 0));
    to->input[to->n_input++] = text(hwnas_onnx_add_whole(f->w, name_of(f, "pads"), 2 * rank, pads));
    to->input[to->n_input++] = text(
        hwnas_onnx_add_number(f->w, name_of(f, "value"), hwnas_node_output(f->w->from, f->node),
                              hwnas_node_attr(f->node, "value")->number));
    hwnas_onnx_add_word(f->w, to, "mode", modes[hwnas_node_attr(f->node, "mode")->ints[0]]);
}

/* ONNX has sums' axes as an input since opset 13, those of other reductions since 18. */
static void write_sum(const form *f)
{
    const hwnas_attr *axes = hwnas_node_attr(f->node, "axes");
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "ReduceSum", f->node->name, output_of(f), 1);
    to->input[to->n_input++] = text(input_of(f, 0));
    if (axes->n) /* a single number has none */
        to->input[to->n_input++] =
            text(hwnas_onnx_add_whole(f->w, name_of(f, "axes"), axes->n, axes->ints));
    hwnas_onnx_add_int(f->w, to, "keepdims", hwnas_node_attr(f->node, "keep")->ints[0]);
}

/* The first output is the values, the second one the places. ONNX lets nobody leave one out. */
static void write_top_k(const form *f)
{
    const bool is_places = hwnas_node_attr(f->node, "places")->ints[0];
    const char *values = is_places ? name_of(f, "values") : output_of(f);
    const char *places = is_places ? output_of(f) : name_of(f, "places");
    Onnx__NodeProto *to = hwnas_onnx_add_node(f->w, "TopK", f->node->name, values, 2);
    hwnas_onnx_add_second(f->w, to, places);
    to->input[to->n_input++] = text(input_of(f, 0));
    to->input[to->n_input++] = text(hwnas_onnx_add_whole(f->w, name_of(f, "count"), 1,
                                                         hwnas_node_attr(f->node, "count")->ints));
    hwnas_onnx_add_int(f->w, to, "axis", hwnas_node_attr(f->node, "axis")->ints[0]);
    hwnas_onnx_add_int(f->w, to, "largest", hwnas_node_attr(f->node, "largest")->ints[0]);
}

static void (*const forms[HWNAS_N_OPS])(const form *f) = {
    [HWNAS_OP_CAST] = write_cast,      [HWNAS_OP_GELU] = write_gelu,
    [HWNAS_OP_MISH] = write_mish,      [HWNAS_OP_PAD] = write_pad,
    [HWNAS_OP_REDUCE_SUM] = write_sum, [HWNAS_OP_RMS_NORM] = write_rms_norm,
    [HWNAS_OP_TOP_K] = write_top_k,    [HWNAS_OP_UPSAMPLE] = write_upsample,
    [HWNAS_OP_ZERO] = write_zero,
};

bool hwnas_onnx_write_form(hwnas_onnx_writer *w, const hwnas_node *node)
{
    if (!forms[node->op->id])
        return false;
    forms[node->op->id](&(form){w, node});
    return true;
}
