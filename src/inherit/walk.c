#include "inherit/walk.h"

#include <stdlib.h>

#include "device/node.h"

typedef struct state {
    const hwnas_walker *walker;
    float **values;   /* by tensor */
    int *last_reader; /* by tensor: node; the number of nodes where it is an output */
} state;

static void find_last_readers(state *s)
{
    const hwnas_graph *graph = s->walker->graph;
    for (size_t t = 0; t < graph->n_tensors; t++)
        s->last_reader[t] = -1;
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            s->last_reader[graph->nodes[n].inputs[i]] = (int)n;
}

/* A chunk of a tensor's values; of a weight all of them. */
static float *chunk_of(const state *s, int tensor, int64_t chunk)
{
    const hwnas_tensor *t = &s->walker->graph->tensors[tensor];
    return s->values[tensor] + (t->kind == HWNAS_TENSOR_WEIGHT ? 0 : chunk * hwnas_tensor_count(t));
}

static hwnas_status load_weights(state *s, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *t = hwnas_node_input(s->walker->graph, node, i);
        float **values = &s->values[node->inputs[i]];
        if (t->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        if (!*values)
            TRY(hwnas_try_alloc((void **)values, (size_t)hwnas_tensor_bytes(t), t->name));
        hwnas_tensor_fill(t, *values);
    }
    return HWNAS_OK;
}

static void take_operands(const float **out, const state *s, const hwnas_node *node, int64_t chunk)
{
    for (int i = 0; i < node->n_inputs; i++)
        out[i] = chunk_of(s, node->inputs[i], chunk);
}

static hwnas_status run_node(state *s, int n)
{
    const hwnas_walker *w = s->walker;
    const hwnas_node *node = &w->graph->nodes[n];
    const hwnas_tensor *output = hwnas_node_output(w->graph, node);
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    hwnas_node_exec exec;
    hwnas_status status = HWNAS_OK;
    TRY(hwnas_try_alloc((void **)&s->values[node->output],
                        (size_t)(w->n_chunks * hwnas_tensor_bytes(output)), output->name));
    take_operands(operands, s, node, 0);
    TRY(hwnas_node_compile(&exec, w->graph, node, w->device, operands));
    for (int64_t chunk = 0; chunk < w->n_chunks && status == HWNAS_OK; chunk++) {
        take_operands(operands, s, node, chunk);
        status = hwnas_node_exec_run(&exec, operands, chunk_of(s, node->output, chunk));
    }
    hwnas_node_exec_done(&exec);
    return status;
}

static bool is_input(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_INPUT;
}

static void drop_values(state *s, int n)
{
    const hwnas_node *node = &s->walker->graph->nodes[n];
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = node->inputs[i];
        if (s->last_reader[tensor] == n && !is_input(s->walker->graph, tensor)) {
            free(s->values[tensor]);
            s->values[tensor] = NULL;
        }
    }
    if (s->last_reader[node->output] < 0) { /* an output, or read by nobody */
        free(s->values[node->output]);
        s->values[node->output] = NULL;
    }
}

static hwnas_status step(state *s, int n)
{
    const hwnas_walker *w = s->walker;
    TRY(load_weights(s, &w->graph->nodes[n]));
    if (w->before) {
        TRY(w->before(w->context, n, s->values));
        TRY(load_weights(s, &w->graph->nodes[n]));
    }
    TRY(run_node(s, n));
    if (w->after)
        TRY(w->after(w->context, n, s->values));
    drop_values(s, n);
    return HWNAS_OK;
}

hwnas_status hwnas_inherit_walk(const hwnas_walker *walker)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = walker->graph;
    state s = {.walker = walker,
               .values = hwnas_alloc((graph->n_tensors + 1) * sizeof *s.values),
               .last_reader = hwnas_alloc((graph->n_tensors + 1) * sizeof *s.last_reader)};
    find_last_readers(&s);
    for (size_t i = 0; i < graph->n_inputs; i++)
        s.values[graph->inputs[i]] = (float *)walker->inputs[i];
    for (size_t n = 0; n < graph->n_nodes; n++)
        TRY_OUT(step(&s, (int)n));
out:
    for (size_t t = 0; t < graph->n_tensors; t++)
        if (!is_input(graph, (int)t))
            free(s.values[t]);
    free(s.values);
    free(s.last_reader);
    return status;
}
