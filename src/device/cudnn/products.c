/* products.c: products of matrices, and attention, which is two of them with a softmax between. */
#include "device/cudnn/cudnn_lower.h"

#include <cudnn.h>

typedef hwnas_cudnn_lowering lowering;

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

/* Whether the matrices of a batch lie in equal steps, rows or columns close. */
static bool has_even_matrices(const hwnas_cudnn_tensor *t, int64_t *stride, int64_t *batch)
{
    const bool is_even = merge_leading(stride, batch, t, 2);
    return is_even && (t->strides[t->rank - 1] == 1 || t->strides[t->rank - 2] == 1);
}

/* A matrix or a batch of them, all of the batch as one dimension: cuDNN takes no more of them. */
static int add_matrices(lowering *l, int64_t *batch, int tensor)
{
    int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_AS_IS);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    int64_t stride;
    if (!has_even_matrices(t, &stride, batch)) {
        wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
        t = &l->cut->net->tensors[wanted];
        merge_leading(&stride, batch, t, 2);
    }
    const int64_t *d = t->dims + t->rank - 2, *s = t->strides + t->rank - 2;
    const int64_t dims[] = {*batch, d[0], d[1]};
    const int64_t strides[] = {*batch > 1 ? stride : d[0] * d[1], s[0], s[1]};
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 3, dims, strides);
}

/* All rows of all matrices as those of one. */
static int add_rows(lowering *l, int tensor, int64_t *rows)
{
    const int source = hwnas_lower_source(l, tensor);
    int wanted = hwnas_cudnn_want(l->cut, source, l->factor, HWNAS_CUDNN_AS_IS);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    int64_t stride;
    if (!merge_leading(&stride, rows, t, 1) || t->strides[t->rank - 1] != 1) {
        wanted = hwnas_cudnn_want(l->cut, source, l->factor, HWNAS_CUDNN_PLAIN);
        t = &l->cut->net->tensors[wanted];
        merge_leading(&stride, rows, t, 1);
    }
    const int64_t k = t->dims[t->rank - 1], step = *rows > 1 ? stride : k;
    const int64_t dims[] = {1, *rows, k}, strides[] = {*rows * step, step, 1};
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 3, dims, strides);
}

/* Weights of outputs x inputs (linear) or inputs x outputs, as (1, k, n); in memory outputs x
 * inputs. */
static int add_weights(lowering *l, int tensor, bool is_linear)
{
    const hwnas_tensor *t = hwnas_lower_tensor(l, tensor);
    const int64_t n = t->dims[t->rank - (is_linear ? 2 : 1)];
    const int64_t k = t->dims[t->rank - (is_linear ? 1 : 2)];
    int64_t strides[HWNAS_MAX_RANK];
    hwnas_cudnn_plain_strides(strides, t->rank, t->dims);
    if (!is_linear) {
        strides[t->rank - 1] = k;
        strides[t->rank - 2] = 1;
    }
    const int weight =
        hwnas_cudnn_weight(l->cut->net, hwnas_lower_source(l, tensor), l->factor, strides);
    const int64_t seen[] = {1, k, n}, steps[] = {n * k, 1, k};
    return hwnas_cudnn_add_memory(l->o, l->cut->net, weight, 3, seen, steps);
}

static bool is_one_matrix(const hwnas_tensor *t)
{
    for (int i = 0; i < t->rank - 2; i++)
        if (t->dims[i] != 1)
            return false;
    return t->kind == HWNAS_TENSOR_WEIGHT;
}

/* Rows times weights. */
static bool lower_rows(lowering *l, const hwnas_node *node, bool is_linear)
{
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const int64_t n = result->dims[result->rank - 1];
    int64_t rows;
    l->rank = 3;
    l->channel = 2;
    const int a = add_rows(l, node->inputs[0], &rows);
    const int b = add_weights(l, node->inputs[1], is_linear);
    const int64_t dims[] = {1, rows, n}, strides[] = {rows * n, n, 1};
    memcpy(l->dims, dims, sizeof dims);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_MATMUL);
    op->n_inputs = 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    l->result = op->output = hwnas_lower_result(l, strides);
    hwnas_lower_scales(l);
    return hwnas_lower_rest(l, is_linear && node->n_inputs > 2 ? node->inputs[2] : -1) && hwnas_lower_end(l);
}

static bool lower_batch(lowering *l, const hwnas_node *node)
{
    const hwnas_tensor *result = hwnas_node_output(l->cut->graph, node);
    const int64_t m = result->dims[result->rank - 2], n = result->dims[result->rank - 1];
    int64_t batch_a, batch_b, batch = 1;
    for (int i = 0; i < result->rank - 2; i++)
        batch *= result->dims[i];
    l->rank = 3;
    l->channel = 2;
    const int a = add_matrices(l, &batch_a, node->inputs[0]);
    const int b = add_matrices(l, &batch_b, node->inputs[1]);
    if ((batch_a != batch && batch_a != 1) || (batch_b != batch && batch_b != 1))
        return false;
    const int64_t dims[] = {batch, m, n}, strides[] = {m * n, n, 1};
    memcpy(l->dims, dims, sizeof dims);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_MATMUL);
    op->n_inputs = 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    l->result = op->output = hwnas_lower_result(l, strides);
    return hwnas_lower_rest(l, -1) && hwnas_lower_end(l);
}

bool hwnas_lower_matmul(lowering *l)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    const bool is_linear = node->op->id == HWNAS_OP_LINEAR;
    return is_linear || is_one_matrix(hwnas_lower_tensor(l, hwnas_lower_source(l, node->inputs[1])))
               ? lower_rows(l, node, is_linear)
               : lower_batch(l, node);
}

/* ---- Attention ---- */

