/* cut.h: a graph of ours cut into steps.
 *
 * Three passes over the graph: cut.c forms groups of nodes, layout.c says how each tensor lies in
 * memory and which are slices of a concatenation, emit.c makes the steps, with conversions where a
 * reader cannot take a tensor as it lies. What an operation refuses is written down in `bans`, and
 * the graph is cut anew: nothing else decides what cuDNN is asked for. No pass needs cuDNN. */
#ifndef HWNAS_DEVICE_CUDNN_CUT_H
#define HWNAS_DEVICE_CUDNN_CUT_H

#include "device/cudnn/operation.h"
#include "graph/fusion.h"
#include "graph/op.h"

enum { HWNAS_CUDNN_LONGEST_GROUP = 12 };

/* What is not to be tried again. */
typedef struct hwnas_cudnn_bans {
    int *joins;      /* by node: going into the plan whose first node is the one before this number */
    bool *engine;    /* by node: being the first of a plan */
    bool *slice;     /* by tensor: being written as a slice of a concatenation */
    bool *attention; /* by softmax: being the middle of one plan */
    bool *bytes;     /* by node: multiplying bytes */
} hwnas_cudnn_bans;

typedef enum hwnas_cudnn_role {
    HWNAS_CUDNN_BY_KERNEL, /* whatever has no rule */
    HWNAS_CUDNN_BY_CONV,
    HWNAS_CUDNN_BY_CONV_BACK,
    HWNAS_CUDNN_BY_MATMUL, /* linear, matmul */
    HWNAS_CUDNN_BY_POINTWISE,
    HWNAS_CUDNN_BY_POOL,
    HWNAS_CUDNN_BY_NORM,
    HWNAS_CUDNN_BY_REDUCE,
    HWNAS_CUDNN_BY_ATTENTION,
    HWNAS_CUDNN_BY_RNN,
    HWNAS_CUDNN_BY_VIEW,
    HWNAS_CUDNN_BY_CONCAT,
    HWNAS_CUDNN_N_ROLES
} hwnas_cudnn_role;

/* Nodes that become one step. */
typedef struct hwnas_cudnn_group {
    hwnas_fusion_group
        chain; /* of an attention: product, perhaps a scaling, perhaps a mask, softmax, product */
    hwnas_cudnn_role role;
    /* A product of bytes: nodes that make floats of the bytes it reads; what it reads in their place. */
    int n_dequantizes, dequantizes[HWNAS_CUDNN_LONGEST_GROUP];
} hwnas_cudnn_group;

typedef struct hwnas_cudnn_cut {
    hwnas_cudnn_net *net;
    const hwnas_graph *graph; /* the net's */
    const hwnas_cudnn_bans *bans;
    hwnas_fusion plan; /* groups, in the order of running; hwnas_fusion_done() */
    bool *is_image;    /* by tensor: N, H, W, C in memory */
} hwnas_cudnn_cut;

static inline const hwnas_cudnn_group *hwnas_cudnn_groups(const hwnas_cudnn_cut *cut)
{
    return cut->plan.groups;
}

/* ---- cut.c ---- */
hwnas_cudnn_bans hwnas_cudnn_bans_new(hwnas_arena *arena, const hwnas_graph *graph);
/* Forms the groups. */
void hwnas_cudnn_form_groups(hwnas_cudnn_cut *cut);

/* ---- layout.c ---- */
/* Makes the net's tensors, by the graph's numbers. */
void hwnas_cudnn_lay_out(hwnas_cudnn_cut *cut);
/* How a reader wants a tensor. */
typedef enum hwnas_cudnn_form {
    HWNAS_CUDNN_PLAIN,  /* row-major, without gaps */
    HWNAS_CUDNN_PACKED, /* an image without gaps, N, H, W, C */
    HWNAS_CUDNN_SLICED, /* the same, but the pixels may lie apart: a slice of the channels */
    HWNAS_CUDNN_TURNED, /* matrices whose columns lie close, not their rows */
    HWNAS_CUDNN_AS_IS,  /* any strides */
} hwnas_cudnn_form;
bool hwnas_cudnn_has_form(const hwnas_cudnn_tensor *tensor, hwnas_cudnn_form form);
/* The tensor in this type and form: itself, or a conversion that becomes a step before the next; of a
 * weight its own copy. */
int hwnas_cudnn_want(hwnas_cudnn_cut *cut, int tensor, hwnas_cudnn_type type,
                     hwnas_cudnn_form form);
/* A weight laid out with these strides. */
int hwnas_cudnn_weight(hwnas_cudnn_net *net, int tensor, hwnas_cudnn_type type,
                       const int64_t *strides);
/* Strides of the tensor seen with other dimensions; false where these cannot say it. */
bool hwnas_cudnn_reshape(int64_t *strides, const hwnas_cudnn_tensor *tensor, int rank,
                         const int64_t *dims);
/* A new tensor like `like`, which is its own root. */
int hwnas_cudnn_new_tensor(hwnas_cudnn_net *net, const hwnas_cudnn_tensor *like);
/* The type of values while computing with them. */
hwnas_cudnn_type hwnas_cudnn_io_type(hwnas_precision precision);

/* ---- emit.c ---- */
/* Makes the steps of all groups. A group that cannot be said as an operation has its ban written
 * down, and `*again` is set. */
void hwnas_cudnn_emit(hwnas_cudnn_cut *cut, hwnas_cudnn_bans *bans, bool *again);
/* Writes down what a refused step must not try again. */
void hwnas_cudnn_ban(hwnas_cudnn_bans *bans, const hwnas_cudnn_net *net,
                     const hwnas_cudnn_step *step);

/* ---- cudnn_lower.c, pointwise.c, cudnn_reduce.c ---- */
/* The group as an operation; false where it cannot be said as one. */
bool hwnas_cudnn_lower(hwnas_cudnn_operation *out, hwnas_cudnn_cut *cut,
                       const hwnas_cudnn_group *group);
/* Whether a node works on each element of its first input by itself, in cuDNN's words too. */
bool hwnas_cudnn_is_pointwise(const hwnas_graph *graph, const hwnas_node *node);
/* Whether a node reduces rows or columns in one of cuDNN's ways. */
bool hwnas_cudnn_is_reduction(const hwnas_graph *graph, const hwnas_node *node);
/* Appends the node, given the ports of its inputs; returns the port of its result, which is virtual. */
int hwnas_cudnn_lower_pointwise(hwnas_cudnn_operation *o, const hwnas_graph *graph,
                                const hwnas_node *node, const int *inputs);
int hwnas_cudnn_add_pointwise(hwnas_cudnn_operation *o, int mode, int a, int b);

#endif
