/* broadcast_rows.c: operators of two tensors and softmax on one row after the other. */
#include "device/onednn/broadcast_rows.h"

#include <math.h>
#include <stdlib.h>

#include "device/onednn/broadcasts.h"
#include "device/onednn/simd.h"

typedef hwnas_onednn_operand operand;
typedef hwnas_onednn_operation operation;
typedef hwnas_onednn_broadcast broadcasts;

/* The compiler makes a loop for each constant `alg`. */
HWNAS_INLINE void combine_vectors(hwnas_vector *x, const hwnas_vector *y, dnnl_alg_kind_t alg)
{
    if (alg == dnnl_binary_add)
        *x += *y;
    else if (alg == dnnl_binary_sub)
        *x -= *y;
    else if (alg == dnnl_binary_mul)
        *x *= *y;
    else
        *x /= *y;
}

HWNAS_INLINE float combine_one(float x, float y, dnnl_alg_kind_t alg)
{
    return alg == dnnl_binary_add   ? x + y
           : alg == dnnl_binary_sub ? x - y
           : alg == dnnl_binary_mul ? x * y
                                    : x / y;
}

/* Each operand walks along the row or stands still. */
HWNAS_INLINE void combine_by(float *out, const float *in, const float *other, int64_t n,
                             dnnl_alg_kind_t alg, bool walks, bool other_walks)
{
    const hwnas_vector in_all = (hwnas_vector){0} + *in, other_all = (hwnas_vector){0} + *other;
    int64_t i = 0;
    for (; i + HWNAS_LANES <= n; i += HWNAS_LANES) {
        hwnas_vector x = in_all, y = other_all;
        if (walks)
            hwnas_load(&x, in + i);
        if (other_walks)
            hwnas_load(&y, other + i);
        combine_vectors(&x, &y, alg);
        hwnas_store(out + i, &x);
    }
    for (; i < n; i++)
        out[i] = combine_one(in[walks ? i : 0], other[other_walks ? i : 0], alg);
}

/* An operand that lies in another order than the result. */
HWNAS_INLINE void combine_far(float *out, const float *in, int64_t step, const float *other,
                              int64_t other_step, int64_t n, dnnl_alg_kind_t alg)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = combine_one(in[i * step], other[i * other_step], alg);
}

HWNAS_INLINE void combine_any(float *out, const float *in, int64_t step, const float *other,
                              int64_t other_step, int64_t n, dnnl_alg_kind_t alg)
{
    if (step == 1 && other_step == 1)
        combine_by(out, in, other, n, alg, true, true);
    else if (step == 1 && other_step == 0)
        combine_by(out, in, other, n, alg, true, false);
    else if (step == 0 && other_step == 1)
        combine_by(out, in, other, n, alg, false, true);
    else
        combine_far(out, in, step, other, other_step, n, alg);
}

HWNAS_INLINE void combine(float *out, const float *in, int64_t step, const float *other, int64_t n,
                          const operation *o)
{
    const int64_t other_step = o->other.step;
    if (o->alg == dnnl_binary_add)
        combine_any(out, in, step, other, other_step, n, dnnl_binary_add);
    else if (o->alg == dnnl_binary_sub)
        combine_any(out, in, step, other, other_step, n, dnnl_binary_sub);
    else if (o->alg == dnnl_binary_mul)
        combine_any(out, in, step, other, other_step, n, dnnl_binary_mul);
    else
        combine_any(out, in, step, other, other_step, n, dnnl_binary_div);
}

HWNAS_INLINE float greatest_of(const float *in, int64_t n)
{
    hwnas_vector most = (hwnas_vector){0} - INFINITY, x;
    int64_t i = 0;
    for (; i + HWNAS_LANES <= n; i += HWNAS_LANES) {
        hwnas_load(&x, in + i);
        hwnas_keep_greater(&most, &x);
    }
    float out = hwnas_greatest(&most);
    for (; i < n; i++)
        out = in[i] > out ? in[i] : out;
    return out;
}

/* e^(x - greatest), but 0 for what is too small to count: products with denormal numbers are slow.
 */
HWNAS_INLINE void exponentiate(hwnas_vector *x, float greatest)
{
    const hwnas_vector least = (hwnas_vector){0} - 80.0f, zero = {0}, below = *x - greatest;
    hwnas_exp(x, &below);
    hwnas_choose_less(x, &below, &least, &zero, x);
}

