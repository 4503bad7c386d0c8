/* features.c: terms and inputs are listed once, from the encoding's columns. */
#include "predict/features.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* With more terms than this the normal equations of the ridge take minutes instead of seconds
 * (their time grows with the cube): then it keeps the columns and leaves pairs to the trees. */
enum { MAX_TERMS = 1200 };

typedef struct hwnas_indicator {
    size_t column;
    bool is_indicator;
    double level; /* it is 1 where the column has this */
} hwnas_indicator;

static double value_of(const hwnas_indicator *i, const double *row)
{
    return i->is_indicator ? row[i->column] == i->level : row[i->column];
}

static bool is_categorical(const hwnas_column *column)
{
    return column->coding == HWNAS_CODING_CODE;
}

static void list_indicators(hwnas_features *f)
{
    const hwnas_feature_encoding *e = f->encoding;
    size_t n = e->first[f->has_facts ? HWNAS_N_COLUMN_PARTS : HWNAS_COLUMN_FACT], most = 0;
    for (size_t c = 0; c < n; c++)
        most += is_categorical(&e->columns[c]) ? e->columns[c].n_levels : 1;
    f->indicators = hwnas_arena_alloc(f->arena, (most + 1) * sizeof *f->indicators);
    for (size_t c = 0; c < n; c++) {
        if (!is_categorical(&e->columns[c])) {
            f->indicators[f->n_columns++] = (hwnas_indicator){.column = c};
            continue;
        }
        for (size_t v = 0; v < e->columns[c].n_levels; v++)
            f->indicators[f->n_columns++] =
                (hwnas_indicator){.column = c, .is_indicator = true, .level = (double)v};
    }
    f->means = hwnas_arena_alloc(f->arena, 2 * (f->n_columns + 1) * sizeof *f->means);
    f->scales = f->means + f->n_columns;
    for (size_t k = 0; k < f->n_columns; k++)
        f->scales[k] = 1;
}

/* Every product of two columns of genes, but for those that say nothing new: the square of one with
 * two values is a constant, and indicators of one gene exclude each other. */
static void list_pairs(hwnas_features *f)
{
    const hwnas_feature_encoding *e = f->encoding;
    size_t n = 0;
    while (n < f->n_columns && e->columns[f->indicators[n].column].n_genes == 1)
        n++;
    size_t n_all = n * (n + 1) / 2;
    f->n_terms = 1 + f->n_columns;
    if (f->n_terms + n_all > MAX_TERMS)
        return;
    f->pairs = hwnas_arena_alloc(f->arena, (n_all + 1) * sizeof *f->pairs);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a; b < n; b++) {
            const hwnas_indicator *x = &f->indicators[a], *y = &f->indicators[b];
            bool is_square = a == b && !x->is_indicator && e->columns[x->column].n_levels > 2;
            if (x->column != y->column || is_square)
                f->pairs[f->n_pairs++] = (hwnas_pair){a, b};
        }
    }
    f->n_terms += f->n_pairs;
}

static void list_products(hwnas_features *f)
{
    const hwnas_feature_encoding *e = f->encoding;
    size_t n = e->first[HWNAS_COLUMN_SUM];
    f->products = hwnas_arena_alloc(f->arena, (n * n + 1) * sizeof *f->products);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            const hwnas_column *x = &e->columns[a], *y = &e->columns[b];
            const hwnas_choice *choices = e->space->choices;
            if (is_categorical(x) || is_categorical(y) || x->choice == y->choice ||
                x->position != y->position || choices[x->choice].n_positions < 2 ||
                choices[x->choice].n_positions != choices[y->choice].n_positions)
                continue;
            f->products[f->n_products++] = (hwnas_pair){a, b};
        }
    }
    f->n_inputs = f->n_columns + f->n_products;
}

hwnas_features *hwnas_features_new(const hwnas_feature_encoding *encoding, bool has_facts)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_features *f = hwnas_arena_alloc(arena, sizeof *f);
    f->arena = arena;
    f->encoding = encoding;
    f->has_facts = has_facts;
    list_indicators(f);
    list_pairs(f);
    list_products(f);
    return f;
}

void hwnas_features_standardise(hwnas_features *f, const double *rows, size_t n)
{
    size_t stride = f->encoding->n_columns;
    for (size_t k = 0; k < f->n_columns; k++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += value_of(&f->indicators[k], rows + i * stride) / (double)n;
        for (size_t i = 0; i < n; i++) {
            double d = value_of(&f->indicators[k], rows + i * stride) - mean;
            variance += d * d / (double)n;
        }
        f->means[k] = mean;
        f->scales[k] = sqrt(variance) > 1e-9 * fabs(mean) ? sqrt(variance) : INFINITY;
    }
}

void hwnas_features_free(hwnas_features *features)
{
    if (features)
        hwnas_arena_free(features->arena);
}

void hwnas_features_terms(const hwnas_features *f, double *out, const double *row)
{
    *out++ = 1;
    for (size_t k = 0; k < f->n_columns; k++)
        out[k] = (value_of(&f->indicators[k], row) - f->means[k]) / f->scales[k];
    const double *columns = out;
    out += f->n_columns;
    for (size_t i = 0; i < f->n_pairs; i++)
        out[i] = columns[f->pairs[i].a] * columns[f->pairs[i].b];
}

static double number_at(const hwnas_features *f, const double *row, size_t column)
{
    return f->encoding->columns[column].coding == HWNAS_CODING_LOG ? exp(row[column]) : row[column];
}

void hwnas_features_inputs(const hwnas_features *f, float *out, const double *row)
{
    for (size_t k = 0; k < f->n_columns; k++)
        *out++ = (float)value_of(&f->indicators[k], row);
    for (size_t i = 0; i < f->n_products; i++)
        *out++ = (float)(number_at(f, row, f->products[i].a) * number_at(f, row, f->products[i].b));
}
