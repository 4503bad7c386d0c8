/* pytorch_flat_ops.c: what each operator of a graph is in PyTorch. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "export/pytorch_flat.h"

static const hwnas_tensor *output(hwnas_flat *f, const hwnas_node *node)
{
    return hwnas_node_output(f->graph, node);
}

static int64_t number_of(const hwnas_node *node, const char *attr)
{
    return hwnas_node_attr(node, attr)->ints[0];
}

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

/* ---- Pieces of texts ---- */

/* "$0[:, " and the like: everything of the dimensions before. */
static const char *dimensions_before(hwnas_flat *f, const char *text, int64_t axis)
{
    for (int64_t i = 0; i < axis; i++)
        text = TEXT("%s:, ", text);
    return text;
}

/* An axis counted from the beginning. */
static int64_t axis_of(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t axis = number_of(node, "axis");
    return axis < 0 ? axis + hwnas_flat_input(f, node, 0)->rank : axis;
}

/* Input 1 as indices below `n`, where PyTorch takes none from the end. */
static const char *places(hwnas_flat *f, const hwnas_node *node, int64_t n)
{
    const hwnas_tensor *indices = hwnas_flat_input(f, node, 1);
    bool is_negative = !indices->data;
    for (int64_t i = 0; !is_negative && i < hwnas_tensor_count(indices); i++)
        is_negative = indices->data[i] < 0;
    return is_negative ? TEXT("$1 %% %lld", (long long)n) : "$1";
}

/* ---- Shapes ---- */

/* The output's shape; what is the batch goes with another batch as well. */
static const char *write_reshape(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *out = output(f, node);
    const int batch = hwnas_flat_batch_dim(f, node);
    int64_t dims[HWNAS_MAX_RANK];
    memcpy(dims, out->dims, sizeof dims);
    if (batch >= 0)
        dims[batch] = -1;
    if (!out->rank)
        return "$0.reshape(())";
    return TEXT("$0.reshape(%s)", hwnas_flat_list(f, out->rank, dims));
}

static const char *write_flatten(hwnas_flat *f, const hwnas_node *node)
{
    return number_of(node, "axis") == 1 && hwnas_flat_input(f, node, 0)->rank > 1
               ? "$0.flatten(1)"
               : write_reshape(f, node);
}

static const char *write_expand(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_flat_input(f, node, 0), *out = output(f, node);
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0; i < out->rank; i++) {
        const int from = i - (out->rank - in->rank);
        dims[i] = from >= 0 && in->dims[from] == out->dims[i] ? -1 : out->dims[i];
    }
    return TEXT("$0.expand(%s)", hwnas_flat_list(f, out->rank, dims));
}

static const char *write_slice(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t axis = axis_of(f, node), begin = number_of(node, "begin"),
                  end = number_of(node, "end"), step = number_of(node, "step");
    const char *text = dimensions_before(f, "$0[", axis);
    text = begin ? TEXT("%s%lld:", text, (long long)begin) : TEXT("%s:", text);
    if (end < hwnas_flat_input(f, node, 0)->dims[axis])
        text = TEXT("%s%lld", text, (long long)end);
    return step != 1 ? TEXT("%s:%lld]", text, (long long)step) : TEXT("%s]", text);
}

static const char *write_pad(hwnas_flat *f, const hwnas_node *node)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    const int64_t *before = hwnas_node_attr(node, "before")->ints,
                  *after = hwnas_node_attr(node, "after")->ints;
    const int64_t mode = number_of(node, "mode");
    const int rank = hwnas_flat_input(f, node, 0)->rank;
    int64_t sides[2 * HWNAS_MAX_RANK];
    if (mode) {
        hwnas_torch_file_need(&f->s.export->module, "pad_from_inside");
        return TEXT("pad_from_inside($0, [%s], [%s], \"%s\")", hwnas_flat_list(f, rank, before),
                    hwnas_flat_list(f, rank, after), modes[mode]);
    }
    for (int i = 0; i < rank; i++) {
        sides[2 * i] = before[rank - 1 - i];
        sides[2 * i + 1] = after[rank - 1 - i];
    }
    const double value = hwnas_node_attr(node, "value")->number;
    int n = 2 * rank;
    while (n > 2 && !sides[n - 1] && !sides[n - 2])
        n -= 2;
    if (!value)
        return TEXT("F.pad($0, (%s))", hwnas_flat_list(f, n, sides));
    return TEXT("F.pad($0, (%s), value=%s)", hwnas_flat_list(f, n, sides),
                hwnas_dtype_is_whole(output(f, node)->dtype) ? TEXT("%.0f", value)
                                                             : hwnas_flat_number(f, value));
}

