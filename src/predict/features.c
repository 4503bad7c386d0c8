/* features.c: the encoding of genes, tabulated once for each value of each gene. */
#include "predict/features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/str.h"

/* With more terms than this the normal equations of the ridge take minutes instead of seconds
 * (their time grows with the cube): then it keeps the columns and leaves pairs to the trees. */
enum { MAX_TERMS = 1200 };

typedef struct hwnas_gene_code {
    bool is_numeric;
    size_t first_column, width; /* 0 columns when there is nothing to choose */
    double *values;             /* numeric: n_values, as they are */
    double *columns;            /* n_values * width, mean 0 and variance 1 over the values */
} hwnas_gene_code;

static bool number_of(double *out, const hwnas_value *value)
{
    *out = value->kind == HWNAS_VALUE_INT ? (double)value->i : value->r;
    return value->kind == HWNAS_VALUE_INT || value->kind == HWNAS_VALUE_REAL;
}

static void standardise(double *column, size_t n, size_t stride)
{
    double mean = 0, variance = 0;
    for (size_t v = 0; v < n; v++)
        mean += column[v * stride] / (double)n;
    for (size_t v = 0; v < n; v++)
        variance += (column[v * stride] - mean) * (column[v * stride] - mean) / (double)n;
    for (size_t v = 0; v < n; v++)
        column[v * stride] = variance > 0 ? (column[v * stride] - mean) / sqrt(variance) : 0;
}

static void code_gene(hwnas_features *f, hwnas_gene_code *code, const hwnas_gene *gene)
{
    size_t n = gene->n_values;
    bool all_positive = true;
    code->is_numeric = true;
    code->values = hwnas_arena_alloc(f->arena, n * sizeof *code->values);
    for (size_t v = 0; v < n; v++) {
        code->is_numeric &= number_of(&code->values[v], &gene->values[v]);
        all_positive &= code->values[v] > 0;
    }
    code->first_column = f->n_columns;
    code->width = n < 2 ? 0 : code->is_numeric ? 1 : n;
    code->columns = hwnas_arena_alloc(f->arena, n * code->width * sizeof *code->columns);
    const char *choice = f->space->choices[gene->choice].name;
    for (size_t w = 0; w < code->width; w++) {
        /* The logarithm, because widths, depths and expansions act by their ratio: on
         * Accel-NASBench it raises the ridge's cross-validated tau from 0.916 to 0.924
         * (docs/predictors.md). */
        for (size_t v = 0; v < n; v++)
            code->columns[v * code->width + w] = !code->is_numeric ? v == w
                                                 : all_positive    ? log(code->values[v])
                                                                   : code->values[v];
        standardise(code->columns + w, n, code->width);
        f->column_names[f->n_columns++] =
            code->is_numeric ? hwnas_arena_printf(f->arena, "%s%s[%zu]", all_positive ? "log " : "",
                                                  choice, gene->position + 1)
                             : hwnas_arena_printf(f->arena, "%s[%zu]=%s", choice,
                                                  gene->position + 1, gene->labels[w]);
    }
}

/* Every product of two columns, but for those that say nothing new: the square of a gene with two
 * values is a constant, and indicators of one gene exclude each other. */
static void list_pairs(hwnas_features *f)
{
    size_t n_all = f->n_columns * (f->n_columns + 1) / 2;
    f->n_terms = 1 + f->n_columns;
    if (f->n_terms + n_all > MAX_TERMS)
        return;
    size_t *owner = hwnas_alloc(f->n_columns * sizeof *owner);
    for (size_t g = 0; g < f->space->n_genes; g++)
        for (size_t w = 0; w < f->codes[g].width; w++)
            owner[f->codes[g].first_column + w] = g;
    f->pairs = hwnas_arena_alloc(f->arena, n_all * sizeof *f->pairs);
    for (uint32_t a = 0; a < f->n_columns; a++) {
        for (uint32_t b = a; b < f->n_columns; b++) {
            size_t g = owner[a];
            bool is_new = owner[b] != g ||
                          (a == b && f->codes[g].is_numeric && f->space->genes[g].n_values > 2);
            if (is_new)
                f->pairs[f->n_pairs++] = (hwnas_pair){a, b};
        }
    }
    f->n_terms += f->n_pairs;
    free(owner);
}

static bool choice_is_numeric(const hwnas_features *f, size_t c)
{
    const hwnas_choice *choice = &f->space->choices[c];
    for (size_t p = 0; p < choice->n_positions; p++)
        if (!f->codes[choice->first_gene + p].is_numeric)
            return false;
    return choice->n_positions > 1;
}

