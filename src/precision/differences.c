#include "precision/differences.h"

#include <stdlib.h>
#include <string.h>

/* What is run: a graph with outputs of its own or with others, and where it has them. */
typedef struct computation {
    const hwnas_side *side;
    hwnas_graph view;     /* shares all with the side's graph but the outputs */
    const float *samples; /* of this graph's inputs, in its order */
    float *reordered;     /* the same, where they are this one's own; or NULL */
    hwnas_exec *exec;
    float **outputs;
} computation;

/* A tensor of both, by their places among the outputs of the two views. */
typedef struct pair {
    size_t place[2];
} pair;

/* ---- What belongs together ---- */

static const hwnas_tensor *tensor_of(const hwnas_graph *graph, const int *list, size_t i)
{
    return &graph->tensors[list[i]];
}

/* The place in `list` of the tensor that is called so; `n`: there is none. */
static size_t place_of(const hwnas_graph *graph, const int *list, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(tensor_of(graph, list, i)->name, name))
        i++;
    return i;
}

static bool is_among(const size_t *places, size_t n, size_t place)
{
    for (size_t i = 0; i < n; i++)
        if (places[i] == place)
            return true;
    return false;
}

/* Exporters number what has no name of its own, and another file has other numbers. */
static bool is_number(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

/* For each of `n` tensors of the first its place in the second: that of its name, and those whose
 * names are not there take the others, in order. Numbers are names where all of them are there. */
static void pair_up(size_t *out, const hwnas_graph *const graphs[2], const int *const lists[2],
                    size_t n)
{
    bool has_all = true;
    for (size_t i = 0; i < n; i++) {
        out[i] = place_of(graphs[1], lists[1], n, tensor_of(graphs[0], lists[0], i)->name);
        has_all = has_all && out[i] < n;
    }
    for (size_t i = 0; i < n && !has_all; i++)
        if (is_number(tensor_of(graphs[0], lists[0], i)->name))
            out[i] = n;
    size_t free_place = 0;
    for (size_t i = 0; i < n; i++) {
        if (out[i] < n)
            continue;
        while (is_among(out, n, free_place))
            free_place++;
        out[i] = free_place;
    }
}

/* `what`: "input" or "output". */
static hwnas_status match(size_t *out, const hwnas_side sides[2], const char *what,
                          const int *const lists[2], const size_t n[2])
{
    const hwnas_graph *const graphs[] = {sides[0].graph, sides[1].graph};
    if (n[0] != n[1])
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s has %zu %ss, %s has %zu", sides[0].name, n[0],
                          what, sides[1].name, n[1]);
    pair_up(out, graphs, lists, n[0]);
    for (size_t i = 0; i < n[0]; i++) {
        const hwnas_tensor *a = tensor_of(graphs[0], lists[0], i);
        const hwnas_tensor *b = tensor_of(graphs[1], lists[1], out[i]);
        if (!hwnas_same_shape(a, b))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "%s '%s' of %s is %s, '%s' of %s is %s", what, a->name,
                                         sides[0].name, hwnas_tensor_shape(a).s, b->name,
                                         sides[1].name, hwnas_tensor_shape(b).s),
                              "--batch and --shape set what a file leaves open");
    }
    return HWNAS_OK;
}

