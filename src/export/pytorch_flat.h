/* pytorch_flat.h: stage 1 for a graph: one class, with a line of forward() for each node. Private
 * to export/.
 *
 * No file calls one behind it: pytorch_flat_text.c has numbers and lists as Python writes them,
 * pytorch_flat_layers.c what is a module of PyTorch's, pytorch_flat_batch.c where the batch is,
 * pytorch_flat_images.c how images are pooled and resized, pytorch_flat_ops.c a row for each
 * operator, pytorch_flat_operands.c what a line reads, pytorch_flat.c the walk over the graph. */
#ifndef HWNAS_EXPORT_PYTORCH_FLAT_H
#define HWNAS_EXPORT_PYTORCH_FLAT_H

#include "export/pytorch_priv.h"

/* Where a tensor of a module has its values: `n_gates` blocks, in the order of `gates`, of the
 * graph's tensor from `begin` on. Without gates, as they are. */
typedef struct hwnas_flat_weight {
    const hwnas_torch_piece *part;
    const char *suffix; /* ".weight"; "": the part itself is the tensor */
    int tensor;         /* -1: a whole number, 0 */
    int n_dims;
    int64_t dims[HWNAS_MAX_RANK];
    int64_t begin;
    int n_gates;
    const int *gates;
    bool is_transposed; /* of two dimensions */
} hwnas_flat_weight;

typedef struct hwnas_flat {
    hwnas_torch_scope s;
    const hwnas_graph *graph;
    const hwnas_wire **wires; /* for each tensor */
    unsigned *uses;           /* of each tensor, by nodes and as an output */
    bool *is_of_inputs;       /* of each: it is no constant */
    int64_t batch, *outer;    /* of each: blocks of values around the batch; 0: not known */
    bool has_file;            /* of weights; else constants are written out */
    size_t n_weights, weight_capacity;
    hwnas_flat_weight *weights;
} hwnas_flat;

/* How PyTorch has a node's values: 's' as the output, 'f' float32, 'l' int64, 'b' bool, '.' as they
 * come, '+' whole numbers as int64 and others as the output. */
typedef char hwnas_flat_kind;

typedef struct hwnas_flat_row {
    /* "$0.softmax({axis})": $0 is an input, {axis} an attribute, {axis?} True or False, @ the axes
     * of a reduction. */
    const char *text;
    const char *takes; /* a kind for each input; the last for those behind it */
    hwnas_flat_kind gives;
    /* (optional) The text for this node, in the place of `text`. */
    const char *(*write)(hwnas_flat *f, const hwnas_node *node);
    /* (optional) "nn.Conv2d(3, 8, 5)": a module for this node, where its weights are its alone;
     * NULL: it cannot be one. Adds its weights to `part`. */
    const char *(*module)(hwnas_flat *f, const hwnas_node *node, const hwnas_torch_piece *part);
    /* (optional) What becomes of the module's input and of its result: texts of $0. */
    const char *(*before)(hwnas_flat *f, const hwnas_node *node);
    const char *(*after)(hwnas_flat *f, const hwnas_node *node);
} hwnas_flat_row;

extern const hwnas_flat_row hwnas_flat_rows[HWNAS_N_OPS]; /* zeros: never a node */

/* "1, 2, 3" */
const char *hwnas_flat_list(hwnas_flat *f, int n, const int64_t *values);
/* "2" or "(1, 2)" of two. */
const char *hwnas_flat_pair(hwnas_flat *f, const int64_t *values);
const char *hwnas_flat_number(hwnas_flat *f, double value);
/* "torch.int64": that has the type's values. */
const char *hwnas_flat_dtype(hwnas_dtype dtype);
/* F.pad's: (left, right, top, bottom) of top, left, bottom, right. */
const char *hwnas_flat_sides(hwnas_flat *f, const int64_t *pad);

/* ---- pytorch_flat_operands.c ---- */