static const char *write_zero(hwnas_flat *f, const hwnas_node *node)
{
    const long long stride = number_of(node, "stride");
    return stride > 1 ? TEXT("torch.zeros_like($0[:, :, ::%lld, ::%lld])", stride, stride)
                      : "torch.zeros_like($0)";
}

/* ---- Types and numbers ---- */

/* A float becomes a small whole number by way of a large one: what is too large wraps around. */
static const char *write_cast(hwnas_flat *f, const hwnas_node *node)
{
    const char *from = hwnas_flat_dtype(hwnas_flat_input(f, node, 0)->dtype);
    const char *to = hwnas_flat_dtype(output(f, node)->dtype);
    const bool is_whole = hwnas_dtype_is_whole(output(f, node)->dtype);
    if (!strcmp(from, to))
        return "$0";
    if (is_whole && strcmp(to, "torch.bool") && strcmp(to, "torch.int64") &&
        !hwnas_dtype_is_whole(hwnas_flat_input(f, node, 0)->dtype))
        return TEXT("$0.long().to(%s)", to);
    return TEXT("$0.to(%s)", to);
}

static const char *write_clip(hwnas_flat *f, const hwnas_node *node)
{
    double low = hwnas_node_attr(node, "low")->number, high = hwnas_node_attr(node, "high")->number;
    low = low <= -FLT_MAX ? -INFINITY : low;
    high = high >= FLT_MAX ? INFINITY : high;
    const char *text = "$0.clamp(";
    if (low > -INFINITY)
        text = TEXT("%smin=%s%s", text, hwnas_flat_number(f, low), high < INFINITY ? ", " : "");
    if (high < INFINITY)
        text = TEXT("%smax=%s", text, hwnas_flat_number(f, high));
    if (low == -INFINITY && high == INFINITY)
        return "$0";
    return low == 0 && high == 6 ? "F.relu6($0)" : TEXT("%s)", text);
}

static const char *write_div(hwnas_flat *f, const hwnas_node *node)
{
    return hwnas_dtype_is_whole(output(f, node)->dtype)
               ? "torch.div($0, $1, rounding_mode=\"trunc\")"
               : "$0 / $1";
}

static const char *write_hard_sigmoid(hwnas_flat *f, const hwnas_node *node)
{
    const double alpha = hwnas_node_attr(node, "alpha")->number,
                 beta = hwnas_node_attr(node, "beta")->number;
    return (float)alpha == 1 / 6.0f && beta == 0.5
               ? "F.hardsigmoid($0)"
               : TEXT("($0 * %s + %s).clamp(0, 1)", hwnas_flat_number(f, alpha),
                      hwnas_flat_number(f, beta));
}

static const char *write_selu(hwnas_flat *f, const hwnas_node *node)
{
    const double alpha = hwnas_node_attr(node, "alpha")->number,
                 gamma = hwnas_node_attr(node, "gamma")->number;
    return (float)alpha == (float)1.67326319217681884765625 &&
                   (float)gamma == (float)1.05070102214813232421875
               ? "F.selu($0)"
               : TEXT("torch.where($0 > 0, $0, %s * $0.expm1()) * %s", hwnas_flat_number(f, alpha),
                      hwnas_flat_number(f, gamma));
}

