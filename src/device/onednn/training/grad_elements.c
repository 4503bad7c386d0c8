/* grad_elements.c: PReLU, choices, repetitions, casts and some functions, as floats in plain order;
 * and what has no gradient, such as a comparison. */
#include "device/onednn/function_values.h"
#include "device/onednn/repeats.h"
#include "device/onednn/training/gradients.h"

/* ---- Floats in plain order ---- */

hwnas_status hwnas_gradient_float_input(int *out, hwnas_tape *t, const hwnas_node *node, int i)
{
    const_dnnl_memory_desc_t plain;
    const int tensor = node->inputs[i];
    if (t->graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT) /* whole numbers are not rounded */
        return hwnas_gradient_weight(out, t, tensor, NULL, NULL);
    TRY(hwnas_tape_plain(&plain, t, tensor, dnnl_f32));
    return hwnas_gradient_input(out, t, node, i, plain);
}

hwnas_status hwnas_gradient_float_output(int *out, hwnas_tape *t, const hwnas_node *node)
{
    const_dnnl_memory_desc_t plain;
    TRY(hwnas_tape_plain(&plain, t, node->output, dnnl_f32));
    *out = hwnas_tape_add_slot(t, plain);
    return HWNAS_OK;
}

hwnas_status hwnas_gradient_set_floats(hwnas_tape *t, const hwnas_node *node, int slot)
{
    const_dnnl_memory_desc_t plain;
    if (!hwnas_dtype_is_whole(hwnas_node_output(t->graph, node)->dtype)) {
        TRY(hwnas_tape_plain(&plain, t, node->output, t->type));
        TRY(hwnas_tape_convert(&slot, t, slot, plain));
    }
    hwnas_gradient_set(t, node, NULL, slot);
    return HWNAS_OK;
}

hwnas_status hwnas_gradient_floats_of(int *out, hwnas_tape *t, const hwnas_node *node, int dy)
{
    const_dnnl_memory_desc_t plain;
    TRY(hwnas_tape_plain(&plain, t, node->output, dnnl_f32));
    return hwnas_tape_convert(out, t, dy, plain);
}

/* ---- The operator's own loops ---- */

static void compute(const hwnas_tape *t, const void *settings, void *const *values)
{
    const hwnas_node *node = &t->graph->nodes[*(const int *)settings];
    const float *inputs[HWNAS_TAPE_LOOP_ARGS];
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = values[i];
    node->op->compute(t->graph, node, inputs, values[node->n_inputs]);
}

hwnas_status hwnas_gradient_compute(hwnas_tape *t, const hwnas_node *node)
{
    int slots[HWNAS_TAPE_LOOP_ARGS];
    const int index = (int)(node - t->graph->nodes);
    if (node->n_inputs >= HWNAS_TAPE_LOOP_ARGS)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' has too many inputs to be trained",
                          node->name);
    for (int i = 0; i < node->n_inputs; i++)
        TRY(hwnas_gradient_float_input(&slots[i], t, node, i));
    TRY(hwnas_gradient_float_output(&slots[node->n_inputs], t, node));
    hwnas_tape_add_loop(t, compute, &index, sizeof index, node->n_inputs + 1, slots);
    return hwnas_gradient_set_floats(t, node, slots[node->n_inputs]);
}

const hwnas_gradient_rule hwnas_gradient_none = {.forward = hwnas_gradient_compute};

static hwnas_status cast_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    return hwnas_tape_add_gradient(t, node->inputs[0], dy);
}

const hwnas_gradient_rule hwnas_gradient_cast = {hwnas_gradient_compute, cast_backward};

/* ---- Sums over what was repeated ---- */

/* What of dy goes to an input, by the value of another one at its place. */
typedef enum part {
    ALL,
    WHERE_TRUE,
    WHERE_FALSE,
    BELOW,
    FACTOR,
    NEGATIVE,
    TIMES,
    BY,
    DIVISOR,
    COSINE,
    SINE,
    BELL
} part;

typedef struct shares {
    part which;
    int rank;
    int64_t n, n_rows; /* a row: the last dimension */
    int64_t dims[HWNAS_MAX_RANK], to[HWNAS_MAX_RANK], other[HWNAS_MAX_RANK], slope[HWNAS_MAX_RANK];
} shares;

