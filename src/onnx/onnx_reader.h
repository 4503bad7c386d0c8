/* onnx_reader.h: a file that is being read, and what the files of the reader lend to each other. */
#ifndef HWNAS_ONNX_ONNX_READER_H
#define HWNAS_ONNX_ONNX_READER_H

#include <string.h>

#include "onnx/onnx_priv.h"

enum { HWNAS_ONNX_NOT_MADE = -1 };

/* What a name stands for. */
typedef struct hwnas_onnx_named {
    const char *name;
    const Onnx__TensorProto *constant; /* an initialiser; else NULL */
    const Onnx__ValueInfoProto *input; /* an input of the graph; else NULL */
    bool is_extra;                     /* a second output of a node, such as Dropout's mask */
    bool is_read;                      /* by a node, or an output of the graph or a branch */
    bool is_missing;                   /* of a node that was left out */
    bool is_empty;                     /* known to have no values, which no tensor of ours can be */
    int empty_rank;                    /* of such a one, with its ... */
    const int64_t *empty_dims;         /* ... dimensions */
    struct hwnas_onnx_named *same_as;  /* what an Identity passed on; else NULL */
    int tensor;                        /* in the graph, once made */
} hwnas_onnx_named;

/* An open dimension's name, and what it becomes. */
typedef struct hwnas_onnx_bound {
    const char *name;
    int64_t value;
} hwnas_onnx_bound;

/* "node 'conv1' (Conv)", for messages. */
typedef struct hwnas_onnx_text {
    char s[160];
} hwnas_onnx_text;

typedef struct hwnas_onnx_reader {
    const Onnx__GraphProto *from;
    hwnas_graph *graph;
    const char *folder; /* of the file; NULL: none */
    int batch;          /* that one which is open becomes; 0: 1 */
    const hwnas_onnx_shapes *shapes; /* what the caller says of inputs; NULL: nothing */
    size_t n_bound;
    hwnas_onnx_bound *bound; /* open dimensions that follow from it */
    const char *batch_name;  /* of the open dimension that is called the batch; NULL: none is */
    bool samples_are_whole;  /* those of `shapes`: their first dimension counts none */
    int64_t own_batch;       /* what the open batch has become; 0: none is open */
    int64_t first_length;    /* of the first input */
    int64_t opset;
    hwnas_str *skipped; /* what was left out, a line for each; NULL: nothing may be */
    size_t n_left_out;  /* nodes, with those that depend on such ... */
    size_t n_products_left_out; /* ... and how many of them multiply */
    size_t n_random;            /* nodes whose values were drawn at random ... */
    hwnas_onnx_text first_random; /* ... and the first of them */
    size_t n_values;
    hwnas_onnx_named *values; /* sorted by name */
    size_t n_node_names;
    const char **node_names; /* sorted */
} hwnas_onnx_reader;

hwnas_onnx_text hwnas_onnx_describe(const Onnx__NodeProto *node);
HWNAS_CHECKED hwnas_status hwnas_onnx_unsupported(const Onnx__NodeProto *node,
                                                  const char *attribute, const char *what);

static inline bool is_empty(const char *text)
{
    return !text || !*text;
}

/* Whether the operator is one of ONNX's own. */
static inline bool hwnas_onnx_is_standard(const Onnx__NodeProto *node)
{
    return is_empty(node->domain) || !strcmp(node->domain, "ai.onnx");
}

/* Whether a tensor is a kernel of bytes, dequantized, or one that is rounded to bfloat16: it stays
 * one, where others are computed while the file is read. */
bool hwnas_onnx_is_low_kernel(const hwnas_onnx_reader *r, int tensor);

/* ---- onnx_read_names.c ---- */

/* Looks through the file's graph: what its values and nodes are called. */
HWNAS_CHECKED hwnas_status hwnas_onnx_collect_values(hwnas_onnx_reader *r);
void hwnas_onnx_collect_node_names(hwnas_onnx_reader *r);
/* Whether the node has an output `i` that somebody reads. */
bool hwnas_onnx_is_read(const hwnas_onnx_reader *r, const Onnx__NodeProto *node, size_t i);
/* NULL when nothing has the name. */
hwnas_onnx_named *hwnas_onnx_find_value(const hwnas_onnx_reader *r, const char *name);
/* The same, of what an Identity passed on what it passed on. */
hwnas_onnx_named *hwnas_onnx_find_origin(const hwnas_onnx_reader *r, const char *name);
/* What `who` reads under `name`: a constant, or a tensor that is made already. */
HWNAS_CHECKED hwnas_status hwnas_onnx_resolve(hwnas_onnx_named **out, const hwnas_onnx_reader *r,
                                              const char *name, const char *who);