static const char *write_gelu(hwnas_flat *f, const hwnas_node *node)
{
    (void)f;
    return number_of(node, "tanh") ? "F.gelu($0, approximate=\"tanh\")" : "F.gelu($0)";
}

static const char *write_is_inf(hwnas_flat *f, const hwnas_node *node)
{
    (void)f;
    const bool negative = number_of(node, "negative"), positive = number_of(node, "positive");
    return negative && positive ? "$0.isinf()"
           : negative           ? "$0.isneginf()"
           : positive           ? "$0.isposinf()"
                                : "torch.zeros_like($0, dtype=torch.bool)";
}

/* A scale or zero point, beside the dimension that it is for. */
static const char *beside(hwnas_flat *f, const hwnas_node *node, int i)
{
    const char *text = TEXT("$%d", i);
    if (hwnas_tensor_count(hwnas_flat_input(f, node, i)) == 1)
        return text;
    const char *ones = "";
    for (int64_t d = number_of(node, "axis") + 1; d < hwnas_flat_input(f, node, 0)->rank; d++)
        ones = TEXT("%s, 1", ones);
    return *ones ? TEXT("%s.view(-1%s)", text, ones) : text;
}

static const char *write_quantize(hwnas_flat *f, const hwnas_node *node)
{
    static const long long bounds[HWNAS_N_DTYPES][2] = {
        [HWNAS_INT8] = {-128, 127},
        [HWNAS_INT16] = {-32768, 32767},
        [HWNAS_UINT16] = {0, 65535},
        [HWNAS_INT32] = {-2147483648LL, 2147483647LL},
        [HWNAS_UINT8] = {0, 255}};
    const long long *bound = bounds[output(f, node)->dtype];
    const char *text = TEXT("($0 / %s).round()", beside(f, node, 1));
    if (node->n_inputs > 2)
        text = TEXT("(%s + %s)", text, beside(f, node, 2));
    return TEXT("%s.clamp(%lld, %lld)", text, bound[0], bound[1]);
}

static const char *write_dequantize(hwnas_flat *f, const hwnas_node *node)
{
    return node->n_inputs > 2 ? TEXT("($0 - %s) * %s", beside(f, node, 2), beside(f, node, 1))
                              : TEXT("$0 * %s", beside(f, node, 1));
}

/* ---- Along an axis ---- */

static const char *write_cum_sum(hwnas_flat *f, const hwnas_node *node)
{
    const long long axis = axis_of(f, node), n = hwnas_flat_input(f, node, 0)->dims[axis];
    const bool is_exclusive = number_of(node, "exclusive"), is_reverse = number_of(node, "reverse");
    const char *text = is_reverse ? TEXT("$0.flip(%lld)", axis) : "$0";
    if (is_exclusive) { /* without the last, behind a zero */
        text =
            TEXT("torch.cat([torch.zeros_like($0.narrow(%lld, 0, 1)), %s.narrow(%lld, 0, %lld)], "
                 "dim=%lld)",
                 axis, text, axis, n - 1, axis);
    }
    text = TEXT("%s.cumsum(%lld)", text, axis);
    return is_reverse ? TEXT("%s.flip(%lld)", text, axis) : text;
}

static const char *write_arg(hwnas_flat *f, const hwnas_node *node)
{
    const char *name = node->op->id == HWNAS_OP_ARG_MAX ? "argmax" : "argmin";
    const long long axis = axis_of(f, node);
    const char *keep = number_of(node, "keep") ? ", keepdim=True" : "";
    if (!number_of(node, "last"))
        return TEXT("$0.%s(%lld%s)", name, axis, keep);
    return TEXT("%lld - $0.flip(%lld).%s(%lld%s)",
                (long long)hwnas_flat_input(f, node, 0)->dims[axis] - 1, axis, name, axis, keep);
}

/* Of equal values the first comes first, which topk() does not promise. */
static const char *write_top_k(hwnas_flat *f, const hwnas_node *node)
{
    const long long axis = axis_of(f, node);
    return TEXT("$0.sort(dim=%lld, descending=%s, stable=True)[%d].narrow(%lld, 0, %lld)", axis,
                number_of(node, "largest") ? "True" : "False", number_of(node, "places") ? 1 : 0,
                axis, (long long)number_of(node, "count"));
}

