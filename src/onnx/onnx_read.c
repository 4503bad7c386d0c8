/* onnx_read.c: ONNX -> graph, by the operators' tables; for what we wrote and for what others did.
 *
 * Every name of the file is looked up in one sorted list: what stands for a constant, an input, or
 * the output of a node. A constant becomes a weight when the first node asks for it, so a graph
 * that was written comes back with its tensors in their order. */
#include "onnx/onnx_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/quantize.h"
#include "graph/rewrite.h"

/* Protobuf's own limit. */
#define MAX_FILE_BYTES ((size_t)2 << 30)

typedef hwnas_onnx_named named;
typedef hwnas_onnx_reader reader;

hwnas_onnx_text hwnas_onnx_describe(const Onnx__NodeProto *node)
{
    hwnas_onnx_text text;
    const char *output = node->n_output ? node->output[0] : "";
    const char *name = is_empty(node->name) ? output : node->name;
    snprintf(text.s, sizeof text.s, "node '%.100s' (%.40s)", name,
             is_empty(node->op_type) ? "no operator" : node->op_type);
    return text;
}

/* ---- names ---- */

static int compare_values(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    /* A constant before an input of its name, which only repeats it. */
    return order ? order : (y->constant != NULL) - (x->constant != NULL);
}

static hwnas_status add_value(reader *r, const char *name, named value)
{
    if (is_empty(name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a constant or an input of the graph has no name");
    value.name = name;
    value.tensor = HWNAS_ONNX_NOT_MADE;
    r->values[r->n_values++] = value;
    return HWNAS_OK;
}

/* The graph of an attribute, as of an If; else NULL. */
static const Onnx__GraphProto *branch_of(const Onnx__NodeProto *node, size_t i)
{
    return node->op_type && !strcmp(node->op_type, "If") ? node->attribute[i]->g : NULL;
}

/* How many names a graph and its branches bring. */
static size_t count_values(const Onnx__GraphProto *from)
{
    size_t n = from->n_initializer + from->n_input;
    for (size_t i = 0; i < from->n_node; i++) {
        n += from->node[i]->n_output;
        for (size_t a = 0; a < from->node[i]->n_attribute; a++)
            if (branch_of(from->node[i], a))
                n += count_values(branch_of(from->node[i], a));
    }
    return n;
}

static hwnas_status add_values(reader *r, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_initializer; i++)
        TRY(add_value(r, from->initializer[i]->name, (named){.constant = from->initializer[i]}));
    for (size_t i = 0; i < from->n_input; i++)
        TRY(add_value(r, from->input[i]->name, (named){.input = from->input[i]}));
    for (size_t i = 0; i < from->n_node; i++) {
        const Onnx__NodeProto *node = from->node[i];
        for (size_t o = 0; o < node->n_output; o++)
            if (!is_empty(node->output[o])) /* an empty one is left out */
                TRY(add_value(r, node->output[o],
                              (named){.constant = hwnas_onnx_constant_node(node),
                                      .is_extra = o > 0}));
        for (size_t a = 0; a < node->n_attribute; a++)
            if (branch_of(node, a))
                TRY(add_values(r, branch_of(node, a)));
    }
    return HWNAS_OK;
}

static hwnas_status collect_values(reader *r)
{
    r->values = hwnas_alloc((count_values(r->from) + 1) * sizeof *r->values);
    TRY(add_values(r, r->from));
    qsort(r->values, r->n_values, sizeof *r->values, compare_values);
    size_t n = 0;
    for (size_t i = 0; i < r->n_values; i++) {
        const named *last = n ? &r->values[n - 1] : NULL;
        if (last && !strcmp(last->name, r->values[i].name)) {
            if (last->constant && r->values[i].input)
                continue; /* files before IR 4 list constants as inputs */
            return hwnas_fail(HWNAS_E_INPUT, NULL, "the name '%s' stands for two things",
                              last->name);
        }
        r->values[n++] = r->values[i];
    }
    r->n_values = n;
    return HWNAS_OK;
}

static int compare_name(const void *name, const void *value)
{
    return strcmp(name, ((const named *)value)->name);
}

named *hwnas_onnx_find_value(const reader *r, const char *name)
{
    return bsearch(name, r->values, r->n_values, sizeof *r->values, compare_name);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_node_names(reader *r)
{
    r->node_names = hwnas_alloc(r->from->n_node * sizeof *r->node_names);
    for (size_t i = 0; i < r->from->n_node; i++)
        if (!is_empty(r->from->node[i]->name))
            r->node_names[r->n_node_names++] = r->from->node[i]->name;
    qsort(r->node_names, r->n_node_names, sizeof *r->node_names, compare_strings);
}

/* ONNX lets nodes share names, with each other and with values, or have none; a graph does not.
 * Such a node goes by the name of its output. */
static const char *node_name(const reader *r, const Onnx__NodeProto *node)
{
    const char *output = node->output[0], *name = node->name;
    for (size_t i = 1; i < node->n_output && is_empty(output); i++)
        output = node->output[i];
    if (is_empty(name) || (strcmp(name, output) && hwnas_onnx_find_value(r, name)))
        return output;
    const char **end = r->node_names + r->n_node_names;
    const char **at = bsearch(&name, r->node_names, r->n_node_names, sizeof name, compare_strings);
    if (!at)
        return output; /* of a branch */
    bool is_shared =
        (at > r->node_names && !strcmp(at[-1], name)) || (at + 1 < end && !strcmp(at[1], name));
    return is_shared ? output : name;
}

hwnas_status hwnas_onnx_resolve(named **out, const reader *r, const char *name, const char *who)
{
    named *found = hwnas_onnx_find_value(r, name);
    if (!found)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s reads '%s', which nothing makes", who, name);
    if (found->is_extra)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "%s reads '%s', a second output, and we make only the first", who, name);
    if (found->same_as)
        found = found->same_as;
    if (found->is_missing)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s reads '%s', which is left out", who, name);
    if (found->is_empty)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s reads '%s', which has no values", who, name);
    if (!found->constant && found->tensor == HWNAS_ONNX_NOT_MADE)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "%s reads '%s' before it is made", who, name),
            "ONNX wants its nodes in the order in which they can be computed");
    *out = found;
    return HWNAS_OK;
}

