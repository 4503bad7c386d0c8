/* onnx_read_forms.c: operators that are not one node of ONNX with our inputs, as onnx_forms.c
 * writes them and others do. Where several nodes are one operator, graph/fuse.c finds it. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_reader.h"

static const Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
            return node->attribute[i];
    return NULL;
}

/* Is the attribute a list of this length? */
static const int64_t *find_ints(const Onnx__NodeProto *node, const char *name, size_t n)
{
    const Onnx__AttributeProto *found = find_attribute(node, name);
    return found && found->n_ints == n ? found->ints : NULL;
}

/* Is the attribute the word, or absent where that means it? */
static bool is_word(const Onnx__NodeProto *node, const char *name, const char *word,
                    bool is_default)
{
    const Onnx__AttributeProto *found = find_attribute(node, name);
    return found ? found->s.len == strlen(word) && !memcmp(found->s.data, word, found->s.len)
                 : is_default;
}

/* ---- zero ---- */

/* Does the constant hold `count` zeros? */
static bool is_zeros(const Onnx__TensorProto *from, size_t count)
{
    if (!from->has_data_type || from->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
        return false;
    if (hwnas_onnx_is_external(from)) {
        const char *init =
            hwnas_onnx_find_entry(from->external_data, from->n_external_data, "init");
        return init && !strcmp(init, hwnas_onnx_inits[HWNAS_INIT_ZERO]);
    }
    size_t n = from->has_raw_data ? from->raw_data.len / sizeof(float) : from->n_float_data;
    for (size_t i = 0; i < n; i++) {
        float value;
        if (from->has_raw_data)
            memcpy(&value, from->raw_data.data + i * sizeof value, sizeof value);
        else
            value = from->float_data[i];
        if (value != 0)
            return false;
    }
    return n == count;
}

/* Conv by a zero for each channel, alike in both directions: the stride, else 0. */
static int64_t stride_of_zeros(const Onnx__NodeProto *node, const Onnx__TensorProto *weight)
{
    const int64_t *strides = find_ints(node, "strides", 2), *pads = find_ints(node, "pads", 4);
    const Onnx__AttributeProto *group = find_attribute(node, "group");
    if (weight->n_dims != 4 || weight->dims[1] != 1 || weight->dims[2] != 1 ||
        weight->dims[3] != 1 || weight->dims[0] < 1 || !strides || strides[0] != strides[1] ||
        strides[0] < 2 || !group || group->i != weight->dims[0] ||
        (pads && (pads[0] || pads[1] || pads[2] || pads[3])))
        return 0;
    return is_zeros(weight, (size_t)weight->dims[0]) ? strides[0] : 0;
}

/* Is it how `zero` is written? Then gives the data and the stride. */
static bool is_zero_node(int *out, int64_t *stride, const hwnas_onnx_reader *r,
                         const Onnx__NodeProto *node)
{
    const bool is_mul = !strcmp(node->op_type, "Mul");
    const hwnas_onnx_named *sides[2];
    if (node->n_input != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        sides[i] = hwnas_onnx_find_value(r, node->input[i]);
        if (sides[i] && sides[i]->same_as)
            sides[i] = sides[i]->same_as;
        if (!sides[i])
            return false;
    }
    const int data = is_mul && sides[0]->constant ? 1 : 0;
    const Onnx__TensorProto *zeros = sides[1 - data]->constant;
    *out = sides[data]->tensor;
    if (!zeros || sides[data]->constant || *out == HWNAS_ONNX_NOT_MADE)
        return false;
    const hwnas_tensor *in = &r->graph->tensors[*out];
    if (!is_mul) {
        *stride = stride_of_zeros(node, zeros);
        return *stride && in->rank == 4 && in->dims[1] == zeros->dims[0];
    }
    *stride = 1;
    for (size_t i = 0; i < zeros->n_dims; i++)
        if (zeros->dims[i] != 1)
            return false;
    return is_zeros(zeros, 1) && zeros->n_dims <= (size_t)in->rank;
}

static hwnas_status read_zero(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                              const char *name)
{
    int input;
    int64_t stride;
    if (!is_zero_node(&input, &stride, r, node))
        return HWNAS_OK;
    const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {stride}};
    return hwnas_graph_add_node(out, r->graph, hwnas_op_by_name("zero"), name, &attr, 1, &input,
                                true);
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
    const bool is_half = is_word(node, where, "half_pixel", true) ||
                         is_word(node, where, "pytorch_half_pixel", false);
    if (is_linear)
        return is_half;
    if (is_half)
        return is_word(node, "nearest_mode", "round_prefer_floor", true) ||
               is_word(node, "nearest_mode", "round_prefer_ceil", false);
    return is_word(node, where, "asymmetric", false) &&
           is_word(node, "nearest_mode", "floor", false);
}

static hwnas_status read_upsample(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    enum { SCALES = 2, SIZES };
    hwnas_onnx_named *data = NULL;
    int64_t by[2];
    if (node->n_input < 1)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no input", hwnas_onnx_describe(node).s);
    TRY(hwnas_onnx_resolve(&data, r, node->input[0], hwnas_onnx_describe(node).s));
    const bool is_linear = is_word(node, "mode", "linear", false);
    if (data->tensor == HWNAS_ONNX_NOT_MADE ||
        !(is_linear || is_word(node, "mode", "nearest", true)) ||
        !places_pixels_as_we(node, is_linear) ||
        !(read_factors(by, r, node, SCALES, r->graph->tensors[data->tensor]) ||
          read_factors(by, r, node, SIZES, r->graph->tensors[data->tensor])))
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "%s resizes in a way that we cannot compute",
                                     hwnas_onnx_describe(node).s),
                          "images are made larger by whole constant factors, nearest or linear");
    const hwnas_attr attrs[] = {{.is_set = true, .n = 2, .ints = {by[0], by[1]}},
                                {.is_set = true, .n = 1, .ints = {is_linear}}};
    return hwnas_graph_add_node(out, r->graph, hwnas_op_by_name("upsample"), name, attrs, 1,
                                &data->tensor, false);
}

static const struct {
    const char *type;
    hwnas_status (*read)(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                         const char *name);
} forms[] = {
    {"Conv", read_zero},
    {"Mul", read_zero},
    {"Resize", read_upsample},
};

hwnas_status hwnas_onnx_read_form(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i].type, node->op_type))
            return forms[i].read(out, r, node, name);
    return HWNAS_OK;
}
