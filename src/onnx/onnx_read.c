/* onnx_read.c: ONNX -> graph, by the operators' tables; for what we wrote and for what others did.
 *
 * A constant becomes a weight when the first node asks for it, so a graph that was written comes
 * back with its tensors in their order. */
#include "onnx/onnx_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/quantize_graph.h"
#include "graph/rewrite.h"
#include "graph/rounding.h"

/* Protobuf's own limit. */
#define MAX_FILE_BYTES ((size_t)INT32_MAX) /* as protobuf has it */

typedef hwnas_onnx_named named;
typedef hwnas_onnx_reader reader;

/* ---- nodes ---- */

bool hwnas_onnx_is_low_kernel(const reader *r, int tensor)
{
    const int producer = r->graph->tensors[tensor].producer;
    const hwnas_node *node = producer < 0 ? NULL : &r->graph->nodes[producer];
    return node && (hwnas_dequantizes_kernel(r->graph, node) || hwnas_rounds(node));
}

hwnas_status hwnas_onnx_take_weight(reader *r, const hwnas_op *op, int i, int tensor)
{
    const bool multiplies = op->id == HWNAS_OP_CONV || op->id == HWNAS_OP_LINEAR;
    if (i == 0 && multiplies && hwnas_onnx_is_low_kernel(r, tensor))
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
            TRY(hwnas_onnx_make_input(r, value, weight < op->max_weights - op->n_statistics, op, i,
                                      node));
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
    if (node->n_input != 1)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has %zu inputs", hwnas_onnx_describe(node).s,
                          node->n_input);
    return hwnas_onnx_rename(r, node->output[0], node->input[0], hwnas_onnx_describe(node).s);
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

static hwnas_status add_node(int *output, reader *r, const Onnx__NodeProto *node, const char *name,
                             const hwnas_op *op, const hwnas_attr *attrs)
{
    int inputs[HWNAS_MAX_NODE_INPUTS], n_inputs = 0;
    TRY(read_inputs(inputs, &n_inputs, r, op, node));
    hwnas_status status =
        hwnas_graph_add_node(output, r->graph, op, name, attrs, n_inputs, inputs, false);
    if (status != HWNAS_OK)
        return hwnas_context(status, "%s", hwnas_onnx_describe(node).s);
    return check_implied(attrs, r->graph, node);
}

static void set_name(reader *r, int tensor, const char *name)
{
    r->graph->tensors[tensor].name = hwnas_arena_string(r->graph->arena, name, strlen(name));
}

hwnas_status hwnas_onnx_give(reader *r, const char *name, int tensor)
{
    if (hwnas_dtype_is_whole(r->graph->tensors[tensor].dtype))
        TRY(hwnas_onnx_fold(r, tensor)); /* shapes and indices, not what the network computes */
    named *value = hwnas_onnx_find_value(r, name);
    value->tensor = tensor;
    value->is_extra = false;
    if (r->graph->tensors[tensor].producer >= 0 &&
        !hwnas_onnx_find_value(r, r->graph->tensors[tensor].name)) /* of a form's inside */
        set_name(r, tensor, name);
    return HWNAS_OK;
}

/* The output of a node has its own name in the graph; what a form passes on keeps the name
 * it has. */
static hwnas_status name_output(reader *r, const Onnx__NodeProto *node, int output)
{
    if (is_empty(node->output[0]) || (hwnas_onnx_is_read(r, node, 1) &&
                                      hwnas_onnx_find_value(r, node->output[1])->tensor == output))
        return HWNAS_OK; /* the second output alone is there, and has its name */
    const bool is_last = (size_t)output + 1 == r->graph->n_tensors;
    if (is_last && r->graph->tensors[output].producer >= 0)
        set_name(r, output, node->output[0]);
    return hwnas_onnx_give(r, node->output[0], output);
}

static hwnas_status read_by_table(int *out, reader *r, const Onnx__NodeProto *node,
                                  const char *name, const hwnas_op *op)
{
    hwnas_attr *attrs = NULL;
    if (r->opset < op->onnx_since)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "%s means another thing in opset %" PRId64 "; %d and newer are read",
                          hwnas_onnx_describe(node).s, r->opset, op->onnx_since);
    TRY(hwnas_onnx_read_attrs(&attrs, r, op, node));
    return add_node(out, r, node, name, op, attrs);
}