/* ---- tensors ---- */

static hwnas_status parse_seed(uint64_t *out, const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long seed = text && *text != '-' ? strtoull(text, &end, 10) : 0;
    if (!end || end == text || *end || errno)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' is not a seed", text ? text : "");
    *out = seed;
    return HWNAS_OK;
}

static hwnas_status read_seed(hwnas_tensor *tensor, const Onnx__TensorProto *from)
{
    const char *seed = hwnas_onnx_find_entry(from->external_data, from->n_external_data, "seed");
    const char *init = hwnas_onnx_find_entry(from->external_data, from->n_external_data, "init");
    TRY(parse_seed(&tensor->seed, seed));
    for (int i = 0; i < HWNAS_N_INITS; i++) {
        if (init && !strcmp(init, hwnas_onnx_inits[i])) {
            tensor->init = (hwnas_init)i;
            return HWNAS_OK;
        }
    }
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would be drawn as '%s', which is no init",
                      from->name, init ? init : "");
}

static bool is_learned(const Onnx__TensorProto *from)
{
    return from->n_dims && (!from->doc_string || strcmp(from->doc_string, HWNAS_ONNX_NOT_LEARNED));
}

static bool is_seed(const Onnx__TensorProto *from)
{
    const char *location =
        hwnas_onnx_find_entry(from->external_data, from->n_external_data, "location");
    return hwnas_onnx_is_external(from) && location &&
           !strcmp(location, HWNAS_ONNX_SEEDS_LOCATION);
}

hwnas_status hwnas_onnx_make_weight(reader *r, named *value, bool is_parameter)
{
    const Onnx__TensorProto *from = value->constant;
    hwnas_dtype dtype;
    if (value->tensor != HWNAS_ONNX_NOT_MADE)
        return HWNAS_OK;
    TRY(hwnas_onnx_dtype(&dtype, from->has_data_type ? from->data_type : 0, "constant",
                         value->name));
    if (from->n_dims > HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "constant '%s' has %zu dimensions; %d go",
                          value->name, from->n_dims, HWNAS_MAX_RANK);
    /* Checks the dimensions and allocates nothing for them. */
    int index;
    TRY(hwnas_graph_add_weight(&index, r->graph, value->name, (int)from->n_dims, from->dims,
                               HWNAS_INIT_SMALL,
                               is_parameter && is_learned(from) && !hwnas_dtype_is_whole(dtype)));
    hwnas_tensor *tensor = &r->graph->tensors[index];
    tensor->dtype = dtype;
    if (is_seed(from)) {
        TRY(read_seed(tensor, from));
    } else {
        float *values = NULL;
        TRY(hwnas_onnx_values(&values, r->graph->arena, from, hwnas_tensor_count(tensor),
                              r->folder));
        tensor->data = values;
    }
    value->tensor = index;
    return HWNAS_OK;
}

/* More than this is no arithmetic with shapes but a part of the network. */
enum { MAX_FOLDED = 1 << 22, MAX_FOLDED_MACS = 1 << 26, MAX_FOLD_DEPTH = 64 };

