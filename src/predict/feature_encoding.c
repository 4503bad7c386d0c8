/* feature_encoding.c: which columns a space gets, and which facts; facts are found by name. */
#include "predict/feature_encoding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/str.h"
#include "derive/derive.h"
#include "predict/graph_facts.h"

enum { N_DRAWN = 300, MAX_FACTS = 160, DRAW_STREAM = 43 };

/* Codes of operators often begin at 0,
 * and nothing else tells them from amounts; of two values it makes no difference. */
hwnas_coding hwnas_choice_coding(const hwnas_space *space, const hwnas_choice *choice)
{
    bool are_amounts = true, all_positive = true;
    for (size_t p = 0; p < choice->n_positions; p++) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        bool are_positive = true;
        for (size_t v = 0; v < gene->n_values; v++) {
            double number;
            are_amounts &= hwnas_value_number(&number, &gene->values[v]);
            are_positive &= number > 0;
        }
        are_amounts &= are_positive || gene->n_values == 2;
        all_positive &= are_positive;
    }
    return !are_amounts ? HWNAS_CODING_CODE : all_positive ? HWNAS_CODING_LOG : HWNAS_CODING_NUMBER;
}

static void add_genes(hwnas_feature_encoding *e, const hwnas_choice *choice, hwnas_coding coding)
{
    for (size_t p = 0; p < choice->n_positions; p++) {
        const size_t g = choice->first_gene + p;
        e->columns[e->n_columns++] =
            hwnas_column_make(e->arena, e->space, g, 1, choice->when ? HWNAS_CODING_CODE : coding,
                              0, (double)e->space->genes[g].n_values);
    }
}

/* Numbers are added, symbols are counted. */
static void add_sums(hwnas_feature_encoding *e, const hwnas_choice *choice, hwnas_coding coding)
{
    const size_t first = choice->first_gene, n = choice->n_positions;
    const bool are_counted = coding == HWNAS_CODING_CODE;
    const size_t n_sums = are_counted ? e->space->genes[first].n_values : 1;
    for (size_t v = 0; n > 1 && v < n_sums; v++)
        e->columns[e->n_columns++] = hwnas_column_make(
            e->arena, e->space, first, n, are_counted ? HWNAS_CODING_IS : coding, (uint16_t)v, 0);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_cells(hwnas_feature_encoding *e)
{
    size_t n = 0, first = e->first[HWNAS_COLUMN_FACT];
    e->cells = hwnas_arena_alloc(e->arena, (e->n_columns - first + 1) * sizeof *e->cells);
    for (size_t c = first; c < e->n_columns; c++) {
        const char *cell = hwnas_fact_cell(e->columns[c].name, e->arena);
        bool is_new = cell;
        for (size_t i = 0; is_new && i < n; i++)
            is_new = strcmp(e->cells[i], cell) != 0;
        if (is_new)
            e->cells[n++] = cell;
    }
}

hwnas_feature_encoding *hwnas_feature_encoding_new(const hwnas_space *space,
                                                   const char *const *facts, size_t n_facts)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_feature_encoding *e = hwnas_arena_alloc(arena, sizeof *e);
    e->arena = arena;
    e->space = space;
    size_t n_genes = space ? space->n_genes : 0, most = n_genes + n_facts;
    for (size_t c = 0; space && c < space->n_choices; c++)
        most += 1 + space->genes[space->choices[c].first_gene].n_values;
    e->columns = hwnas_arena_alloc(arena, (most + 1) * sizeof *e->columns);
    for (size_t c = 0; space && c < space->n_choices; c++)
        add_genes(e, &space->choices[c], hwnas_choice_coding(space, &space->choices[c]));
    e->first[HWNAS_COLUMN_SUM] = e->n_columns;
    for (size_t c = 0; space && c < space->n_choices; c++)
        add_sums(e, &space->choices[c], hwnas_choice_coding(space, &space->choices[c]));
    e->first[HWNAS_COLUMN_FACT] = e->n_columns;
    for (size_t f = 0; f < n_facts; f++)
        e->columns[e->n_columns++] = (hwnas_column){
            .name = hwnas_arena_string(arena, facts[f], strlen(facts[f])),
            .coding = HWNAS_CODING_FACT,
        };
    e->first[HWNAS_N_COLUMN_PARTS] = e->n_columns;
    list_cells(e);
    return e;
}

void hwnas_feature_encoding_free(hwnas_feature_encoding *encoding)
{
    if (!encoding)
        return;
    hwnas_space_free(encoding->plain);
    hwnas_arena_free(encoding->arena);
}

/* The column of a fact, or n_columns. Facts are few, and their names differ early. */
static size_t find_fact(const hwnas_feature_encoding *e, const char *name)
{
    size_t low = e->first[HWNAS_COLUMN_FACT], high = e->n_columns;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, e->columns[middle].name);
        if (!order)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return e->n_columns;
}

hwnas_status hwnas_feature_encoding_use_plain(hwnas_feature_encoding *e)
{
    bool is_set = false;
    for (size_t i = 0; e->space && i < e->space->n_settings; i++)
        is_set |= e->space->settings[i].is_set;
    return is_set ? hwnas_load_space(&e->plain, e->space->path) : HWNAS_OK;
}

