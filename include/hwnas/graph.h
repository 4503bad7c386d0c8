/* graph.h: a network as tensors and nodes: what devices and predictors read of it.
 *
 * Tensors and nodes are known by index; nodes are in topological order. The first dimension of
 * activations is the batch. Layout is as in ONNX: NCHW activations, OIHW weights. A graph that is
 * read changes nothing, so several threads may read it. */
#ifndef HWNAS_PUBLIC_GRAPH_H
#define HWNAS_PUBLIC_GRAPH_H

#include <hwnas.h>
#include <hwnas/space.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HWNAS_MAX_RANK = 8, HWNAS_MAX_NODE_INPUTS = 64 };

/* What a tensor's values are. All are kept and computed as floats, which hold whole numbers up to
 * 2^24 exactly, so buffers are alike everywhere; files say the type. */
typedef enum hwnas_dtype {
    HWNAS_FLOAT32,
    HWNAS_FLOAT64,
    HWNAS_FLOAT16,
    HWNAS_BFLOAT16,
    HWNAS_INT64, /* token numbers, indices, shapes */
    HWNAS_INT32,
    HWNAS_INT16,
    HWNAS_INT8,
    HWNAS_UINT64,
    HWNAS_UINT32,
    HWNAS_UINT16,
    HWNAS_UINT8,
    HWNAS_BOOL, /* 0 or 1 */
    HWNAS_N_DTYPES
} hwnas_dtype;

typedef enum hwnas_tensor_kind {
    HWNAS_TENSOR_ACTIVATION,
    HWNAS_TENSOR_INPUT,
    HWNAS_TENSOR_WEIGHT,
} hwnas_tensor_kind;

/* How the values of a weight that nobody trained are drawn. Values come from a PCG stream named by
 * the tensor's `seed`, so two processes agree on them without sending them. */
typedef enum hwnas_init {
    HWNAS_INIT_FAN_IN,    /* uniform of variance 2 / fan-in, He et al. 2015, eq. 10; fan-in is the
                             product of all dimensions but the first */
    HWNAS_INIT_FAN_FIRST, /* the same where the first dimension is the fan-in: inputs x outputs */
    HWNAS_INIT_SMALL,     /* uniform in [-0.1, 0.1): biases, means */
    HWNAS_INIT_NEAR_ONE,  /* uniform in [0.8, 1.2): scales, variances */
    HWNAS_INIT_ZERO,      /* constants */
    HWNAS_INIT_ONE,
    HWNAS_N_INITS
} hwnas_init;

/* Values of a weight as whole numbers of a byte; of a matrix perhaps with scales and zero points,
 * by (number - zero) * scale. Borrowed by the graph. */
typedef struct hwnas_codes {
    const int8_t *numbers; /* NULL: the weight has none */
    const float
        *scales;        /* one for each `block` numbers along `axis`; NULL: the numbers are meant */
    const float *zeros; /* as many; NULL: 0 */
    int axis;           /* 0 or 1 */
    int64_t block;
} hwnas_codes;

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
    const float *data; /* WEIGHT: given values, borrowed by the graph; NULL: `codes`, or if those
                          are none drawn from the seed */
    hwnas_codes codes; /* WEIGHT without data */
} hwnas_tensor;

/* Value of one attribute, as docs/search-spaces.md lists them for each operator: integers or a
 * number. */
typedef struct hwnas_attr {
    bool is_set;
    int n; /* how many integers; 0 or 1 where it says yes or no */
    int64_t ints[HWNAS_MAX_RANK];
    double number;
} hwnas_attr;

typedef struct hwnas_op hwnas_op;
typedef struct hwnas_arena hwnas_arena;

typedef struct hwnas_node {
    const char *name; /* path of templates and layers, unique: "stage2/mbconv_1/conv" */
    const hwnas_op *op;
    hwnas_attr *attrs;           /* hwnas_node_find_attr() */
    int n_inputs, n_data_inputs; /* own weights come after the data, which may be weights too */
    int *inputs;
    int output;
    uint64_t prefix_hash; /* of "NAME." while weights are made, whose seeds go on from it; or 0 */
} hwnas_node;

typedef struct hwnas_graph {
    hwnas_arena *arena; /* that everything lives in */
    const char *name;
    uint64_t seed; /* of the weights */
    size_t n_tensors, tensor_capacity;
    hwnas_tensor *tensors;
    size_t n_nodes, node_capacity;
    hwnas_node *nodes;
    size_t n_inputs, n_outputs;
    int *inputs, *outputs;
    size_t n_absent;     /* inputs of an ONNX file without values in the shape that is given */
    const char **absent; /* their names: they are no tensors */
    /* Lines about values of an ONNX file that are not what its author expects, such as NaN; NULL:
     * there are none. */
    const char *doubts;
} hwnas_graph;

/* Builds the network of an architecture. What cannot be built is HWNAS_E_INPUT at the place of the
 * layer. Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_graph_build(hwnas_graph **out, const hwnas_arch *arch,
                                                       int batch);
/* One that shares nothing with the graph that is given. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_graph_copy(hwnas_graph **out, const hwnas_graph *graph);
/* A new graph with each BatchNorm that alone follows a convolution, perhaps behind reshapes and
 * transposes, folded into its weights and bias, without sums with zeros, dropout and nodes that no
 * output needs; this is what is deployed, so it is what devices compile. Weights so changed carry
 * data. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_graph_fold(hwnas_graph **out, const hwnas_graph *graph);
HWNAS_API void hwnas_graph_free(hwnas_graph *graph); /* accepts NULL */

HWNAS_API void hwnas_graph_costs(hwnas_costs *out, const hwnas_graph *graph); /* of its batch */

HWNAS_API int64_t hwnas_tensor_count(const hwnas_tensor *tensor); /* elements */
HWNAS_API int64_t hwnas_tensor_bytes(const hwnas_tensor *tensor); /* as float */
/* Fills `out` with the weight's values: the given data or codes, or drawn from its seed. */
HWNAS_API void hwnas_tensor_fill(const hwnas_tensor *tensor, float *out);

/* The operator's name as written in a space, "conv". Static. */
HWNAS_API const char *hwnas_node_operator(const hwnas_node *node);
/* An attribute by its name in a space, "stride"; NULL: the operator has none of that name. */
HWNAS_API const hwnas_attr *hwnas_node_find_attr(const hwnas_node *node, const char *name);
HWNAS_API int64_t hwnas_node_macs(const hwnas_graph *graph, const hwnas_node *node);
/* Computes one node by plain loops, the meaning that every device is held to: slow. A buffer for
 * each of node->inputs, weights included, and one for its output. For what a device has no better
 * way to do. */
HWNAS_API void hwnas_node_compute(const hwnas_graph *graph, const hwnas_node *node,
                                  const float *const *operands, float *output);

#ifdef __cplusplus
}
#endif
#endif
