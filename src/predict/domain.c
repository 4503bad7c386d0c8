#include "predict/domain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABELS = 8 }; /* of a list in words */

bool hwnas_domain_lists(const json_t *list, const char *label)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(json_string_value(json_array_get(list, i)), label))
            return true;
    return false;
}

/* By gene, the values that some network has. */
static bool **find_seen(const hwnas_space *space, hwnas_arch *const *archs, size_t n)
{
    bool **seen = hwnas_alloc((space->n_genes + 1) * sizeof *seen);
    for (size_t g = 0; g < space->n_genes; g++) {
        seen[g] = hwnas_alloc(space->genes[g].n_values * sizeof *seen[g]);
        for (size_t i = 0; i < n; i++)
            if (hwnas_arch_is_active(archs[i], g))
                seen[g][archs[i]->genes[g]] = true;
    }
    return seen;
}

static json_t *list_values(const hwnas_space *space, const hwnas_choice *choice, bool **seen)
{
    json_t *list = json_array();
    for (size_t p = 0; p < choice->n_positions; p++) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        for (size_t v = 0; v < gene->n_values; v++)
            if (seen[choice->first_gene + p][v] && !hwnas_domain_lists(list, gene->labels[v]))
                json_array_append_new(list, json_string(gene->labels[v]));
    }
    return list;
}

json_t *hwnas_domain_of(const hwnas_space *space, hwnas_arch *const *archs, size_t n)
{
    json_t *domain = json_object();
    bool **seen = find_seen(space, archs, n);
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        json_object_set_new(domain, choice->name, list_values(space, choice, seen));
    }
    for (size_t g = 0; g < space->n_genes; g++)
        free(seen[g]);
    free(seen);
    return domain;
}

hwnas_status hwnas_domain_check(const json_t *domain, const hwnas_space *space)
{
    const char *name;
    json_t *list, *label;
    size_t i;
    if (!json_is_object(domain))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'domain' is damaged");
    json_object_foreach((json_t *)domain, name, list)
    {
        size_t c = 0;
        while (c < space->n_choices && strcmp(space->choices[c].name, name))
            c++;
        if (c == space->n_choices || !json_is_array(list))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'domain' has no list of '%s'",
                              name);
        json_array_foreach(list, i, label) if (!json_is_string(label)) return hwnas_fail(
            HWNAS_E_INPUT, NULL, "value %zu of '%s' in the predictor's 'domain' is not a text",
            i + 1, name);
    }
    return HWNAS_OK;
}

bool hwnas_domain_has(const json_t *domain, const hwnas_space *space, size_t gene, size_t value)
{
    const hwnas_gene *g = &space->genes[gene];
    const json_t *list = json_object_get(domain, space->choices[g->choice].name);
    return !list || hwnas_domain_lists(list, g->labels[value]);
}

json_t *hwnas_domain_unseen(const json_t *domain, const hwnas_space *space,
                            const hwnas_choice *choice)
{
    json_t *unseen = json_array();
    for (size_t p = 0; p < choice->n_positions; p++) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        for (size_t v = 0; v < gene->n_values; v++)
            if (hwnas_gene_keeps(gene, v) &&
                !hwnas_domain_has(domain, space, choice->first_gene + p, v) &&
                !hwnas_domain_lists(unseen, gene->labels[v]))
                json_array_append_new(unseen, json_string(gene->labels[v]));
    }
    return unseen;
}

void hwnas_labels_text(hwnas_str *out, const json_t *labels)
{
    const size_t n = json_array_size(labels);
    for (size_t i = 0; i < n; i++) {
        if (n > MOST_LABELS && i == MOST_LABELS - 1) {
            hwnas_str_addf(out, ", ... %s (%zu)", json_string_value(json_array_get(labels, n - 1)),
                           n);
            return;
        }
        hwnas_str_addf(out, "%s%s", i ? ", " : "", json_string_value(json_array_get(labels, i)));
    }
    if (!n)
        hwnas_str_add(out, "-");
}

