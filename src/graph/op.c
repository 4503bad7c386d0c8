/* op.c: the table of operators, and attributes by name. */
#include "graph/op.h"

#include <assert.h>
#include <string.h>

#define OP(name, NAME) extern const hwnas_op hwnas_op_##name;
#include "graph/op_list.h"
#undef OP

const hwnas_op *const hwnas_ops[] = {
#define OP(name, NAME) [HWNAS_OP_##NAME] = &hwnas_op_##name,
#include "graph/op_list.h"
#undef OP
    [HWNAS_N_OPS] = NULL,
};

const hwnas_op *hwnas_op_by_name(const char *name)
{
    for (const hwnas_op *const *op = hwnas_ops; *op; op++)
        if (!strcmp((*op)->name, name))
            return *op;
    return NULL;
}

const hwnas_op *hwnas_op_by_onnx(const char *onnx)
{
    for (const hwnas_op *const *op = hwnas_ops; *op; op++)
        if ((*op)->onnx && !strcmp((*op)->onnx, onnx))
            return *op;
    return NULL;
}

const hwnas_attr *hwnas_node_find_attr(const hwnas_node *node, const char *name)
{
    for (int i = 0; node->op->attrs[i].name; i++)
        if (!strcmp(node->op->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

bool hwnas_node_is_whole(const hwnas_graph *graph, const hwnas_node *node)
{
    bool is_whole = hwnas_dtype_is_whole(hwnas_node_output(graph, node)->dtype);
    for (int i = 0; i < node->n_inputs; i++)
        is_whole |= hwnas_dtype_is_whole(hwnas_node_input(graph, node, i)->dtype);
    return is_whole;
}

const hwnas_attr *hwnas_node_attr(const hwnas_node *node, const char *name)
{
    const hwnas_attr *attr = hwnas_node_find_attr(node, name);
    assert(attr && "an operator asked for an attribute that its table lacks");
    return attr;
}

const char *hwnas_node_operator(const hwnas_node *node)
{
    return node->op->name;
}

void hwnas_node_compute(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *operands, float *output)
{
    node->op->compute(graph, node, operands, output);
}
