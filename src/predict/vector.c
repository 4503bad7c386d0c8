#include "predict/vector.h"

#include <stdlib.h>
#include <string.h>

static void add(hwnas_vector *vector, const hwnas_space *space, size_t gene, hwnas_coding coding,
                size_t value)
{
    vector->columns[vector->n++] =
        hwnas_column_make(vector->arena, space, gene, 1, coding, (uint16_t)value, 0);
}

static void add_one_hot(hwnas_vector *vector, const hwnas_space *space, size_t gene)
{
    for (size_t v = 0; v < space->genes[gene].n_values; v++)
        add(vector, space, gene, HWNAS_CODING_IS, v);
}

static void add_value(hwnas_vector *vector, const hwnas_space *space, size_t gene)
{
    bool are_numbers = true;
    double number;
    for (size_t v = 0; v < space->genes[gene].n_values; v++)
        are_numbers &= hwnas_value_number(&number, &space->genes[gene].values[v]);
    add(vector, space, gene, are_numbers ? HWNAS_CODING_NUMBER : HWNAS_CODING_CODE, 0);
}

const hwnas_vector_layout hwnas_vector_layouts[] = {
    {"one-hot", "a 1 among 0s for each value", add_one_hot},
    {"values", "the values themselves", add_value},
    {0},
};

hwnas_vector *hwnas_vector_new(const hwnas_vector_layout *layout, const hwnas_space *space)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_vector *vector = hwnas_arena_alloc(arena, sizeof *vector);
    size_t most = 0;
    for (size_t g = 0; g < space->n_genes; g++)
        most += space->genes[g].n_values;
    vector->arena = arena;
    vector->columns = hwnas_arena_alloc(arena, (most + 1) * sizeof *vector->columns);
    for (size_t g = 0; g < space->n_genes; g++)
        layout->add(vector, space, g);
    return vector;
}

void hwnas_vector_free(hwnas_vector *vector)
{
    if (vector)
        hwnas_arena_free(vector->arena);
}

void hwnas_vector_fill(float *out, const hwnas_vector *vector, const hwnas_arch *arch)
{
    double *row = hwnas_alloc((vector->n + 1) * sizeof *row);
    hwnas_arch *settled = hwnas_arch_copy(arch);
    hwnas_arch_settle(settled);
    hwnas_column_fill_row(row, vector->columns, vector->n, settled);
    for (size_t i = 0; i < vector->n; i++)
        out[i] = (float)row[i];
    hwnas_arch_free(settled);
    free(row);
}

hwnas_status hwnas_vector_find(const hwnas_vector_layout **out, const char *name)
{
    const char *names[8] = {0};
    for (int i = 0; hwnas_vector_layouts[i].name; i++) {
        names[i] = hwnas_vector_layouts[i].name;
        if (strcmp(names[i], name))
            continue;
        *out = &hwnas_vector_layouts[i];
        return HWNAS_OK;
    }
    const char *near = hwnas_nearest(name, names);
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there is no layout '%.60s'", name),
                      "did you mean '%s'?", near ? near : names[0]);
}
