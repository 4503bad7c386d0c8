/* graph_facts.c: facts about a graph, by one walk over its nodes in order. */
#include "predict/graph_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/op.h"
#include "graph/rewrite.h"

/* Cells with more ways than this are told apart by their other facts. */
enum { MAX_KINDS = 64, MAX_PATHS = 128, N_SCALES = 8 };

/* What lies on the ways from the inputs to one tensor. */
typedef struct paths {
    double log_n; /* how many; meaningless when there is none */
    double depth;
    double *most, *least, *mean; /* one for each kind */
} paths;

typedef struct walk {
    const hwnas_graph *graph;
    hwnas_arena *arena; /* scratch */
    int *same;          /* see rewrite.h */
    bool *is_reached;   /* tensors: from an input */
    bool *is_live;      /* tensors: and an output is reached from it */
    size_t n_kinds;
    const char *kinds[MAX_KINDS];
    int *node_kinds; /* -1: says nothing about what is computed */
} walk;

static void add_fact(hwnas_facts *out, double value, const char *name)
{
    /* Six digits, so that the same number comes out of another machine's logarithm. */
    HWNAS_GROW(out->list, out->n, out->capacity);
    out->list[out->n++] = (hwnas_fact){name, rint(value * 1e6) / 1e6};
}

static double log_of(int64_t n)
{
    return n > 1 ? log((double)n) : 0;
}

/* -- kinds of operators -- */

