/* onnx_read_forms.c: operators that are not one node of ONNX with our inputs, as onnx_forms.c
 * writes them and others do. Where several nodes are one operator, graph/fuse.c finds it. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_reader.h"

const Onnx__AttributeProto *hwnas_onnx_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
            return node->attribute[i];
    return NULL;
}

int64_t hwnas_onnx_int(const Onnx__NodeProto *node, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *found = hwnas_onnx_attribute(node, name);
    return found ? found->i : absent;
}

double hwnas_onnx_float(const Onnx__NodeProto *node, const char *name, double absent)
{
    const Onnx__AttributeProto *found = hwnas_onnx_attribute(node, name);
    return found ? (double)found->f : absent;
}

bool hwnas_onnx_is_word(const Onnx__NodeProto *node, const char *name, const char *word,
                        bool is_default)
{
    const Onnx__AttributeProto *found = hwnas_onnx_attribute(node, name);
    return found ? found->s.len == strlen(word) && !memcmp(found->s.data, word, found->s.len)
                 : is_default;
}

bool hwnas_onnx_has_input(const Onnx__NodeProto *node, size_t i)
{
    return i < node->n_input && !is_empty(node->input[i]);
}

hwnas_status hwnas_onnx_input(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node, size_t i)
{
    hwnas_onnx_named *value = NULL;
    if (!hwnas_onnx_has_input(node, i))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no input %zu", hwnas_onnx_describe(node).s,
                          i);
    TRY(hwnas_onnx_resolve(&value, r, node->input[i], hwnas_onnx_describe(node).s));
    if (value->constant)
        TRY(hwnas_onnx_make_weight(r, value, true));
    *out = value->tensor;
    return HWNAS_OK;
}

int64_t hwnas_onnx_item(const hwnas_onnx_reader *r, const char *name, const hwnas_tensor *from,
                        int64_t k)
{
    const hwnas_onnx_named *value = hwnas_onnx_find_origin(r, name);
    const Onnx__TensorProto *constant = value ? value->constant : NULL;
    int64_t item;
    if (!constant || constant->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
        hwnas_onnx_is_external(constant))
        return hwnas_onnx_whole(from->data[k]);
    if (!constant->has_raw_data)
        return constant->int64_data[k];
    memcpy(&item, constant->raw_data.data + (size_t)k * sizeof item, sizeof item);
    return item;
}

hwnas_status hwnas_onnx_read_list(hwnas_onnx_list *out, hwnas_onnx_reader *r,
                                  const Onnx__NodeProto *node, const char *attribute, size_t i)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, attribute);
    const hwnas_tensor *from = NULL;
    out->n = -1;
    if (!given && !hwnas_onnx_has_input(node, i))
        return HWNAS_OK;
    if (!given && hwnas_onnx_is_nothing(r, node->input[i])) {
        out->n = 0;
        return HWNAS_OK;
    }
    if (!given) {
        TRY(hwnas_onnx_constant(&from, r, node->input[i], hwnas_onnx_describe(node).s));
        if (!from)
            return hwnas_onnx_unsupported(node, attribute, "is computed from the network's input");
    }
    const int64_t n = given ? (int64_t)given->n_ints : hwnas_tensor_count(from);
    if (n > HWNAS_MAX_RANK)
        return hwnas_onnx_unsupported(node, attribute, "has more than 8 values");
    out->n = (int)n;
    for (int k = 0; k < out->n; k++)
        out->items[k] = given ? given->ints[k] : hwnas_onnx_item(r, node->input[i], from, k);
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_add(int *out, hwnas_onnx_reader *r, hwnas_op_id op, const char *name,
                            const char *suffix, const hwnas_attr *attrs, int n_inputs,
                            const int *inputs)
{
    const char *own = suffix ? hwnas_arena_printf(r->graph->arena, "%s.%s", name, suffix) : name;
    hwnas_status status =
        hwnas_graph_add_node(out, r->graph, hwnas_ops[op], own, attrs, n_inputs, inputs, false);
    return status == HWNAS_OK ? status : hwnas_context(status, "node '%.100s'", name);
}

/* ---- upsample ---- */

