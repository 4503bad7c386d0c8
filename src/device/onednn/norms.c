/* norms.c: rms_norm, which oneDNN 3.7 lacks. */
#include <math.h>
#include <stdlib.h>

#include "device/onednn/onednn_steps.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

typedef struct norm {
    int64_t n_rows, n; /* of the input: the last dimensions are one */
    float epsilon;
    bool is_scaled; /* by a weight for each value of a row; else by one for all */
} norm;

int64_t hwnas_onednn_row_length(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    int64_t n = 1;
    for (int i = (int)(axis + (axis < 0 ? in->rank : 0)); i < in->rank; i++)
        n *= in->dims[i];
    return n;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    norm *r = step->state = hwnas_alloc(sizeof *r);
    (void)device;
    r->n = hwnas_onednn_row_length(graph, node);
    r->n_rows = hwnas_tensor_count(hwnas_node_output(graph, node)) / r->n;
    r->epsilon = (float)hwnas_node_attr(node, "epsilon")->number;
    r->is_scaled = hwnas_tensor_count(hwnas_node_input(graph, node, 1)) > 1;
    return HWNAS_OK;
}

HWNAS_CLONES static float squares_of(const float *in, int64_t n)
{
    enum { AT_ONCE = 4 };
    hwnas_vector sums[AT_ONCE] = {{0}}, v;
    int64_t i = 0;
    for (; i + AT_ONCE * HWNAS_LANES <= n; i += AT_ONCE * HWNAS_LANES)
        for (int k = 0; k < AT_ONCE; k++) {
            hwnas_load(&v, in + i + k * HWNAS_LANES);
            sums[k] += v * v;
        }
    v = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = hwnas_sum(&v);
    for (; i < n; i++)
        sum += in[i] * in[i];
    return sum;
}

HWNAS_CLONES static void scale_row(float *restrict out, const float *restrict in,
                                   const float *restrict scale, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i] * factor * scale[i];
}

HWNAS_CLONES static void scale_by_one(float *restrict out, const float *restrict in, float factor,
                                      int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i] * factor;
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const norm *r = step->state;
    (void)device; /* without OpenMP */
    const float *in = hwnas_onednn_values(step->inputs[0]);
    const float *scale = hwnas_onednn_values(step->inputs[1]);
    float *out = hwnas_onednn_values(step->outputs[0]);
#pragma omp parallel for num_threads(device->threads) if (r->n_rows > 1 && r->n_rows * r->n > 32768)
    for (int64_t i = 0; i < r->n_rows; i++) {
        const float *row = in + i * r->n;
        const float factor = 1.0f / sqrtf(squares_of(row, r->n) / (float)r->n + r->epsilon);
        if (r->is_scaled)
            scale_row(out + i * r->n, row, scale, factor, r->n);
        else
            scale_by_one(out + i * r->n, row, factor * *scale, r->n);
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_rms_norm = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free,
};
