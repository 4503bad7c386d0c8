#include "inherit/samples.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/floor_test.h"
#include "inherit/importance.h"
#include "inherit/recover.h"
#include "inherit/removal.h"

enum {
    DEFAULT_RECOVER = 1024,
    DEFAULT_SEARCH = 2000,
    MIN_SAMPLES = 50,
    MAX_CALIBRATE = 128,
    MAX_BATCH = 64, /* that networks are run with here, where the model's is open */
};

struct hwnas_samples {
    const hwnas_space *space;
    hwnas_device *device;
    int batch;
    int64_t n_values, n_labels; /* of a sample */
    int64_t n, n_recover, n_search;
    float *values; /* of all samples, in their shuffled order */
    double *labels;
    float *repeated; /* a batch that is larger than the samples that recover; NULL: none was */
    bool keeps_weights;
    hwnas_samples_importance importance; /* never AUTO */
    double floor;                        /* as hwnas_samples_stop_below() says */
    int64_t n_run, n_wanted;             /* of the last score */
    const hwnas_original *original;
    hwnas_teacher *teacher; /* NULL until it is needed; so is the ranking */
    int **ranking;
    const float *inputs[1];
};

/* ---- Reading ---- */

static hwnas_status check_counts(hwnas_samples *s, const hwnas_samples_options *options,
                                 const char *path)
{
    const hwnas_place place = {.file = path};
    s->n_recover = options->n_recover ? options->n_recover : DEFAULT_RECOVER;
    s->n_search = options->n_search ? options->n_search : DEFAULT_SEARCH;
    if (!options->n_recover && s->n_recover > s->n / 4)
        s->n_recover = s->n / 4;
    if (!options->n_search && s->n_search > s->n / 2)
        s->n_search = s->n / 2;
    if (s->n >= MIN_SAMPLES && s->n_recover > 0 && s->n_search > 0 &&
        s->n_recover + s->n_search < s->n)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "%" PRId64 " samples are too few: %" PRId64
                                 " to recover weights and %" PRId64
                                 " to judge by are wanted, and some that are left",
                                 s->n, s->n_recover, s->n_search),
                      "%d at least, as many as there are", MIN_SAMPLES);
}

/* Fisher and Yates. */
static void shuffle(hwnas_samples *s)
{
    hwnas_rng rng = hwnas_rng_new(1, 0);
    const size_t n_bytes = (size_t)s->n_values * sizeof *s->values;
    const size_t n_label_bytes = (size_t)s->n_labels * sizeof *s->labels;
    char *spare = hwnas_alloc(n_bytes + n_label_bytes);
    for (int64_t i = s->n - 1; i > 0; i--) {
        const int64_t k = hwnas_rng_below(&rng, (uint32_t)i + 1);
        float *a = s->values + i * s->n_values, *b = s->values + k * s->n_values;
        double *p = s->labels + i * s->n_labels, *q = s->labels + k * s->n_labels;
        memcpy(spare, a, n_bytes);
        memmove(a, b, n_bytes);
        memcpy(b, spare, n_bytes);
        memcpy(spare, p, n_label_bytes);
        memmove(p, q, n_label_bytes);
        memcpy(q, spare, n_label_bytes);
    }
    free(spare);
}

static hwnas_status read_all(hwnas_samples *s, hwnas_dataset *data, const char *path)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(data);
    const hwnas_place place = {.file = path};
    if (!labels)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "there are no labels"),
                          "labels=FILE, or an array y in the .npz");
    s->n = hwnas_dataset_samples(data);
    s->n_values = hwnas_dataset_count(data, 0);
    s->n_labels = labels->row_count;
    TRY(hwnas_try_alloc((void **)&s->values, (size_t)(s->n * s->n_values) * sizeof *s->values,
                        "all samples"));
    TRY(hwnas_try_alloc((void **)&s->labels, (size_t)(s->n * s->n_labels) * sizeof *s->labels,
                        "all labels"));
    TRY(hwnas_dataset_take(&s->values, s->labels, data, s->n));
    shuffle(s);
    s->inputs[0] = s->values;
    return HWNAS_OK;
}

/* Whether what a batch gives is a row for each of its samples. */
static bool has_rows(const hwnas_original *o)
{
    const hwnas_tensor *y = &o->graph->tensors[o->graph->outputs[0]];
    return y->rank >= 1 && y->dims[0] == o->batch;
}

