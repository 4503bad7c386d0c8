/* op.h: what an operator is. One file in ops/ holds one operator whole: attributes, weights, shape,
 * MACs, ONNX spelling, and its meaning in plain C. op_list.h lists them. */
#ifndef HWNAS_GRAPH_OP_H
#define HWNAS_GRAPH_OP_H

#include "graph/graph.h"

typedef enum hwnas_attr_kind {
    HWNAS_ATTR_INT,    /* n = 1 */
    HWNAS_ATTR_INTS,   /* `count` integers; one given value is repeated, half of them mirrored;
                          count 0: a list of up to HWNAS_MAX_RANK */
    HWNAS_ATTR_BOOL,   /* ints[0] is 0 or 1 */
    HWNAS_ATTR_NUMBER, /* number */
} hwnas_attr_kind;

typedef struct hwnas_attr_row {
    const char *name; /* as written in a space; NULL ends the table */
    hwnas_attr_kind kind;
    int count;         /* INTS */
    bool is_required;  /* in a space */
    double fallback;   /* default, repeated for INTS */
    double low, high;  /* range, both included */
    const char *onnx;  /* ONNX attribute; NULL: known from the weights (e.g. output channels) */
    const char *help;
    bool onnx_is_rare; /* written only where it is not the fallback: older readers do not know it */
    int onnx_input; /* when ONNX takes the value as a constant input: which one, after all data and
                       weights, in the order of the rows; 0: an attribute */
    const double *onnx_fallback; /* NUMBER: ONNX's default where it is another; NULL: `fallback` */
    bool is_required_by_onnx;    /* ONNX has no default */
    const char *const *onnx_words; /* INT, BOOL: ONNX's words for them, value 0 first; NULL ends */
} hwnas_attr_row;

/* An ONNX attribute that our operator has no word for. */
typedef struct hwnas_onnx_row {
    const char *name;     /* NULL ends the table */
    hwnas_attr_kind kind; /* INT or NUMBER; INTS when `value` is the fallback */
    double value;         /* what it must be, each of INTS; written unless it is the fallback */
    double fallback;      /* ONNX's default */
    const char *text;     /* instead, a string that it must be, ONNX's default; never written */
    bool is_ignored;      /* has no effect at inference: any value will do; never written */
} hwnas_onnx_row;

/* The identity of an operator: HWNAS_OP_CONV. It is the index into hwnas_ops, and of tables that
 * have a row for each operator. What is kept in a file or hashed is the name. */
typedef enum hwnas_op_id {
#define OP(name, NAME) HWNAS_OP_##NAME,
#include "graph/op_list.h"
#undef OP
    HWNAS_N_OPS
} hwnas_op_id;

/* What an operator is to those who treat several alike. */
typedef enum hwnas_op_class {
    HWNAS_CLASS_OTHER,
    HWNAS_CLASS_ACTIVATION, /* of a unit: passes one side of zero and damps or saturates the other,
                               or saturates both */
    HWNAS_CLASS_ARITHMETIC, /* +, -, *, / of two tensors */
    HWNAS_CLASS_POOL,       /* of the windows of an image, or of all of it */
    HWNAS_CLASS_PRODUCT, /* with a kernel, input 1, and perhaps a bias; int8 has kernels for it */
    HWNAS_CLASS_QUANTIZATION /* floats to int8 and back */
} hwnas_op_class;

