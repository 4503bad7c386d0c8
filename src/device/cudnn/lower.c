/* lower.c: groups as operations of cuDNN's: which tensors they read, seen with which rank, and what
 * follows what. docs/gpu.md has the rules with their reasons. */
#include <cudnn.h>
#include <string.h>

#include "device/cudnn/cut.h"

enum { MAX_PORT_RANK = HWNAS_CUDNN_PORT_RANK };

/* An operation being made. */
typedef struct lowering {
    hwnas_cudnn_operation *o;
    hwnas_cudnn_cut *cut;
    const hwnas_cudnn_group *group;
    hwnas_cudnn_type type; /* of values in memory */
    int result;            /* port of what was made so far, virtual */
    /* How the group's result is seen: dimension i of the port is made of these of the tensor's. */
    int rank;
    int64_t dims[MAX_PORT_RANK];
} lowering;

static const hwnas_node *node_of(const lowering *l, int i)
{
    return &l->cut->graph->nodes[l->group->nodes[i]];
}

static const hwnas_tensor *tensor_of(const lowering *l, int tensor)
{
    return &l->cut->graph->tensors[tensor];
}

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
    const int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, form);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, t->dims, t->strides);
}

/* A vector along one dimension of the port's rank. */
static int add_vector(lowering *l, int tensor, hwnas_cudnn_type type, int along, int64_t n)
{
    int64_t plain[HWNAS_MAX_RANK], dims[MAX_PORT_RANK], strides[MAX_PORT_RANK];
    const hwnas_tensor *t = tensor_of(l, tensor);
    hwnas_cudnn_plain_strides(plain, t->rank, t->dims);
    const int weight = hwnas_cudnn_weight(l->cut->net, tensor, type, plain);
    for (int i = 0; i < l->rank; i++) {
        dims[i] = i == along ? n : 1;
        strides[i] = i == along ? 1 : n;
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, weight, l->rank, dims, strides);
}

static float number_of(const hwnas_tensor *weight)
{
    float value;
    hwnas_tensor_fill(weight, &value);
    return value;
}

/* ---- What follows: operands of the nodes behind the first ---- */

/* Where the images' channels and the products' columns are. */
static int channel_of(const lowering *l)
{
    return l->rank == 4 ? 1 : 2;
}

/* Whether only the tensor's dimension that falls on the result's dimension `on` is more than 1. */
static bool is_vector_on(const hwnas_tensor *t, const hwnas_tensor *result, int on)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != 1 &&
            (result->rank - t->rank + i != on || t->dims[i] != result->dims[on]))
            return false;
    return true;
}

static bool same_dims(const hwnas_tensor *a, const hwnas_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* A number, a vector along the channels, or a tensor of the result's own shape. */
static bool add_operand(lowering *l, int *port, int tensor, const hwnas_tensor *result)
{
    const hwnas_tensor *t = tensor_of(l, tensor);
    const bool is_image = l->group->role != HWNAS_CUDNN_BY_MATMUL;
    const int channel = is_image ? 1 : result->rank - 1;
    if (t->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(t) == 1) {
        *port = hwnas_cudnn_add_scalar(l->o, l->rank, number_of(t));
        return true;
    }
    if (t->kind == HWNAS_TENSOR_WEIGHT && is_vector_on(t, result, channel)) {
        *port = add_vector(l, tensor, l->type, channel_of(l), result->dims[channel]);
        return true;
    }
    if (!same_dims(t, result))
        return false;
    const int wanted = hwnas_cudnn_want(l->cut, tensor, l->type,
                                        is_image ? HWNAS_CUDNN_PACKED : HWNAS_CUDNN_PLAIN);
    if (!is_image)
        return add_seen(l, port, wanted, l->rank, l->dims);
    const hwnas_cudnn_tensor *seen = &l->cut->net->tensors[wanted];
    *port = hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, seen->dims, seen->strides);
    return true;
}

/* Ports of what the group's nodes make. */
typedef struct made {
    int n, tensors[HWNAS_CUDNN_LONGEST_GROUP], ports[HWNAS_CUDNN_LONGEST_GROUP];
} made;

static int find_made(const made *m, int tensor)
{
    for (int i = 0; i < m->n; i++)
        if (m->tensors[i] == tensor)
            return m->ports[i];
    return -1;
}

