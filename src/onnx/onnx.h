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
/* A file with its values, whole or not at all. */
HWNAS_CHECKED hwnas_status hwnas_onnx_write_file(const char *path, const hwnas_graph *graph);
/* Reads opset 7 and newer, fixed shapes, values of any type of number; a batch that is open
 * becomes 1. Dropout is kept, Identity is not; arithmetic with shapes is done. `name` stands in
 * messages. Operators, attributes and types outside of ours are HWNAS_E_UNSUPPORTED with the node's
 * name; broken bytes are HWNAS_E_INPUT. docs/operators.md lists what is read. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read(hwnas_graph **out, const char *name, const void *bytes,
                                           size_t length);
/* The same of bytes by malloc(), which are freed, and *bytes is NULL then, before there are as many
 * again; after a failure they may still be there, and are the caller's. */
HWNAS_CHECKED hwnas_status hwnas_onnx_take(hwnas_graph **out, const char *name, void **bytes,
                                           size_t length);
/* Reads a file, and values that lie in other files beside it (external data). With `skipped` a node
 * that we cannot compute is not a failure: it and what depends on it is left out, what is computed
 * last without it are the outputs, and `skipped` says a line for each such node. */
HWNAS_CHECKED hwnas_status hwnas_onnx_load(hwnas_graph **out, const char *path, hwnas_str *skipped);
/* Tells whoever listens of the graph's `doubts`. */
void hwnas_onnx_tell_doubts(const hwnas_graph *graph, const char *name);
/* What open dimensions become. */
typedef struct hwnas_onnx_shape {
    const char *input; /* or with a rank of 1 the name of open dimensions, where no input has it */
    int rank;
    int64_t dims[HWNAS_MAX_RANK]; /* those that the file fixes are as there */
} hwnas_onnx_shape;

/* The shape of samples of an input. */
typedef struct hwnas_onnx_sample {
    const char *input; /* NULL: of the first */
    int rank;
    int64_t dims[HWNAS_MAX_RANK]; /* the first counts samples, if it is the same of all */
} hwnas_onnx_sample;

typedef struct hwnas_onnx_shapes {
    int batch; /* that one which is open becomes where no shape says it; 0: 1 */
    size_t n;  /* of inputs of which all dimensions are said; open ones of the same name elsewhere
                  become the same, and sums of such names; 0: an input without values */
    const hwnas_onnx_shape *list;
    size_t n_samples; /* what they say of open dimensions holds where nothing above does, but for
                         the batch, which is theirs where their first dimensions differ */
    const hwnas_onnx_sample *samples;
} hwnas_onnx_shapes;

/* The batch that a network has come to have. */
typedef struct hwnas_onnx_batch {
    int64_t length; /* where the file fixes all: the first dimension of the first input */
    bool is_fixed;  /* by the file */
} hwnas_onnx_batch;

/* Reads a file as above. The batch is the dimension that is called "batch", "N" and the like, else
 * the first of an input, or the second of a sequence's three. HWNAS_E_INPUT, with the shape in the
 * file: a shape does not fit it, or another dimension is open. */
HWNAS_CHECKED hwnas_status hwnas_onnx_load_shaped(hwnas_graph **out, hwnas_onnx_batch *batch,
                                                  const char *path,
                                                  const hwnas_onnx_shapes *shapes,
                                                  hwnas_str *skipped);
/* The same; a batch that is open becomes `batch`, other dimensions must be fixed. */
HWNAS_CHECKED hwnas_status hwnas_onnx_load_batch(hwnas_graph **out, const char *path, int batch,
                                                 hwnas_str *skipped);

#endif
