/* halves.h: groups whose product is one of bfloat16: graph/rounding.h. */
#ifndef HWNAS_DEVICE_ONEDNN_HALVES_H
#define HWNAS_DEVICE_ONEDNN_HALVES_H

#include "device/onednn/group.h"

/* Whether a node is a convolution or product, with a constant kernel, of two rounded operands. */
bool hwnas_onednn_multiplies_halves(const hwnas_onednn_source *source, const hwnas_node *node);
/* Whether groups alone read what the node rounds, and round it themselves: it need not run.
 * `is_refused` by node; NULL: there are no groups. */
bool hwnas_onednn_rounds_for_groups(const hwnas_onednn_source *source, const hwnas_node *node,
                                    const bool *is_refused);
/* Begins such a group: what it reads, and which casts it does without. */
void hwnas_onednn_read_halves(hwnas_onednn_group *g, const hwnas_fusion *f);

#endif
