/* repeats.c: dimensions along which all operands walk on, or all stand still, are one; along the
 * last of those that are left each operand walks or stands still. */
#include "device/onednn/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/function_values.h"
#include "graph/op.h"

enum { MOST = 3 }; /* operands */

/* Of a row of `n` values; `walks` has a bit for each operand. */
typedef void loop(float *out, const float *const *in, int64_t n, unsigned walks);

typedef struct repeats {
    loop *run;
    int n_inputs, rank; /* rank: without the dimension that is a row */
    int64_t n, n_rows;
    int64_t dims[HWNAS_MAX_RANK];          /* the last first */
    int64_t strides[MOST][HWNAS_MAX_RANK]; /* of each operand along them, values */
    unsigned walks;
} repeats;

/* ---- Loops ---- */

HWNAS_INLINE float at(const float *in, int64_t i, bool walks)
{
    return in[walks ? i : 0];
}

/* The last values of an operand, fewer than sixteen, and how many there are is not zero. */
HWNAS_INLINE void take_rest(float *rest, const float *in, int64_t n, bool walks)
{
    memset(rest, 0, HWNAS_LANES * sizeof *rest);
    memcpy(rest, in, (size_t)(walks ? n : 1) * sizeof *rest);
}

#define PAIR(NAME, VALUE)                                                                          \
    HWNAS_INLINE float NAME##_of(float a, float b)                                                 \
    {                                                                                              \
        return VALUE;                                                                              \
    }                                                                                              \
    HWNAS_INLINE void NAME##_row(float *out, const float *a, const float *b, int64_t n,            \
                                 bool a_walks, bool b_walks)                                       \
    {                                                                                              \
        float rest[2][HWNAS_LANES], made[HWNAS_LANES];                                             \
        int64_t i = 0;                                                                             \
        for (; i + HWNAS_LANES <= n; i += HWNAS_LANES)                                             \
            HWNAS_EACH_LANE(k)                                                                     \
        out[i + k] = NAME##_of(at(a, i + k, a_walks), at(b, i + k, b_walks));                      \
        if (i == n)                                                                                \
            return;                                                                                \
        take_rest(rest[0], a + (a_walks ? i : 0), n - i, a_walks);                                 \
        take_rest(rest[1], b + (b_walks ? i : 0), n - i, b_walks);                                 \
        HWNAS_EACH_LANE(k)                                                                         \
        made[k] = NAME##_of(at(rest[0], k, a_walks), at(rest[1], k, b_walks));                     \
        memcpy(out + i, made, (size_t)(n - i) * sizeof *out);                                      \
    }                                                                                              \
    HWNAS_CLONES static void NAME(float *out, const float *const *in, int64_t n, unsigned walks)   \
    {                                                                                              \
        if (walks == 3)                                                                            \
            NAME##_row(out, in[0], in[1], n, true, true);                                          \
        else if (walks == 1)                                                                       \
            NAME##_row(out, in[0], in[1], n, true, false);                                         \
        else                                                                                       \
            NAME##_row(out, in[0], in[1], n, false, walks == 2);                                   \
    }

PAIR(slope, hwnas_pick(a < 0, a *b, a))
PAIR(greatest, hwnas_pick((a > b) | (a != a), a, b))
PAIR(least, hwnas_pick((a < b) | (a != a), a, b))
PAIR(equal, hwnas_pick(a == b, 1, 0))
PAIR(greater, hwnas_pick(a > b, 1, 0))
PAIR(greater_or_equal, hwnas_pick(a >= b, 1, 0))
PAIR(less, hwnas_pick(a < b, 1, 0))
PAIR(less_or_equal, hwnas_pick(a <= b, 1, 0))
PAIR(both, hwnas_pick((a != 0) & (b != 0), 1, 0))
PAIR(either, hwnas_pick((a != 0) | (b != 0), 1, 0))

