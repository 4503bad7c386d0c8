/* means.c: means over axes that lie side by side, such as those of an image or of the positions of
 * a text. */
#include <stdlib.h>

#include "device/onednn/onednn_steps.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

/* The input is outer x n x inner; the mean is taken over n. */
typedef struct means {
    int64_t outer, n, inner;
} means;

bool hwnas_onednn_has_near_axes(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    (void)graph;
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] != axes->ints[0] + i || axes->ints[i] < 0)
            return false;
    return axes->n > 0;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    means *m = step->state = hwnas_alloc(sizeof *m);
    (void)device;
    *m = (means){1, 1, 1};
    for (int i = 0; i < in->rank; i++)
        *(i < axes->ints[0]              ? &m->outer
          : i <= axes->ints[axes->n - 1] ? &m->n
                                         : &m->inner) *= in->dims[i];
    return HWNAS_OK;
}

/* Of values that lie one behind the other. */
HWNAS_CLONES static float sum_of(const float *in, int64_t n)
{
    enum { AT_ONCE = 4 };
    hwnas_vector sums[AT_ONCE] = {{0}}, v;
    int64_t i = 0;
    for (; i + AT_ONCE * HWNAS_LANES <= n; i += AT_ONCE * HWNAS_LANES)
        for (int k = 0; k < AT_ONCE; k++) {
            hwnas_load(&v, in + i + k * HWNAS_LANES);
            sums[k] += v;
        }
    v = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = hwnas_sum(&v);
    for (; i < n; i++)
        sum += in[i];
    return sum;
}

/* Of rows, each value with those above and below it. */
HWNAS_CLONES static void sum_rows(float *restrict out, const float *restrict in, int64_t n,
                                  int64_t inner)
{
    for (int64_t i = 0; i < inner; i++)
        out[i] = 0;
    for (int64_t k = 0; k < n; k++, in += inner)
        for (int64_t i = 0; i < inner; i++)
            out[i] += in[i];
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const means *m = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const float factor = 1.0f / (float)m->n;
#pragma omp parallel for num_threads(device->threads) if (m->outer > 1 &&                          \
                                                          m->outer * m->n * m->inner > 32768)
    for (int64_t i = 0; i < m->outer; i++) {
        float *to = out + i * m->inner;
        if (m->inner == 1)
            *to = sum_of(in + i * m->n, m->n);
        else
            sum_rows(to, in + i * m->n * m->inner, m->n, m->inner);
        for (int64_t k = 0; k < m->inner; k++)
            to[k] *= factor;
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_mean = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free,
};
