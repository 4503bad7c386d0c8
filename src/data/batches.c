#include "data/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset_source.h"

hwnas_array_info *hwnas_graph_arrays(const hwnas_graph *graph, size_t n, const int *tensors)
{
    hwnas_array_info *out = hwnas_alloc((n + 1) * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const hwnas_tensor *t = &graph->tensors[tensors[i]];
        out[i] = (hwnas_array_info){.name = t->name,
                                    .type = hwnas_dtype_name(t->dtype),
                                    .rank = t->rank,
                                    .dims = t->dims,
                                    .count = hwnas_tensor_count(t)};
    }
    return out;
}

/* What a graph takes; `inputs` and `entries` are yours to free(). */
static hwnas_dataset_target target_of(hwnas_array_info **inputs, int64_t **entries,
                                      const hwnas_graph *graph)
{
    *inputs = hwnas_graph_arrays(graph, graph->n_inputs, graph->inputs);
    *entries = hwnas_alloc((graph->n_inputs + 1) * sizeof **entries);
    for (size_t i = 0; i < graph->n_inputs; i++)
        (*entries)[i] = hwnas_graph_table_rows(graph, graph->inputs[i]);
    return (hwnas_dataset_target){graph->n_inputs, *inputs, *entries, graph->n_absent,
                                  graph->absent};
}

hwnas_status hwnas_graph_dataset_open(hwnas_dataset **out, const hwnas_graph *graph, size_t n_files,
                                      const hwnas_data_file *files,
                                      const hwnas_dataset_options *options)
{
    hwnas_array_info *inputs;
    int64_t *entries;
    const hwnas_dataset_target target = target_of(&inputs, &entries, graph);
    const hwnas_status status = hwnas_dataset_open_for(out, &target, n_files, files, options);
    free(entries);
    free(inputs);
    return status;
}

hwnas_status hwnas_graph_read_inputs(float **out, const hwnas_graph *graph, size_t n_files,
                                     const hwnas_data_file *files)
{
    hwnas_status status = HWNAS_OK;
    hwnas_array_info *inputs;
    int64_t *entries;
    const hwnas_dataset_target target = target_of(&inputs, &entries, graph);
    float **read = hwnas_alloc((graph->n_inputs + 1) * sizeof *read);
    TRY_OUT(hwnas_dataset_check_files(&target, n_files, files));
    for (size_t i = 0; i < graph->n_inputs; i++) {
        TRY_OUT(hwnas_try_alloc((void **)&read[i], (size_t)inputs[i].count * sizeof **read,
                                "an input"));
        TRY_OUT(hwnas_dataset_read_whole(read[i], &target, i, n_files, files));
    }
    for (size_t i = 0; i < graph->n_inputs; i++) {
        out[i] = read[i];
        read[i] = NULL;
    }
out:
    for (size_t i = 0; i < graph->n_inputs; i++)
        free(read[i]);
    free(read);
    free(entries);
    free(inputs);
    return status;
}

/* ---- Whether samples fit ---- */

bool hwnas_graph_takes_samples(const hwnas_graph *graph, int batch)
{
    bool takes = true;
    for (size_t i = 0; i < graph->n_inputs + graph->n_outputs; i++) {
        const hwnas_tensor *t =
            &graph->tensors[i < graph->n_inputs ? graph->inputs[i]
                                                : graph->outputs[i - graph->n_inputs]];
        takes &= t->rank >= 1 && t->dims[0] == batch;
    }
    return takes;
}

static hwnas_status check_batch(const hwnas_graph *graph, const char *name, int batch, size_t n,
                                const int *tensors, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        const hwnas_tensor *t = &graph->tensors[tensors[i]];
        if (t->rank >= 1 && t->dims[0] == batch)
            continue;
        char *dims = hwnas_dims_text(t->rank, t->dims);
        const hwnas_status status = hwnas_fail(
            HWNAS_E_INPUT, NULL, "%s: %s '%s' is %s, whose first dimension is not the batch, %d",
            name, what, t->name, dims, batch);
        free(dims);
        return hwnas_hint(status, "samples are run in batches along the first dimension; "
                                  "'hwnas run' runs it once");
    }
    return HWNAS_OK;
}

