/* cudnn_lower.c: groups as operations of cuDNN's: which tensors they read, seen with which rank,
 * and what follows what. docs/gpu.md has the rules with their reasons. */
#include "device/cudnn/cudnn_lower.h"

#include <cudnn.h>

#include "device/cudnn/cudnn_int8.h"

typedef hwnas_cudnn_lowering lowering;

enum { MAX_PORT_RANK = HWNAS_CUDNN_PORT_RANK };

/* The tensor seen with another shape; false where its strides cannot say that. */
static bool add_seen(lowering *l, int *port, int tensor, int rank, const int64_t *dims)
{
    int64_t strides[HWNAS_MAX_RANK];
    if (!hwnas_cudnn_reshape(strides, &l->cut->net->tensors[tensor], rank, dims))
        return false;
    *port = hwnas_cudnn_add_memory(l->o, l->cut->net, tensor, rank, dims, strides);
    return true;
}

/* An image as it is. */
static int add_image(lowering *l, int tensor, hwnas_cudnn_form form)
{
    const int wanted = hwnas_cudnn_want(l->cut, hwnas_lower_source(l, tensor), l->factor, form);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, t->dims, t->strides);
}

/* The port of a weight that is a vector of `n` along one dimension of the port's rank. */
static int lower_vector(lowering *l, int tensor, hwnas_cudnn_type type, int along, int64_t n)
{
    int64_t plain[HWNAS_MAX_RANK], dims[MAX_PORT_RANK], strides[MAX_PORT_RANK];
    const hwnas_tensor *t = hwnas_lower_tensor(l, tensor);
    hwnas_cudnn_plain_strides(plain, t->rank, t->dims);
    const int weight = hwnas_cudnn_weight(l->cut->net, tensor, type, plain);
    for (int i = 0; i < l->rank; i++) {
        dims[i] = i == along ? n : 1;
        strides[i] = i == along ? 1 : n;
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, weight, l->rank, dims, strides);
}

float hwnas_lower_number(const hwnas_tensor *weight)
{
    float value;
    hwnas_tensor_fill(weight, &value);
    return value;
}

/* ---- What follows: operands of the nodes behind the first ---- */

/* Whether only the tensor's dimension that falls on the result's dimension `on` is more than 1. */
static bool is_vector_on(const hwnas_tensor *t, const hwnas_tensor *result, int on)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != 1 && (result->rank - t->rank + i != on || t->dims[i] != result->dims[on]))
            return false;
    return true;
}

/* ---- Bytes ---- */

int hwnas_lower_source(const lowering *l, int tensor)
{
    const hwnas_graph *graph = l->cut->graph;
    for (int i = 0; i < l->group->n_dequantizes; i++) {
        const hwnas_node *dequantize = &graph->nodes[l->group->dequantizes[i]];
        if (dequantize->output == tensor)
            return dequantize->inputs[0];
    }
    return tensor;
}

/* The scale with which a tensor is made of bytes: a weight. */
static int scale_of(const lowering *l, int tensor)
{
    return l->cut->graph->nodes[hwnas_lower_tensor(l, tensor)->producer].inputs[1];
}

/* Times a weight of one value, or of one for each channel. */
static int add_scaling(lowering *l, int port, int scale)
{
    const hwnas_tensor *t = hwnas_lower_tensor(l, scale);
    const int by = hwnas_tensor_count(t) == 1
                       ? hwnas_cudnn_add_scalar(l->o, l->rank, hwnas_lower_number(t))
                       : lower_vector(l, scale, HWNAS_CUDNN_F32, l->channel, l->dims[l->channel]);
    return hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_MUL, port, by);
}

void hwnas_lower_scales(lowering *l)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    if (l->factor != HWNAS_CUDNN_S8)
        return;
    l->o->ports[l->result].type = HWNAS_CUDNN_S32;
    l->o->ops[l->o->n_ops - 1].is_whole = true;
    l->result = add_scaling(l, l->result, scale_of(l, node->inputs[1]));
    l->result = add_scaling(l, l->result, scale_of(l, node->inputs[0]));
}