/* The nodes from number `from` on; the result of those before is `l->result`. */
static bool add_rest(lowering *l, int from)
{
    made m = {.n = 1, .tensors = {node_of(l, from - 1)->output}, .ports = {l->result}};
    for (int i = from; i < l->group->n_nodes; i++) {
        const hwnas_node *node = node_of(l, i);
        int inputs[2];
        for (int k = 0; k < node->n_inputs; k++) {
            inputs[k] = find_made(&m, node->inputs[k]);
            if (inputs[k] < 0 &&
                !add_operand(l, &inputs[k], node->inputs[k], hwnas_node_output(l->cut->graph, node)))
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
    if (l->group->n_nodes < 2 || strcmp(node_of(l, 1)->op->name, "add"))
        return -1;
    const hwnas_node *sum = node_of(l, 1);
    const int other = sum->inputs[sum->inputs[0] == node_of(l, 0)->output];
    const bool is_other = other != node_of(l, 0)->output &&
                          same_dims(tensor_of(l, other), hwnas_node_output(l->cut->graph, sum)) &&
                          tensor_of(l, other)->kind != HWNAS_TENSOR_WEIGHT;
    return is_other ? other : -1;
}

/* Bias and all that follows. */
static bool add_epilogue(lowering *l, int bias)
{
    const int residual = bias >= 0 ? residual_of(l) : -1;
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node_of(l, 0));
    if (residual >= 0) {
        int port;
        if (!add_operand(l, &port, residual, result))
            return false;
        l->result = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_ADD, l->result, port);
    }
    if (bias >= 0) {
        const int port = add_vector(l, bias, l->type, channel_of(l), l->dims[channel_of(l)]);
        l->result = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_ADD, l->result, port);
    }
    return add_rest(l, residual >= 0 ? 2 : 1);
}

/* The last result goes to memory. */
static bool end(lowering *l)
{
    const int tensor = node_of(l, l->group->n_nodes - 1)->output;
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[tensor];
    hwnas_cudnn_port *port = &l->o->ports[l->result];
    int64_t strides[HWNAS_MAX_RANK];
    if (l->rank == 4 && t->rank == 4)
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
    const int64_t *d = tensor_of(l, tensor)->dims;
    const int64_t strides[] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    const int weight = hwnas_cudnn_weight(l->cut->net, tensor, l->type, strides);
    return hwnas_cudnn_add_memory(l->o, l->cut->net, weight, 4, d, strides);
}

/* A virtual port of the result's shape, where the first operator's result goes. */
static int add_result(lowering *l, const int64_t *strides)
{
    hwnas_cudnn_operation *o = l->o;
    if (o->n_ports == HWNAS_CUDNN_MAX_PORTS)
        return 0;
    hwnas_cudnn_port *port = &o->ports[o->n_ports];
    *port = (hwnas_cudnn_port){.kind = HWNAS_CUDNN_PORT_VIRTUAL, .type = HWNAS_CUDNN_F32,
                               .rank = l->rank, .tensor = -1};
    memcpy(port->dims, l->dims, (size_t)l->rank * sizeof *l->dims);
    memcpy(port->strides, strides, (size_t)l->rank * sizeof *strides);
    return o->n_ports++;
}

static bool lower_conv(lowering *l, hwnas_cudnn_op_kind kind)
{
    const hwnas_node *node = node_of(l, 0);
    const int64_t *out = hwnas_node_output(l->cut->graph, node)->dims;
    const int64_t *kernel = tensor_of(l, node->inputs[1])->dims;
    l->rank = 4;
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
    l->result = op->output = add_result(l, packed);
    return add_epilogue(l, node->n_inputs > 2 ? node->inputs[2] : -1) && end(l);
}

/* ---- Matrix products ---- */

/* Strides of one dimension for all but the last `keep`; false where they do not lie in equal steps. */
static bool merge_leading(int64_t *stride, int64_t *count, const hwnas_cudnn_tensor *t, int keep)
{
    *count = 1;
    *stride = 0;
    for (int i = t->rank - 1 - keep; i >= 0; i--) {
        if (t->dims[i] == 1)
            continue;
        if (*count == 1)
            *stride = t->strides[i];
        else if (t->strides[i] != *stride * *count)
            return false;
        *count *= t->dims[i];
    }
    return true;
}

