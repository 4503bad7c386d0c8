/* cudnn_int8.h: networks of 8-bit integers: how they are made for a GPU, and what of them cuDNN computes. */
#ifndef HWNAS_DEVICE_CUDNN_INT8_H
#define HWNAS_DEVICE_CUDNN_INT8_H

#include "device/cudnn/cuda_device.h"

/* A graph of floats as one of bytes, all of them signed and around zero, which is what cuDNN's engines
 * take. Ranges come from runs in fp32 on the GPU; where nothing runs they are made up, since a plan
 * does not depend on them. `origin` as of hwnas_graph_quantize(). */
HWNAS_CHECKED hwnas_status hwnas_cudnn_quantize(hwnas_graph **out, int **origin,
                                                hwnas_cuda_device *device,
                                                const hwnas_graph *graph,
                                                const hwnas_exec_options *options);

/* The node that makes floats of signed bytes around zero, of which the tensor is the result; or -1. */
int hwnas_cudnn_dequantize_of(const hwnas_graph *graph, int tensor);
/* Whether a node makes such bytes, of one scale. */
bool hwnas_cudnn_makes_int8(const hwnas_graph *graph, const hwnas_node *node);
/* Whether a convolution or product reads bytes, with weights of bytes, in a way that cuDNN takes. */
bool hwnas_cudnn_multiplies_int8(const hwnas_graph *graph, const hwnas_node *node);

#endif
