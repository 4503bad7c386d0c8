/* group.h: nodes that run together as one primitive.
 *
 * A group (graph/fusion.h) is a node that oneDNN has a fast primitive for, its root, and what may
 * be done to each of its results before they are written: a bias, functions of one value, sums and
 * products with other tensors. What stands in no group is left to oneDNN's Graph API or to steps of
 * ours. */
#ifndef HWNAS_DEVICE_ONEDNN_GROUP_H
#define HWNAS_DEVICE_ONEDNN_GROUP_H

#include <oneapi/dnnl/dnnl.h>

#include "device/onednn/source.h"
#include "graph/fusion.h"

enum { HWNAS_ONEDNN_MAX_POSTS = 6, HWNAS_ONEDNN_MAX_DEQUANTIZES = 4 };

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
    bool is_sum; /* the results are added to the operand in place, unless somebody else reads it */
} hwnas_onednn_post;

typedef struct hwnas_onednn_group {
    hwnas_fusion_group chain;   /* when it is the turn of its output's node, the group runs */
    hwnas_onednn_layout layout; /* in which it computes; its tensors may lie otherwise */
    int reads[2];               /* tensors: the root's first inputs, or the bytes behind them */
    int bias;                   /* a weight, or -1 */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
    bool has_bytes;           /* reads or writes some */
    bool is_product_of_bytes; /* a convolution or product whose inputs both are */
    bool is_product_of_halves; /* halves.h */
    bool ends_as_floats;      /* no quantisation is at its end */
    bool is_dynamic; /* dynamic.h: reads bytes and their zero point, then multiplies with `scale` */
    int scale;       /* tensor, or -1 */
    bool is_broadcast; /* by loops of ours: broadcasts.h */
    bool is_table;     /* byte_tables.h */
    /* Nodes before it, whose bytes it reads in the place of their floats, or casts that it does
     * itself. */
    int n_dequantizes, dequantizes[HWNAS_ONEDNN_MAX_DEQUANTIZES];
} hwnas_onednn_group;

/* What groups are formed by: the `device` of their hwnas_fusion. */
typedef struct hwnas_onednn_finder {
    const hwnas_onednn_source *source;
    const bool *is_own, *is_refused;
    hwnas_onednn_layout *layouts; /* by tensor */
    bool has_attention; /* products of activations, around which oneDNN forms large partitions */
} hwnas_onednn_finder;

static inline const hwnas_onednn_finder *hwnas_onednn_finder_of(const hwnas_fusion *f)
{
    return f->device;
}

/* A function of one value as a post-operation; false: oneDNN has none. */
bool hwnas_onednn_function(hwnas_onednn_post *out, const hwnas_node *node);
/* A sum, difference, product or quotient, as oneDNN calls it; false: the node is none of them. */
bool hwnas_onednn_binary(dnnl_alg_kind_t *out, const hwnas_node *node);
/* Either of both. */
bool hwnas_onednn_is_elementwise(const hwnas_node *node);

/* The processor, or what ONEDNN_MAX_CPU_ISA leaves of it, has AVX2 and no AVX-512. */
bool hwnas_onednn_ends_at_avx2(void);
/* Whether a group's root works on rows and runs as a convolution of 1 x 1, a row a pixel. */
bool hwnas_onednn_is_by_conv(const hwnas_onednn_source *source, const hwnas_onednn_group *group);

#endif