hwnas_status hwnas_onnx_read_as(int *out, reader *r, const Onnx__NodeProto *node, const char *name)
{
    *out = HWNAS_ONNX_NOT_MADE;
    TRY(hwnas_onnx_read_form(out, r, node, name));
    if (*out != HWNAS_ONNX_NOT_MADE)
        return HWNAS_OK;
    return read_by_table(out, r, node, name, hwnas_op_by_onnx(node->op_type));
}

static hwnas_status read_node(reader *r, const Onnx__NodeProto *node)
{
    if (!node->n_output || is_empty(node->op_type) ||
        (is_empty(node->output[0]) && !hwnas_onnx_may_lack_output(node)))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no output", hwnas_onnx_describe(node).s);
    const bool is_standard = hwnas_onnx_is_standard(node);
    if (is_standard && !strcmp(node->op_type, "Identity"))
        return read_identity(r, node);
    if (is_standard && !strcmp(node->op_type, "If"))
        return hwnas_onnx_read_if(r, node);
    if (hwnas_onnx_constant_node(node))
        return HWNAS_OK;
    int output = HWNAS_ONNX_NOT_MADE;
    const char *type = strcmp(node->op_type, "Scatter") ? node->op_type : "ScatterElements";
    const hwnas_op *op = is_standard ? hwnas_op_by_onnx(type) : NULL; /* renamed in opset 11 */
    if (is_standard)
        TRY(hwnas_onnx_keep_nothing(r, node, op));
    if (is_standard && !hwnas_onnx_is_nothing(r, node->output[0]))
        TRY(hwnas_onnx_make_of_nothing(&output, r, node, hwnas_onnx_node_name(r, node)));
    if (output == HWNAS_ONNX_NOT_MADE && !hwnas_onnx_is_nothing(r, node->output[0]))
        TRY(hwnas_onnx_read_form(&output, r, node, hwnas_onnx_node_name(r, node)));
    if (hwnas_onnx_is_nothing(r, node->output[0]))
        return HWNAS_OK;
    if (output != HWNAS_ONNX_NOT_MADE)
        return name_output(r, node, output);
    if (!op)
        return hwnas_onnx_refuse_unknown(r, node);
    TRY(read_by_table(&output, r, node, hwnas_onnx_node_name(r, node), op));
    return name_output(r, node, output);
}

hwnas_status hwnas_onnx_read_if(reader *r, const Onnx__NodeProto *node)
{
    const hwnas_tensor *condition = NULL;
    const hwnas_onnx_text who = hwnas_onnx_describe(node);
    if (!hwnas_onnx_has_input(node, 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no condition", who.s);
    TRY(hwnas_onnx_constant(&condition, r, node->input[0], who.s));
    if (!condition)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: the condition depends on the input", who.s),
            "export the branch that is to be measured, or 'hwnas profile FILE --skip-unsupported' "
            "measures the rest");
    const Onnx__AttributeProto *branch =
        hwnas_onnx_attribute(node, condition->data[0] != 0 ? "then_branch" : "else_branch");
    if (!branch || !branch->g || branch->g->n_output != node->n_output || branch->g->n_input)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no branch that fits", who.s);
    for (size_t i = 0; i < branch->g->n_node; i++)
        TRY(read_node(r, branch->g->node[i]));
    for (size_t i = 0; i < node->n_output; i++) {
        const char *from = branch->g->output[i]->name;
        if (!is_empty(node->output[i]))
            TRY(hwnas_onnx_rename(r, node->output[i], from ? from : "", who.s));
    }
    return HWNAS_OK;
}

static bool is_listed(const Onnx__GraphProto *from, const char *name)
{
    for (size_t i = 0; i < from->n_output; i++)
        if (from->output[i]->name && !strcmp(from->output[i]->name, name))
            return true;
    return false;
}

/* What an Identity passed on gets the output's name. Where it has to keep its own, being an input,
 * a constant or another output, a copy of it is the output: nobody else expects the two to be one.
 */
static hwnas_status read_output(reader *r, const Onnx__ValueInfoProto *from)
{
    named *value = NULL;
    TRY(hwnas_onnx_resolve(&value, r, from->name ? from->name : "", "the list of outputs"));
    if (value->constant)
        TRY(hwnas_onnx_make_weight(r, value, false));
    int tensor = value->tensor;
    const hwnas_tensor *made = &r->graph->tensors[tensor];
    const bool is_taken = hwnas_graph_is_output(r->graph, tensor);
    if (!strcmp(made->name, from->name)) {
        if (is_taken)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "output '%s' is listed twice", from->name);
    } else if (is_taken || made->kind != HWNAS_TENSOR_ACTIVATION ||
               is_listed(r->from, made->name)) {
        const hwnas_attr same = hwnas_attr_int(made->dtype);
        TRY(hwnas_onnx_add(&tensor, r, HWNAS_OP_CAST, from->name, NULL, &same, 1, &tensor));
    } else {
        set_name(r, tensor, from->name);
    }
    hwnas_graph_add_output(r->graph, tensor);
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
        const named *value =
            is_empty(node->input[i]) ? NULL : hwnas_onnx_find_value(r, node->input[i]);
        if (value && (value->same_as ? value->same_as : value)->is_missing)
            return true;
    }
    return false;
}

