/* graph.h: a network as tensors and nodes, in topological order.
 *
 * Everything lives in the graph's arena. Tensors and nodes are known by index. The first dimension
 * of activations is the batch. Layout is as in ONNX: NCHW activations, OIHW weights. */
#ifndef HWNAS_GRAPH_GRAPH_H
#define HWNAS_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "graph/dtype.h"

enum { HWNAS_MAX_RANK = 8, HWNAS_MAX_NODE_INPUTS = 64 };

typedef enum hwnas_tensor_kind {
    HWNAS_TENSOR_ACTIVATION,
    HWNAS_TENSOR_INPUT,
    HWNAS_TENSOR_WEIGHT,
} hwnas_tensor_kind;

/* How the values of a weight that nobody trained are drawn. Values come from a PCG stream named by
 * the tensor's `seed`, so two processes agree on them without sending them. */
typedef enum hwnas_init {
    HWNAS_INIT_FAN_IN, /* uniform of variance 2 / fan-in, He et al. 2015, eq. 10; fan-in is the
                          product of all dimensions but the first */
    HWNAS_INIT_FAN_FIRST, /* the same where the first dimension is the fan-in: inputs x outputs */
    HWNAS_INIT_SMALL,  /* uniform in [-0.1, 0.1): biases, means */
    HWNAS_INIT_NEAR_ONE, /* uniform in [0.8, 1.2): scales, variances */
    HWNAS_INIT_ZERO,     /* constants */
    HWNAS_INIT_ONE,
    HWNAS_N_INITS
} hwnas_init;

typedef struct hwnas_tensor {
    const char *name; /* unique in the graph */
    hwnas_tensor_kind kind;
    hwnas_dtype dtype;
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
    int producer;      /* node, or -1 */
    bool is_parameter; /* a weight that training would learn (a running mean is not one) */
    hwnas_init init;   /* WEIGHT without data */
    uint64_t seed;     /* WEIGHT without data */
    const float *data; /* WEIGHT: given values, borrowed by the graph; NULL: drawn from the seed */
} hwnas_tensor;

/* Value of one attribute, as its row in the operator's table says: integers or a number. */
typedef struct hwnas_attr {
    bool is_set;
    int n; /* how many integers */
    int64_t ints[HWNAS_MAX_RANK];
    double number;
} hwnas_attr;

typedef struct hwnas_op hwnas_op;

typedef struct hwnas_node {
    const char *name; /* path of templates and layers, unique: "stage2/mbconv_1/conv" */
    const hwnas_op *op;
    hwnas_attr *attrs; /* one for each row of op->attrs */
    int n_inputs, n_data_inputs; /* own weights come after the data, which may be weights too */
    int *inputs;
    int output;
    uint64_t prefix_hash; /* of "NAME." while weights are made, whose seeds go on from it; or 0 */
} hwnas_node;

typedef struct hwnas_graph {
    hwnas_arena *arena;
    const char *name;
    uint64_t seed; /* of the weights */
    size_t n_tensors, tensor_capacity;
    hwnas_tensor *tensors;
    size_t n_nodes, node_capacity;
    hwnas_node *nodes;
    size_t n_inputs, n_outputs;
    int *inputs, *outputs;
} hwnas_graph;

hwnas_graph *hwnas_graph_new(const char *name, uint64_t seed);
void hwnas_graph_free(hwnas_graph *graph);

/* Each returns the tensor's index. Dimensions are checked: positive, and the tensor's size within
 * 2^40 elements, else HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_graph_add_input(int *out, hwnas_graph *graph, const char *name,
                                                 hwnas_dtype dtype, int rank, const int64_t *dims);
HWNAS_CHECKED hwnas_status hwnas_graph_add_weight(int *out, hwnas_graph *graph, const char *name,
                                                  int rank, const int64_t *dims, hwnas_init init,
                                                  bool is_parameter);
/* A weight of a layer that is being made, named "NODE.SUFFIX", as the node's next input. */
HWNAS_CHECKED hwnas_status hwnas_node_add_weight(hwnas_graph *graph, hwnas_node *node,
                                                 const char *suffix, int rank, const int64_t *dims,
                                                 hwnas_init init, bool is_parameter);
/* A weight of given values, which nothing learns: a factor, an offset. `rank` 0 is a scalar. The
 * values are copied. */
HWNAS_CHECKED hwnas_status hwnas_graph_add_constant(int *out, hwnas_graph *graph, const char *name,
                                                    int rank, const int64_t *dims,
                                                    const float *values);
/* Appends a node: checks the number of inputs, fills in defaults of attributes, infers the shape of
 * the output. `attrs` has one entry for each row of op->attrs (NULL: all defaults). With
 * `make_weights` the layer's weights are created from its attributes, and a layer that is made of
 * several operators becomes several nodes; without, `inputs` has the weights and there is one
 * node. */
HWNAS_CHECKED hwnas_status hwnas_graph_add_node(int *out_tensor, hwnas_graph *graph,
                                                const hwnas_op *op, const char *name,
                                                const hwnas_attr *attrs, int n_inputs,
                                                const int *inputs, bool make_weights);
void hwnas_graph_add_output(hwnas_graph *graph, int tensor);
/* Whole numbers that a graph's input may hold: 0 to the result less one. As many as the smallest
 * table has that is looked up with it; 2 where it is none's index. 0 where it holds no whole
 * numbers. */
int64_t hwnas_graph_input_below(const hwnas_graph *graph, int tensor);

bool hwnas_same_shape(const hwnas_tensor *a, const hwnas_tensor *b);
int64_t hwnas_tensor_count(const hwnas_tensor *tensor); /* elements */
int64_t hwnas_tensor_bytes(const hwnas_tensor *tensor);
/* "1x3x224x224" into a static-size buffer. */
typedef struct hwnas_shape_text {
    char s[96];
} hwnas_shape_text;
hwnas_shape_text hwnas_tensor_shape(const hwnas_tensor *tensor);

/* Fills `out` with the weight's values: the given data, or drawn from its seed. */
void hwnas_tensor_fill(const hwnas_tensor *tensor, float *out);

/* The graph's costs; all of its batch. */
void hwnas_graph_costs(hwnas_costs *out, const hwnas_graph *graph);
int64_t hwnas_node_macs(const hwnas_graph *graph, const hwnas_node *node);
/* Of weights that several nodes share, the first has them. */
int64_t hwnas_node_params(const hwnas_graph *graph, const hwnas_node *node);

/* Canonical hash of what the network computes with unknown weights: operators, attributes, shapes
 * and wiring; names, the order of commuting inputs, sums with `zero` and nodes that no output needs
 * do not matter. 32 hex digits. */
typedef struct hwnas_digest {
    char hex[33];
} hwnas_digest;
hwnas_digest hwnas_graph_digest(const hwnas_graph *graph);

/* A new graph with each BatchNorm that follows a convolution alone folded into its weights and
 * bias, without sums with zeros, dropout and nodes that no output needs; this is what is deployed,
 * so it is what devices compile. Weights so changed carry data. */
HWNAS_CHECKED hwnas_status hwnas_graph_fold(hwnas_graph **out, const hwnas_graph *graph);

#endif