/* A number, a vector along the channels, or a tensor of the result's own shape. */
static bool add_operand(lowering *l, int *port, int tensor, const hwnas_tensor *result)
{
    const hwnas_tensor *t = hwnas_lower_tensor(l, tensor);
    const bool is_image = l->group->role != HWNAS_CUDNN_BY_MATMUL;
    const int channel = is_image ? 1 : result->rank - 1;
    if (t->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(t) == 1) {
        *port = hwnas_cudnn_add_scalar(l->o, l->rank, hwnas_lower_number(t));
        return true;
    }
    if (t->kind == HWNAS_TENSOR_WEIGHT && is_vector_on(t, result, channel)) {
        *port = lower_vector(l, tensor, l->type, l->channel, result->dims[channel]);
        return true;
    }
    if (!hwnas_same_shape(t, result))
        return false;
    const int source = hwnas_lower_source(l, tensor);
    const int wanted = hwnas_cudnn_want(l->cut, source, source == tensor ? l->type : l->factor,
                                        is_image ? HWNAS_CUDNN_PACKED : HWNAS_CUDNN_PLAIN);
    const hwnas_cudnn_tensor *seen = &l->cut->net->tensors[wanted];
    if (is_image)
        *port = hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, seen->dims, seen->strides);
    else if (!add_seen(l, port, wanted, l->rank, l->dims))
        return false;
    if (source != tensor)
        *port = add_scaling(l, *port, scale_of(l, tensor));
    return true;
}

/* The nodes from number `from` on; the result of those before is `l->result`. */
static bool add_rest(lowering *l, int from)
{
    hwnas_lower_made m = {
        .n = 1, .tensors = {hwnas_lower_node(l, from - 1)->output}, .ports = {l->result}};
    for (int i = from; i < l->group->chain.n_nodes; i++) {
        const hwnas_node *node = hwnas_lower_node(l, i);
        int inputs[2];
        if (hwnas_cudnn_makes_int8(l->cut->graph, node)) { /* the last; its zero is 0 */
            const float scale = hwnas_lower_number(hwnas_lower_tensor(l, node->inputs[1]));
            l->result = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_MUL, l->result,
                                                  hwnas_cudnn_add_scalar(l->o, l->rank, 1 / scale));
            break;
        }
        for (int k = 0; k < node->n_inputs; k++) {
            inputs[k] = hwnas_lower_find(&m, node->inputs[k]);
            if (inputs[k] < 0 && !add_operand(l, &inputs[k], node->inputs[k],
                                              hwnas_node_output(l->cut->graph, node)))
                return false;
        }
        l->result = hwnas_cudnn_lower_pointwise(l->o, l->cut->graph, node, inputs);
        m.tensors[m.n] = node->output;
        m.ports[m.n++] = l->result;
    }
    return true;
}

/* The other operand of a sum right behind the first node, if it has the same shape: cuDNN's ready
 * engines want it before the bias, which is the same sum. */
static int residual_of(const lowering *l)
{
    if (l->group->chain.n_nodes < 2 || hwnas_lower_node(l, 1)->op->id != HWNAS_OP_ADD)
        return -1;
    const hwnas_node *sum = hwnas_lower_node(l, 1);
    const int other = sum->inputs[sum->inputs[0] == hwnas_lower_node(l, 0)->output];
    const bool is_other =
        other != hwnas_lower_node(l, 0)->output &&
        hwnas_same_shape(hwnas_lower_tensor(l, other), hwnas_node_output(l->cut->graph, sum)) &&
        hwnas_lower_tensor(l, other)->kind != HWNAS_TENSOR_WEIGHT;
    return is_other ? other : -1;
}

/* Bias and all that follows. */
bool hwnas_lower_rest(lowering *l, int bias)
{
    const int residual = bias >= 0 ? residual_of(l) : -1;
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, hwnas_lower_node(l, 0));
    if (residual >= 0) {
        int port;
        if (!add_operand(l, &port, residual, result))
            return false;
        l->result = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_ADD, l->result, port);
    }
    if (bias >= 0) {
        const hwnas_cudnn_type type = l->factor == HWNAS_CUDNN_S8 ? HWNAS_CUDNN_F32 : l->type;
        const int port = lower_vector(l, bias, type, l->channel, l->dims[l->channel]);
        l->result = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_ADD, l->result, port);
    }
    return add_rest(l, residual >= 0 ? 2 : 1);
}