/* How often the constant input `at`, of scales or of sizes, repeats rows and columns; false when
 * that is not a whole factor of an image. */
static bool read_factors(int64_t *by, hwnas_onnx_reader *r, const Onnx__NodeProto *node, size_t at,
                         hwnas_tensor in)
{
    const bool is_size = at == 3;
    if (at >= node->n_input || is_empty(node->input[at]) || in.rank != 4)
        return false;
    const hwnas_tensor *from = NULL;
    if (hwnas_onnx_constant(&from, r, node->input[at], "Resize") || !from ||
        hwnas_tensor_count(from) != 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const double factor = from->data[i] / (is_size ? (double)in.dims[i] : 1.0);
        if (factor != floor(factor) || factor < 1 || factor > 1 << 20 || (i < 2 && factor != 1))
            return false;
        if (i >= 2)
            by[i - 2] = (int64_t)factor;
    }
    return true;
}

/* For whole factors several of ONNX's ways to place pixels are one: the nearest is the pixel
 * itself. */
static bool places_pixels_as_we(const Onnx__NodeProto *node, bool is_linear)
{
    const char *where = "coordinate_transformation_mode";
    const bool is_half = hwnas_onnx_is_word(node, where, "half_pixel", true) ||
                         hwnas_onnx_is_word(node, where, "pytorch_half_pixel", false);
    if (is_linear)
        return is_half;
    if (is_half)
        return hwnas_onnx_is_word(node, "nearest_mode", "round_prefer_floor", true) ||
               hwnas_onnx_is_word(node, "nearest_mode", "round_prefer_ceil", false);
    return hwnas_onnx_is_word(node, where, "asymmetric", false) &&
           hwnas_onnx_is_word(node, "nearest_mode", "floor", false);
}

hwnas_status hwnas_onnx_read_upsample(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                      const char *name)
{
    enum { SCALES = 2, SIZES };
    hwnas_onnx_named *data = NULL;
    int64_t by[2];
    if (node->n_input < 1)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no input", hwnas_onnx_describe(node).s);
    TRY(hwnas_onnx_resolve(&data, r, node->input[0], hwnas_onnx_describe(node).s));
    const bool is_linear = hwnas_onnx_is_word(node, "mode", "linear", false);
    if (data->tensor == HWNAS_ONNX_NOT_MADE ||
        !(is_linear || hwnas_onnx_is_word(node, "mode", "nearest", true)) ||
        hwnas_onnx_attribute(node, "axes") || !places_pixels_as_we(node, is_linear) ||
        !(read_factors(by, r, node, SCALES, r->graph->tensors[data->tensor]) ||
          read_factors(by, r, node, SIZES, r->graph->tensors[data->tensor])))
        return HWNAS_OK;
    const hwnas_attr attrs[] = {{.is_set = true, .n = 2, .ints = {by[0], by[1]}},
                                {.is_set = true, .n = 1, .ints = {is_linear}}};
    return hwnas_graph_add_node(out, r->graph, hwnas_ops[HWNAS_OP_UPSAMPLE], name, attrs, 1,
                                &data->tensor, false);
}

/* With an input that says whether to train, which it may say where nothing is zeroed: PyTorch
 * writes so a dropout of rate 0 whose `training` was left as it is by default. */
