/* onednn_recurrent.c: LSTM and GRU as primitives, from a state of zeros, all steps in one.
 *
 * The weights are brought into oneDNN's order of gates and into its layout when the step is
 * compiled. */
#include "graph/ops/recurrent.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/primitive.h"
#include "device/onednn/recurrent_cell.h"

typedef dnnl_status_t make_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                dnnl_rnn_direction_t direction, const_dnnl_memory_desc_t x,
                                const_dnnl_memory_desc_t w, const_dnnl_memory_desc_t r,
                                const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t y,
                                const_dnnl_primitive_attr_t attr);

typedef hwnas_onednn_cell cell;

static dnnl_status_t make_lstm(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               dnnl_rnn_direction_t direction, const_dnnl_memory_desc_t x,
                               const_dnnl_memory_desc_t w, const_dnnl_memory_desc_t r,
                               const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t y,
                               const_dnnl_primitive_attr_t attr)
{
    return dnnl_lstm_forward_primitive_desc_create(out, engine, dnnl_forward_inference, direction,
                                                   x, NULL, NULL, w, r, NULL, NULL, b, y, NULL,
                                                   NULL, dnnl_rnn_flags_undef, attr);
}

static dnnl_status_t make_gru(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                              dnnl_rnn_direction_t direction, const_dnnl_memory_desc_t x,
                              const_dnnl_memory_desc_t w, const_dnnl_memory_desc_t r,
                              const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t y,
                              const_dnnl_primitive_attr_t attr)
{
    return dnnl_lbr_gru_forward_primitive_desc_create(out, engine, dnnl_forward_inference,
                                                      direction, x, NULL, w, r, b, y, NULL,
                                                      dnnl_rnn_flags_undef, attr);
}

const cell hwnas_onednn_lstm_cell = {.n_gates = 4,
                                     .n_biases = 4,
                                     .gate = {0, 2, 3, 1},
                                     .bias_of_w = {0, 2, 3, 1},
                                     .bias_of_r = {0, 2, 3, 1}};
const cell hwnas_onednn_gru_cell = {.n_gates = 3,
                                    .n_biases = 4,
                                    .gate = {0, 1, 2},
                                    .bias_of_w = {0, 1, 2, -1},
                                    .bias_of_r = {0, 1, -1, 2}};

/* Sizes of one node. */
typedef struct sizes {
    int64_t steps, batch, features, hidden, directions;
} sizes;

typedef struct recurrent {
    hwnas_onednn_primitive primitive;
    sizes n;
    float *both; /* steps x batch x directions x hidden, as oneDNN has it; NULL: it is as ours */
} recurrent;

static sizes sizes_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *x = hwnas_node_input(graph, node, HWNAS_RNN_X)->dims;
    const int64_t *y = hwnas_node_output(graph, node)->dims;
    return (sizes){x[0], x[1], x[2], y[3], y[1]};
}

/* directions x gates x rows, in ONNX's order of gates, into `to`, in oneDNN's. */
static void order_gates(float *to, const float *from, const cell *c, int64_t directions,
                        int64_t rows)
{
    for (int64_t d = 0; d < directions; d++, from += c->n_gates * rows)
        for (int g = 0; g < c->n_gates; g++, to += rows)
            memcpy(to, from + c->gate[g] * rows, (size_t)rows * sizeof *to);
}

static void order_biases(float *to, const float *from, const cell *c, const sizes *n)
{
    for (int64_t d = 0; d < n->directions; d++, from += 2 * c->n_gates * n->hidden)
        for (int g = 0; g < c->n_biases; g++, to += n->hidden)
            for (int64_t i = 0; i < n->hidden; i++) {
                const int w = c->bias_of_w[g], r = c->bias_of_r[g];
                to[i] = (w < 0 ? 0 : from[w * n->hidden + i]) +
                        (r < 0 ? 0 : from[(c->n_gates + r) * n->hidden + i]);
            }
}