/* Makes `name`, an output of `who`, another name of what `from` stands for: a constant, a tensor
 * that is made already, or something without values. */
HWNAS_CHECKED hwnas_status hwnas_onnx_rename(hwnas_onnx_reader *r, const char *name,
                                             const char *from, const char *who);
/* What the node is called in the graph. */
const char *hwnas_onnx_node_name(const hwnas_onnx_reader *r, const Onnx__NodeProto *node);

/* ---- onnx_read_inputs.c ---- */

/* What open dimensions become, before the first input is read. */
HWNAS_CHECKED hwnas_status hwnas_onnx_settle_shapes(hwnas_onnx_reader *r);
HWNAS_CHECKED hwnas_status hwnas_onnx_read_input(hwnas_onnx_reader *r,
                                                 const Onnx__ValueInfoProto *from);

/* ---- onnx_read_constants.c ---- */

/* The seed that a file says in decimal digits. */
HWNAS_CHECKED hwnas_status hwnas_onnx_parse_seed(uint64_t *out, const char *text);
/* Makes a constant a weight of the graph, if it is not yet one. */
HWNAS_CHECKED hwnas_status hwnas_onnx_make_weight(hwnas_onnx_reader *r, hwnas_onnx_named *value,
                                                  bool is_parameter);
/* The same for one that `node` reads as its input `i`: a matrix of bytes that it multiplies by a
 * scale for each block of values stays bytes. */
HWNAS_CHECKED hwnas_status hwnas_onnx_make_input(hwnas_onnx_reader *r, hwnas_onnx_named *value,
                                                 bool is_parameter, const hwnas_op *op, size_t i,
                                                 const Onnx__NodeProto *node);
/* Makes a tensor that is computed of nothing but known values a weight of known values; others
 * stay. */
HWNAS_CHECKED hwnas_status hwnas_onnx_fold(hwnas_onnx_reader *r, int tensor);
/* The tensor `name` when its values are known, else NULL. */
HWNAS_CHECKED hwnas_status hwnas_onnx_constant(const hwnas_tensor **out, hwnas_onnx_reader *r,
                                               const char *name, const char *who);

/* ---- onnx_read_attrs.c ---- */

/* One entry for each row of the operator's table, in the graph's arena. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read_attrs(hwnas_attr **out, hwnas_onnx_reader *r,
                                                 const hwnas_op *op, const Onnx__NodeProto *node);
/* A whole number as it was meant: 2^63 - 1 for "to the end" is not a float. */
int64_t hwnas_onnx_whole(double value);

/* ---- onnx_read.c ---- */

/* Sees that a tensor may be the weight `i` of an operator, from 0, and makes it a constant where it
 * can be: an operator's weights are known, but for a kernel of bytes, and one that may
 * be computed. */
HWNAS_CHECKED hwnas_status hwnas_onnx_take_weight(hwnas_onnx_reader *r, const hwnas_op *op, int i,
                                                  int tensor);

/* ---- onnx_tensor.c ---- */

/* The type of `what` ("input", "constant") called `name`. */
HWNAS_CHECKED hwnas_status hwnas_onnx_dtype(hwnas_dtype *out, int32_t type, const char *what,
                                            const char *name);
size_t hwnas_onnx_size(hwnas_dtype dtype); /* bytes of one value in a file */
/* The `count` values of a tensor, in the arena. `folder`: where a file beside the model lies; NULL:
 * nowhere. */
HWNAS_CHECKED hwnas_status hwnas_onnx_values(float **out, hwnas_arena *arena,
                                             const Onnx__TensorProto *from, int64_t count,
                                             const char *folder);
/* The same of a tensor of signed or unsigned bytes, as they are. They lie in the file or in
 * `owned`, which is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_onnx_bytes(const unsigned char **out, void **owned,
                                            const Onnx__TensorProto *from, int64_t count,
                                            const char *folder);
bool hwnas_onnx_is_external(const Onnx__TensorProto *tensor);
/* NULL when there is none. */
const char *hwnas_onnx_find_entry(Onnx__StringStringEntryProto *const *entries, size_t n,
                                  const char *key);

