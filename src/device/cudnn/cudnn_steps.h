/* cudnn_steps.h: what a run of a graph on a GPU is made of.
 *
 * cut.c cuts a graph into steps, each of one kind: operators that cuDNN runs as one plan, one node
 * that a kernel of ours runs, a recurrent layer, or a view, which is nothing at all. Then every
 * tensor has its layout, every step its workspace, and every tensor its place in memory. All of
 * this is data, made without a GPU and looked at by tests; `run` alone needs one. */
#ifndef HWNAS_DEVICE_CUDNN_STEPS_H
#define HWNAS_DEVICE_CUDNN_STEPS_H

#include "device/cudnn/cuda_device.h"

/* As values lie in the GPU's memory. */
typedef enum hwnas_cudnn_type {
    HWNAS_CUDNN_F32,
    HWNAS_CUDNN_F16,
    HWNAS_CUDNN_BF16,
    HWNAS_CUDNN_S8,
    HWNAS_CUDNN_S32,
    HWNAS_CUDNN_N_TYPES
} hwnas_cudnn_type;

const char *hwnas_cudnn_type_name(hwnas_cudnn_type type); /* "f16" */
size_t hwnas_cudnn_type_size(hwnas_cudnn_type type);      /* bytes of one value */

/* Pieces of the GPU's memory. */
typedef enum hwnas_cudnn_memory {
    HWNAS_CUDNN_NOWHERE,     /* exists inside of a step alone */
    HWNAS_CUDNN_WEIGHTS,     /* filled once */
    HWNAS_CUDNN_ACTIVATIONS, /* places shared by tensors that never live together; cudnn_net.place */
    HWNAS_CUDNN_INPUTS,      /* what the caller gave, fp32 in the graph's layout, copied as it is */
    HWNAS_CUDNN_OUTPUTS,     /* what the caller gets, fp32 in the graph's layout */
    HWNAS_CUDNN_N_MEMORIES
} hwnas_cudnn_memory;

/* A tensor as it lies in memory. Its dimensions are the graph's (images: N, C, H, W), the layout is
 * in the strides, which count elements. A slice of another tensor or another shape of it (a view)
 * has that one's memory: value i is element first + sum(index * stride) of the root's. */
typedef struct hwnas_cudnn_tensor {
    const char *name;
    hwnas_cudnn_type type;
    int rank;
    int64_t dims[HWNAS_MAX_RANK], strides[HWNAS_MAX_RANK];
    int root;      /* whose memory it is: itself, unless it is a view */
    int64_t first; /* of a view: the element of the root where it begins */
    int source;    /* tensor of the graph whose values these are */
    /* Of a root: */
    hwnas_cudnn_memory memory;
    size_t bytes, offset; /* in that memory */
} hwnas_cudnn_tensor;

typedef struct hwnas_cudnn_net hwnas_cudnn_net;
typedef struct hwnas_cudnn_step hwnas_cudnn_step;

/* Where the pieces of memory are while a run is enqueued; addresses of the GPU's. */
typedef struct hwnas_cudnn_launch {
    char *memories[HWNAS_CUDNN_N_MEMORIES];
    char *workspace; /* as large as the largest step wants */
    void *stream;    /* CUstream */
    void *handle;    /* cudnnHandle_t, of that stream */
} hwnas_cudnn_launch;

typedef struct hwnas_cudnn_kind {
    const char *name; /* what computes it, in a word or two */
    /* Makes all that a run needs and a machine without a GPU can make: plans, compiled kernels;
     * says how much workspace a run takes. On failure what was made is in the state. An operator
     * that cannot be had in this way: HWNAS_E_UNSUPPORTED, after which the cutter tries another. */
    hwnas_status (*compile)(hwnas_cudnn_step *step, hwnas_cudnn_net *net);
    /* (optional) With the GPU, weights in place, nothing running: what `compile` could not. */
    hwnas_status (*load)(hwnas_cudnn_step *step, hwnas_cudnn_net *net,
                         const hwnas_cudnn_launch *launch);
    /* Enqueues the step; NULL: there is nothing to do. */
    hwnas_status (*run)(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net,
                        const hwnas_cudnn_launch *launch);
    void (*free)(hwnas_cudnn_step *step); /* of the state, which may be NULL */
} hwnas_cudnn_kind;

