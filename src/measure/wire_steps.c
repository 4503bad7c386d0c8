/* wire_steps.c: the times of steps as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/wire.h"

static json_t *encode_timing(hwnas_timing time)
{
    return json_pack("[f, f, f]", time.p50, time.low, time.high);
}

static bool decode_timing(hwnas_timing *out, const json_t *json)
{
    return !json_unpack((json_t *)json, "[F, F, F!]", &out->p50, &out->low, &out->high);
}

json_t *hwnas_wire_steps(const hwnas_step_times *times, const hwnas_graph *folded)
{
    json_t *list = json_array();
    for (size_t i = 0; i < times->n; i++) {
        const hwnas_step_time *step = &times->steps[i];
        json_t *nodes = json_array();
        for (size_t k = 0; k < step->n_nodes; k++)
            json_array_append_new(nodes, json_string(folded->nodes[step->nodes[k]].name));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "nodes", nodes, "how", step->how,
                                              "time", encode_timing(step->time)));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:f, s:o}", "n_samples", (json_int_t)times->n_samples,
                     "whole", encode_timing(times->whole), "sum", encode_timing(times->sum),
                     "ratio", encode_timing(times->ratio), "mark", times->mark, "list", list);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const hwnas_node *const *)a)->name, (*(const hwnas_node *const *)b)->name);
}

/* The graph's nodes in the order of their names; yours to free(). */
static const hwnas_node **sort_nodes(const hwnas_graph *graph)
{
    const hwnas_node **sorted = hwnas_alloc(graph->n_nodes * sizeof *sorted);
    for (size_t i = 0; i < graph->n_nodes; i++)
        sorted[i] = &graph->nodes[i];
    qsort(sorted, graph->n_nodes, sizeof *sorted, by_name);
    return sorted;
}

static bool decode_nodes(hwnas_step_time *step, hwnas_arena *arena, const json_t *names,
                         const hwnas_graph *graph, const hwnas_node **sorted)
{
    step->n_nodes = json_array_size(names);
    step->nodes = hwnas_arena_alloc(arena, step->n_nodes * sizeof *step->nodes);
    for (size_t i = 0; i < step->n_nodes; i++) {
        const hwnas_node key = {.name = json_string_value(json_array_get(names, i))}, *at = &key;
        const hwnas_node *const *found =
            key.name ? bsearch(&at, sorted, graph->n_nodes, sizeof *sorted, by_name) : NULL;
        if (!found)
            return false;
        step->nodes[i] = (int)(*found - graph->nodes);
    }
    return true;
}

/* Seconds; what sends none takes nothing off. */
static bool decode_mark(double *out, const json_t *json)
{
    *out = json_number_value(json);
    return !json || (json_is_number(json) && *out >= 0 && *out < HUGE_VAL);
}

static bool decode_step(hwnas_step_time *step, hwnas_arena *arena, const json_t *json,
                        const hwnas_graph *graph, const hwnas_node **sorted)
{
    const char *how = json_string_value(json_object_get(json, "how"));
    if (!how || !decode_timing(&step->time, json_object_get(json, "time")))
        return false;
    step->how = hwnas_arena_printf(arena, "%s", how);
    return decode_nodes(step, arena, json_object_get(json, "nodes"), graph, sorted);
}

bool hwnas_wire_read_steps(hwnas_step_times *out, const json_t *object, const hwnas_graph *folded)
{
    const json_t *list = json_object_get(object, "list");
    const json_t *n_samples = json_object_get(object, "n_samples");
    hwnas_step_times times = {.arena = hwnas_arena_new(), .n = json_array_size(list)};
    bool is_good = json_is_array(list) && json_is_integer(n_samples) &&
                   json_integer_value(n_samples) >= 0 &&
                   decode_timing(&times.whole, json_object_get(object, "whole")) &&
                   decode_timing(&times.sum, json_object_get(object, "sum")) &&
                   decode_timing(&times.ratio, json_object_get(object, "ratio")) &&
                   decode_mark(&times.mark, json_object_get(object, "mark"));
    const hwnas_node **sorted = sort_nodes(folded);
    times.n_samples = (size_t)json_integer_value(n_samples);
    times.steps = hwnas_arena_alloc(times.arena, times.n * sizeof *times.steps);
    for (size_t i = 0; i < times.n && is_good; i++)
        is_good =
            decode_step(&times.steps[i], times.arena, json_array_get(list, i), folded, sorted);
    free(sorted);
    if (is_good)
        *out = times;
    else
        hwnas_step_times_done(&times);
    return is_good;
}