/* The last result goes to memory. */
bool hwnas_lower_end(lowering *l)
{
    const int tensor = l->group->chain.output;
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[tensor];
    hwnas_cudnn_port *port = &l->o->ports[l->result];
    int64_t strides[HWNAS_MAX_RANK];
    if (l->rank == 4 && t->rank == 4 && !memcmp(l->dims, t->dims, 4 * sizeof *l->dims))
        memcpy(strides, t->strides, sizeof strides);
    else if (!hwnas_cudnn_reshape(strides, t, l->rank, l->dims))
        return false;
    if (port->kind != HWNAS_CUDNN_PORT_VIRTUAL)
        return false;
    port->kind = HWNAS_CUDNN_PORT_MEMORY;
    port->type = t->type;
    port->tensor = tensor;
    port->alignment = hwnas_cudnn_alignment(t);
    memcpy(port->strides, strides, (size_t)l->rank * sizeof *strides);
    return true;
}

/* ---- Convolutions ---- */

static void set_window(hwnas_cudnn_op *op, const hwnas_node *node, const int64_t *window)
{
    memcpy(op->window, window, sizeof op->window);
    memcpy(op->stride, hwnas_node_attr(node, "stride")->ints, sizeof op->stride);
    memcpy(op->pad, hwnas_node_attr(node, "pad")->ints, sizeof op->pad);
}

/* Output channels, then rows and columns, input channels last. */
static int add_kernel(lowering *l, int tensor)
{
    const int64_t *d = hwnas_lower_tensor(l, tensor)->dims;
    const int64_t strides[] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    const int source = hwnas_lower_source(l, tensor);
    const int weight = hwnas_lower_tensor(l, source)->kind == HWNAS_TENSOR_WEIGHT
                           ? hwnas_cudnn_weight(l->cut->net, source, l->factor, strides)
                           : hwnas_cudnn_want(l->cut, source, l->factor, HWNAS_CUDNN_PACKED);
    return hwnas_cudnn_add_memory(l->o, l->cut->net, weight, 4, d, strides);
}

/* A virtual port of the result's shape, where the first operator's result goes. */
int hwnas_lower_result(lowering *l, const int64_t *strides)
{
    hwnas_cudnn_operation *o = l->o;
    if (o->n_ports == HWNAS_CUDNN_MAX_PORTS)
        return 0;
    hwnas_cudnn_port *port = &o->ports[o->n_ports];
    *port = (hwnas_cudnn_port){
        .kind = HWNAS_CUDNN_PORT_VIRTUAL, .type = HWNAS_CUDNN_F32, .rank = l->rank, .tensor = -1};
    memcpy(port->dims, l->dims, (size_t)l->rank * sizeof *l->dims);
    memcpy(port->strides, strides, (size_t)l->rank * sizeof *strides);
    return o->n_ports++;
}

static bool lower_conv(lowering *l, hwnas_cudnn_op_kind kind)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    const int64_t *out = hwnas_node_output(l->cut->graph, node)->dims;
    const int64_t *kernel = hwnas_lower_tensor(l, node->inputs[1])->dims;
    l->rank = 4;
    l->channel = 1;
    memcpy(l->dims, out, 4 * sizeof *out);
    const int64_t packed[] = {out[1] * out[2] * out[3], 1, out[1] * out[3], out[1]};
    const int image = add_image(l, node->inputs[0], HWNAS_CUDNN_SLICED);
    const int weights = add_kernel(l, node->inputs[1]);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, kind);
    set_window(op, node, kernel + 2);
    memcpy(op->dilation, hwnas_node_attr(node, "dilation")->ints, sizeof op->dilation);
    op->n_inputs = 2;
    op->inputs[0] = image;
    op->inputs[1] = weights;
    l->result = op->output = hwnas_lower_result(l, packed);
    hwnas_lower_scales(l);
    return hwnas_lower_rest(l, node->n_inputs > 2 ? node->inputs[2] : -1) && hwnas_lower_end(l);
}

/* ---- Pools and norms ---- */

