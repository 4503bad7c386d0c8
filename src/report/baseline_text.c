#include "report/baseline_text.h"

#include <math.h>
#include <stdlib.h>

#include "report/grid.h"

#define MS 1e3

static const char *verdict_of(const hwnas_baseline_row *row)
{
    return row->trouble ? "failed" : hwnas_verdict_name(row->judgement.verdict);
}

static void put_row(hwnas_grid *grid, const hwnas_baseline_row *row)
{
    const hwnas_profile_row *before = row->before;
    const int decimals = hwnas_grid_decimals(before->m.p50 * MS);
    hwnas_grid_cell(grid, "%s%s%s", before->model, before->arch ? " " : "",
                    before->arch ? before->arch : "");
    hwnas_grid_cell(grid, "%s", before->device);
    hwnas_grid_cell(grid, "%d", before->batch);
    hwnas_grid_cell(grid, "%d", before->threads);
    hwnas_grid_cell(grid, "%d", before->streams);
    hwnas_grid_cell(grid, "%s", hwnas_profile_row_dtype(before));
    hwnas_grid_cell(grid, "%.*f%s", decimals, before->m.p50 * MS,
                    before->m.is_unstable ? " ?" : "");
    if (row->trouble) {
        hwnas_grid_rest(grid, "failed: %s", row->trouble);
        return;
    }
    hwnas_grid_cell(grid, "%.*f%s", decimals, row->now.m.p50 * MS,
                    row->now.m.is_unstable ? " ?" : "");
    hwnas_grid_cell(grid, "%.3f [%.3f, %.3f]", row->judgement.ratio, row->judgement.low,
                    row->judgement.high);
    hwnas_grid_cell(grid, "%s%s", verdict_of(row),
                    row->n_tries > 1 ? row->judgement.verdict == HWNAS_SLOWER
                                           ? ", twice"
                                           : ", at the second look"
                                     : "");
}

void hwnas_baseline_text(hwnas_str *out, const hwnas_baseline *b)
{
    static const struct {
        const char *heading;
        hwnas_grid_side side;
    } columns[] = {
        {"model", HWNAS_GRID_LEFT},      {"device", HWNAS_GRID_LEFT},
        {"batch", HWNAS_GRID_RIGHT},     {"threads", HWNAS_GRID_RIGHT},
        {"streams", HWNAS_GRID_RIGHT},   {"dtype", HWNAS_GRID_LEFT},
        {"then ms", HWNAS_GRID_RIGHT},   {"now ms", HWNAS_GRID_RIGHT},
        {"now / then", HWNAS_GRID_LEFT}, {"verdict", HWNAS_GRID_LEFT},
    };
    hwnas_grid grid = {0};
    char *doubt = hwnas_baseline_doubt(b);
    hwnas_str_addf(out, "p50 against that of %s, tolerance %g %%\n\n", b->before->date,
                   100 * b->tolerance);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        hwnas_grid_column(&grid, columns[i].heading, columns[i].side);
    for (size_t i = 0; i < b->n; i++)
        put_row(&grid, &b->rows[i]);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out,
                  "\n[ ] 95 % interval of the ratio; ambiguous: it reaches over the tolerance, "
                  "or a measurement was disturbed (?)\n");
    if (doubt)
        hwnas_str_addf(out, "not the same machine: %s\n", doubt);
    free(doubt);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *row_json(const hwnas_baseline_row *row)
{
    const hwnas_profile_row *before = row->before;
    json_t *json = json_pack("{s:s, s:s?, s:s, s:i, s:i, s:i, s:s, s:f, s:b, s:s, s:s?}", "model",
                             before->model, "arch", before->arch, "device", before->device, "batch",
                             before->batch, "threads", before->threads, "streams", before->streams,
                             "dtype", hwnas_profile_row_dtype(before), "then_p50_seconds",
                             before->m.p50, "then_unstable", before->m.is_unstable, "verdict",
                             verdict_of(row), "message", row->trouble);
    if (row->trouble)
        return json;
    json_t *judged = json_pack("{s:f, s:b, s:f, s:o, s:o, s:i}", "now_p50_seconds", row->now.m.p50,
                               "now_unstable", row->now.m.is_unstable, "ratio",
                               row->judgement.ratio, "ratio_low", number(row->judgement.low),
                               "ratio_high", number(row->judgement.high), "tries", row->n_tries);
    json_object_update(json, judged);
    json_decref(judged);
    return json;
}

json_t *hwnas_baseline_json(const hwnas_baseline *b)
{
    json_t *rows = json_array();
    char *doubt = hwnas_baseline_doubt(b);
    for (size_t i = 0; i < b->n; i++)
        json_array_append_new(rows, row_json(&b->rows[i]));
    json_t *json = json_pack("{s:s, s:i, s:s, s:f, s:s?, s:o}", "format", "hwnas.baseline",
                             "version", 1, "recorded", b->before->date, "tolerance", b->tolerance,
                             "doubt", doubt, "rows", rows);
    free(doubt);
    return json;
}
