/* moves.h: what only moves values of images, as a step: joining channels, cutting a part out,
 * zeros. */
#ifndef HWNAS_DEVICE_ONEDNN_MOVES_H
#define HWNAS_DEVICE_ONEDNN_MOVES_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

bool hwnas_onednn_is_move(const hwnas_node *node);
/* HWNAS_E_UNSUPPORTED unless everything lies as images do. Ports are allocated in `arena`. */
HWNAS_CHECKED hwnas_status hwnas_onednn_move_compile(hwnas_onednn_step *step,
                                                     const hwnas_graph *graph,
                                                     const hwnas_node *node,
                                                     const hwnas_onednn_layout *layouts,
                                                     hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_moves;

#endif
