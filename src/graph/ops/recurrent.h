/* recurrent.h: what LSTM and GRU have in common.
 *
 * Each comes twice. The core is ONNX's operator: steps x batch x features in, steps x directions x
 * batch x hidden out, with the weights W (directions x gates*hidden x features), R (directions x
 * gates*hidden x hidden) and, when there is a bias, B (directions x 2*gates*hidden: W's, then R's).
 * The layer around it, which a space speaks of, has the batch first. */
#ifndef HWNAS_GRAPH_OPS_RECURRENT_H
#define HWNAS_GRAPH_OPS_RECURRENT_H

#include <math.h>

#include "graph/ops/elementwise.h"

enum { HWNAS_RNN_X, HWNAS_RNN_W, HWNAS_RNN_R, HWNAS_RNN_B };

/* ---- Cores: these two attributes come first ---- */

enum { HWNAS_RNN_HIDDEN, HWNAS_RNN_DIRECTION, HWNAS_RNN_N_ATTRS };
enum { HWNAS_RNN_FORWARD, HWNAS_RNN_REVERSE, HWNAS_RNN_BOTH };
extern const char *const hwnas_rnn_directions[];

#define HWNAS_RNN_ATTRS                                                                            \
    [HWNAS_RNN_HIDDEN] = {.name = "hidden",                                                        \
                          .kind = HWNAS_ATTR_INT,                                                  \
                          .is_required = true,                                                     \
                          .low = 1,                                                                \
                          .high = 1 << 24,                                                         \
                          .onnx = "hidden_size",                                                   \
                          .is_required_by_onnx = true,                                             \
                          .help = "length of the state"},                                          \
    [HWNAS_RNN_DIRECTION] = {.name = "direction",                                                  \
                             .kind = HWNAS_ATTR_INT,                                               \
                             .low = HWNAS_RNN_FORWARD,                                             \
                             .high = HWNAS_RNN_BOTH,                                               \
                             .onnx = "direction",                                                  \
                             .onnx_words = hwnas_rnn_directions,                                   \
                             .help = "0 forward, 1 reverse, 2 both"}

hwnas_status hwnas_rnn_infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out,
                             int64_t n_gates);
int64_t hwnas_rnn_macs(const hwnas_graph *graph, const hwnas_node *node);

static inline double hwnas_rnn_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One step of one sequence: `gates` holds W x + its bias, `recurrent` R h + its bias, one after the
 * other for each gate; `h` and `c` are the state, of `n` values each, and become the next one. */
typedef void hwnas_rnn_step(float *h, float *c, const double *gates, const double *recurrent,
                            int64_t n);
/* Runs all steps from a state of zeros. */
void hwnas_rnn_compute(const hwnas_graph *graph, const hwnas_node *node,
                       const float *const *inputs, float *output, int64_t n_gates,
                       hwnas_rnn_step *step);

/* ---- Layers ---- */

extern const hwnas_attr_row hwnas_rnn_layer_attrs[];
/* Builds the layer around the core `op`, of which `attrs` has the attributes behind the
 * common two. */
hwnas_status hwnas_rnn_build(int *out, hwnas_graph *graph, const hwnas_node *node, const char *op,
                             int64_t n_gates);

#endif
