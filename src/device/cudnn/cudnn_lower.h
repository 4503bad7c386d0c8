/* cudnn_lower.h: what cudnn_lower.c, products.c and elements.c share: an operation while it is made
 * of a group. */
#ifndef HWNAS_DEVICE_CUDNN_LOWER_H
#define HWNAS_DEVICE_CUDNN_LOWER_H

#include <string.h>

#include "device/cudnn/cut.h"

typedef struct hwnas_cudnn_lowering {
    hwnas_cudnn_operation *o;
    hwnas_cudnn_cut *cut;
    const hwnas_cudnn_group *group;
    hwnas_cudnn_type type;   /* of values in memory */
    hwnas_cudnn_type factor; /* of what is multiplied: the same, or bytes */
    int result;              /* port of what was made so far, virtual */
    /* As the result is seen by cuDNN: */
    int rank;
    int64_t dims[HWNAS_CUDNN_PORT_RANK];
    int channel; /* the dimension that has a bias: images' channels, products' columns */
} hwnas_cudnn_lowering;

/* Ports of what the group's nodes make. */
typedef struct hwnas_lower_made {
    int n, tensors[HWNAS_CUDNN_LONGEST_GROUP], ports[HWNAS_CUDNN_LONGEST_GROUP];
} hwnas_lower_made;

static inline int hwnas_lower_find(const hwnas_lower_made *m, int tensor)
{
    for (int i = 0; i < m->n; i++)
        if (m->tensors[i] == tensor)
            return m->ports[i];
    return -1;
}

static inline const hwnas_node *hwnas_lower_node(const hwnas_cudnn_lowering *l, int i)
{
    return &l->cut->graph->nodes[l->group->chain.nodes[i]];
}

static inline const hwnas_tensor *hwnas_lower_tensor(const hwnas_cudnn_lowering *l, int tensor)
{
    return &l->cut->graph->tensors[tensor];
}

/* What is read in the place of the tensor: the bytes that it is made of, if the group reads those.
 */
int hwnas_lower_source(const hwnas_cudnn_lowering *l, int tensor);
/* Behind a product of bytes, whose result is whole numbers: floats of the factors' scales. */
void hwnas_lower_scales(hwnas_cudnn_lowering *l);
/* The value of a weight of one. */
float hwnas_lower_number(const hwnas_tensor *weight);
/* A virtual port of the result's shape, where the first operator's result goes. */
int hwnas_lower_result(hwnas_cudnn_lowering *l, const int64_t *strides);
/* Bias (a tensor, or -1) and the nodes behind the first; false where they cannot be said. */
bool hwnas_lower_rest(hwnas_cudnn_lowering *l, int bias);
/* The last result goes to memory; false where the tensor cannot be seen with the result's shape. */
bool hwnas_lower_end(hwnas_cudnn_lowering *l);

/* Groups by role: linear and matmul, attention (products.c), elements alone (elements.c),
 * reductions (cudnn_reduce.c). */
bool hwnas_lower_matmul(hwnas_cudnn_lowering *l);
bool hwnas_lower_attention(hwnas_cudnn_lowering *l);
bool hwnas_lower_elements(hwnas_cudnn_lowering *l);
bool hwnas_lower_reduce(hwnas_cudnn_lowering *l);

#endif
