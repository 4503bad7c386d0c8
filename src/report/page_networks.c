/* page_networks.c: what the networks of a page consist of. */
#include <stdlib.h>
#include <string.h>

#include "derive/derive.h"
#include "graph/op.h"
#include "report/page.h"
#include "study/held.h"
#include "study/settings.h"

/* Networks of thousands of layers would make the file larger than all trials. */
enum { MOST_LAYERS = 5000 };

static json_t *choices_json(const hwnas_space *space)
{
    json_t *list = json_array();
    for (size_t i = 0; i < space->n_choices; i++) {
        const hwnas_choice *c = &space->choices[i];
        const char separator[2] = {c->short_labels ? '\0' : c->separator, '\0'};
        json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "name", c->name, "positions",
                                              (int)c->n_positions, "separator", separator));
    }
    return list;
}

/* Name, operator, shape of the output, params, MACs of each. */
static json_t *layers_json(const hwnas_graph *graph)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        json_array_append_new(layers,
                              json_pack("[s, s, s, I, I]", node->name, node->op->name,
                                        hwnas_tensor_shape(hwnas_node_output(graph, node)).s,
                                        (json_int_t)hwnas_node_params(graph, node),
                                        (json_int_t)hwnas_node_macs(graph, node)));
    }
    return layers;
}

/* The network of a trial, and how it was run; NULL: the space cannot build it any more. */
static hwnas_graph *build(const hwnas_summary *s, const hwnas_space *space, const hwnas_trial *t)
{
    char *code = hwnas_strdup(t->code);
    const hwnas_settings settings = hwnas_settings_cut(code, &s->job);
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_arch_parse(&arch, space, code);
    if (status == HWNAS_OK)
        status = hwnas_graph_build(&graph, arch, settings.batch);
    if (status != HWNAS_OK)
        hwnas_error_clear();
    hwnas_arch_free(arch);
    free(code);
    return graph;
}

static json_t *networks_json(const hwnas_summary *s, const hwnas_space *space)
{
    json_t *networks = json_object();
    size_t n_layers = 0;
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n && n_layers < MOST_LAYERS; i++) {
            const hwnas_trial *t = &s->trials[s->fronts[f].trials[i]];
            char *key = hwnas_printf("%llu", (unsigned long long)t->number);
            hwnas_graph *graph = json_object_get(networks, key) ? NULL : build(s, space, t);
            if (graph) {
                n_layers += graph->n_nodes;
                json_object_set_new(networks, key, layers_json(graph));
            }
            hwnas_graph_free(graph);
            free(key);
        }
    return networks;
}

/* The trial of the model that a space was derived from, which is its first network; -1. */
static long find_original(const hwnas_summary *s, const hwnas_space *space)
{
    long found = -1;
    hwnas_arch *first = space->model_path ? hwnas_arch_new(space) : NULL;
    char *original = first ? hwnas_arch_code(first) : NULL;
    for (size_t i = 0; original && found < 0 && i < s->n_trials; i++) {
        char *code = hwnas_strdup(s->trials[i].code);
        hwnas_settings_cut(code, &s->job);
        if (!strcmp(code, original))
            found = (long)i;
        free(code);
    }
    hwnas_arch_free(first);
    free(original);
    return found;
}

static hwnas_status add_networks(json_t *to, const hwnas_summary *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_space *space;
    const hwnas_space *walked;
    const char *name = json_string_value(json_object_get(s->identity, "space"));
    TRY(hwnas_load_space(&space, name));
    TRY_OUT(hwnas_settings_space(&walked, space, &s->job));
    json_object_set_new(to, "choices", choices_json(walked));
    json_object_set_new(to, "networks", networks_json(s, space));
    const long original = find_original(s, space);
    json_object_set_new(to, "original",
                        original < 0 ? json_null() : json_integer((json_int_t)original));
out:
    hwnas_space_free(space);
    return status;
}

char *hwnas_page_failure(void)
{
    const hwnas_error *e = hwnas_last_error();
    return hwnas_printf("%s%s%s", e->file, *e->file ? ": " : "", e->message);
}

void hwnas_page_add_networks(json_t *to, const hwnas_summary *s)
{
    if (add_networks(to, s) == HWNAS_OK)
        return;
    char *failure = hwnas_page_failure();
    json_object_set_new(to, "space_error", json_string(failure));
    free(failure);
    hwnas_error_clear();
}
