#include <stdlib.h>
#include <string.h>

#include "inherit/importance.h"
#include "inherit/removal.h"
#include "inherit/sample_set.h"

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

/* The node of that name, from `begin` on; n_nodes: there is none. */
static size_t find_node(const hwnas_graph *graph, size_t begin, const char *name)
{
    while (begin < graph->n_nodes && strcmp(graph->nodes[begin].name, name))
        begin++;
    return begin;
}

/* The weights of one network for the same network with another batch, node by node: both have them
 * in one order, but either may have nodes that the other does without, such as one that repeats a
 * token for each image. */
static void copy_weights(hwnas_graph *to, const hwnas_graph *from)
{
    for (size_t n = 0, next = 0; n < to->n_nodes; n++) {
        const hwnas_node *node = &to->nodes[n];
        const size_t f = find_node(from, next, node->name);
        if (f == from->n_nodes)
            continue;
        next = f + 1;
        for (int i = 0; i < node->n_inputs; i++) {
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
    const hwnas_original *original;
    hwnas_derivation d;
    TRY(hwnas_base_model_original(&original, s->space->model, batch));
    if (!hwnas_original_has_same_groups(original, s->original))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "at batch %d other channels of the model belong together than at %d",
                          batch, s->batch);
    TRY(hwnas_derivation_of(&d, arch, batch, s->ranking));
    d.with_weights = true;
    const hwnas_status status = hwnas_derivation_build(out, &d);
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
