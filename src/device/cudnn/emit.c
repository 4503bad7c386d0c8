/* emit.c: groups become steps, in the order of running. */
#include <stdlib.h>
#include <string.h>

#include "device/cudnn/cublas.h"
#include "device/cudnn/cut.h"

/* ---- Bans ---- */

static void ban_nodes(hwnas_cudnn_bans *bans, const hwnas_cudnn_net *net, int n, const int *nodes)
{
    const int last = nodes[n - 1], output = net->graph->nodes[last].output;
    for (int i = 0; i < n; i++)
        if (net->graph->nodes[nodes[i]].op->id == HWNAS_OP_SOFTMAX) {
            bans->attention[nodes[i]] = true;
            return;
        }
    if (net->tensors[output].root != output && !bans->slice[output])
        bans->slice[output] = true;
    else if (n > 1)
        bans->joins[last] = nodes[0] + 1;
    else if (net->precision == HWNAS_S8 && !bans->bytes[last])
        bans->bytes[last] = true;
    else
        bans->engine[last] = true;
}

/* Elements that are no operation of cuDNN's go to one kernel of ours as they are. */
static void ban_group(hwnas_cudnn_bans *bans, const hwnas_cudnn_net *net,
                      const hwnas_cudnn_group *group)
{
    const hwnas_fusion_group *chain = &group->chain;
    if (group->role == HWNAS_CUDNN_BY_POINTWISE &&
        net->tensors[chain->output].root == chain->output)
        bans->engine[chain->nodes[0]] = true;
    else
        ban_nodes(bans, net, chain->n_nodes, chain->nodes);
}

void hwnas_cudnn_ban(hwnas_cudnn_bans *bans, const hwnas_cudnn_net *net,
                     const hwnas_cudnn_step *step)
{
    int nodes[HWNAS_CUDNN_LONGEST_GROUP], n = 0; /* without what makes floats of a product's bytes */
    for (size_t i = 0; i < step->about.n_nodes; i++)
        if (net->graph->nodes[step->about.nodes[i]].op->id != HWNAS_OP_DEQUANTIZE_LINEAR)
            nodes[n++] = step->about.nodes[i];
    ban_nodes(bans, net, n, nodes);
}

/* ---- Steps by role ---- */

static const char *name_of(const hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group)
{
    return cut->graph->nodes[group->chain.nodes[0]].name;
}

/* A node by itself or a chain of functions of elements; inputs as they lie, each in the type that
 * it has. */
static void emit_kernel(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group)
{
    const hwnas_fusion_group *chain = &group->chain;
    int inputs[HWNAS_MAX_NODE_INPUTS + 2 * HWNAS_CUDNN_LONGEST_GROUP], n = 0;
    for (int i = 0; i < chain->n_nodes; i++) {
        const hwnas_node *node = &cut->graph->nodes[chain->nodes[i]];
        const int before = i ? cut->graph->nodes[chain->nodes[i - 1]].output : -1;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != before)
                inputs[n++] =
                    hwnas_cudnn_want(cut, node->inputs[k], cut->net->tensors[node->inputs[k]].type,
                                     HWNAS_CUDNN_AS_IS);
    }
    hwnas_cudnn_add_step(cut->net, &hwnas_cudnn_kernel, name_of(cut, group), chain->n_nodes,
                         chain->nodes, n, inputs, chain->output);
}

/* cuDNN's has one type for all, which what comes straight from the caller has not. */
static void emit_rnn(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group)
{
    const hwnas_node *node = &cut->graph->nodes[group->chain.nodes[0]];
    const hwnas_cudnn_type type = hwnas_cudnn_io_type(cut->net->precision);
    int inputs[HWNAS_MAX_NODE_INPUTS];
    for (int k = 0; k < node->n_inputs; k++)
        inputs[k] = hwnas_cudnn_want(cut, node->inputs[k], type, HWNAS_CUDNN_PLAIN);
    hwnas_cudnn_add_step(cut->net, &hwnas_cudnn_rnn, node->name, 1, group->chain.nodes, node->n_inputs,
                         inputs, node->output);
}