static bool lower_pool(lowering *l)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const int image = add_image(l, node->inputs[0], HWNAS_CUDNN_PACKED);
    const int64_t *in = l->o->ports[image].dims;
    const bool is_global = node->op->id != HWNAS_OP_MAX_POOL && node->op->id != HWNAS_OP_AVG_POOL;
    const int64_t n = in[0], c = in[1];
    int64_t dims[] = {n, c, 1, 1};
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_POOL);
    op->mode = node->op->id == HWNAS_OP_MAX_POOL ? CUDNN_RESAMPLE_MAXPOOL
                                                 : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    if (is_global) {
        memcpy(op->window, in + 2, sizeof op->window);
    } else {
        set_window(op, node, hwnas_node_attr(node, "kernel")->ints);
        memcpy(dims + 2, result->dims + 2, 2 * sizeof *dims);
        if (node->op->id == HWNAS_OP_AVG_POOL && hwnas_node_attr(node, "count_pad")->ints[0])
            op->mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    }
    const int64_t strides[] = {c * dims[2] * dims[3], 1, c * dims[3], c};
    op->n_inputs = 1;
    op->inputs[0] = image;
    op->output = hwnas_cudnn_add_memory(l->o, l->cut->net, node->output, 4, dims, strides);
    return result->rank != 4 ||
           hwnas_cudnn_has_form(&l->cut->net->tensors[node->output], HWNAS_CUDNN_PACKED);
}

static bool lower_norm(lowering *l)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    const int in = hwnas_cudnn_want(l->cut, node->inputs[0], l->type, HWNAS_CUDNN_PLAIN);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[in];
    const int64_t c = t->dims[t->rank - 1], rows = hwnas_cudnn_count(t) / c;
    const int64_t dims[] = {rows, c, 1, 1}, strides[] = {c, 1, 1, 1};
    l->rank = 4;
    const int x = hwnas_cudnn_add_memory(l->o, l->cut->net, in, 4, dims, strides);
    const int scale = lower_vector(l, node->inputs[1], HWNAS_CUDNN_F32, 1, c);
    const int shift = lower_vector(l, node->inputs[2], HWNAS_CUDNN_F32, 1, c);
    const int epsilon =
        hwnas_cudnn_add_scalar(l->o, 4, (float)hwnas_node_attr(node, "epsilon")->number);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_NORM);
    const int inputs[] = {x, scale, shift, epsilon};
    op->n_inputs = 4;
    memcpy(op->inputs, inputs, sizeof inputs);
    op->output = hwnas_cudnn_add_memory(l->o, l->cut->net, node->output, 4, dims, strides);
    return hwnas_cudnn_is_plain(&l->cut->net->tensors[node->output]);
}

static bool lower_as_conv(lowering *l)
{
    return lower_conv(l, HWNAS_CUDNN_CONV);
}

static bool lower_as_conv_back(lowering *l)
{
    return lower_conv(l, HWNAS_CUDNN_CONV_BACK);
}

/* What rounds factors where tensor cores are used. Engines for elements say as well that they use
 * them, though nothing is multiplied there. */
static bool multiplies(hwnas_cudnn_role role)
{
    return role == HWNAS_CUDNN_BY_CONV || role == HWNAS_CUDNN_BY_CONV_BACK ||
           role == HWNAS_CUDNN_BY_MATMUL || role == HWNAS_CUDNN_BY_ATTENTION;
}

bool hwnas_cudnn_lower(hwnas_cudnn_operation *out, hwnas_cudnn_cut *cut,
                       const hwnas_cudnn_group *group)
{
    static bool (*const lowerings[HWNAS_CUDNN_N_ROLES])(lowering *) = {
        [HWNAS_CUDNN_BY_CONV] = lower_as_conv,
        [HWNAS_CUDNN_BY_CONV_BACK] = lower_as_conv_back,
        [HWNAS_CUDNN_BY_MATMUL] = hwnas_lower_matmul,
        [HWNAS_CUDNN_BY_POINTWISE] = hwnas_lower_elements,
        [HWNAS_CUDNN_BY_POOL] = lower_pool,
        [HWNAS_CUDNN_BY_REDUCE] = hwnas_lower_reduce,
        [HWNAS_CUDNN_BY_NORM] = lower_norm,
        [HWNAS_CUDNN_BY_ATTENTION] = hwnas_lower_attention,
    };
    lowering l = {
        .o = out, .cut = cut, .group = group, .type = hwnas_cudnn_io_type(cut->net->precision)};
    l.factor = group->n_dequantizes ? HWNAS_CUDNN_S8 : l.type;
    *out = (hwnas_cudnn_operation){.is_exact =
                                       cut->net->precision == HWNAS_F32 && multiplies(group->role)};
    return lowerings[group->role](&l) && !out->is_full;
}
