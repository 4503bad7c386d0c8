/* onnx_mutator.c: what libFuzzer does to an ONNX file: as often as it changes bytes, it changes
 * what they mean: numbers of attributes and constants, dimensions, types, operators, inputs.
 * Changed bytes are no protobuf most of the time, and do not come as far as the operators. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "fuzz.h"
#include "graph/op.h"
#include "onnx/onnx_priv.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { STREAM = 1, MOST_EDITS = 3 };

static uint32_t below(hwnas_rng *rng, size_t n)
{
    return hwnas_rng_below(rng, (uint32_t)n);
}

static int64_t hostile(hwnas_rng *rng)
{
    static const int64_t ends[] = {INT64_MIN,
                                   INT64_MIN + 1,
                                   INT64_MAX,
                                   INT64_MAX - 1,
                                   INT32_MIN,
                                   INT32_MAX,
                                   1 << 20,
                                   1 << 30,
                                   INT64_C(1) << 32,
                                   INT64_C(1) << 40,
                                   0,
                                   0,
                                   -1,
                                   1,
                                   2,
                                   -(INT64_C(1) << 40)};
    const size_t n = sizeof ends / sizeof *ends;
    return below(rng, 2) ? ends[below(rng, n)] : (int64_t)below(rng, 18) - 8;
}

static float hostile_float(hwnas_rng *rng)
{
    const float ends[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN, 0.0f, -0.0f, 0.5f};
    const size_t n = sizeof ends / sizeof *ends;
    return below(rng, 2) ? ends[below(rng, n)] : (float)below(rng, 18) - 8;
}

static void set_text(char **to, const char *text)
{
    if (*to != protobuf_c_empty_string)
        free(*to);
    *to = hwnas_strdup(text);
}

static void edit_tensor(Onnx__TensorProto *tensor, hwnas_rng *rng)
{
    const size_t width = tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ? 8 : 4;
    const size_t n_raw = tensor->raw_data.len / width;
    const int64_t whole = hostile(rng);
    const float number = hostile_float(rng);
    switch (below(rng, 4)) {
    case 0:
        if (tensor->n_dims)
            tensor->dims[below(rng, tensor->n_dims)] = whole;
        break;
    case 1:
        tensor->data_type = (int32_t)below(rng, 18);
        break;
    default:
        if (n_raw)
            memcpy(tensor->raw_data.data + width * below(rng, n_raw),
                   width == 8 ? (const void *)&whole : &number, width);
        if (tensor->n_int64_data)
            tensor->int64_data[below(rng, tensor->n_int64_data)] = whole;
        if (tensor->n_float_data)
            tensor->float_data[below(rng, tensor->n_float_data)] = number;
    }
}

static void edit_attribute(Onnx__AttributeProto *attribute, hwnas_rng *rng)
{
    if (attribute->t)
        edit_tensor(attribute->t, rng);
    if (attribute->n_ints)
        attribute->ints[below(rng, attribute->n_ints)] = hostile(rng);
    if (attribute->n_floats)
        attribute->floats[below(rng, attribute->n_floats)] = hostile_float(rng);
    if (attribute->has_i)
        attribute->i = hostile(rng);
    if (attribute->has_f)
        attribute->f = hostile_float(rng);
}

static void edit_operator(Onnx__NodeProto *node, hwnas_rng *rng)
{
    size_t n = 0;
    while (hwnas_ops[n])
        n++;
    const hwnas_op *op = hwnas_ops[below(rng, n)];
    if (op->onnx)
        set_text(&node->op_type, op->onnx);
}

/* An input becomes what another node reads or makes. */
static void edit_input(Onnx__NodeProto *node, const Onnx__NodeProto *other, hwnas_rng *rng)
{
    const size_t n = other->n_input + other->n_output;
    if (!node->n_input || !n)
        return;
    const size_t i = below(rng, n);
    char *name =
        hwnas_strdup(i < other->n_input ? other->input[i] : other->output[i - other->n_input]);
    set_text(&node->input[below(rng, node->n_input)], name);
    free(name);
}

static void edit_node(Onnx__GraphProto *graph, hwnas_rng *rng)
{
    if (!graph->n_node)
        return;
    Onnx__NodeProto *node = graph->node[below(rng, graph->n_node)];
    switch (below(rng, 8)) {
    case 0:
        edit_operator(node, rng);
        break;
    case 1:
        edit_input(node, graph->node[below(rng, graph->n_node)], rng);
        break;
    default:
        if (node->n_attribute)
            edit_attribute(node->attribute[below(rng, node->n_attribute)], rng);
    }
}

static void edit_graph_input(Onnx__GraphProto *graph, hwnas_rng *rng)
{
    const Onnx__ValueInfoProto *value =
        graph->n_input ? graph->input[below(rng, graph->n_input)] : NULL;
    Onnx__TypeProto__Tensor *type =
        value && value->type && value->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? value->type->tensor_type
            : NULL;
    if (!type)
        return;
    if (!below(rng, 3)) {
        type->elem_type = (int32_t)below(rng, 18);
    } else if (type->shape && type->shape->n_dim) {
        Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[below(rng, type->shape->n_dim)];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            dim->dim_value = hostile(rng);
    }
}

static void edit(Onnx__ModelProto *model, hwnas_rng *rng)
{
    Onnx__GraphProto *graph = model->graph;
    switch (below(rng, 8)) {
    case 0:
        edit_graph_input(graph, rng);
        break;
    case 1:
        if (model->n_opset_import)
            model->opset_import[0]->version = 7 + below(rng, 16);
        break;
    case 2:
    case 3:
        if (graph->n_initializer)
            edit_tensor(graph->initializer[below(rng, graph->n_initializer)], rng);
        break;
    default:
        edit_node(graph, rng);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, STREAM);
    Onnx__ModelProto *model = NULL;
    if (!below(&rng, 2) || hwnas_onnx_unpack(&model, data, size) != HWNAS_OK)
        return LLVMFuzzerMutate(data, size, most);
    const uint32_t n = 1 + below(&rng, MOST_EDITS);
    for (uint32_t i = 0; i < n && model->graph; i++)
        edit(model, &rng);
    const size_t length = onnx__model_proto__get_packed_size(model);
    if (length <= most)
        size = onnx__model_proto__pack(model, data);
    onnx__model_proto__free_unpacked(model, NULL);
    return size;
}