static const hwnas_attr *find_attr(const hwnas_node *node, const char *name)
{
    for (int i = 0; node->op->attrs[i].name; i++)
        if (!strcmp(node->op->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

static const char *name_kind(const walk *w, const hwnas_node *node)
{
    if (node->op->is_common)
        return NULL;
    const hwnas_attr *kernel = find_attr(node, "kernel"), *groups = find_attr(node, "groups");
    const hwnas_attr *dilation = find_attr(node, "dilation");
    const char *grouping = "";
    if (groups && groups->ints[0] > 1)
        grouping = groups->ints[0] == hwnas_node_input(w->graph, node, 0)->dims[1] ? "depthwise_"
                                                                                   : "grouped_";
    if (!kernel || !kernel->n)
        return hwnas_arena_printf(w->arena, "%s%s", grouping, node->op->name);
    char apart[32] = "";
    if (dilation && dilation->n && dilation->ints[0] > 1)
        snprintf(apart, sizeof apart, "_d%lld", (long long)dilation->ints[0]);
    return hwnas_arena_printf(w->arena, "%s%s%lldx%lld%s", grouping, node->op->name,
                              (long long)kernel->ints[0], (long long)kernel->ints[kernel->n - 1],
                              apart);
}

static int find_kind(walk *w, const hwnas_node *node)
{
    const char *name = name_kind(w, node);
    if (!name)
        return -1;
    for (size_t k = 0; k < w->n_kinds; k++)
        if (!strcmp(w->kinds[k], name))
            return (int)k;
    if (w->n_kinds == MAX_KINDS)
        return -1;
    w->kinds[w->n_kinds] = name;
    return (int)w->n_kinds++;
}

/* -- what is alive -- */

static int resolve(const walk *w, int tensor)
{
    while (w->same[tensor] != tensor)
        tensor = w->same[tensor];
    return tensor;
}

static void find_live(walk *w)
{
    const hwnas_graph *graph = w->graph;
    for (size_t i = 0; i < graph->n_inputs; i++)
        w->is_reached[graph->inputs[i]] = true;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        bool is_zero = node->op->id == HWNAS_OP_ZERO;
        for (int i = 0; i < node->n_data_inputs; i++)
            w->is_reached[node->output] |= !is_zero && w->is_reached[resolve(w, node->inputs[i])];
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        w->is_live[resolve(w, graph->outputs[i])] = true;
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        bool is_zero = node->op->id == HWNAS_OP_ZERO;
        if (is_zero || !w->is_live[node->output] || w->same[node->output] != node->output)
            continue;
        for (int i = 0; i < node->n_data_inputs; i++)
            w->is_live[resolve(w, node->inputs[i])] = true;
    }
    for (size_t t = 0; t < graph->n_tensors; t++)
        w->is_live[t] &= w->is_reached[t];
}

static bool is_live_node(const walk *w, const hwnas_node *node)
{
    return w->is_live[node->output] && w->same[node->output] == node->output;
}

/* -- sizes -- */

/* How many times the input is as high as the tensor, as a power of two; -1 for what has no height
 * or has lost it, as in squeeze and excitation. */
static int scale_of(const hwnas_graph *graph, const hwnas_tensor *tensor)
{
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    if (input->rank != 4 || tensor->rank != 4 || tensor->dims[2] == 1)
        return -1;
    int scale = (int)lrint(log2((double)input->dims[2] / (double)tensor->dims[2]));
    return scale < 0 || scale >= N_SCALES ? -1 : scale;
}

static void add_sizes(hwnas_facts *out, const walk *w)
{
    const hwnas_graph *graph = w->graph;
    int64_t params = 0, macs = 0, activations = 0;
    struct {
        int64_t macs, layers, width;
    } scales[N_SCALES] = {{0}};
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        if (!is_live_node(w, node))
            continue;
        const hwnas_tensor *output = hwnas_node_output(graph, node);
        int64_t own = hwnas_node_macs(graph, node);
        params += hwnas_node_params(graph, node);
        if (!own)
            continue;
        macs += own;
        activations += hwnas_tensor_count(output);
        int scale = scale_of(graph, output);
        if (scale < 0)
            continue;
        scales[scale].macs += own;
        scales[scale].layers++;
        if (output->dims[1] > scales[scale].width)
            scales[scale].width = output->dims[1];
    }
    add_fact(out, log_of(macs), "log macs");
    add_fact(out, log_of(params), "log params");
    add_fact(out, log_of(activations), "log activations");
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    if (input->rank == 4)
        add_fact(out, log_of(input->dims[2]), "log resolution");
    for (int s = 0; s < N_SCALES; s++) {
        if (!scales[s].layers)
            continue;
        add_fact(out, log_of(scales[s].macs),
                 hwnas_arena_printf(out->arena, "log macs 1/%d", 1 << s));
        add_fact(out, (double)scales[s].layers,
                 hwnas_arena_printf(out->arena, "layers 1/%d", 1 << s));
        add_fact(out, log_of(scales[s].width),
                 hwnas_arena_printf(out->arena, "log width 1/%d", 1 << s));
    }
}

/* -- ways from the inputs to the outputs -- */

/* Joins the ways to one more tensor to those in `to`. */
static void join_paths(paths *to, bool is_first, const paths *from, size_t n_kinds)
{
    if (is_first) {
        to->log_n = from->log_n;
        to->depth = from->depth;
        memcpy(to->most, from->most, n_kinds * sizeof *to->most);
        memcpy(to->least, from->least, n_kinds * sizeof *to->least);
        memcpy(to->mean, from->mean, n_kinds * sizeof *to->mean);
        return;
    }
    double high = fmax(to->log_n, from->log_n);
    double log_n = high + log(exp(to->log_n - high) + exp(from->log_n - high));
    double share = exp(from->log_n - log_n); /* of the ways, those that come from there */
    for (size_t k = 0; k < n_kinds; k++) {
        to->most[k] = fmax(to->most[k], from->most[k]);
        to->least[k] = fmin(to->least[k], from->least[k]);
        to->mean[k] += share * (from->mean[k] - to->mean[k]);
    }
    to->log_n = log_n;
    to->depth = fmax(to->depth, from->depth);
}

static paths *make_paths(const walk *w)
{
    size_t n_kinds = w->n_kinds;
    paths *made = hwnas_arena_alloc(w->arena, sizeof *made);
    made->most = hwnas_arena_alloc(w->arena, 3 * (n_kinds + 1) * sizeof *made->most);
    made->least = made->most + n_kinds;
    made->mean = made->least + n_kinds;
    return made;
}

static void merge_paths(hwnas_facts *out, const walk *w)
{
    const hwnas_graph *graph = w->graph;
    paths **all = hwnas_arena_alloc(w->arena, graph->n_tensors * sizeof *all);
    double *counts = hwnas_arena_alloc(w->arena, (w->n_kinds + 1) * sizeof *counts);
    for (size_t i = 0; i < graph->n_inputs; i++)
        all[graph->inputs[i]] = make_paths(w);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        if (!is_live_node(w, node))
            continue;
        paths *here = all[node->output] = make_paths(w);
        bool is_first = true;
        for (int i = 0; i < node->n_data_inputs; i++) {
            int from = resolve(w, node->inputs[i]);
            if (!w->is_live[from])
                continue;
            join_paths(here, is_first, all[from], w->n_kinds);
            is_first = false;
        }
        here->depth += hwnas_node_macs(graph, node) > 0;
        int kind = w->node_kinds[n];
        if (kind < 0)
            continue;
        counts[kind]++;
        here->most[kind]++;
        here->least[kind]++;
        here->mean[kind]++;
    }
    paths *whole = make_paths(w);
    bool is_first = true;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        int output = resolve(w, graph->outputs[i]);
        if (!w->is_live[output])
            continue; /* nothing but zeros: no way, and every fact about ways is 0 */
        join_paths(whole, is_first, all[output], w->n_kinds);
        is_first = false;
    }
    add_fact(out, whole->depth, "depth");
    add_fact(out, is_first ? -1 : whole->log_n, "log paths");
    for (size_t k = 0; k < w->n_kinds; k++) {
        const char *kind = w->kinds[k];
        add_fact(out, counts[k], hwnas_arena_printf(out->arena, "count %s", kind));
        add_fact(out, whole->most[k], hwnas_arena_printf(out->arena, "most %s", kind));
        add_fact(out, whole->least[k], hwnas_arena_printf(out->arena, "least %s", kind));
        add_fact(out, whole->mean[k], hwnas_arena_printf(out->arena, "mean %s", kind));
    }
}

