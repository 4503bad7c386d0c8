/* column.c: each value of each gene is coded once; a row looks the codes up. */
#include "predict/column.h"

#include <math.h>
#include <stdlib.h>

bool hwnas_value_number(double *out, const hwnas_value *value)
{
    *out = value->kind == HWNAS_VALUE_INT ? (double)value->i : value->r;
    return value->kind == HWNAS_VALUE_INT || value->kind == HWNAS_VALUE_REAL;
}

static double code_of(const hwnas_gene *gene, size_t v, hwnas_coding coding, uint16_t value)
{
    double number = 0;
    if (coding == HWNAS_CODING_CODE || coding == HWNAS_CODING_IS)
        return coding == HWNAS_CODING_CODE ? (double)v : (double)(v == value);
    hwnas_value_number(&number, &gene->values[v]);
    return coding == HWNAS_CODING_LOG ? rint(log(number) * 1e6) / 1e6 : number;
}

static const char *name_of(hwnas_arena *arena, const hwnas_gene *gene, const hwnas_choice *choice,
                           bool is_sum, hwnas_coding coding, uint16_t value)
{
    const bool is_one = coding == HWNAS_CODING_IS;
    const char *place = is_sum ? "" : hwnas_arena_printf(arena, "[%zu]", gene->position + 1);
    return hwnas_arena_printf(arena, "%s%s%s%s%s%s", is_sum ? "sum " : "",
                              coding == HWNAS_CODING_LOG ? "log " : "", choice->name, place,
                              is_one ? "=" : "", is_one ? gene->labels[value] : "");
}

hwnas_column hwnas_column_make(hwnas_arena *arena, const hwnas_space *space, size_t first_gene,
                               size_t n_genes, hwnas_coding coding, uint16_t value, double absent)
{
    const hwnas_gene *genes = &space->genes[first_gene];
    const hwnas_choice *choice = &space->choices[genes->choice];
    size_t n_codes = 0, at = 0;
    for (size_t g = 0; g < n_genes; g++)
        n_codes += genes[g].n_values;
    double *codes = hwnas_arena_alloc(arena, n_codes * sizeof *codes);
    for (size_t g = 0; g < n_genes; g++)
        for (size_t v = 0; v < genes[g].n_values; v++)
            codes[at++] = code_of(&genes[g], v, coding, value);
    return (hwnas_column){.name = name_of(arena, genes, choice, n_genes > 1, coding, value),
                          .coding = coding,
                          .choice = genes->choice,
                          .position = genes->position,
                          .first_gene = first_gene,
                          .n_genes = n_genes,
                          .codes = codes,
                          .has_conditions = choice->when && !isnan(absent),
                          .absent = absent,
                          .n_levels = genes->n_values + (choice->when != NULL)};
}

/* Conditions are evaluated once for all columns. NULL: none is asked. */
static bool *list_active(const hwnas_column *columns, size_t n, const hwnas_arch *arch)
{
    bool *is_active = NULL;
    for (size_t c = 0; c < n; c++)
        if (columns[c].has_conditions && !is_active)
            is_active = hwnas_alloc(arch->space->n_genes * sizeof *is_active);
    for (size_t g = 0; is_active && g < arch->space->n_genes; g++)
        is_active[g] = hwnas_arch_is_active(arch, g);
    return is_active;
}

void hwnas_column_fill_row(double *out, const hwnas_column *columns, size_t n,
                           const hwnas_arch *arch)
{
    bool *is_active = list_active(columns, n, arch);
    for (size_t c = 0; c < n; c++) {
        const hwnas_column *column = &columns[c];
        const double *codes = column->codes;
        if (!column->n_genes)
            continue;
        out[c] = 0;
        for (size_t g = column->first_gene; g < column->first_gene + column->n_genes; g++) {
            out[c] +=
                column->has_conditions && !is_active[g] ? column->absent : codes[arch->genes[g]];
            codes += arch->space->genes[g].n_values;
        }
    }
    free(is_active);
}
