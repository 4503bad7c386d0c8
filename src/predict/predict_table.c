/* predict_table.c: the kind `table`: results looked up in a published table, "table:FILE#COLUMN".
 *
 * The estimate is the cell as it stands, or the mean of a network's rows, with sd 0: what a
 * repeated training would give is another question, which a search on the table does not ask. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/predict_priv.h"
#include "space/table.h"

typedef struct table_predictor {
    hwnas_predictor base;
    hwnas_table *table;
    double *values; /* as hwnas_table_values() has them */
    size_t n;
    const hwnas_arch **archs; /* of the first row of each that has a value; borrowed */
} table_predictor;

static void free_table(hwnas_predictor *base)
{
    table_predictor *predictor = (table_predictor *)base;
    hwnas_table_free(predictor->table);
    free(predictor->values);
    free(predictor->archs);
    free(predictor);
}

static void find_archs(table_predictor *predictor)
{
    const hwnas_table *table = predictor->table;
    predictor->archs = hwnas_alloc((table->n_inside + 1) * sizeof *predictor->archs);
    for (size_t row = 0; row < table->n; row++)
        if (!isnan(predictor->values[row]))
            predictor->archs[predictor->n++] = table->archs[row];
}

static hwnas_status open_table(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const char *hash = strrchr(rest, '#');
    if (!hash || hash == rest || !hash[1])
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "'table:%s' names no file and column", rest),
            "write table:FILE#COLUMN, as in table:results.csv#top1_pct");
    char *path = hwnas_printf("%.*s", (int)(hash - rest), rest);
    table_predictor *predictor = hwnas_alloc(sizeof *predictor);
    predictor->base = (hwnas_predictor){
        .ops = &hwnas_predictor_table,
        .space = space,
        .kind = hwnas_predictor_table.name,
        .target = hwnas_strdup(hash + 1),
        .unit = hwnas_strdup(hwnas_column_unit(hash + 1)),
    };
    size_t column;
    TRY_OUT(hwnas_table_load(&predictor->table, space, path));
    const hwnas_csv *csv = predictor->table->csv;
    TRY_OUT(hwnas_csv_require(&column, csv, hash + 1));
    TRY_OUT(hwnas_table_values(&predictor->values, predictor->table, column));
    find_archs(predictor);
    *out = &predictor->base;
    predictor = NULL;
out:
    hwnas_predictor_free((hwnas_predictor *)predictor);
    free(path);
    return status;
}

static hwnas_status not_there(const table_predictor *predictor, const hwnas_arch *arch, long row)
{
    const hwnas_csv *csv = predictor->table->csv;
    hwnas_place place = {.file = csv->path, .line = row < 0 ? 0 : csv->lines[row]};
    char *code = hwnas_arch_code(arch);
    hwnas_status status =
        row < 0 ? hwnas_fail(HWNAS_E_NOT_FOUND, &place, "the table has no row for %s", code)
                : hwnas_fail(HWNAS_E_NOT_FOUND, &place, "column '%s' is empty for %s",
                             predictor->base.target, code);
    free(code);
    return hwnas_hint(status, "a predictor fitted on the table estimates what it does not have: "
                              "'hwnas predictor fit'");
}

static hwnas_status score_table(hwnas_estimate *out, hwnas_predictor *base,
                                const hwnas_arch *const *archs, size_t n)
{
    table_predictor *predictor = (table_predictor *)base;
    for (size_t i = 0; i < n; i++) {
        long row = hwnas_table_find(predictor->table, archs[i]);
        if (row < 0 || isnan(predictor->values[row]))
            return not_there(predictor, archs[i], row);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (hwnas_estimate){
            .mean = predictor->values[hwnas_table_find(predictor->table, archs[i])]};
    return HWNAS_OK;
}

static const hwnas_arch *const *recall_table(size_t *n, const hwnas_predictor *base)
{
    const table_predictor *predictor = (const table_predictor *)base;
    *n = predictor->n;
    return predictor->archs;
}

const hwnas_predictor_ops hwnas_predictor_table = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "table",
    .open = open_table,
    .score = score_table,
    .recall = recall_table,
    .free = free_table,
};
