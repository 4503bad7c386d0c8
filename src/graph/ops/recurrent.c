#include "graph/ops/recurrent.h"

#include <stdlib.h>
#include <string.h>

const char *const hwnas_rnn_directions[] = {"forward", "reverse", "bidirectional", NULL};

static int64_t n_directions(const hwnas_node *node)
{
    return node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_BOTH ? 2 : 1;
}

hwnas_status hwnas_rnn_infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out,
                             int64_t n_gates)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, HWNAS_RNN_X);
    const int64_t hidden = node->attrs[HWNAS_RNN_HIDDEN].ints[0], directions = n_directions(node);
    if (in->rank != 3)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' needs steps x batch x features, not %s",
                          node->op->name, hwnas_tensor_shape(in).s);
    const int64_t expected[][3] = {
        [HWNAS_RNN_W] = {directions, n_gates * hidden, in->dims[2]},
        [HWNAS_RNN_R] = {directions, n_gates * hidden, hidden},
        [HWNAS_RNN_B] = {directions, 2 * n_gates * hidden},
    };
    for (int i = HWNAS_RNN_W; i < node->n_inputs; i++) {
        const hwnas_tensor *weight = hwnas_node_input(graph, node, i);
        const int rank = i == HWNAS_RNN_B ? 2 : 3;
        if (weight->rank != rank ||
            memcmp(weight->dims, expected[i], (size_t)rank * sizeof *weight->dims))
            return hwnas_fail(
                HWNAS_E_INPUT, NULL,
                "'%s': weights of shape %s do not fit %lld hidden values and an input of %s",
                node->op->name, hwnas_tensor_shape(weight).s, (long long)hidden,
                hwnas_tensor_shape(in).s);
    }
    out->rank = 4;
    memcpy(out->dims, (int64_t[]){in->dims[0], directions, in->dims[1], hidden},
           4 * sizeof *out->dims);
    return hwnas_check_macs(node, out, n_gates * (in->dims[2] + hidden));
}

int64_t hwnas_rnn_macs(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, HWNAS_RNN_X);
    return in->dims[0] * in->dims[1] *
           (hwnas_tensor_count(hwnas_node_input(graph, node, HWNAS_RNN_W)) +
            hwnas_tensor_count(hwnas_node_input(graph, node, HWNAS_RNN_R)));
}

static void multiply(double *out, const float *matrix, const float *bias, const float *x,
                     int64_t n_rows, int64_t n)
{
    for (int64_t r = 0; r < n_rows; r++) {
        double sum = bias ? bias[r] : 0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)matrix[r * n + i] * x[i];
        out[r] = sum;
    }
}

void hwnas_rnn_compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                       float *output, int64_t n_gates, hwnas_rnn_step *step)
{
    const int64_t *in = hwnas_node_input(graph, node, HWNAS_RNN_X)->dims;
    const int64_t steps = in[0], batch = in[1], features = in[2], directions = n_directions(node);
    const int64_t hidden = node->attrs[HWNAS_RNN_HIDDEN].ints[0], rows = n_gates * hidden;
    double *gates = hwnas_alloc((size_t)(2 * rows) * sizeof *gates);
    float *state = hwnas_alloc((size_t)(2 * hidden) * sizeof *state);
    for (int64_t d = 0; d < directions; d++) {
        const bool is_reverse =
            d == 1 || node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_REVERSE;
        const float *w = inputs[HWNAS_RNN_W] + d * rows * features;
        const float *r = inputs[HWNAS_RNN_R] + d * rows * hidden;
        const float *b = node->n_inputs > HWNAS_RNN_B ? inputs[HWNAS_RNN_B] + d * 2 * rows : NULL;
        for (int64_t s = 0; s < batch; s++) {
            memset(state, 0, (size_t)(2 * hidden) * sizeof *state);
            for (int64_t i = 0; i < steps; i++) {
                const int64_t t = is_reverse ? steps - 1 - i : i;
                multiply(gates, w, b, inputs[HWNAS_RNN_X] + (t * batch + s) * features, rows,
                         features);
                multiply(gates + rows, r, b ? b + rows : NULL, state, rows, hidden);
                step(state, state + hidden, gates, gates + rows, hidden);
                memcpy(output + ((t * directions + d) * batch + s) * hidden, state,
                       (size_t)hidden * sizeof *state);
            }
        }
    }
    free(state);
    free(gates);
}