static hwnas_status read_dropout(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                 const char *name)
{
    enum { RATIO = 1, TRAINS };
    const hwnas_tensor *given[3] = {NULL};
    hwnas_attr rate = hwnas_attr_number(0.5);
    int x;
    if (!hwnas_onnx_has_input(node, TRAINS))
        return HWNAS_OK;
    for (size_t i = RATIO; i <= TRAINS; i++) {
        if (!hwnas_onnx_has_input(node, i))
            continue;
        TRY(hwnas_onnx_constant(&given[i], r, node->input[i], hwnas_onnx_describe(node).s));
        if (!given[i])
            return hwnas_onnx_unsupported(node, i == RATIO ? "ratio" : "training_mode",
                                          "is computed from the network's input");
    }
    if (given[RATIO])
        rate.number = (double)given[RATIO]->data[0];
    if (given[TRAINS]->data[0] != 0 && !(rate.number <= 0))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                       "%s zeroes values at random: the network was exported as it is "
                       "trained",
                       hwnas_onnx_describe(node).s),
            "call model.eval() before the export");
    TRY(hwnas_onnx_input(&x, r, node, 0));
    return hwnas_graph_add_node(out, r->graph, hwnas_ops[HWNAS_OP_DROPOUT], name, &rate, 1, &x,
                                false);
}

