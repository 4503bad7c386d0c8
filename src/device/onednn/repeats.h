/* repeats.h: a choice, extremes, comparisons and PReLU of tensors of which some are repeated along
 * some dimensions, and such a repetition itself: steps of loops of ours, of plain tensors. */
#ifndef HWNAS_DEVICE_ONEDNN_REPEATS_H
#define HWNAS_DEVICE_ONEDNN_REPEATS_H

#include "device/onednn/onednn_steps.h"

/* Whole numbers and truths are as good as others where they are only compared and chosen. */
bool hwnas_onednn_is_repeat(const hwnas_graph *graph, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_repeats;

#endif