/* ---- onnx_read_nothing.c: what has no values, and so is no tensor of the graph ---- */

/* Is what has the name known to have no values? */
bool hwnas_onnx_is_nothing(const hwnas_onnx_reader *r, const char *name);
/* One of the node's first `n` inputs? */
bool hwnas_onnx_reads_nothing(const hwnas_onnx_reader *r, const Onnx__NodeProto *node, size_t n);
/* The dimensions of the node's input `i`, which may have no values. `dims`: HWNAS_MAX_RANK. */
HWNAS_CHECKED hwnas_status hwnas_onnx_dims(int *rank, int64_t *dims, hwnas_onnx_reader *r,
                                           const Onnx__NodeProto *node, size_t i);
/* Where one of the `rank` dimensions is 0: says that the value `name`, an input of the file or an
 * output of a node, has no values; they are copied. False: it has some. An empty name is nobody's.
 */
bool hwnas_onnx_give_nothing(hwnas_onnx_reader *r, const char *name, int rank, const int64_t *dims);
/* The node's first output has no values either where one of the inputs has none that it is computed
 * of value by value. `op` NULL: the operator is none of ours, or several. */
HWNAS_CHECKED hwnas_status hwnas_onnx_keep_nothing(hwnas_onnx_reader *r,
                                                   const Onnx__NodeProto *node, const hwnas_op *op);

/* ---- onnx_read_made.c: what is made of what has no values ---- */

/* The node's first output where it follows from shapes: it has no values either, or `out` is a
 * constant of the graph, named `name`; else both stay as they are. */
HWNAS_CHECKED hwnas_status hwnas_onnx_make_of_nothing(int *out, hwnas_onnx_reader *r,
                                                      const Onnx__NodeProto *node,
                                                      const char *name);

/* ---- onnx_read_doubts.c: lines for the graph's `doubts` ---- */

/* Constants of whole numbers that are rounded, of what outputs depend on. */
void hwnas_onnx_doubt_wholes(hwnas_str *out, const hwnas_onnx_reader *r);
/* Values that were drawn at random. */
void hwnas_onnx_doubt_random(hwnas_str *out, const hwnas_onnx_reader *r);
/* Weights with NaN, or with infinities that make some. */
void hwnas_onnx_doubt_weights(hwnas_str *out, const hwnas_graph *graph);

/* ---- onnx_read_unknown.c ---- */

/* Fails for a node whose operator is not read: why, and what to try. */
HWNAS_CHECKED hwnas_status hwnas_onnx_refuse_unknown(const hwnas_onnx_reader *r,
                                                     const Onnx__NodeProto *node);

/* ---- onnx_read_zero.c ---- */

/* Products with zeros in the ways that `zero` is written become that, whoever made them so. */
HWNAS_CHECKED hwnas_status hwnas_onnx_settle_zeros(hwnas_graph *graph);

/* ---- Forms: nodes that the operators' tables cannot say ---- */

/* Reads a node and gives its first output; `out` stays as it is when the tables can say it. `name`
 * is for the node that gives it; others are named after it. */
typedef hwnas_status hwnas_onnx_form(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name);
HWNAS_CHECKED hwnas_onnx_form hwnas_onnx_read_form;
/* Gives another output of a node, by its name in the file. */
HWNAS_CHECKED hwnas_status hwnas_onnx_give(hwnas_onnx_reader *r, const char *name, int tensor);
/* Reads a node of ONNX's own that is made of another one; its outputs are not named. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read_as(int *out, hwnas_onnx_reader *r,
                                              const Onnx__NodeProto *node, const char *name);
/* The branch that an If takes, when it is known. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read_if(hwnas_onnx_reader *r, const Onnx__NodeProto *node);
/* The values of a Constant; NULL: the node is none, or says them in another way. */
const Onnx__TensorProto *hwnas_onnx_constant_node(const Onnx__NodeProto *node);
/* A recurrent node, of which the last state alone may be wanted. */
bool hwnas_onnx_may_lack_output(const Onnx__NodeProto *node);

/* By topic. */
hwnas_onnx_form hwnas_onnx_read_upsample;
hwnas_onnx_form hwnas_onnx_read_shape, hwnas_onnx_read_size, hwnas_onnx_read_constant_of_shape,
    hwnas_onnx_read_range, hwnas_onnx_read_squeeze, hwnas_onnx_read_unsqueeze,
    hwnas_onnx_read_slice, hwnas_onnx_read_split, hwnas_onnx_read_flatten, hwnas_onnx_read_constant;