static hwnas_status fold(reader *r, int index, int depth)
{
    const float *inputs[HWNAS_MAX_NODE_INPUTS];
    const int producer = r->graph->tensors[index].producer;
    if (producer < 0 || r->graph->tensors[index].kind == HWNAS_TENSOR_WEIGHT ||
        depth == MAX_FOLD_DEPTH ||
        hwnas_tensor_count(&r->graph->tensors[index]) > MAX_FOLDED)
        return HWNAS_OK;
    const hwnas_node *node = &r->graph->nodes[producer];
    if (hwnas_node_macs(r->graph, node) > MAX_FOLDED_MACS)
        return HWNAS_OK;
    for (int i = 0; i < node->n_inputs; i++) {
        TRY(fold(r, node->inputs[i], depth + 1));
        const hwnas_tensor *input = hwnas_node_input(r->graph, node, i);
        if (input->kind != HWNAS_TENSOR_WEIGHT || !input->data)
            return HWNAS_OK;
        inputs[i] = input->data;
    }
    hwnas_tensor *output = &r->graph->tensors[index];
    float *values = hwnas_arena_alloc(r->graph->arena, (size_t)hwnas_tensor_bytes(output));
    node->op->compute(r->graph, node, inputs, values);
    output->kind = HWNAS_TENSOR_WEIGHT;
    output->data = values;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_fold(reader *r, int index)
{
    return fold(r, index, 0);
}

hwnas_status hwnas_onnx_constant(const hwnas_tensor **out, reader *r, const char *name,
                                 const char *who)
{
    named *value = NULL;
    TRY(hwnas_onnx_resolve(&value, r, name, who));
    if (value->constant)
        TRY(hwnas_onnx_make_weight(r, value, true));
    else
        TRY(hwnas_onnx_fold(r, value->tensor));
    const hwnas_tensor *tensor = &r->graph->tensors[value->tensor];
    *out = tensor->kind == HWNAS_TENSOR_WEIGHT && tensor->data ? tensor : NULL;
    return HWNAS_OK;
}

static hwnas_status read_dims(int64_t *dims, const Onnx__TensorShapeProto *shape, const char *name)
{
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            dims[i] = dim->dim_value;
        else if (i == 0)
            dims[i] = 1; /* the batch */
        else
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "dimension %zu of input '%s' is not a number but '%s'", i,
                                         name,
                                         dim->value_case && dim->dim_param ? dim->dim_param : ""),
                              "export the model with a fixed shape; only the batch may be open");
    }
    return HWNAS_OK;
}

static hwnas_status read_input(reader *r, const Onnx__ValueInfoProto *from)
{
    named *value = hwnas_onnx_find_value(r, from->name);
    if (value->constant)
        return HWNAS_OK;
    if (!from->type || from->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !from->type->tensor_type || !from->type->tensor_type->shape)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "input '%s' is not a tensor of known shape",
                          from->name);
    const Onnx__TypeProto__Tensor *type = from->type->tensor_type;
    hwnas_dtype dtype;
    TRY(hwnas_onnx_dtype(&dtype, type->has_elem_type ? type->elem_type : 0, "input", from->name));
    if (type->shape->n_dim > HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "input '%s' has %zu dimensions; %d go",
                          from->name, type->shape->n_dim, HWNAS_MAX_RANK);
    int64_t dims[HWNAS_MAX_RANK] = {0};
    TRY(read_dims(dims, type->shape, from->name));
    return hwnas_graph_add_input(&value->tensor, r->graph, from->name, dtype,
                                 (int)type->shape->n_dim, dims);
}

/* ---- attributes ---- */

/* The decimal number that was meant by a float: 1e-5, not 9.99999974738e-06. */
static double shortest(float number)
{
    char text[32];
    double found = number;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        found = strtod(text, NULL);
        if ((float)found == number)
            break;
    }
    return found;
}

hwnas_status hwnas_onnx_unsupported(const Onnx__NodeProto *node, const char *attribute,
                                    const char *what)
{
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: attribute '%s' %s",
                      hwnas_onnx_describe(node).s, attribute, what);
}

