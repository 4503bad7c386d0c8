/* finder.h: what groups.c and onednn_int8.c share while groups are found. */
#ifndef HWNAS_DEVICE_ONEDNN_FINDER_H
#define HWNAS_DEVICE_ONEDNN_FINDER_H

#include "device/onednn/groups.h"

typedef struct hwnas_onednn_finder {
    const hwnas_onednn_source *source;
    const hwnas_graph *graph; /* its */
    hwnas_onednn_groups *out;
    const bool *is_own;
    bool *is_output;    /* by tensor: of the graph */
    int *n_readers;     /* by tensor */
    int (*readers)[2];  /* by tensor: the first two nodes that read it */
    bool has_attention; /* products of activations, around which oneDNN forms large partitions */
} hwnas_onednn_finder;

/* Takes `node`, and `gate` before it unless NULL, into the group, whose results they work on as `p`
 * says; NULL: as the group knows otherwise. False: it is full. */
bool hwnas_onednn_add_post(hwnas_onednn_group *g, const hwnas_onednn_post *p,
                           const hwnas_onednn_finder *f, const hwnas_node *node,
                           const hwnas_node *gate);

#endif
