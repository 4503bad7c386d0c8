/* grad_recurrent.c: LSTM as one primitive forward and one backward, from a state of zeros.
 *
 * W and R lie as oneDNN's gradients of them do, with the gates in its order (tape.h, `gates`), so
 * that the optimizer reads what backward wrote. */
#include "device/onednn/training/gradients.h"
#include "graph/ops/recurrent.h"

enum { GATES = 4, X = 0, W, R, BIAS, Y, WORKSPACE };

typedef struct lstm {
    int64_t steps, batch, features, hidden, directions;
    dnnl_rnn_direction_t direction;
    const_dnnl_memory_desc_t x, y;             /* steps x batch x features */
    const_dnnl_memory_desc_t shown;            /* y as the graph has it */
    const_dnnl_memory_desc_t w, r, bias;       /* w and r as the primitives like */
    const_dnnl_memory_desc_t kept_w, kept_r;   /* as the optimizer has them */
    const_dnnl_memory_desc_t plain_w, plain_r; /* as ONNX has them, but for the order of gates */
} lstm;

static hwnas_status describe_matrix(const_dnnl_memory_desc_t *any, const_dnnl_memory_desc_t *kept,
                                    const_dnnl_memory_desc_t *plain, hwnas_tape *t, const lstm *l,
                                    int64_t rows)
{
    const int64_t dims[] = {1, l->directions, rows, GATES, l->hidden};
    const int64_t per_direction = GATES * l->hidden * rows;
    const int64_t strides[] = {l->directions * per_direction, per_direction, 1, l->hidden * rows,
                               rows};
    TRY(hwnas_tape_any(any, t, 5, dims, t->type));
    TRY(hwnas_tape_layout(kept, t, 5, dims, NULL, dnnl_f32));
    return hwnas_tape_layout(plain, t, 5, dims, strides, dnnl_f32);
}

static hwnas_status describe_lstm(lstm *out, hwnas_tape *t, const hwnas_node *node)
{
    static const dnnl_rnn_direction_t directions[] = {
        [HWNAS_RNN_FORWARD] = dnnl_unidirectional_left2right,
        [HWNAS_RNN_REVERSE] = dnnl_unidirectional_right2left,
        [HWNAS_RNN_BOTH] = dnnl_bidirectional_concat,
    };
    const int64_t *x = hwnas_node_input(t->graph, node, HWNAS_RNN_X)->dims;
    const int64_t *y = hwnas_node_output(t->graph, node)->dims;
    *out =
        (lstm){.steps = x[0], .batch = x[1], .features = x[2], .hidden = y[3], .directions = y[1]};
    const int64_t width = y[1] * y[3], y_dims[] = {x[0], x[1], width};
    const int64_t strides[] = {x[1] * width, y[3], width, 1};
    const int64_t bias[] = {1, y[1], GATES, y[3]};
    for (int i = HWNAS_RNN_W; i <= HWNAS_RNN_R; i++)
        if (hwnas_node_input(t->graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "'%s': the device 'cpu' has no gradient of an LSTM whose weights are "
                              "computed",
                              node->name);
    /* Its gradient of R differs from PyTorch's by half (oneDNN 3.7.2, any batch and width). */
    if (hwnas_node_attr(node, "direction")->ints[0] != HWNAS_RNN_BOTH)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "'%s': the device 'cpu' has no gradient of an LSTM in one "
                                     "direction",
                                     node->name),
                          "--device torch trains it as PyTorch does");
    out->direction = directions[hwnas_node_attr(node, "direction")->ints[0]];
    TRY(hwnas_tape_layout(&out->x, t, 3, x, NULL, t->type));
    TRY(hwnas_tape_layout(&out->y, t, 3, y_dims, NULL, t->type));
    TRY(hwnas_tape_layout(&out->shown, t, 4, y, strides, t->type));
    TRY(hwnas_tape_layout(&out->bias, t, 4, bias, NULL, dnnl_f32));
    TRY(describe_matrix(&out->w, &out->kept_w, &out->plain_w, t, out, out->features));
    return describe_matrix(&out->r, &out->kept_r, &out->plain_r, t, out, out->hidden);
}