static int add_as_it_is(lowering *l, int tensor)
{
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[tensor];
    return hwnas_cudnn_add_memory(l->o, l->cut->net, tensor, 4, t->dims, t->strides);
}

/* Queries or values as batch, heads, length, size, in any order in memory whose last lies close. */
static int add_heads(lowering *l, int tensor)
{
    int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_AS_IS);
    if (l->cut->net->tensors[wanted].strides[3] != 1)
        wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
    return add_as_it_is(l, wanted);
}

/* Keys as the first product has them, size before length, but lying as the others; `is_turned`:
 * seen as the others too. */
static int add_keys(lowering *l, int tensor, bool is_turned)
{
    const int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_TURNED);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    const int64_t dims[] = {t->dims[0], t->dims[1], t->dims[3], t->dims[2]};
    const int64_t strides[] = {t->strides[0], t->strides[1], t->strides[3], t->strides[2]};
    return is_turned ? hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, dims, strides)
                     : add_as_it_is(l, wanted);
}

/* What scores are multiplied by: of the nodes between the products. */
static float scale_between(const lowering *l)
{
    const hwnas_node *by = hwnas_lower_node(l, 1);
    if (by->op->id != HWNAS_OP_MUL && by->op->id != HWNAS_OP_DIV)
        return 1;
    const float scale = hwnas_lower_number(hwnas_lower_tensor(l, by->inputs[1]));
    return by->op->id == HWNAS_OP_DIV ? 1 / scale : scale;
}

/* What is added to the scores; -1: nothing. */
static int mask_between(const lowering *l)
{
    for (int i = 1; i < l->group->chain.n_nodes - 2; i++)
        if (hwnas_lower_node(l, i)->op->id == HWNAS_OP_ADD)
            return hwnas_lower_node(l, i)->inputs[1];
    return -1;
}

/* Of at most four dimensions; those in front that it lacks are 1. */
static int add_mask(lowering *l, int tensor)
{
    const int wanted = hwnas_cudnn_want(l->cut, tensor, l->type, HWNAS_CUDNN_PLAIN);
    const hwnas_cudnn_tensor *t = &l->cut->net->tensors[wanted];
    const int64_t n = hwnas_cudnn_count(t);
    int64_t dims[] = {1, 1, 1, 1}, strides[] = {n, n, n, n};
    for (int i = 0; i < t->rank; i++) {
        dims[4 - t->rank + i] = t->dims[i];
        strides[4 - t->rank + i] = t->strides[i];
    }
    return hwnas_cudnn_add_memory(l->o, l->cut->net, wanted, 4, dims, strides);
}

static int add_product(lowering *l, int a, int b, int output)
{
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_MATMUL);
    op->n_inputs = 2;
    op->inputs[0] = a;
    op->inputs[1] = b;
    return op->output = output;
}

/* One value of each row, repeated for the next operator. */
static int add_reduction(lowering *l, cudnnReduceTensorOp_t mode, int x)
{
    const int64_t *d = l->dims, strides[] = {d[1] * d[2], d[2], 1, 1};
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_REDUCE);
    op->mode = mode;
    op->n_inputs = 1;
    op->inputs[0] = x;
    op->output = hwnas_lower_result(l, strides);
    l->o->ports[op->output].dims[3] = 1;
    return op->output;
}

/* With a mask the operators one by one: cuDNN's own operator has no place for one. It knows them by
 * their order (9.19), takes a product with a number given by value for a part of dropout, but no
 * quotient, and wants the second product to read what it multiplies. */
static void add_masked(lowering *l, int q, int k, int v, int mask, float scale, int output)
{
    const int64_t *d = l->dims, strides[] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    hwnas_cudnn_operation *o = l->o;
    int x = add_product(l, q, k, hwnas_lower_result(l, strides));
    if (scale != 1)
        x = hwnas_cudnn_add_pointwise(o, CUDNN_POINTWISE_DIV, x,
                                      hwnas_cudnn_add_scalar(o, 4, 1 / scale));
    x = hwnas_cudnn_add_pointwise(o, CUDNN_POINTWISE_ADD, x, mask);
    const int greatest = add_reduction(l, CUDNN_REDUCE_TENSOR_MAX, x);
    x = hwnas_cudnn_add_pointwise(o, CUDNN_POINTWISE_SUB, x, greatest);
    x = hwnas_cudnn_add_pointwise(o, CUDNN_POINTWISE_EXP, x, -1);
    const int sum = add_reduction(l, CUDNN_REDUCE_TENSOR_ADD, x);
    x = hwnas_cudnn_add_pointwise(o, CUDNN_POINTWISE_DIV, x, sum);
    o->ports[x].type = l->type;
    add_product(l, x, v, output);
}

bool hwnas_lower_attention(lowering *l)
{
    const hwnas_node *first = hwnas_lower_node(l, 0);
    const hwnas_node *second = hwnas_lower_node(l, l->group->chain.n_nodes - 1);
    const float scale = scale_between(l);
    const int mask = mask_between(l);
    const int q = add_heads(l, first->inputs[0]), k = add_keys(l, first->inputs[1], mask < 0);
    const int v = add_heads(l, second->inputs[1]);
    if (mask >= 0) {
        const int added = add_mask(l, mask);
        l->rank = 4;
        memcpy(l->dims, hwnas_lower_tensor(l, first->output)->dims, sizeof l->dims);
        add_masked(l, q, k, v, added, scale, add_as_it_is(l, second->output));
        return true;
    }
    const int by = hwnas_cudnn_add_scalar(l->o, 4, scale);
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_ATTENTION);
    const int inputs[] = {q, k, v, by};
    op->n_inputs = 4;
    memcpy(op->inputs, inputs, sizeof inputs);
    op->output = add_as_it_is(l, second->output);
    return true;
}
