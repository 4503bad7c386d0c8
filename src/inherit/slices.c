#include "inherit/slices.h"

#include <stdlib.h>
#include <string.h>

#include "data/array_file.h"
#include "inherit/sample_set.h"
#include "inherit/walk.h"

enum { BATCH = 32 }; /* that networks are judged with */

struct hwnas_supernet {
    const hwnas_shared *shared; /* borrowed */
    float **weights;            /* by weight; NULL: a statistic */
    hwnas_samples *samples;
};

/* ---- Weights ---- */

static int64_t count(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static hwnas_status read_weight(float **out, const hwnas_shared_weight *w, const char *path)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_place place = {.file = path};
    hwnas_array_file *array = NULL;
    double *values = NULL;
    const int64_t n = count(w->rank, w->dims);
    TRY(hwnas_array_open(&array, path, w->name));
    if (array->rank != w->rank ||
        memcmp(array->dims, w->dims, (size_t)w->rank * sizeof *w->dims) != 0) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%s' has another shape in this space",
                                       w->name),
                            "the weights are of another space; '#weights=OTHER' begins others");
        goto out;
    }
    TRY_OUT(hwnas_try_alloc((void **)&values, (size_t)n * sizeof *values, w->name));
    TRY_OUT(hwnas_try_alloc((void **)out, (size_t)n * sizeof **out, w->name));
    TRY_OUT(hwnas_array_read(values, array, array->dims[0]));
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = (float)values[i];
out:
    free(values);
    hwnas_array_close(array);
    return status;
}

/* The slice of a weight that a network has. */
static void take_slice(float *out, const hwnas_shared_weight *w, const float *from,
                       const hwnas_tensor *t)
{
    int64_t dims[4] = {1, 1, 1, 1}, step[4] = {0}, begin = 0, whole = 1;
    for (int d = w->rank - 1; d >= 0; d--) {
        dims[d] = t->dims[d];
        step[d] = whole;
        begin += whole * hwnas_shared_begin(w, d, t->dims[d]);
        whole *= w->dims[d];
    }
    for (int64_t a = 0; a < dims[0]; a++)
        for (int64_t b = 0; b < dims[1]; b++)
            for (int64_t y = 0; y < dims[2]; y++)
                for (int64_t x = 0; x < dims[3]; x++)
                    *out++ = from[begin + a * step[0] + b * step[1] + y * step[2] + x * step[3]];
}

/* A network with its weights; statistics are zeros yet. */
static hwnas_status build(hwnas_graph **out, const hwnas_supernet *s, const hwnas_arch *arch)
{
    int *index;
    TRY(hwnas_shared_build(out, &index, s->shared, arch, BATCH));
    hwnas_graph *graph = *out;
    for (size_t t = 0; t < graph->n_tensors; t++) {
        hwnas_tensor *tensor = &graph->tensors[t];
        if (index[t] < 0)
            continue;
        float *values = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(tensor));
        if (s->weights[index[t]])
            take_slice(values, &s->shared->weights[index[t]], s->weights[index[t]], tensor);
        else if (!tensor->is_parameter && tensor->init == HWNAS_INIT_ONE)
            hwnas_tensor_fill(tensor, values); /* what has no scale to learn is scaled by one */
        tensor->data = values;
    }
    free(index);
    return HWNAS_OK;
}

/* ---- Statistics ---- */

typedef struct recalibration {
    hwnas_graph *graph;
    int64_t n_chunks;
} recalibration;

/* Of each channel over all samples, as training has them of a batch. */
static hwnas_status set_statistics(void *context, int n, float *const *values)
{
    enum { MEAN = 3, VARIANCE };
    const recalibration *r = context;
    const hwnas_node *node = &r->graph->nodes[n];
    if (!hwnas_node_is(node, HWNAS_OP_BATCH_NORM))
        return HWNAS_OK;
    const hwnas_tensor *in = hwnas_node_input(r->graph, node, 0);
    float *mean = (float *)hwnas_node_input(r->graph, node, MEAN)->data;
    float *variance = (float *)hwnas_node_input(r->graph, node, VARIANCE)->data;
    const int64_t n_channels = in->dims[1], n_samples = r->n_chunks * in->dims[0];
    const int64_t size = hwnas_tensor_count(in) / (in->dims[0] * n_channels);
    for (int64_t c = 0; c < n_channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t s = 0; s < n_samples; s++)
            for (int64_t i = 0; i < size; i++)
                sum += values[node->inputs[0]][(s * n_channels + c) * size + i];
        const double middle = sum / (double)(n_samples * size);
        for (int64_t s = 0; s < n_samples; s++)
            for (int64_t i = 0; i < size; i++) {
                const double off = values[node->inputs[0]][(s * n_channels + c) * size + i] - middle;
                squares += off * off;
            }
        mean[c] = (float)middle;
        variance[c] = (float)(squares / (double)(n_samples * size));
    }
    return HWNAS_OK;
}

static hwnas_status recalibrate(hwnas_graph *graph, const hwnas_samples *samples)
{
    recalibration r = {graph, samples->n_recover / samples->batch};
    const hwnas_walker walker = {.graph = graph,
                                 .device = samples->device,
                                 .n_chunks = r.n_chunks,
                                 .inputs = samples->inputs,
                                 .context = &r,
                                 .before = set_statistics};
    return hwnas_inherit_walk(&walker);
}

/* ---- The supernet ---- */

hwnas_status hwnas_supernet_open(hwnas_supernet **out, const hwnas_shared *shared,
                                 const char *weights, const char *samples,
                                 const hwnas_samples_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *largest = NULL;
    hwnas_supernet *s = hwnas_alloc(sizeof *s);
    s->shared = shared;
    s->weights = hwnas_alloc((shared->n_weights + 1) * sizeof *s->weights);
    for (size_t i = 0; i < shared->n_weights; i++)
        if (shared->weights[i].is_learned)
            TRY_OUT(read_weight(&s->weights[i], &shared->weights[i], weights));
    TRY_OUT(hwnas_graph_build(&largest, shared->largest, BATCH));
    TRY_OUT(hwnas_samples_open_for(&s->samples, largest, samples, options));
    *out = s;
    s = NULL;
out:
    hwnas_graph_free(largest);
    hwnas_supernet_close(s);
    return status;
}

hwnas_status hwnas_supernet_check_samples(int64_t n, const hwnas_samples_options *options,
                                          const char *path)
{
    int64_t n_statistics, n_search;
    return hwnas_samples_part_in_two(&n_statistics, &n_search, n, BATCH, options, path);
}

void hwnas_supernet_close(hwnas_supernet *supernet)
{
    if (!supernet)
        return;
    for (size_t i = 0; i < supernet->shared->n_weights; i++)
        free(supernet->weights[i]);
    free(supernet->weights);
    hwnas_samples_close(supernet->samples);
    free(supernet);
}

hwnas_status hwnas_supernet_score(hwnas_estimate_95 *out, hwnas_supernet *supernet,
                                  const hwnas_arch *arch)
{
    hwnas_graph *graph;
    TRY(build(&graph, supernet, arch));
    hwnas_status status = recalibrate(graph, supernet->samples);
    if (status == HWNAS_OK)
        status = hwnas_samples_judge(out, NULL, supernet->samples, graph, HWNAS_F32,
                                     HWNAS_SAMPLES_SEARCH);
    hwnas_graph_free(graph);
    return status;
}