/* The weight in the order of gates of the tape; its layout is that of its gradient. */
static hwnas_status take_weight(int *out, hwnas_tape *t, int tensor, const_dnnl_memory_desc_t kept,
                                const_dnnl_memory_desc_t plain, int64_t block)
{
    TRY(hwnas_gradient_weight(out, t, tensor, kept, plain));
    hwnas_tape_order_gates(t, t->master[tensor], block);
    return HWNAS_OK;
}

/* For each of oneDNN's gates, which of ONNX's. */
static const int onnx_gate[GATES] = {0, 2, 3, 1};

/* One gate of a bias that is directions x `n_gates` x hidden. */
static hwnas_status bias_gate(int *out, hwnas_tape *t, int slot, const lstm *l, int n_gates,
                              int gate)
{
    const dnnl_dims_t all_dims = {1, l->directions, n_gates, l->hidden};
    const dnnl_dims_t dims = {1, l->directions, 1, l->hidden}, offsets = {0, 0, gate, 0};
    const_dnnl_memory_desc_t all;
    dnnl_memory_desc_t part;
    TRY(hwnas_tape_layout(&all, t, 4, all_dims, NULL, dnnl_f32));
    TRY_DNNL("describe", t->name, dnnl_memory_desc_create_submemory(&part, all, dims, offsets));
    *out = hwnas_tape_add_view(t, slot, hwnas_tape_own(t, part));
    return HWNAS_OK;
}

/* oneDNN has one bias, the sum of the two that ONNX has, one behind the other. */
static hwnas_status take_bias(int *out, hwnas_tape *t, const hwnas_node *node, const lstm *l)
{
    const_dnnl_memory_desc_t plain;
    int both, parts[3];
    if (node->n_inputs <= HWNAS_RNN_B) {
        *out = hwnas_tape_add_kept(t, l->bias, l->bias, NULL);
        return HWNAS_OK;
    }
    TRY(hwnas_tape_plain(&plain, t, node->inputs[HWNAS_RNN_B], dnnl_f32));
    TRY(hwnas_gradient_input(&both, t, node, HWNAS_RNN_B, plain));
    *out = hwnas_tape_add_slot(t, l->bias);
    for (int g = 0; g < GATES; g++) {
        dnnl_primitive_desc_t desc = NULL;
        TRY(bias_gate(&parts[0], t, both, l, 2 * GATES, onnx_gate[g]));
        TRY(bias_gate(&parts[1], t, both, l, 2 * GATES, GATES + onnx_gate[g]));
        TRY(bias_gate(&parts[2], t, *out, l, GATES, g));
        const dnnl_status_t made = dnnl_binary_primitive_desc_create(
            &desc, t->device->engine, dnnl_binary_add, t->slots[parts[0]].layout,
            t->slots[parts[1]].layout, t->slots[parts[2]].layout, t->attr);
        const hwnas_tape_arg args[] = {
            {DNNL_ARG_SRC_0, parts[0]}, {DNNL_ARG_SRC_1, parts[1]}, {DNNL_ARG_DST, parts[2]}};
        TRY(hwnas_tape_add_primitive(t, made, desc, 3, args));
    }
    return HWNAS_OK;
}

static hwnas_status lstm_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t layout;
    dnnl_primitive_desc_t desc = NULL;
    lstm l;
    TRY(describe_lstm(&l, t, node));
    TRY(hwnas_gradient_input(&note->slots[X], t, node, HWNAS_RNN_X, l.x));
    TRY(take_weight(&note->slots[W], t, node->inputs[HWNAS_RNN_W], l.kept_w, l.plain_w,
                    l.hidden * l.features));
    TRY(take_weight(&note->slots[R], t, node->inputs[HWNAS_RNN_R], l.kept_r, l.plain_r,
                    l.hidden * l.hidden));
    TRY(take_bias(&note->slots[BIAS], t, node, &l));
    const dnnl_status_t made = dnnl_lstm_forward_primitive_desc_create(
        &desc, t->device->engine, dnnl_forward_training, l.direction, l.x, NULL, NULL, l.w, l.r,
        NULL, NULL, l.bias, l.y, NULL, NULL, dnnl_rnn_flags_undef, t->attr);
    TRY_DNNL("compile the training of", t->name, made);
    note->hint = desc;
    int w, r;
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_LAYER));
    TRY(hwnas_tape_convert(&w, t, note->slots[W], layout));
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_ITER));
    TRY(hwnas_tape_convert(&r, t, note->slots[R], layout));
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WORKSPACE));
    note->slots[WORKSPACE] = hwnas_tape_add_slot(t, layout);
    note->slots[Y] = hwnas_tape_add_slot(t, l.y);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC_LAYER, note->slots[X]}, {DNNL_ARG_WEIGHTS_LAYER, w},
        {DNNL_ARG_WEIGHTS_ITER, r},           {DNNL_ARG_BIAS, note->slots[BIAS]},
        {DNNL_ARG_DST_LAYER, note->slots[Y]}, {DNNL_ARG_WORKSPACE, note->slots[WORKSPACE]}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 6, args));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_view(t, note->slots[Y], l.shown));
    return HWNAS_OK;
}

