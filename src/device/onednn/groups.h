/* groups.h: which nodes run together as one primitive, and how tensors lie.
 *
 * A group is a node that oneDNN has a fast primitive for, its root, and what may be done to each of
 * its results before they are written: a bias, functions of one value, sums and products with other
 * tensors. What stands in no group is left to oneDNN's Graph API or to steps of ours. */
#ifndef HWNAS_DEVICE_ONEDNN_GROUPS_H
#define HWNAS_DEVICE_ONEDNN_GROUPS_H

#include <oneapi/dnnl/dnnl.h>

#include "device/onednn/source.h"

enum { HWNAS_ONEDNN_MAX_POSTS = 6, HWNAS_ONEDNN_MAX_GROUP = 16, HWNAS_ONEDNN_MAX_REVERSES = 4 };

/* How a tensor lies in memory. */
typedef enum hwnas_onednn_layout {
    HWNAS_ONEDNN_FREE,  /* as oneDNN likes, between two of its partitions */
    HWNAS_ONEDNN_PLAIN, /* row-major, as everybody else has it */
    HWNAS_ONEDNN_IMAGE, /* four dimensions, channels last */
} hwnas_onednn_layout;

/* An operation on the root's results. */
typedef struct hwnas_onednn_post {
    dnnl_alg_kind_t alg; /* of eltwise, or of binary with an operand */
    float alpha, beta;   /* of eltwise */
    int operand;         /* the other tensor, or -1 */
    bool is_sum; /* nobody else reads the operand: the results are added to it in its place */
} hwnas_onednn_post;

typedef struct hwnas_onednn_group {
    int n_nodes, nodes[HWNAS_ONEDNN_MAX_GROUP]; /* the first is the root */
    hwnas_onednn_layout layout; /* in which it computes; its tensors may lie otherwise */
    int reads[2];               /* tensors: the root's first inputs, or the bytes behind them */
    int bias;                   /* a weight, or -1 */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
    int output; /* of the node that makes it; when it is that one's turn, the group runs */
    bool has_bytes;           /* reads or writes some */
    bool is_product_of_bytes; /* a convolution or product whose inputs both are */
    bool ends_as_floats;      /* no quantisation is at its end */
    int n_reverses, reverses[HWNAS_ONEDNN_MAX_REVERSES]; /* nodes behind which it looks */
} hwnas_onednn_group;

typedef struct hwnas_onednn_groups {
    size_t n;
    hwnas_onednn_group *all;
    int *of_node;                 /* the group that a node is in, or -1 */
    hwnas_onednn_layout *layouts; /* by tensor */
} hwnas_onednn_groups;

/* Sorts the nodes into groups. `is_own` says, by node, which have a step of their own; what these
 * read and write is plain. `is_refused` says which must not be a root; NULL: there are no groups.
 */
void hwnas_onednn_groups_find(hwnas_onednn_groups *out, const hwnas_onednn_source *source,
                              const bool *is_own, const bool *is_refused);
void hwnas_onednn_groups_done(hwnas_onednn_groups *groups);

/* A function of one value as a post-operation; false: oneDNN has none. */
bool hwnas_onednn_function(hwnas_onednn_post *out, const hwnas_node *node);
/* A sum, difference, product or quotient, as oneDNN calls it; false: the node is none of them. */
bool hwnas_onednn_binary(dnnl_alg_kind_t *out, const hwnas_node *node);

#endif