/* The ONNX type of an attribute's kind. */
static const Onnx__AttributeProto__AttributeType attr_types[] = {
    [HWNAS_ATTR_INT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    [HWNAS_ATTR_INTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
    [HWNAS_ATTR_BOOL] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    [HWNAS_ATTR_NUMBER] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
};

static hwnas_status check_range(const hwnas_attr *attr, const hwnas_attr_row *row,
                                const Onnx__NodeProto *node)
{
    bool is_number = row->kind == HWNAS_ATTR_NUMBER;
    for (int i = 0; i < (is_number ? 1 : attr->n); i++) {
        double number = is_number ? attr->number : (double)attr->ints[i];
        if (!(number >= row->low && number <= row->high))
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "%s: attribute '%s' is %g; %g to %g is understood",
                              hwnas_onnx_describe(node).s, row->onnx, number, row->low, row->high);
    }
    return HWNAS_OK;
}

static hwnas_status read_word(hwnas_attr *out, const hwnas_attr_row *row,
                              const Onnx__AttributeProto *from, const Onnx__NodeProto *node)
{
    for (int i = 0; row->onnx_words[i]; i++)
        if (from->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING &&
            from->s.len == strlen(row->onnx_words[i]) &&
            !memcmp(from->s.data, row->onnx_words[i], from->s.len)) {
            *out = (hwnas_attr){.is_set = true, .n = 1, .ints = {i}};
            return HWNAS_OK;
        }
    return hwnas_onnx_unsupported(node, row->onnx, "has a value that we cannot compute");
}

static hwnas_status read_attr(hwnas_attr *out, const hwnas_attr_row *row,
                              const Onnx__AttributeProto *from, const Onnx__NodeProto *node)
{
    hwnas_attr attr = {.is_set = true};
    if (row->onnx_words)
        return read_word(out, row, from, node);
    if (from->type != attr_types[row->kind])
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: attribute '%s' is of the wrong type",
                          hwnas_onnx_describe(node).s, row->onnx);
    if (row->kind == HWNAS_ATTR_NUMBER) {
        attr.number = shortest(from->f);
    } else if (row->kind == HWNAS_ATTR_INTS) {
        if (row->count ? from->n_ints != (size_t)row->count : from->n_ints > HWNAS_MAX_RANK)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "%s: attribute '%s' has %zu values; %d are understood",
                              hwnas_onnx_describe(node).s, row->onnx, from->n_ints,
                              row->count ? row->count : HWNAS_MAX_RANK);
        attr.n = (int)from->n_ints;
        memcpy(attr.ints, from->ints, from->n_ints * sizeof *from->ints);
    } else {
        attr.n = 1;
        attr.ints[0] = from->i;
    }
    TRY(check_range(&attr, row, node));
    *out = attr;
    return HWNAS_OK;
}

/* An attribute that is not ours must say what we do anyway. */
static hwnas_status check_foreign(const hwnas_onnx_row *row, const Onnx__AttributeProto *from,
                                  const Onnx__NodeProto *node)
{
    for (; row && row->name; row++)
        if (!strcmp(row->name, from->name))
            break;
    if (!row || !row->name)
        return hwnas_onnx_unsupported(node, from->name, "is unknown to us");
    bool fits;
    if (row->is_ignored)
        fits = true;
    else if (row->text)
        fits = from->s.len == strlen(row->text) && !memcmp(from->s.data, row->text, from->s.len);
    else
        fits = from->type == attr_types[row->kind] &&
               (row->kind == HWNAS_ATTR_INTS ||
                (row->kind == HWNAS_ATTR_NUMBER ? from->f : (double)from->i) == row->value);
    for (size_t i = 0; row->kind == HWNAS_ATTR_INTS && i < from->n_ints; i++)
        fits = fits && (double)from->ints[i] == row->value;
    return fits ? HWNAS_OK
                : hwnas_onnx_unsupported(node, from->name, "has a value that we cannot compute");
}

/* Attributes that are absent have ONNX's default; most of the time that is ours. */
static hwnas_status set_absent(hwnas_attr *attrs, const hwnas_op *op, const Onnx__NodeProto *node)
{
    for (int i = 0; op->attrs[i].name; i++) {
        if (!attrs[i].is_set && op->attrs[i].is_required_by_onnx)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: attribute '%s' is absent",
                              hwnas_onnx_describe(node).s, op->attrs[i].onnx);
        if (!attrs[i].is_set && op->attrs[i].onnx_fallback)
            attrs[i] = (hwnas_attr){.is_set = true,
                                    .n = op->attrs[i].kind != HWNAS_ATTR_NUMBER,
                                    .number = *op->attrs[i].onnx_fallback,
                                    .ints = {hwnas_onnx_whole(*op->attrs[i].onnx_fallback)}};
    }
    for (const hwnas_onnx_row *row = op->onnx_rows; row && row->name; row++) {
        bool is_given = row->is_ignored || row->text || row->value == row->fallback;
        for (size_t i = 0; i < node->n_attribute; i++)
            is_given = is_given || !strcmp(node->attribute[i]->name, row->name);
        if (!is_given)
            return hwnas_onnx_unsupported(node, row->name,
                                          "is absent, and its default we cannot compute");
    }
    return HWNAS_OK;
}

int64_t hwnas_onnx_whole(double value)
{
    return isnan(value)       ? 0
           : value >= 0x1p63  ? INT64_MAX
           : value <= -0x1p63 ? INT64_MIN
                              : (int64_t)value;
}

