/* onednn_exec.h: a compiled graph, and what is known while it is compiled. */
#ifndef HWNAS_DEVICE_ONEDNN_ONEDNN_EXEC_H
#define HWNAS_DEVICE_ONEDNN_ONEDNN_EXEC_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn.h"
#include "device/onednn/source.h"
#include "device/onednn/onednn_steps.h"

/* An output that is an input, a weight or another output as well. */
typedef struct onednn_copy {
    size_t output; /* which of the graph's */
    int from;
    size_t bytes;
} onednn_copy;

typedef struct onednn_exec {
    hwnas_exec base;
    onednn_device with;          /* the device, with our scratch memory */
    onednn_device alone;         /* the same with one thread, for steps that others would not pay */
    const onednn_device *device; /* `with` */
    hwnas_onednn_scratch scratch;
    hwnas_arena *arena;
    size_t n_steps, n_tensors, n_inputs, n_outputs, n_copies;
    hwnas_onednn_step *steps;     /* all of them from the start, empty until compiled */
    hwnas_exec_step *about;       /* what is told of each */
    dnnl_graph_tensor_t *tensors; /* by index in the graph; NULL: no step reads or writes it */
    int *inputs, *outputs;        /* of the graph; -1: an output that is copied */
    onednn_copy *copies;
    void *weights, *activations;
    size_t weight_bytes, activation_bytes;
} onednn_exec;

/* What is needed only while compiling. */
typedef struct onednn_compiler {
    onednn_exec *exec;
    const hwnas_onednn_source *source;
    const hwnas_graph *graph; /* the source's */
    hwnas_onednn_groups groups;
    bool *is_own;     /* by node: a step of ours runs it */
    bool *is_refused; /* by node: no root of a group; NULL: there are no groups */
    dnnl_graph_graph_t lowered;
    size_t n_partitions;
    dnnl_graph_partition_t *partitions;
    dnnl_graph_logical_tensor_t *described; /* by tensor: as it is laid out; empty: not yet */
    bool *is_output;                        /* by tensor: the caller's memory */
    bool *is_read;                          /* by a step or a copy */
    size_t *offset;                         /* by tensor: in the activations or in the weights */
} onednn_compiler;

/* Sorts the outputs: each is written by a step, into the caller's buffer, or copied when all is
 * done. */
void hwnas_onednn_sort_outputs(onednn_compiler *c);
/* Takes the memory and binds every tensor that a step reads or writes to its place in it. */
HWNAS_CHECKED hwnas_status hwnas_onednn_bind(onednn_compiler *c);

#endif