hwnas_onnx_form hwnas_onnx_read_cast, hwnas_onnx_read_reduce, hwnas_onnx_read_concat,
    hwnas_onnx_read_reshape, hwnas_onnx_read_transpose, hwnas_onnx_read_expand,
    hwnas_onnx_read_gather;
hwnas_onnx_form hwnas_onnx_read_gemm, hwnas_onnx_read_matmul, hwnas_onnx_read_recurrent,
    hwnas_onnx_read_variadic;
hwnas_onnx_form hwnas_onnx_read_conv, hwnas_onnx_read_conv_transpose, hwnas_onnx_read_pool,
    hwnas_onnx_read_lp_pool, hwnas_onnx_read_global_pool, hwnas_onnx_read_lrn;
hwnas_onnx_form hwnas_onnx_read_random, hwnas_onnx_read_random_like, hwnas_onnx_read_bernoulli;
hwnas_onnx_form hwnas_onnx_read_resize, hwnas_onnx_read_steps, hwnas_onnx_read_einsum;
hwnas_onnx_form hwnas_onnx_read_group_norm, hwnas_onnx_read_mvn, hwnas_onnx_read_lp_norm,
    hwnas_onnx_read_softmax;
hwnas_onnx_form hwnas_onnx_read_pad, hwnas_onnx_read_tile, hwnas_onnx_read_depth_space,
    hwnas_onnx_read_trilu, hwnas_onnx_read_eye, hwnas_onnx_read_one_hot, hwnas_onnx_read_top_k,
    hwnas_onnx_read_compress, hwnas_onnx_read_reverse_sequence, hwnas_onnx_read_bit_shift,
    hwnas_onnx_read_cast_like;
hwnas_onnx_form hwnas_onnx_read_qlinear_matmul, hwnas_onnx_read_matmul_integer,
    hwnas_onnx_read_dynamic_quantize, hwnas_onnx_read_qlinear_conv, hwnas_onnx_read_conv_integer,
    hwnas_onnx_read_matmul_n_bits;
hwnas_onnx_form hwnas_onnx_read_contrib_gelu, hwnas_onnx_read_swish, hwnas_onnx_read_skip_norm,
    hwnas_onnx_read_fused_matmul, hwnas_onnx_read_fused;
hwnas_onnx_form hwnas_onnx_read_attention, hwnas_onnx_read_embed_norm;

/* What forms ask of a node. An attribute that is absent has the value `absent`. */
const Onnx__AttributeProto *hwnas_onnx_attribute(const Onnx__NodeProto *node, const char *name);
int64_t hwnas_onnx_int(const Onnx__NodeProto *node, const char *name, int64_t absent);
double hwnas_onnx_float(const Onnx__NodeProto *node, const char *name, double absent);
bool hwnas_onnx_is_word(const Onnx__NodeProto *node, const char *name, const char *word,
                        bool is_default);
bool hwnas_onnx_has_input(const Onnx__NodeProto *node, size_t i);
/* Input `i` as a tensor of the graph. */
HWNAS_CHECKED hwnas_status hwnas_onnx_input(int *out, hwnas_onnx_reader *r,
                                            const Onnx__NodeProto *node, size_t i);
/* A list of up to HWNAS_MAX_RANK whole numbers, given by an attribute in older opsets and by the
 * input `i` in newer ones; n = -1: by neither. */
typedef struct hwnas_onnx_list {
    int n;
    int64_t items[HWNAS_MAX_RANK];
} hwnas_onnx_list;
/* Whole number `k` of a constant that was found under `name`, as the file has it: `from` holds
 * floats, of which none tells numbers above 2^24 apart. */
int64_t hwnas_onnx_item(const hwnas_onnx_reader *r, const char *name, const hwnas_tensor *from,
                        int64_t k);
HWNAS_CHECKED hwnas_status hwnas_onnx_read_list(hwnas_onnx_list *out, hwnas_onnx_reader *r,
                                                const Onnx__NodeProto *node, const char *attribute,
                                                size_t i);
/* Adds a node of the graph. `suffix` NULL: the one that has the name itself. */
HWNAS_CHECKED hwnas_status hwnas_onnx_add(int *out, hwnas_onnx_reader *r, hwnas_op_id op,
                                          const char *name, const char *suffix,
                                          const hwnas_attr *attrs, int n_inputs, const int *inputs);

#endif