/* A matrix or a batch of them as a port of rank 3. */
static bool add_matrices(lowering *l, int *port, int64_t *batch, int tensor)
{
    int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_AS_IS);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    int64_t stride;
    bool fits = merge_leading(&stride, batch, t, 2);
    fits &= t->strides[t->rank - 1] == 1 || t->strides[t->rank - 2] == 1;
    if (!fits) {
        wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
        t = &l->cut->net->tensors[wanted];
        merge_leading(&stride, batch, t, 2);
    }
    const int64_t *d = t->dims + t->rank - 2, *s = t->strides + t->rank - 2;
    const int64_t dims[] = {*batch, d[0], d[1]};
    const int64_t strides[] = {*batch > 1 ? stride : d[0] * d[1], s[0], s[1]};
    *port = hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 3, dims, strides);
    return true;
}

/* All rows of all matrices as those of one. */
static int add_rows(lowering *l, int tensor, int64_t *rows)
{
    int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_AS_IS);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    int64_t stride;
    if (!merge_leading(&stride, rows, t, 1) || t->strides[t->rank - 1] != 1) {
        wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
        t = &l->cut->net->tensors[wanted];
        merge_leading(&stride, rows, t, 1);
    }
    const int64_t k = t->dims[t->rank - 1], step = *rows > 1 ? stride : k;
    const int64_t dims3[] = {1, *rows, k}, strides3[] = {*rows * step, step, 1};
    const int64_t dims4[] = {*rows, k, 1, 1}, strides4[] = {step, 1, step, step};
    return l->rank == 3
               ? hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 3, dims3, strides3)
               : hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, dims4, strides4);
}

/* Weights of outputs x inputs (linear) or inputs x outputs, as (1, k, n), or as the kernel of a
 * 1x1 convolution; in memory outputs x inputs. */
static int add_weights(lowering *l, int tensor, bool is_linear)
{
    const hwnas_tensor *t = tensor_of(l, tensor);
    const int64_t n = t->dims[t->rank - (is_linear ? 2 : 1)];
    const int64_t k = t->dims[t->rank - (is_linear ? 1 : 2)];
    int64_t strides[HWNAS_MAX_RANK];
    hwnas_cudnn_plain_strides(strides, t->rank, t->dims);
    if (!is_linear) {
        strides[t->rank - 1] = k;
        strides[t->rank - 2] = 1;
    }
    const int weight = hwnas_cudnn_weight(l->cut->net, tensor, l->type, strides);
    const int64_t dims3[] = {1, k, n}, strides3[] = {n * k, 1, k};
    const int64_t dims4[] = {n, k, 1, 1}, strides4[] = {k, 1, k, k};
    return l->rank == 3
               ? hwnas_cudnn_add_memory(l->o, l->cut->net, weight, 3, dims3, strides3)
               : hwnas_cudnn_add_memory(l->o, l->cut->net, weight, 4, dims4, strides4);
}

static bool is_one_matrix(const hwnas_tensor *t)
{
    for (int i = 0; i < t->rank - 2; i++)
        if (t->dims[i] != 1)
            return false;
    return t->kind == HWNAS_TENSOR_WEIGHT;
}

/* Rows times weights. cuDNN's products always round fp32 to tf32; as 1x1 convolutions they need not. */
static bool lower_rows(lowering *l, const hwnas_node *node, bool is_linear)
{
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const int64_t n = result->dims[result->rank - 1];
    int64_t rows;
    l->rank = l->o->is_exact ? 4 : 3;
    const int a = add_rows(l, node->inputs[0], &rows);
    const int b = add_weights(l, node->inputs[1], is_linear);
    const int64_t dims3[] = {1, rows, n}, strides3[] = {rows * n, n, 1};
    const int64_t dims4[] = {rows, n, 1, 1}, strides4[] = {n, 1, n, n};
    memcpy(l->dims, l->rank == 3 ? dims3 : dims4, (size_t)l->rank * sizeof *dims3);
    hwnas_cudnn_op *op =
        hwnas_cudnn_add_op(l->o, l->rank == 3 ? HWNAS_CUDNN_MATMUL : HWNAS_CUDNN_CONV);
    op->n_inputs = 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    l->result = op->output = add_result(l, l->rank == 3 ? strides3 : strides4);
    return add_epilogue(l, is_linear && node->n_inputs > 2 ? node->inputs[2] : -1) && end(l);
}

