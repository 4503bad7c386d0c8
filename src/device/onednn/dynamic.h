/* dynamic.h: products and convolutions of bytes whose scale and zero point are found in each run,
 * as onnxruntime.quantization.quantize_dynamic writes them: DynamicQuantizeLinear, MatMulInteger or
 * ConvInteger, Cast, Mul. Our graphs have floats everywhere, so the bytes are floats that hold
 * whole numbers. */
#ifndef HWNAS_DEVICE_ONEDNN_DYNAMIC_H
#define HWNAS_DEVICE_ONEDNN_DYNAMIC_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* As a hwnas_fusion_begin: a product of bytes, less their zero point, with a constant matrix or
 * kernel of signed bytes, rounded to whole numbers, made floats again and multiplied with one
 * scale. What follows it is a group's as ever. */
bool hwnas_onednn_take_dynamic(hwnas_fusion *f, void *group, int node);

/* As hwnas_onednn_fused_compile(), of a group that this has begun. */
HWNAS_CHECKED hwnas_status hwnas_onednn_dynamic_compile(
    hwnas_onednn_step *step, const onednn_device *device, const hwnas_graph *graph,
    const hwnas_onednn_group *group, const hwnas_onednn_layout *layouts, hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_dynamic;

/* Whether a quantisation has one scale, and whole numbers that the loops below can round to. */
bool hwnas_onednn_quantizes_all_alike(const hwnas_graph *graph, const hwnas_node *node);
/* Such a quantisation, whose scale and zero point are known in the run. */
extern const hwnas_onednn_kind hwnas_onednn_quantize;
/* Whether the least or the greatest value of a whole tensor is looked for. */
bool hwnas_onednn_is_extreme_of_all(const hwnas_graph *graph, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_extreme;

#endif