/* Where most multiplications are. */
static bool is_product(const Onnx__NodeProto *node)
{
    const hwnas_op *op = is_empty(node->op_type) ? NULL : hwnas_op_by_onnx(node->op_type);
    return op && op->class == HWNAS_CLASS_PRODUCT;
}

/* Shapes behind what was left out are unknown, and with them its MACs. */
static void tell_share(const reader *r)
{
    size_t n_products = 0;
    for (size_t i = 0; i < r->from->n_node; i++)
        n_products += is_product(r->from->node[i]);
    hwnas_str_addf(r->skipped, "%zu of %zu nodes (%.0f %%)", r->n_left_out, r->from->n_node,
                   100 * (double)r->n_left_out / (double)r->from->n_node);
    if (n_products)
        hwnas_str_addf(r->skipped, ", %zu of %zu convolutions and matrix products,",
                       r->n_products_left_out, n_products);
    hwnas_str_add(r->skipped, " are in no time, MACs or params\n");
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
    r->n_left_out++;
    r->n_products_left_out += is_product(node);
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

/* Outputs that have values, that can be computed and, where nodes were left out, what no other node
 * reads. */
static hwnas_status read_outputs(reader *r)
{
    const char *without = NULL;
    for (size_t i = 0; i < r->from->n_output; i++) {
        const char *name = r->from->output[i]->name;
        const named *value = is_empty(name) ? NULL : hwnas_onnx_find_value(r, name);
        if (value && hwnas_onnx_is_nothing(r, name)) {
            without = name;
            continue;
        }
        if (!value || !(value->same_as ? value->same_as : value)->is_missing)
            TRY(read_output(r, r->from->output[i]));
    }
    if (without && !r->graph->n_outputs && !(r->skipped && r->skipped->n))
        return hwnas_fail(
            HWNAS_E_UNSUPPORTED, NULL,
            "the network's output '%s' has no values, and it has no other that has some", without);
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
    tell_share(r);
    return HWNAS_OK;
}

static hwnas_status read_graph(reader *r)
{
    TRY(hwnas_onnx_collect_values(r));
    hwnas_onnx_collect_node_names(r);
    TRY(hwnas_onnx_settle_shapes(r));
    for (size_t i = 0; i < r->from->n_input; i++)
        TRY(hwnas_onnx_read_input(r, r->from->input[i]));
    for (size_t i = 0; i < r->from->n_node; i++)
        TRY(read_or_skip(r, r->from->node[i]));
    return read_outputs(r);
}

static void free_model(Onnx__ModelProto *model)
{
    if (model)
        onnx__model_proto__free_unpacked(model, NULL);
}

/* `r` says where files beside the model lie, and the rest that the caller decides. `owned` (NULL:
 * the bytes are only borrowed) is freed and set to NULL as soon as it may be: the weights of a
 * large model are never there more than twice. */
static hwnas_status read_model(hwnas_graph **out, hwnas_onnx_batch *batch, reader r,
                               const char *name, const void *bytes, size_t length, void **owned)
{
    hwnas_status status = HWNAS_OK;
    Onnx__ModelProto *model = NULL;
    hwnas_graph *fused = NULL;
    hwnas_str doubts = {0};
    uint64_t seed = 0;
    TRY_OUT(hwnas_onnx_unpack(&model, bytes, length));
    if (owned) {
        free(*owned);
        *owned = NULL;
    }
    TRY_OUT(check_model(&r.opset, model));
    const char *text =
        hwnas_onnx_find_entry(model->metadata_props, model->n_metadata_props, HWNAS_ONNX_SEED_KEY);
    if (text)
        TRY_OUT(hwnas_onnx_parse_seed(&seed, text));
    r.from = model->graph;
    r.graph = hwnas_graph_new(is_empty(r.from->name) ? name : r.from->name, seed);
    TRY_OUT(read_graph(&r));
    hwnas_onnx_doubt_wholes(&doubts, &r);
    hwnas_onnx_doubt_random(&doubts, &r);
    free_model(model);
    model = NULL;
    TRY_OUT(hwnas_onnx_settle_zeros(r.graph));
    hwnas_graph_tidy(r.graph);
    TRY_OUT(hwnas_graph_fuse(&fused, r.graph));
    hwnas_onnx_doubt_weights(&doubts, fused ? fused : r.graph);
    *out = fused ? fused : r.graph;
    if (doubts.n)
        (*out)->doubts = hwnas_arena_string((*out)->arena, doubts.s, doubts.n);
    r.graph = fused ? r.graph : NULL;
    if (batch)
        *batch = (hwnas_onnx_batch){.length = r.own_batch ? r.own_batch : r.first_length,
                                    .is_fixed = !r.own_batch};

out:
    if (status != HWNAS_OK)
        hwnas_context(status, "%s", name);
    hwnas_graph_free(r.graph);
    hwnas_str_done(&doubts);
    free(r.node_names);
    free(r.values);
    free(r.bound);
    free_model(model);
    return status;
}

hwnas_status hwnas_onnx_read(hwnas_graph **out, const char *name, const void *bytes, size_t length)
{
    const reader alone = {.batch = 1};
    return read_model(out, NULL, alone, name, bytes, length, NULL);
}

hwnas_status hwnas_onnx_take(hwnas_graph **out, const char *name, void **bytes, size_t length)
{
    const reader alone = {.batch = 1};
    return read_model(out, NULL, alone, name, *bytes, length, bytes);
}

hwnas_status hwnas_onnx_load(hwnas_graph **out, const char *path, hwnas_str *skipped)
{
    return hwnas_onnx_load_batch(out, path, 1, skipped);
}

hwnas_status hwnas_onnx_load_batch(hwnas_graph **out, const char *path, int batch,
                                   hwnas_str *skipped)
{
    const hwnas_onnx_shapes shapes = {.batch = batch};
    hwnas_onnx_batch became;
    return hwnas_onnx_load_shaped(out, &became, path, &shapes, skipped);
}

hwnas_status hwnas_onnx_load_shaped(hwnas_graph **out, hwnas_onnx_batch *batch, const char *path,
                                    const hwnas_onnx_shapes *shapes, hwnas_str *skipped)
{
    void *owned = NULL;
    char *bytes = NULL, *folder = hwnas_strdup(path), *slash = strrchr(folder, '/');
    size_t length;
    if (slash)
        *slash = '\0';
    const reader beside = {.folder = !slash            ? "."
                                     : slash == folder ? "/"
                                                       : folder,
                           .skipped = skipped,
                           .batch = shapes->batch,
                           .shapes = shapes};
    hwnas_status status = hwnas_file_read(&bytes, &length, path, MAX_FILE_BYTES);
    if (status == HWNAS_OK)
        status = read_model(out, batch, beside, path, owned = bytes, length, &owned);
    else if (status == HWNAS_E_INPUT && !*hwnas_last_error()->hint)
        hwnas_hint(status, "is it a model? a large one keeps its weights in a file beside it");
    free(folder);
    free(owned);
    return status;
}
