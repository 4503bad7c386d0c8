/* untrained.h: running a network that nobody has trained, node by node, for the zero-cost proxies.
 *
 * A device runs a folded graph from end to end. The proxies need what lies between: batch norms by
 * the statistics of the batch, activations inside, weights of their own. So a graph is walked here;
 * what costs time (nodes with multiply-accumulates) goes through the device, the rest through the
 * operators' own loops. */
#ifndef HWNAS_PREDICT_UNTRAINED_H
#define HWNAS_PREDICT_UNTRAINED_H

#include "base/rng.h"
#include "device/device.h"
#include "graph/op.h"

/* One standard normal number (Box and Muller 1958). */
double hwnas_rng_normal(hwnas_rng *rng);

/* What a walk tells of each node as soon as it has run; buffers are gone afterwards. */
typedef struct hwnas_untrained_visit {
    hwnas_device *device; /* NULL: plain loops */
    uint64_t seed;        /* of the weights: normal, with the deviation of `deviation` */
    /* Deviation of a weight with this many inputs to each of its outputs. */
    double (*deviation)(double fan_in);
    void *context;
    /* (optional) `input` is the node's first. */
    hwnas_status (*see)(void *context, const hwnas_graph *graph, const hwnas_node *node,
                        const float *input, const float *output);
    /* (optional) Sees the variances of a batch norm's channels. */
    void (*see_variances)(void *context, const double *variances, int64_t channels);
} hwnas_untrained_visit;

/* Runs a graph with one input (of float32) as training does: a batch norm takes mean and variance
 * of its channels from the batch, and has neither scale nor shift (which begin as 1 and 0); biases
 * are 0. HWNAS_E_UNSUPPORTED when the network has several inputs. */
HWNAS_CHECKED hwnas_status hwnas_untrained_walk(const hwnas_graph *graph, const float *input,
                                                const hwnas_untrained_visit *walk);

#endif
