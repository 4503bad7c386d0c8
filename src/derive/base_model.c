#include "derive/base_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx.h"

/* ---- Which channels matter ---- */

/* A set's share of each weight that it lies in: its squares over the mean of the weight's sets. So
 * weights of any size count alike (the normalised group norm of Fang et al. 2023, section 3.3). */
static void add_importance(double *importance, const hwnas_original *o, int tensor, int dim,
                           const float *values)
{
    const hwnas_tensor *t = &o->graph->tensors[tensor];
    const int *sets = hwnas_coupling_sets(o->coupling, tensor, dim);
    const int64_t n = t->dims[dim], count = hwnas_tensor_count(t);
    int64_t behind = 1;
    for (int d = dim + 1; d < t->rank; d++)
        behind *= t->dims[d];
    double *squares = hwnas_alloc((size_t)n * sizeof *squares), sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double square = (double)values[i] * values[i];
        squares[i / behind % n] += square;
        sum += square;
    }
    for (int64_t i = 0; i < n && sum > 0; i++)
        if (sets[i] != HWNAS_SET_FIXED)
            importance[sets[i]] += squares[i] * (double)n / sum;
    free(squares);
}

static hwnas_status weigh(double *importance, const hwnas_original *o)
{
    for (size_t t = 0; t < o->graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &o->graph->tensors[t];
        if (tensor->kind != HWNAS_TENSOR_WEIGHT || tensor->rank < 2)
            continue;
        float *values;
        TRY(hwnas_try_alloc((void **)&values, (size_t)hwnas_tensor_bytes(tensor), tensor->name));
        hwnas_tensor_fill(tensor, values);
        for (int d = 0; d < tensor->rank; d++)
            add_importance(importance, o, (int)t, d, values);
        free(values);
    }
    return HWNAS_OK;
}

static void rank_sets(int *ranking, const hwnas_channel_group *group, const double *importance)
{
    for (int i = 0; i < group->n_sets; i++) { /* insertion: stable, and no context to hand over */
        int at = i;
        for (; at > 0 && importance[ranking[at - 1]] < importance[group->sets[i]]; at--)
            ranking[at] = ranking[at - 1];
        ranking[at] = group->sets[i];
    }
}

static hwnas_status rank_all(hwnas_original *o)
{
    double *importance = hwnas_alloc(((size_t)o->coupling->n_sets + 1) * sizeof *importance);
    const hwnas_status status = weigh(importance, o);
    o->ranking = hwnas_alloc((o->coupling->n_groups + 1) * sizeof *o->ranking);
    for (size_t g = 0; g < o->coupling->n_groups && status == HWNAS_OK; g++) {
        const hwnas_channel_group *group = &o->coupling->groups[g];
        o->ranking[g] = hwnas_alloc((size_t)group->n_sets * sizeof **o->ranking);
        rank_sets(o->ranking[g], group, importance);
    }
    free(importance);
    return status;
}

/* ---- The model, by batch ---- */

static void close_original(hwnas_original *o)
{
    for (size_t g = 0; o->ranking && g < o->coupling->n_groups; g++)
        free(o->ranking[g]);
    free(o->ranking);
    hwnas_coupling_free(o->coupling);
    hwnas_graph_free(o->graph);
    free(o);
}

static hwnas_status open_original(hwnas_original **out, const hwnas_base_model *model, int batch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_original *o = hwnas_alloc(sizeof *o);
    o->batch = batch;
    TRY_OUT(hwnas_onnx_load_batch(&graph, model->path, batch, NULL));
    TRY_OUT(hwnas_graph_fold(&o->graph, graph));
    if (!o->graph->n_inputs || o->graph->tensors[o->graph->inputs[0]].dims[0] != batch) {
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no batch of %d", model->path, batch),
                       "export the model with an open batch");
        goto out;
    }
    TRY_OUT(hwnas_coupling_find(&o->coupling, o->graph));
    TRY_OUT(rank_all(o));
    *out = o;
    o = NULL;
out:
    hwnas_graph_free(graph);
    if (o)
        close_original(o);
    return status;
}

hwnas_status hwnas_base_model_open(hwnas_base_model **out, const char *path)
{
    const hwnas_original *first;
    hwnas_base_model *model = hwnas_alloc(sizeof *model);
    model->path = hwnas_strdup(path);
    pthread_mutex_init(&model->lock, NULL);
    const hwnas_status status = hwnas_base_model_original(&first, model, 1);
    if (status == HWNAS_OK)
        *out = model;
    else
        hwnas_base_model_close(model);
    return status;
}

void hwnas_base_model_close(hwnas_base_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->n; i++)
        close_original(model->originals[i]);
    pthread_mutex_destroy(&model->lock);
    free(model->originals);
    free(model->path);
    free(model);
}

hwnas_status hwnas_base_model_original(const hwnas_original **out, hwnas_base_model *model,
                                       int batch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_original *found = NULL;
    pthread_mutex_lock(&model->lock);
    for (size_t i = 0; i < model->n && !found; i++)
        found = model->originals[i]->batch == batch ? model->originals[i] : NULL;
    if (!found && (status = open_original(&found, model, batch)) == HWNAS_OK) {
        HWNAS_GROW(model->originals, model->n, model->capacity);
        model->originals[model->n++] = found;
    }
    if (status == HWNAS_OK)
        *out = found;
    pthread_mutex_unlock(&model->lock);
    return status;
}
