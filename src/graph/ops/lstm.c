/* lstm: long short-term memory (Hochreiter and Schmidhuber 1997; with forget gates, Gers et al.
 * 2000). */
#include <math.h>

#include "graph/ops/recurrent.h"

enum { N_GATES = 4 }; /* in ONNX's order: input, output, forget, cell */

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_rnn_build(out, graph, node, "lstm_core", N_GATES);
}

const hwnas_op hwnas_op_lstm = {
    .id = HWNAS_OP_LSTM,
    .name = "lstm",
    .help = "long short-term memory over batch x steps x features",
    .attrs = hwnas_rnn_layer_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};

static const hwnas_attr_row attrs[] = {HWNAS_RNN_ATTRS, {0}};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "layout", .value = 0, .fallback = 0},
    {.name = "input_forget", .value = 0, .fallback = 0},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    return hwnas_rnn_infer(graph, node, out, N_GATES);
}

static void step(float *h, float *c, const double *gates, const double *recurrent, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double in = hwnas_rnn_sigmoid(gates[i] + recurrent[i]);
        const double out = hwnas_rnn_sigmoid(gates[n + i] + recurrent[n + i]);
        const double forget = hwnas_rnn_sigmoid(gates[2 * n + i] + recurrent[2 * n + i]);
        const double cell = tanh(gates[3 * n + i] + recurrent[3 * n + i]);
        c[i] = (float)(forget * c[i] + in * cell);
        h[i] = (float)(out * tanh(c[i]));
    }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_rnn_compute(graph, node, inputs, output, N_GATES, step);
}

const hwnas_op hwnas_op_lstm_core = {
    .id = HWNAS_OP_LSTM_CORE,
    .name = "lstm_core",
    .onnx = "LSTM",
    .onnx_since = 7,
    .help = "ONNX's LSTM, steps first; inside of `lstm`",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_internal = true,
    .min_inputs = 3,
    .max_inputs = 4,
    .infer = infer,
    .macs = hwnas_rnn_macs,
    .compute = compute,
};
