/* cudnn_reduce.c: one value of each row or of each column of a matrix. cuDNN reduces the channels of images or
 * all but them, so axes that lie together at the end or at the beginning are seen as one of these. It
 * writes fp32 alone, and nothing may follow in the same plan. */
#include <cudnn.h>

#include "device/cudnn/cudnn_lower.h"

static const struct rule {
    hwnas_op_id op;
    int mode; /* cudnnReduceTensorOp_t */
    bool is_mean; /* averages cuDNN does not take: each element is divided before */
} rules[] = {
    {HWNAS_OP_MEAN, CUDNN_REDUCE_TENSOR_ADD, true},
    {HWNAS_OP_REDUCE_MAX, CUDNN_REDUCE_TENSOR_MAX, false},
    {HWNAS_OP_REDUCE_MIN, CUDNN_REDUCE_TENSOR_MIN, false},
    {HWNAS_OP_REDUCE_SUM, CUDNN_REDUCE_TENSOR_ADD, false},
};

static const struct rule *rule_of(const hwnas_node *node)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op->id)
            return &rules[i];
    return NULL;
}

/* The input as rows x columns, and whether the columns are what is reduced; false where neither the
 * last dimensions are nor the first. */
static bool see_matrix(int64_t *rows, int64_t *columns, bool *along_rows, const hwnas_graph *graph,
                       const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const int n = axes->n;
    for (int i = 1; i < n; i++)
        if (axes->ints[i] != axes->ints[i - 1] + 1)
            return false;
    if (!n || (axes->ints[0] != 0 && axes->ints[n - 1] != in->rank - 1))
        return false;
    *along_rows = axes->ints[n - 1] == in->rank - 1;
    const int split = *along_rows ? (int)axes->ints[0] : n;
    *rows = *columns = 1;
    for (int i = 0; i < in->rank; i++)
        *(i < split ? rows : columns) *= in->dims[i];
    return true;
}

bool hwnas_cudnn_is_reduction(const hwnas_graph *graph, const hwnas_node *node)
{
    int64_t rows, columns;
    bool along_rows;
    return rule_of(node) && see_matrix(&rows, &columns, &along_rows, graph, node);
}

bool hwnas_lower_reduce(hwnas_cudnn_lowering *l)
{
    const hwnas_node *node = hwnas_lower_node(l, 0);
    const struct rule *rule = rule_of(node);
    int64_t rows, columns;
    bool along_rows;
    if (l->type != HWNAS_CUDNN_F32)
        return false;
    see_matrix(&rows, &columns, &along_rows, l->cut->graph, node);
    const int in = hwnas_cudnn_want(l->cut, node->inputs[0], l->type, HWNAS_CUDNN_PLAIN);
    const int64_t dims[] = {rows, columns, 1, 1}, strides[] = {columns, 1, columns, columns};
    l->rank = 4;
    l->dims[0] = along_rows ? rows : 1;
    l->dims[1] = along_rows ? 1 : columns;
    l->dims[2] = l->dims[3] = 1;
    const int64_t packed[] = {l->dims[1], 1, l->dims[1], l->dims[1]};
    int x = hwnas_cudnn_add_memory(l->o, l->cut->net, in, 4, dims, strides);
    if (rule->is_mean) {
        const int64_t line = along_rows ? columns : rows;
        const int by = hwnas_cudnn_add_scalar(l->o, 4, 1 / (float)line);
        x = hwnas_cudnn_add_pointwise(l->o, CUDNN_POINTWISE_MUL, x, by);
    }
    hwnas_cudnn_op *op = hwnas_cudnn_add_op(l->o, HWNAS_CUDNN_REDUCE);
    op->mode = rule->mode;
    op->n_inputs = 1;
    op->inputs[0] = x;
    l->result = op->output = hwnas_lower_result(l, packed);
    return hwnas_lower_end(l);
}
