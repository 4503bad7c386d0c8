/* onnx_writer.h: what onnx_write.c lends to onnx_forms.c. */
#ifndef HWNAS_ONNX_ONNX_WRITER_H
#define HWNAS_ONNX_ONNX_WRITER_H

#include "onnx/onnx_priv.h"

typedef struct hwnas_onnx_writer {
    const hwnas_graph *from;
    hwnas_onnx_weights weights;
    hwnas_arena *arena;
    float *values; /* VALUES: room for the weights that are drawn */
    size_t n_values;
    size_t n_nodes, node_capacity;
    Onnx__NodeProto **nodes; /* heap */
    Onnx__GraphProto *to;
    /* By node: makes floats of packed weights, and is written as a part of the products that read
     * them; by tensor: such nodes alone read it. */
    bool *is_packed_node, *is_packed_tensor, has_packed;
} hwnas_onnx_writer;

/* protobuf-c has no const; it only reads what it packs. */
static inline char *text(const char *s)
{
    return (char *)s;
}

/* ONNX's number of the type that values are written in: all floats are float32, as the weights are,
 * for ONNX wants one type of all operands. */
int32_t hwnas_onnx_written(hwnas_dtype dtype);
/* Appends a node with one output and room for inputs and so many attributes. Names are borrowed. */
Onnx__NodeProto *hwnas_onnx_add_node(hwnas_onnx_writer *w, const char *type, const char *name,
                                     const char *output, size_t n_attributes);
void hwnas_onnx_add_int(const hwnas_onnx_writer *w, Onnx__NodeProto *node, const char *name,
                        int64_t value);
void hwnas_onnx_add_ints(const hwnas_onnx_writer *w, Onnx__NodeProto *node, const char *name,
                         size_t n, const int64_t *values);
void hwnas_onnx_add_word(const hwnas_onnx_writer *w, Onnx__NodeProto *node, const char *name,
                         const char *word);
/* Says that the value `name` has the shape and type of a tensor. */
void hwnas_onnx_add_shape(hwnas_onnx_writer *w, const char *name, const hwnas_tensor *tensor);
/* Appends a constant, a scalar (`rank` 0, `n` 1) or a list, and gives its name. */
const char *hwnas_onnx_add_floats(hwnas_onnx_writer *w, const char *name, int rank, int64_t n,
                                  const float *values);
/* A scalar of the type of `like`, or its nearest value. */
const char *hwnas_onnx_add_number(hwnas_onnx_writer *w, const char *name, const hwnas_tensor *like,
                                  double value);

/* A list of `n` whole numbers, which are copied. */
const char *hwnas_onnx_add_whole(hwnas_onnx_writer *w, const char *name, int64_t n,
                                 const int64_t *values);
/* Appends a constant of bytes as they stand in the file, which are borrowed; gives its name. */
const char *hwnas_onnx_add_raw(hwnas_onnx_writer *w, const char *name, hwnas_dtype dtype, int rank,
                               const int64_t *dims, const void *bytes, size_t length);
/* Gives the node a second output. */
void hwnas_onnx_add_second(const hwnas_onnx_writer *w, Onnx__NodeProto *node, const char *name);

/* Constants and nodes that a form may add for one node. */
enum { HWNAS_ONNX_FORM_CONSTANTS = 4, HWNAS_ONNX_FORM_NODES = 9 };
/* Writes a node that the tables cannot say; false: they can. */
bool hwnas_onnx_write_form(hwnas_onnx_writer *w, const hwnas_node *node);

/* ---- Weights of few bits (graph/pack_weights.h), which ONNX Runtime has MatMulNBits for ---- */

/* Whether all packed weights of a graph can be written so; else they are to be floats. */
bool hwnas_onnx_can_write_packed(const hwnas_graph *graph);
/* Finds the writer's is_packed_node and is_packed_tensor; true: there are any. */
bool hwnas_onnx_find_packed(hwnas_onnx_writer *w);
/* Writes a product of such; false: it is none. */
bool hwnas_onnx_write_packed(hwnas_onnx_writer *w, const hwnas_node *node);

#endif
