/* observation.c: what one measurement tells of parts. A device cuts a network as it likes: steps
 * that share parts, and parts that share steps, are put together until each set of steps is a set
 * of parts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "latency/latency_table.h"

static const double MOST_APART = 0.25; /* logarithm; beyond, the machine changed in between */

hwnas_observation *hwnas_observation_alloc(size_t n_parts, size_t n_sets)
{
    hwnas_observation *o = hwnas_alloc(sizeof *o);
    o->n_parts = n_parts;
    o->n_sets = n_sets;
    o->parts = hwnas_alloc((n_parts + 1) * sizeof *o->parts);
    o->set_of = hwnas_alloc((n_parts + 1) * sizeof *o->set_of);
    o->set_seconds = hwnas_alloc((n_sets + 1) * sizeof *o->set_seconds);
    return o;
}

void hwnas_observation_free(hwnas_observation *o)
{
    if (!o)
        return;
    free(o->parts);
    free(o->set_of);
    free(o->set_seconds);
    free(o);
}

static int find_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* The part that a step's k-th node is in, or -1. */
static int part_of(const hwnas_parts *cut, const hwnas_step_time *step, size_t k)
{
    const int node = step->nodes[k];
    return node >= 0 && (size_t)node < cut->n_folded ? cut->of_folded[node] : -1;
}

static int first_part(const hwnas_parts *cut, const hwnas_step_time *step)
{
    int part = -1;
    for (size_t k = 0; k < step->n_nodes && part < 0; k++)
        part = part_of(cut, step, k);
    return part;
}

/* A device that does not tell its steps: all parts together. */
static void add_whole(hwnas_observation *o)
{
    o->n_sets = 1;
    o->set_seconds[0] = o->seconds;
    for (size_t i = 0; i < o->n_parts; i++)
        o->set_of[i] = 0;
}

/* Times are those of the steps by `scale`. */
static void add_sets(hwnas_observation *o, const hwnas_parts *cut, const hwnas_step_times *steps,
                     double scale)
{
    int *parent = hwnas_alloc((o->n_parts + 1) * sizeof *parent);
    int *set_of_root = hwnas_alloc((o->n_parts + 1) * sizeof *set_of_root);
    for (size_t i = 0; i < o->n_parts; i++) {
        parent[i] = (int)i;
        set_of_root[i] = -1;
    }
    for (size_t s = 0; s < steps->n; s++)
        for (size_t k = 0; k < steps->steps[s].n_nodes; k++) {
            const int a = first_part(cut, &steps->steps[s]), b = part_of(cut, &steps->steps[s], k);
            if (b >= 0)
                parent[find_root(parent, b)] = find_root(parent, a);
        }
    for (size_t s = 0; s < steps->n; s++) {
        const int part = first_part(cut, &steps->steps[s]);
        if (part < 0)
            continue; /* of nodes that no part has */
        int *set = &set_of_root[find_root(parent, part)];
        if (*set < 0)
            *set = (int)o->n_sets++;
        o->set_seconds[*set] += scale * steps->steps[s].time.p50;
    }
    for (size_t i = 0; i < o->n_parts; i++)
        o->set_of[i] = set_of_root[find_root(parent, (int)i)];
    free(set_of_root);
    free(parent);
}

/* The steps agree with the whole that took turns with them. That the machine was slow or fast
 * meanwhile is no harm. */
static bool is_sound(const hwnas_step_times *steps)
{
    return steps->whole.p50 > 0 && steps->sum.p50 > 0 &&
           fabs(log(steps->sum.p50 / steps->whole.p50)) < MOST_APART;
}

hwnas_observation *hwnas_observation_new(const hwnas_graph *graph,
                                         const hwnas_measurement *measurement,
                                         const hwnas_step_times *steps)
{
    const bool has_steps = steps && steps->n > 0;
    if (has_steps ? !is_sound(steps) : measurement->is_mixed)
        return NULL;
    hwnas_parts parts = {0};
    hwnas_graph_cut(&parts, graph);
    hwnas_observation *o = hwnas_observation_alloc(parts.n, parts.n + 1); /* room for its sets */
    o->is_steady = !measurement->is_unstable;
    o->seconds = has_steps && !o->is_steady ? steps->whole.p50 : measurement->p50;
    o->n_sets = 0;
    for (size_t i = 0; i < parts.n; i++) {
        o->parts[i] = parts.parts[i];
        o->set_of[i] = -1;
    }
    if (has_steps)
        add_sets(o, &parts, steps, o->seconds / steps->whole.p50);
    else
        add_whole(o);
    hwnas_parts_done(&parts);
    return o;
}