HWNAS_INLINE void choose_row(float *out, const float *const *in, int64_t n, bool a_walks,
                             bool b_walks)
{
    float rest[MOST][HWNAS_LANES];
    int64_t i = 0;
    for (; i + HWNAS_LANES <= n; i += HWNAS_LANES)
        HWNAS_EACH_LANE(k)
    out[i + k] =
        hwnas_pick(in[0][i + k] != 0, at(in[1], i + k, a_walks), at(in[2], i + k, b_walks));
    if (i == n)
        return;
    take_rest(rest[0], in[0] + i, n - i, true);
    take_rest(rest[1], in[1] + (a_walks ? i : 0), n - i, a_walks);
    take_rest(rest[2], in[2] + (b_walks ? i : 0), n - i, b_walks);
    HWNAS_EACH_LANE(k)
    rest[0][k] = hwnas_pick(rest[0][k] != 0, at(rest[1], k, a_walks), at(rest[2], k, b_walks));
    memcpy(out + i, rest[0], (size_t)(n - i) * sizeof *out);
}

/* Rows are short now and then: a call of memcpy() for each takes as long as all else. */
HWNAS_INLINE void copy_row(float *out, const float *in, int64_t n)
{
    int64_t i = 0;
    if (n > 128) {
        memcpy(out, in, (size_t)n * sizeof *out);
        return;
    }
    for (; i + HWNAS_HALF_LANES <= n; i += HWNAS_HALF_LANES)
        *(hwnas_half *)(out + i) = *(const hwnas_half *)(in + i);
    for (; i < n; i++)
        out[i] = in[i];
}

/* `n_rows` rows, of which the input's lie `apart` from each other. */
HWNAS_CLONES static void copy_rows(float *out, const float *in, int64_t n, int64_t n_rows,
                                   int64_t apart)
{
    for (int64_t row = 0; row < n_rows; row++)
        copy_row(out + row * n, in + row * apart, n);
}

static void copy(float *out, const float *const *in, int64_t n, unsigned walks)
{
    if (walks)
        memcpy(out, in[0], (size_t)n * sizeof *out);
    for (int64_t i = 0; i < n && !walks; i++)
        out[i] = *in[0];
}

HWNAS_CLONES static void choose(float *out, const float *const *in, int64_t n, unsigned walks)
{
    if (walks == 7)
        choose_row(out, in, n, true, true);
    else if (walks == 5)
        choose_row(out, in, n, false, true);
    else if (walks == 3)
        choose_row(out, in, n, true, false);
    else if (walks == 1)
        choose_row(out, in, n, false, false);
    else
        copy(out, *in[0] != 0 ? in + 1 : in + 2, n, walks & (*in[0] != 0 ? 2 : 4));
}

static loop *const loops[HWNAS_N_OPS + 1] = {
    [HWNAS_OP_AND] = both,
    [HWNAS_OP_EQUAL] = equal,
    [HWNAS_OP_EXPAND] = copy,
    [HWNAS_OP_GREATER] = greater,
    [HWNAS_OP_GREATER_OR_EQUAL] = greater_or_equal,
    [HWNAS_OP_LESS] = less,
    [HWNAS_OP_LESS_OR_EQUAL] = less_or_equal,
    [HWNAS_OP_MAX] = greatest,
    [HWNAS_OP_MIN] = least,
    [HWNAS_OP_OR] = either,
    [HWNAS_OP_PRELU] = slope,
    [HWNAS_OP_WHERE] = choose,
};

/* ---- Compiling ---- */

bool hwnas_onednn_is_repeat(const hwnas_graph *graph, const hwnas_node *node)
{
    return loops[node->op->id] &&
           (node->op->id != HWNAS_OP_PRELU || !hwnas_node_is_whole(graph, node));
}

int64_t hwnas_onednn_repeat_stride(const hwnas_tensor *in, const hwnas_tensor *out, int i)
{
    const int axis = i - (out->rank - in->rank);
    int64_t stride = 1;
    if (axis < 0 || in->dims[axis] == 1)
        return 0;
    for (int k = axis + 1; k < in->rank; k++)
        stride *= in->dims[k];
    return stride;
}

/* Whether one more dimension with these strides goes on where the last one ends. */
static bool goes_on(const repeats *r, const int64_t *strides)
{
    const int last = r->rank - 1;
    for (int k = 0; k < r->n_inputs; k++)
        if (strides[k] != r->strides[k][last] * r->dims[last])
            return false;
    return true;
}

