/* grad_recurrent.c: LSTM and GRU as one primitive forward and one backward, from a state of zeros.
 *
 * W and R lie as oneDNN's gradients of them do, with the gates in its order (tape.h, `gates`), so
 * that the optimizer reads what backward wrote. Backward, all gradients are floats: with
 * activations of bf16, oneDNN has no other. */
#include <string.h>

#include "device/onednn/recurrent_cell.h"
#include "device/onednn/training/gradients.h"
#include "graph/ops/recurrent.h"

/* STATE is the zeros, CELL those of an LSTM's cells. Without them oneDNN (3.7.2) computes another
 * gradient of R in the direction from the first step to the last. */
enum { X = 0, W, R, BIAS, STATE, CELL, Y, WORKSPACE };

typedef struct rnn {
    const hwnas_onednn_cell *cell;
    bool is_lstm;
    int64_t steps, batch, features, hidden, directions;
    dnnl_rnn_direction_t direction;
    const_dnnl_memory_desc_t x, y;             /* steps x batch x features */
    const_dnnl_memory_desc_t dx, dy;           /* the same as floats */
    const_dnnl_memory_desc_t shown, dy_shown;  /* y and dy as the graph has them */
    const_dnnl_memory_desc_t state, cells;     /* before the first step; cells are floats */
    const_dnnl_memory_desc_t w, r, bias;       /* w and r as the primitives like */
    const_dnnl_memory_desc_t kept_w, kept_r;   /* as the optimizer has them */
    const_dnnl_memory_desc_t plain_w, plain_r; /* as ONNX has them, but for the order of gates */
} rnn;

static hwnas_status describe_matrix(const_dnnl_memory_desc_t *any, const_dnnl_memory_desc_t *kept,
                                    const_dnnl_memory_desc_t *plain, hwnas_tape *t, const rnn *l,
                                    int64_t rows)
{
    const int64_t n_gates = l->cell->n_gates;
    const int64_t dims[] = {1, l->directions, rows, n_gates, l->hidden};
    const int64_t per_direction = n_gates * l->hidden * rows;
    const int64_t strides[] = {l->directions * per_direction, per_direction, 1, l->hidden * rows,
                               rows};
    TRY(hwnas_tape_any(any, t, 5, dims, t->type));
    TRY(hwnas_tape_layout(kept, t, 5, dims, NULL, dnnl_f32));
    return hwnas_tape_layout(plain, t, 5, dims, strides, dnnl_f32);
}

/* Those of arrays that pass. */
static hwnas_status describe_values(rnn *l, hwnas_tape *t, const int64_t *x, const int64_t *y)
{
    const int64_t width = l->directions * l->hidden, y_dims[] = {l->steps, l->batch, width};
    const int64_t strides[] = {l->batch * width, l->hidden, width, 1};
    const int64_t state[] = {1, l->directions, l->batch, l->hidden};
    const int64_t bias[] = {1, l->directions, l->cell->n_biases, l->hidden};
    TRY(hwnas_tape_layout(&l->x, t, 3, x, NULL, t->type));
    TRY(hwnas_tape_layout(&l->y, t, 3, y_dims, NULL, t->type));
    TRY(hwnas_tape_layout(&l->dx, t, 3, x, NULL, dnnl_f32));
    TRY(hwnas_tape_layout(&l->dy, t, 3, y_dims, NULL, dnnl_f32));
    TRY(hwnas_tape_layout(&l->shown, t, 4, y, strides, t->type));
    TRY(hwnas_tape_layout(&l->dy_shown, t, 4, y, strides, dnnl_f32));
    TRY(hwnas_tape_layout(&l->state, t, 4, state, NULL, t->type));
    TRY(hwnas_tape_layout(&l->cells, t, 4, state, NULL, dnnl_f32));
    return hwnas_tape_layout(&l->bias, t, 4, bias, NULL, dnnl_f32);
}

