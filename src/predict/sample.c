/* sample.c: reading a table of results and encoding its rows. */
#include "predict/sample.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/str.h"
#include "derive/derive.h"
#include "predict/domain.h"
#include "predict/predict_priv.h"

static hwnas_status read_numbers(double **out, const hwnas_csv *csv, const char *name)
{
    size_t column;
    TRY(hwnas_csv_require(&column, csv, name));
    double *values = hwnas_alloc(csv->n_rows * sizeof *values);
    for (size_t row = 0; row < csv->n_rows; row++) {
        hwnas_status status = hwnas_csv_number(&values[row], csv, row, column);
        if (status != HWNAS_OK) {
            free(values);
            return hwnas_hint(status, "every row needs a result: drop the rows that have none");
        }
    }
    *out = values;
    return HWNAS_OK;
}

hwnas_status hwnas_table_results(double **out, const hwnas_table *table, const char *target)
{
    return read_numbers(out, table->csv, target);
}

typedef struct labelled {
    hwnas_digest digest;
    size_t row;
} labelled;

static int compare_digests(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    int order = strcmp(x->digest.hex, y->digest.hex);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Numbers the different networks in the order in which they first appear. Different encodings may
 * be one network (4 in 10 of NAS-Bench-Macro's are not the first of theirs), and a fold must not be
 * judged by networks that were trained on. */
static hwnas_status number_networks(size_t *out, const hwnas_table *table)
{
    hwnas_status status = HWNAS_OK;
    labelled *labels = hwnas_alloc(table->n * sizeof *labels);
    size_t *first = hwnas_alloc(table->n * sizeof *first), n = 0;
    for (size_t row = 0; row < table->n; row++) {
        hwnas_graph *graph = NULL;
        TRY_OUT(hwnas_graph_build(&graph, table->archs[row], 1));
        labels[row] = (labelled){.digest = hwnas_graph_digest(graph), .row = row};
        hwnas_graph_free(graph);
    }
    qsort(labels, table->n, sizeof *labels, compare_digests);
    for (size_t i = 0; i < table->n; i++) {
        bool same = i && !strcmp(labels[i].digest.hex, labels[i - 1].digest.hex);
        first[labels[i].row] = same ? first[labels[i - 1].row] : labels[i].row;
    }
    for (size_t row = 0; row < table->n; row++)
        out[row] = first[row] == row ? n++ : out[first[row]];
out:
    free(labels);
    free(first);
    return status;
}

/* Encodes the rows of a table; the encoding finds the facts that tell its networks apart. */
static hwnas_status read_archs(hwnas_sample *sample, const char *data, const char *target)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rows *rows = &sample->rows;
    TRY(hwnas_table_load(&sample->table, sample->space, data));
    const hwnas_table *table = sample->table;
    TRY_OUT(read_numbers(&rows->values, table->csv, target));
    TRY_OUT(hwnas_feature_encoding_find(&sample->encoding, sample->space,
                                (const hwnas_arch *const *)table->archs, table->n));
    size_t width = sample->encoding->n_columns;
    rows->encoding = sample->encoding;
    rows->n = table->n;
    rows->networks = hwnas_alloc(rows->n * sizeof *rows->networks);
    TRY_OUT(hwnas_try_alloc((void **)&rows->columns, (rows->n * width + 1) * sizeof *rows->columns,
                            "the rows' columns"));
    TRY_OUT(number_networks(rows->networks, table));
    sample->domain = hwnas_domain_of(sample->space, table->archs, table->n);
    for (size_t i = 0; i < rows->n; i++)
        TRY_OUT(
            hwnas_feature_encoding_row(sample->encoding, rows->columns + i * width, table->archs[i], true));
out:
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A table for any space: its columns are facts, but for the target and the networks' names. */
static hwnas_status read_facts(hwnas_sample *sample, const char *data, const char *target)
{
    hwnas_status status = HWNAS_OK;
    hwnas_csv *csv = NULL;
    hwnas_rows *rows = &sample->rows;
    const char **facts = NULL;
    size_t n_facts = 0, network;
    TRY_OUT(hwnas_csv_load(&csv, data));
    TRY_OUT(read_numbers(&rows->values, csv, target));
    TRY_OUT(hwnas_csv_require(&network, csv, "network"));
    facts = hwnas_alloc((csv->n_columns + 1) * sizeof *facts);
    for (size_t c = 0; c < csv->n_columns; c++)
        if (strcmp(csv->names[c], target) && c != network)
            facts[n_facts++] = csv->names[c];
    qsort(facts, n_facts, sizeof *facts, compare_texts);
    sample->encoding = hwnas_feature_encoding_new(NULL, facts, n_facts);
    rows->encoding = sample->encoding;
    rows->n = csv->n_rows;
    rows->networks = hwnas_alloc(rows->n * sizeof *rows->networks);
    rows->columns = hwnas_alloc((rows->n * n_facts + 1) * sizeof *rows->columns);
    for (size_t i = 0; i < rows->n; i++) {
        const char *name = hwnas_csv_cell(csv, i, network);
        rows->networks[i] = (size_t)XXH3_64bits(name, strlen(name));
        for (size_t f = 0; f < n_facts; f++)
            TRY_OUT(hwnas_csv_number(&rows->columns[i * n_facts + f], csv, i,
                                     (size_t)hwnas_csv_column(csv, facts[f])));
    }
out:
    free(facts);
    hwnas_csv_free(csv);
    return status;
}

hwnas_status hwnas_sample_load(hwnas_sample *out, const char *space, const char *data,
                               const char *target)
{
    hwnas_sample sample = {0};
    hwnas_status status = HWNAS_OK;
    if (!strcmp(space, HWNAS_ANY_SPACE)) {
        TRY_OUT(read_facts(&sample, data, target));
    } else {
        TRY_OUT(hwnas_load_space(&sample.space, space));
        TRY_OUT(read_archs(&sample, data, target));
    }
    sample.n_networks = hwnas_rows_networks(&sample.rows);
    *out = sample;
    return HWNAS_OK;
out:
    hwnas_sample_done(&sample);
    return status;
}

void hwnas_sample_done(hwnas_sample *sample)
{
    hwnas_rows_done(&sample->rows);
    hwnas_feature_encoding_free(sample->encoding);
    hwnas_table_free(sample->table);
    hwnas_space_free(sample->space);
    json_decref(sample->domain);
    *sample = (hwnas_sample){0};
}