static int compare_names(const void *a, const void *b)
{
    const hwnas_node *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

/* The nodes of both graphs that have one name and one shape, as outputs of the views. */
static size_t match_nodes(computation sides[2], int *lists[2])
{
    const hwnas_graph *first = sides[0].side->graph, *second = sides[1].side->graph;
    const hwnas_node **sorted = hwnas_alloc((second->n_nodes + 1) * sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; i < second->n_nodes; i++)
        sorted[i] = &second->nodes[i];
    qsort(sorted, second->n_nodes, sizeof(const hwnas_node *), compare_names);
    for (size_t i = 0; i < first->n_nodes; i++) {
        const hwnas_node *node = &first->nodes[i];
        const hwnas_node **other =
            bsearch(&node, sorted, second->n_nodes, sizeof(const hwnas_node *), compare_names);
        if (!other ||
            !hwnas_same_shape(&first->tensors[node->output], &second->tensors[(*other)->output]))
            continue;
        lists[0][n] = node->output;
        lists[1][n++] = (*other)->output;
    }
    free(sorted);
    return n;
}

/* ---- Running ---- */

/* As it is deployed, or with each node as it stands. */
static hwnas_status begin(computation *c, size_t n_samples, bool are_nodes)
{
    const hwnas_exec_options how = {
        .precision = c->side->precision, .n_samples = n_samples, .samples = c->samples};
    hwnas_graph *deployed = NULL;
    c->outputs = hwnas_alloc((c->view.n_outputs + 1) * sizeof *c->outputs);
    for (size_t i = 0; i < c->view.n_outputs; i++)
        TRY(hwnas_try_alloc(
            (void **)&c->outputs[i],
            (size_t)hwnas_tensor_count(tensor_of(&c->view, c->view.outputs, i)) * sizeof(float) + 1,
            "what the nodes compute"));
    if (!are_nodes)
        TRY(hwnas_exec_form(&deployed, &c->view, &how));
    const hwnas_status status =
        hwnas_device_compile(&c->exec, c->side->device, deployed ? deployed : &c->view, &how);
    hwnas_graph_free(deployed);
    return status;
}

static void end(computation *c)
{
    hwnas_exec_free(c->exec);
    for (size_t i = 0; c->outputs && i < c->view.n_outputs; i++)
        free(c->outputs[i]);
    free(c->outputs);
    c->exec = NULL;
    c->outputs = NULL;
}

static size_t count(const hwnas_graph *graph, size_t input)
{
    return (size_t)hwnas_tensor_count(tensor_of(graph, graph->inputs, input));
}

static size_t sample_count(const hwnas_graph *graph)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_inputs; i++)
        n += count(graph, i);
    return n;
}

static hwnas_status run(const computation *c, size_t sample)
{
    const hwnas_graph *graph = c->side->graph;
    const float **given = hwnas_alloc((graph->n_inputs + 1) * sizeof *given);
    const float *next = c->samples + sample * sample_count(graph);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        given[i] = next;
        next += count(graph, i);
    }
    const hwnas_status status = c->side->device->ops->run(c->exec, given, c->outputs);
    free(given);
    return status;
}

/* The first network's samples in the order of this one's inputs: `places` has that of each of the
 * first's. */
static hwnas_status reorder(computation *c, const hwnas_graph *first, const size_t *places,
                            size_t n_samples, const float *samples)
{
    size_t *offsets = hwnas_alloc((first->n_inputs + 1) * sizeof *offsets);
    const size_t n = sample_count(first);
    for (size_t i = 0; i < first->n_inputs; i++) /* a few: each is found anew */
        for (size_t k = 0; k < places[i]; k++)
            offsets[i] += count(c->side->graph, k);
    const hwnas_status status =
        hwnas_try_alloc((void **)&c->reordered, (n_samples * n + 1) * sizeof(float), "samples");
    for (size_t k = 0; k < n_samples && status == HWNAS_OK; k++)
        for (size_t i = 0; i < first->n_inputs; i++) {
            memcpy(c->reordered + k * n + offsets[i], samples, count(first, i) * sizeof *samples);
            samples += count(first, i);
        }
    c->samples = c->reordered;
    free(offsets);
    return status;
}

static void tell(hwnas_difference *out, const hwnas_graph *graph, int tensor, bool is_node,
                 const hwnas_error_sums *sums)
{
    const hwnas_tensor *t = &graph->tensors[tensor];
    const hwnas_node *node = t->producer >= 0 ? &graph->nodes[t->producer] : NULL;
    *out = (hwnas_difference){.name = is_node ? node->name : t->name,
                              .op = node ? node->op : NULL,
                              .shape = hwnas_tensor_shape(t),
                              .value = sums->value,
                              .difference = sums->difference,
                              .error = hwnas_error_of(sums)};
    if (is_node && !sums->n_finite) /* a mask of infinities */
        out->error = (hwnas_output_error){0, 0};
}

