/* reference.c: a graph walked node by node; what a node gives is freed with its last reader. */
#include "measure/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/node.h"
#include "graph/op.h"

/* Of the loops in src/graph/ops/, on one core; docs/correctness.md has the measurement. */
static const double SECONDS_PER_MAC = 1.5e-9, SECONDS_PER_VALUE = 10e-9;

double hwnas_reference_seconds(const hwnas_graph *graph)
{
    double macs = 0, values = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        macs += (double)hwnas_node_macs(graph, &graph->nodes[i]);
        values += (double)hwnas_tensor_count(hwnas_node_output(graph, &graph->nodes[i]));
    }
    return SECONDS_PER_MAC * macs + SECONDS_PER_VALUE * values;
}

typedef struct walk {
    const hwnas_graph *graph;
    const hwnas_reference *how;
    float **buffers; /* by tensor; a graph's inputs are borrowed */
    size_t *last;    /* by tensor: the node that reads it last */
    hwnas_rng rng;
} walk;

static hwnas_status take(walk *w, int tensor)
{
    const hwnas_tensor *t = &w->graph->tensors[tensor];
    void *buffer = NULL;
    if (w->buffers[tensor])
        return HWNAS_OK;
    TRY(hwnas_try_alloc(&buffer, (size_t)hwnas_tensor_bytes(t), t->name));
    w->buffers[tensor] = buffer;
    if (t->kind == HWNAS_TENSOR_WEIGHT)
        hwnas_tensor_fill(t, buffer);
    return HWNAS_OK;
}

/* What a value is off by, relative to it. A sum of fp32 values is off by some roundings of 2^-24:
 * sixteen for 256 terms whose errors have random signs (Higham, "Accuracy and Stability of
 * Numerical Algorithms", 2.8). In s8 scales and sums are fp32; the graph itself rounds to bytes. */
static double rounding_of(hwnas_precision precision)
{
    static const double units[HWNAS_N_PRECISIONS] = {
        [HWNAS_F32] = 0x1p-20, [HWNAS_TF32] = 0x1p-11, [HWNAS_BF16] = 0x1p-9,
        [HWNAS_F16] = 0x1p-12, [HWNAS_S8] = 0x1p-20,   [HWNAS_W8] = 0x1p-20,
        [HWNAS_W4] = 0x1p-20,
    };
    return units[precision];
}

/* Random rounding (Vignes, "A stochastic arithmetic for reliable scientific computation",
 * Mathematics and Computers in Simulation 35, 1993). What f16 cannot hold becomes infinite,
 * or 0. */
static void change(walk *w, int tensor)
{
    const double unit = rounding_of(w->how->precision);
    const float largest = w->how->precision == HWNAS_F16 ? 65504 : INFINITY;
    const float least = w->how->precision == HWNAS_F16 ? 0x1p-25F : 0;
    const int64_t n = hwnas_tensor_count(&w->graph->tensors[tensor]);
    float *values = w->buffers[tensor];
    if (hwnas_dtype_is_whole(w->graph->tensors[tensor].dtype))
        return;
    for (int64_t i = 0; i < n; i++) {
        values[i] *= (float)(1 + unit * (2 * hwnas_rng_double(&w->rng) - 1));
        if (fabsf(values[i]) > largest)
            values[i] = copysignf(INFINITY, values[i]);
        else if (fabsf(values[i]) < least)
            values[i] = 0;
    }
}

static hwnas_status step(walk *w, size_t number)
{
    const hwnas_node *node = &w->graph->nodes[number];
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    TRY(take(w, node->output));
    for (int i = 0; i < node->n_inputs; i++) {
        TRY(take(w, node->inputs[i]));
        operands[i] = w->buffers[node->inputs[i]];
    }
    TRY(hwnas_node_run(w->graph, node, w->how->device, operands, w->buffers[node->output]));
    if (w->how->is_rounded)
        change(w, node->output);
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = node->inputs[i];
        if (w->last[tensor] != number || w->graph->tensors[tensor].kind == HWNAS_TENSOR_INPUT)
            continue;
        free(w->buffers[tensor]);
        w->buffers[tensor] = NULL;
    }
    return HWNAS_OK;
}

static hwnas_status step_all(walk *w, const hwnas_measure_options *options)
{
    const double end = w->how->max_seconds > 0 ? hwnas_now() + w->how->max_seconds : INFINITY;
    for (size_t i = 0; i < w->graph->n_nodes; i++) {
        if (options->progress)
            options->progress(options->context, "computing the reference");
        TRY(step(w, i));
        if (hwnas_now() > end)
            return hwnas_fail(HWNAS_E_TIMEOUT, NULL, "the reference takes more than %g s",
                              w->how->max_seconds);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_reference_run(hwnas_buffers *buffers, const hwnas_graph *graph,
                                 const hwnas_reference *how, const hwnas_measure_options *options)
{
    hwnas_status status;
    walk w = {.graph = graph,
              .how = how,
              .buffers = hwnas_alloc(graph->n_tensors * sizeof *w.buffers),
              .last = hwnas_alloc(graph->n_tensors * sizeof *w.last),
              .rng = hwnas_rng_new(graph->seed, 0x726f756e64)}; /* the stream "round" */
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            w.last[graph->nodes[i].inputs[k]] = i;
    for (size_t i = 0; i < graph->n_outputs; i++)
        w.last[graph->outputs[i]] = SIZE_MAX;
    for (size_t i = 0; i < graph->n_inputs; i++)
        w.buffers[graph->inputs[i]] = buffers->inputs[i];
    TRY_OUT(step_all(&w, options));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int tensor = graph->outputs[i];
        TRY_OUT(take(&w, tensor)); /* a constant */
        memcpy(buffers->outputs[i], w.buffers[tensor],
               (size_t)hwnas_tensor_bytes(&graph->tensors[tensor]));
    }
out:
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i].kind != HWNAS_TENSOR_INPUT)
            free(w.buffers[i]);
    free(w.buffers);
    free(w.last);
    return status;
}
