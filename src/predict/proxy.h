/* proxy.h: zero-cost proxies: scores of a network that nobody has trained.
 *
 * A proxy ranks, and no more: its score has no unit of accuracy and claims no deviation. Each is a
 * function of the graph and a seed; files proxy_NAME.c hold those with substance. */
#ifndef HWNAS_PREDICT_PROXY_H
#define HWNAS_PREDICT_PROXY_H

#include "device/device.h"
#include "graph/graph.h"

typedef struct hwnas_proxy {
    const char *name; /* "naswot"; NULL ends the table */
    const char *help;
    int batch; /* of the graph that it wants */
    /* `device` runs what costs time; NULL: plain loops. Greater is better. */
    hwnas_status (*score)(double *out, const hwnas_graph *graph, hwnas_device *device,
                          uint64_t seed);
} hwnas_proxy;

extern const hwnas_proxy hwnas_proxies[];

/* proxy_naswot.c: log-determinant of the kernel of Hamming distances between the inputs' patterns
 * of active ReLUs. Mellor et al., "Neural Architecture Search without Training", ICML 2021, eq. 2.
 */
HWNAS_CHECKED hwnas_status hwnas_proxy_naswot(double *out, const hwnas_graph *graph,
                                              hwnas_device *device, uint64_t seed);
/* proxy_zen.c: log of the features' change by a small change of a Gaussian input, corrected for
 * what batch norms take away. Lin et al., "Zen-NAS", ICCV 2021, algorithm 1. */
HWNAS_CHECKED hwnas_status hwnas_proxy_zen(double *out, const hwnas_graph *graph,
                                           hwnas_device *device, uint64_t seed);
/* proxy_synflow.c: log of the sum over all weights of |w dR/dw|, where R is the sum of the outputs
 * of the linearised network with absolute weights for an input of ones. Tanaka et al., "Pruning
 * neural networks without any data by iteratively conserving synaptic flow", NeurIPS 2020, eq. 2;
 * as a score of networks, without batch norms: Abdelfattah et al., ICLR 2021. */
HWNAS_CHECKED hwnas_status hwnas_proxy_synflow(double *out, const hwnas_graph *graph,
                                               hwnas_device *device, uint64_t seed);
/* |w| of a weight as synflow draws it: uniform below 1 / sqrt(fan-in); biases 0. */
void hwnas_synflow_weights(float *out, const hwnas_graph *graph, int tensor, uint64_t seed);

#endif