static const struct {
    const char *type;
    hwnas_onnx_form *read;
    const char *domain; /* NULL: ONNX's own */
} forms[] = {
    {"Attention", hwnas_onnx_read_attention, HWNAS_ONNX_CONTRIB},
    {"AveragePool", hwnas_onnx_read_pool},
    {"Bernoulli", hwnas_onnx_read_bernoulli},
    {"BiasGelu", hwnas_onnx_read_contrib_gelu, HWNAS_ONNX_CONTRIB},
    {"BitShift", hwnas_onnx_read_bit_shift},
    {"Cast", hwnas_onnx_read_cast},
    {"CastLike", hwnas_onnx_read_cast_like},
    {"Compress", hwnas_onnx_read_compress},
    {"Concat", hwnas_onnx_read_concat},
    {"Constant", hwnas_onnx_read_constant},
    {"ConstantOfShape", hwnas_onnx_read_constant_of_shape},
    {"Conv", hwnas_onnx_read_conv},
    {"ConvInteger", hwnas_onnx_read_conv_integer},
    {"ConvTranspose", hwnas_onnx_read_conv_transpose},
    {"DepthToSpace", hwnas_onnx_read_depth_space},
    {"Dropout", read_dropout},
    {"DynamicQuantizeLinear", hwnas_onnx_read_dynamic_quantize},
    {"Einsum", hwnas_onnx_read_einsum},
    {"EmbedLayerNormalization", hwnas_onnx_read_embed_norm, HWNAS_ONNX_CONTRIB},
    {"Expand", hwnas_onnx_read_expand},
    {"EyeLike", hwnas_onnx_read_eye},
    {"FastGelu", hwnas_onnx_read_contrib_gelu, HWNAS_ONNX_CONTRIB},
    {"Flatten", hwnas_onnx_read_flatten},
    {"FusedConv", hwnas_onnx_read_fused, HWNAS_ONNX_CONTRIB},
    {"FusedGemm", hwnas_onnx_read_fused, HWNAS_ONNX_CONTRIB},
    {"FusedMatMul", hwnas_onnx_read_fused_matmul, HWNAS_ONNX_CONTRIB},
    {"GRU", hwnas_onnx_read_recurrent},
    {"Gather", hwnas_onnx_read_gather},
    {"Gelu", hwnas_onnx_read_contrib_gelu, HWNAS_ONNX_CONTRIB},
    {"Gemm", hwnas_onnx_read_gemm},
    {"GlobalAveragePool", hwnas_onnx_read_global_pool},
    {"GlobalLpPool", hwnas_onnx_read_global_pool},
    {"GlobalMaxPool", hwnas_onnx_read_global_pool},
    {"GroupNormalization", hwnas_onnx_read_group_norm},
    {"Hardmax", hwnas_onnx_read_softmax},
    {"InstanceNormalization", hwnas_onnx_read_group_norm},
    {"LRN", hwnas_onnx_read_lrn},
    {"LSTM", hwnas_onnx_read_recurrent},
    {"LogSoftmax", hwnas_onnx_read_softmax},
    {"LpNormalization", hwnas_onnx_read_lp_norm},
    {"LpPool", hwnas_onnx_read_lp_pool},
    {"MatMul", hwnas_onnx_read_matmul},
    {"MatMulInteger", hwnas_onnx_read_matmul_integer},
    {"MatMulNBits", hwnas_onnx_read_matmul_n_bits, HWNAS_ONNX_CONTRIB},
    {"Max", hwnas_onnx_read_variadic},
    {"MaxPool", hwnas_onnx_read_pool},
    {"Mean", hwnas_onnx_read_variadic},
    {"MeanVarianceNormalization", hwnas_onnx_read_mvn},
    {"Min", hwnas_onnx_read_variadic},
    {"OneHot", hwnas_onnx_read_one_hot},
    {"Pad", hwnas_onnx_read_pad},
    {"QLinearConv", hwnas_onnx_read_qlinear_conv},
    {"QLinearMatMul", hwnas_onnx_read_qlinear_matmul},
    {"QuickGelu", hwnas_onnx_read_swish, HWNAS_ONNX_CONTRIB},
    {"RNN", hwnas_onnx_read_recurrent},
    {"RandomNormal", hwnas_onnx_read_random},
    {"RandomNormalLike", hwnas_onnx_read_random_like},
    {"RandomUniform", hwnas_onnx_read_random},
    {"RandomUniformLike", hwnas_onnx_read_random_like},
    {"Range", hwnas_onnx_read_range},
    {"ReduceL1", hwnas_onnx_read_reduce},
    {"ReduceL2", hwnas_onnx_read_reduce},
    {"ReduceLogSum", hwnas_onnx_read_reduce},
    {"ReduceLogSumExp", hwnas_onnx_read_reduce},
    {"ReduceMax", hwnas_onnx_read_reduce},
    {"ReduceMean", hwnas_onnx_read_reduce},
    {"ReduceMin", hwnas_onnx_read_reduce},
    {"ReduceProd", hwnas_onnx_read_reduce},
    {"ReduceSum", hwnas_onnx_read_reduce},
    {"ReduceSumSquare", hwnas_onnx_read_reduce},
    {"Reshape", hwnas_onnx_read_reshape},
    {"Resize", hwnas_onnx_read_resize},
    {"ReverseSequence", hwnas_onnx_read_reverse_sequence},
    {"Shape", hwnas_onnx_read_shape},
    {"SimplifiedLayerNormalization", hwnas_onnx_read_skip_norm},
    {"Size", hwnas_onnx_read_size},
    {"SkipLayerNormalization", hwnas_onnx_read_skip_norm, HWNAS_ONNX_CONTRIB},
    {"SkipSimplifiedLayerNormalization", hwnas_onnx_read_skip_norm, HWNAS_ONNX_CONTRIB},
    {"Slice", hwnas_onnx_read_slice},
    {"Softmax", hwnas_onnx_read_softmax},
    {"SpaceToDepth", hwnas_onnx_read_depth_space},
    {"Split", hwnas_onnx_read_split},
    {"Squeeze", hwnas_onnx_read_squeeze},
    {"Sum", hwnas_onnx_read_variadic},
    {"Swish", hwnas_onnx_read_swish},
    {"Tile", hwnas_onnx_read_tile},
    {"TopK", hwnas_onnx_read_top_k},
    {"Transpose", hwnas_onnx_read_transpose},
    {"Trilu", hwnas_onnx_read_trilu},
    {"Unsqueeze", hwnas_onnx_read_unsqueeze},
    {"Upsample", hwnas_onnx_read_resize},
};

hwnas_status hwnas_onnx_read_form(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    const char *domain = hwnas_onnx_is_standard(node) ? "" : node->domain;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].type, node->op_type) &&
            !strcmp(forms[i].domain ? forms[i].domain : "", domain))
            return forms[i].read(out, r, node, name);
    return HWNAS_OK;
}
