/* evaluation.c: networks on data: hwnas_dataset_run() and hwnas_dataset_evaluate(). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/batch_runner.h"
#include "api/evaluation.h"
#include "base/c_locale.h"
#include "base/clock.h"
#include "base/sized_options.h"
#include "data/batches.h"
#include "data/score.h"
#include "graph/op.h"
#include "study/write_network.h"

/* Samples on their way through the networks. */
typedef struct session {
    hwnas_evaluation_options options;
    hwnas_dataset *data;
    hwnas_batch_runner runner, original; /* original: may be all zero */
    int64_t chunk;                       /* samples that are read at a time */
    float **inputs, **outputs, **originals;
    double *labels;
    hwnas_scoring score, original_score;
    hwnas_agreement agreement;
} session;

hwnas_status hwnas_dataset_open(hwnas_dataset **out, const hwnas_network *network, size_t n_files,
                                const hwnas_data_file *files, const hwnas_dataset_options *given)
{
    IN_C_LOCALE;
    hwnas_dataset_options options;
    TRY(TAKE_OPTIONS(&options, given));
    return hwnas_graph_dataset_open(out, network->graph, n_files, files, &options);
}

bool hwnas_network_takes_samples(const hwnas_network *network)
{
    return hwnas_graph_takes_samples(network->graph, network->batch);
}

hwnas_status hwnas_network_read_inputs(float **out, const hwnas_network *network, size_t n_files,
                                       const hwnas_data_file *files)
{
    IN_C_LOCALE;
    return hwnas_graph_read_inputs(out, network->graph, n_files, files);
}

/* ---- Walking through the samples ---- */

static hwnas_status begin(session *s, hwnas_dataset *data, const hwnas_network *network,
                          hwnas_device *device, const hwnas_evaluation_options *given)
{
    TRY(TAKE_OPTIONS(&s->options, given));
    s->data = data;
    TRY(hwnas_dataset_rewind(data));
    TRY(hwnas_batch_runner_open(&s->runner, network, device, data, s->options.precision,
                                s->options.calibrate));
    s->chunk = network->batch;
    s->inputs = hwnas_alloc((network->graph->n_inputs + 1) * sizeof *s->inputs);
    return HWNAS_OK;
}

static hwnas_status alloc_inputs(session *s)
{
    const hwnas_network *network = s->runner.network;
    return hwnas_arrays_alloc(s->inputs, network->graph->n_inputs, network->inputs, s->chunk,
                              "a batch");
}

static void end(session *s)
{
    if (s->runner.network)
        hwnas_arrays_free(s->inputs, s->runner.network->graph->n_inputs);
    if (s->runner.network)
        hwnas_arrays_free(s->outputs, s->runner.network->graph->n_outputs);
    if (s->original.network)
        hwnas_arrays_free(s->originals, s->original.network->graph->n_outputs);
    free(s->labels);
    hwnas_score_done(&s->score);
    hwnas_score_done(&s->original_score);
    hwnas_batch_runner_close(&s->original);
    hwnas_batch_runner_close(&s->runner);
}

static bool is_stopped(const session *s)
{
    return s->options.cancel && *s->options.cancel;
}

/* Reads the next samples and runs the network on them. */
static hwnas_status step(session *s, float *const *outputs, int64_t n)
{
    TRY(hwnas_dataset_take(s->inputs, s->labels, s->data, n));
    return hwnas_batch_runner_run(&s->runner, (const float *const *)s->inputs, outputs, n);
}

static void tell(const session *s, int64_t done, int64_t of)
{
    if (s->options.progress)
        s->options.progress(s->options.context, done, of);
}

/* `at` has room for where the outputs of a batch go. */
static hwnas_status run_all(float *const *out, float **at, session *s)
{
    const hwnas_network *network = s->runner.network;
    const int64_t n = hwnas_dataset_samples(s->data);
    TRY(alloc_inputs(s));
    for (int64_t done = 0; done < n;) {
        const int64_t some = n - done < s->chunk ? n - done : s->chunk;
        if (is_stopped(s))
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL,
                              "interrupted after %" PRId64 " of %" PRId64 " samples", done, n);
        for (size_t i = 0; i < network->graph->n_outputs; i++)
            at[i] = out[i] + done * hwnas_sample_count(&network->outputs[i]);
        TRY(step(s, at, some));
        done += some;
        tell(s, done, n);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_dataset_run(float **out, hwnas_dataset *data, const hwnas_network *network,
                               hwnas_device *device, const hwnas_evaluation_options *options)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    session s = {0};
    const size_t n_outputs = network->graph->n_outputs;
    float **arrays = hwnas_alloc((n_outputs + 1) * sizeof *arrays);
    float **at = hwnas_alloc((n_outputs + 1) * sizeof *at);
    TRY_OUT(begin(&s, data, network, device, options));
    TRY_OUT(hwnas_arrays_alloc(arrays, n_outputs, network->outputs, hwnas_dataset_samples(data),
                               "the outputs of all samples"));
    TRY_OUT(run_all(arrays, at, &s));
    memcpy(out, arrays, n_outputs * sizeof *out);
    memset(arrays, 0, n_outputs * sizeof *arrays);
out:
    hwnas_arrays_free(arrays, n_outputs);
    free(at);
    end(&s);
    return status;
}

