/* onnx_write.c: graph -> ONNX, by the operators' tables; what these cannot say is in onnx_forms.c.
 *
 * The messages are built in an arena and borrow names and given data from the graph, so all that is
 * copied are the bytes of the file itself. */
#include "onnx/onnx_reader.h"
#include "onnx/onnx_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graph/pack_weights.h"

/* protobuf readers refuse more. */
#define MAX_FILE_BYTES INT32_MAX

const char *const hwnas_onnx_inits[HWNAS_N_INITS] = {
    [HWNAS_INIT_FAN_IN] = "fan_in", [HWNAS_INIT_FAN_FIRST] = "fan_first",
    [HWNAS_INIT_SMALL] = "small",   [HWNAS_INIT_NEAR_ONE] = "near_one",
    [HWNAS_INIT_ZERO] = "zero",     [HWNAS_INIT_ONE] = "one",
};

typedef hwnas_onnx_writer writer;

static void *list(const writer *w, size_t n)
{
    return hwnas_arena_alloc(w->arena, (n ? n : 1) * sizeof(void *));
}

static void *message(const writer *w, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *made = hwnas_arena_alloc(w->arena, type->sizeof_message);
    type->message_init(made);
    return made;
}

static Onnx__StringStringEntryProto *entry(const writer *w, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *made = message(w, &onnx__string_string_entry_proto__descriptor);
    made->key = text(key);
    made->value = text(value);
    return made;
}

int32_t hwnas_onnx_written(hwnas_dtype dtype)
{
    return hwnas_onnx_types[hwnas_dtype_is_whole(dtype) ? dtype : HWNAS_FLOAT32];
}

static Onnx__ValueInfoProto *value_info(const writer *w, const char *name,
                                        const hwnas_tensor *tensor)
{
    Onnx__TensorShapeProto *shape = message(w, &onnx__tensor_shape_proto__descriptor);
    shape->n_dim = (size_t)tensor->rank;
    shape->dim = list(w, shape->n_dim);
    for (int i = 0; i < tensor->rank; i++) {
        shape->dim[i] = message(w, &onnx__tensor_shape_proto__dimension__descriptor);
        shape->dim[i]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        shape->dim[i]->dim_value = tensor->dims[i];
    }
    Onnx__ValueInfoProto *made = message(w, &onnx__value_info_proto__descriptor);
    made->name = text(name);
    made->type = message(w, &onnx__type_proto__descriptor);
    made->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    made->type->tensor_type = message(w, &onnx__type_proto__tensor__descriptor);
    made->type->tensor_type->has_elem_type = true;
    made->type->tensor_type->elem_type = hwnas_onnx_written(tensor->dtype);
    made->type->tensor_type->shape = shape;
    return made;
}

void hwnas_onnx_add_shape(writer *w, const char *name, const hwnas_tensor *tensor)
{
    w->to->value_info[w->to->n_value_info++] = value_info(w, name, tensor);
}

/* Appends an initialiser without values. */
static Onnx__TensorProto *add_constant(writer *w, const char *name, int32_t type, int rank,
                                       const int64_t *dims)
{
    Onnx__TensorProto *made = message(w, &onnx__tensor_proto__descriptor);
    made->name = text(name);
    made->has_data_type = true;
    made->data_type = type;
    made->n_dims = (size_t)rank;
    made->dims = (int64_t *)dims;
    w->to->initializer[w->to->n_initializer++] = made;
    return made;
}

static void set_raw_data(Onnx__TensorProto *tensor, const void *bytes, size_t length)
{
    tensor->has_raw_data = true;
    tensor->raw_data.data = (uint8_t *)bytes;
    tensor->raw_data.len = length;
}

const char *hwnas_onnx_add_floats(writer *w, const char *name, int rank, int64_t n,
                                  const float *values)
{
    const int64_t *length = hwnas_arena_copy(w->arena, &n, sizeof n);
    const size_t bytes = (size_t)n * sizeof *values;
    Onnx__TensorProto *made =
        add_constant(w, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, length);
    made->doc_string = text(HWNAS_ONNX_NOT_LEARNED);
    set_raw_data(made, hwnas_arena_copy(w->arena, values, bytes), bytes);
    return name;
}

