/* rewrite.c: new graphs from old ones, node by node. */
#include "graph/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

/* Copies what a weight borrows into its graph. */
static void own_values(hwnas_graph *graph, int tensor)
{
    hwnas_tensor *t = &graph->tensors[tensor];
    hwnas_codes *c = &t->codes;
    const int64_t n = hwnas_tensor_count(t);
    if (t->data)
        t->data = hwnas_arena_copy(graph->arena, t->data, (size_t)hwnas_tensor_bytes(t));
    if (c->numbers)
        c->numbers = hwnas_arena_copy(graph->arena, c->numbers, (size_t)n);
    if (!c->scales)
        return;
    const int64_t length = t->dims[c->axis];
    const size_t bytes =
        (size_t)(n / length * ((length + c->block - 1) / c->block)) * sizeof *c->scales;
    c->scales = hwnas_arena_copy(graph->arena, c->scales, bytes);
    if (c->zeros)
        c->zeros = hwnas_arena_copy(graph->arena, c->zeros, bytes);
}

hwnas_status hwnas_rewrite_copy_weight(hwnas_rewrite *r, int tensor)
{
    const hwnas_tensor *from = &r->from->tensors[tensor];
    int to = -1;
    TRY(hwnas_graph_add_weight(&to, r->to, from->name, from->rank, from->dims, from->init,
                               from->is_parameter));
    r->to->tensors[to].seed = from->seed;
    r->to->tensors[to].dtype = from->dtype;
    r->to->tensors[to].data = from->data;
    r->to->tensors[to].codes = from->codes;
    if (!r->borrows)
        own_values(r->to, to);
    r->place[tensor] = to;
    return HWNAS_OK;
}

void hwnas_rewrite_keep_name(hwnas_rewrite *r, int tensor)
{
    const char *name = r->from->tensors[tensor].name;
    r->to->tensors[r->place[tensor]].name = hwnas_arena_string(r->to->arena, name, strlen(name));
}

hwnas_status hwnas_rewrite_add_node(hwnas_rewrite *r, const hwnas_node *node, int n_inputs,
                                    const int *inputs, int output)
{
    TRY(hwnas_graph_add_node(&r->place[output], r->to, node->op, node->name, node->attrs, n_inputs,
                             inputs, false));
    hwnas_rewrite_keep_name(r, output);
    return HWNAS_OK;
}

hwnas_status hwnas_rewrite_copy_node(hwnas_rewrite *r, const hwnas_node *node)
{
    int inputs[HWNAS_MAX_NODE_INPUTS];
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = node->inputs[i];
        if (r->place[tensor] < 0)
            TRY(hwnas_rewrite_copy_weight(r, tensor));
        inputs[i] = r->place[tensor];
    }
    return hwnas_rewrite_add_node(r, node, node->n_inputs, inputs, node->output);
}

/* The values of a weight of either graph; yours to free(). */
static hwnas_status values_of(float **out, const hwnas_rewrite *r, int tensor)
{
    const int place = r->place[tensor];
    const hwnas_tensor *weight = place >= 0 ? &r->to->tensors[place] : &r->from->tensors[tensor];
    void *values = NULL;
    TRY(hwnas_try_alloc(&values, (size_t)hwnas_tensor_bytes(weight), weight->name));
    hwnas_tensor_fill(weight, values);
    *out = values;
    return HWNAS_OK;
}

hwnas_status hwnas_rewrite_fold(hwnas_rewrite *r, const hwnas_node *node)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *output = hwnas_node_output(r->from, node);
    float *inputs[HWNAS_MAX_NODE_INPUTS] = {NULL};
    for (int i = 0; i < node->n_inputs; i++)
        TRY_OUT(values_of(&inputs[i], r, node->inputs[i]));
    int place;
    TRY_OUT(hwnas_graph_add_weight(&place, r->to, output->name, output->rank, output->dims,
                                   HWNAS_INIT_ZERO, false));
    hwnas_tensor *folded = &r->to->tensors[place];
    float *values = hwnas_arena_alloc(r->to->arena, (size_t)hwnas_tensor_bytes(folded));
    node->op->compute(r->from, node, (const float *const *)inputs, values);
    folded->data = values;
    r->place[node->output] = place;
out:
    for (int i = 0; i < node->n_inputs; i++)
        free(inputs[i]);
    return status;
}

static hwnas_status copy_nodes(hwnas_rewrite *r)
{
    for (size_t i = 0; i < r->from->n_nodes; i++)
        TRY(hwnas_rewrite_copy_node(r, &r->from->nodes[i]));
    return HWNAS_OK;
}