static bool lower_matmul(lowering *l)
{
    const hwnas_node *node = node_of(l, 0);
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const bool is_linear = !strcmp(node->op->name, "linear");
    int a, b;
    int64_t batch_a, batch_b, batch = 1;
    if (is_linear || is_one_matrix(tensor_of(l, node->inputs[1])))
        return lower_rows(l, node, is_linear);
    for (int i = 0; i < result->rank - 2; i++)
        batch *= result->dims[i];
    l->rank = 3;
    if (!add_matrices(l, &a, &batch_a, node->inputs[0]) ||
        !add_matrices(l, &b, &batch_b, node->inputs[1]) || (batch_a != batch && batch_a != 1) ||
        (batch_b != batch && batch_b != 1))
        return false;
    const int64_t m = result->dims[result->rank - 2], n = result->dims[result->rank - 1];
    const int64_t dims[] = {batch, m, n}, strides[] = {m * n, n, 1};
    memcpy(l->dims, dims, sizeof dims);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_MATMUL);
    op->n_inputs = 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    l->result = op->output = add_result(l, strides);
    return add_epilogue(l, -1) && end(l);
}

/* ---- Attention ---- */

/* Queries, keys and values as batch, heads, length, size, in any order in memory whose last lies
 * close. `is_turned`: as the first product has the keys, size before length. */
static int add_heads(lowering *l, int tensor, bool is_turned)
{
    const int last = is_turned ? 2 : 3;
    int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_AS_IS);
    if (l->cut->net->tensors[wanted].strides[last] != 1)
        wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    int64_t dims[4], strides[4];
    memcpy(dims, t->dims, sizeof dims);
    memcpy(strides, t->strides, sizeof strides);
    if (is_turned) {
        dims[2] = t->dims[3], dims[3] = t->dims[2];
        strides[2] = t->strides[3], strides[3] = t->strides[2];
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, dims, strides);
}

static bool lower_attention(lowering *l)
{
    const hwnas_node *first = node_of(l, 0), *second = node_of(l, l->group->n_nodes - 1);
    const hwnas_cudnn_tensor *out = &l->cut->net->tensors[second->output];
    float scale = 1;
    if (l->group->n_nodes > 3) {
        const hwnas_node *by = node_of(l, 1);
        scale = number_of(tensor_of(l, by->inputs[1]));
        scale = strcmp(by->op->name, "div") ? scale : 1 / scale;
    }
    const int q = add_heads(l, first->inputs[0], false), k = add_heads(l, first->inputs[1], true);
    const int v = add_heads(l, second->inputs[1], false);
    if (l->o->ports[k].strides[3] != 1)
        return false;
    const int by = hwnas_cudnn_add_scalar(l->o, 4, scale);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_ATTENTION);
    const int inputs[] = {q, k, v, by};
    op->n_inputs = 4;
    memcpy(op->inputs, inputs, sizeof inputs);
    op->output =
        hwnas_cudnn_add_memory(l->o, l->cut->net, second->output, 4, out->dims, out->strides);
    return true;
}

/* ---- Pools, norms, elements ---- */