const char *hwnas_onnx_add_whole(writer *w, const char *name, int64_t n, const int64_t *values)
{
    const size_t bytes = (size_t)n * sizeof *values;
    Onnx__TensorProto *made = add_constant(w, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1,
                                           hwnas_arena_copy(w->arena, &n, sizeof n));
    set_raw_data(made, hwnas_arena_copy(w->arena, values, bytes), bytes);
    return name;
}

const char *hwnas_onnx_add_raw(writer *w, const char *name, hwnas_dtype dtype, int rank,
                               const int64_t *dims, const void *bytes, size_t length)
{
    Onnx__TensorProto *made =
        add_constant(w, name, hwnas_onnx_types[dtype], rank,
                     hwnas_arena_copy(w->arena, dims, (size_t)rank * sizeof *dims));
    set_raw_data(made, bytes, length);
    return name;
}

const char *hwnas_onnx_add_number(writer *w, const char *name, const hwnas_tensor *like,
                                  double value)
{
    const bool is_whole = hwnas_dtype_is_whole(like->dtype);
    const size_t size = is_whole ? hwnas_onnx_size(like->dtype) : sizeof(float);
    const int bits = (int)size * 8;
    const bool is_signed = like->dtype == HWNAS_INT64 || like->dtype == HWNAS_INT32 ||
                           like->dtype == HWNAS_INT16 || like->dtype == HWNAS_INT8;
    const double high = like->dtype == HWNAS_BOOL ? 1 : ldexp(1, bits - is_signed) - 1;
    const float number = (float)value;
    const int64_t whole = hwnas_onnx_whole(fmin(high, fmax(is_signed ? -high - 1 : 0, value)));
    Onnx__TensorProto *made = add_constant(w, name, hwnas_onnx_written(like->dtype), 0, NULL);
    const void *bytes = is_whole ? (const void *)&whole : &number; /* the low ones come first */
    set_raw_data(made, hwnas_arena_copy(w->arena, bytes, size), size);
    return name;
}

void hwnas_onnx_add_second(const writer *w, Onnx__NodeProto *node, const char *name)
{
    char *first = node->output[0];
    node->output = list(w, 2);
    node->output[0] = first;
    node->output[1] = text(name);
    node->n_output = 2;
}

/* Whole numbers of its type. */
static void write_whole(writer *w, Onnx__TensorProto *to, const hwnas_tensor *tensor)
{
    const int64_t n = hwnas_tensor_count(tensor);
    const size_t size = hwnas_onnx_size(tensor->dtype);
    unsigned char *bytes = hwnas_arena_alloc(w->arena, (size_t)n * size + 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = hwnas_onnx_whole(tensor->data[i]);
        memcpy(bytes + (size_t)i * size, &value, size); /* the low bytes come first */
    }
    to->data_type = hwnas_onnx_types[tensor->dtype];
    set_raw_data(to, bytes, (size_t)n * size);
}

/* Whether the values of a weight are to be written, and made for that. */
static bool must_fill(const writer *w, const hwnas_tensor *tensor)
{
    return !tensor->data && (w->weights == HWNAS_ONNX_VALUES || tensor->codes.scales) &&
           (!tensor->codes.numbers || tensor->codes.scales);
}

