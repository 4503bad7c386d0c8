/* onnx_read_constants.c: what is known before the network runs: the file's constants, and what is
 * computed of nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_reader.h"

typedef hwnas_onnx_named named;
typedef hwnas_onnx_reader reader;

hwnas_status hwnas_onnx_parse_seed(uint64_t *out, const char *text)
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
    TRY(hwnas_onnx_parse_seed(&tensor->seed, seed));
    for (int i = 0; i < HWNAS_N_INITS; i++) {
        if (init && !strcmp(init, hwnas_onnx_inits[i])) {
            tensor->init = (hwnas_init)i;
            return HWNAS_OK;
        }
    }
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would be drawn as '%s', which is not an initialiser",
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

/* The values of a matrix of bytes, as they are; nothing where some are above 127. */
static hwnas_status take_codes(hwnas_tensor *tensor, reader *r, const Onnx__TensorProto *from)
{
    const int64_t n = hwnas_tensor_count(tensor);
    const unsigned char *bytes;
    void *owned;
    TRY(hwnas_onnx_bytes(&bytes, &owned, from, n, r->folder));
    int fits = 1;
    for (int64_t i = 0; i < n && tensor->dtype == HWNAS_UINT8; i++)
        fits &= bytes[i] < 128;
    if (fits)
        tensor->codes.numbers = hwnas_arena_copy(r->graph->arena, bytes, (size_t)n);
    free(owned);
    return HWNAS_OK;
}

/* `stays_bytes`: as codes, if it is a matrix of them. */
static hwnas_status make_weight(reader *r, named *value, bool is_parameter, bool stays_bytes)
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
    } else if (stays_bytes && tensor->rank == 2 && (dtype == HWNAS_INT8 || dtype == HWNAS_UINT8)) {
        TRY(take_codes(tensor, r, from));
    }
    if (!is_seed(from) && !tensor->codes.numbers) {
        float *values = NULL;
        TRY(hwnas_onnx_values(&values, r->graph->arena, from, hwnas_tensor_count(tensor),
                              r->folder));
        tensor->data = values;
    }
    value->tensor = index;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_make_weight(reader *r, named *value, bool is_parameter)
{
    return make_weight(r, value, is_parameter, false);
}

hwnas_status hwnas_onnx_make_input(reader *r, named *value, bool is_parameter, const hwnas_op *op,
                                   size_t i, const Onnx__NodeProto *node)
{
    return make_weight(r, value, is_parameter,
                       i == 0 && op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
                           hwnas_onnx_int(node, "block_size", 0) > 0);
}

/* Makes floats of a weight's codes, for those that compute with them now. */
static void know(reader *r, int index)
{
    hwnas_tensor *tensor = &r->graph->tensors[index];
    if (tensor->kind != HWNAS_TENSOR_WEIGHT || !tensor->codes.numbers)
        return;
    float *values = hwnas_arena_alloc(r->graph->arena, (size_t)hwnas_tensor_bytes(tensor));
    hwnas_tensor_fill(tensor, values);
    tensor->data = values;
    tensor->codes = (hwnas_codes){0};
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
        know(r, node->inputs[i]);
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
    know(r, value->tensor);
    const hwnas_tensor *tensor = &r->graph->tensors[value->tensor];
    *out = tensor->kind == HWNAS_TENSOR_WEIGHT && tensor->data ? tensor : NULL;
    return HWNAS_OK;
}
