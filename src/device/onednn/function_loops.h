/* function_loops.h: functions of one value that stand alone, as steps of loops of ours. */
#ifndef HWNAS_DEVICE_ONEDNN_FUNCTION_LOOPS_H
#define HWNAS_DEVICE_ONEDNN_FUNCTION_LOOPS_H

#include "device/onednn/group.h"
#include "device/onednn/onednn_steps.h"

/* Of a power: the same for all values, and known. */
bool hwnas_onednn_has_one_exponent(const hwnas_graph *graph, const hwnas_node *node);
/* Whether the loops have the node's function, of floats, and no instruction of oneDNN's is as fast.
 */
bool hwnas_onednn_has_function(const hwnas_graph *graph, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_functions;

/* Whether a group is one such node, and its values need not change their places. */
bool hwnas_onednn_function_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                const hwnas_onednn_layout *layouts);
/* As hwnas_onednn_fused_compile(). */
HWNAS_CHECKED hwnas_status hwnas_onednn_function_compile(hwnas_onednn_step *step,
                                                         const onednn_device *device,
                                                         const hwnas_graph *graph,
                                                         const hwnas_onednn_group *group,
                                                         hwnas_arena *arena);

#endif