/* ---- Quantising ---- */

hwnas_status hwnas_dataset_quantize(hwnas_dataset *data, const hwnas_network *network,
                                    const char *path, int64_t calibrate)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    float *samples = NULL;
    hwnas_graph *recovered = NULL;
    hwnas_exec_options options = HWNAS_EXEC_OPTIONS_INIT;
    options.precision = HWNAS_S8;
    TRY_OUT(hwnas_api_recover(&recovered, network));
    TRY_OUT(hwnas_calibration_take(&samples, &options.n_samples, network, data, calibrate));
    options.samples = samples;
    status = hwnas_graph_write_folded(path, recovered ? recovered : network->graph, &options);
out:
    free(samples);
    hwnas_graph_free(recovered);
    return status;
}

/* ---- Comparing ---- */

static hwnas_status settle(session *s)
{
    const hwnas_network *network = s->runner.network, *against = s->options.against;
    const hwnas_array_info *output = &network->outputs[0];
    const hwnas_array_file *labels = hwnas_dataset_labels(s->data);
    const hwnas_place place = {.file = labels ? labels->path : NULL};
    hwnas_score_shape shape = {.are_probabilities = hwnas_gives_probabilities(network->graph)};
    if (!labels && !against)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there are no labels to compare with"),
                          "--labels FILE, an array y in the .npz (--y NAME: of another name), or "
                          "--against ORIGINAL.onnx");
    if (s->options.task)
        TRY(hwnas_task_find(&shape.task, s->options.task));
    const hwnas_status status =
        hwnas_score_settle(&shape, output->rank - 1, output->dims + 1,
                           labels ? labels->rank - 1 : -1, labels ? labels->dims + 1 : NULL);
    if (status != HWNAS_OK)
        return labels ? hwnas_fail_at(status, &place) : status;
    if (against && hwnas_sample_count(&against->outputs[0]) != hwnas_sample_count(output))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "%s gives %" PRId64 " values for a sample, %s gives %" PRId64,
                          network->name, hwnas_sample_count(output), against->name,
                          hwnas_sample_count(&against->outputs[0]));
    hwnas_score_init(&s->score, shape);
    if (against)
        shape.are_probabilities = hwnas_gives_probabilities(against->graph);
    hwnas_score_init(&s->original_score, shape);
    const bool has_classes = shape.task != HWNAS_TASK_REGRESS && shape.positions;
    s->agreement.positions = has_classes ? shape.positions : 0;
    s->agreement.values = hwnas_sample_count(output) / (has_classes ? shape.positions : 1);
    return HWNAS_OK;
}

static hwnas_status prepare(session *s, hwnas_device *device)
{
    const hwnas_network *network = s->runner.network, *against = s->options.against;
    const hwnas_array_file *labels = hwnas_dataset_labels(s->data);
    TRY(settle(s));
    if (against) {
        TRY(hwnas_batch_runner_open(&s->original, against, device, s->data, HWNAS_F32, 0));
        if (against->batch > s->chunk)
            s->chunk = against->batch;
        s->originals = hwnas_alloc((against->graph->n_outputs + 1) * sizeof *s->originals);
        TRY(hwnas_arrays_alloc(s->originals, against->graph->n_outputs, against->outputs, s->chunk,
                               "a batch"));
    }
    s->outputs = hwnas_alloc((network->graph->n_outputs + 1) * sizeof *s->outputs);
    TRY(hwnas_arrays_alloc(s->outputs, network->graph->n_outputs, network->outputs, s->chunk,
                           "a batch"));
    if (labels)
        TRY(hwnas_try_alloc((void **)&s->labels,
                            (size_t)(s->chunk * labels->row_count) * sizeof *s->labels, "labels"));
    return alloc_inputs(s);
}

static hwnas_status compare(session *s, int64_t n)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(s->data);
    if (s->original.network) {
        TRY(hwnas_batch_runner_run(&s->original, (const float *const *)s->inputs, s->originals, n));
        hwnas_agreement_add(&s->agreement, s->outputs[0], s->originals[0], n);
    }
    if (!labels)
        return HWNAS_OK;
    const hwnas_place place = {.file = labels->path};
    const hwnas_status status = hwnas_score_add(&s->score, s->outputs[0], s->labels, n);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &place);
    return s->original.network ? hwnas_score_add(&s->original_score, s->originals[0], s->labels, n)
                               : HWNAS_OK;
}

