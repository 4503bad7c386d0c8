#include "inherit/sample_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum {
    DEFAULT_RECOVER = 1024,
    DEFAULT_SEARCH = 2000,
    DEFAULT_STATISTICS = 512,
    MIN_SAMPLES = 50,
    MAX_CALIBRATE = 128,
    MAX_BATCH = 64, /* that networks are run with here, where the model's is open */
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

/* The samples of a file, for networks that take what this one takes. */
static hwnas_status open_dataset(hwnas_dataset **out, const hwnas_graph *graph, const char *path,
                                 const hwnas_samples_options *options)
{
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    const int64_t entries = 0;
    const hwnas_array_info info = {.name = input->name,
                                   .type = "float32",
                                   .rank = input->rank,
                                   .dims = input->dims,
                                   .count = hwnas_tensor_count(input)};
    const hwnas_dataset_target target = {.n_inputs = 1, .inputs = &info, .entries = &entries};
    const hwnas_data_file file = {.path = path, .array = options->array};
    return hwnas_dataset_open_for(out, &target, 1, &file, &options->data);
}

static hwnas_status open_data(hwnas_samples *s, const char *path,
                              const hwnas_samples_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_dataset *data = NULL;
    TRY(open_dataset(&data, s->original->graph, path, options));
    TRY_OUT(read_all(s, data, path));
    shuffle(s);
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
static int count_threads(const hwnas_graph *graph, int batch)
{
    const int64_t macs_for_one = 100000000;
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    const int64_t wanted = 1 + costs.macs / batch / macs_for_one;
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
    threads.threads = count_threads(s->original->graph, s->original->batch);
    TRY_OUT(hwnas_device_open(&s->device, "cpu", &threads));
    *out = s;
    s = NULL;
out:
    hwnas_samples_close(s);
    return status;
}

hwnas_status hwnas_samples_part_in_two(int64_t *n_recover, int64_t *n_search, int64_t n, int batch,
                                       const hwnas_samples_options *options, const char *path)
{
    const hwnas_place place = {.file = path};
    *n_recover = options->n_recover ? options->n_recover : DEFAULT_STATISTICS;
    if (!options->n_recover && *n_recover > n / 4)
        *n_recover = n / 4;
    *n_recover -= *n_recover % batch;
    const int64_t left = n - *n_recover;
    *n_search = options->n_search && options->n_search < left ? options->n_search : left;
    if (*n_recover > 0 && left > 0)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &place,
                   "%" PRId64 " samples are too few to find statistics and to judge by", n),
        "%d at least, and more than 'statistics'", 4 * batch);
}

hwnas_status hwnas_samples_open_for(hwnas_samples **out, const hwnas_graph *graph, const char *path,
                                    const hwnas_samples_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_device_options threads = {0};
    hwnas_dataset *data = NULL;
    hwnas_samples *s = hwnas_alloc(sizeof *s);
    s->batch = (int)graph->tensors[graph->inputs[0]].dims[0];
    TRY_OUT(open_dataset(&data, graph, path, options));
    TRY_OUT(read_all(s, data, path));
    TRY_OUT(hwnas_samples_part_in_two(&s->n_recover, &s->n_search, s->n, s->batch, options, path));
    threads.threads = count_threads(graph, s->batch);
    TRY_OUT(hwnas_device_open(&s->device, "cpu", &threads));
    *out = s;
    s = NULL;
out:
    hwnas_dataset_close(data);
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

void hwnas_samples_range(int64_t *begin, int64_t *end, const hwnas_samples *s,
                         hwnas_samples_part part)
{
    const int64_t test = s->n_recover + s->n_search;
    *begin = part == HWNAS_SAMPLES_TEST ? test : part == HWNAS_SAMPLES_SEEN ? 0 : s->n_recover;
    *end = part == HWNAS_SAMPLES_TEST ? s->n : test;
}

int64_t hwnas_samples_count(const hwnas_samples *samples, hwnas_samples_part part)
{
    int64_t begin, end;
    hwnas_samples_range(&begin, &end, samples, part);
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