/* The model with a batch of at most so many samples: with a batch of 1 where it has no other. */
static hwnas_status find_batch(hwnas_samples *s, int most)
{
    s->batch = most;
    if (hwnas_base_model_original(&s->original, s->space->model, s->batch) == HWNAS_OK &&
        has_rows(s->original))
        return HWNAS_OK;
    hwnas_error_clear();
    s->batch = 1;
    TRY(hwnas_base_model_original(&s->original, s->space->model, s->batch));
    return has_rows(s->original)
               ? HWNAS_OK
               : hwnas_fail(HWNAS_E_INPUT, NULL,
                            "the first output of %s does not begin with the batch", s->space->name);
}

static hwnas_status open_data(hwnas_samples *s, const char *path,
                              const hwnas_samples_options *options)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = s->original->graph;
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    const int64_t entries = 0;
    const hwnas_array_info info = {.name = input->name,
                                   .type = "float32",
                                   .rank = input->rank,
                                   .dims = input->dims,
                                   .count = hwnas_tensor_count(input)};
    const hwnas_dataset_target target = {1, &info, &entries};
    const hwnas_data_file file = {.path = path, .array = options->array};
    hwnas_dataset *data = NULL;
    TRY(hwnas_dataset_open_for(&data, &target, 1, &file, &options->data));
    TRY_OUT(read_all(s, data, path));
    TRY_OUT(check_counts(s, options, path));
    if (s->n_recover < s->batch)
        TRY_OUT(find_batch(s, (int)s->n_recover));
    s->n_recover -= s->n_recover % s->batch;
out:
    hwnas_dataset_close(data);
    return status;
}

static hwnas_status check_model(const hwnas_samples *s)
{
    const hwnas_graph *graph = s->original->graph;
    if (graph->n_inputs == 1 && graph->n_outputs == 1)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                      "a model with %zu inputs and %zu outputs cannot be judged by samples yet",
                      graph->n_inputs, graph->n_outputs);
}

/* Threads of a small network wait for each other longer than they compute: on two cores with a load
 * of 10 a VGG of 16 MMACs was judged in a third of the time by one. */
static int count_threads(const hwnas_original *original)
{
    const int64_t macs_for_one = 100000000;
    hwnas_costs costs;
    hwnas_graph_costs(&costs, original->graph);
    const int64_t wanted = 1 + costs.macs / original->batch / macs_for_one;
    return wanted < hwnas_device_cores() ? (int)wanted : hwnas_device_cores();
}

hwnas_status hwnas_samples_open(hwnas_samples **out, const hwnas_space *space, const char *path,
                                const hwnas_samples_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_device_options threads = {0};
    hwnas_samples *s = hwnas_alloc(sizeof *s);
    s->space = space;
    s->keeps_weights = options->keeps_weights;
    s->importance = options->importance      ? options->importance
                    : options->keeps_weights ? HWNAS_IMPORTANCE_OF_WEIGHTS
                                             : HWNAS_IMPORTANCE_BY_REMOVAL;
    if (!space->builder) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                       "%s has no trained model whose weights could be inherited",
                                       space->name),
                            "'hwnas space derive MODEL.onnx --out SPACE.yaml' makes a space that "
                            "has one");
        goto out;
    }
    TRY_OUT(find_batch(s, MAX_BATCH));
    TRY_OUT(check_model(s));
    TRY_OUT(open_data(s, path, options));
    threads.threads = count_threads(s->original);
    TRY_OUT(hwnas_device_open(&s->device, "cpu", &threads));
    *out = s;
    s = NULL;
out:
    hwnas_samples_close(s);
    return status;
}

void hwnas_samples_close(hwnas_samples *samples)
{
    if (!samples)
        return;
    hwnas_teacher_free(samples->teacher);
    hwnas_ranking_free(samples->ranking, samples->original);
    hwnas_device_close(samples->device);
    free(samples->values);
    free(samples->repeated);
    free(samples->labels);
    free(samples);
}

/* The range of a part. */
static void find_part(int64_t *begin, int64_t *end, const hwnas_samples *s, hwnas_samples_part part)
{
    *begin = s->n_recover + (part == HWNAS_SAMPLES_TEST ? s->n_search : 0);
    *end = part == HWNAS_SAMPLES_TEST ? s->n : s->n_recover + s->n_search;
}

int64_t hwnas_samples_count(const hwnas_samples *samples, hwnas_samples_part part)
{
    int64_t begin, end;
    find_part(&begin, &end, samples, part);
    return end - begin;
}

int64_t hwnas_samples_calibrated(const hwnas_samples *s, int batch)
{
    const int64_t most = s->n_recover < MAX_CALIBRATE ? s->n_recover : MAX_CALIBRATE;
    return most > batch ? most - most % batch : most;
}