/* -- cells -- */

/* One call of a template by the network: nodes first to last - 1, named "NAME_2/...". */
typedef struct call_range {
    const char *name; /* without the number */
    size_t first, last;
    const char **paths; /* "conv3x3>avg_pool3x3", sorted */
    size_t n_paths;     /* more than MAX_PATHS: too many to list */
} cell;

typedef struct path_list {
    size_t n;
    const char **paths;
} path_list;

static size_t call_length(const char *name) /* 0: not in a template */
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

static const char *template_of(const walk *w, const char *name, size_t length)
{
    size_t end = length;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    bool has_number = end > 1 && end < length && name[end - 1] == '_';
    return hwnas_arena_string(w->arena, name, has_number ? end - 1 : length);
}

static size_t list_cells(cell **out, const walk *w)
{
    const hwnas_graph *graph = w->graph;
    size_t n = 0;
    *out = hwnas_arena_alloc(w->arena, (graph->n_nodes + 1) * sizeof **out);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const char *name = graph->nodes[i].name;
        size_t length = call_length(name);
        if (!length)
            continue;
        cell *last = n ? &(*out)[n - 1] : NULL;
        if (last && last->last == i) {
            const char *before = graph->nodes[i - 1].name;
            if (call_length(before) == length && !strncmp(before, name, length)) {
                last->last++;
                continue;
            }
        }
        (*out)[n++] = (cell){template_of(w, name, length), i, i + 1, NULL, 0};
    }
    return n;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every way from outside the cell to a tensor that is read outside. */
static void list_paths(cell *c, const walk *w, path_list *lists, const bool *is_read_outside)
{
    const hwnas_graph *graph = w->graph;
    size_t n = 0;
    c->paths = hwnas_arena_alloc(w->arena, MAX_PATHS * sizeof *c->paths);
    for (size_t i = c->first; i < c->last; i++) {
        const hwnas_node *node = &graph->nodes[i];
        if (!is_live_node(w, node))
            continue;
        path_list *here = &lists[node->output];
        *here = (path_list){.paths = hwnas_arena_alloc(w->arena, MAX_PATHS * sizeof *here->paths)};
        const char *kind = w->node_kinds[i] < 0 ? "" : w->kinds[w->node_kinds[i]];
        for (int k = 0; k < node->n_data_inputs; k++) {
            int tensor = resolve(w, node->inputs[k]);
            if (!w->is_live[tensor])
                continue;
            int producer = graph->tensors[tensor].producer;
            bool is_inside = producer >= (int)c->first && producer < (int)c->last;
            size_t n_from = is_inside ? lists[tensor].n : 1;
            for (size_t p = 0; p < n_from; p++) {
                if (here->n == MAX_PATHS) {
                    c->n_paths = MAX_PATHS + 1;
                    return;
                }
                const char *before = is_inside ? lists[tensor].paths[p] : "";
                here->paths[here->n++] = !*kind ? before
                                         : *before
                                             ? hwnas_arena_printf(w->arena, "%s>%s", before, kind)
                                             : kind;
            }
        }
        for (size_t p = 0; is_read_outside[node->output] && p < here->n; p++) {
            if (n == MAX_PATHS) {
                c->n_paths = MAX_PATHS + 1;
                return;
            }
            c->paths[n++] = here->paths[p];
        }
    }
    /* Nothing of it is alive, and yet the input gets through: it passes the cell by. */
    if (!n && w->is_live[resolve(w, graph->outputs[0])])
        c->paths[n++] = "";
    qsort(c->paths, n, sizeof *c->paths, compare_texts);
    c->n_paths = n;
}

