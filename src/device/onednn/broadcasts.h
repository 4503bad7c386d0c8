/* broadcasts.h: sums, differences, products and quotients with tensors that are repeated along some
 * dimensions or of few values, and perhaps a softmax behind them, as a step.
 *
 * oneDNN 3.7 has reference code where an operand is repeated along some dimensions between others:
 * the bias of an attention that differs by head, the mask of its windows; and wherever the first
 * operand is repeated. These loops work row by row while a row is in the first-level cache. */
#ifndef HWNAS_DEVICE_ONEDNN_BROADCASTS_H
#define HWNAS_DEVICE_ONEDNN_BROADCASTS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* As a hwnas_fusion_begin: a softmax over the last dimension and what stands between it and the
 * product before it, where oneDNN's own attention would be slow or has little to do. Reshapes that
 * keep the last dimension may stand between. */
bool hwnas_onednn_take_scores(hwnas_fusion *f, void *group, int node);
/* The same of sums, differences, products and quotients that nothing else has taken and oneDNN has
 * only slow code for, or that take less time than one of its partitions to begin. */
bool hwnas_onednn_take_broadcast(hwnas_fusion *f, void *group, int node);

/* As hwnas_onednn_fused_compile(), of a group that one of both has begun. */
HWNAS_CHECKED hwnas_status hwnas_onednn_broadcast_compile(hwnas_onednn_step *step,
                                                          const hwnas_graph *graph,
                                                          const hwnas_onednn_group *group,
                                                          const hwnas_onednn_layout *layouts,
                                                          hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_broadcasts;

#endif