/* ---- The layer ---- */

enum { OUT, BIDIRECTIONAL, LAST, BIASES };

const hwnas_attr_row hwnas_rnn_layer_attrs[] = {
    [OUT] = {.name = "out",
             .kind = HWNAS_ATTR_INT,
             .is_required = true,
             .low = 1,
             .high = 1 << 24,
             .help = "length of the state, in each direction"},
    [BIDIRECTIONAL] = {.name = "bidirectional",
                       .kind = HWNAS_ATTR_BOOL,
                       .low = 0,
                       .high = 1,
                       .help = "read the sequence from its end as well"},
    [LAST] = {.name = "last",
              .kind = HWNAS_ATTR_BOOL,
              .low = 0,
              .high = 1,
              .help = "give the state after the last step alone, not that of each"},
    [BIASES] = {.name = "biases",
                .kind = HWNAS_ATTR_INT,
                .fallback = 2,
                .low = 0,
                .high = 2,
                .help = "2 as in PyTorch and cuDNN; 1 as in Keras, whose LSTM adds one; 0 none"},
    {0},
};

/* A plan for the layer's nodes: names and attributes are written once. */
typedef struct layer {
    hwnas_graph *graph;
    const hwnas_node *node;
} layer;

static const char *part(const layer *l, const char *suffix)
{
    return hwnas_arena_printf(l->graph->arena, "%s.%s", l->node->name, suffix);
}

static hwnas_status add_transpose(int *out, const layer *l, const char *name, int in, int n,
                                  const int64_t *order)
{
    hwnas_attr attr = {.is_set = true, .n = n};
    memcpy(attr.ints, order, (size_t)n * sizeof *order);
    return hwnas_graph_add_node(out, l->graph, hwnas_ops[HWNAS_OP_TRANSPOSE], name, &attr, 1, &in,
                                false);
}

static hwnas_status add_reshape(int *out, const layer *l, int in, int n, const int64_t *dims)
{
    hwnas_attr attr = {.is_set = true, .n = n};
    memcpy(attr.ints, dims, (size_t)n * sizeof *dims);
    return hwnas_graph_add_node(out, l->graph, hwnas_ops[HWNAS_OP_RESHAPE], l->node->name, &attr, 1,
                                &in, false);
}

static hwnas_status add_slice(int *out, const layer *l, const char *name, int in, int64_t axis,
                              int64_t at)
{
    const hwnas_attr attrs[] = {
        {.is_set = true, .n = 1, .ints = {at}},
        {.is_set = true, .n = 1, .ints = {at + 1}},
        {.is_set = true, .n = 1, .ints = {axis}},
        {0},
    };
    return hwnas_graph_add_node(out, l->graph, hwnas_ops[HWNAS_OP_SLICE], name, attrs, 1, &in,
                                false);
}

static hwnas_status add_concat(int *out, const layer *l, const char *name, int64_t axis,
                               const int *inputs)
{
    const hwnas_attr attr = {.is_set = true, .n = 1, .ints = {axis}};
    return hwnas_graph_add_node(out, l->graph, hwnas_ops[HWNAS_OP_CONCAT], name, &attr, 2, inputs,
                                false);
}