/* `other` and `slope`: inputs, or -1. */
static shares shares_of(const hwnas_tape *t, const hwnas_node *node, part which, int to, int other,
                        int slope)
{
    const hwnas_tensor *out = hwnas_node_output(t->graph, node);
    shares s = {.which = which, .rank = out->rank, .n = out->rank ? out->dims[out->rank - 1] : 1};
    s.n_rows = hwnas_tensor_count(out) / s.n;
    for (int i = 0; i < out->rank; i++) {
        s.dims[i] = out->dims[i];
        s.to[i] = hwnas_onednn_repeat_stride(hwnas_node_input(t->graph, node, to), out, i);
        s.other[i] =
            other < 0 ? 0
                      : hwnas_onednn_repeat_stride(hwnas_node_input(t->graph, node, other), out, i);
        s.slope[i] =
            slope < 0 ? 0
                      : hwnas_onednn_repeat_stride(hwnas_node_input(t->graph, node, slope), out, i);
    }
    return s;
}

/* By their bits, without a jump for each value. */
HWNAS_INLINE bool is_below(float x)
{
    return hwnas_word_of(x) > 0x80000000u;
}

HWNAS_INLINE bool is_true(float x)
{
    return (hwnas_word_of(x) & 0x7fffffffu) != 0;
}

HWNAS_INLINE float share(part which, float dy, float other, float slope)
{
    switch (which) {
    case WHERE_TRUE:
        return hwnas_pick(is_true(other), dy, 0);
    case WHERE_FALSE:
        return hwnas_pick(is_true(other), 0, dy);
    case BELOW: /* of x itself, where it is `other` */
        return hwnas_pick(is_below(other), dy * slope, dy);
    case FACTOR: /* of the slope */
        return hwnas_pick(is_below(other), dy * other, 0);
    case NEGATIVE:
        return -dy;
    case TIMES:
        return dy * other;
    case BY:
        return dy / other;
    case DIVISOR: /* of `other`, by which `slope` is divided */
        return -dy * slope / (other * other);
    default:
        return dy;
    }
}

/* Each of the three walks along the row or stands still. */
HWNAS_INLINE void add_row(float *to, int64_t to_step, const float *dy, const float *other,
                          int64_t other_step, const float *slope, int64_t slope_step, int64_t n,
                          part which)
{
    float sum = 0;
    if (to_step)
        for (int64_t i = 0; i < n; i++)
            to[i] += share(which, dy[i], other[i * other_step], slope[i * slope_step]);
    else
        for (int64_t i = 0; i < n; i++)
            sum += share(which, dy[i], other[i * other_step], slope[i * slope_step]);
    if (!to_step)
        *to += sum;
}

HWNAS_CLONES static void add_any_row(float *to, int64_t to_step, const float *dy,
                                     const float *other, int64_t other_step, const float *slope,
                                     int64_t slope_step, int64_t n, part which)
{
    switch (which) {
#define CASE(PART)                                                                                 \
    case PART:                                                                                     \
        add_row(to, to_step, dy, other, other_step, slope, slope_step, n, PART);                   \
        break
        CASE(ALL);
        CASE(WHERE_TRUE);
        CASE(WHERE_FALSE);
        CASE(BELOW);
        CASE(FACTOR);
        CASE(NEGATIVE);
        CASE(TIMES);
        CASE(BY);
        CASE(DIVISOR);
    default:; /* below */
    }
}

/* Of functions by math.h. What is given to is `x` itself. */
static void add_smooth_row(float *to, const float *dy, const float *x, int64_t n, part which)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += dy[i] * (which == COSINE ? cosf(x[i])
                          : which == SINE ? -sinf(x[i])
                                          : 1.12837917f * expf(-x[i] * x[i])); /* 2 / sqrt(pi) */
}

