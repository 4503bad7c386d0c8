/* fusion.h: which nodes of a graph run together as one step.
 *
 * The latency table (parts.c), the CPU (onednn/groups.c) and NVIDIA's GPUs (cudnn/cut.c) cut a
 * graph by the same walk; what differs is data, a device's rules. A group has
 *
 *   - a root, which does the work: a convolution, a product, a pool;
 *   - followers, one behind the other: each alone reads what the group has made so far and works on
 *     it value by value, so that its result has the same shape: a bias, an activation, a sum with
 *     another tensor, a quantisation at the end. x f(x) is followed by both of its nodes: the gate
 *     f(x) and the product, which are the only readers of x;
 *   - perhaps dequantisations before it, where the device reads the integers itself.
 *
 * A graph's output ends a group, as does what several nodes read: only the last result is seen from
 * outside. Whatever a group reads is therefore made by a group that ends before it does, and groups
 * can run in the order of their last nodes.
 *
 * Nodes are tried as roots in the order of the graph, and a root takes all that may follow it: of
 * the two branches of a sum it is the earlier root that takes the sum. */
#ifndef HWNAS_GRAPH_FUSION_H
#define HWNAS_GRAPH_FUSION_H

#include "graph/op.h"
#include "graph/rewrite.h"

enum { HWNAS_FUSION_LONGEST = 16, HWNAS_FUSION_NO_GROUP = -1 };

/* What a device does to the values that a root makes. A row of its rules says for an operator which
 * of them it is, as a follower, and which it takes, as a root. */
typedef enum hwnas_fusion_kind {
    HWNAS_FUSES_FUNCTION = 1, /* of each value */
    HWNAS_FUSES_BINARY = 2,   /* with another tensor */
    HWNAS_FUSES_QUANTIZE = 4, /* to 8-bit integers, at the end */
    HWNAS_FUSES_VALUES = HWNAS_FUSES_FUNCTION | HWNAS_FUSES_BINARY,
} hwnas_fusion_kind;

typedef struct hwnas_fusion_row {
    unsigned takes; /* as a root: kinds */
    unsigned is;    /* as a follower: a kind; 0: it never follows */
    bool is_gate;   /* f of x f(x) */
} hwnas_fusion_row;

/* A device's own type of group begins with this one. */
typedef struct hwnas_fusion_group {
    int n_nodes, nodes[HWNAS_FUSION_LONGEST]; /* in the order of the chain */
    int output;                               /* tensor: of the last node */
    unsigned takes;                           /* kinds, as its root's row says */
} hwnas_fusion_group;

typedef struct hwnas_fusion hwnas_fusion;

/* Makes a node the root of an empty group: hwnas_fusion_take(), and what else the device wants to
 * know of it. False: it is none; the group is forgotten. */
typedef bool hwnas_fusion_begin(hwnas_fusion *f, void *group, int node);

typedef struct hwnas_fusion_rules {
    size_t group_size;                 /* of the device's own type */
    int longest;                       /* nodes of a group; at most HWNAS_FUSION_LONGEST */
    hwnas_fusion_begin *const *passes; /* over all nodes that are in no group yet; NULL ends */
    const hwnas_fusion_row *(*row)(const hwnas_fusion *f, const hwnas_node *node);
    /* Whether a node that may follow by its row and shape does, `gate` before it unless that is
     * NULL. It and the gate are taken if so. */
    bool (*follows)(hwnas_fusion *f, void *group, const hwnas_node *node, const hwnas_node *gate);
    /* (optional) Looks at a complete group; true: it has begun it anew, to be grown once more. */
    bool (*begins_anew)(hwnas_fusion *f, void *group);
} hwnas_fusion_rules;

struct hwnas_fusion {
    const hwnas_fusion_rules *rules;
    const hwnas_graph *graph;
    const int *same;     /* (optional) as of hwnas_graph_same() */
    const bool *is_live; /* (optional) by node: others are in no group */
    void *device;        /* (optional) the rules' own */
    hwnas_uses *uses;    /* by tensor */
    int *group_of;       /* by node */
    size_t n_groups;
    void *groups; /* of the device's type, in the order in which they were formed */
};

/* Forms the groups; rules, graph and what is optional are given. */
void hwnas_fusion_plan(hwnas_fusion *f);
void hwnas_fusion_done(hwnas_fusion *f);

/* ---- For rules ---- */

/* The tensor that an input of a node is, by `same`. */
static inline int hwnas_fusion_input(const hwnas_fusion *f, const hwnas_node *node, int i)
{
    return f->same ? f->same[node->inputs[i]] : node->inputs[i];
}

/* The next node of the group that is being formed: only its last output is seen from outside. */
void hwnas_fusion_take(hwnas_fusion *f, void *group, int node);
/* Takes all nodes out of it. */
void hwnas_fusion_empty(hwnas_fusion *f, void *group);

/* Attention as one group: a product, what may stand between it and a softmax over its rows, the
 * softmax, the product with its result. False: the node is no softmax between two such products,
 * and nothing is taken. */
bool hwnas_fusion_take_attention(hwnas_fusion *f, void *group, int node,
                                 bool (*may_stand_between)(const hwnas_fusion *f,
                                                           const hwnas_node *node));

#endif