hwnas_status hwnas_graph_remake(hwnas_graph **out, const hwnas_graph *graph,
                                hwnas_status (*make_nodes)(hwnas_rewrite *r), void *context)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rewrite r = {
        .from = graph, .to = hwnas_graph_new(graph->name, graph->seed), .context = context};
    r.place = hwnas_alloc(graph->n_tensors * sizeof *r.place);
    for (size_t i = 0; i < graph->n_tensors; i++)
        r.place[i] = -1;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[i]];
        TRY_OUT(hwnas_graph_add_input(&r.place[graph->inputs[i]], r.to, input->name, input->dtype,
                                      input->rank, input->dims));
    }
    for (size_t i = 0; i < graph->n_absent; i++)
        hwnas_graph_add_absent(r.to, graph->absent[i]);
    TRY_OUT(make_nodes(&r));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (r.place[graph->outputs[i]] < 0) /* a constant */
            TRY_OUT(hwnas_rewrite_copy_weight(&r, graph->outputs[i]));
        hwnas_graph_add_output(r.to, r.place[graph->outputs[i]]);
    }
    *out = r.to;
    r.to = NULL;
out:
    hwnas_graph_free(r.to);
    free(r.place);
    return status;
}

hwnas_status hwnas_graph_copy(hwnas_graph **out, const hwnas_graph *graph)
{
    return hwnas_graph_remake(out, graph, copy_nodes, NULL);
}

bool *hwnas_graph_live_nodes(const hwnas_graph *graph, const int *same)
{
    bool *is_live = hwnas_alloc((graph->n_nodes + 1) * sizeof *is_live);
    bool *is_needed = hwnas_alloc(graph->n_tensors * sizeof *is_needed);
    for (size_t i = 0; i < graph->n_outputs; i++)
        is_needed[same[graph->outputs[i]]] = true;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const hwnas_node *node = &graph->nodes[i];
        is_live[i] = is_needed[node->output];
        for (int k = 0; k < node->n_inputs && is_live[i]; k++)
            is_needed[same[node->inputs[k]]] = true;
    }
    free(is_needed);
    return is_live;
}

hwnas_uses *hwnas_graph_uses(const hwnas_graph *graph, const int *same, const bool *is_live)
{
    hwnas_uses *uses = hwnas_alloc((graph->n_tensors + 1) * sizeof *uses);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs && (!is_live || is_live[i]); k++) {
            const int tensor = graph->nodes[i].inputs[k];
            hwnas_uses *u = &uses[same ? same[tensor] : tensor];
            const int last = u->n_readers < 2 ? u->n_readers - 1 : 1;
            u->n_inputs++;
            if (last >= 0 && u->readers[last] == (int)i)
                continue;
            if (u->n_readers < 2)
                u->readers[u->n_readers] = (int)i;
            u->n_readers++;
        }
    for (size_t i = 0; i < graph->n_outputs; i++)
        uses[same ? same[graph->outputs[i]] : graph->outputs[i]].is_output = true;
    return uses;
}

/* Nodes whose output has become a weight. */
static void drop_folded_nodes(hwnas_graph *graph)
{
    size_t n_kept = 0;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        hwnas_tensor *output = &graph->tensors[graph->nodes[n].output];
        const bool is_folded = output->kind == HWNAS_TENSOR_WEIGHT;
        output->producer = is_folded ? -1 : (int)n_kept;
        if (!is_folded)
            graph->nodes[n_kept++] = graph->nodes[n];
    }
    graph->n_nodes = n_kept;
}

void hwnas_graph_tidy(hwnas_graph *graph)
{
    drop_folded_nodes(graph);
    int *place = hwnas_alloc((graph->n_tensors + 1) * sizeof *place);
    size_t n_kept = 0;
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            place[graph->nodes[n].inputs[i]] = 1;
    for (size_t i = 0; i < graph->n_outputs; i++)
        place[graph->outputs[i]] = 1;
    for (size_t t = 0; t < graph->n_tensors; t++) {
        if (graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT && !place[t])
            continue;
        place[t] = (int)n_kept;
        graph->tensors[n_kept++] = graph->tensors[t];
    }
    graph->n_tensors = n_kept;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            graph->nodes[n].inputs[i] = place[graph->nodes[n].inputs[i]];
        graph->nodes[n].output = place[graph->nodes[n].output];
    }
    for (size_t i = 0; i < graph->n_inputs; i++)
        graph->inputs[i] = place[graph->inputs[i]];
    for (size_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i] = place[graph->outputs[i]];
    free(place);
}