/* The last values of a row, from `whole` on; returns their sum. */
HWNAS_INLINE float exponentiate_rest(float *values, int64_t whole, int64_t n, float greatest)
{
    hwnas_vector x = (hwnas_vector){0} - INFINITY;
    float sum = 0;
    for (int64_t i = whole; i < n; i++)
        x[i - whole] = values[i];
    exponentiate(&x, greatest);
    for (int64_t i = whole; i < n; i++)
        sum += values[i] = x[i - whole];
    return sum;
}

HWNAS_INLINE void softmax_row(float *values, int64_t n)
{
    const int64_t whole = n / HWNAS_LANES * HWNAS_LANES;
    const float greatest = greatest_of(values, n);
    hwnas_vector sums = {0}, x;
    float sum = 0;
    for (int64_t i = 0; i < whole; i += HWNAS_LANES) {
        hwnas_load(&x, values + i);
        exponentiate(&x, greatest);
        sums += x;
        hwnas_store(values + i, &x);
    }
    if (whole < n)
        sum = exponentiate_rest(values, whole, n, greatest);
    const float factor = 1.0f / (hwnas_sum(&sums) + sum);
    combine_by(values, values, &factor, n, dnnl_binary_mul, true, false);
}

/* Where an operand's values are: of a row, and how far each of its dimensions has been counted. */
typedef struct cursor {
    const float *values;
    int64_t at[HWNAS_MAX_RANK];
} cursor;

static void find_row(cursor *c, const operand *o, const float *const *inputs, int64_t row)
{
    *c = (cursor){.values = o->input < 0 ? &o->number : inputs[o->input]};
    for (int i = 0; i < o->rank; row /= o->dims[i++]) {
        c->at[i] = row % o->dims[i];
        c->values += c->at[i] * o->strides[i];
    }
}

HWNAS_INLINE void next_row(cursor *c, const operand *o)
{
    for (int i = 0; i < o->rank; i++) {
        c->values += o->strides[i];
        if (++c->at[i] < o->dims[i])
            return;
        c->values -= o->dims[i] * o->strides[i];
        c->at[i] = 0;
    }
}

HWNAS_CLONES static void run_rows(const broadcasts *b, float *out, const float *const *inputs,
                                  int64_t first, int64_t end)
{
    cursor begin, cursors[HWNAS_FUSION_LONGEST];
    find_row(&begin, &b->first, inputs, first);
    for (int k = 0; k < b->n_operations; k++)
        find_row(&cursors[k], &b->operations[k].other, inputs, first);
    for (int64_t row = first; row < end; row++) {
        const float *in = begin.values;
        int64_t step = b->first.step;
        float *to = out + row * b->n;
        next_row(&begin, &b->first);
        for (int k = 0; k < b->n_operations; k++, in = to, step = 1) {
            const operation *o = &b->operations[k];
            combine(to, in, step, cursors[k].values, b->n, o);
            next_row(&cursors[k], &o->other);
        }
        if (b->ends_with_softmax)
            softmax_row(to, b->n);
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const broadcasts *b = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    const float *inputs[1 + HWNAS_FUSION_LONGEST];
    for (size_t i = 0; i < step->n_inputs; i++)
        inputs[i] = hwnas_onednn_values(step->inputs[i]);
    int64_t n_parts = b->n_rows * b->n / WORTH_A_THREAD;
    n_parts = n_parts > device->threads ? device->threads : n_parts;
    n_parts = n_parts > b->n_rows ? b->n_rows : n_parts < 1 ? 1 : n_parts;
#pragma omp parallel for num_threads(n_parts) if (n_parts > 1)
    for (int64_t i = 0; i < n_parts; i++)
        run_rows(b, out, inputs, b->n_rows * i / n_parts, b->n_rows * (i + 1) / n_parts);
    return dnnl_success;
}

static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    const broadcasts *b = step->state;
    return b->may_overwrite ? hwnas_onednn_over_first(step, output, k) : -1;
}

const hwnas_onednn_kind hwnas_onednn_broadcasts = {
    .name = "own loops",
    .run = run,
    .free = free,
    .in_place = in_place,
};