static hwnas_status describe_rnn(rnn *out, hwnas_tape *t, const hwnas_node *node)
{
    static const dnnl_rnn_direction_t directions[] = {
        [HWNAS_RNN_FORWARD] = dnnl_unidirectional_left2right,
        [HWNAS_RNN_REVERSE] = dnnl_unidirectional_right2left,
        [HWNAS_RNN_BOTH] = dnnl_bidirectional_concat,
    };
    const int64_t *x = hwnas_node_input(t->graph, node, HWNAS_RNN_X)->dims;
    const int64_t *y = hwnas_node_output(t->graph, node)->dims;
    const bool is_lstm = hwnas_node_is(node, HWNAS_OP_LSTM_CORE);
    for (int i = HWNAS_RNN_W; i <= HWNAS_RNN_R; i++)
        if (hwnas_node_input(t->graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                         "'%s': the device 'cpu' has no gradient of the operator "
                                         "'%s' with weights that are computed",
                                         node->name, node->op->name),
                              "--device torch trains it as PyTorch does");
    *out = (rnn){.cell = is_lstm ? &hwnas_onednn_lstm_cell : &hwnas_onednn_gru_cell,
                 .is_lstm = is_lstm,
                 .steps = x[0],
                 .batch = x[1],
                 .features = x[2],
                 .hidden = y[3],
                 .directions = y[1],
                 .direction = directions[node->attrs[HWNAS_RNN_DIRECTION].ints[0]]};
    TRY(describe_values(out, t, x, y));
    TRY(describe_matrix(&out->w, &out->kept_w, &out->plain_w, t, out, out->features));
    return describe_matrix(&out->r, &out->kept_r, &out->plain_r, t, out, out->hidden);
}

/* The weight in the order of gates of the tape; its layout is that of its gradient. */
static hwnas_status take_weight(int *out, hwnas_tape *t, int tensor, const rnn *l,
                                const_dnnl_memory_desc_t kept, const_dnnl_memory_desc_t plain,
                                int64_t columns)
{
    TRY(hwnas_gradient_weight(out, t, tensor, kept, plain));
    if (l->is_lstm) /* a GRU's gates are in ONNX's order */
        hwnas_tape_order_gates(t, t->master[tensor], l->hidden * columns);
    return HWNAS_OK;
}

/* Row `at` of a bias that is directions x `n` x hidden. */
static hwnas_status bias_row(int *out, hwnas_tape *t, int slot, const rnn *l, int n, int at)
{
    const dnnl_dims_t all_dims = {1, l->directions, n, l->hidden};
    const dnnl_dims_t dims = {1, l->directions, 1, l->hidden}, offsets = {0, 0, at, 0};
    const_dnnl_memory_desc_t all;
    dnnl_memory_desc_t part;
    TRY(hwnas_tape_layout(&all, t, 4, all_dims, NULL, dnnl_f32));
    TRY_DNNL("describe", t->name, dnnl_memory_desc_create_submemory(&part, all, dims, offsets));
    *out = hwnas_tape_add_view(t, slot, hwnas_tape_own(t, part));
    return HWNAS_OK;
}

/* The rows of ONNX's biases, W's behind R's, whose sum is oneDNN's bias `b`; how many. */
static int rows_of_bias(int *rows, const hwnas_onednn_cell *cell, int b)
{
    int n = 0;
    if (cell->bias_of_w[b] >= 0)
        rows[n++] = cell->bias_of_w[b];
    if (cell->bias_of_r[b] >= 0)
        rows[n++] = cell->n_gates + cell->bias_of_r[b];
    return n;
}

static hwnas_status take_bias_row(hwnas_tape *t, const rnn *l, int both, int sum, int b)
{
    const hwnas_onednn_cell *cell = l->cell;
    int rows[2], parts[2], out;
    const int n = rows_of_bias(rows, cell, b);
    for (int i = 0; i < n; i++)
        TRY(bias_row(&parts[i], t, both, l, 2 * cell->n_gates, rows[i]));
    TRY(bias_row(&out, t, sum, l, cell->n_biases, b));
    if (n == 1)
        return hwnas_tape_reorder(t, parts[0], out);
    dnnl_primitive_desc_t desc = NULL;
    const dnnl_status_t made = dnnl_binary_primitive_desc_create(
        &desc, t->device->engine, dnnl_binary_add, t->slots[parts[0]].layout,
        t->slots[parts[1]].layout, t->slots[out].layout, t->attr);
    const hwnas_tape_arg args[] = {
        {DNNL_ARG_SRC_0, parts[0]}, {DNNL_ARG_SRC_1, parts[1]}, {DNNL_ARG_DST, out}};
    return hwnas_tape_add_primitive(t, made, desc, 3, args);
}

