#include "predict/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "predict/predict_priv.h"
#include "predict/results.h"
#include "space/table.h"

typedef struct teller {
    const hwnas_import_options *options;
    const hwnas_csv *csv;
    size_t target;
    long sd; /* column; -1: none */
    hwnas_results *results;
    hwnas_giver giver;
    hwnas_result *rows; /* to add; `line` is the CSV's */
    size_t n_rows;
} teller;

/* One network, two different results. */
static hwnas_status disagree(const teller *t, const hwnas_result *row, const hwnas_result *other,
                             const char *file)
{
    hwnas_place place = {.file = t->csv->path, .line = row->line};
    char *where = other->line ? hwnas_printf("%s:%d", file, other->line) : hwnas_strdup(file);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &place, "%s has the result %g here and %g in %s", row->code,
                   row->value, other->value, where);
    free(where);
    return hwnas_hint(status, "keep one of them, or the mean of repeated trainings");
}

/* Some result above 1 says that all are percentages. */
static bool has_percentage(const teller *t)
{
    double value;
    for (size_t i = 0; i < t->csv->n_rows; i++) {
        const bool is_number = *hwnas_csv_cell(t->csv, i, t->target) &&
                               hwnas_csv_number(&value, t->csv, i, t->target) == HWNAS_OK;
        if (is_number && value > 1)
            return true;
    }
    hwnas_error_clear(); /* what is no number is told when its row is read */
    return hwnas_has_percentage(t->results);
}

static hwnas_status check_value(const teller *t, hwnas_result *row)
{
    const hwnas_place place = {.file = t->csv->path, .line = row->line};
    if (row->sd < 0)
        return hwnas_fail(HWNAS_E_INPUT, &place, "%g is not a standard deviation", row->sd);
    const hwnas_status status = hwnas_percent_convert(&row->value, &row->sd, false, &t->giver);
    return status == HWNAS_OK ? status : hwnas_fail_at(status, &place);
}

/* Reads a row with a result; `is_new` is unset when it is known already. */
static hwnas_status read_row(hwnas_result *out, bool *is_new, const teller *t, size_t row,
                             const hwnas_arch *arch)
{
    hwnas_graph *graph;
    TRY(hwnas_csv_number(&out->value, t->csv, row, t->target));
    if (t->sd >= 0 && *hwnas_csv_cell(t->csv, row, (size_t)t->sd))
        TRY(hwnas_csv_number(&out->sd, t->csv, row, (size_t)t->sd));
    TRY(check_value(t, out));
    TRY(hwnas_graph_build(&graph, arch, 1));
    out->digest = hwnas_graph_digest(graph);
    hwnas_graph_free(graph);
    const hwnas_result *known = hwnas_results_find(t->results, out->digest);
    if (known && known->value != out->value)
        return disagree(t, out, known, t->results->path);
    *is_new = !known;
    for (size_t i = 0; i < t->n_rows; i++) {
        if (strcmp(t->rows[i].digest.hex, out->digest.hex))
            continue;
        if (t->rows[i].value != out->value)
            return disagree(t, out, &t->rows[i], t->csv->path);
        *is_new = false;
    }
    return HWNAS_OK;
}

static size_t count_networks(const hwnas_results *results)
{
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++)
        n += hwnas_results_find(results, results->rows[i].digest) == &results->rows[i];
    return n;
}

hwnas_status hwnas_import(hwnas_import_result *out, const hwnas_space *space,
                          const hwnas_import_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_table *table = NULL;
    hwnas_import_result told = {0};
    teller t = {.options = options};
    TRY_OUT(hwnas_table_load(&table, space, options->data));
    t.csv = table->csv;
    TRY_OUT(hwnas_csv_require(&t.target, t.csv, options->target));
    t.sd = hwnas_csv_column(t.csv, "sd");
    TRY_OUT(hwnas_results_open(&t.results, options->into, options->target));
    t.giver = (hwnas_giver){.column = options->target,
                            .printed = options->printed,
                            .has_percentage = has_percentage(&t),
                            .said = "this result is",
                            .how_to_say = "say --printed fraction or --printed percent",
                            .how_to_name = "--target"};
    TRY_OUT(hwnas_percent_check(t.results, &t.giver));
    t.rows = hwnas_alloc(table->n * sizeof *t.rows);
    for (size_t i = 0; i < table->n; i++) {
        bool is_new = false;
        if (!*hwnas_csv_cell(t.csv, i, t.target)) {
            told.n_empty++;
            continue;
        }
        hwnas_result *row = &t.rows[t.n_rows];
        *row = (hwnas_result){.code = hwnas_arch_code(table->archs[i]),
                              .sd = NAN,
                              .seconds = NAN,
                              .line = t.csv->lines[i]};
        status = read_row(row, &is_new, &t, i, table->archs[i]);
        if (is_new) {
            t.n_rows++;
        } else {
            told.n_known++;
            free(row->code);
        }
        if (status != HWNAS_OK)
            goto out;
    }
    TRY_OUT(hwnas_results_add(t.results, t.rows, t.n_rows));
    told.n_taken = t.n_rows;
    told.n_networks = count_networks(t.results);
    *out = told;
out:
    for (size_t i = 0; i < t.n_rows; i++)
        free(t.rows[i].code);
    free(t.rows);
    hwnas_results_close(t.results);
    hwnas_table_free(table);
    return status;
}

hwnas_status hwnas_import_space(char **out, const char *path)
{
    hwnas_csv *csv;
    TRY(hwnas_csv_load(&csv, path));
    long column = hwnas_csv_column(csv, "space");
    hwnas_place place = {.file = path, .line = 1};
    hwnas_status status = HWNAS_OK;
    if (column < 0)
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                       "no column 'space' says of which "
                                       "space the networks are"),
                            "add --space SPACE");
    for (size_t row = 1; status == HWNAS_OK && row < csv->n_rows; row++)
        if (strcmp(hwnas_csv_cell(csv, row, (size_t)column),
                   hwnas_csv_cell(csv, 0, (size_t)column))) {
            place.line = csv->lines[row];
            status = hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &place, "this row is of another space than the first"),
                "tell the results of each space by themselves");
        }
    if (status == HWNAS_OK)
        *out = hwnas_strdup(hwnas_csv_cell(csv, 0, (size_t)column));
    hwnas_csv_free(csv);
    return status;
}