/* Appends W or R, whose rows are `columns` long. */
static hwnas_status add_matrix(hwnas_onednn_primitive *p, int arg, const_dnnl_memory_desc_t desc,
                               const hwnas_tensor *tensor, const cell *c, const sizes *n,
                               int64_t columns)
{
    hwnas_status status = HWNAS_OK;
    const size_t bytes = (size_t)hwnas_tensor_bytes(tensor);
    const dnnl_dims_t dims = {1, n->directions, columns, c->n_gates, n->hidden};
    void *given = NULL, *ordered = NULL;
    dnnl_memory_desc_t plain = NULL;
    TRY_OUT(hwnas_try_alloc(&given, bytes, tensor->name));
    TRY_OUT(hwnas_try_alloc(&ordered, bytes, tensor->name));
    hwnas_tensor_fill(tensor, given);
    order_gates(ordered, given, c, n->directions, n->hidden * columns);
    TRY_OUT(hwnas_onednn_describe_floats(&plain, tensor->name, 5, dims, dnnl_ldgoi));
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, arg, desc, ordered, plain));
out:
    dnnl_memory_desc_destroy(plain);
    free(ordered);
    free(given);
    return status;
}

static hwnas_status add_biases(hwnas_onednn_primitive *p, const_dnnl_memory_desc_t desc,
                               const hwnas_tensor *tensor, const cell *c, const sizes *n)
{
    hwnas_status status = HWNAS_OK;
    const size_t n_ordered = (size_t)(n->directions * c->n_biases * n->hidden);
    void *given = NULL, *ordered = NULL;
    TRY_OUT(hwnas_try_alloc(&given, (size_t)hwnas_tensor_bytes(tensor), tensor->name));
    TRY_OUT(hwnas_try_alloc(&ordered, n_ordered * sizeof(float), tensor->name));
    hwnas_tensor_fill(tensor, given);
    order_biases(ordered, given, c, n);
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, desc, ordered, desc));
out:
    free(ordered);
    free(given);
    return status;
}

static dnnl_rnn_direction_t direction_of(const hwnas_node *node)
{
    switch (node->attrs[HWNAS_RNN_DIRECTION].ints[0]) {
    case HWNAS_RNN_REVERSE:
        return dnnl_unidirectional_right2left;
    case HWNAS_RNN_BOTH:
        return dnnl_bidirectional_concat;
    default:
        return dnnl_unidirectional_left2right;
    }
}

enum { X, W, R, B, Y, N_DESCS };

static hwnas_status describe(dnnl_memory_desc_t *descs, const char *name, const cell *c,
                             const sizes *n)
{
    const struct {
        int rank;
        dnnl_dims_t dims;
        dnnl_format_tag_t tag;
    } rows[N_DESCS] = {
        [X] = {3, {n->steps, n->batch, n->features}, dnnl_tnc},
        [W] = {5, {1, n->directions, n->features, c->n_gates, n->hidden}, dnnl_format_tag_any},
        [R] = {5, {1, n->directions, n->hidden, c->n_gates, n->hidden}, dnnl_format_tag_any},
        [B] = {4, {1, n->directions, c->n_biases, n->hidden}, dnnl_ldgo},
        [Y] = {3, {n->steps, n->batch, n->directions * n->hidden}, dnnl_tnc},
    };
    for (int i = 0; i < N_DESCS; i++)
        TRY(hwnas_onednn_describe_floats(&descs[i], name, rows[i].rank, rows[i].dims, rows[i].tag));
    return HWNAS_OK;
}