void hwnas_domain_table(hwnas_str *out, const json_t *domain, const hwnas_space *space)
{
    hwnas_str_add(out, "| choice | values in the table | others in the space |\n|---|---|---|\n");
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        json_t *unseen = hwnas_domain_unseen(domain, space, choice);
        hwnas_str_addf(out, "| `%s` | ", choice->name);
        hwnas_labels_text(out, json_object_get(domain, choice->name));
        hwnas_str_add(out, " | ");
        hwnas_labels_text(out, unseen);
        hwnas_str_add(out, " |\n");
        json_decref(unseen);
    }
}

/* ---- Many networks ---- */

struct hwnas_domain_map {
    size_t n;        /* genes */
    bool **is_known; /* by gene and value */
};

hwnas_domain_map *hwnas_domain_map_new(const json_t *domain, const hwnas_space *space)
{
    hwnas_domain_map *map = hwnas_alloc(sizeof *map);
    map->n = space->n_genes;
    map->is_known = hwnas_alloc((map->n + 1) * sizeof *map->is_known);
    for (size_t g = 0; g < map->n; g++) {
        map->is_known[g] = hwnas_alloc(space->genes[g].n_values * sizeof *map->is_known[g]);
        for (size_t v = 0; v < space->genes[g].n_values; v++)
            map->is_known[g][v] = hwnas_domain_has(domain, space, g, v);
    }
    return map;
}

void hwnas_domain_map_free(hwnas_domain_map *map)
{
    if (!map)
        return;
    for (size_t g = 0; g < map->n; g++)
        free(map->is_known[g]);
    free(map->is_known);
    free(map);
}

bool hwnas_domain_is_outside(const hwnas_domain_map *map, const hwnas_arch *arch, size_t gene)
{
    return !map->is_known[gene][arch->genes[gene]] && hwnas_arch_is_active(arch, gene);
}

bool hwnas_domain_is_beyond(const hwnas_domain_map *map, const hwnas_arch *arch)
{
    for (size_t g = 0; g < map->n; g++)
        if (hwnas_domain_is_outside(map, arch, g))
            return true;
    return false;
}

/* ---- Sizes ---- */

/* Facts have six digits behind the point. */
static const double size_digit = 1e-6;

static const char *const size_names[HWNAS_N_SIZES] = {"log macs", "log params"};

/* The one that it is, which stays; NULL: none. */
static const char *find_size(const char *name)
{
    for (int i = 0; i < HWNAS_N_SIZES; i++)
        if (!strcmp(size_names[i], name))
            return size_names[i];
    return NULL;
}

bool hwnas_fact_is_size(const char *name)
{
    return find_size(name);
}

hwnas_sizes hwnas_sizes_of(const hwnas_feature_encoding *e, const json_t *ranges)
{
    hwnas_sizes sizes = {0};
    const size_t first = e->first[HWNAS_COLUMN_FACT];
    for (size_t i = 0; i < json_array_size(ranges) && sizes.n < HWNAS_N_SIZES; i++) {
        const json_t *range = json_array_get(ranges, i);
        const char *name = find_size(e->columns[first + i].name);
        if (name)
            sizes.ranges[sizes.n++] =
                (hwnas_size_range){name, first + i, json_number_value(json_array_get(range, 0)),
                                   json_number_value(json_array_get(range, 1))};
    }
    return sizes;
}

double hwnas_size_excess(const hwnas_size_range *range, const double *row)
{
    const double size = row[range->column];
    const double excess = size > range->high ? size - range->high : fmin(size - range->low, 0);
    return fabs(excess) > size_digit ? excess : 0;
}

bool hwnas_sizes_are_beyond(const hwnas_sizes *sizes, const double *row)
{
    for (size_t i = 0; i < sizes->n; i++)
        if (hwnas_size_excess(&sizes->ranges[i], row) != 0)
            return true;
    return false;
}
