/* grid_samples.h: a step that samples images at the places of a grid. */
#ifndef HWNAS_DEVICE_ONEDNN_GRID_SAMPLES_H
#define HWNAS_DEVICE_ONEDNN_GRID_SAMPLES_H

#include "device/onednn/onednn_steps.h"

extern const hwnas_onednn_kind hwnas_onednn_grid_samples;

/* Is a plane of the image small enough for it? */
bool hwnas_onednn_can_sample(const hwnas_graph *graph, const hwnas_node *node);

#endif