/* The arguments: what changes in each run, then the weights. */
static hwnas_status add_args(hwnas_onednn_primitive *p, const_dnnl_primitive_desc_t desc,
                             const dnnl_memory_desc_t *descs, const hwnas_graph *graph,
                             const hwnas_node *node, const cell *c, const sizes *n)
{
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_SRC_LAYER, descs[X]));
    TRY(hwnas_onednn_primitive_add(p, DNNL_ARG_DST_LAYER, descs[Y]));
    TRY(add_matrix(p, DNNL_ARG_WEIGHTS_LAYER,
                   dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0),
                   hwnas_node_input(graph, node, HWNAS_RNN_W), c, n, n->features));
    TRY(add_matrix(p, DNNL_ARG_WEIGHTS_ITER,
                   dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1),
                   hwnas_node_input(graph, node, HWNAS_RNN_R), c, n, n->hidden));
    if (node->n_inputs <= HWNAS_RNN_B)
        return hwnas_onednn_primitive_add_own(p, DNNL_ARG_BIAS, descs[B]);
    return add_biases(p, descs[B], hwnas_node_input(graph, node, HWNAS_RNN_B), c, n);
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node, const cell *c,
                            make_desc *make)
{
    hwnas_status status = HWNAS_OK;
    const sizes n = sizes_of(graph, node);
    recurrent *rnn = step->state = hwnas_alloc(sizeof *rnn);
    hwnas_onednn_primitive *p = &rnn->primitive;
    dnnl_memory_desc_t descs[N_DESCS] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    *rnn = (recurrent){.primitive = {.name = step->name, .device = device}, .n = n};
    TRY_OUT(describe(descs, p->name, c, &n));
    TRY_OUT(hwnas_onednn_attr(&attr, p->name));
    TRY_DNNL_OUT("describe", p->name,
                 make(&desc, device->engine, direction_of(node), descs[X], descs[W], descs[R],
                      descs[B], descs[Y], attr));
    TRY_OUT(hwnas_onednn_primitive_init(p, desc));
    TRY_OUT(add_args(p, desc, descs, graph, node, c, &n));
    step->n_inputs = 1; /* the weights are ours now */
    step->bytes = p->bytes;
    if (n.directions > 1 && n.batch > 1) {
        const size_t bytes = (size_t)hwnas_tensor_bytes(hwnas_node_output(graph, node));
        void *both = NULL;
        TRY_OUT(hwnas_try_alloc(&both, bytes, p->name));
        rnn->both = both;
        step->bytes += bytes;
    }
out:
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < N_DESCS; i++)
        dnnl_memory_desc_destroy(descs[i]);
    return status;
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const recurrent *rnn = step->state;
    const sizes *n = &rnn->n;
    float *y = hwnas_onednn_values(step->outputs[0]);
    void *const values[] = {hwnas_onednn_values(step->inputs[0]), rnn->both ? rnn->both : y};
    dnnl_status_t status = hwnas_onednn_primitive_run(&rnn->primitive, 2, values);
    if (status != dnnl_success || !rnn->both)
        return status;
    status = dnnl_stream_wait(device->stream);
    for (int64_t t = 0; t < n->steps; t++)
        for (int64_t d = 0; d < n->directions; d++)
            for (int64_t b = 0; b < n->batch; b++, y += n->hidden)
                memcpy(y, rnn->both + ((t * n->batch + b) * n->directions + d) * n->hidden,
                       (size_t)n->hidden * sizeof *y);
    return status;
}

static void free_recurrent(void *state)
{
    recurrent *rnn = state;
    if (!rnn)
        return;
    hwnas_onednn_primitive_done(&rnn->primitive);
    free(rnn->both);
    free(rnn);
}

static hwnas_status compile_lstm(hwnas_onednn_step *step, const onednn_device *device,
                                 const hwnas_graph *graph, const hwnas_node *node)
{
    return compile(step, device, graph, node, &hwnas_onednn_lstm_cell, make_lstm);
}

static hwnas_status compile_gru(hwnas_onednn_step *step, const onednn_device *device,
                                const hwnas_graph *graph, const hwnas_node *node)
{
    return compile(step, device, graph, node, &hwnas_onednn_gru_cell, make_gru);
}

const hwnas_onednn_kind hwnas_onednn_lstm = {
    .name = "primitive",
    .compile = compile_lstm,
    .run = run,
    .free = free_recurrent,
};

const hwnas_onednn_kind hwnas_onednn_gru = {
    .name = "primitive",
    .compile = compile_gru,
    .run = run,
    .free = free_recurrent,
};
