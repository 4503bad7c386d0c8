/* repeats.h: a choice, extremes, comparisons and PReLU of tensors of which some are repeated along
 * some dimensions, and such a repetition itself: steps of loops of ours, of plain tensors. */
#ifndef HWNAS_DEVICE_ONEDNN_REPEATS_H
#define HWNAS_DEVICE_ONEDNN_REPEATS_H

#include "device/onednn/onednn_steps.h"

/* Whole numbers and truths are as good as others where they are only compared and chosen. */
bool hwnas_onednn_is_repeat(const hwnas_graph *graph, const hwnas_node *node);
/* How many values lie between neighbours along dimension `i` of `out` in `in`, which is repeated to
 * its shape; 0: it is repeated along that. */
int64_t hwnas_onednn_repeat_stride(const hwnas_tensor *in, const hwnas_tensor *out, int i);
extern const hwnas_onednn_kind hwnas_onednn_repeats;

#endif