static bool lower_pool(lowering *l)
{
    const hwnas_node *node = node_of(l, 0);
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const int image = add_image(l, node->inputs[0], HWNAS_CUDNN_PACKED);
    const int64_t *in = l->o->ports[image].dims;
    const bool is_global = strcmp(node->op->name, "max_pool") && strcmp(node->op->name, "avg_pool");
    const int64_t n = in[0], c = in[1];
    int64_t dims[] = {n, c, 1, 1};
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_POOL);
    op->mode = strcmp(node->op->name, "max_pool") ? CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING
                                                  : CUDNN_RESAMPLE_MAXPOOL;
    if (is_global) {
        memcpy(op->window, in + 2, sizeof op->window);
    } else {
        set_window(op, node, hwnas_node_attr(node, "kernel")->ints);
        memcpy(dims + 2, result->dims + 2, 2 * sizeof *dims);
        if (!strcmp(node->op->name, "avg_pool") && hwnas_node_attr(node, "count_pad")->ints[0])
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
    const hwnas_node *node = node_of(l, 0);
    const int in = hwnas_cudnn_want(l->cut, node->inputs[0], l->type, HWNAS_CUDNN_PLAIN);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[in];
    const int64_t c = t->dims[t->rank - 1], rows = hwnas_cudnn_count(t) / c;
    const int64_t dims[] = {rows, c, 1, 1}, strides[] = {c, 1, 1, 1};
    l->rank = 4;
    const int x = hwnas_cudnn_add_memory(l->o, l->cut->net, in, 4, dims, strides);
    const int scale = add_vector(l, node->inputs[1], HWNAS_CUDNN_F32, 1, c);
    const int shift = add_vector(l, node->inputs[2], HWNAS_CUDNN_F32, 1, c);
    const int epsilon = hwnas_cudnn_add_scalar(
        l->o, 4, (float)hwnas_node_attr(node, "epsilon")->number);
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

/* ---- Elements: as few dimensions as all operands together allow ---- */

typedef struct elements {
    int n, tensors[2 * HWNAS_CUDNN_LONGEST_GROUP]; /* of the net; the result is the first */
    int64_t dims[2 * HWNAS_CUDNN_LONGEST_GROUP][HWNAS_MAX_RANK];
    int64_t strides[2 * HWNAS_CUDNN_LONGEST_GROUP][HWNAS_MAX_RANK];
    int rank;
    int64_t whole[HWNAS_MAX_RANK]; /* the result's dimensions */
} elements;

static int find_element(const elements *e, int tensor)
{
    for (int i = 0; i < e->n; i++)
        if (e->tensors[i] == tensor)
            return i;
    return -1;
}

/* A tensor with the result's rank, dimensions in the result's order in memory. */
static void add_element(elements *e, const hwnas_cudnn_net *net, int tensor, const int *order)
{
    const hwnas_cudnn_tensor *t = &net->tensors[tensor];
    e->tensors[e->n] = tensor;
    for (int i = 0; i < e->rank; i++) {
        const int at = order[i] - (e->rank - t->rank);
        e->dims[e->n][i] = at < 0 ? 1 : t->dims[at];
        e->strides[e->n][i] = at < 0 || t->dims[at] == 1 ? 0 : t->strides[at];
    }
    e->n++;
}

/* The result's dimensions from the one that lies widest to the closest. */
static void order_of(int *order, const hwnas_cudnn_tensor *t)
{
    for (int i = 0; i < t->rank; i++) {
        int at = i;
        for (; at > 0 && t->strides[order[at - 1]] < t->strides[i] && t->dims[i] > 1; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Whether dimensions i and i + 1 are one in every tensor. */
static bool can_merge(const elements *e, int i)
{
    for (int k = 0; k < e->n; k++) {
        const int64_t *d = e->dims[k], *s = e->strides[k];
        const bool a = d[i] == e->dims[0][i], b = d[i + 1] == e->dims[0][i + 1];
        const bool is_full = a && b && (s[i] == s[i + 1] * d[i + 1] || d[i] == 1 || d[i + 1] == 1);
        const bool is_one = d[i] == 1 && d[i + 1] == 1;
        if (!is_full && !is_one)
            return false;
    }
    return true;
}

static void merge(elements *e, int i)
{
    for (int k = 0; k < e->n; k++) {
        int64_t *d = e->dims[k], *s = e->strides[k];
        s[i] = d[i + 1] > 1 ? s[i + 1] : s[i];
        d[i] *= d[i + 1];
        memmove(d + i + 1, d + i + 2, (size_t)(e->rank - i - 2) * sizeof *d);
        memmove(s + i + 1, s + i + 2, (size_t)(e->rank - i - 2) * sizeof *s);
    }
    e->rank--;
}

/* Merges what can be; the last dimension, the channels, stays by itself where three will do. */
static bool simplify(elements *e)
{
    for (int keep = 1; keep >= 0; keep--)
        for (int i = 0; i + 1 + keep < e->rank && (keep || e->rank > 3);)
            if (can_merge(e, i))
                merge(e, i);
            else
                i++;
    return e->rank <= 3;
}

/* Rank 3, with strides as if nothing were repeated. */
static int add_element_port(lowering *l, const elements *e, int at)
{
    int64_t dims[3] = {1, 1, 1}, strides[3], step = 1;
    for (int i = 0; i < e->rank; i++)
        dims[3 - e->rank + i] = e->dims[at][i];
    for (int i = 2; i >= 0; step *= dims[i--]) {
        const int from = i - (3 - e->rank);
        strides[i] = from >= 0 && e->dims[at][from] > 1 ? e->strides[at][from] : step;
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, e->tensors[at], 3, dims, strides);
}

/* Collects the tensors of all nodes; numbers of one value are left out. */
static void collect(lowering *l, elements *e, int inputs[][2])
{
    hwnas_cudnn_cut *cut = l->cut;
    const int last = node_of(l, l->group->n_nodes - 1)->output;
    int order[HWNAS_MAX_RANK];
    order_of(order, &cut->net->tensors[last]);
    e->rank = cut->net->tensors[last].rank;
    add_element(e, cut->net, last, order);
    for (int i = 0; i < l->group->n_nodes; i++) {
        const hwnas_node *node = node_of(l, i);
        for (int k = 0; k < node->n_inputs; k++) {
            const hwnas_tensor *t = tensor_of(l, node->inputs[k]);
            bool is_inside = false;
            for (int j = 0; j < i; j++)
                is_inside |= node_of(l, j)->output == node->inputs[k];
            inputs[i][k] = -1;
            if (is_inside || (t->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(t) == 1))
                continue;
            const bool is_image = cut->is_image[last] && t->rank == 4;
            const int tensor = hwnas_cudnn_want(cut, node->inputs[k], l->type,
                                                is_image ? HWNAS_CUDNN_PACKED : HWNAS_CUDNN_PLAIN);
            if (find_element(e, tensor) < 0)
                add_element(e, cut->net, tensor, order);
            inputs[i][k] = tensor;
        }
    }
}

static bool lower_elements(lowering *l)
{
    elements e = {0};
    int wanted[HWNAS_CUDNN_LONGEST_GROUP][2], ports[2 * HWNAS_CUDNN_LONGEST_GROUP];
    const int result = node_of(l, l->group->n_nodes - 1)->output;
    made m = {0};
    collect(l, &e, wanted);
    if (l->cut->net->tensors[result].root != result || !simplify(&e))
        return false; /* what only goes through elements wants no gaps */
    l->rank = 3;
    for (int i = 1; i < e.n; i++)
        ports[i] = add_element_port(l, &e, i);
    for (int i = 0; i < l->group->n_nodes; i++) {
        const hwnas_node *node = node_of(l, i);
        int inputs[2];
        for (int k = 0; k < node->n_inputs; k++) {
            const int inside = find_made(&m, node->inputs[k]);
            if (wanted[i][k] >= 0)
                inputs[k] = ports[find_element(&e, wanted[i][k])];
            else if (inside >= 0)
                inputs[k] = inside;
            else
                inputs[k] = hwnas_cudnn_add_scalar(l->o, 3,
                                                   number_of(tensor_of(l, node->inputs[k])));
        }
        l->result = hwnas_cudnn_lower_pointwise(l->o, l->cut->graph, node, inputs);
        m.tensors[m.n] = node->output;
        m.ports[m.n++] = l->result;
    }
    hwnas_cudnn_port *port = &l->o->ports[l->result];
    const int made_port = add_element_port(l, &e, 0);
    *port = l->o->ports[made_port]; /* the last result is the tensor itself */
    l->o->n_ports = made_port;
    return true;
}

bool hwnas_cudnn_lower(hwnas_cudnn_operation *out, hwnas_cudnn_cut *cut,
                       const hwnas_cudnn_group *group)
{
    static bool (*const lowerings[HWNAS_CUDNN_N_ROLES])(lowering *) = {
        [HWNAS_CUDNN_BY_CONV] = lower_as_conv,
        [HWNAS_CUDNN_BY_CONV_BACK] = lower_as_conv_back,
        [HWNAS_CUDNN_BY_MATMUL] = lower_matmul,
        [HWNAS_CUDNN_BY_POINTWISE] = lower_elements,
        [HWNAS_CUDNN_BY_POOL] = lower_pool,
        [HWNAS_CUDNN_BY_NORM] = lower_norm,
        [HWNAS_CUDNN_BY_ATTENTION] = lower_attention,
    };
    lowering l = {.o = out, .cut = cut, .group = group,
                  .type = hwnas_cudnn_io_type(cut->net->precision)};
    *out = (hwnas_cudnn_operation){.is_exact = cut->net->precision == HWNAS_F32};
    return lowerings[group->role](&l) && !out->is_full;
}
