/* onednn_int8.h: groups that read or write bytes.
 *
 * Quantised graphs have floats everywhere, between a dequantisation before an operator and a
 * quantisation behind it. A group reads the bytes before the dequantisation and ends with the
 * quantisation. A dequantisation whose floats nobody reads does not run. */
#ifndef HWNAS_DEVICE_ONEDNN_INT8_H
#define HWNAS_DEVICE_ONEDNN_INT8_H

#include "device/onednn/group.h"

/* How bytes stand for floats: (byte - zero) x scale. */
typedef struct hwnas_onednn_scale {
    float scale;
    int32_t zero;
} hwnas_onednn_scale;

/* Of a quantisation or dequantisation, or of a tensor of bytes that a quantisation makes; they have
 * one scale for all values. */
hwnas_onednn_scale hwnas_onednn_scale_of(const hwnas_graph *graph, const hwnas_node *node);
hwnas_onednn_scale hwnas_onednn_scale_of_int8(const hwnas_graph *graph, int tensor);
bool hwnas_onednn_is_int8(const hwnas_onednn_source *source, int tensor);
/* The tensor of bytes that `tensor` is dequantised from, if a node can read it instead; else -1. */
int hwnas_onednn_behind(const hwnas_onednn_source *source, int tensor);

/* A convolution or product of bytes with a constant kernel of bytes. */
bool hwnas_onednn_multiplies_int8(const hwnas_onednn_source *source, const hwnas_node *node);
/* Whether a node adds or subtracts: it may read bytes with zero points. */
bool hwnas_onednn_sums_bytes(const hwnas_node *node);

/* ---- While groups are found ---- */

/* A quantisation of what no partition makes. */
bool hwnas_onednn_is_quantize_root(const hwnas_fusion *f, int n);
/* Which input of a node is an image of bytes that it multiplies with factors of its channels, and
 * then makes bytes of again (pixels.h); -1: the node does something else. */
int hwnas_onednn_excited(const hwnas_fusion *f, const hwnas_node *node);
/* Decides what the root reads: the bytes behind its inputs where it can. */
void hwnas_onednn_read_bytes(hwnas_onednn_group *g, const hwnas_fusion *f);
/* Adds a tensor of bytes, as large as the result, which, bytes too, is written over it. */
bool hwnas_onednn_take_int8_sum(hwnas_onednn_group *g, const hwnas_fusion *f,
                                const hwnas_node *node, int operand);
/* Ends the group with a quantisation. */
bool hwnas_onednn_take_quantize(hwnas_onednn_group *g, const hwnas_fusion *f,
                                const hwnas_node *node);
/* When all other groups are known: dequantisations whose floats nobody needs go into the groups
 * that read the bytes before them, and the others, but for those before nodes of no group, become
 * groups. */
void hwnas_onednn_settle_dequantize(hwnas_fusion *f);

#endif