/* An attribute that ONNX takes as a constant input. */
static hwnas_status read_attr_input(hwnas_attr *out, reader *r, const hwnas_attr_row *row,
                                    const Onnx__NodeProto *node)
{
    const hwnas_tensor *from = NULL;
    /* No values in a row are the shape of a scalar, and no tensor of ours. */
    if (row->kind == HWNAS_ATTR_INTS && !row->count &&
        hwnas_onnx_is_nothing(r, node->input[row->onnx_input])) {
        *out = (hwnas_attr){.is_set = true};
        return HWNAS_OK;
    }
    TRY(hwnas_onnx_constant(&from, r, node->input[row->onnx_input], hwnas_onnx_describe(node).s));
    const bool is_number = row->kind == HWNAS_ATTR_NUMBER;
    if (!from || (!is_number && !hwnas_dtype_is_whole(from->dtype)))
        return hwnas_onnx_unsupported(node, row->onnx, "is not a constant of its type");
    const int64_t n = hwnas_tensor_count(from);
    const bool is_list = row->kind == HWNAS_ATTR_INTS;
    if (n > HWNAS_MAX_RANK || (is_list && row->count && n != row->count) || (!is_list && n != 1))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: attribute '%s' has %" PRId64 " values",
                          hwnas_onnx_describe(node).s, row->onnx, n);
    hwnas_attr attr = {.is_set = true, .n = is_number ? 0 : (int)n};
    if (is_number)
        attr.number = shortest(from->data[0]);
    for (int i = 0; i < attr.n; i++)
        attr.ints[i] = hwnas_onnx_whole(from->data[i]);
    TRY(check_range(&attr, row, node));
    *out = attr;
    return HWNAS_OK;
}

/* One entry for each row of the operator's table, in the graph's arena. */
static hwnas_status read_attrs(hwnas_attr **out, reader *r, const hwnas_op *op,
                               const Onnx__NodeProto *node)
{
    int n = 0;
    while (op->attrs[n].name)
        n++;
    hwnas_attr *attrs = hwnas_arena_alloc(r->graph->arena, ((size_t)n + 1) * sizeof *attrs);
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *from = node->attribute[a];
        if (is_empty(from->name) || from->ref_attr_name)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has an attribute without a name or value",
                              hwnas_onnx_describe(node).s);
        int i = 0;
        while (i < n && (!op->attrs[i].onnx || strcmp(op->attrs[i].onnx, from->name)))
            i++;
        if (i == n)
            TRY(check_foreign(op->onnx_rows, from, node));
        else
            TRY(read_attr(&attrs[i], &op->attrs[i], from, node));
    }
    for (int i = 0; i < n; i++) {
        int input = op->attrs[i].onnx_input;
        if (input && (size_t)input < node->n_input && !is_empty(node->input[input]))
            TRY(read_attr_input(&attrs[i], r, &op->attrs[i], node));
    }
    TRY(set_absent(attrs, op, node));
    *out = attrs;
    return HWNAS_OK;
}

/* ---- nodes ---- */

/* A kernel of bytes stays one. */
static bool is_kernel_of_bytes(const reader *r, const hwnas_op *op, int tensor)
{
    const int producer = r->graph->tensors[tensor].producer;
    const bool multiplies = !strcmp(op->name, "conv") || !strcmp(op->name, "linear");
    return multiplies && producer >= 0 &&
           hwnas_reverses_kernel(r->graph, &r->graph->nodes[producer]);
}

hwnas_status hwnas_onnx_take_weight(reader *r, const hwnas_op *op, int i, int tensor)
{
    if (i == 0 && is_kernel_of_bytes(r, op, tensor))
        return HWNAS_OK;
    TRY(hwnas_onnx_fold(r, tensor));
    const hwnas_tensor *weight = &r->graph->tensors[tensor];
    if (weight->kind == HWNAS_TENSOR_WEIGHT || (i == 0 && op->may_compute_kernel))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "input '%s' is computed where we take a constant",
                      weight->name);
}

