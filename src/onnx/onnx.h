/* onnx.h: graph <-> ONNX bytes, through protobuf-c and the system's onnx.proto. Opset 17, IR 8.
 *
 * One serialised form serves export, import and the runner. For the runner weights need no values:
 * they are written as external data at the location "hwnas:seed" with the entries `seed` and
 * `init`, so both sides draw the same numbers. */
#ifndef HWNAS_ONNX_ONNX_H
#define HWNAS_ONNX_ONNX_H

#include "base/str.h"
#include "graph/graph.h"

typedef enum hwnas_onnx_weights {
    HWNAS_ONNX_VALUES, /* raw data: a file that anybody can run */
    HWNAS_ONNX_SEEDS,  /* seeds where there is no data: small, for the runner */
} hwnas_onnx_weights;

/* Bytes are yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_onnx_write(void **out, size_t *length, const hwnas_graph *graph,
                                            hwnas_onnx_weights weights);
/* Reads opset 7 and newer, fixed shapes, values of any type of number; a batch that is open
 * becomes 1. Dropout is kept, Identity is not; arithmetic with shapes is done. `name` stands in
 * messages. Operators, attributes and types outside of ours are HWNAS_E_UNSUPPORTED with the node's
 * name; broken bytes are HWNAS_E_INPUT. docs/operators.md lists what is read. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read(hwnas_graph **out, const char *name, const void *bytes,
                                           size_t length);
/* Reads a file, and values that lie in other files beside it (external data). With `skipped` a node
 * that we cannot compute is not a failure: it and what depends on it is left out, what is computed
 * last without it are the outputs, and `skipped` says a line for each such node. */
HWNAS_CHECKED hwnas_status hwnas_onnx_load(hwnas_graph **out, const char *path, hwnas_str *skipped);
/* The same; a batch that is open becomes `batch`. */
HWNAS_CHECKED hwnas_status hwnas_onnx_load_batch(hwnas_graph **out, const char *path, int batch,
                                                 hwnas_str *skipped);

#endif