static bool *find_read_outside(const walk *w, const cell *cells, size_t n_cells)
{
    const hwnas_graph *graph = w->graph;
    bool *out = hwnas_arena_alloc(w->arena, graph->n_tensors * sizeof *out);
    size_t *owner = hwnas_arena_alloc(w->arena, graph->n_nodes * sizeof *owner); /* 0: none */
    for (size_t c = 0; c < n_cells; c++)
        for (size_t i = cells[c].first; i < cells[c].last; i++)
            owner[i] = c + 1;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!is_live_node(w, &graph->nodes[i]))
            continue;
        for (int k = 0; k < graph->nodes[i].n_data_inputs; k++) {
            int tensor = resolve(w, graph->nodes[i].inputs[k]);
            int producer = graph->tensors[tensor].producer;
            out[tensor] |= producer >= 0 && owner[producer] != owner[i];
        }
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        out[resolve(w, graph->outputs[i])] = true;
    return out;
}

static bool same_paths(const cell *a, const cell *b)
{
    if (a->n_paths != b->n_paths || a->n_paths > MAX_PATHS)
        return false;
    for (size_t p = 0; p < a->n_paths; p++)
        if (strcmp(a->paths[p], b->paths[p]))
            return false;
    return true;
}

static bool is_named(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names;
}

static void add_paths(hwnas_facts *out, const walk *w, const char *const *known)
{
    cell *cells;
    size_t n_cells = list_cells(&cells, w);
    if (known && !*known)
        return;
    path_list *lists = hwnas_arena_alloc(w->arena, w->graph->n_tensors * sizeof *lists);
    const bool *is_read_outside = find_read_outside(w, cells, n_cells);
    for (size_t c = 0; c < n_cells; c++) {
        size_t n_calls = 0;
        bool is_new = true, is_cell = !known || is_named(cells[c].name, known);
        for (size_t before = 0; before < c; before++)
            is_new &= strcmp(cells[before].name, cells[c].name) != 0;
        if (!is_new || !is_cell)
            continue;
        list_paths(&cells[c], w, lists, is_read_outside);
        is_cell = cells[c].n_paths <= MAX_PATHS;
        for (size_t after = c; !known && is_cell && after < n_cells; after++) {
            if (strcmp(cells[after].name, cells[c].name))
                continue;
            n_calls++;
            if (after > c)
                list_paths(&cells[after], w, lists, is_read_outside);
            is_cell = same_paths(&cells[c], &cells[after]);
        }
        if (!is_cell || (!known && n_calls < 2))
            continue;
        size_t n;
        for (size_t p = 0; p < cells[c].n_paths; p += n) {
            for (n = 1; p + n < cells[c].n_paths; n++)
                if (strcmp(cells[c].paths[p], cells[c].paths[p + n]))
                    break;
            add_fact(out, (double)n,
                     hwnas_arena_printf(out->arena, "path %s %s", cells[c].name,
                                        *cells[c].paths[p] ? cells[c].paths[p] : "skip"));
        }
    }
}

void hwnas_facts_of(hwnas_facts *out, const hwnas_graph *graph, const char *const *cells)
{
    walk w = {.graph = graph, .arena = hwnas_arena_new(), .same = hwnas_graph_same(graph)};
    *out = (hwnas_facts){.arena = hwnas_arena_new()};
    w.is_reached = hwnas_arena_alloc(w.arena, graph->n_tensors * sizeof *w.is_reached);
    w.is_live = hwnas_arena_alloc(w.arena, graph->n_tensors * sizeof *w.is_live);
    w.node_kinds = hwnas_arena_alloc(w.arena, graph->n_nodes * sizeof *w.node_kinds);
    find_live(&w);
    for (size_t n = 0; n < graph->n_nodes; n++)
        w.node_kinds[n] = is_live_node(&w, &graph->nodes[n]) ? find_kind(&w, &graph->nodes[n]) : -1;
    add_sizes(out, &w);
    merge_paths(out, &w);
    add_paths(out, &w, cells);
    /* The names of kinds live in the scratch arena, but facts' names are copies. */
    free(w.same);
    hwnas_arena_free(w.arena);
}

void hwnas_facts_done(hwnas_facts *facts)
{
    free(facts->list);
    if (facts->arena)
        hwnas_arena_free(facts->arena);
    *facts = (hwnas_facts){0};
}

const char *hwnas_fact_cell(const char *name, hwnas_arena *arena)
{
    if (!hwnas_starts_with(name, "path "))
        return NULL;
    name += strlen("path ");
    return hwnas_arena_string(arena, name, strcspn(name, " "));
}