/* A batch of the first `n` samples, over and over: ranges are not widened by what is in them
 * already. */
static hwnas_status repeat(hwnas_samples *s, int64_t n, int batch)
{
    free(s->repeated);
    s->repeated = NULL;
    TRY(hwnas_try_alloc((void **)&s->repeated, (size_t)(batch * s->n_values) * sizeof *s->repeated,
                        "a batch"));
    for (int64_t i = 0; i < batch; i++)
        memcpy(s->repeated + i * s->n_values, s->values + i % n * s->n_values,
               (size_t)s->n_values * sizeof *s->repeated);
    return HWNAS_OK;
}

hwnas_status hwnas_samples_calibrate(hwnas_exec_options *out, hwnas_samples *s, int batch)
{
    const int64_t n = hwnas_samples_calibrated(s, batch);
    if (n < batch)
        TRY(repeat(s, n, batch));
    out->precision = HWNAS_S8;
    out->samples = n < batch ? s->repeated : s->values;
    out->n_samples = n < batch ? 1 : (size_t)(n / batch);
    return HWNAS_OK;
}

/* ---- Networks ---- */

static hwnas_status rank_channels(hwnas_samples *s)
{
    double *importance;
    if (s->importance == HWNAS_IMPORTANCE_OF_WEIGHTS || s->ranking)
        return HWNAS_OK;
    TRY((s->importance == HWNAS_IMPORTANCE_BY_REMOVAL ? hwnas_importance_by_removal
                                                      : hwnas_importance_of_activations)(
        &importance, s->original, s->device, s->inputs, s->n_recover / s->batch));
    s->ranking = hwnas_original_rank(s->original, importance);
    free(importance);
    return HWNAS_OK;
}

static hwnas_status build(hwnas_graph **out, hwnas_samples *s, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_derivation d;
    hwnas_graph *graph = NULL;
    TRY(rank_channels(s));
    TRY(hwnas_derivation_of(&d, arch, s->batch, s->ranking));
    d.with_weights = true;
    if (!s->keeps_weights && !s->teacher)
        TRY_OUT(hwnas_teacher_new(&s->teacher, s->original, s->device, s->inputs,
                                  s->n_recover / s->batch));
    TRY_OUT(hwnas_derivation_build(&graph, &d));
    if (!s->keeps_weights)
        TRY_OUT(hwnas_recover(graph, &d, s->teacher));
    *out = graph;
    graph = NULL;
out:
    hwnas_graph_free(graph);
    hwnas_derivation_end(&d);
    return status;
}

/* The weights of one network for the same network with another batch, node by node: both have them
 * in one order. */
static void copy_weights(hwnas_graph *to, const hwnas_graph *from)
{
    for (size_t n = 0, f = 0; n < to->n_nodes; n++, f++) {
        const hwnas_node *node = &to->nodes[n];
        while (f < from->n_nodes && strcmp(from->nodes[f].name, node->name))
            f++;
        for (int i = 0; f < from->n_nodes && i < node->n_inputs; i++) {
            hwnas_tensor *w = &to->tensors[node->inputs[i]];
            const hwnas_tensor *v = hwnas_node_input(from, &from->nodes[f], i);
            if (w->kind == HWNAS_TENSOR_WEIGHT && w->data && v->data && hwnas_same_shape(w, v))
                memcpy((float *)w->data, v->data, (size_t)hwnas_tensor_bytes(w));
        }
    }
}

/* The same channels as with the samples' batch: what copy_weights() cannot copy, such as a constant
 * whose shape has the batch, must be of them. */
static hwnas_status build_inherited(hwnas_graph **out, const hwnas_samples *s,
                                    const hwnas_arch *arch, int batch)
{
    hwnas_derivation d;
    TRY(hwnas_derivation_of(&d, arch, batch, s->ranking));
    d.with_weights = true;
    const hwnas_status status =
        d.original->coupling->n_groups == s->original->coupling->n_groups
            ? hwnas_derivation_build(out, &d)
            : hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                         "at batch %d other channels of the model belong together than at %d",
                         batch, s->batch);
    hwnas_derivation_end(&d);
    return status;
}

hwnas_status hwnas_samples_build(hwnas_graph **out, hwnas_samples *samples, const hwnas_arch *arch,
                                 int batch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *recovered, *graph = NULL;
    TRY(build(&recovered, samples, arch));
    if (batch == samples->batch) {
        *out = recovered;
        return HWNAS_OK;
    }
    TRY_OUT(build_inherited(&graph, samples, arch, batch));
    copy_weights(graph, recovered);
    *out = graph;
out:
    hwnas_graph_free(recovered);
    return status;
}