static void list_inputs(hwnas_features *f)
{
    const hwnas_space *space = f->space;
    size_t n_choices = space->n_choices, *sums = NULL;
    sums = hwnas_arena_alloc(f->arena, n_choices * sizeof *sums);
    f->sums = sums;
    f->products = hwnas_arena_alloc(f->arena, n_choices * n_choices * sizeof *f->products);
    f->n_inputs = f->n_columns;
    for (size_t a = 0; a < n_choices; a++) {
        if (!choice_is_numeric(f, a))
            continue;
        sums[f->n_sums++] = a;
        for (size_t b = 0; b < a; b++) {
            if (!choice_is_numeric(f, b) ||
                space->choices[a].n_positions != space->choices[b].n_positions)
                continue;
            f->products[f->n_products++] = (hwnas_pair){(uint32_t)b, (uint32_t)a};
            f->n_inputs += space->choices[a].n_positions;
        }
    }
    f->n_inputs += f->n_sums;

    size_t n = 0;
    f->input_names = hwnas_arena_alloc(f->arena, f->n_inputs * sizeof *f->input_names);
    for (; n < f->n_columns; n++) {
        const char *name = f->column_names[n]; /* trees see the value, not its logarithm */
        f->input_names[n] = hwnas_starts_with(name, "log ") ? name + strlen("log ") : name;
    }
    for (size_t i = 0; i < f->n_sums; i++)
        f->input_names[n++] =
            hwnas_arena_printf(f->arena, "sum %s", space->choices[f->sums[i]].name);
    for (size_t i = 0; i < f->n_products; i++) {
        const hwnas_choice *a = &space->choices[f->products[i].a],
                           *b = &space->choices[f->products[i].b];
        for (size_t p = 0; p < a->n_positions; p++)
            f->input_names[n++] =
                hwnas_arena_printf(f->arena, "%s*%s[%zu]", a->name, b->name, p + 1);
    }
}

hwnas_features *hwnas_features_new(const hwnas_space *space)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_features *f = hwnas_arena_alloc(arena, sizeof *f);
    f->arena = arena;
    f->space = space;
    f->codes = hwnas_arena_alloc(arena, space->n_genes * sizeof *f->codes);
    size_t most = 0;
    for (size_t g = 0; g < space->n_genes; g++)
        most += space->genes[g].n_values;
    f->column_names = hwnas_arena_alloc(arena, most * sizeof *f->column_names);
    for (size_t g = 0; g < space->n_genes; g++)
        code_gene(f, &f->codes[g], &space->genes[g]);
    list_pairs(f);
    list_inputs(f);
    return f;
}

void hwnas_features_free(hwnas_features *features)
{
    if (features)
        hwnas_arena_free(features->arena);
}

void hwnas_features_terms(const hwnas_features *f, double *out, const hwnas_arch *arch)
{
    *out++ = 1;
    for (size_t g = 0; g < f->space->n_genes; g++) {
        const hwnas_gene_code *code = &f->codes[g];
        for (size_t w = 0; w < code->width; w++)
            out[code->first_column + w] = code->columns[arch->genes[g] * code->width + w];
    }
    const double *columns = out;
    out += f->n_columns;
    for (size_t i = 0; i < f->n_pairs; i++)
        out[i] = columns[f->pairs[i].a] * columns[f->pairs[i].b];
}

static double value_at(const hwnas_features *f, const hwnas_arch *arch, size_t gene)
{
    return f->codes[gene].values[arch->genes[gene]];
}

void hwnas_features_inputs(const hwnas_features *f, float *out, const hwnas_arch *arch)
{
    const hwnas_choice *choices = f->space->choices;
    for (size_t g = 0; g < f->space->n_genes; g++) {
        const hwnas_gene_code *code = &f->codes[g];
        for (size_t w = 0; w < code->width; w++)
            *out++ = code->is_numeric ? (float)value_at(f, arch, g) : arch->genes[g] == w;
    }
    for (size_t i = 0; i < f->n_sums; i++) {
        const hwnas_choice *choice = &choices[f->sums[i]];
        double sum = 0;
        for (size_t p = 0; p < choice->n_positions; p++)
            sum += value_at(f, arch, choice->first_gene + p);
        *out++ = (float)sum;
    }
    for (size_t i = 0; i < f->n_products; i++) {
        const hwnas_choice *a = &choices[f->products[i].a], *b = &choices[f->products[i].b];
        for (size_t p = 0; p < a->n_positions; p++)
            *out++ = (float)(value_at(f, arch, a->first_gene + p) *
                             value_at(f, arch, b->first_gene + p));
    }
}

char *hwnas_space_digest(const hwnas_space *space)
{
    hwnas_str text = {0};
    hwnas_str_add(&text, "");
    for (size_t g = 0; g < space->n_genes; g++) {
        const hwnas_gene *gene = &space->genes[g];
        hwnas_str_addf(&text, "%s[%zu]:", space->choices[gene->choice].name, gene->position);
        for (size_t v = 0; v < gene->n_values; v++)
            hwnas_str_addf(&text, "%s%s", v ? "," : "", gene->labels[v]);
        hwnas_str_add(&text, "\n");
    }
    char *digest = hwnas_printf("%016llx", (unsigned long long)XXH3_64bits(text.s, text.n));
    hwnas_str_done(&text);
    return digest;
}