/* Dimensions `axis` from `begin` on, every `step`-th. */
static bool see_slice(hwnas_cudnn_tensor *out, const hwnas_cudnn_tensor *in,
                      const hwnas_node *node)
{
    int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    int64_t begin = hwnas_node_attr(node, "begin")->ints[0];
    axis += axis < 0 ? in->rank : 0;
    begin += begin < 0 ? in->dims[axis] : 0;
    begin = begin < 0 ? 0 : begin;
    memcpy(out->strides, in->strides, sizeof out->strides);
    out->strides[axis] *= hwnas_node_attr(node, "step")->ints[0];
    out->first = in->first + begin * in->strides[axis];
    return true;
}

/* The node's output as another look at `in`; false where strides cannot say it. */
static bool see(hwnas_cudnn_tensor *out, const hwnas_cudnn_tensor *in, const hwnas_node *node)
{
    out->first = in->first;
    if (node->op->id == HWNAS_OP_SLICE)
        return see_slice(out, in, node);
    if (node->op->id != HWNAS_OP_TRANSPOSE)
        return hwnas_cudnn_reshape(out->strides, in, out->rank, out->dims);
    const int64_t *order = hwnas_node_attr(node, "order")->ints;
    for (int i = 0; i < out->rank; i++)
        out->strides[i] = in->strides[order[i]];
    return true;
}

static void emit_view(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group)
{
    hwnas_cudnn_net *net = cut->net;
    const hwnas_node *node = &cut->graph->nodes[group->chain.nodes[0]];
    const hwnas_cudnn_type type = net->tensors[node->inputs[0]].type;
    int in = hwnas_cudnn_want(cut, node->inputs[0], type, HWNAS_CUDNN_AS_IS);
    hwnas_cudnn_tensor out = net->tensors[node->output];
    if (!see(&out, &net->tensors[in], node)) {
        in = hwnas_cudnn_want(cut, node->inputs[0], type, HWNAS_CUDNN_PLAIN);
        see(&out, &net->tensors[in], node);
    }
    out.type = type;
    out.root = net->tensors[in].root;
    out.memory = HWNAS_CUDNN_NOWHERE;
    net->tensors[node->output] = out;
    hwnas_cudnn_add_step(net, &hwnas_cudnn_view, node->name, 1, group->chain.nodes, 1, &in,
                         node->output);
}

/* Parts that do not lie in their place are copied there. */
static void emit_concat(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group)
{
    hwnas_cudnn_net *net = cut->net;
    const hwnas_node *node = &cut->graph->nodes[group->chain.nodes[0]];
    const hwnas_cudnn_tensor whole = net->tensors[node->output];
    int64_t axis = hwnas_node_attr(node, "axis")->ints[0], at = 0;
    int parts[HWNAS_MAX_NODE_INPUTS];
    axis += axis < 0 ? whole.rank : 0;
    for (int k = 0; k < node->n_inputs; k++) {
        parts[k] = hwnas_cudnn_want(cut, node->inputs[k], net->tensors[node->inputs[k]].type,
                                    HWNAS_CUDNN_AS_IS);
        const hwnas_cudnn_tensor part = net->tensors[parts[k]];
        const int64_t first = whole.first + at * whole.strides[axis];
        at += part.dims[axis];
        if (part.root == whole.root && part.first == first)
            continue;
        const int slice = hwnas_cudnn_new_tensor(net, &whole);
        hwnas_cudnn_tensor *t = &net->tensors[slice];
        memcpy(t->dims, part.dims, sizeof t->dims);
        t->name = part.name;
        t->root = whole.root;
        t->first = first;
        t->memory = HWNAS_CUDNN_NOWHERE;
        hwnas_cudnn_add_step(net, &hwnas_cudnn_kernel, part.name, 0, NULL, 1, &parts[k], slice);
        parts[k] = slice;
    }
    hwnas_cudnn_add_step(net, &hwnas_cudnn_view, node->name, 1, group->chain.nodes, node->n_inputs,
                         parts, node->output);
}

