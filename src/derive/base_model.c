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

/* No dimension of a tensor may lose all its places, as the part that a slice takes could: of those
 * in which nothing stays anyway the most important set has to. */
static void find_needed(bool *is_needed, const hwnas_original *o, const double *importance)
{
    bool *may_go = hwnas_alloc((size_t)o->coupling->n_sets + 1);
    for (size_t g = 0; g < o->coupling->n_groups; g++)
        for (int i = 0; i < o->coupling->groups[g].n_sets; i++)
            may_go[o->coupling->groups[g].sets[i]] = true;
    for (size_t t = 0; t < o->graph->n_tensors; t++)
        for (int d = 0; d < o->graph->tensors[t].rank; d++) {
            const int *sets = hwnas_coupling_sets(o->coupling, (int)t, d);
            int best = HWNAS_SET_FIXED;
            bool has_any = false;
            for (int64_t i = 0; i < o->graph->tensors[t].dims[d] && !has_any; i++) {
                has_any = sets[i] == HWNAS_SET_FIXED || !may_go[sets[i]] || is_needed[sets[i]];
                if (!has_any && (best == HWNAS_SET_FIXED || importance[sets[i]] > importance[best]))
                    best = sets[i];
            }
            if (!has_any && best != HWNAS_SET_FIXED)
                is_needed[best] = true;
        }
    free(may_go);
}

typedef struct ranked {
    double importance;
    bool is_needed;
    int at; /* in the group */
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->is_needed != y->is_needed)
        return x->is_needed ? -1 : 1;
    if (x->importance != y->importance)
        return x->importance > y->importance ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int *rank_sets(int *n_needed, const hwnas_channel_group *group, const double *importance,
                      const bool *is_needed)
{
    int *ranking = hwnas_alloc((size_t)group->n_sets * sizeof *ranking);
    ranked *rows = hwnas_alloc((size_t)group->n_sets * sizeof *rows);
    for (int i = 0; i < group->n_sets; i++) {
        rows[i] = (ranked){importance[group->sets[i]], is_needed[group->sets[i]], i};
        *n_needed += rows[i].is_needed;
    }
    qsort(rows, (size_t)group->n_sets, sizeof *rows, by_rank);
    for (int i = 0; i < group->n_sets; i++)
        ranking[i] = rows[i].at;
    free(rows);
    return ranking;
}

static hwnas_status rank_all(hwnas_original *o)
{
    const hwnas_coupling *c = o->coupling;
    double *importance = hwnas_alloc(((size_t)c->n_sets + 1) * sizeof *importance);
    bool *is_needed = hwnas_alloc((size_t)c->n_sets + 1);
    const hwnas_status status = weigh(importance, o);
    o->ranking = hwnas_alloc((c->n_groups + 1) * sizeof *o->ranking);
    o->n_needed = hwnas_alloc((c->n_groups + 1) * sizeof *o->n_needed);
    if (status == HWNAS_OK)
        find_needed(is_needed, o, importance);
    for (size_t g = 0; g < c->n_groups && status == HWNAS_OK; g++)
        o->ranking[g] = rank_sets(&o->n_needed[g], &c->groups[g], importance, is_needed);
    free(importance);
    free(is_needed);
    return status;
}

int **hwnas_original_rank(const hwnas_original *o, const double *importance)
{
    const hwnas_coupling *c = o->coupling;
    bool *is_needed = hwnas_alloc((size_t)c->n_sets + 1);
    int **ranking = hwnas_alloc((c->n_groups + 1) * sizeof *ranking);
    for (size_t g = 0; g < c->n_groups; g++) {
        int n_needed = 0;
        for (int i = 0; i < o->n_needed[g]; i++)
            is_needed[c->groups[g].sets[o->ranking[g][i]]] = true;
        ranking[g] = rank_sets(&n_needed, &c->groups[g], importance, is_needed);
    }
    free(is_needed);
    return ranking;
}

bool hwnas_original_has_same_groups(const hwnas_original *a, const hwnas_original *b)
{
    bool is_same = a->coupling->n_groups == b->coupling->n_groups;
    for (size_t g = 0; g < a->coupling->n_groups && is_same; g++) {
        const hwnas_channel_group *x = &a->coupling->groups[g], *y = &b->coupling->groups[g];
        is_same = x->dim == y->dim && x->n_sets == y->n_sets && x->n_made == y->n_made &&
                  !strcmp(a->graph->nodes[x->node].name, b->graph->nodes[y->node].name);
    }
    return is_same;
}

void hwnas_ranking_free(int **ranking, const hwnas_original *original)
{
    for (size_t g = 0; ranking && g < original->coupling->n_groups; g++)
        free(ranking[g]);
    free(ranking);
}

/* ---- The model, by batch ---- */

static void close_original(hwnas_original *o)
{
    hwnas_ranking_free(o->ranking, o);
    free(o->n_needed);
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
    if (!model->n) /* once */
        hwnas_onnx_tell_doubts(graph, model->path);
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