/* The biases as ONNX wants them, W's and then R's; what is not learned is zeros. */
static hwnas_status add_bias(int *out, const layer *l, int64_t directions, int64_t rows)
{
    const int64_t n = l->node->attrs[BIASES].ints[0],
                  dims[] = {directions, n == 2 ? 2 * rows : rows};
    int parts[2];
    TRY(hwnas_graph_add_weight(out, l->graph, part(l, "bias"), 2, dims, HWNAS_INIT_SMALL, true));
    if (n == 2)
        return HWNAS_OK;
    parts[0] = *out;
    TRY(hwnas_graph_add_weight(&parts[1], l->graph, part(l, "no_bias"), 2, dims, HWNAS_INIT_ZERO,
                               false));
    return add_concat(out, l, part(l, "biases"), 1, parts);
}

/* The state after each direction's last step. */
static hwnas_status add_last(int *out, const layer *l, int all, int64_t steps, int64_t directions)
{
    int ends[2];
    if (directions == 1)
        return add_slice(out, l, part(l, "last"), all, 0, steps - 1);
    TRY(add_slice(&ends[0], l, part(l, "end"), all, 0, steps - 1));
    TRY(add_slice(&ends[0], l, part(l, "forward"), ends[0], 1, 0));
    TRY(add_slice(&ends[1], l, part(l, "begin"), all, 0, 0));
    TRY(add_slice(&ends[1], l, part(l, "backward"), ends[1], 1, 1));
    return add_concat(out, l, part(l, "last"), 3, ends);
}

hwnas_status hwnas_rnn_build(int *out, hwnas_graph *graph, const hwnas_node *node, const char *op,
                             int64_t n_gates)
{
    const layer l = {graph, node};
    const hwnas_tensor in = *hwnas_node_input(graph, node, 0);
    const int64_t hidden = node->attrs[OUT].ints[0], rows = n_gates * hidden;
    const int64_t directions = node->attrs[BIDIRECTIONAL].ints[0] ? 2 : 1;
    if (in.rank != 3)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' needs batch x steps x features, not %s",
                          node->op->name, hwnas_tensor_shape(&in).s);
    const int64_t batch = in.dims[0], steps = in.dims[1];
    const int64_t w[] = {directions, rows, in.dims[2]}, r[] = {directions, rows, hidden};
    int inputs[4], n_inputs = HWNAS_RNN_B, all;
    TRY(add_transpose(&inputs[HWNAS_RNN_X], &l, part(&l, "steps"), node->inputs[0], 3,
                      (int64_t[]){1, 0, 2}));
    const int64_t n_biases = node->attrs[BIASES].ints[0];
    if (n_biases == 1) /* tensors come in the order in which nodes read them */
        TRY(add_bias(&inputs[n_inputs++], &l, directions, rows));
    TRY(hwnas_graph_add_weight(&inputs[HWNAS_RNN_W], graph, part(&l, "weight"), 3, w,
                               HWNAS_INIT_SMALL, true));
    TRY(hwnas_graph_add_weight(&inputs[HWNAS_RNN_R], graph, part(&l, "recurrent"), 3, r,
                               HWNAS_INIT_SMALL, true));
    if (n_biases == 2)
        TRY(add_bias(&inputs[n_inputs++], &l, directions, rows));
    const hwnas_attr attrs[HWNAS_RNN_N_ATTRS + 1] = {
        [HWNAS_RNN_HIDDEN] = {.is_set = true, .n = 1, .ints = {hidden}},
        [HWNAS_RNN_DIRECTION] = {.is_set = true,
                                 .n = 1,
                                 .ints = {directions == 2 ? HWNAS_RNN_BOTH : HWNAS_RNN_FORWARD}},
    };
    TRY(hwnas_graph_add_node(&all, graph, hwnas_op_by_name(op), part(&l, "states"), attrs, n_inputs,
                             inputs, false));
    if (node->attrs[LAST].ints[0]) {
        TRY(add_last(&all, &l, all, steps, directions));
        return add_reshape(out, &l, all, 2, (int64_t[]){batch, directions * hidden});
    }
    TRY(add_transpose(&all, &l, part(&l, "sequence"), all, 4, (int64_t[]){2, 0, 1, 3}));
    return add_reshape(out, &l, all, 3, (int64_t[]){batch, steps, directions * hidden});
}