/* Its inputs are what the operation reads. */
static void add_engine(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group,
                       hwnas_cudnn_operation *o)
{
    int inputs[HWNAS_CUDNN_MAX_PORTS], n = 0, nodes[2 * HWNAS_CUDNN_LONGEST_GROUP];
    const int output = group->chain.output;
    for (int i = 0; i < o->n_ports; i++)
        if (o->ports[i].kind == HWNAS_CUDNN_PORT_MEMORY && o->ports[i].tensor != output)
            inputs[n++] = o->ports[i].tensor;
    memcpy(nodes, group->dequantizes, (size_t)group->n_dequantizes * sizeof *nodes);
    memcpy(nodes + group->n_dequantizes, group->chain.nodes, (size_t)group->chain.n_nodes * sizeof *nodes);
    hwnas_cudnn_step *step = hwnas_cudnn_add_step(
        cut->net, hwnas_cublas_takes(o) ? &hwnas_cublas : &hwnas_cudnn_engine, name_of(cut, group),
        group->n_dequantizes + group->chain.n_nodes, nodes, n, inputs, output);
    step->state = o;
}

static void emit_group(hwnas_cudnn_cut *cut, const hwnas_cudnn_group *group,
                       hwnas_cudnn_bans *bans, bool *again)
{
    hwnas_cudnn_operation *o;
    switch (group->role) {
    case HWNAS_CUDNN_BY_KERNEL:
        emit_kernel(cut, group);
        return;
    case HWNAS_CUDNN_BY_RNN:
        emit_rnn(cut, group);
        return;
    case HWNAS_CUDNN_BY_VIEW:
        emit_view(cut, group);
        return;
    case HWNAS_CUDNN_BY_CONCAT:
        emit_concat(cut, group);
        return;
    default:
        o = hwnas_alloc(sizeof *o);
        if (hwnas_cudnn_lower(o, cut, group) && (!hwnas_cublas_takes(o) || hwnas_cublas_can(o))) {
            add_engine(cut, group, o);
            return;
        }
        free(o);
        ban_group(bans, cut->net, group);
        *again = true;
    }
}

/* ---- What the caller gives and gets ---- */

/* The tensor in fp32 and plain, in the caller's memory: itself where nothing else is wanted of it. */
static int emit_output(hwnas_cudnn_cut *cut, int tensor)
{
    hwnas_cudnn_net *net = cut->net;
    hwnas_cudnn_tensor *t = &net->tensors[tensor];
    if (t->memory == HWNAS_CUDNN_ACTIVATIONS && t->type == HWNAS_CUDNN_F32 &&
        hwnas_cudnn_is_plain(t)) {
        t->memory = HWNAS_CUDNN_OUTPUTS;
        return tensor;
    }
    int from = hwnas_cudnn_want(cut, tensor, net->tensors[tensor].type, HWNAS_CUDNN_AS_IS);
    const int made = hwnas_cudnn_new_tensor(net, &net->tensors[from]);
    hwnas_cudnn_tensor *out = &net->tensors[made];
    out->type = HWNAS_CUDNN_F32;
    out->memory = HWNAS_CUDNN_OUTPUTS;
    hwnas_cudnn_plain_strides(out->strides, out->rank, out->dims);
    hwnas_cudnn_add_step(net, &hwnas_cudnn_kernel, out->name, 0, NULL, 1, &from, made);
    return made;
}

void hwnas_cudnn_emit(hwnas_cudnn_cut *cut, hwnas_cudnn_bans *bans, bool *again)
{
    hwnas_cudnn_net *net = cut->net;
    const hwnas_graph *graph = cut->graph;
    for (size_t i = 0; i < cut->plan.n_groups; i++)
        emit_group(cut, &hwnas_cudnn_groups(cut)[i], bans, again);
    net->inputs = hwnas_arena_copy(net->arena, graph->inputs, graph->n_inputs * sizeof(int));
    net->outputs = hwnas_arena_alloc(net->arena, graph->n_outputs * sizeof(int));
    for (size_t i = 0; i < graph->n_outputs; i++)
        net->outputs[i] = emit_output(cut, graph->outputs[i]);
}