/* oneDNN has one bias, the sum of the two that ONNX has, one behind the other. */
static hwnas_status take_bias(int *out, hwnas_tape *t, const hwnas_node *node, const rnn *l)
{
    const_dnnl_memory_desc_t plain;
    int both;
    if (node->n_inputs <= HWNAS_RNN_B) {
        *out = hwnas_tape_add_kept(t, l->bias, l->bias, NULL);
        return HWNAS_OK;
    }
    TRY(hwnas_tape_plain(&plain, t, node->inputs[HWNAS_RNN_B], dnnl_f32));
    TRY(hwnas_gradient_input(&both, t, node, HWNAS_RNN_B, plain));
    *out = hwnas_tape_add_slot(t, l->bias);
    for (int b = 0; b < l->cell->n_biases; b++)
        TRY(take_bias_row(t, l, both, *out, b));
    return HWNAS_OK;
}

static dnnl_status_t make_forward(dnnl_primitive_desc_t *out, const hwnas_tape *t, const rnn *l)
{
    const dnnl_prop_kind_t kind = dnnl_forward_training;
    const dnnl_engine_t engine = t->device->engine;
    if (l->is_lstm)
        return dnnl_lstm_forward_primitive_desc_create(
            out, engine, kind, l->direction, l->x, l->state, l->cells, l->w, l->r, NULL, NULL,
            l->bias, l->y, NULL, NULL, dnnl_rnn_flags_undef, t->attr);
    return dnnl_lbr_gru_forward_primitive_desc_create(out, engine, kind, l->direction, l->x,
                                                      l->state, l->w, l->r, l->bias, l->y, NULL,
                                                      dnnl_rnn_flags_undef, t->attr);
}

static dnnl_status_t make_backward(dnnl_primitive_desc_t *out, const hwnas_tape *t, const rnn *l,
                                   const_dnnl_primitive_desc_t forward)
{
    const dnnl_engine_t engine = t->device->engine;
    if (l->is_lstm)
        return dnnl_lstm_backward_primitive_desc_create(
            out, engine, dnnl_backward, l->direction, l->x, l->state, l->cells, l->w, l->r, NULL,
            NULL, l->bias, l->y, NULL, NULL, l->dx, l->cells, l->cells, l->kept_w, l->kept_r, NULL,
            NULL, l->bias, l->dy, NULL, NULL, dnnl_rnn_flags_undef, forward, t->attr);
    return dnnl_lbr_gru_backward_primitive_desc_create(
        out, engine, dnnl_backward, l->direction, l->x, l->state, l->w, l->r, l->bias, l->y, NULL,
        l->dx, l->cells, l->kept_w, l->kept_r, l->bias, l->dy, NULL, dnnl_rnn_flags_undef, forward,
        t->attr);
}

/* The arguments that forward and backward have in common, with the weights as `desc` wants them. */
static hwnas_status take_args(hwnas_tape_arg *args, int *n, hwnas_tape *t, const rnn *l,
                              const_dnnl_primitive_desc_t desc)
{
    const hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t layout;
    int w, r;
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_LAYER));
    TRY(hwnas_tape_convert(&w, t, note->slots[W], layout));
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WEIGHTS_ITER));
    TRY(hwnas_tape_convert(&r, t, note->slots[R], layout));
    const hwnas_tape_arg all[] = {{DNNL_ARG_SRC_LAYER, note->slots[X]},
                                  {DNNL_ARG_WEIGHTS_LAYER, w},
                                  {DNNL_ARG_WEIGHTS_ITER, r},
                                  {DNNL_ARG_BIAS, note->slots[BIAS]},
                                  {DNNL_ARG_SRC_ITER, note->slots[STATE]},
                                  {DNNL_ARG_DST_LAYER, note->slots[Y]},
                                  {DNNL_ARG_WORKSPACE, note->slots[WORKSPACE]},
                                  {DNNL_ARG_SRC_ITER_C, note->slots[CELL]}};
    *n = l->is_lstm ? 8 : 7;
    memcpy(args, all, (size_t)*n * sizeof *args);
    return HWNAS_OK;
}

