/* lower.c: the rules, one row for each operator: which of oneDNN's operators it is, and how its
 * attributes are said there. Inputs and outputs are the node's own, in the same order. */
#include "device/onednn/lower.h"

#include <string.h>

#include <oneapi/dnnl/dnnl_debug.h>

#include "graph/op.h"

typedef dnnl_graph_op_attr_t attr_id;

/* An operator being made. After the first failure nothing more is done to it. */
typedef struct op {
    const hwnas_graph *graph;
    const hwnas_node *node;
    dnnl_graph_op_t made;
    dnnl_status_t status;
} op;

hwnas_status hwnas_onednn_status(dnnl_status_t status, const char *verb, const char *name)
{
    if (status == dnnl_success)
        return HWNAS_OK;
    return hwnas_fail(status == dnnl_out_of_memory ? HWNAS_E_MEMORY : HWNAS_E_LIBRARY, NULL,
                      "oneDNN could not %s '%s': %s", verb, name, dnnl_status2str(status));
}

static void set_ints(op *o, attr_id attr, const int64_t *values, size_t n)
{
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_s64(o->made, attr, values, n);
}

static void set_float(op *o, attr_id attr, double value)
{
    const float narrowed = (float)value;
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_f32(o->made, attr, &narrowed, 1);
}

static void set_bool(op *o, attr_id attr, bool value)
{
    const uint8_t byte = value;
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_bool(o->made, attr, &byte, 1);
}

static void set_text(op *o, attr_id attr, const char *text)
{
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_str(o->made, attr, text, strlen(text) + 1);
}

static const hwnas_attr *attr_of(const op *o, const char *name)
{
    return hwnas_node_attr(o->node, name);
}

static void lower_conv(op *o)
{
    const int64_t *pad = attr_of(o, "pad")->ints; /* top, left, bottom, right */
    set_ints(o, dnnl_graph_op_attr_strides, attr_of(o, "stride")->ints, 2);
    set_ints(o, dnnl_graph_op_attr_pads_begin, pad, 2);
    set_ints(o, dnnl_graph_op_attr_pads_end, pad + 2, 2);
    set_ints(o, dnnl_graph_op_attr_dilations, attr_of(o, "dilation")->ints, 2);
    set_ints(o, dnnl_graph_op_attr_groups, attr_of(o, "groups")->ints, 1);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
    set_text(o, dnnl_graph_op_attr_weights_format, "OIX");
}

static void lower_batch_norm(op *o)
{
    set_float(o, dnnl_graph_op_attr_epsilon, attr_of(o, "epsilon")->number);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static void lower_hard_sigmoid(op *o)
{
    set_float(o, dnnl_graph_op_attr_alpha, attr_of(o, "alpha")->number);
    set_float(o, dnnl_graph_op_attr_beta, attr_of(o, "beta")->number);
}

static void lower_global_avg_pool(op *o)
{
    static const int64_t one[] = {1, 1}, none[] = {0, 0};
    set_ints(o, dnnl_graph_op_attr_kernel, hwnas_node_input(o->graph, o->node, 0)->dims + 2, 2);
    set_ints(o, dnnl_graph_op_attr_strides, one, 2);
    set_ints(o, dnnl_graph_op_attr_pads_begin, none, 2);
    set_ints(o, dnnl_graph_op_attr_pads_end, none, 2);
    set_bool(o, dnnl_graph_op_attr_exclude_pad, true);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static void lower_flatten(op *o)
{
    set_ints(o, dnnl_graph_op_attr_shape, hwnas_node_output(o->graph, o->node)->dims, 2);
    set_bool(o, dnnl_graph_op_attr_special_zero, false);
}

static void lower_linear(op *o)
{
    set_bool(o, dnnl_graph_op_attr_transpose_b, true); /* our weights are outputs x inputs */
}

static void no_attributes(op *o)
{
    (void)o;
}

static const struct rule {
    const char *op;
    dnnl_graph_op_kind_t kind;
    void (*set_attributes)(op *o);
} rules[] = {
    {"add", dnnl_graph_op_add, no_attributes},
    {"batch_norm", dnnl_graph_op_batch_norm_inference, lower_batch_norm},
    {"conv", dnnl_graph_op_convolution, lower_conv},
    {"flatten", dnnl_graph_op_static_reshape, lower_flatten},
    {"global_avg_pool", dnnl_graph_op_avg_pool, lower_global_avg_pool},
    {"hard_sigmoid", dnnl_graph_op_hard_sigmoid, lower_hard_sigmoid},
    {"linear", dnnl_graph_op_matmul, lower_linear},
    {"mul", dnnl_graph_op_multiply, no_attributes},
    {"relu", dnnl_graph_op_relu, no_attributes},
};

static const struct rule *rule_of(const hwnas_node *node)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].op, node->op->name))
            return &rules[i];
    return NULL;
}

hwnas_status hwnas_onednn_plain(dnnl_graph_logical_tensor_t *out, const hwnas_graph *graph,
                                int tensor)
{
    const hwnas_tensor *t = &graph->tensors[tensor];
    dnnl_dims_t dims = {0}, strides = {0};
    int64_t stride = 1;
    for (int i = t->rank - 1; i >= 0; stride *= dims[i--]) {
        dims[i] = t->dims[i];
        strides[i] = stride;
    }
    const dnnl_graph_tensor_property_t property = t->kind == HWNAS_TENSOR_WEIGHT
                                                      ? dnnl_graph_tensor_property_constant
                                                      : dnnl_graph_tensor_property_variable;
    TRY_DNNL("describe", t->name,
             dnnl_graph_logical_tensor_init_with_strides(out, (size_t)tensor, dnnl_f32, t->rank,
                                                         dims, strides, property));
    return HWNAS_OK;
}

static hwnas_status add_ports(op *o)
{
    dnnl_graph_logical_tensor_t port;
    for (int i = 0; i < o->node->n_inputs; i++) {
        TRY(hwnas_onednn_plain(&port, o->graph, o->node->inputs[i]));
        if (o->status == dnnl_success)
            o->status = dnnl_graph_op_add_input(o->made, &port);
    }
    TRY(hwnas_onednn_plain(&port, o->graph, o->node->output));
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_add_output(o->made, &port);
    return HWNAS_OK;
}

static hwnas_status lower_node(dnnl_graph_graph_t target, const hwnas_graph *graph, size_t index)
{
    hwnas_status status = HWNAS_OK;
    op o = {.graph = graph, .node = &graph->nodes[index]};
    const struct rule *rule = rule_of(o.node);
    if (!rule)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "device 'cpu' has no operator '%s' ('%s')",
                          o.node->op->name, o.node->name);
    o.status = dnnl_graph_op_create(&o.made, index, rule->kind, o.node->name);
    if (o.status == dnnl_success) {
        TRY_OUT(add_ports(&o));
        rule->set_attributes(&o);
    }
    if (o.status == dnnl_success)
        o.status = dnnl_graph_add_op(target, o.made);
    status = hwnas_onednn_status(o.status, "take", o.node->name);
out:
    dnnl_graph_op_destroy(o.made);
    return status;
}

hwnas_status hwnas_onednn_lower(dnnl_graph_graph_t target, const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        TRY(lower_node(target, graph, i));
    return HWNAS_OK;
}