/* The node's inputs that are tensors to us: the data, then the weights. */
static hwnas_status read_inputs(int *out, int *n_out, reader *r, const hwnas_op *op,
                                const Onnx__NodeProto *node)
{
    size_t n = node->n_input;
    while (n && is_empty(node->input[n - 1]))
        n--;
    size_t n_attr_inputs = 0;
    for (const hwnas_attr_row *row = op->attrs; row->name; row++)
        n_attr_inputs += row->onnx_input > 0 && (size_t)row->onnx_input < n;
    n -= n_attr_inputs;
    if (n > (size_t)(op->max_inputs + op->max_weights))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s has %zu inputs; %d are understood",
                          hwnas_onnx_describe(node).s, n, op->max_inputs + op->max_weights);
    for (size_t i = 0; i < n; i++) {
        named *value = NULL;
        TRY(hwnas_onnx_resolve(&value, r, node->input[i], hwnas_onnx_describe(node).s));
        const int weight = (int)i - op->max_inputs;
        if (value->constant)
            TRY(hwnas_onnx_make_weight(r, value, weight < op->max_weights - op->n_statistics));
        if (weight >= 0) {
            const hwnas_status status = hwnas_onnx_take_weight(r, op, weight, value->tensor);
            if (status != HWNAS_OK)
                return hwnas_context(status, "%s", hwnas_onnx_describe(node).s);
        }
        out[i] = value->tensor;
    }
    *n_out = (int)n;
    return HWNAS_OK;
}

/* Identity makes nothing: its output is another name of its input. */
static hwnas_status read_identity(reader *r, const Onnx__NodeProto *node)
{
    named *from = NULL;
    if (node->n_input != 1)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has %zu inputs", hwnas_onnx_describe(node).s,
                          node->n_input);
    TRY(hwnas_onnx_resolve(&from, r, node->input[0], hwnas_onnx_describe(node).s));
    hwnas_onnx_find_value(r, node->output[0])->same_as = from;
    return HWNAS_OK;
}

/* Attributes that the file gives and its weights imply, such as the kernel's size, must agree. */
static hwnas_status check_implied(const hwnas_attr *given, const hwnas_graph *graph,
                                  const Onnx__NodeProto *from)
{
    const hwnas_node *node = &graph->nodes[graph->n_nodes - 1];
    for (int i = 0; node->op->attrs[i].name; i++)
        if (given[i].is_set && !node->op->settle &&
            memcmp(given[i].ints, node->attrs[i].ints, (size_t)given[i].n * sizeof *given[i].ints))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "%s: attribute '%s' contradicts the weights",
                              hwnas_onnx_describe(from).s, node->op->attrs[i].onnx);
    return HWNAS_OK;
}

static hwnas_status add_node(int *output, reader *r, const Onnx__NodeProto *node,
                             const hwnas_op *op, const hwnas_attr *attrs)
{
    int inputs[HWNAS_MAX_NODE_INPUTS], n_inputs = 0;
    TRY(read_inputs(inputs, &n_inputs, r, op, node));
    hwnas_status status = hwnas_graph_add_node(output, r->graph, op, node_name(r, node), attrs,
                                               n_inputs, inputs, false);
    if (status != HWNAS_OK)
        return hwnas_context(status, "%s", hwnas_onnx_describe(node).s);
    return check_implied(attrs, r->graph, node);
}

hwnas_status hwnas_onnx_give(reader *r, const char *name, int tensor)
{
    if (hwnas_dtype_is_whole(r->graph->tensors[tensor].dtype))
        TRY(hwnas_onnx_fold(r, tensor)); /* shapes and indices, not what the network computes */
    named *value = hwnas_onnx_find_value(r, name);
    value->tensor = tensor;
    value->is_extra = false;
    return HWNAS_OK;
}

/* The output of a node has its own name in the graph; what a form passes on keeps the name it has. */
static hwnas_status name_output(reader *r, const Onnx__NodeProto *node, int output)
{
    hwnas_tensor *tensor = &r->graph->tensors[output];
    if (is_empty(node->output[0]))
        return HWNAS_OK;
    const bool is_last = (size_t)output + 1 == r->graph->n_tensors;
    if (is_last && tensor->producer >= 0)
        tensor->name =
            hwnas_arena_string(r->graph->arena, node->output[0], strlen(node->output[0]));
    return hwnas_onnx_give(r, node->output[0], output);
}

static hwnas_status read_node(reader *r, const Onnx__NodeProto *node)
{
    if (!node->n_output || is_empty(node->op_type) ||
        (is_empty(node->output[0]) && !hwnas_onnx_may_lack_output(node)))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no output", hwnas_onnx_describe(node).s);
    bool is_standard = is_empty(node->domain) || !strcmp(node->domain, "ai.onnx");
    if (is_standard && !strcmp(node->op_type, "Identity"))
        return read_identity(r, node);
    if (is_standard && !strcmp(node->op_type, "If"))
        return hwnas_onnx_read_if(r, node);
    if (hwnas_onnx_constant_node(node))
        return HWNAS_OK;
    int output = HWNAS_ONNX_NOT_MADE;
    const char *type = strcmp(node->op_type, "Scatter") ? node->op_type : "ScatterElements";
    if (is_standard)
        TRY(hwnas_onnx_read_form(&output, r, node, node_name(r, node)));
    if (hwnas_onnx_is_nothing(r, node->output[0]))
        return HWNAS_OK;
    if (output != HWNAS_ONNX_NOT_MADE)
        return name_output(r, node, output);
    const hwnas_op *op = is_standard ? hwnas_op_by_onnx(type) : NULL; /* renamed in opset 11 */
    if (!op)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: the operator %s%s%s is unknown to us",
                          hwnas_onnx_describe(node).s, is_standard ? "" : node->domain,
                          is_standard ? "" : ".", node->op_type);
    if (r->opset < op->onnx_since)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "%s means another thing in opset %" PRId64 "; %d and newer are read",
                          hwnas_onnx_describe(node).s, r->opset, op->onnx_since);
    hwnas_attr *attrs = NULL;
    TRY(read_attrs(&attrs, r, op, node));
    TRY(add_node(&output, r, node, op, attrs));
    return name_output(r, node, output);
}

