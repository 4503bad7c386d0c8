/* compile.h: from a graph to a net, and what tests look at. */
#ifndef HWNAS_DEVICE_CUDNN_COMPILE_H
#define HWNAS_DEVICE_CUDNN_COMPILE_H

#include "device/cudnn/cut.h"
#include "graph/rewrite.h"

/* Cuts and compiles a graph. `compile` makes one step, as its kind does; refusals lead to other
 * steps. For tests, which refuse what they like; the devices pass NULL. */
HWNAS_CHECKED hwnas_status hwnas_cudnn_net_new(hwnas_cudnn_net **out, hwnas_cuda_device *device,
                                               const hwnas_graph *graph, hwnas_precision precision,
                                               hwnas_status (*compile)(hwnas_cudnn_step *step,
                                                                       hwnas_cudnn_net *net));
void hwnas_cudnn_net_free(hwnas_cudnn_net *net); /* accepts NULL */

/* Gives every tensor its place; the steps are all there. */
void hwnas_cudnn_place(hwnas_cudnn_net *net);

#endif
