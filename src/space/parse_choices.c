/* parse_choices.c: what there is to choose. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/parse.h"

/* The values of one position: a non-empty list of different constants. */
static hwnas_status parse_domain(hwnas_gene *gene, const hwnas_scope *empty, const hwnas_yaml *node,
                                 const char *choice)
{
    hwnas_arena *arena = empty->space->arena;
    if (node->n == 0 || node->n > HWNAS_MAX_VALUES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs 1 to %d values, not %zu", choice,
                          HWNAS_MAX_VALUES, node->n);
    hwnas_value *values = hwnas_arena_alloc(arena, node->n * sizeof *values);
    const char **labels = hwnas_arena_alloc(arena, node->n * sizeof *labels);
    for (size_t i = 0; i < node->n; i++) {
        TRY(hwnas_parse_constant(&values[i], empty, node->items[i], "a value of a choice"));
        labels[i] = node->items[i]->text;
        if (strpbrk(labels[i], ":,= \n\t"))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                         "a value may not hold a blank, ':', ',' or '=': '%.60s'",
                                         labels[i]),
                              "these characters join the values of an architecture's code");
        for (size_t j = 0; j < i; j++)
            if (hwnas_value_equal(&values[i], &values[j]))
                return hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                  "'%s' has this value twice: '%.60s' and '%.60s'", choice,
                                  labels[j], labels[i]);
    }
    gene->n_values = node->n;
    gene->values = values;
    gene->labels = labels;
    return HWNAS_OK;
}

/* The condition of a choice sees the choices above it and `i`, the position. */
static hwnas_status parse_when(hwnas_choice *choice, hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope scope = {.space = space};
    hwnas_scope_bind(&scope, "i");
    hwnas_status status = hwnas_parse_expr(&choice->when, &scope, node, "when");
    hwnas_scope_done(&scope);
    space->has_rules = true;
    return status;
}

static hwnas_status parse_choice(hwnas_space *space, size_t index, const hwnas_scope *empty,
                                 const hwnas_yaml *key, const hwnas_yaml *node)
{
    static const char *const keys[] = {"values", "each_of", "when", NULL};
    hwnas_choice *choice = &space->choices[index];
    *choice = (hwnas_choice){
        .name = key->text, .place = key->place, .first_gene = space->n_genes, .n_positions = 1};
    TRY(hwnas_check_name(choice->name, "a choice", &choice->place));
    if (node->kind != HWNAS_YAML_MAPPING)
        return hwnas_hint(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "a choice"),
                          "write %s: {values: [1, 2, 3]}", choice->name);
    TRY(hwnas_yaml_check_keys(node, "a choice", keys));
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    const hwnas_yaml *each_of = hwnas_yaml_get(node, "each_of");
    if (!values)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' has no values", choice->name),
            "write %s: {values: [1, 2, 3]}", choice->name);
    TRY(hwnas_yaml_expect(values, HWNAS_YAML_SEQUENCE, "values"));
    bool nested = values->n > 0 && values->items[0]->kind == HWNAS_YAML_SEQUENCE;
    choice->is_vector = nested || each_of;
    if (nested && each_of)
        return hwnas_fail(HWNAS_E_INPUT, &each_of->place,
                          "'%s' has a list of values for each position already", choice->name);
    int64_t n = nested ? (int64_t)values->n : 1;
    if (each_of)
        TRY(hwnas_yaml_int(&n, each_of, "each_of", 1, HWNAS_MAX_GENES));
    if (space->n_genes + (size_t)n > HWNAS_MAX_GENES) /* before any is stored */
        return hwnas_fail(HWNAS_E_INPUT, &node->place,
                          "a space has at most %d positions to choose for", HWNAS_MAX_GENES);
    choice->n_positions = (size_t)n;
    choice->short_labels = true;
    choice->separator = '.';
    for (size_t p = 0; p < choice->n_positions; p++) {
        hwnas_gene *gene = &space->genes[space->n_genes + p];
        const hwnas_yaml *domain = nested ? values->items[p] : values;
        TRY(hwnas_yaml_expect(domain, HWNAS_YAML_SEQUENCE, "the values of a position"));
        if (p > 0 && !nested)
            *gene = gene[-1];
        else
            TRY(parse_domain(gene, empty, domain, choice->name));
        gene->choice = index;
        gene->position = p;
        for (size_t v = 0; v < gene->n_values; v++) {
            choice->short_labels &= strlen(gene->labels[v]) == 1;
            if (strchr(gene->labels[v], '.'))
                choice->separator = ':';
        }
    }
    space->n_genes += choice->n_positions;
    const hwnas_yaml *when = hwnas_yaml_get(node, "when");
    return when ? parse_when(choice, space, when) : HWNAS_OK;
}

/* The words among the values, sorted; none may be the name of a choice too. */
static hwnas_status collect_symbols(hwnas_space *space)
{
    size_t room = 1;
    for (size_t g = 0; g < space->n_genes; g++)
        room += g == 0 || space->genes[g].values != space->genes[g - 1].values
                    ? space->genes[g].n_values
                    : 0;
    space->symbols = hwnas_arena_alloc(space->arena, room * sizeof *space->symbols);
    for (size_t g = 0; g < space->n_genes; g++)
        for (size_t v = 0; v < space->genes[g].n_values; v++)
            if ((g == 0 || space->genes[g].values != space->genes[g - 1].values) &&
                space->genes[g].values[v].kind == HWNAS_VALUE_SYMBOL)
                space->symbols[space->n_symbols++] = space->genes[g].values[v].s;
    if (space->n_symbols)
        qsort(space->symbols, space->n_symbols, sizeof *space->symbols, hwnas_compare_texts);
    for (size_t c = 0; c < space->n_choices; c++)
        if (hwnas_space_is_symbol(space, space->choices[c].name))
            return hwnas_fail(HWNAS_E_INPUT, &space->choices[c].place,
                              "'%s' is the name of a choice and a value of one",
                              space->choices[c].name);
    return HWNAS_OK;
}

hwnas_status hwnas_parse_choices(hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "choices"));
    if (node->n > HWNAS_MAX_GENES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d choices",
                          HWNAS_MAX_GENES);
    space->choices = hwnas_arena_alloc(space->arena, node->n * sizeof *space->choices);
    space->genes = hwnas_arena_alloc(space->arena, HWNAS_MAX_GENES * sizeof *space->genes);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_choice(space, i, &empty, node->keys[i], node->items[i]));
        space->n_choices++; /* those below see it */
    }
    return collect_symbols(space);
}