static hwnas_status build(hwnas_graph **out, const hwnas_feature_encoding *e,
                          const hwnas_arch *arch)
{
    if (!e->plain)
        return hwnas_graph_build(out, arch, 1);
    hwnas_arch *plain = hwnas_arch_new(e->plain);
    memcpy(plain->genes, arch->genes, e->plain->n_genes * sizeof *plain->genes);
    hwnas_status status = hwnas_graph_build(out, plain, 1);
    hwnas_arch_free(plain);
    return status;
}

hwnas_status hwnas_feature_encoding_row(const hwnas_feature_encoding *e, double *out,
                                        const hwnas_arch *arch, bool with_facts)
{
    const size_t first = e->first[HWNAS_COLUMN_FACT];
    hwnas_column_fill_row(out, e->columns, first, arch);
    if (!with_facts || first == e->n_columns)
        return HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_facts facts;
    TRY(build(&graph, e, arch));
    hwnas_facts_of(&facts, graph, e->cells);
    memset(out + first, 0, (e->n_columns - first) * sizeof *out);
    for (size_t i = 0; i < facts.n; i++) {
        size_t column = find_fact(e, facts.list[i].name);
        if (column < e->n_columns)
            out[column] = facts.list[i].value;
    }
    hwnas_facts_done(&facts);
    hwnas_graph_free(graph);
    return HWNAS_OK;
}

/* -- which facts differ -- */

typedef struct survey {
    size_t n, capacity; /* names */
    const char **names;
    double **values; /* one a name: n_rows, 0 where it is missing */
    size_t n_rows, row;
    hwnas_arena *arena;
} survey;

static void note_fact(survey *s, const hwnas_fact *fact)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->names[i], fact->name))
        i++;
    if (i == s->n) {
        if (s->n == s->capacity) {
            s->capacity = s->capacity ? 2 * s->capacity : 64;
            s->names = hwnas_realloc(s->names, s->capacity * sizeof *s->names);
            s->values = hwnas_realloc(s->values, s->capacity * sizeof *s->values);
        }
        s->names[s->n] = hwnas_arena_string(s->arena, fact->name, strlen(fact->name));
        s->values[s->n++] = hwnas_arena_alloc(s->arena, s->n_rows * sizeof **s->values);
    }
    s->values[i][s->row] = fact->value;
}

static hwnas_status note_network(survey *s, const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    hwnas_facts facts;
    TRY(hwnas_graph_build(&graph, arch, 1));
    hwnas_facts_of(&facts, graph, NULL);
    for (size_t i = 0; i < facts.n; i++)
        note_fact(s, &facts.list[i]);
    hwnas_facts_done(&facts);
    hwnas_graph_free(graph);
    s->row++;
    return HWNAS_OK;
}

/* To mean 0 and length 1; false when all are equal. */
static bool normalise(double *values, size_t n)
{
    double mean = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(values[i]));
        values[i] -= mean;
        squares += values[i] * values[i];
    }
    if (!(sqrt(squares) > 1e-9 * largest))
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] /= sqrt(squares);
    return true;
}

static bool says_the_same(const double *a, const double *b, size_t n)
{
    double product = 0;
    for (size_t i = 0; i < n; i++)
        product += a[i] * b[i];
    return fabs(product) > 1 - 1e-9;
}

/* Keeps the names worth a column, in the front of the list. */
static void keep_telling(survey *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n && n < MAX_FACTS; i++) {
        bool is_new = normalise(s->values[i], s->n_rows);
        for (size_t k = 0; is_new && k < n; k++)
            is_new = !says_the_same(s->values[i], s->values[k], s->n_rows);
        if (!is_new)
            continue;
        s->names[n] = s->names[i];
        s->values[n++] = s->values[i];
    }
    s->n = n;
    qsort(s->names, n, sizeof *s->names, compare_texts);
}

hwnas_status hwnas_feature_encoding_find(hwnas_feature_encoding **out, const hwnas_space *space,
                                         const hwnas_arch *const *archs, size_t n)
{
    hwnas_status status = HWNAS_OK;
    size_t n_given = n < N_DRAWN ? n : N_DRAWN;
    survey s = {.n_rows = N_DRAWN + n_given, .arena = hwnas_arena_new()};
    hwnas_rng rng = hwnas_rng_new(0, DRAW_STREAM);
    hwnas_arch *drawn = hwnas_arch_new(space);
    for (size_t i = 0; i < N_DRAWN; i++) {
        TRY_OUT(hwnas_arch_sample(drawn, &rng) ? note_network(&s, drawn)
                                               : hwnas_space_none_found(space));
    }
    for (size_t i = 0; i < n_given; i++)
        TRY_OUT(note_network(&s, archs[i * n / n_given]));
    keep_telling(&s);
    *out = hwnas_feature_encoding_new(space, s.names, s.n);
out:
    hwnas_arch_free(drawn);
    free(s.names);
    free(s.values);
    hwnas_arena_free(s.arena);
    return status;
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