void hwnas_onnx_give_nothing(reader *r, const Onnx__NodeProto *node)
{
    hwnas_onnx_find_value(r, node->output[0])->is_empty = true;
}

bool hwnas_onnx_is_nothing(const reader *r, const char *name)
{
    const named *value = is_empty(name) ? NULL : hwnas_onnx_find_value(r, name);
    const named *from = value && value->same_as ? value->same_as : value;
    return from && (from->is_empty || (from->constant && from->constant->n_dims == 1 &&
                                       from->constant->dims[0] == 0));
}

hwnas_status hwnas_onnx_read_if(reader *r, const Onnx__NodeProto *node)
{
    const hwnas_tensor *condition = NULL;
    const hwnas_onnx_text who = hwnas_onnx_describe(node);
    if (!hwnas_onnx_has_input(node, 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no condition", who.s);
    TRY(hwnas_onnx_constant(&condition, r, node->input[0], who.s));
    if (!condition)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: the condition depends on the input", who.s);
    const Onnx__AttributeProto *branch =
        hwnas_onnx_attribute(node, condition->data[0] != 0 ? "then_branch" : "else_branch");
    if (!branch || !branch->g || branch->g->n_output != node->n_output || branch->g->n_input)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no branch that fits", who.s);
    for (size_t i = 0; i < branch->g->n_node; i++)
        TRY(read_node(r, branch->g->node[i]));
    for (size_t i = 0; i < node->n_output; i++) {
        named *from = NULL;
        if (is_empty(node->output[i]))
            continue;
        TRY(hwnas_onnx_resolve(&from, r, branch->g->output[i]->name ? branch->g->output[i]->name : "",
                               who.s));
        named *to = hwnas_onnx_find_value(r, node->output[i]);
        to->same_as = from;
        to->is_extra = false;
    }
    return HWNAS_OK;
}

static hwnas_status read_output(reader *r, const Onnx__ValueInfoProto *from)
{
    named *value = NULL;
    TRY(hwnas_onnx_resolve(&value, r, from->name ? from->name : "", "the list of outputs"));
    if (value->constant)
        TRY(hwnas_onnx_make_weight(r, value, false));
    for (size_t i = 0; i < r->graph->n_outputs; i++)
        if (r->graph->outputs[i] == value->tensor)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "output '%s' is listed twice", from->name);
    hwnas_graph_add_output(r->graph, value->tensor);
    return HWNAS_OK;
}

/* ---- the model ---- */

static hwnas_status check_model(int64_t *out, const Onnx__ModelProto *model)
{
    int64_t opset = -1;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = model->opset_import[i];
        if (is_empty(set->domain) || !strcmp(set->domain, "ai.onnx"))
            opset = set->version;
    }
    if (!model->graph || !model->graph->n_output)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "not an ONNX model: no graph with outputs");
    if (opset < HWNAS_ONNX_FIRST_OPSET)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "the model is of ONNX opset %" PRId64 "; %d and newer are read", opset,
                          HWNAS_ONNX_FIRST_OPSET);
    if (model->graph->n_sparse_initializer)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the model has sparse constants");
    *out = opset;
    return HWNAS_OK;
}

static bool reads_missing(const reader *r, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++) {
        const named *value = is_empty(node->input[i]) ? NULL : hwnas_onnx_find_value(r, node->input[i]);
        if (value && (value->same_as ? value->same_as : value)->is_missing)
            return true;
    }
    return false;
}

