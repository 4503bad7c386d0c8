/* gradients.h: automatic differentiation of a graph: by operator, what a training step does forward
 * and backward. gradients.c has the table, and the walk through the graph. */
#ifndef HWNAS_DEVICE_ONEDNN_TRAINING_GRADIENTS_H
#define HWNAS_DEVICE_ONEDNN_TRAINING_GRADIENTS_H

#include "device/onednn/training/tape.h"

/* An operator's rule. `forward` sets the value of the node's output, `backward` adds to the
 * gradients of its inputs what follows from `dy`, that of its output, which may be in any layout.
 */
typedef struct hwnas_gradient_rule {
    hwnas_status (*forward)(hwnas_tape *tape, const hwnas_node *node);
    hwnas_status (*backward)(hwnas_tape *tape, const hwnas_node *node, int dy);
} hwnas_gradient_rule;

extern const hwnas_gradient_rule hwnas_gradient_conv, hwnas_gradient_linear, hwnas_gradient_matmul,
    hwnas_gradient_pool, hwnas_gradient_mean, hwnas_gradient_batch_norm, hwnas_gradient_layer_norm,
    hwnas_gradient_softmax, hwnas_gradient_function, hwnas_gradient_binary, hwnas_gradient_dropout,
    hwnas_gradient_reshape, hwnas_gradient_transpose, hwnas_gradient_slice, hwnas_gradient_concat,
    hwnas_gradient_gather, hwnas_gradient_recurrent, hwnas_gradient_zero, hwnas_gradient_prelu,
    hwnas_gradient_where, hwnas_gradient_expand, hwnas_gradient_cast, hwnas_gradient_none,
    hwnas_gradient_pad, hwnas_gradient_pair, hwnas_gradient_smooth, hwnas_gradient_upsample,
    hwnas_gradient_scatter;

/* Writes the step: forward, loss, backward and update. HWNAS_E_UNSUPPORTED names the first node
 * whose operator has no gradient here. */
HWNAS_CHECKED hwnas_status hwnas_gradients_write(hwnas_tape *tape);

/* ---- For rules ---- */

/* The value of a node's input, in `layout`; NULL: as it is. */
HWNAS_CHECKED hwnas_status hwnas_gradient_input(int *out, hwnas_tape *tape, const hwnas_node *node,
                                                int i, const_dnnl_memory_desc_t layout);
/* The same, row-major. */
HWNAS_CHECKED hwnas_status hwnas_gradient_plain_input(int *out, hwnas_tape *tape,
                                                      const hwnas_node *node, int i);
/* The same in whatever layout it has, if that is one without gaps. */
HWNAS_CHECKED hwnas_status hwnas_gradient_dense_input(int *out, hwnas_tape *tape,
                                                      const hwnas_node *node, int i);
/* grad_elements.c: the same as row-major floats, whatever activations are; a slot for the output
 * as such; the output's value from it; and `dy`. */
HWNAS_CHECKED hwnas_status hwnas_gradient_float_input(int *out, hwnas_tape *tape,
                                                      const hwnas_node *node, int i);
HWNAS_CHECKED hwnas_status hwnas_gradient_float_output(int *out, hwnas_tape *tape,
                                                       const hwnas_node *node);
HWNAS_CHECKED hwnas_status hwnas_gradient_set_floats(hwnas_tape *tape, const hwnas_node *node,
                                                     int slot);
HWNAS_CHECKED hwnas_status hwnas_gradient_floats_of(int *out, hwnas_tape *tape,
                                                    const hwnas_node *node, int dy);
/* A `forward`: the operator's own loops, of such floats. */
HWNAS_CHECKED hwnas_status hwnas_gradient_compute(hwnas_tape *tape, const hwnas_node *node);
/* A weight in `layout`, row-major floats if NULL; the first call for it decides how the optimizer
 * keeps it. `plain` is row-major with the same dimensions. */
HWNAS_CHECKED hwnas_status hwnas_gradient_weight(int *out, hwnas_tape *tape, int tensor,
                                                 const_dnnl_memory_desc_t layout,
                                                 const_dnnl_memory_desc_t plain);
/* Of a node that has one reader, a function that is known backward by its result: that node, which
 * is then done, and its function at the end of `attr`, which is the caller's to destroy. NULL:
 * none. */
HWNAS_CHECKED hwnas_status hwnas_gradient_follower(const hwnas_node **out,
                                                   dnnl_primitive_attr_t *attr, hwnas_tape *tape,
                                                   const hwnas_node *node);
/* The one node that reads the tensor; NULL: there is none, or there are several. */
const hwnas_node *hwnas_gradient_only_reader(const hwnas_tape *tape, int tensor);
/* Sets the value of the node, and of a follower that was computed with it. */
void hwnas_gradient_set(hwnas_tape *tape, const hwnas_node *node, const hwnas_node *follower,
                        int slot);
/* Does what comes from this tensor reach a parameter? */
static inline bool hwnas_gradient_is_wanted(const hwnas_tape *tape, const hwnas_node *node, int i)
{
    return i < node->n_inputs && tape->is_learnt[node->inputs[i]];
}

/* A product of matrices that lie as said. `bias` may be HWNAS_NO_SLOT, `attr` NULL. */
HWNAS_CHECKED hwnas_status hwnas_gradient_product(hwnas_tape *tape, int a, int b, int bias, int out,
                                                  const_dnnl_primitive_attr_t attr);
/* The sums of the columns of a row-major matrix, as floats. */
HWNAS_CHECKED hwnas_status hwnas_gradient_sum_rows(int *out, hwnas_tape *tape, int matrix,
                                                   int64_t rows, int64_t columns);
/* An array of zeros that a step makes. */
HWNAS_CHECKED hwnas_status hwnas_gradient_zeros(int *out, hwnas_tape *tape,
                                                const_dnnl_memory_desc_t layout);
/* A loop that sets a slot's bytes, whose number is in `settings`, to 0. */
hwnas_tape_loop hwnas_gradient_clear;
/* step_loss.c: of each output, with its gradient. */
HWNAS_CHECKED hwnas_status hwnas_loss_write(hwnas_tape *tape);
/* What an output is compared with: the class of row i, or the value of element i. */
float hwnas_loss_target(bool of_classes, int64_t i, int64_t n_classes);
/* Whether the node is a softmax that the loss does with its logarithm. */
bool hwnas_loss_has_softmax(const hwnas_tape *tape, const hwnas_node *node);
/* step_update.c: changes a weight by its gradient. */
HWNAS_CHECKED hwnas_status hwnas_optimizer_write(hwnas_tape *tape, int tensor);

#endif
