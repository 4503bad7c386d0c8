#include "report/optimized_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/grid.h"
#include "trial/metric.h"

void hwnas_optimized_free(hwnas_optimized *optimized)
{
    if (!optimized)
        return;
    free(optimized->model);
    free(optimized->code);
    free(optimized);
}

static void add_estimate(hwnas_grid *grid, const hwnas_estimate_95 *e, double unit, int decimals)
{
    hwnas_grid_cell(grid, "%.*f [%.*f, %.*f]", decimals, e->value / unit, decimals, e->low / unit,
                    decimals, e->high / unit);
}

static void add_count(hwnas_grid *grid, int64_t original, int64_t best)
{
    const double unit = 1e6;
    const int decimals = hwnas_grid_decimals((double)original / unit);
    hwnas_grid_number(grid, decimals, (double)original / unit);
    hwnas_grid_number(grid, decimals, (double)best / unit);
    hwnas_grid_cell(grid, "%.2f x", (double)best / (double)original);
}

void hwnas_optimized_text(hwnas_str *out, const hwnas_optimized *o)
{
    const hwnas_optimized_row *a = &o->original, *b = &o->best;
    const hwnas_metric latency = hwnas_metric_shown(hwnas_metric_of(HWNAS_LATENCY),
                                                    fmax(a->latency.value, b->latency.value)),
                       memory = hwnas_metric_shown(hwnas_metric_of(HWNAS_PEAK_BYTES),
                                                   (double)a->costs.peak_bytes);
    const int decimals = hwnas_grid_decimals(a->latency.value / latency.scale);
    hwnas_grid grid = {0};
    hwnas_grid_column(&grid, "", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "original", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "optimized", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "change", HWNAS_GRID_RIGHT);
    hwnas_grid_cell(&grid, "accuracy %%");
    add_estimate(&grid, &a->tested, 1, 2);
    add_estimate(&grid, &b->tested, 1, 2);
    hwnas_grid_cell(&grid, "%+.2f points",
                    hwnas_shown_difference(b->tested.value - a->tested.value, 2));
    hwnas_grid_cell(&grid, "  of the search %%");
    hwnas_grid_number(&grid, 2, a->searched.value);
    hwnas_grid_number(&grid, 2, b->searched.value);
    hwnas_grid_cell(&grid, "%+.2f points",
                    hwnas_shown_difference(b->searched.value - a->searched.value, 2));
    hwnas_grid_cell(&grid, "latency p50 %s", latency.unit);
    add_estimate(&grid, &a->latency, latency.scale, decimals);
    add_estimate(&grid, &b->latency, latency.scale, decimals);
    hwnas_grid_cell(&grid, "%.2f x", b->latency.value / a->latency.value);
    if (b->precision != a->precision) {
        hwnas_grid_cell(&grid, "precision");
        hwnas_grid_cell(&grid, "%s", hwnas_precision_name(a->precision));
        hwnas_grid_cell(&grid, "%s", hwnas_precision_name(b->precision));
        hwnas_grid_cell(&grid, "%s", "");
    }
    hwnas_grid_cell(&grid, "MMACs");
    add_count(&grid, a->costs.macs, b->costs.macs);
    hwnas_grid_cell(&grid, "M params");
    add_count(&grid, a->costs.params, b->costs.params);
    hwnas_grid_cell(&grid, "memory %s", memory.unit);
    hwnas_grid_number(&grid, 2, (double)a->costs.peak_bytes / memory.scale);
    hwnas_grid_number(&grid, 2, (double)b->costs.peak_bytes / memory.scale);
    hwnas_grid_cell(&grid, "%.2f x", (double)b->costs.peak_bytes / (double)a->costs.peak_bytes);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_addf(
        out,
        "accuracy: on %" PRId64
        " samples that neither the search nor the weights have seen; [ ] 95 %% interval\n"
        "latency: both measured anew, in turns\n\n%s\n",
        o->n_test, o->code);
}

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *estimate(const hwnas_estimate_95 *e)
{
    return json_pack("{s:o, s:o, s:o}", "value", number(e->value), "low", number(e->low), "high",
                     number(e->high));
}

static json_t *row(const hwnas_optimized_row *r)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:s}", "accuracy", estimate(&r->tested),
                     "accuracy_of_search", estimate(&r->searched), "latency.p50",
                     estimate(&r->latency), "macs", (json_int_t)r->costs.macs, "params",
                     (json_int_t)r->costs.params, "peak_bytes", (json_int_t)r->costs.peak_bytes,
                     "precision", hwnas_precision_name(r->precision));
}

json_t *hwnas_optimized_json(const hwnas_optimized *o)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:I, s:o, s:o}", "format", "hwnas.optimized", "version",
                     1, "model", o->model, "arch", o->code, "test_samples", (json_int_t)o->n_test,
                     "original", row(&o->original), "optimized", row(&o->best));
}
