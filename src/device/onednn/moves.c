/* moves.c: runs of values that are copied from one place to another; nothing, for zeros. */
#include "device/onednn/moves.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

/* From one input: `n` times a row of `count` values. */
typedef struct move {
    int64_t count, from, from_step, to, to_step; /* values */
} move;

typedef struct moves {
    size_t bytes;                      /* of the output */
    int64_t n_outer, n_rows;           /* each move is done for every row of every outer one */
    int64_t outer_from, outer_to;      /* values between two outer ones */
    move moves[HWNAS_MAX_NODE_INPUTS]; /* one for each input */
} moves;

bool hwnas_onednn_is_move(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_CONCAT || node->op->id == HWNAS_OP_SLICE ||
           node->op->id == HWNAS_OP_ZERO;
}

/* Channels come last: each pixel of the output is made of one of each input. */
static void plan_concat(moves *m, const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *out = hwnas_node_output(graph, node)->dims;
    int64_t at = 0;
    m->n_outer = 1;
    m->n_rows = out[0] * out[2] * out[3];
    for (int i = 0; i < node->n_inputs; i++) {
        const int64_t channels = hwnas_node_input(graph, node, i)->dims[1];
        m->moves[i] = (move){channels, 0, channels, at, out[1]};
        at += channels;
    }
}

/* The dimension that is cut, those around it made one. */
static void plan_slice(moves *m, const hwnas_graph *graph, const hwnas_node *node)
{
    static const int order[] = {0, 2, 3, 1};
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    const int64_t begin = hwnas_node_attr(node, "begin")->ints[0];
    const int64_t step = hwnas_node_attr(node, "step")->ints[0];
    const int64_t n_out = hwnas_node_output(graph, node)->dims[axis];
    int64_t after = 1;
    int at = 3;
    for (; order[at] != axis; at--)
        after *= in->dims[order[at]];
    m->n_outer = hwnas_tensor_count(in) / after / in->dims[axis];
    m->outer_from = in->dims[axis] * after;
    m->outer_to = n_out * after;
    m->n_rows = step == 1 ? 1 : n_out;
    m->moves[0] = (move){step == 1 ? m->outer_to : after, begin * after, step * after, 0, after};
}

hwnas_status hwnas_onednn_move_compile(hwnas_onednn_step *step, const hwnas_graph *graph,
                                       const hwnas_node *node, const hwnas_onednn_layout *layouts,
                                       hwnas_arena *arena)
{
    bool is_image = layouts[node->output] == HWNAS_ONEDNN_IMAGE;
    for (int i = 0; i < node->n_data_inputs; i++)
        is_image &= layouts[node->inputs[i]] == HWNAS_ONEDNN_IMAGE;
    if (!is_image)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' does not move images alone", node->name);
    moves *m = step->state = hwnas_alloc(sizeof *m);
    m->bytes = (size_t)hwnas_tensor_bytes(hwnas_node_output(graph, node));
    if (node->op->id == HWNAS_OP_ZERO)
        m->n_outer = 0;
    else if (node->op->id == HWNAS_OP_SLICE)
        plan_slice(m, graph, node);
    else
        plan_concat(m, graph, node);
    step->n_inputs = m->n_outer ? (size_t)node->n_inputs : 0;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, node->inputs, step->n_inputs * sizeof *node->inputs);
    step->output_ids = hwnas_arena_copy(arena, &node->output, sizeof node->output);
    return HWNAS_OK;
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const moves *m = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    int64_t count = 0;
    if (!step->n_inputs)
        memset(out, 0, m->bytes);
    for (size_t k = 0; k < step->n_inputs; k++)
        count += m->moves[k].count;
    const int64_t n = m->n_outer * m->n_rows;
    const float *in[HWNAS_MAX_NODE_INPUTS];
    for (size_t k = 0; k < step->n_inputs; k++)
        in[k] = hwnas_onednn_values(step->inputs[k]);
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n * count > WORTH_A_THREAD)
    for (int64_t i = 0; i < n; i++) {
        const int64_t outer = i / m->n_rows, row = i % m->n_rows;
        for (size_t k = 0; k < step->n_inputs; k++) {
            const move *one = &m->moves[k];
            memcpy(out + outer * m->outer_to + one->to + row * one->to_step,
                   in[k] + outer * m->outer_from + one->from + row * one->from_step,
                   (size_t)one->count * sizeof *out);
        }
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_moves = {
    .name = "own loops",
    .run = run,
    .free = free,
};
