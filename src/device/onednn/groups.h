/* groups.h: which nodes run together as one primitive, and how tensors lie. */
#ifndef HWNAS_DEVICE_ONEDNN_GROUPS_H
#define HWNAS_DEVICE_ONEDNN_GROUPS_H

#include "device/onednn/group.h"

typedef struct hwnas_onednn_groups {
    hwnas_fusion plan;            /* of hwnas_onednn_group */
    hwnas_onednn_layout *layouts; /* by tensor */
} hwnas_onednn_groups;

/* Whether what it makes is an image, and all but the first input are weights. */
bool hwnas_onednn_has_constant_kernel(const hwnas_graph *graph, const hwnas_node *node);

/* Sorts the nodes into groups. `is_own` says, by node, which have a step of their own; what these
 * read and write is plain. `is_refused` says which must not be a root; NULL: there are no groups.
 */
void hwnas_onednn_groups_find(hwnas_onednn_groups *out, const hwnas_onednn_source *source,
                              const bool *is_own, const bool *is_refused);
void hwnas_onednn_groups_done(hwnas_onednn_groups *groups);
/* The group that a node is in, or NULL. */
const hwnas_onednn_group *hwnas_onednn_group_of(const hwnas_onednn_groups *groups, int node);

#endif
