#include "report/mix_report.h"

#include <math.h>
#include <stdlib.h>

#include "graph/op.h"
#include "report/grid.h"
#include "trial/metric.h"

enum { MOST_LAYERS = 20 }; /* that text shows */

void hwnas_mix_report_free(hwnas_mix_report *report)
{
    if (!report)
        return;
    hwnas_mix_done(&report->mix);
    free(report->model);
    free(report->file);
    free(report);
}

/* ---- Text ---- */

static void add_percent(hwnas_grid *grid, double share)
{
    if (isinf(share))
        hwnas_grid_cell(grid, "not finite");
    else
        hwnas_grid_cell(grid, "%.2f %%", 100 * share);
}

/* In percent; NaN: not defined. */
static void add_accuracy(hwnas_grid *grid, double percent)
{
    if (isnan(percent))
        hwnas_grid_cell(grid, "-");
    else
        hwnas_grid_cell(grid, "%.2f %%", percent);
}

/* A choice may have layers in bf16. */
static bool knows_bf16(const hwnas_mix *mix)
{
    return !isnan(mix->ways[HWNAS_MIX_BF16].time.p50);
}

static void add_way(hwnas_grid *grid, const hwnas_mix_report *r, int w, const hwnas_metric *latency)
{
    const hwnas_mix_way *way = &r->mix.ways[w];
    const double f32 = r->mix.ways[HWNAS_MIX_F32].time.p50;
    const int decimals = hwnas_grid_decimals(f32 / latency->scale);
    if (isnan(way->time.p50))
        return;
    hwnas_grid_cell(grid, "%s", way->name);
    hwnas_grid_cell(grid, "%d", way->n_s8);
    if (knows_bf16(&r->mix))
        hwnas_grid_cell(grid, "%d", way->n_bf16);
    hwnas_grid_number(grid, decimals, way->time.p50 / latency->scale);
    hwnas_grid_cell(grid, "[%.*f, %.*f]", decimals, way->time.low / latency->scale, decimals,
                    way->time.high / latency->scale);
    hwnas_grid_cell(grid, "%.2f x", way->time.p50 / f32);
    add_percent(grid, way->error.largest);
    if (r->metric) {
        add_accuracy(grid, way->accuracy.value);
        add_accuracy(grid, way->held_out.value);
        if (isnan(way->held_out.low))
            hwnas_grid_cell(grid, "-");
        else
            hwnas_grid_cell(grid, "[%.2f, %.2f]", way->held_out.low, way->held_out.high);
    }
    hwnas_grid_cell(grid, "%s", w == r->mix.chosen ? "written" : way->fits ? "" : "over the limit");
}

static void add_ways(hwnas_str *out, const hwnas_mix_report *r)
{
    const hwnas_metric latency =
        hwnas_metric_shown(hwnas_metric_of(HWNAS_LATENCY), r->mix.ways[HWNAS_MIX_F32].time.p50);
    hwnas_grid grid = {0};
    char *heading = hwnas_printf("p50 %s", latency.unit);
    hwnas_grid_column(&grid, "", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "layers in s8", HWNAS_GRID_RIGHT);
    if (knows_bf16(&r->mix))
        hwnas_grid_column(&grid, "in bf16", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, heading, HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "95 % interval", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "of f32", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "error", HWNAS_GRID_RIGHT);
    if (r->metric) {
        hwnas_grid_column(&grid, r->metric, HWNAS_GRID_RIGHT);
        hwnas_grid_column(&grid, "held out", HWNAS_GRID_RIGHT);
        hwnas_grid_column(&grid, "95 % interval", HWNAS_GRID_LEFT);
    }
    hwnas_grid_column(&grid, "", HWNAS_GRID_LEFT);
    for (int i = 0; i < HWNAS_MIX_WAYS; i++)
        add_way(&grid, r, i, &latency);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    free(heading);
}

static const char *name_of(const hwnas_mix *mix, const hwnas_mix_layer *layer)
{
    return mix->folded->nodes[layer->node].name;
}