static void write_weight(writer *w, const hwnas_tensor *tensor)
{
    const bool is_bytes = tensor->codes.numbers && !tensor->codes.scales;
    const bool is_whole = hwnas_dtype_is_whole(tensor->dtype) && tensor->data;
    Onnx__TensorProto *to =
        add_constant(w, tensor->name, hwnas_onnx_types[is_whole ? HWNAS_INT64 : HWNAS_FLOAT32],
                     tensor->rank, tensor->dims);
    if (!tensor->is_parameter)
        to->doc_string = text(HWNAS_ONNX_NOT_LEARNED);
    if (is_bytes) { /* as they lie */
        to->data_type = hwnas_onnx_types[tensor->dtype];
        set_raw_data(to, tensor->codes.numbers, (size_t)hwnas_tensor_count(tensor));
    } else if (is_whole) {
        write_whole(w, to, tensor);
    } else if (tensor->data) {
        set_raw_data(to, tensor->data, (size_t)hwnas_tensor_bytes(tensor));
    } else if (must_fill(w, tensor)) {
        float *values = w->values + w->n_values;
        w->n_values += (size_t)hwnas_tensor_count(tensor);
        hwnas_tensor_fill(tensor, values);
        set_raw_data(to, values, (size_t)hwnas_tensor_bytes(tensor));
    } else {
        to->has_data_location = true;
        to->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        to->external_data = list(w, 3);
        to->external_data[to->n_external_data++] = entry(w, "location", HWNAS_ONNX_SEEDS_LOCATION);
        to->external_data[to->n_external_data++] =
            entry(w, "seed", hwnas_arena_printf(w->arena, "%" PRIu64, tensor->seed));
        to->external_data[to->n_external_data++] = entry(w, "init", hwnas_onnx_inits[tensor->init]);
    }
}

static Onnx__AttributeProto *add_attribute(const writer *w, Onnx__NodeProto *node, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *made = message(w, &onnx__attribute_proto__descriptor);
    made->name = text(name);
    made->has_type = true;
    made->type = type;
    node->attribute[node->n_attribute++] = made;
    return made;
}