/* Values: the sums, which are zeros before, dy, and the others, if there are any. */
static void add_shares(const hwnas_tape *t, const void *settings, void *const *values)
{
    const shares *s = settings;
    const int last = s->rank - 1;
    float *to = values[0];
    const float *dy = values[1], *other = values[2], *slope = values[3];
    int64_t index[HWNAS_MAX_RANK] = {0};
    (void)t;
    for (int64_t row = 0; row < s->n_rows; row++) {
        int64_t at[3] = {0};
        for (int i = 0; i < last; i++) {
            at[0] += index[i] * s->to[i];
            at[1] += index[i] * s->other[i];
            at[2] += index[i] * s->slope[i];
        }
        if (s->which >= COSINE)
            add_smooth_row(to + row * s->n, dy + row * s->n, other + row * s->n, s->n, s->which);
        else
            add_any_row(to + at[0], s->rank ? s->to[last] : 0, dy + row * s->n, other + at[1],
                        s->rank ? s->other[last] : 0, slope + at[2], s->rank ? s->slope[last] : 0,
                        s->n, s->which);
        for (int i = last - 1; i >= 0 && ++index[i] == s->dims[i]; i--)
            index[i] = 0;
    }
}

/* Adds to the gradient of input `to` its share of dy. */
static hwnas_status give(hwnas_tape *t, const hwnas_node *node, int dy, part which, int to,
                         int other, int slope)
{
    const_dnnl_memory_desc_t plain;
    int slots[4];
    if (!hwnas_gradient_is_wanted(t, node, to))
        return HWNAS_OK;
    const shares s = shares_of(t, node, which, to, other, slope);
    TRY(hwnas_tape_plain(&plain, t, node->inputs[to], dnnl_f32));
    TRY(hwnas_gradient_zeros(&slots[0], t, plain));
    TRY(hwnas_gradient_floats_of(&slots[1], t, node, dy));
    slots[2] = slots[3] = slots[1]; /* not looked at */
    if (other >= 0)
        TRY(hwnas_gradient_float_input(&slots[2], t, node, other));
    if (slope >= 0)
        TRY(hwnas_gradient_float_input(&slots[3], t, node, slope));
    hwnas_tape_add_loop(t, add_shares, &s, sizeof s, 4, slots);
    return hwnas_tape_add_gradient(t, node->inputs[to], slots[0]);
}

static hwnas_status expand_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    return give(t, node, dy, ALL, 0, -1, -1);
}

const hwnas_gradient_rule hwnas_gradient_expand = {hwnas_gradient_compute, expand_backward};

static hwnas_status where_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    TRY(give(t, node, dy, WHERE_TRUE, 1, 0, -1));
    return give(t, node, dy, WHERE_FALSE, 2, 0, -1);
}

const hwnas_gradient_rule hwnas_gradient_where = {hwnas_gradient_compute, where_backward};

static hwnas_status prelu_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    TRY(give(t, node, dy, BELOW, 0, 0, 1));
    return give(t, node, dy, FACTOR, 1, 0, -1);
}

const hwnas_gradient_rule hwnas_gradient_prelu = {hwnas_gradient_compute, prelu_backward};

static hwnas_status smooth_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    const hwnas_op_id op = node->op->id;
    return give(t, node, dy,
                op == HWNAS_OP_ERF   ? BELL
                : op == HWNAS_OP_SIN ? COSINE
                                     : SINE,
                0, 0, -1);
}

const hwnas_gradient_rule hwnas_gradient_smooth = {hwnas_gradient_compute, smooth_backward};

/* Sums, differences, products and quotients of which both operands are repeated, or the first. */
static hwnas_status pair_backward(hwnas_tape *t, const hwnas_node *node, int dy)
{
    switch (node->op->id) {
    case HWNAS_OP_MUL:
        TRY(give(t, node, dy, TIMES, 0, 1, -1));
        return give(t, node, dy, TIMES, 1, 0, -1);
    case HWNAS_OP_DIV:
        TRY(give(t, node, dy, BY, 0, 1, -1));
        return give(t, node, dy, DIVISOR, 1, 1, 0);
    default:
        TRY(give(t, node, dy, ALL, 0, -1, -1));
        return give(t, node, dy, node->op->id == HWNAS_OP_SUB ? NEGATIVE : ALL, 1, -1, -1);
    }
}

const hwnas_gradient_rule hwnas_gradient_pair = {hwnas_gradient_compute, pair_backward};
