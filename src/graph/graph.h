/* graph.h: making and knowing graphs; <hwnas/graph.h> says what one is. */
#ifndef HWNAS_GRAPH_GRAPH_H
#define HWNAS_GRAPH_GRAPH_H

#include <hwnas/graph.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "graph/dtype.h"

hwnas_graph *hwnas_graph_new(const char *name, uint64_t seed);

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
/* Whether a weight has values of its own, and is not drawn from its seed. */
static inline bool hwnas_tensor_is_given(const hwnas_tensor *tensor)
{
    return tensor->data || tensor->codes.numbers;
}
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
bool hwnas_graph_is_output(const hwnas_graph *graph, int tensor);
/* An input that has no values and so is no tensor; the name is copied. */
void hwnas_graph_add_absent(hwnas_graph *graph, const char *name);
/* Whole numbers that a graph's input may hold: 0 to the result less one. As many as the smallest
 * table has that is looked up with it; 2 where it is none's index. 0 where it holds no whole
 * numbers. */
int64_t hwnas_graph_input_below(const hwnas_graph *graph, int tensor);
/* Rows of the smallest table that is looked up with this tensor; 0: none is. */
int64_t hwnas_graph_table_rows(const hwnas_graph *graph, int tensor);

bool hwnas_same_shape(const hwnas_tensor *a, const hwnas_tensor *b);
/* "1x3x224x224" into a static-size buffer. */
typedef struct hwnas_shape_text {
    char s[96];
} hwnas_shape_text;
hwnas_shape_text hwnas_tensor_shape(const hwnas_tensor *tensor);

/* Of weights that several nodes share, the first has them. */
int64_t hwnas_node_params(const hwnas_graph *graph, const hwnas_node *node);

/* Canonical hash of what the network computes with unknown weights: operators, attributes, shapes
 * and wiring; names, the order of commuting inputs, sums with `zero` and nodes that no output needs
 * do not matter. 32 hex digits. */
typedef struct hwnas_digest {
    char hex[33];
} hwnas_digest;
hwnas_digest hwnas_graph_digest(const hwnas_graph *graph);

#endif
