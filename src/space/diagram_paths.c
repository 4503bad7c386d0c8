/* diagram_paths.c: ways through a diagram: random ones, and one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "space/diagram.h"

/* Uniform in [0, 1), 53 bits. */
static double fine_double(hwnas_rng *rng)
{
    const uint64_t high = hwnas_rng_u32(rng), low = hwnas_rng_u32(rng);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

/* A value by the weights of the nodes that they lead to; those without a way are never taken. */
static size_t draw_value(const hwnas_diagram *d, uint32_t node, size_t width, const double *weights,
                         hwnas_rng *rng)
{
    double sum = 0;
    size_t last = 0;
    for (size_t v = 0; v < width; v++) {
        const uint32_t child = hwnas_diagram_child(d, node, v);
        if (child == HWNAS_DEAD)
            continue;
        sum += weights[child];
        last = v;
    }
    double left = fine_double(rng) * sum;
    for (size_t v = 0; v < last; v++) {
        const uint32_t child = hwnas_diagram_child(d, node, v);
        if (child == HWNAS_DEAD)
            continue;
        left -= weights[child];
        if (left < 0)
            return v;
    }
    return last;
}

void hwnas_diagram_draw(uint16_t *genes, const hwnas_diagram *d, const double *weights,
                        hwnas_rng *rng)
{
    uint32_t node = 0;
    for (size_t level = 0; level < d->space->n_genes; level++) {
        const size_t width = hwnas_diagram_width(d, node, level);
        const size_t v = width == 1                 ? 0
                         : d->nodes[node].is_shared ? hwnas_rng_below(rng, (uint32_t)width)
                                                    : draw_value(d, node, width, weights, rng);
        genes[d->order[level]] = (uint16_t)v;
        node = hwnas_diagram_child(d, node, v);
    }
}

/* ---- Between two parents ---- */

/* The values that a node may have in a child, the second only where it differs. */
static size_t parents_values(uint16_t values[2], const hwnas_diagram *d, uint32_t node,
                             size_t level, const uint16_t *a, const uint16_t *b)
{
    const uint32_t g = d->order[level];
    values[0] = d->nodes[node].is_active ? a[g] : 0;
    values[1] = d->nodes[node].is_active ? b[g] : 0;
    return values[0] == values[1] ? 1 : 2;
}

void hwnas_diagram_cross(uint16_t *genes, const hwnas_diagram *d, const uint16_t *a,
                         const uint16_t *b, hwnas_rng *rng)
{
    const size_t n = d->space->n_genes;
    double *weights = hwnas_alloc((d->levels[n + 1] + 1) * sizeof *weights);
    uint16_t values[2];
    weights[d->levels[n]] = 1;
    for (size_t level = n; level-- > 0;) {
        double most = 0;
        for (uint32_t node = d->levels[level]; node < d->levels[level + 1]; node++) {
            const size_t k = parents_values(values, d, node, level, a, b);
            for (size_t i = 0; i < k; i++) {
                const uint32_t child = hwnas_diagram_child(d, node, values[i]);
                weights[node] += child == HWNAS_DEAD ? 0 : weights[child];
            }
            most = fmax(most, weights[node]);
        }
        for (uint32_t node = d->levels[level]; node < d->levels[level + 1] && most > 0; node++)
            weights[node] /= most;
    }
    uint32_t node = 0;
    for (size_t level = 0; level < n; level++) {
        double of[2] = {0};
        const size_t k = parents_values(values, d, node, level, a, b);
        for (size_t i = 0; i < k; i++) {
            const uint32_t child = hwnas_diagram_child(d, node, values[i]);
            of[i] = child == HWNAS_DEAD ? 0 : weights[child];
        }
        const size_t i = of[1] > 0 && fine_double(rng) * (of[0] + of[1]) >= of[0];
        genes[d->order[level]] = values[i];
        node = hwnas_diagram_child(d, node, values[i]);
    }
    free(weights);
}

/* ---- One after the other ---- */

/* The first value from `from` on that leads somewhere; SIZE_MAX: none does. */
static size_t first_value(const hwnas_diagram *d, uint32_t node, size_t level, size_t from)
{
    const size_t width = hwnas_diagram_width(d, node, level);
    for (size_t v = from; v < width; v++)
        if (hwnas_diagram_child(d, node, v) != HWNAS_DEAD)
            return v;
    return SIZE_MAX;
}

/* The first way from a node on. */
static void complete(uint16_t *genes, const hwnas_diagram *d, uint32_t node, size_t level)
{
    for (; level < d->space->n_genes; level++) {
        const size_t v = first_value(d, node, level, 0);
        genes[d->order[level]] = (uint16_t)v;
        node = hwnas_diagram_child(d, node, v);
    }
}

bool hwnas_diagram_first(uint16_t *genes, const hwnas_diagram *d)
{
    if (!hwnas_diagram_has_any(d))
        return false;
    complete(genes, d, 0, 0);
    return true;
}

bool hwnas_diagram_next(uint16_t *genes, const hwnas_diagram *d)
{
    const size_t n = d->space->n_genes;
    uint32_t *path = hwnas_alloc((n + 1) * sizeof *path);
    size_t end = 0; /* the levels whose nodes are known */
    bool found = false;
    for (; end < n && path[end] != HWNAS_DEAD; end++) {
        const uint16_t v = genes[d->order[end]];
        path[end + 1] = v < hwnas_diagram_width(d, path[end], end)
                            ? hwnas_diagram_child(d, path[end], v)
                            : HWNAS_DEAD;
    }
    for (size_t level = end; level-- > 0 && !found;) {
        const size_t v = first_value(d, path[level], level, genes[d->order[level]] + (size_t)1);
        if (v == SIZE_MAX)
            continue;
        genes[d->order[level]] = (uint16_t)v;
        complete(genes, d, hwnas_diagram_child(d, path[level], v), level + 1);
        found = true;
    }
    free(path);
    return found;
}
