/* dot.c: tensors are the edges, so each is known by what makes it: n12 a node, t3 an input. Layers
 * of one use of a template follow each other, so its frame is opened and closed once. */
#include "report/dot.h"

#include <string.h>

#include "graph/op.h"

static const char header[] = "  graph [fontname=\"Helvetica\", fontsize=10, fontcolor=\"#555555\", "
                             "labeljust=l, nodesep=0.15, ranksep=0.2]\n"
                             "  node [fontname=\"Helvetica\", fontsize=10, shape=box, "
                             "style=\"rounded,filled\", fillcolor=white, color=\"#888888\", "
                             "margin=\"0.1,0.04\", height=0.2]\n"
                             "  edge [arrowsize=0.5, color=\"#555555\"]\n";
static const char frame[] = "style=\"rounded,filled\"; fillcolor=\"#f6f6f2\"; color=\"#bbbbbb\"; ";
static const char round_box[] = "shape=ellipse, fillcolor=\"#dddddd\"";
static const char with_weights[] = "fillcolor=\"#cfe2f3\"";
static const char joining[] = "fillcolor=\"#fff2cc\"";

static void add_indent(hwnas_str *out, int depth)
{
    for (int i = 0; i < depth; i++)
        hwnas_str_add(out, "  ");
}

/* A part of a text between quotes. */
static void add_escaped(hwnas_str *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(out, "%s%c", strchr("\"\\", text[i]) ? "\\" : "", text[i]);
}

static void add_name(hwnas_str *out, const char *name)
{
    add_escaped(out, name, strlen(name));
}

/* What makes a tensor. */
static void add_source(hwnas_str *out, const hwnas_graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor].producer;
    hwnas_str_addf(out, producer < 0 ? "t%d" : "n%d", producer < 0 ? tensor : producer);
}

/* An ellipse with a tensor's name and shape. */
static void add_tensor(hwnas_str *out, const char *id, int i, const hwnas_tensor *tensor)
{
    hwnas_str_addf(out, "  %s%d [%s, label=\"", id, i, round_box);
    add_name(out, tensor->name);
    hwnas_str_addf(out, "\\n%s\"]\n", hwnas_tensor_shape(tensor).s);
}

static const hwnas_attr *find_attr(const hwnas_node *node, const char *name)
{
    for (int i = 0; node->op->attrs[i].name; i++)
        if (!strcmp(node->op->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

static void add_node(hwnas_str *out, const hwnas_graph *graph, size_t n, int depth)
{
    const hwnas_node *node = &graph->nodes[n];
    const hwnas_attr *kernel = find_attr(node, "kernel"), *stride = find_attr(node, "stride");
    const int64_t params = hwnas_node_params(graph, node);
    add_indent(out, depth + 1);
    hwnas_str_addf(out, "n%zu [tooltip=\"", n);
    add_name(out, node->name);
    hwnas_str_addf(out, "\", label=\"%s", node->op->name);
    if (kernel && kernel->n == 2)
        hwnas_str_addf(out, " %lldx%lld", (long long)kernel->ints[0], (long long)kernel->ints[1]);
    if (stride && stride->ints[0] > 1)
        hwnas_str_addf(out, " / %lld", (long long)stride->ints[0]);
    hwnas_str_addf(out, "\\n%s", hwnas_tensor_shape(hwnas_node_output(graph, node)).s);
    if (params)
        hwnas_str_addf(out, "\\n%lld params", (long long)params);
    hwnas_str_addf(out, "\"%s%s]\n", params || node->op->joins ? ", " : "",
                   params            ? with_weights
                   : node->op->joins ? joining
                                     : "");
}

/* Length of the part of two paths, up to a '/', in which they agree. */
static size_t common_path(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/')
            common = i + 1;
    return common;
}

static int count_parts(const char *path, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++)
        count += path[i] == '/';
    return count;
}

/* Closes the frames of `from` that `to` is not in and opens those of `to`; gives how many are open.
 */
static int change_frames(hwnas_str *out, const char *from, const char *to, size_t id)
{
    const size_t common = common_path(from, to);
    int depth = count_parts(from, strlen(from)), common_depth = count_parts(from, common);
    for (; depth > common_depth; depth--) {
        add_indent(out, depth);
        hwnas_str_add(out, "}\n");
    }
    for (const char *part = to + common, *end; (end = strchr(part, '/')); part = end + 1, depth++) {
        add_indent(out, depth + 1);
        hwnas_str_addf(out, "subgraph cluster_%zu_%d { %slabel=\"", id, depth, frame);
        add_escaped(out, part, (size_t)(end - part));
        hwnas_str_add(out, "\"\n");
    }
    return depth;
}

/* Weights are said by a node's parameters, and drawn only where nothing else would enter it. */
static void add_edges(hwnas_str *out, const hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        int n_edges = 0;
        for (int i = 0; i < node->n_data_inputs; i++) {
            if (hwnas_node_input(graph, node, i)->kind == HWNAS_TENSOR_WEIGHT)
                continue;
            hwnas_str_add(out, "  ");
            add_source(out, graph, node->inputs[i]);
            hwnas_str_addf(out, " -> n%zu\n", n);
            n_edges++;
        }
        if (n_edges == 0 && node->n_inputs > 0) {
            add_tensor(out, "w", (int)n, hwnas_node_input(graph, node, 0));
            hwnas_str_addf(out, "  w%zu -> n%zu\n", n, n);
        }
    }
}

void hwnas_graph_dot(hwnas_str *out, const hwnas_graph *graph)
{
    const char *path = "";
    hwnas_str_add(out, "digraph \"");
    add_name(out, graph->name);
    hwnas_str_addf(out, "\" {\n%s", header);
    for (size_t t = 0; t < graph->n_tensors; t++)
        if (graph->tensors[t].kind == HWNAS_TENSOR_INPUT)
            add_tensor(out, "t", (int)t, &graph->tensors[t]);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const int depth = change_frames(out, path, graph->nodes[n].name, n);
        add_node(out, graph, n, depth);
        path = graph->nodes[n].name;
    }
    change_frames(out, path, "", graph->n_nodes);
    for (size_t i = 0; i < graph->n_outputs; i++)
        add_tensor(out, "output", (int)i, &graph->tensors[graph->outputs[i]]);
    add_edges(out, graph);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        hwnas_str_add(out, "  ");
        add_source(out, graph, graph->outputs[i]);
        hwnas_str_addf(out, " -> output%zu\n", i);
    }
    hwnas_str_add(out, "}\n");
}
