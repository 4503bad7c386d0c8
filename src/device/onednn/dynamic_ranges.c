/* dynamic_ranges.c: the least and the greatest value of a tensor, and its values as whole numbers of
 * a scale, when both are known in the run. */
#include <math.h>
#include <stdlib.h>

#include "device/onednn/dynamic.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

enum { PIECE = 1 << 14 }; /* values that a thread takes */

typedef struct whole {
    int64_t n;
    float low, high;
} whole;

bool hwnas_onednn_quantizes_all_alike(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_dtype dtype = hwnas_node_output(graph, node)->dtype;
    return node->n_inputs == 3 && hwnas_tensor_count(hwnas_node_input(graph, node, 1)) == 1 &&
           (dtype == HWNAS_UINT8 || dtype == HWNAS_INT8);
}

static hwnas_status compile_quantize(hwnas_onednn_step *step, const onednn_device *device,
                                     const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const bool is_signed = out->dtype == HWNAS_INT8;
    whole *w = step->state = hwnas_alloc(sizeof *w);
    (void)device;
    *w = (whole){hwnas_tensor_count(out), is_signed ? -128 : 0, is_signed ? 127 : 255};
    return HWNAS_OK;
}

HWNAS_CLONES static void quantize(float *restrict out, const float *restrict in, int64_t n,
                                  float scale, float zero, float low, float high)
{
    for (int64_t i = 0; i < n; i++) {
        /* 1.5 * 2^23: what is added to it is rounded to a whole number */
        float v = in[i] / scale;
        v = v > -4194304.0f ? v : -4194304.0f;
        v = v < 4194304.0f ? v : 4194304.0f;
        v = (v + 12582912.0f) - 12582912.0f + zero;
        v = v > low ? v : low;
        out[i] = v < high ? v : high;
    }
}

static dnnl_status_t run_quantize(const hwnas_onednn_step *step, const onednn_device *device)
{
    const whole *w = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    const float *scale = hwnas_onednn_values(step->inputs[1]);
    const float *zero = hwnas_onednn_values(step->inputs[2]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_pieces = (w->n + PIECE - 1) / PIECE;
    (void)device; /* without OpenMP */
#pragma omp parallel for num_threads(device->threads) if (n_pieces > 1 && device->threads > 1)
    for (int64_t i = 0; i < n_pieces; i++)
        quantize(out + i * PIECE, in + i * PIECE,
                 w->n - i * PIECE < PIECE ? w->n - i * PIECE : PIECE, *scale, *zero, w->low,
                 w->high);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_quantize = {
    .name = "own loops",
    .compile = compile_quantize,
    .run = run_quantize,
    .free = free,
};

bool hwnas_onednn_is_extreme_of_all(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_output(graph, node)) == 1 &&
           hwnas_node_input(graph, node, 0)->dtype == HWNAS_FLOAT32;
}

static hwnas_status compile_extreme(hwnas_onednn_step *step, const onednn_device *device,
                                    const hwnas_graph *graph, const hwnas_node *node)
{
    whole *w = step->state = hwnas_alloc(sizeof *w);
    const float sign = node->op->id == HWNAS_OP_REDUCE_MAX ? 1 : -1;
    (void)device;
    *w = (whole){hwnas_tensor_count(hwnas_node_input(graph, node, 0)), sign, sign};
    return HWNAS_OK;
}

/* The greatest of the values times `sign`. */
HWNAS_CLONES static float greatest(const float *in, int64_t n, float sign)
{
    enum { AT_ONCE = 4 };
    hwnas_vector most[AT_ONCE], x;
    int64_t i = 0;
    for (int k = 0; k < AT_ONCE; k++)
        most[k] = (hwnas_vector){0} - INFINITY;
    for (; i + AT_ONCE * HWNAS_LANES <= n; i += AT_ONCE * HWNAS_LANES)
        for (int k = 0; k < AT_ONCE; k++) {
            hwnas_load(&x, in + i + k * HWNAS_LANES);
            x *= sign;
            hwnas_keep_greater(&most[k], &x);
        }
    for (int k = 1; k < AT_ONCE; k++)
        hwnas_keep_greater(&most[0], &most[k]);
    float out = hwnas_greatest(&most[0]);
    for (; i < n; i++)
        out = sign * in[i] > out ? sign * in[i] : out;
    return out;
}

static dnnl_status_t run_extreme(const hwnas_onednn_step *step, const onednn_device *device)
{
    const whole *w = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    (void)device;
    *out = w->high * greatest(hwnas_onednn_values(step->inputs[0]), w->n, w->high);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_extreme = {
    .name = "own loops",
    .compile = compile_extreme,
    .run = run_extreme,
    .free = free,
};
