#include "precision/mix_samples.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

enum { MOST_JUDGE = 1000 };

/* At most so many for the choice, and no more than half of them. */
static int64_t step_of(int64_t n_samples)
{
    const int64_t step = (n_samples + MOST_JUDGE - 1) / MOST_JUDGE;
    return step > 2 ? step : 2;
}

/* A loss is one from an accuracy that is known. */
static hwnas_status not_defined(const hwnas_score_shape *shape, hwnas_dataset *data)
{
    const int64_t n = hwnas_dataset_samples(data);
    const hwnas_status status =
        shape->task == HWNAS_TASK_TOKENS
            ? hwnas_fail(HWNAS_E_INPUT, NULL,
                         "no label of the samples that choose counts: all are -100")
            : hwnas_fail(HWNAS_E_INPUT, NULL,
                         "all labels of the samples that choose are the same (%" PRId64
                         " of %" PRId64 " samples choose), so r2 is not defined",
                         hwnas_batches_count(data, step_of(n), false), n);
    return hwnas_hint(status, "without labels outputs are compared with those in f32: max-error");
}

static hwnas_status check_labels(const hwnas_score_shape *shape, hwnas_dataset *data)
{
    double *labels;
    hwnas_scoring score;
    const int64_t n = hwnas_dataset_samples(data);
    const hwnas_place place = {.file = hwnas_dataset_labels(data)->path};
    hwnas_score_init(&score, *shape);
    TRY(hwnas_dataset_read_labels(&labels, data));
    hwnas_status status = hwnas_score_check_labels(&score, labels, n);
    if (status == HWNAS_OK && !hwnas_score_is_defined(shape, labels, n, step_of(n)))
        status = not_defined(shape, data);
    free(labels);
    return status == HWNAS_OK ? status : hwnas_fail_at(status, &place);
}

static hwnas_status settle(hwnas_score_shape *out, const hwnas_graph *graph, hwnas_dataset *data)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(data);
    const hwnas_place place = {.file = labels->path};
    const hwnas_tensor *output = &graph->tensors[graph->outputs[0]];
    *out = (hwnas_score_shape){.are_probabilities = hwnas_gives_probabilities(graph)};
    const hwnas_status status = hwnas_score_settle(out, output->rank - 1, output->dims + 1,
                                                   labels->rank - 1, labels->dims + 1);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &place);
    if (hwnas_dataset_samples(data) < 2)
        return hwnas_fail(HWNAS_E_INPUT, &place,
                          "one sample is too few: some choose layers, others say what was lost");
    return check_labels(out, data);
}

static hwnas_status check(hwnas_score_shape *out, const hwnas_graph *graph, const char *name,
                          int batch, hwnas_dataset *data)
{
    TRY(hwnas_batches_check(graph, name, batch, data));
    return hwnas_dataset_has_labels(data) ? settle(out, graph, data) : HWNAS_OK;
}

hwnas_status hwnas_mix_samples_check(const hwnas_graph *graph, const char *name, int batch,
                                     hwnas_dataset *data)
{
    hwnas_score_shape shape;
    return check(&shape, graph, name, batch, data);
}

hwnas_status hwnas_mix_samples_check_loss(const hwnas_dataset *data, double max_loss)
{
    if (max_loss < 0 || hwnas_dataset_has_labels(data))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--max-loss needs --labels"),
                      "--labels FILE, or an array y in the .npz (--y NAME: of another name); "
                      "--max-error needs none");
}

hwnas_status hwnas_mix_samples_read(hwnas_mix_samples *out, const hwnas_graph *graph,
                                    const char *name, int batch, hwnas_dataset *data,
                                    int64_t calibrate)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(data);
    const int64_t n_all = hwnas_dataset_samples(data);
    *out = (hwnas_mix_samples){.graph = graph, .data = data, .batch = batch, .step = 1};
    TRY(check(&out->shape, graph, name, batch, data));
    calibrate = calibrate > 0 ? calibrate : HWNAS_DEFAULT_CALIBRATE;
    if (labels) {
        out->step = step_of(n_all);
        out->n_labels = labels->row_count;
        out->n_held_out = hwnas_batches_count(data, out->step, true);
    }
    out->n = hwnas_batches_count(data, out->step, false);
    if (!labels && out->n > calibrate)
        out->n = calibrate;
    hwnas_batches batches = {
        .graph = graph, .batch = batch, .data = data, .left = out->n, .step = out->step};
    TRY(hwnas_batches_read(&out->values, labels ? &out->labels : NULL, &out->n_batches, &batches));
    const size_t n_calibrate = (size_t)((calibrate + batch - 1) / batch);
    out->n_calibrate = n_calibrate < out->n_batches ? n_calibrate : out->n_batches;
    return HWNAS_OK;
}

void hwnas_mix_samples_done(hwnas_mix_samples *samples)
{
    free(samples->values);
    free(samples->labels);
    *samples = (hwnas_mix_samples){0};
}

hwnas_batches hwnas_mix_samples_held_out(const hwnas_mix_samples *samples)
{
    return (hwnas_batches){.graph = samples->graph,
                           .batch = samples->batch,
                           .data = samples->data,
                           .left = samples->n_held_out,
                           .step = samples->step,
                           .are_others = true};
}

const char *hwnas_mix_samples_metric(const hwnas_mix_samples *samples)
{
    if (!samples->n_labels)
        return NULL;
    return samples->shape.task == HWNAS_TASK_REGRESS ? "r2" : "top1";
}