static int64_t count_of(const hwnas_graph *graph, size_t input)
{
    return hwnas_tensor_count(&graph->tensors[graph->inputs[input]]);
}

hwnas_status hwnas_batches_check(const hwnas_graph *graph, const char *name, int batch,
                                 const hwnas_dataset *data)
{
    bool is_same = graph->n_inputs == hwnas_dataset_n_inputs(data);
    TRY(check_batch(graph, name, batch, graph->n_inputs, graph->inputs, "input"));
    TRY(check_batch(graph, name, batch, graph->n_outputs, graph->outputs, "output"));
    for (size_t i = 0; is_same && i < graph->n_inputs; i++)
        is_same = count_of(graph, i) / batch == hwnas_dataset_count(data, i);
    if (!is_same)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "%s takes other inputs than the network that the data is for", name);
    return HWNAS_OK;
}

/* ---- Reading ---- */

void hwnas_batch_fill_up(float *const *inputs, const hwnas_graph *graph, int batch, int64_t n)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const int64_t count = count_of(graph, i) / batch;
        for (int64_t k = n; k < batch; k++)
            memcpy(inputs[i] + k * count, inputs[i] + (n - 1) * count,
                   (size_t)count * sizeof **inputs);
    }
}

int64_t hwnas_batches_count(const hwnas_dataset *data, int64_t step, bool are_others)
{
    const int64_t n = hwnas_dataset_samples(data), n_multiples = (n + step - 1) / step;
    return are_others ? n - n_multiples : n_multiples;
}

hwnas_status hwnas_batches_next(int64_t *n, float *const *inputs, double *labels, hwnas_batches *b)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = b->graph;
    const int64_t n_labels = labels ? hwnas_dataset_labels(b->data)->row_count : 0;
    float **at = hwnas_alloc((graph->n_inputs + 1) * sizeof *at);
    int64_t done = 0;
    while (done < b->batch && b->left > 0) {
        for (size_t i = 0; i < graph->n_inputs; i++)
            at[i] = inputs[i] + done * (count_of(graph, i) / b->batch);
        /* One of another part is read over by the next. */
        TRY_OUT(hwnas_dataset_take(at, labels ? labels + done * n_labels : NULL, b->data, 1));
        const bool is_ours = (b->next++ % b->step != 0) == b->are_others;
        done += is_ours;
        b->left -= is_ours;
    }
    if (done)
        hwnas_batch_fill_up(inputs, graph, b->batch, done);
    *n = done;
out:
    free(at);
    return status;
}

/* Into arrays that are large enough. */
static hwnas_status read_all(float *values, double *labels, hwnas_batches *b)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = b->graph;
    const int64_t n_labels = labels ? hwnas_dataset_labels(b->data)->row_count : 0;
    float **inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *inputs);
    TRY_OUT(hwnas_dataset_rewind(b->data));
    while (b->left > 0) {
        int64_t n;
        for (size_t i = 0; i < graph->n_inputs; i++) {
            inputs[i] = values;
            values += count_of(graph, i);
        }
        TRY_OUT(hwnas_batches_next(&n, inputs, labels, b));
        if (labels)
            labels += n * n_labels;
    }
    status = hwnas_dataset_rewind(b->data);
out:
    free(inputs);
    return status;
}

hwnas_status hwnas_batches_read(float **out, double **labels, size_t *n_batches, hwnas_batches *b)
{
    hwnas_status status = HWNAS_OK;
    float *values = NULL;
    double *y = NULL;
    size_t count = 0;
    const size_t n = (size_t)((b->left + b->batch - 1) / b->batch);
    for (size_t i = 0; i < b->graph->n_inputs; i++)
        count += (size_t)count_of(b->graph, i);
    TRY_OUT(hwnas_try_alloc((void **)&values, n * count * sizeof *values, "samples"));
    if (labels)
        TRY_OUT(hwnas_try_alloc(
            (void **)&y, (size_t)(b->left * hwnas_dataset_labels(b->data)->row_count) * sizeof *y,
            "labels"));
    TRY_OUT(read_all(values, y, b));
    *out = values;
    *n_batches = n;
    if (labels)
        *labels = y;
    return HWNAS_OK;
out:
    free(values);
    free(y);
    return status;
}