static const char *write_prod(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const char *text = "$0";
    for (int i = axes->n - 1; i >= 0; i--)
        text = TEXT("%s.prod(%lld%s)", text, (long long)axes->ints[i],
                    number_of(node, "keep") ? ", keepdim=True" : "");
    return text;
}

/* ---- By indices ---- */

/* $0[:, $1] */
static const char *write_gather(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *index = hwnas_flat_input(f, node, 1);
    const char *text = dimensions_before(f, "$0[", axis_of(f, node));
    if (index->data && !index->rank)
        return TEXT("%s%.0f]", text, index->data[0]);
    return TEXT("%s$1]", text);
}

static const char *write_gather_elements(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t axis = axis_of(f, node);
    return TEXT("$0.gather(%lld, %s)", (long long)axis,
                places(f, node, hwnas_flat_input(f, node, 0)->dims[axis]));
}

static const char *write_gather_nd(hwnas_flat *f, const hwnas_node *node)
{
    const long long n_batch = number_of(node, "batch_dims");
    if (!n_batch)
        return "$0[tuple($1.unbind(-1))]";
    hwnas_torch_file_need(&f->s.export->module, "gather_nd");
    return TEXT("gather_nd($0, $1, batch_dims=%lld)", n_batch);
}

static const char *const reductions[] = {NULL, "sum", "prod", "amax", "amin"};

static const char *write_scatter_elements(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t axis = axis_of(f, node), reduction = number_of(node, "reduction");
    const char *at = places(f, node, hwnas_flat_input(f, node, 0)->dims[axis]);
    return reduction ? TEXT("$0.scatter_reduce(%lld, %s, $2, \"%s\")", (long long)axis, at,
                            reductions[reduction])
                     : TEXT("$0.scatter(%lld, %s, $2)", (long long)axis, at);
}

static const char *write_scatter_nd(hwnas_flat *f, const hwnas_node *node)
{
    const int64_t reduction = number_of(node, "reduction");
    if (!reduction)
        return "$0.index_put(tuple($1.unbind(-1)), $2)";
    hwnas_torch_file_need(&f->s.export->module, "scatter_nd");
    return TEXT("scatter_nd($0, $1, $2, \"%s\")", reductions[reduction]);
}

/* ---- The table ---- */

#define FLOATS "f", 'f'
#define SAME "s", 's'
#define METHOD(ID, NAME, ...) [HWNAS_OP_##ID] = {"$0." NAME "()", __VA_ARGS__}
#define INFIX(ID, SIGN) [HWNAS_OP_##ID] = {"$0 " SIGN " $1", SAME}
#define COMPARES(ID, SIGN) [HWNAS_OP_##ID] = {"$0 " SIGN " $1", ".", 'b'}
#define FUNCTION(ID, TEXT, ...) [HWNAS_OP_##ID] = {TEXT, __VA_ARGS__}
#define WRITES(ID, TAKES, GIVES, NAME) [HWNAS_OP_##ID] = {NULL, TAKES, GIVES, .write = write_##NAME}

