#include "precision/answers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/rounding.h"

enum { RANDOM_SAMPLES = 4 };

struct hwnas_answers {
    const hwnas_graph *graph;
    const hwnas_mix_samples *given; /* NULL: samples are random */
    const volatile sig_atomic_t *stop;
    hwnas_device *device;
    hwnas_range *ranges;
    size_t n_samples; /* batches */
    const float *samples;
    float *random;   /* samples where none were given */
    float **outputs; /* of one sample */
    float *right;    /* all outputs of all samples, one behind the other, in fp32 */
    size_t n_values; /* of one sample */
    hwnas_estimate_95 accuracy; /* in fp32 */
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

/* Accuracy, where there are labels. */
static hwnas_scoring begin_score(const hwnas_answers *a)
{
    hwnas_scoring score = {0};
    if (a->given && a->given->n_labels)
        hwnas_score_init(&score, a->given->shape);
    return score;
}

static bool is_scored(const hwnas_scoring *score)
{
    return score->shape.task != HWNAS_TASK_AUTO;
}

/* The outputs of batch `k` of the choice. */
static hwnas_status add_score(hwnas_scoring *score, const hwnas_answers *a, size_t k)
{
    const hwnas_mix_samples *s = a->given;
    if (!is_scored(score))
        return HWNAS_OK;
    const int64_t first = (int64_t)k * s->batch, left = s->n - first;
    return hwnas_score_add(score, a->outputs[0], s->labels + first * s->n_labels,
                           left < s->batch ? left : s->batch);
}

static hwnas_estimate_95 end_score(hwnas_scoring *score)
{
    const hwnas_estimate_95 none = {NAN, NAN, NAN};
    const hwnas_estimate_95 out = is_scored(score) ? hwnas_score_accuracy(score) : none;
    hwnas_score_done(score);
    return out;
}

/* A loss is one from an accuracy that is known; that labels define one was seen before. */
static hwnas_status check_score(const hwnas_scoring *score)
{
    if (!is_scored(score) || isfinite(hwnas_score_accuracy(score).value))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL,
                      "the network has no accuracy: outputs of %" PRId64 " of the %" PRId64
                      " samples that choose are not finite in f32",
                      score->not_finite, score->n);
}

static hwnas_status find_right(hwnas_answers *a)
{
    hwnas_exec *exec;
    const float *sample = a->samples;
    float *to = a->right;
    TRY(hwnas_device_compile(&exec, a->device, a->graph, NULL));
    hwnas_scoring score = begin_score(a);
    hwnas_status status = HWNAS_OK;
    for (size_t k = 0; k < a->n_samples && status == HWNAS_OK; k++) {
        status = run(&sample, a, exec);
        if (status == HWNAS_OK)
            status = add_score(&score, a, k);
        for (size_t i = 0; i < a->graph->n_outputs; i++) {
            memcpy(to, a->outputs[i], output_count(a->graph, i) * sizeof *to);
            to += output_count(a->graph, i);
        }
    }
    if (status == HWNAS_OK)
        status = check_score(&score);
    a->accuracy = end_score(&score);
    hwnas_exec_free(exec);
    return status;
}

static hwnas_status open(hwnas_answers *a, const hwnas_mix_options *options)
{
    const hwnas_device_options how = {.threads = options->threads};
    size_t n_calibrate = RANDOM_SAMPLES;
    a->given = options->samples;
    a->stop = options->stop;
    if (a->given) {
        a->n_samples = a->given->n_batches;
        a->samples = a->given->values;
        n_calibrate = a->given->n_calibrate;
    } else {
        a->n_samples = RANDOM_SAMPLES;
        TRY(hwnas_random_samples(&a->random, a->graph, a->n_samples));
        a->samples = a->random;
    }
    const hwnas_exec_options with = {.n_samples = n_calibrate, .samples = a->samples};
    a->ranges = hwnas_alloc((a->graph->n_tensors + 1) * sizeof *a->ranges);
    TRY(alloc_outputs(a));
    TRY(hwnas_device_open(&a->device, "cpu", &how));
    TRY(hwnas_device_ranges(a->ranges, a->device, a->graph, &with, HWNAS_QUANTIZE_LOOKUP));
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

static bool has(const hwnas_graph *graph, const hwnas_precision *kinds, hwnas_precision kind)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (kinds[n] == kind)
            return true;
    return false;
}

hwnas_status hwnas_answers_round(hwnas_graph **out, const hwnas_graph *folded,
                                 const hwnas_precision *kinds)
{
    bool *is_rounded = hwnas_alloc((folded->n_nodes + 1) * sizeof *is_rounded);
    for (size_t n = 0; n < folded->n_nodes; n++)
        is_rounded[n] = kinds[n] == HWNAS_BF16;
    const hwnas_status status = hwnas_graph_round_products(out, folded, is_rounded);
    free(is_rounded);
    return status;
}

/* With the layers of bytes that `kinds` has so; `origin`: by node of the new graph. */
static hwnas_status quantize(hwnas_graph **out, int **origin, const hwnas_answers *a,
                             const hwnas_precision *kinds)
{
    bool *stays_float = hwnas_alloc((a->graph->n_nodes + 1) * sizeof *stays_float);
    for (size_t n = 0; n < a->graph->n_nodes; n++)
        stays_float[n] = kinds[n] != HWNAS_S8;
    const hwnas_status status =
        hwnas_graph_quantize(out, origin, a->graph, a->ranges, stays_float, HWNAS_QUANTIZE_LOOKUP,
                             hwnas_device_weight_bits(a->device));
    free(stays_float);
    return status;
}