/* ---- Scores ---- */

void hwnas_samples_stop_below(hwnas_samples *samples, double floor)
{
    samples->floor = floor;
}

int64_t hwnas_samples_run(int64_t *n_all, const hwnas_samples *samples)
{
    *n_all = samples->n_wanted;
    return samples->n_run;
}

/* One by one, until the test says that the rest is not worth it. */
static hwnas_status add_batch(bool *stops, hwnas_scoring *score, hwnas_floor_test *test,
                              const float *outputs, const double *labels, int64_t n,
                              hwnas_samples *s)
{
    const hwnas_graph *graph = s->original->graph;
    const int64_t n_outputs = hwnas_tensor_count(&graph->tensors[graph->outputs[0]]) / s->batch;
    for (int64_t k = 0; k < n && !*stops; k++) {
        const double before = score->right;
        TRY(hwnas_score_add(score, outputs + k * n_outputs, labels + k * s->n_labels, 1));
        s->n_run++;
        *stops = test->n_all && hwnas_floor_test_add(test, score->right > before);
    }
    return HWNAS_OK;
}

static hwnas_status add_batches(hwnas_scoring *score, hwnas_samples *s, const hwnas_graph *graph,
                                hwnas_exec *exec, hwnas_samples_part part)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *y = &graph->tensors[graph->outputs[0]];
    float *outputs = NULL, *filled = NULL;
    hwnas_floor_test test = {.n_all = 0};
    bool stops = false;
    int64_t begin, end;
    find_part(&begin, &end, s, part);
    s->n_run = 0;
    s->n_wanted = end - begin;
    if (s->floor > 0 && part == HWNAS_SAMPLES_SEARCH && score->shape.task == HWNAS_TASK_CLASSIFY)
        test = hwnas_floor_test_begin(s->floor / 100, end - begin);
    TRY_OUT(hwnas_try_alloc((void **)&outputs, (size_t)hwnas_tensor_bytes(y), "outputs"));
    TRY_OUT(hwnas_try_alloc((void **)&filled, (size_t)(s->batch * s->n_values) * sizeof *filled,
                            "a batch"));
    for (int64_t at = begin; at < end && !stops; at += s->batch) {
        const int64_t n = end - at < s->batch ? end - at : s->batch;
        const float *input = s->values + at * s->n_values;
        if (n < s->batch) /* what it gives for the rest is left out */
            input = memcpy(filled, input, (size_t)(n * s->n_values) * sizeof *filled);
        TRY_OUT(s->device->ops->run(exec, &input, &outputs));
        TRY_OUT(add_batch(&stops, score, &test, outputs, s->labels + at * s->n_labels, n, s));
    }
out:
    free(outputs);
    free(filled);
    return status;
}

static hwnas_estimate_95 conclude(const hwnas_scoring *score)
{
    hwnas_estimate_95 e = score->shape.task == HWNAS_TASK_REGRESS ? hwnas_score_r2(score)
                          : score->shape.task == HWNAS_TASK_CLASSIFY
                              ? hwnas_share_interval(score->right, (double)score->n)
                              : hwnas_ratio_interval(&score->top1);
    return (hwnas_estimate_95){100 * e.value, 100 * e.low, 100 * e.high};
}

hwnas_status hwnas_samples_score(hwnas_estimate_95 *out, hwnas_samples *samples,
                                 const hwnas_arch *arch, hwnas_precision precision,
                                 hwnas_samples_part part)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL, *folded = NULL;
    hwnas_exec *exec = NULL;
    hwnas_scoring score = {.n = 0};
    hwnas_score_shape shape = {.task = HWNAS_TASK_AUTO};
    hwnas_exec_options how = {.precision = precision};
    if (precision == HWNAS_S8)
        TRY(hwnas_samples_calibrate(&how, samples, samples->batch));
    TRY_OUT(build(&graph, samples, arch));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_device_compile(&exec, samples->device, folded, &how));
    const hwnas_tensor *y = &graph->tensors[graph->outputs[0]];
    shape.are_probabilities = hwnas_gives_probabilities(graph);
    TRY_OUT(hwnas_score_settle(&shape, y->rank - 1, y->dims + 1, samples->n_labels > 1,
                               &samples->n_labels));
    hwnas_score_init(&score, shape);
    TRY_OUT(add_batches(&score, samples, graph, exec, part));
    *out = conclude(&score);
out:
    hwnas_score_done(&score);
    hwnas_exec_free(exec);
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
    return status;
}
