/* gru: gated recurrent unit (Cho et al. 2014), with the reset after the product as cuDNN, PyTorch
 * and Keras have it. */
#include <math.h>

#include "graph/ops/recurrent.h"

enum { N_GATES = 3 }; /* in ONNX's order: update, reset, hidden */

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_rnn_build(out, graph, node, "gru_core", N_GATES);
}

const hwnas_op hwnas_op_gru = {
    .id = HWNAS_OP_GRU,
    .name = "gru",
    .help = "gated recurrent unit over batch x steps x features",
    .attrs = hwnas_rnn_layer_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};

static const hwnas_attr_row attrs[] = {HWNAS_RNN_ATTRS, {0}};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "layout", .value = 0, .fallback = 0},
    {.name = "linear_before_reset", .value = 1, .fallback = 0},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    return hwnas_rnn_infer(graph, node, out, N_GATES);
}

static void step(float *h, float *c, const double *gates, const double *recurrent, int64_t n)
{
    (void)c;
    for (int64_t i = 0; i < n; i++) {
        const double update = hwnas_rnn_sigmoid(gates[i] + recurrent[i]);
        const double reset = hwnas_rnn_sigmoid(gates[n + i] + recurrent[n + i]);
        const double hidden = tanh(gates[2 * n + i] + reset * recurrent[2 * n + i]);
        h[i] = (float)((1 - update) * hidden + update * h[i]);
    }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_rnn_compute(graph, node, inputs, output, N_GATES, step);
}

const hwnas_op hwnas_op_gru_core = {
    .id = HWNAS_OP_GRU_CORE,
    .name = "gru_core",
    .onnx = "GRU",
    .onnx_since = 7,
    .help = "ONNX's GRU, steps first; inside of `gru`",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_internal = true,
    .min_inputs = 3,
    .max_inputs = 4,
    .infer = infer,
    .macs = hwnas_rnn_macs,
    .compute = compute,
};