hwnas_status hwnas_answers_make(hwnas_graph **out, const hwnas_answers *a,
                                const hwnas_precision *kinds)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *bytes = NULL;
    hwnas_precision *moved = NULL;
    int *origin = NULL;
    if (!has(a->graph, kinds, HWNAS_S8))
        return hwnas_answers_round(out, a->graph, kinds);
    TRY_OUT(quantize(&bytes, &origin, a, kinds));
    if (!has(a->graph, kinds, HWNAS_BF16)) {
        *out = bytes;
        bytes = NULL;
        goto out;
    }
    moved = hwnas_alloc((bytes->n_nodes + 1) * sizeof *moved);
    for (size_t n = 0; n < bytes->n_nodes; n++)
        moved[n] = origin[n] < 0 ? HWNAS_F32 : kinds[origin[n]];
    status = hwnas_answers_round(out, bytes, moved);
out:
    hwnas_graph_free(bytes);
    free(moved);
    free(origin);
    return status;
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

static hwnas_status interrupted(void)
{
    return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted; nothing was written");
}

static bool is_stopped(const hwnas_answers *a)
{
    return a->stop && *a->stop;
}

static hwnas_status compare(hwnas_output_error *out, hwnas_estimate_95 *accuracy,
                            const hwnas_answers *a, hwnas_exec *exec, size_t n)
{
    hwnas_scoring score = begin_score(a);
    const float *sample = a->samples, *right = a->right;
    hwnas_error_sums *all = hwnas_alloc((a->graph->n_outputs + 1) * sizeof *all);
    hwnas_status status = HWNAS_OK;
    for (size_t k = 0; k < n && status == HWNAS_OK && !is_stopped(a); k++) {
        status = run(&sample, a, exec);
        if (status == HWNAS_OK)
            status = add_score(&score, a, k);
        for (size_t i = 0; i < a->graph->n_outputs && status == HWNAS_OK; i++) {
            hwnas_error_add(&all[i], a->outputs[i], right, output_count(a->graph, i));
            right += output_count(a->graph, i);
        }
    }
    *out = worst_of(all, a->graph->n_outputs);
    *accuracy = end_score(&score);
    free(all);
    return status != HWNAS_OK || !is_stopped(a) ? status : interrupted();
}

hwnas_status hwnas_answers_compare(hwnas_output_error *out, hwnas_estimate_95 *accuracy,
                                   hwnas_answers *a, const hwnas_precision *kinds,
                                   hwnas_precision floats, size_t n)
{
    hwnas_estimate_95 unwanted;
    const hwnas_exec_options how = {.precision = floats};
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_exec *exec = NULL;
    TRY_OUT(hwnas_answers_make(&graph, a, kinds));
    TRY_OUT(hwnas_device_compile(&exec, a->device, graph, &how));
    status = compare(out, accuracy ? accuracy : &unwanted, a, exec,
                     n && n < a->n_samples ? n : a->n_samples);
out:
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    return status;
}

hwnas_estimate_95 hwnas_answers_accuracy(const hwnas_answers *a)
{
    return a->accuracy;
}

static hwnas_status score_held_out(hwnas_scoring *score, const hwnas_answers *a, hwnas_exec *exec,
                                   float **inputs, double *labels)
{
    hwnas_batches batches = hwnas_mix_samples_held_out(a->given);
    int64_t n;
    TRY(hwnas_dataset_rewind(batches.data));
    while (batches.left) {
        if (is_stopped(a))
            return interrupted();
        TRY(hwnas_batches_next(&n, inputs, labels, &batches));
        TRY(a->device->ops->run(exec, (const float *const *)inputs, a->outputs));
        TRY(hwnas_score_add(score, a->outputs[0], labels, n));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_answers_hold_out(hwnas_estimate_95 *out, hwnas_answers *a,
                                    const hwnas_graph *graph, hwnas_precision floats)
{
    const hwnas_exec_options how = {.precision = floats};
    hwnas_status status = HWNAS_OK;
    hwnas_exec *exec = NULL;
    double *labels = NULL;
    hwnas_scoring score = begin_score(a);
    float **inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *inputs);
    for (size_t i = 0; i < graph->n_inputs; i++)
        TRY_OUT(hwnas_try_alloc((void **)&inputs[i],
                                (size_t)hwnas_tensor_count(&graph->tensors[graph->inputs[i]]) *
                                    sizeof **inputs,
                                "a batch"));
    TRY_OUT(hwnas_try_alloc((void **)&labels,
                            (size_t)(a->given->batch * a->given->n_labels) * sizeof *labels,
                            "labels"));
    TRY_OUT(hwnas_device_compile(&exec, a->device, graph, &how));
    TRY_OUT(score_held_out(&score, a, exec, inputs, labels));
    *out = hwnas_score_accuracy(&score);
out:
    hwnas_score_done(&score);
    hwnas_exec_free(exec);
    free(labels);
    for (size_t i = 0; i < graph->n_inputs; i++)
        free(inputs[i]);
    free(inputs);
    return status;
}

bool hwnas_answers_has_native(const hwnas_answers *a, hwnas_precision precision)
{
    hwnas_device_info info = {0};
    a->device->ops->describe(a->device, &info);
    return info.native & 1U << precision;
}
