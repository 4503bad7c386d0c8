#include <stdlib.h>
#include <string.h>

#include "data/floor_test.h"
#include "inherit/sample_set.h"

/* One network on its way through a part of the samples. */
typedef struct judging {
    hwnas_samples *samples;
    int64_t batch, n_outputs; /* of the graph; of one sample */
    hwnas_scoring score;
    hwnas_floor_test test;
    bool stops;
    double *each; /* by sample of the part; NULL: not wanted */
} judging;

void hwnas_samples_stop_below(hwnas_samples *samples, double floor)
{
    samples->floor = floor;
}

int64_t hwnas_samples_run(int64_t *n_all, const hwnas_samples *samples)
{
    *n_all = samples->n_wanted;
    return samples->n_run;
}

/* What grows with each sample by how well it was done. */
static double gained(const hwnas_scoring *score)
{
    return score->shape.task == HWNAS_TASK_REGRESS    ? -score->square.a
           : score->shape.task == HWNAS_TASK_CLASSIFY ? score->right
                                                      : score->top1.a;
}

/* One by one, until the test says that the rest is not worth it. */
static hwnas_status add_batch(judging *j, const float *outputs, const double *labels, int64_t n)
{
    hwnas_samples *s = j->samples;
    for (int64_t k = 0; k < n && !j->stops; k++) {
        const double before = gained(&j->score);
        TRY(hwnas_score_add(&j->score, outputs + k * j->n_outputs, labels + k * s->n_labels, 1));
        const double gain = gained(&j->score) - before;
        if (j->each)
            j->each[s->n_run] = gain;
        s->n_run++;
        j->stops = j->test.n_all && hwnas_floor_test_add(&j->test, gain > 0);
    }
    return HWNAS_OK;
}

static hwnas_status add_batches(judging *j, hwnas_exec *exec, hwnas_samples_part part)
{
    hwnas_status status = HWNAS_OK;
    hwnas_samples *s = j->samples;
    float *outputs = NULL, *filled = NULL;
    int64_t begin, end;
    hwnas_samples_range(&begin, &end, s, part);
    s->n_run = 0;
    s->n_wanted = end - begin;
    if (s->floor > 0 && part == HWNAS_SAMPLES_SEARCH && !j->each &&
        j->score.shape.task == HWNAS_TASK_CLASSIFY)
        j->test = hwnas_floor_test_begin(s->floor / 100, end - begin);
    TRY_OUT(hwnas_try_alloc((void **)&outputs, (size_t)(j->batch * j->n_outputs) * sizeof *outputs,
                            "outputs"));
    TRY_OUT(hwnas_try_alloc((void **)&filled, (size_t)(j->batch * s->n_values) * sizeof *filled,
                            "a batch"));
    for (int64_t at = begin; at < end && !j->stops; at += j->batch) {
        const int64_t n = end - at < j->batch ? end - at : j->batch;
        const float *input = s->values + at * s->n_values;
        if (n < j->batch) /* what it gives for the rest is left out */
            input = memcpy(filled, input, (size_t)(n * s->n_values) * sizeof *filled);
        TRY_OUT(s->device->ops->run(exec, &input, &outputs));
        TRY_OUT(add_batch(j, outputs, s->labels + at * s->n_labels, n));
    }
out:
    free(outputs);
    free(filled);
    return status;
}

static hwnas_status begin(judging *j, hwnas_samples *samples, const hwnas_graph *graph)
{
    const hwnas_tensor *y = &graph->tensors[graph->outputs[0]];
    const hwnas_tensor *x = &graph->tensors[graph->inputs[0]];
    hwnas_score_shape shape = {.task = HWNAS_TASK_AUTO,
                               .are_probabilities = hwnas_gives_probabilities(graph)};
    TRY(hwnas_score_settle(&shape, y->rank - 1, y->dims + 1, samples->n_labels > 1,
                           &samples->n_labels));
    j->samples = samples;
    j->batch = hwnas_tensor_count(x) / samples->n_values;
    j->n_outputs = hwnas_tensor_count(y) / j->batch;
    hwnas_score_init(&j->score, shape);
    return HWNAS_OK;
}

hwnas_status hwnas_samples_judge(hwnas_estimate_95 *out, double *each, hwnas_samples *samples,
                                 const hwnas_graph *graph, hwnas_precision precision,
                                 hwnas_samples_part part)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *folded = NULL;
    hwnas_exec *exec = NULL;
    hwnas_exec_options how = {.precision = precision};
    judging j = {.each = each};
    TRY(begin(&j, samples, graph));
    if (precision == HWNAS_S8)
        TRY_OUT(hwnas_samples_calibrate(&how, samples, (int)j.batch));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_device_compile(&exec, samples->device, folded, &how));
    TRY_OUT(add_batches(&j, exec, part));
    *out = hwnas_score_accuracy(&j.score);
out:
    hwnas_score_done(&j.score);
    hwnas_exec_free(exec);
    hwnas_graph_free(folded);
    return status;
}

hwnas_status hwnas_samples_score(hwnas_estimate_95 *out, hwnas_samples *samples,
                                 const hwnas_arch *arch, hwnas_precision precision,
                                 hwnas_samples_part part)
{
    hwnas_graph *graph;
    TRY(hwnas_samples_build(&graph, samples, arch, samples->batch));
    const hwnas_status status = hwnas_samples_judge(out, NULL, samples, graph, precision, part);
    hwnas_graph_free(graph);
    return status;
}