struct hwnas_cudnn_step {
    const hwnas_cudnn_kind *kind;
    const char *name;      /* of its first node or what it copies, for messages */
    hwnas_exec_step about; /* its nodes, none for a conversion */
    /* Tensors of the net. With one node: its inputs in the node's order (first, for kernels: any
     * strides), the output. A conversion: one each, of equal dimensions. */
    int n_inputs, n_outputs;
    int *inputs, *outputs;
    size_t workspace; /* bytes while it runs */
    void *state;      /* the kind's */
};

/* One plan of cuDNN's; engine.c. Its state is a hwnas_cudnn_operation, see operation.h. */
extern const hwnas_cudnn_kind hwnas_cudnn_engine;
/* One product by cuBLAS, in exact fp32; cublas.h. Its state is the same. */
extern const hwnas_cudnn_kind hwnas_cublas;
/* Kernels of ours for one node, or without a node for a conversion: input and output have the same
 * dimensions, but other types or strides (also a slice of a concatenation). Tensors of whole
 * numbers are fp32 in every precision. */
extern const hwnas_cudnn_kind hwnas_cudnn_kernel;
/* One `lstm_core` or `gru_core`, whose tensors are plain. */
extern const hwnas_cudnn_kind hwnas_cudnn_rnn;
/* Nothing: the output is a view of the first input. */
extern const hwnas_cudnn_kind hwnas_cudnn_view;

/* A compiled graph; the executable of both devices. */
struct hwnas_cudnn_net {
    hwnas_exec base;
    hwnas_cuda_device *device;
    hwnas_precision precision;
    bool is_ahead; /* its plans are made for later, beside a network that runs */
    hwnas_arena *arena;
    hwnas_graph *graph; /* a copy of our own; steps count its nodes */
    size_t n_tensors, tensor_capacity;
    hwnas_cudnn_tensor *tensors; /* the graph's first, by its numbers; then converted ones */
    size_t n_steps, step_capacity;
    hwnas_cudnn_step *steps; /* in the order of running */
    hwnas_exec_step *about;  /* what is told of each that does something */
    size_t n_about;
    int *inputs, *outputs; /* tensors that hold the graph's: fp32, plain */
    size_t memory_bytes[HWNAS_CUDNN_N_MEMORIES];
    size_t workspace_bytes; /* the largest of the steps' */
    size_t step_bytes;      /* that steps took for themselves when they were loaded */
    size_t n_lookups, n_hits; /* of plans; see hwnas_footprint */
    void *live;             /* what runs it: captured graph, memory; of cuda.c */
};

/* The tensor's first value while `launch` holds. */
char *hwnas_cudnn_address(const hwnas_cudnn_net *net, const hwnas_cudnn_launch *launch, int tensor);
/* Row-major strides of `rank` dimensions. */
void hwnas_cudnn_plain_strides(int64_t *out, int rank, const int64_t *dims);
bool hwnas_cudnn_is_plain(const hwnas_cudnn_tensor *tensor); /* strides of dimensions of 1 aside */
int64_t hwnas_cudnn_count(const hwnas_cudnn_tensor *tensor); /* values */
/* The values of a weight as they lie in memory: converted to its type and strides. `out` has the
 * tensor's bytes. */
void hwnas_cudnn_fill(void *out, const hwnas_cudnn_net *net, int tensor);

/* Appends a step without a state. `name` is borrowed; nodes and tensors are copied. */
hwnas_cudnn_step *hwnas_cudnn_add_step(hwnas_cudnn_net *net, const hwnas_cudnn_kind *kind,
                                       const char *name, int n_nodes, const int *nodes,
                                       int n_inputs, const int *inputs, int output);

#endif
