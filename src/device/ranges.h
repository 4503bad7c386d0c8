/* ranges.h: a graph of floats as one of bytes, with ranges that the device itself finds. */
#ifndef HWNAS_DEVICE_RANGES_H
#define HWNAS_DEVICE_RANGES_H

#include "device/device.h"
#include "graph/quantize_graph.h"

/* `n` random samples of all inputs, one behind the other, as hwnas_exec_options has them: between
 * -1 and 1, or whole numbers that the graph can look up. The graph's seed decides. `out` is yours
 * to free(). */
HWNAS_CHECKED hwnas_status hwnas_random_samples(float **out, const hwnas_graph *graph, size_t n);

/* By tensor of the graph: the least and the greatest value of those that are to be quantised, as
 * below; of others zero. `ranges` has a place for each tensor. */
HWNAS_CHECKED hwnas_status hwnas_device_ranges(hwnas_range *ranges, hwnas_device *device,
                                               const hwnas_graph *graph,
                                               const hwnas_exec_options *options,
                                               hwnas_quantize_form form);

/* A new graph, as hwnas_graph_quantize() makes them: the least and the greatest value that a tensor
 * takes, computed in fp32 on `device`, of the inputs that `options` gives, else of four random
 * ones, which the graph's seed decides. */
HWNAS_CHECKED hwnas_status hwnas_device_quantize(hwnas_graph **out, int **origin,
                                                 hwnas_device *device, const hwnas_graph *graph,
                                                 const hwnas_exec_options *options,
                                                 hwnas_quantize_form form);

/* A new graph that has in it what a precision makes of the network: of bytes for HWNAS_S8, with
 * packed weights for those that have few bits. `out` becomes NULL for the others. `graph` is
 * folded. */
HWNAS_CHECKED hwnas_status hwnas_device_in_precision(hwnas_graph **out, hwnas_device *device,
                                                     const hwnas_graph *graph,
                                                     const hwnas_exec_options *options);

#endif