static void add_floats(hwnas_str *out, const hwnas_mix *mix)
{
    hwnas_grid grid = {0};
    int n = 0;
    const bool has_bf16 = knows_bf16(mix);
    hwnas_grid_column(&grid, "layers not in s8", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "in", HWNAS_GRID_LEFT);
    hwnas_grid_column(&grid, "f32 us", HWNAS_GRID_RIGHT);
    if (has_bf16)
        hwnas_grid_column(&grid, "bf16 us", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "s8 us", HWNAS_GRID_RIGHT);
    if (has_bf16)
        hwnas_grid_column(&grid, "error of bf16", HWNAS_GRID_RIGHT);
    hwnas_grid_column(&grid, "error of s8", HWNAS_GRID_RIGHT);
    for (size_t i = 0; i < mix->n_layers; i++) {
        const hwnas_mix_layer *layer = &mix->layers[i];
        if (layer->kind == HWNAS_S8 || n++ >= MOST_LAYERS)
            continue;
        hwnas_grid_cell(&grid, "%s", name_of(mix, layer));
        hwnas_grid_cell(&grid, "%s", hwnas_precision_name(layer->kind));
        hwnas_grid_number(&grid, 1, 1e6 * layer->f32_seconds);
        if (has_bf16)
            hwnas_grid_number(&grid, 1, 1e6 * layer->bf16_seconds);
        hwnas_grid_number(&grid, 1, 1e6 * layer->s8_seconds);
        if (has_bf16)
            add_percent(&grid, layer->bf16_alone.largest);
        add_percent(&grid, layer->alone.largest);
    }
    if (n) {
        hwnas_str_add(out, "\n");
        hwnas_grid_text(out, &grid);
    }
    if (n > MOST_LAYERS)
        hwnas_str_addf(out, "and %d more (--json has all)\n", n - MOST_LAYERS);
    hwnas_grid_done(&grid);
}

void hwnas_mix_text(hwnas_str *out, const hwnas_mix_report *r)
{
    hwnas_str_addf(out, "%s, cpu, batch %d: %zu layer%s that can be in s8", r->model, r->batch,
                   r->mix.n_layers, r->mix.n_layers == 1 ? "" : "s");
    if (r->metric)
        hwnas_str_addf(out, "; %s at most %.3g point%s below f32", r->metric, r->max_loss,
                       r->max_loss == 1 ? "" : "s");
    if (isfinite(r->max_error))
        hwnas_str_addf(out, "; error at most %.3g %%", 100 * r->max_error);
    hwnas_str_add(out, "\n\n");
    add_ways(out, r);
    add_floats(out, &r->mix);
    if (r->n_samples)
        hwnas_str_addf(out,
                       "\nerror: largest difference from f32 on %lld sample%s, of the largest "
                       "output\n",
                       r->n_samples, r->n_samples == 1 ? "" : "s");
    else
        hwnas_str_add(out, "\nerror: largest difference from f32 on random inputs, of the largest "
                           "output\n");
    if (r->metric)
        hwnas_str_addf(out,
                       "%s: on the same, which choose; held out: on %lld other%s, with its "
                       "interval\n",
                       r->metric, r->n_held_out, r->n_held_out == 1 ? "" : "s");
}

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *ways_json(const hwnas_mix *mix)
{
    json_t *out = json_array();
    for (int i = 0; i < HWNAS_MIX_WAYS; i++) {
        const hwnas_mix_way *way = &mix->ways[i];
        if (!isnan(way->time.p50))
            json_array_append_new(
                out,
                json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, "
                          "s:b}",
                          "name", way->name, "floats", hwnas_precision_name(way->floats),
                          "layers_in_s8", way->n_s8, "layers_in_bf16", way->n_bf16, "p50_seconds",
                          number(way->time.p50), "p50_low_seconds", number(way->time.low),
                          "p50_high_seconds", number(way->time.high), "largest_error",
                          number(way->error.largest), "noise", number(way->error.noise), "accuracy",
                          number(way->accuracy.value), "held_out_accuracy",
                          number(way->held_out.value), "held_out_low", number(way->held_out.low),
                          "held_out_high", number(way->held_out.high), "fits", way->fits, "written",
                          i == mix->chosen));
    }
    return out;
}

static json_t *layers_json(const hwnas_mix *mix)
{
    json_t *out = json_array();
    for (size_t i = 0; i < mix->n_layers; i++) {
        const hwnas_mix_layer *layer = &mix->layers[i];
        const hwnas_node *node = &mix->folded->nodes[layer->node];
        json_array_append_new(
            out, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", node->name,
                           "op", node->op->name, "dtype", hwnas_precision_name(layer->kind),
                           "f32_seconds", number(layer->f32_seconds), "bf16_seconds",
                           number(layer->bf16_seconds), "s8_seconds", number(layer->s8_seconds),
                           "largest_error_alone", number(layer->alone.largest), "noise_alone",
                           number(layer->alone.noise), "largest_bf16_error_alone",
                           number(layer->bf16_alone.largest), "bf16_noise_alone",
                           number(layer->bf16_alone.noise)));
    }
    return out;
}

json_t *hwnas_mix_json(const hwnas_mix_report *r)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:s?, s:o, s:o, s:b, s:o, s:o}",
                     "format", "hwnas.mix", "version", 1, "model", r->model, "file", r->file,
                     "device", "cpu", "batch", r->batch, "threads", r->threads, "samples",
                     (json_int_t)r->n_samples, "held_out", (json_int_t)r->n_held_out, "metric",
                     r->metric, "max_loss", number(r->max_loss), "max_error", number(r->max_error),
                     "unstable", r->mix.is_unstable, "ways", ways_json(&r->mix), "layers",
                     layers_json(&r->mix));
}