/* The gradient of the one bias is that of both. */
static hwnas_status give_bias(hwnas_tape *t, const hwnas_node *node, const lstm *l, int db)
{
    const_dnnl_memory_desc_t plain;
    if (!hwnas_gradient_is_wanted(t, node, HWNAS_RNN_B))
        return HWNAS_OK;
    TRY(hwnas_tape_plain(&plain, t, node->inputs[HWNAS_RNN_B], dnnl_f32));
    const int both = hwnas_tape_add_slot(t, plain);
    for (int g = 0; g < 2 * GATES; g++) {
        int from, to;
        TRY(bias_gate(&from, t, db, l, GATES, g % GATES));
        TRY(bias_gate(&to, t, both, l, 2 * GATES, g / GATES * GATES + onnx_gate[g % GATES]));
        TRY(hwnas_tape_reorder(t, from, to));
    }
    return hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_B], both);
}

static hwnas_status lstm_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t layout;
    dnnl_primitive_desc_t desc = NULL;
    lstm l;
    int w, r, dw, dr, db;
    TRY(describe_lstm(&l, t, node));
    TRY(hwnas_tape_convert(&dy, t, dy, l.shown));
    dy = hwnas_tape_add_view(t, dy, l.y);
    const dnnl_status_t made = dnnl_lstm_backward_primitive_desc_create(
        &desc, t->device->engine, dnnl_backward, l.direction, l.x, NULL, NULL, l.w, l.r, NULL, NULL,
        l.bias, l.y, NULL, NULL, l.x, NULL, NULL, l.kept_w, l.kept_r, NULL, NULL, l.bias, l.y, NULL,
        NULL, dnnl_rnn_flags_undef, note->hint, t->attr);
    TRY_DNNL("compile the gradient of", t->name, made);
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_LAYER));
    TRY(hwnas_tape_convert(&w, t, note->slots[W], layout));
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_ITER));
    TRY(hwnas_tape_convert(&r, t, note->slots[R], layout));
    const int dx = hwnas_tape_add_slot(t, l.x);
    TRY(hwnas_gradient_zeros(&dw, t, l.kept_w)); /* the primitive adds to these */
    TRY(hwnas_gradient_zeros(&dr, t, l.kept_r));
    TRY(hwnas_gradient_zeros(&db, t, l.bias));
    const hwnas_tape_arg args[] = {{DNNL_ARG_SRC_LAYER, note->slots[X]},
                                   {DNNL_ARG_WEIGHTS_LAYER, w},
                                   {DNNL_ARG_WEIGHTS_ITER, r},
                                   {DNNL_ARG_BIAS, note->slots[BIAS]},
                                   {DNNL_ARG_DST_LAYER, note->slots[Y]},
                                   {DNNL_ARG_WORKSPACE, note->slots[WORKSPACE]},
                                   {DNNL_ARG_DIFF_DST_LAYER, dy},
                                   {DNNL_ARG_DIFF_SRC_LAYER, dx},
                                   {DNNL_ARG_DIFF_WEIGHTS_LAYER, dw},
                                   {DNNL_ARG_DIFF_WEIGHTS_ITER, dr},
                                   {DNNL_ARG_DIFF_BIAS, db}};
    TRY(hwnas_tape_add_primitive(t, made, desc, 11, args));
    TRY(hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_W], dw));
    TRY(hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_R], dr));
    TRY(give_bias(t, node, &l, db));
    return hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_X], dx);
}

const hwnas_gradient_rule hwnas_gradient_lstm = {lstm_forward, lstm_backward};