/* Of each pair; `out` has a place for each. */
static hwnas_status compare(hwnas_difference *out, computation sides[2], const pair *pairs,
                            size_t n, bool are_nodes, size_t n_samples,
                            const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *first = sides[0].side->graph;
    hwnas_error_sums *sums = hwnas_alloc((n + 1) * sizeof *sums);
    for (int s = 0; s < 2; s++)
        TRY_OUT(begin(&sides[s], n_samples, are_nodes));
    for (size_t k = 0; k < n_samples; k++) {
        for (int s = 0; s < 2; s++) {
            if (stop && *stop)
                TRY_OUT(hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted"));
            TRY_OUT(run(&sides[s], k));
        }
        for (size_t i = 0; i < n; i++) {
            const int tensor = sides[0].view.outputs[pairs[i].place[0]];
            hwnas_error_add(&sums[i], sides[1].outputs[pairs[i].place[1]],
                            sides[0].outputs[pairs[i].place[0]],
                            (size_t)hwnas_tensor_count(&first->tensors[tensor]));
        }
    }
    for (size_t i = 0; i < n; i++)
        tell(&out[i], first, sides[0].view.outputs[pairs[i].place[0]], are_nodes, &sums[i]);
out:
    for (int s = 0; s < 2; s++)
        end(&sides[s]);
    free(sums);
    return status;
}

/* ---- Both ---- */

static hwnas_status compare_outputs(hwnas_differences *out, computation sides[2],
                                    const size_t *places, size_t n_samples,
                                    const volatile sig_atomic_t *stop)
{
    const size_t n = sides[0].side->graph->n_outputs;
    pair *pairs = hwnas_alloc((n + 1) * sizeof *pairs);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (pair){{i, places[i]}};
    out->outputs = hwnas_alloc((n + 1) * sizeof *out->outputs);
    out->n_outputs = n;
    const hwnas_status status = compare(out->outputs, sides, pairs, n, false, n_samples, stop);
    free(pairs);
    return status;
}

static hwnas_status compare_nodes(hwnas_differences *out, computation sides[2], size_t n_samples,
                                  const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    const size_t n_first = sides[0].side->graph->n_nodes;
    int *lists[] = {hwnas_alloc((n_first + 1) * sizeof **lists),
                    hwnas_alloc((n_first + 1) * sizeof **lists)};
    const size_t n = match_nodes(sides, lists);
    pair *pairs = hwnas_alloc((n + 1) * sizeof *pairs);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (pair){{i, i}};
    for (int s = 0; s < 2; s++) {
        sides[s].view.n_outputs = n;
        sides[s].view.outputs = lists[s];
        out->n_others[s] = sides[s].side->graph->n_nodes - n;
    }
    out->nodes = hwnas_alloc((n + 1) * sizeof *out->nodes);
    if (n)
        status = compare(out->nodes, sides, pairs, n, true, n_samples, stop);
    out->n_nodes = n;
    free(pairs);
    for (int s = 0; s < 2; s++)
        free(lists[s]);
    return status;
}

hwnas_status hwnas_differences_find(hwnas_differences *out, const hwnas_side sides[2],
                                    size_t n_samples, const float *samples,
                                    const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *first = sides[0].graph, *second = sides[1].graph;
    size_t *inputs = hwnas_alloc((first->n_inputs + 1) * sizeof *inputs);
    size_t *outputs = hwnas_alloc((first->n_outputs + 1) * sizeof *outputs);
    computation both[2];
    *out = (hwnas_differences){0};
    for (int s = 0; s < 2; s++)
        both[s] = (computation){.side = &sides[s], .view = *sides[s].graph, .samples = samples};
    TRY_OUT(match(inputs, sides, "input", (const int *const[]){first->inputs, second->inputs},
                  (const size_t[]){first->n_inputs, second->n_inputs}));
    TRY_OUT(match(outputs, sides, "output", (const int *const[]){first->outputs, second->outputs},
                  (const size_t[]){first->n_outputs, second->n_outputs}));
    TRY_OUT(reorder(&both[1], first, inputs, n_samples, samples));
    TRY_OUT(compare_outputs(out, both, outputs, n_samples, stop));
    TRY_OUT(compare_nodes(out, both, n_samples, stop));
out:
    free(both[1].reordered);
    free(inputs);
    free(outputs);
    return status;
}

void hwnas_differences_done(hwnas_differences *d)
{
    free(d->outputs);
    free(d->nodes);
    *d = (hwnas_differences){0};
}