static hwnas_status evaluate(hwnas_evaluation *e, session *s)
{
    e->n_samples = hwnas_dataset_samples(s->data);
    const double start = hwnas_now();
    while (e->n < e->n_samples && !is_stopped(s)) {
        const int64_t left = e->n_samples - e->n, some = left < s->chunk ? left : s->chunk;
        TRY(step(s, s->outputs, some));
        TRY(compare(s, some));
        e->n += some;
        tell(s, e->n, e->n_samples);
    }
    e->seconds = hwnas_now() - start;
    return e->n ? HWNAS_OK
                : hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted before the first batch");
}

/* ---- Values ---- */

static void add_value(hwnas_evaluation *e, const char *prefix, const char *name,
                      hwnas_estimate_95 x, double unit_size, const char *unit)
{
    char *own = e->names[e->n_values];
    snprintf(own, HWNAS_VALUE_NAME_SIZE, "%s%s", prefix, name);
    e->values[e->n_values++] = (hwnas_metric_value){.metric = own,
                                                    .value = x.value / unit_size,
                                                    .low = x.low / unit_size,
                                                    .high = x.high / unit_size,
                                                    .unit = unit,
                                                    .source = "measured"};
}

/* Tokens of one sample are alike, so their share is one of sums over samples. */
static hwnas_estimate_95 share(const hwnas_scoring *score, double count, const hwnas_ratio *ratio)
{
    return score->shape.task == HWNAS_TASK_CLASSIFY ? hwnas_share_interval(count, (double)score->n)
                                                    : hwnas_ratio_interval(ratio);
}

static void add_score(hwnas_evaluation *e, const char *prefix, const hwnas_scoring *score)
{
    enum { TOP = 5 };
    if (score->shape.task == HWNAS_TASK_REGRESS) {
        add_value(e, prefix, "mse", hwnas_ratio_interval(&score->square), 1, "");
        add_value(e, prefix, "mae", hwnas_ratio_interval(&score->absolute), 1, "");
        add_value(e, prefix, "r2", hwnas_score_r2(score), 1, "");
        return;
    }
    const hwnas_estimate_95 loss = hwnas_ratio_interval(&score->loss);
    add_value(e, prefix, "top1", share(score, score->right, &score->top1), 0.01, "%");
    if (score->shape.values > TOP)
        add_value(e, prefix, "top5", share(score, score->right5, &score->top5), 0.01, "%");
    add_value(e, prefix, "loss", loss, 1, "nats");
    if (score->shape.task == HWNAS_TASK_TOKENS)
        add_value(e, prefix, "perplexity",
                  (hwnas_estimate_95){exp(loss.value), exp(loss.low), exp(loss.high)}, 1, "");
}

static void add_agreement(hwnas_evaluation *e, const hwnas_agreement *a)
{
    const hwnas_estimate_95 none = {a->largest, NAN, NAN};
    if (a->positions)
        add_value(e, "", "agreement",
                  a->positions == 1 ? hwnas_share_interval(a->same, (double)a->n)
                                    : hwnas_ratio_interval(&a->same_positions),
                  0.01, "%");
    add_value(e, "", "sqnr", hwnas_agreement_sqnr(a), 1, "dB");
    add_value(e, "", "largest_difference", none, 1, "");
}

static void conclude(hwnas_evaluation *e, const session *s, const hwnas_device *device)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(s->data);
    hwnas_device_info info = {0};
    hwnas_device_describe(&info, device);
    snprintf(e->device, sizeof e->device, "%s", info.name);
    e->model = hwnas_strdup(s->runner.network->name);
    e->original = s->original.network ? hwnas_strdup(s->original.network->name) : NULL;
    e->data = hwnas_strdup(hwnas_dataset_path(s->data));
    e->labels = labels ? hwnas_strdup(labels->path) : NULL;
    e->precision = s->options.precision;
    e->batch = s->runner.batch;
    e->task = s->score.shape.task;
    e->not_finite = s->score.not_finite;
    if (labels)
        add_score(e, "", &s->score);
    if (labels && s->original.network)
        add_score(e, "original.", &s->original_score);
    if (s->original.network)
        add_agreement(e, &s->agreement);
}

hwnas_status hwnas_dataset_evaluate(hwnas_evaluation **out, hwnas_dataset *data,
                                    const hwnas_network *network, hwnas_device *device,
                                    const hwnas_evaluation_options *options)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    session s = {0};
    hwnas_evaluation *e = hwnas_alloc(sizeof *e);
    TRY_OUT(begin(&s, data, network, device, options));
    TRY_OUT(prepare(&s, device));
    TRY_OUT(evaluate(e, &s));
    conclude(e, &s, device);
    *out = e;
    e = NULL;
out:
    hwnas_evaluation_free(e);
    end(&s);
    return status;
}

void hwnas_evaluation_free(hwnas_evaluation *evaluation)
{
    if (!evaluation)
        return;
    free(evaluation->model);
    free(evaluation->original);
    free(evaluation->data);
    free(evaluation->labels);
    free(evaluation);
}
