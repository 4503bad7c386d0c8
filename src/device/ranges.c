/* ranges.c: ranges of a network's activations. */
#include "device/ranges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"

enum { RANDOM_SAMPLES = 4 };

typedef struct calibration {
    const hwnas_graph *graph;
    hwnas_graph view; /* the same, whose outputs are the tensors of interest */
    float **inputs, **outputs;
} calibration;

static void calibration_done(calibration *c)
{
    for (size_t i = 0; i < c->graph->n_inputs && c->inputs; i++)
        free(c->inputs[i]);
    for (size_t i = 0; i < c->view.n_outputs && c->outputs; i++)
        free(c->outputs[i]);
    free(c->inputs);
    free(c->outputs);
    free(c->view.outputs);
}

/* With its reader fused to it and a plain result, oneDNN 3.7 leaves parts of a mean unwritten where
 * the channels are no multiple of 16; as an output it is not fused. */
static bool is_mean_of_window(const hwnas_graph *graph, size_t tensor)
{
    const int producer = graph->tensors[tensor].producer;
    return producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_AVG_POOL;
}

static hwnas_status calibration_init(calibration *c, const hwnas_graph *graph,
                                     hwnas_quantize_form form)
{
    bool *wants = hwnas_quantize_wants(graph, form);
    *c = (calibration){.graph = graph, .view = *graph};
    c->view.n_outputs = 0;
    c->view.outputs = hwnas_alloc((graph->n_tensors + 1) * sizeof *c->view.outputs);
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (wants[i] || is_mean_of_window(graph, i))
            c->view.outputs[c->view.n_outputs++] = (int)i;
    free(wants);
    c->inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *c->inputs);
    c->outputs = hwnas_alloc((c->view.n_outputs + 1) * sizeof *c->outputs);
    for (size_t i = 0; i < graph->n_inputs; i++)
        TRY(hwnas_try_alloc((void **)&c->inputs[i],
                            (size_t)hwnas_tensor_bytes(&graph->tensors[graph->inputs[i]]),
                            "inputs to calibrate with"));
    for (size_t i = 0; i < c->view.n_outputs; i++)
        TRY(hwnas_try_alloc((void **)&c->outputs[i],
                            (size_t)hwnas_tensor_bytes(&graph->tensors[c->view.outputs[i]]),
                            "activations to calibrate with"));
    return HWNAS_OK;
}

hwnas_status hwnas_random_samples(float **out, const hwnas_graph *graph, size_t n)
{
    hwnas_rng rng = hwnas_rng_new(graph->seed, 0x72616e676573); /* the stream "ranges" */
    size_t n_values = 0;
    for (size_t i = 0; i < graph->n_inputs; i++)
        n_values += (size_t)hwnas_tensor_count(&graph->tensors[graph->inputs[i]]);
    TRY(hwnas_try_alloc((void **)out, (n * n_values + 1) * sizeof **out, "random samples"));
    float *value = *out;
    for (size_t i = 0; i < n * graph->n_inputs; i++) {
        const int input = graph->inputs[i % graph->n_inputs];
        const int64_t below = hwnas_graph_input_below(graph, input);
        for (int64_t k = hwnas_tensor_count(&graph->tensors[input]); k > 0; k--) {
            const double uniform = hwnas_rng_double(&rng);
            *value++ = (float)(below ? floor(uniform * (double)below) : 2 * uniform - 1);
        }
    }
    return HWNAS_OK;
}

static void next_inputs(const calibration *c, const float **given)
{
    for (size_t i = 0; i < c->graph->n_inputs; i++) {
        const size_t n = (size_t)hwnas_tensor_count(&c->graph->tensors[c->graph->inputs[i]]);
        memcpy(c->inputs[i], *given, n * sizeof **given);
        *given += n;
    }
}

static void widen(hwnas_range *range, const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        range->low = fminf(range->low, values[i]);
        range->high = fmaxf(range->high, values[i]);
    }
}

static hwnas_status find_ranges(hwnas_range *ranges, const calibration *c, hwnas_device *device,
                                const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_exec *exec = NULL;
    float *random = NULL;
    const float *given = options->n_samples ? options->samples : NULL;
    const size_t n = given ? options->n_samples : RANDOM_SAMPLES;
    if (!given)
        TRY_OUT(hwnas_random_samples(&random, c->graph, n));
    given = given ? given : random;
    TRY_OUT(hwnas_device_compile(&exec, device, &c->view, NULL));
    for (size_t k = 0; k < n; k++) {
        next_inputs(c, &given);
        TRY_OUT(device->ops->run(exec, (const float *const *)c->inputs, c->outputs));
        for (size_t i = 0; i < c->view.n_outputs; i++) {
            const int tensor = c->view.outputs[i];
            widen(&ranges[tensor], c->outputs[i], hwnas_tensor_count(&c->graph->tensors[tensor]));
        }
    }
out:
    free(random);
    hwnas_exec_free(exec);
    return status;
}

hwnas_status hwnas_device_ranges(hwnas_range *ranges, hwnas_device *device,
                                 const hwnas_graph *graph, const hwnas_exec_options *options,
                                 hwnas_quantize_form form)
{
    hwnas_status status = HWNAS_OK;
    calibration c;
    TRY_OUT(calibration_init(&c, graph, form));
    if (c.view.n_outputs)
        TRY_OUT(find_ranges(ranges, &c, device, options));
out:
    calibration_done(&c);
    return status;
}

hwnas_status hwnas_device_quantize(hwnas_graph **out, int **origin, hwnas_device *device,
                                   const hwnas_graph *graph, const hwnas_exec_options *options,
                                   hwnas_quantize_form form)
{
    hwnas_status status = HWNAS_OK;
    hwnas_range *ranges = hwnas_alloc((graph->n_tensors + 1) * sizeof *ranges);
    TRY_OUT(hwnas_device_ranges(ranges, device, graph, options, form));
    TRY_OUT(hwnas_graph_quantize(out, origin, graph, ranges, NULL, form,
                                 hwnas_device_weight_bits(device)));
out:
    free(ranges);
    return status;
}

static hwnas_status show(hwnas_graph **out, int **origin, hwnas_device *device,
                         const hwnas_graph *graph, const hwnas_exec_options *options)
{
    const int bits = hwnas_precision_weight_bits(options->precision);
    if (bits)
        return hwnas_graph_pack_weights(out, origin, graph, bits);
    if (options->precision != HWNAS_S8)
        return HWNAS_OK;
    if (device->ops->quantize)
        return device->ops->quantize(out, origin, device, graph, options);
    return hwnas_device_quantize(out, origin, device, graph, options, HWNAS_QUANTIZE_LOOKUP);
}

hwnas_status hwnas_device_in_precision(hwnas_graph **out, hwnas_device *device,
                                       const hwnas_graph *graph, const hwnas_exec_options *options)
{
    int *origin = NULL;
    *out = NULL;
    const hwnas_status status = show(out, &origin, device, graph, options);
    free(origin);
    return status;
}