struct hwnas_op {
    hwnas_op_id id;
    hwnas_op_class class;
    const char *name; /* as written in a space */
    const char *onnx; /* ONNX operator; NULL: a layer that is made of other operators */
    int onnx_since;   /* the first opset in which it means this; 0: the first that is read */
    const char *help;
    const hwnas_attr_row *attrs;
    const hwnas_onnx_row *onnx_rows; /* (optional) */
    int min_inputs, max_inputs; /* data inputs, without weights */
    int min_weights, max_weights;
    bool may_compute_kernel; /* the first weight may be the network's input or a node's output */
    int n_statistics; /* how many of the last weights training does not learn: running means */
    bool commutes; /* inputs may change places */
    bool joins;    /* may join branches: add, mul, concat */
    bool is_elementwise; /* each value is computed of those at its place in the data inputs, which
                            are broadcast */
    bool keeps_zeros; /* zeros give zeros, at least without a bias */
    bool takes_integers; /* in a space, an input may hold whole numbers */
    bool is_epilogue;    /* kernels of convolutions and products end with it at no cost */
    bool is_spatial;     /* works on images: four dimensions, of which the last two are places */
    bool has_int8_kernel; /* engines that run ONNX have one for images, beside products' */
    bool is_common;       /* nearly every network has it: it tells nothing about one */
    bool is_internal; /* no word of the space language: inside of layers, or read from ONNX files */

    /* (optional) Makes a layer of other operators, whose nodes and weights are named after `node`,
     * and gives the last one's output; -1 when it is one plain node. `node` has its attributes and
     * inputs. */
    hwnas_status (*build)(int *out, hwnas_graph *graph, const hwnas_node *node);
    /* (optional) Creates the weights of a layer from its attributes and its data input, and appends
     * them to node->inputs (room for max_weights is there). */
    hwnas_status (*make_weights)(hwnas_graph *graph, hwnas_node *node);
    /* (optional) Says attributes in the one way that equal nodes share: an axis from the beginning,
     * the end of a slice as it is. What cannot be is left for `infer` to refuse. */
    void (*settle)(const hwnas_graph *graph, hwnas_node *node);
    /* (optional) Sets attributes that ONNX leaves to the weights' shapes (output
     * channels, kernel). */
    void (*read_weights)(const hwnas_graph *graph, hwnas_node *node);
    /* Shape of the output; HWNAS_E_INPUT says what does not fit. */
    hwnas_status (*infer)(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out);
    /* (optional) Multiply-accumulates; default 0. */
    int64_t (*macs)(const hwnas_graph *graph, const hwnas_node *node);
    /* The meaning, fp32, in plain loops with double sums: the truth that devices are held to. */
    void (*compute)(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output);
};

/* Values of attributes. */
static inline hwnas_attr hwnas_attr_int(int64_t value)
{
    return (hwnas_attr){.is_set = true, .n = 1, .ints = {value}};
}

static inline hwnas_attr hwnas_attr_number(double value)
{
    return (hwnas_attr){.is_set = true, .number = value};
}

/* NULL when there is none. */
const hwnas_op *hwnas_op_by_name(const char *name);
const hwnas_op *hwnas_op_by_onnx(const char *onnx);
/* The operators by their identities, and NULL at the end. */
extern const hwnas_op *const hwnas_ops[];

/* Attribute of a node by its name in a space; the name must exist. */
const hwnas_attr *hwnas_node_attr(const hwnas_node *node, const char *name);

/* Is it a node of this operator? NULL is none. */
static inline bool hwnas_node_is(const hwnas_node *node, hwnas_op_id id)
{
    return node && node->op->id == id;
}

static inline const hwnas_tensor *hwnas_node_input(const hwnas_graph *graph, const hwnas_node *node,
                                                   int i)
{
    return &graph->tensors[node->inputs[i]];
}

/* What a batch_norm whose other inputs are weights does to channel c: x * factors[c] + offsets[c].
 * Both have room for its channels. */
void hwnas_batch_norm_values(double *factors, double *offsets, const hwnas_graph *graph,
                             const hwnas_node *norm);

/* Does it read or make whole numbers? */
bool hwnas_node_is_whole(const hwnas_graph *graph, const hwnas_node *node);

static inline const hwnas_tensor *hwnas_node_output(const hwnas_graph *graph,
                                                    const hwnas_node *node)
{
    return &graph->tensors[node->output];
}

#endif