void hwnas_onnx_add_word(const writer *w, Onnx__NodeProto *node, const char *name, const char *word)
{
    Onnx__AttributeProto *made =
        add_attribute(w, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    made->has_s = true;
    made->s.data = (uint8_t *)text(word);
    made->s.len = strlen(word);
}

void hwnas_onnx_add_int(const writer *w, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *made =
        add_attribute(w, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    made->has_i = true;
    made->i = value;
}

static void add_number(const writer *w, Onnx__NodeProto *node, const char *name, double value)
{
    Onnx__AttributeProto *made =
        add_attribute(w, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    made->has_f = true;
    made->f = (float)value;
}

void hwnas_onnx_add_ints(const writer *w, Onnx__NodeProto *node, const char *name, size_t n,
                         const int64_t *values)
{
    Onnx__AttributeProto *made =
        add_attribute(w, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    made->n_ints = n;
    made->ints = hwnas_arena_copy(w->arena, values, n * sizeof *values);
}

static void write_attr(const writer *w, Onnx__NodeProto *to, const hwnas_attr_row *row,
                       const hwnas_attr *attr)
{
    if (row->onnx_words) {
        hwnas_onnx_add_word(w, to, row->onnx, row->onnx_words[attr->ints[0]]);
        return;
    }
    switch (row->kind) {
    case HWNAS_ATTR_INT:
    case HWNAS_ATTR_BOOL:
        hwnas_onnx_add_int(w, to, row->onnx, attr->ints[0]);
        break;
    case HWNAS_ATTR_NUMBER:
        add_number(w, to, row->onnx, attr->number);
        break;
    case HWNAS_ATTR_INTS:
        hwnas_onnx_add_ints(w, to, row->onnx, (size_t)attr->n, attr->ints);
        break;
    }
}

/* An attribute that ONNX takes as an input: "NODE.ATTRIBUTE", a scalar or a list. */
static void write_attr_input(writer *w, Onnx__NodeProto *to, const hwnas_node *node, int i)
{
    const hwnas_attr_row *row = &node->op->attrs[i];
    const hwnas_attr *attr = &node->attrs[i];
    const char *name = hwnas_arena_printf(w->arena, "%s.%s", node->name, row->name);
    if (row->kind == HWNAS_ATTR_NUMBER) {
        /* The rate of a dropout is a float, whatever it is of. */
        static const hwnas_tensor a_float = {.dtype = HWNAS_FLOAT32};
        const bool is_rate = node->op->id == HWNAS_OP_DROPOUT;
        hwnas_onnx_add_number(w, name, is_rate ? &a_float : hwnas_node_input(w->from, node, 0),
                              attr->number);
    } else {
        int64_t *length = hwnas_arena_alloc(w->arena, sizeof *length);
        *length = attr->n;
        set_raw_data(add_constant(w, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                                  row->kind == HWNAS_ATTR_INTS, length),
                     attr->ints, (size_t)attr->n * sizeof *attr->ints);
    }
    while (to->n_input < (size_t)row->onnx_input)
        to->input[to->n_input++] = text(""); /* an optional input that is left out */
    to->input[to->n_input++] = text(name);
}

static size_t count_attrs(const hwnas_op *op)
{
    size_t n = 0;
    for (const hwnas_attr_row *row = op->attrs; row->name; row++)
        n++;
    for (const hwnas_onnx_row *row = op->onnx_rows; row && row->name; row++)
        n++;
    return n;
}

Onnx__NodeProto *hwnas_onnx_add_node(writer *w, const char *type, const char *name,
                                     const char *output, size_t n_attributes)
{
    Onnx__NodeProto *to = message(w, &onnx__node_proto__descriptor);
    to->name = text(name);
    to->op_type = text(type);
    to->input = list(w, HWNAS_MAX_NODE_INPUTS);
    to->output = list(w, 1);
    to->output[to->n_output++] = text(output);
    to->attribute = list(w, n_attributes);
    HWNAS_GROW(w->nodes, w->n_nodes, w->node_capacity);
    w->nodes[w->n_nodes++] = to;
    return to;
}

static void write_node(writer *w, const hwnas_node *node)
{
    const hwnas_op *op = node->op;
    if (hwnas_onnx_write_packed(w, node) || hwnas_onnx_write_form(w, node))
        return;
    Onnx__NodeProto *to = hwnas_onnx_add_node(
        w, op->onnx, node->name, hwnas_node_output(w->from, node)->name, count_attrs(op));
    for (int i = 0; i < node->n_inputs; i++)
        to->input[to->n_input++] = text(w->from->tensors[node->inputs[i]].name);
    for (int i = 0; op->attrs[i].name; i++) {
        if (op->attrs[i].onnx_input)
            write_attr_input(w, to, node, i);
        else if (op->attrs[i].onnx &&
                 !(op->attrs[i].onnx_is_rare && node->attrs[i].ints[0] == op->attrs[i].fallback))
            write_attr(w, to, &op->attrs[i], &node->attrs[i]);
    }
    for (const hwnas_onnx_row *row = op->onnx_rows; row && row->name; row++) {
        if (row->text || row->is_ignored || row->value == row->fallback)
            continue;
        if (row->kind == HWNAS_ATTR_NUMBER)
            add_number(w, to, row->name, row->value);
        else
            hwnas_onnx_add_int(w, to, row->name, (int64_t)row->value);
    }
}

static Onnx__GraphProto *write_graph(writer *w)
{
    const hwnas_graph *from = w->from;
    size_t n_attrs = 0;
    for (size_t i = 0; i < from->n_nodes; i++)
        n_attrs += count_attrs(from->nodes[i].op);
    Onnx__GraphProto *to = w->to = message(w, &onnx__graph_proto__descriptor);
    to->name = text(from->name);
    to->input = list(w, from->n_inputs);
    to->output = list(w, from->n_outputs);
    to->value_info = list(w, HWNAS_ONNX_FORM_NODES * from->n_nodes);
    to->initializer =
        list(w, from->n_tensors + n_attrs + HWNAS_ONNX_FORM_CONSTANTS * from->n_nodes);
    for (size_t i = 0; i < from->n_inputs; i++)
        to->input[to->n_input++] =
            value_info(w, from->tensors[from->inputs[i]].name, &from->tensors[from->inputs[i]]);
    for (size_t i = 0; i < from->n_outputs; i++)
        to->output[to->n_output++] =
            value_info(w, from->tensors[from->outputs[i]].name, &from->tensors[from->outputs[i]]);
    for (size_t i = 0; i < from->n_tensors; i++)
        if (from->tensors[i].kind == HWNAS_TENSOR_WEIGHT && !w->is_packed_tensor[i])
            write_weight(w, &from->tensors[i]);
    for (size_t i = 0; i < from->n_nodes; i++) {
        if (w->is_packed_node[i])
            continue; /* a part of the product's node */
        write_node(w, &from->nodes[i]);
        if (!hwnas_graph_is_output(from, from->nodes[i].output))
            hwnas_onnx_add_shape(w, hwnas_node_output(from, &from->nodes[i])->name,
                                 hwnas_node_output(from, &from->nodes[i]));
    }
    to->node = w->nodes;
    to->n_node = w->n_nodes;
    return to;
}

static Onnx__ModelProto *write_model(writer *w)
{
    Onnx__OperatorSetIdProto *opset = message(w, &onnx__operator_set_id_proto__descriptor);
    opset->domain = text("");
    opset->has_version = true;
    opset->version = HWNAS_ONNX_OPSET;
    Onnx__ModelProto *model = message(w, &onnx__model_proto__descriptor);
    model->has_ir_version = true;
    model->ir_version = HWNAS_ONNX_IR;
    model->producer_name = text("hwnas");
    model->producer_version = text(hwnas_version());
    model->opset_import = list(w, 2);
    model->opset_import[model->n_opset_import++] = opset;
    if (w->has_packed) {
        opset = message(w, &onnx__operator_set_id_proto__descriptor);
        opset->domain = text(HWNAS_ONNX_CONTRIB);
        opset->has_version = true;
        opset->version = 1;
        model->opset_import[model->n_opset_import++] = opset;
    }
    model->metadata_props = list(w, 1);
    model->metadata_props[model->n_metadata_props++] =
        entry(w, HWNAS_ONNX_SEED_KEY, hwnas_arena_printf(w->arena, "%" PRIu64, w->from->seed));
    model->graph = write_graph(w);
    return model;
}

/* Bytes of the weights, and how many values of them are to be drawn. */
static hwnas_status measure_weights(size_t *out, const writer *w)
{
    int64_t bytes = 0, drawn = 0;
    for (size_t i = 0; i < w->from->n_tensors && bytes <= MAX_FILE_BYTES; i++) {
        const hwnas_tensor *tensor = &w->from->tensors[i];
        if (tensor->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        const bool is_filled = must_fill(w, tensor);
        if (w->is_packed_tensor[i] || (tensor->codes.numbers && !is_filled))
            bytes += hwnas_tensor_count(tensor); /* at most: of 4 bits half */
        else if (tensor->data || is_filled)
            bytes += hwnas_tensor_bytes(tensor);
        if (is_filled)
            drawn += hwnas_tensor_count(tensor);
    }
    if (bytes > MAX_FILE_BYTES)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s' has more than 2 GiB of weights, which no ONNX file holds",
                          w->from->name);
    *out = (size_t)drawn;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_write(void **out, size_t *length, const hwnas_graph *graph,
                              hwnas_onnx_weights weights)
{
    hwnas_status status = HWNAS_OK;
    writer w = {.from = graph, .weights = weights, .arena = hwnas_arena_new()};
    hwnas_graph *unpacked = NULL;
    void *values = NULL, *bytes = NULL;
    size_t n_drawn = 0;
    if (weights == HWNAS_ONNX_VALUES && !hwnas_onnx_can_write_packed(graph)) {
        TRY_OUT(hwnas_graph_unpack_weights(&unpacked, NULL, NULL, graph));
        w.from = unpacked;
    }
    w.has_packed = hwnas_onnx_find_packed(&w);
    TRY_OUT(measure_weights(&n_drawn, &w));
    TRY_OUT(hwnas_try_alloc(&values, n_drawn * sizeof *w.values, "the weights"));
    w.values = values;

    Onnx__ModelProto *model = write_model(&w);
    size_t size = onnx__model_proto__get_packed_size(model);
    TRY_OUT(hwnas_try_alloc(&bytes, size, "the ONNX file"));
    onnx__model_proto__pack(model, bytes);
    *out = bytes;
    *length = size;

out:
    free(w.nodes);
    free(values);
    hwnas_arena_free(w.arena);
    hwnas_graph_free(unpacked);
    return status;
}

hwnas_status hwnas_onnx_write_file(const char *path, const hwnas_graph *graph)
{
    void *bytes;
    size_t length;
    TRY(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES));
    const hwnas_status status = hwnas_file_write(path, bytes, length);
    free(bytes);
    return status;
}