static void add_dimension(repeats *r, int64_t n, const int64_t *strides)
{
    if (r->rank && goes_on(r, strides)) {
        r->dims[r->rank - 1] *= n;
        return;
    }
    for (int k = 0; k < r->n_inputs; k++)
        r->strides[k][r->rank] = strides[k];
    r->dims[r->rank++] = n;
}

/* The first dimension becomes the row. */
static void take_row(repeats *r)
{
    r->n = r->rank ? r->dims[0] : 1;
    for (int k = 0; k < r->n_inputs; k++) {
        r->walks |= r->rank && r->strides[k][0] ? 1u << k : 0;
        memmove(r->strides[k], r->strides[k] + 1, (HWNAS_MAX_RANK - 1) * sizeof **r->strides);
    }
    memmove(r->dims, r->dims + 1, (HWNAS_MAX_RANK - 1) * sizeof *r->dims);
    r->rank -= r->rank > 0;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    repeats *r = step->state = hwnas_alloc(sizeof *r);
    (void)device;
    *r = (repeats){.run = loops[node->op->id], .n_inputs = node->n_inputs};
    for (int i = out->rank - 1; i >= 0; i--) {
        int64_t strides[MOST] = {0};
        for (int k = 0; k < node->n_inputs; k++)
            strides[k] = hwnas_onednn_repeat_stride(hwnas_node_input(graph, node, k), out, i);
        if (out->dims[i] > 1)
            add_dimension(r, out->dims[i], strides);
    }
    take_row(r);
    r->n_rows = hwnas_tensor_count(out) / r->n;
    return HWNAS_OK;
}

/* ---- Running ---- */

/* Of rows `first` to `end` the values from `from` to `to`. */
static void run_part(const repeats *r, float *out, const float *const *inputs, int64_t first,
                     int64_t end, int64_t from, int64_t to)
{
    int64_t index[HWNAS_MAX_RANK] = {0}, rest = first;
    const float *in[MOST];
    for (int k = 0; k < r->n_inputs; k++)
        in[k] = inputs[k] + (r->walks >> k & 1 ? from : 0);
    for (int i = 0; i < r->rank; rest /= r->dims[i++]) {
        index[i] = rest % r->dims[i];
        for (int k = 0; k < r->n_inputs; k++)
            in[k] += index[i] * r->strides[k][i];
    }
    for (int64_t row = first; row < end; row++) {
        const int64_t left = r->rank ? r->dims[0] - index[0] : 1,
                      n = left < end - row ? left : end - row;
        if (r->run == copy && r->walks && to - from == r->n) {
            copy_rows(out + row * r->n, in[0], r->n, n, r->rank ? r->strides[0][0] : 0);
            row += n - 1;
            in[0] += r->rank ? (n - 1) * r->strides[0][0] : 0;
            index[0] += n - 1;
        } else {
            r->run(out + row * r->n + from, in, to - from, r->walks);
        }
        for (int i = 0; i < r->rank; i++) {
            const bool is_at_end = ++index[i] == r->dims[i];
            for (int k = 0; k < r->n_inputs; k++)
                in[k] += r->strides[k][i] * (is_at_end ? 1 - r->dims[i] : 1);
            if (!is_at_end)
                break;
            index[i] = 0;
        }
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const repeats *r = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    const float *in[MOST];
    for (size_t k = 0; k < step->n_inputs; k++)
        in[k] = hwnas_onednn_values(step->inputs[k]);
    int64_t n_parts = r->n_rows * r->n / WORTH_A_THREAD;
    n_parts = n_parts > device->threads ? device->threads : n_parts < 1 ? 1 : n_parts;
#pragma omp parallel for num_threads(n_parts) if (n_parts > 1)
    for (int64_t i = 0; i < n_parts; i++)
        if (r->n_rows >= n_parts)
            run_part(r, out, in, r->n_rows * i / n_parts, r->n_rows * (i + 1) / n_parts, 0, r->n);
        else
            run_part(r, out, in, 0, r->n_rows, r->n * i / n_parts, r->n * (i + 1) / n_parts);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_repeats = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free,
};