const hwnas_tensor *hwnas_flat_input(hwnas_flat *f, const hwnas_node *node, int i);
/* "layer1.0.conv1.weight" -> "layer1_0_conv1_weight"; NULL when it says nothing to a reader. */
const char *hwnas_flat_name(hwnas_flat *f, const char *name, size_t n);
/* What a module is called: as the network where it was exported from calls it, if that says so. */
const char *hwnas_flat_module_name(hwnas_flat *f, const hwnas_node *node);
/* A new attribute of the class: "nn.Linear(3, 4)" by a name like `label`. */
hwnas_torch_piece *hwnas_flat_part(hwnas_flat *f, const char *call, const char *label);
/* A weight as an attribute: a parameter, or a buffer that nothing learns. */
const hwnas_wire *hwnas_flat_attribute(hwnas_flat *f, int tensor);
const hwnas_wire *hwnas_flat_form(hwnas_flat *f, const char *text, bool is_primary, size_t n,
                                  const hwnas_wire *const *args);
/* Is it one operand of Python's, without brackets around it? */
bool hwnas_flat_is_one_operand(const char *text);
/* "torch.int64": that has the tensor's values. */
const char *hwnas_flat_type(const hwnas_tensor *tensor);
/* The type that an operator has an input in, or gives; NULL: whatever it is. */
const char *hwnas_flat_wanted_type(const hwnas_tensor *out, hwnas_flat_kind kind);
/* "$0.float()" */
const char *hwnas_flat_conversion(hwnas_flat *f, const char *text, const char *type);
/* Input `i` of a node in the row's text. */
const hwnas_wire *hwnas_flat_operand(hwnas_flat *f, const hwnas_node *node, int i, const char *text,
                                     const char *takes);

/* ---- pytorch_flat_batch.c ---- */

/* Fills in what is known of the batch. */
void hwnas_flat_find_batch(hwnas_flat *f);
/* Which dimension of a reshape's result has the batch as a factor, and is whatever it is; -1: none
 * that is known. */
int hwnas_flat_batch_dim(hwnas_flat *f, const hwnas_node *node);
/* Constants that are to be joined with what has a batch get one, whatever it is. */
void hwnas_flat_give_batch(hwnas_flat *f, const hwnas_node *node, const hwnas_wire **args);

/* ---- pytorch_flat.c ---- */

/* The class of export->graph. With `has_file` the weights come from a file, which
 * hwnas_flat_write_weights() writes once the class is written; without, constants are in the class.
 */
HWNAS_CHECKED hwnas_status hwnas_flat_translate(hwnas_flat *f, hwnas_export *export, bool has_file);
void hwnas_flat_write_weights(hwnas_str *out, const hwnas_flat *f);
/* A tensor of a part, as the graph has it; to be changed before the next is added. */
hwnas_flat_weight *hwnas_flat_add_weight(hwnas_flat *f, const hwnas_torch_piece *part,
                                         const char *suffix, int tensor);

/* ---- Modules, and images: what rows of pytorch_flat_ops.c point to ---- */

#define HWNAS_FLAT_MODULE(op)                                                                      \
    const char *hwnas_flat_module_##op(hwnas_flat *f, const hwnas_node *node,                      \
                                       const hwnas_torch_piece *part)
#define HWNAS_FLAT_TEXT(name) const char *hwnas_flat_##name(hwnas_flat *f, const hwnas_node *node)
HWNAS_FLAT_MODULE(batch_norm);
HWNAS_FLAT_MODULE(conv);
HWNAS_FLAT_MODULE(conv_transpose);
HWNAS_FLAT_MODULE(dropout);
HWNAS_FLAT_MODULE(gather);
HWNAS_FLAT_MODULE(layer_norm);
HWNAS_FLAT_MODULE(linear);
HWNAS_FLAT_MODULE(rnn);
HWNAS_FLAT_TEXT(before_conv);
HWNAS_FLAT_TEXT(before_rnn);
HWNAS_FLAT_TEXT(after_rnn);
HWNAS_FLAT_TEXT(conv);
HWNAS_FLAT_TEXT(conv_transpose);
HWNAS_FLAT_TEXT(layer_norm);
HWNAS_FLAT_TEXT(rms_norm);
HWNAS_FLAT_TEXT(avg_pool);
HWNAS_FLAT_TEXT(grid_sample);
HWNAS_FLAT_TEXT(max_pool);
HWNAS_FLAT_TEXT(upsample);

#endif
