#include "precision/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_SAMPLES = 4 };

struct hwnas_answers {
    const hwnas_graph *graph;
    hwnas_device *device;
    hwnas_range *ranges;
    size_t n_samples;
    const float *samples;
    float *random;   /* samples where none were given */
    float **outputs; /* of one sample */
    float *right;    /* all outputs of all samples, one behind the other, in fp32 */
    size_t n_values; /* of one sample */
};

static size_t output_count(const hwnas_graph *graph, size_t i)
{
    return (size_t)hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
}

static hwnas_status alloc_outputs(hwnas_answers *a)
{
    a->outputs = hwnas_alloc((a->graph->n_outputs + 1) * sizeof *a->outputs);
    for (size_t i = 0; i < a->graph->n_outputs; i++) {
        a->n_values += output_count(a->graph, i);
        TRY(hwnas_try_alloc((void **)&a->outputs[i],
                            output_count(a->graph, i) * sizeof **a->outputs, "outputs"));
    }
    return hwnas_try_alloc((void **)&a->right, (a->n_samples * a->n_values + 1) * sizeof *a->right,
                           "the outputs of all samples");
}

/* Runs on one sample; returns where the next one begins. */
static hwnas_status run(const float **sample, const hwnas_answers *a, hwnas_exec *exec)
{
    const hwnas_graph *graph = a->graph;
    const float **inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        inputs[i] = *sample;
        *sample += hwnas_tensor_count(&graph->tensors[graph->inputs[i]]);
    }
    const hwnas_status status = a->device->ops->run(exec, inputs, a->outputs);
    free(inputs);
    return status;
}

static hwnas_status find_right(hwnas_answers *a)
{
    hwnas_exec *exec;
    const float *sample = a->samples;
    float *to = a->right;
    TRY(hwnas_device_compile(&exec, a->device, a->graph, NULL));
    hwnas_status status = HWNAS_OK;
    for (size_t k = 0; k < a->n_samples && status == HWNAS_OK; k++) {
        status = run(&sample, a, exec);
        for (size_t i = 0; i < a->graph->n_outputs; i++) {
            memcpy(to, a->outputs[i], output_count(a->graph, i) * sizeof *to);
            to += output_count(a->graph, i);
        }
    }
    hwnas_exec_free(exec);
    return status;
}

static hwnas_status open(hwnas_answers *a, const hwnas_mix_options *options)
{
    const hwnas_device_options how = {.threads = options->threads};
    a->n_samples = options->n_samples;
    a->samples = options->samples;
    if (!a->n_samples) {
        a->n_samples = RANDOM_SAMPLES;
        TRY(hwnas_random_samples(&a->random, a->graph, a->n_samples));
        a->samples = a->random;
    }
    const hwnas_exec_options with = {.n_samples = a->n_samples, .samples = a->samples};
    a->ranges = hwnas_alloc((a->graph->n_tensors + 1) * sizeof *a->ranges);
    TRY(alloc_outputs(a));
    TRY(hwnas_device_open(&a->device, "cpu", &how));
    TRY(hwnas_device_ranges(a->ranges, a->device, a->graph, &with, HWNAS_QUANTIZE_FUSED));
    return find_right(a);
}

hwnas_status hwnas_answers_open(hwnas_answers **out, const hwnas_graph *folded,
                                const hwnas_mix_options *options)
{
    hwnas_answers *a = hwnas_alloc(sizeof *a);
    a->graph = folded;
    const hwnas_status status = open(a, options);
    if (status != HWNAS_OK)
        hwnas_answers_close(a);
    else
        *out = a;
    return status;
}

void hwnas_answers_close(hwnas_answers *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->graph->n_outputs && a->outputs; i++)
        free(a->outputs[i]);
    free(a->outputs);
    free(a->right);
    free(a->random);
    free(a->ranges);
    hwnas_device_close(a->device);
    free(a);
}

hwnas_status hwnas_answers_quantize(hwnas_graph **out, const hwnas_answers *a,
                                    const bool *stays_float)
{
    int *origin = NULL;
    TRY(hwnas_graph_quantize(out, &origin, a->graph, a->ranges, stays_float, HWNAS_QUANTIZE_FUSED,
                             hwnas_device_weight_bits(a->device)));
    free(origin);
    return HWNAS_OK;
}

/* The worst output's. */
static hwnas_output_error worst_of(const hwnas_error_sums *all, size_t n)
{
    hwnas_output_error out = {0};
    for (size_t i = 0; i < n; i++) {
        const hwnas_output_error one = hwnas_error_of(&all[i]);
        out.largest = fmax(out.largest, one.largest);
        out.noise = fmax(out.noise, one.noise);
    }
    return out;
}

static hwnas_status compare(hwnas_output_error *out, const hwnas_answers *a, hwnas_exec *exec,
                            size_t n)
{
    const float *sample = a->samples, *right = a->right;
    hwnas_error_sums *all = hwnas_alloc((a->graph->n_outputs + 1) * sizeof *all);
    hwnas_status status = HWNAS_OK;
    for (size_t k = 0; k < n && status == HWNAS_OK; k++) {
        status = run(&sample, a, exec);
        for (size_t i = 0; i < a->graph->n_outputs && status == HWNAS_OK; i++) {
            hwnas_error_add(&all[i], a->outputs[i], right, output_count(a->graph, i));
            right += output_count(a->graph, i);
        }
    }
    *out = worst_of(all, a->graph->n_outputs);
    free(all);
    return status;
}

hwnas_status hwnas_answers_compare(hwnas_output_error *out, hwnas_answers *a,
                                   const bool *stays_float, hwnas_precision floats, size_t n)
{
    const hwnas_exec_options how = {.precision = floats};
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_exec *exec = NULL;
    TRY_OUT(hwnas_answers_quantize(&graph, a, stays_float));
    TRY_OUT(hwnas_device_compile(&exec, a->device, graph, &how));
    status = compare(out, a, exec, n && n < a->n_samples ? n : a->n_samples);
out:
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    return status;
}

bool hwnas_answers_has_native(const hwnas_answers *a, hwnas_precision precision)
{
    hwnas_device_info info = {0};
    a->device->ops->describe(a->device, &info);
    return info.native & 1U << precision;
}
