#include "search/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The likelihood's gradient costs in proportion to the columns; spaces of many shapes have hundreds
 * of kinds of layers, most of which say the same as others. */
enum { MAX_LAYERS = 32 };

/* A kind of layer in the networks tried so far. */
typedef struct kind {
    uint64_t hash;
    uint64_t pattern; /* hash of its standardised counts */
    size_t n_unusual; /* networks whose count is not the commonest of the first network */
} kind;

/* ---- Values of a choice ---- */

static bool same_values(const hwnas_gene *a, const hwnas_gene *b)
{
    if (a->n_values != b->n_values)
        return false;
    for (size_t v = 0; v < a->n_values; v++)
        if (!hwnas_value_equal(&a->values[v], &b->values[v]))
            return false;
    return true;
}

/* A gene always has its value here: whether it counts the layers tell. */
static void add_choice(hwnas_columns *c, const hwnas_space *space, size_t first, size_t n,
                       hwnas_coding coding, uint16_t value)
{
    c->choices[c->n_choices++] = hwnas_column_make(c->arena, space, first, n, coding, value, NAN);
}

/* Genes, and how often each value stands in a run of genes of one choice with the same values. */
static void list_choices(hwnas_columns *c, const hwnas_space *space)
{
    const hwnas_gene *genes = space->genes;
    size_t most = space->n_genes;
    for (size_t g = 0; g < space->n_genes; g++)
        most += genes[g].n_values;
    c->choices = hwnas_arena_alloc(c->arena, (most + 1) * sizeof *c->choices);
    for (size_t g = 0; g < space->n_genes; g++)
        add_choice(c, space, g, 1, HWNAS_CODING_CODE, 0);
    for (size_t g = 0, end; g < space->n_genes; g = end) {
        for (end = g + 1; end < space->n_genes && genes[end].choice == genes[g].choice &&
                          same_values(&genes[g], &genes[end]);)
            end++;
        for (uint16_t v = 0; end - g > 1 && v < genes[g].n_values; v++)
            add_choice(c, space, g, end - g, HWNAS_CODING_IS, v);
    }
}