static hwnas_status rnn_forward(hwnas_tape *t, const hwnas_node *node)
{
    hwnas_tape_note *note = &t->notes[t->node];
    const_dnnl_memory_desc_t layout;
    dnnl_primitive_desc_t desc = NULL;
    hwnas_tape_arg args[HWNAS_TAPE_ARGS];
    int n;
    rnn l;
    TRY(describe_rnn(&l, t, node));
    TRY(hwnas_gradient_input(&note->slots[X], t, node, HWNAS_RNN_X, l.x));
    TRY(take_weight(&note->slots[W], t, node->inputs[HWNAS_RNN_W], &l, l.kept_w, l.plain_w,
                    l.features));
    TRY(take_weight(&note->slots[R], t, node->inputs[HWNAS_RNN_R], &l, l.kept_r, l.plain_r,
                    l.hidden));
    TRY(take_bias(&note->slots[BIAS], t, node, &l));
    note->slots[STATE] = hwnas_tape_add_kept(t, l.state, l.state, NULL);
    note->slots[CELL] = l.is_lstm ? hwnas_tape_add_kept(t, l.cells, l.cells, NULL) : HWNAS_NO_SLOT;
    const dnnl_status_t made = make_forward(&desc, t, &l);
    TRY_DNNL("compile the training of", t->name, made);
    note->hint = desc;
    TRY(hwnas_tape_wanted(&layout, t, desc, DNNL_ARG_WORKSPACE));
    note->slots[WORKSPACE] = hwnas_tape_add_slot(t, layout);
    note->slots[Y] = hwnas_tape_add_slot(t, l.y);
    TRY(take_args(args, &n, t, &l, desc));
    TRY(hwnas_tape_add_primitive(t, made, desc, n, args));
    hwnas_gradient_set(t, node, NULL, hwnas_tape_add_view(t, note->slots[Y], l.shown));
    return HWNAS_OK;
}

/* The gradient of a sum is that of what was summed. */
static hwnas_status give_bias(hwnas_tape *t, const hwnas_node *node, const rnn *l, int db)
{
    const hwnas_onednn_cell *cell = l->cell;
    const_dnnl_memory_desc_t plain;
    if (!hwnas_gradient_is_wanted(t, node, HWNAS_RNN_B))
        return HWNAS_OK;
    TRY(hwnas_tape_plain(&plain, t, node->inputs[HWNAS_RNN_B], dnnl_f32));
    const int both = hwnas_tape_add_slot(t, plain);
    for (int b = 0; b < cell->n_biases; b++) {
        int rows[2], from, to;
        const int n = rows_of_bias(rows, cell, b);
        TRY(bias_row(&from, t, db, l, cell->n_biases, b));
        for (int i = 0; i < n; i++) {
            TRY(bias_row(&to, t, both, l, 2 * cell->n_gates, rows[i]));
            TRY(hwnas_tape_reorder(t, from, to));
        }
    }
    return hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_B], both);
}

static hwnas_status rnn_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    dnnl_primitive_desc_t desc = NULL;
    hwnas_tape_arg args[HWNAS_TAPE_ARGS];
    rnn l;
    int n, dw, dr, db;
    TRY(describe_rnn(&l, t, node));
    TRY(hwnas_tape_convert(&dy, t, dy, l.dy_shown));
    dy = hwnas_tape_add_view(t, dy, l.dy);
    const dnnl_status_t made = make_backward(&desc, t, &l, t->notes[t->node].hint);
    TRY_DNNL("compile the gradient of", t->name, made);
    TRY(take_args(args, &n, t, &l, desc));
    int dx = hwnas_tape_add_slot(t, l.dx);
    TRY(hwnas_gradient_zeros(&dw, t, l.kept_w)); /* the primitive adds to these */
    TRY(hwnas_gradient_zeros(&dr, t, l.kept_r));
    TRY(hwnas_gradient_zeros(&db, t, l.bias));
    const hwnas_tape_arg gradients[] = {
        {DNNL_ARG_DIFF_DST_LAYER, dy},
        {DNNL_ARG_DIFF_SRC_LAYER, dx},
        {DNNL_ARG_DIFF_WEIGHTS_LAYER, dw},
        {DNNL_ARG_DIFF_WEIGHTS_ITER, dr},
        {DNNL_ARG_DIFF_BIAS, db},
        {DNNL_ARG_DIFF_SRC_ITER, hwnas_tape_add_slot(t, l.cells)},
        {DNNL_ARG_DIFF_SRC_ITER_C, l.is_lstm ? hwnas_tape_add_slot(t, l.cells) : HWNAS_NO_SLOT}};
    const int n_gradients = l.is_lstm ? 7 : 6;
    memcpy(args + n, gradients, (size_t)n_gradients * sizeof *args);
    TRY(hwnas_tape_add_primitive(t, made, desc, n + n_gradients, args));
    TRY(hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_W], dw));
    TRY(hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_R], dr));
    TRY(give_bias(t, node, &l, db));
    if (!t->is_learnt[node->inputs[HWNAS_RNN_X]])
        return HWNAS_OK;
    TRY(hwnas_tape_convert(&dx, t, dx, l.x));
    return hwnas_tape_add_gradient(t, node->inputs[HWNAS_RNN_X], dx);
}

const hwnas_gradient_rule hwnas_gradient_recurrent = {rnn_forward, rnn_backward};