const hwnas_flat_row hwnas_flat_rows[HWNAS_N_OPS] = {
    METHOD(ABS, "abs", SAME),
    METHOD(ACOS, "acos", FLOATS),
    METHOD(ACOSH, "acosh", FLOATS),
    INFIX(ADD, "+"),
    [HWNAS_OP_AND] = {"$0 & $1", "b", 'b'},
    WRITES(ARG_MAX, ".", 'l', arg),
    WRITES(ARG_MIN, ".", 'l', arg),
    METHOD(ASIN, "asin", FLOATS),
    METHOD(ASINH, "asinh", FLOATS),
    METHOD(ATAN, "atan", FLOATS),
    METHOD(ATANH, "atanh", FLOATS),
    [HWNAS_OP_AVG_POOL] = {NULL, FLOATS, hwnas_flat_avg_pool},
    [HWNAS_OP_BATCH_NORM] = {"F.batch_norm($0, $3, $4, $1, $2, eps={epsilon})", "f", 'f',
                             .module = hwnas_flat_module_batch_norm},
    WRITES(CAST, ".", 's', cast),
    METHOD(CEIL, "ceil", FLOATS),
    FUNCTION(CELU, "F.celu($0, {alpha})", FLOATS),
    WRITES(CLIP, "f", 'f', clip),
    [HWNAS_OP_CONCAT] = {"torch.cat", "s", 's'}, /* of all inputs */
    [HWNAS_OP_CONV] = {NULL, "f", 'f', hwnas_flat_conv, hwnas_flat_module_conv,
                       hwnas_flat_before_conv},
    [HWNAS_OP_CONV_TRANSPOSE] = {NULL, "f", 'f', hwnas_flat_conv_transpose,
                                 hwnas_flat_module_conv_transpose},
    METHOD(COS, "cos", FLOATS),
    METHOD(COSH, "cosh", FLOATS),
    WRITES(CUM_SUM, "s", '+', cum_sum),
    WRITES(DEQUANTIZE_LINEAR, "f", 'f', dequantize),
    WRITES(DIV, "s", 's', div),
    [HWNAS_OP_DROPOUT] = {"$0", ".", 's', .module = hwnas_flat_module_dropout},
    FUNCTION(ELU, "F.elu($0, {alpha})", FLOATS),
    COMPARES(EQUAL, "=="),
    METHOD(ERF, "erf", FLOATS),
    METHOD(EXP, "exp", FLOATS),
    WRITES(EXPAND, "s", 's', expand),
    WRITES(FLATTEN, "s", 's', flatten),
    METHOD(FLOOR, "floor", FLOATS),
    [HWNAS_OP_GATHER] = {NULL, "sl", 's', write_gather, hwnas_flat_module_gather},
    WRITES(GATHER_ELEMENTS, "sl", 's', gather_elements),
    WRITES(GATHER_ND, "sl", 's', gather_nd),
    WRITES(GELU, "f", 'f', gelu),
    FUNCTION(GLOBAL_AVG_POOL, "$0.mean((2, 3), keepdim=True)", FLOATS),
    [HWNAS_OP_GRID_SAMPLE] = {NULL, FLOATS, hwnas_flat_grid_sample},
    COMPARES(GREATER, ">"),
    COMPARES(GREATER_OR_EQUAL, ">="),
    [HWNAS_OP_GRU_CORE] = {NULL, "f", 'f', NULL, hwnas_flat_module_rnn, hwnas_flat_before_rnn,
                           hwnas_flat_after_rnn},
    WRITES(HARD_SIGMOID, "f", 'f', hard_sigmoid),
    FUNCTION(HARD_SWISH, "F.hardswish($0)", FLOATS),
    WRITES(IS_INF, "f", 'b', is_inf),
    [HWNAS_OP_IS_NAN] = {"$0.isnan()", "f", 'b'},
    [HWNAS_OP_LAYER_NORM] = {NULL, "f", 'f', hwnas_flat_layer_norm, hwnas_flat_module_layer_norm},
    FUNCTION(LEAKY_RELU, "F.leaky_relu($0, {alpha})", FLOATS),
    COMPARES(LESS, "<"),
    COMPARES(LESS_OR_EQUAL, "<="),
    [HWNAS_OP_LINEAR] = {"F.linear($0, $1, $2)", "f", 'f', .module = hwnas_flat_module_linear},
    METHOD(LOG, "log", FLOATS),
    [HWNAS_OP_LSTM_CORE] = {NULL, "f", 'f', NULL, hwnas_flat_module_rnn, hwnas_flat_before_rnn,
                            hwnas_flat_after_rnn},
    FUNCTION(MATMUL, "$0 @ $1", FLOATS),
    FUNCTION(MAX, "torch.maximum($0, $1)", SAME),
    [HWNAS_OP_MAX_POOL] = {NULL, FLOATS, hwnas_flat_max_pool},
    FUNCTION(MEAN, "$0.mean(@)", FLOATS),
    FUNCTION(MIN, "torch.minimum($0, $1)", SAME),
    FUNCTION(MISH, "F.mish($0)", FLOATS),
    [HWNAS_OP_MOD] = {"torch.{fmod}($0, $1)", "s", 's'},
    INFIX(MUL, "*"),
    [HWNAS_OP_NEG] = {"-$0", "s", 's'},
    [HWNAS_OP_NOT] = {"~$0", "b", 'b'},
    [HWNAS_OP_OR] = {"$0 | $1", "b", 'b'},
    WRITES(PAD, "s", 's', pad),
    INFIX(POW, "**"),
    FUNCTION(PRELU, "torch.where($0 < 0, $0 * $1, $0)", SAME),
    WRITES(QUANTIZE_LINEAR, "f", 'f', quantize),
    FUNCTION(RECIPROCAL, "1 / $0", FLOATS),
    [HWNAS_OP_REDUCE_L1] = {"$0.abs().sum(@)", "s", '+'},
    FUNCTION(REDUCE_L2, "$0.square().sum(@).sqrt()", FLOATS),
    FUNCTION(REDUCE_LOG_SUM, "$0.sum(@).log()", FLOATS),
    FUNCTION(REDUCE_LOG_SUM_EXP, "$0.logsumexp(@)", FLOATS),
    FUNCTION(REDUCE_MAX, "$0.amax(@)", SAME),
    FUNCTION(REDUCE_MIN, "$0.amin(@)", SAME),
    WRITES(REDUCE_PROD, "s", '+', prod),
    [HWNAS_OP_REDUCE_SUM] = {"$0.sum(@)", "s", '+'},
    [HWNAS_OP_REDUCE_SUM_SQUARE] = {"$0.square().sum(@)", "s", '+'},
    FUNCTION(RELU, "F.relu($0)", SAME),
    WRITES(RESHAPE, "s", 's', reshape),
    [HWNAS_OP_RMS_NORM] = {NULL, "f", 'f', hwnas_flat_rms_norm},
    METHOD(ROUND, "round", FLOATS),
    WRITES(SCATTER_ELEMENTS, "sls", 's', scatter_elements),
    WRITES(SCATTER_ND, "sls", 's', scatter_nd),
    WRITES(SELU, "f", 'f', selu),
    FUNCTION(
        SHRINK,
        "torch.where($0 < -{lambda}, $0 + {bias}, torch.where($0 > {lambda}, $0 - {bias}, 0 * $0))",
        "f"),
    METHOD(SIGMOID, "sigmoid", FLOATS),
    METHOD(SIGN, "sign", SAME),
    METHOD(SIN, "sin", FLOATS),
    METHOD(SINH, "sinh", FLOATS),
    WRITES(SLICE, "s", 's', slice),
    FUNCTION(SOFTMAX, "$0.softmax({axis})", FLOATS),
    FUNCTION(SOFTPLUS, "F.softplus($0)", FLOATS),
    FUNCTION(SOFTSIGN, "F.softsign($0)", FLOATS),
    METHOD(SQRT, "sqrt", FLOATS),
    INFIX(SUB, "-"),
    METHOD(TAN, "tan", FLOATS),
    METHOD(TANH, "tanh", FLOATS),
    FUNCTION(THRESHOLDED_RELU, "F.threshold($0, {alpha}, 0.0)", FLOATS),
    WRITES(TOP_K, ".", 's', top_k),
    [HWNAS_OP_TRANSPOSE] = {"$0.permute({order})", "s", 's'},
    [HWNAS_OP_UPSAMPLE] = {NULL, FLOATS, hwnas_flat_upsample},
    [HWNAS_OP_WHERE] = {"torch.where($0, $1, $2)", "bs", 's'},
    [HWNAS_OP_XOR] = {"$0 ^ $1", "b", 'b'},
    WRITES(ZERO, "s", 's', zero),
};