/* Reads a node or, when that may be, leaves it out with all that was begun for it. */
static hwnas_status read_or_skip(reader *r, const Onnx__NodeProto *node)
{
    const size_t n_nodes = r->graph->n_nodes, n_tensors = r->graph->n_tensors;
    const bool is_behind = r->skipped && reads_missing(r, node);
    const hwnas_status status = is_behind ? HWNAS_E_UNSUPPORTED : read_node(r, node);
    if (status != HWNAS_E_UNSUPPORTED || !r->skipped)
        return status;
    if (!is_behind)
        hwnas_str_addf(r->skipped, "%s\n", hwnas_last_error()->message);
    r->graph->n_nodes = n_nodes;
    r->graph->n_tensors = n_tensors;
    for (size_t i = 0; i < r->n_values; i++)
        if (r->values[i].tensor >= (int)n_tensors)
            r->values[i].tensor = HWNAS_ONNX_NOT_MADE;
    for (size_t i = 0; i < node->n_output; i++)
        if (!is_empty(node->output[i]))
            hwnas_onnx_find_value(r, node->output[i])->is_missing = true;
    return HWNAS_OK;
}

/* Outputs that can be computed and, where nodes were left out, what no other node reads. */
static hwnas_status read_outputs(reader *r)
{
    for (size_t i = 0; i < r->from->n_output; i++) {
        const char *name = r->from->output[i]->name;
        const named *value = is_empty(name) ? NULL : hwnas_onnx_find_value(r, name);
        if (!value || !(value->same_as ? value->same_as : value)->is_missing)
            TRY(read_output(r, r->from->output[i]));
    }
    if (!r->skipped || !r->skipped->n)
        return HWNAS_OK;
    bool *is_used = hwnas_alloc((r->graph->n_tensors + 1) * sizeof *is_used);
    for (size_t i = 0; i < r->graph->n_outputs; i++)
        is_used[r->graph->outputs[i]] = true;
    for (size_t n = 0; n < r->graph->n_nodes; n++)
        for (int i = 0; i < r->graph->nodes[n].n_inputs; i++)
            is_used[r->graph->nodes[n].inputs[i]] = true;
    for (size_t n = 0; n < r->graph->n_nodes; n++) {
        const int output = r->graph->nodes[n].output;
        if (!is_used[output] && r->graph->tensors[output].kind == HWNAS_TENSOR_ACTIVATION)
            hwnas_graph_add_output(r->graph, output);
    }
    free(is_used);
    if (!r->graph->n_outputs)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "nothing is left of the network: %s",
                          r->skipped->s);
    return HWNAS_OK;
}

static hwnas_status read_graph(reader *r)
{
    TRY(collect_values(r));
    collect_node_names(r);
    for (size_t i = 0; i < r->from->n_input; i++)
        TRY(read_input(r, r->from->input[i]));
    for (size_t i = 0; i < r->from->n_node; i++)
        TRY(read_or_skip(r, r->from->node[i]));
    return read_outputs(r);
}

/* `folder`: where files beside the model lie; NULL: nowhere. */
static hwnas_status read_model(hwnas_graph **out, const char *name, const char *folder,
                               const void *bytes, size_t length, hwnas_str *skipped)
{
    hwnas_status status = HWNAS_OK;
    Onnx__ModelProto *model = NULL;
    hwnas_graph *fused = NULL;
    reader r = {.folder = folder, .skipped = skipped};
    uint64_t seed = 0;
    TRY_OUT(hwnas_onnx_unpack(&model, bytes, length));
    TRY_OUT(check_model(&r.opset, model));
    const char *text =
        hwnas_onnx_find_entry(model->metadata_props, model->n_metadata_props, HWNAS_ONNX_SEED_KEY);
    if (text)
        TRY_OUT(parse_seed(&seed, text));
    r.from = model->graph;
    r.graph = hwnas_graph_new(is_empty(r.from->name) ? name : r.from->name, seed);
    TRY_OUT(read_graph(&r));
    hwnas_graph_tidy(r.graph);
    TRY_OUT(hwnas_graph_fuse(&fused, r.graph));
    *out = fused ? fused : r.graph;
    r.graph = fused ? r.graph : NULL;

out:
    if (status != HWNAS_OK)
        hwnas_context(status, "%s", name);
    hwnas_graph_free(r.graph);
    free(r.node_names);
    free(r.values);
    if (model)
        onnx__model_proto__free_unpacked(model, NULL);
    return status;
}

hwnas_status hwnas_onnx_read(hwnas_graph **out, const char *name, const void *bytes, size_t length)
{
    return read_model(out, name, NULL, bytes, length, NULL);
}

hwnas_status hwnas_onnx_load(hwnas_graph **out, const char *path, hwnas_str *skipped)
{
    char *bytes = NULL, *folder = hwnas_strdup(path), *slash = strrchr(folder, '/');
    size_t length;
    if (slash)
        *slash = '\0';
    hwnas_status status = hwnas_file_read(&bytes, &length, path, MAX_FILE_BYTES);
    if (status == HWNAS_OK)
        status = read_model(out, path, !slash ? "." : slash == folder ? "/" : folder, bytes, length,
                            skipped);
    free(folder);
    free(bytes);
    return status;
}