/* ---- Layers ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t *list_kinds(size_t *n_kinds, const hwnas_encoding *const *encodings, size_t n)
{
    size_t n_all = 0, n_different = 0;
    for (size_t i = 0; i < n; i++)
        n_all += encodings[i]->n_layers;
    uint64_t *all = hwnas_alloc((n_all + 1) * sizeof *all);
    n_all = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < encodings[i]->n_layers; k++)
            all[n_all++] = encodings[i]->layers[k].kind;
    qsort(all, n_all, sizeof *all, by_value);
    for (size_t k = 0; k < n_all; k++)
        if (!n_different || all[n_different - 1] != all[k])
            all[n_different++] = all[k];
    *n_kinds = n_different;
    return all;
}

static double count_of(const hwnas_encoding *encoding, uint64_t hash)
{
    size_t low = 0, high = encoding->n_layers;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (encoding->layers[middle].kind < hash)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < encoding->n_layers && encoding->layers[low].kind == hash;
    return is_there ? encoding->layers[low].count : 0;
}

/* Counts that are equal up to scale and offset get one pattern. */
static kind describe(uint64_t hash, const hwnas_encoding *const *encodings, size_t n,
                     double *scratch)
{
    kind out = {.hash = hash};
    double mean = 0, variance = 0, sign = 0;
    for (size_t i = 0; i < n; i++) {
        scratch[i] = count_of(encodings[i], hash);
        out.n_unusual += scratch[i] != scratch[0];
        mean += scratch[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        variance += (scratch[i] - mean) * (scratch[i] - mean) / (double)n;
    for (size_t i = 0; i < n && variance > 0; i++) {
        double z = (scratch[i] - mean) / sqrt(variance);
        if (sign == 0 && fabs(z) > 1e-6)
            sign = z > 0 ? 1 : -1;
        int64_t rounded = llround(1e5 * sign * z);
        out.pattern = XXH3_64bits_withSeed(&rounded, sizeof rounded, out.pattern);
    }
    if (2 * out.n_unusual > n)
        out.n_unusual = n - out.n_unusual;
    return out;
}

static int by_pattern(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    if (x->pattern != y->pattern)
        return x->pattern < y->pattern ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int by_use(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    if (x->n_unusual != y->n_unusual)
        return x->n_unusual > y->n_unusual ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* One kind for each pattern that varies, the most telling first. */
static void find_layers(hwnas_columns *c, const hwnas_encoding *const *encodings, size_t n)
{
    size_t n_kinds, n_left = 0;
    uint64_t *hashes = list_kinds(&n_kinds, encodings, n);
    kind *kinds = hwnas_alloc((n_kinds + 1) * sizeof *kinds);
    double *scratch = hwnas_alloc(n * sizeof *scratch);
    for (size_t k = 0; k < n_kinds; k++)
        kinds[k] = describe(hashes[k], encodings, n, scratch);
    qsort(kinds, n_kinds, sizeof *kinds, by_pattern);
    for (size_t k = 0; k < n_kinds; k++)
        if (kinds[k].pattern && (!n_left || kinds[n_left - 1].pattern != kinds[k].pattern))
            kinds[n_left++] = kinds[k];
    qsort(kinds, n_left, sizeof *kinds, by_use);
    c->n_layers = n_left < MAX_LAYERS ? n_left : MAX_LAYERS;
    c->layers = hwnas_arena_alloc(c->arena, (c->n_layers + 1) * sizeof *c->layers);
    for (size_t k = 0; k < c->n_layers; k++)
        c->layers[k] = kinds[k].hash;
    qsort(c->layers, c->n_layers, sizeof *c->layers, by_value);
    free(scratch);
    free(kinds);
    free(hashes);
}

/* ---- The whole ---- */

hwnas_columns *hwnas_columns_new(const hwnas_space *space, const hwnas_encoding *const *encodings,
                                 size_t n)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_columns *c = hwnas_arena_alloc(arena, sizeof *c);
    size_t group = 0;
    c->arena = arena;
    list_choices(c, space);
    find_layers(c, encodings, n);
    c->columns = hwnas_arena_alloc(arena, (c->n_choices + c->n_layers + HWNAS_N_ENCODED_COSTS) *
                                              sizeof *c->columns);
    for (size_t k = 0; k < space->n_genes; k++)
        c->columns[c->n++] = (hwnas_gp_column){.is_categorical = true, .group = group++};
    for (size_t k = space->n_genes; k < c->n_choices; k++)
        c->columns[c->n++].group = group;
    group += c->n_choices > space->n_genes;
    for (size_t k = 0; k < c->n_layers; k++)
        c->columns[c->n++].group = group;
    group += c->n_layers > 0;
    for (size_t k = 0; k < HWNAS_N_ENCODED_COSTS; k++)
        c->columns[c->n++].group = group++;
    return c;
}

void hwnas_columns_free(hwnas_columns *columns)
{
    if (columns)
        hwnas_arena_free(columns->arena);
}

void hwnas_columns_row(const hwnas_columns *columns, double *out, const hwnas_encoding *encoding)
{
    hwnas_column_fill_row(out, columns->choices, columns->n_choices, encoding->arch);
    out += columns->n_choices;
    /* Both lists are sorted. */
    size_t at = 0;
    for (size_t k = 0; k < columns->n_layers; k++) {
        while (at < encoding->n_layers && encoding->layers[at].kind < columns->layers[k])
            at++;
        const bool is_there =
            at < encoding->n_layers && encoding->layers[at].kind == columns->layers[k];
        *out++ = is_there ? encoding->layers[at].count : 0;
    }
    memcpy(out, encoding->costs, sizeof encoding->costs);
}
