#include "report/layer_table.h"

#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "profile/fields.h"
#include "profile/layers.h"
#include "report/grid.h"

enum { MAX_NAME = 56 }; /* characters of a name in the table; JSON and CSV have it whole */

/* What follows from a layer's facts. */
typedef struct figures {
    double share;     /* of the whole */
    double flops;     /* a second; NaN: nothing to multiply */
    double bandwidth; /* bytes a second; NaN: nothing to move */
    double intensity; /* FLOP a byte */
    double roof;      /* share of what the roofline allows; NaN: unknown */
} figures;

static double ratio(double a, double b)
{
    return a > 0 && b > 0 ? a / b : NAN;
}

static figures figures_of(const hwnas_layers *layers, const hwnas_layer *layer)
{
    const double flop = 2 * (double)layer->macs, seconds = layer->time.p50;
    return (figures){.share = seconds / layers->whole.p50,
                     .flops = ratio(flop, seconds),
                     .bandwidth = ratio(layer->bytes, seconds),
                     .intensity = ratio(flop, layer->bytes),
                     .roof = ratio(layer->least_seconds, seconds)};
}

static void put_name(hwnas_grid *grid, const hwnas_layer *layer)
{
    const size_t length = strlen(layer->name);
    if (length <= MAX_NAME)
        hwnas_grid_cell(grid, "%s", layer->name);
    else /* its end says most */
        hwnas_grid_cell(grid, "...%s", layer->name + length - (MAX_NAME - 3));
}

static void put_layer(hwnas_grid *grid, const hwnas_layers *layers, const hwnas_layer *layer)
{
    const figures f = figures_of(layers, layer);
    const double ms = 1e3 * layer->time.p50;
    put_name(grid, layer);
    hwnas_grid_cell(grid, "%s", layer->ops);
    hwnas_grid_number(grid, hwnas_grid_decimals(ms), ms);
    hwnas_grid_number(grid, 1, 100 * f.share);
    hwnas_grid_number(grid, 2, layer->macs ? 1e-6 * (double)layer->macs : NAN);
    hwnas_grid_number(grid, 1, 1e-9 * f.flops);
    hwnas_grid_number(grid, 3, 1e-6 * layer->bytes);
    hwnas_grid_number(grid, 1, 1e-9 * f.bandwidth);
    hwnas_grid_number(grid, 1, f.intensity);
    hwnas_grid_number(grid, 0, 100 * f.roof);
    hwnas_grid_cell(grid, "%s", hwnas_bound_name(layer->bound));
    hwnas_grid_cell(grid, "%s", layer->how);
}

/* A profile that others wrote may lack the interval. */
static void add_interval(hwnas_str *out, int decimals, double low, double high)
{
    if (!isnan(low) && !isnan(high))
        hwnas_str_addf(out, " [%.*f, %.*f]", decimals, low, decimals, high);
}

static void add_limits(hwnas_str *out, const hwnas_roofline *r)
{
    const hwnas_rate *memory = hwnas_roofline_memory(r);
    hwnas_str_addf(out, "limits: %.1f GFLOP/s", 1e-9 * r->flops.p50);
    add_interval(out, 1, 1e-9 * r->flops.low, 1e-9 * r->flops.high);
    if (r->s8_flops.p50 > 0)
        hwnas_str_addf(out, ", in s8 %.1f", 1e-9 * r->s8_flops.p50);
    if (r->bf16_flops.p50 > 0)
        hwnas_str_addf(out, ", in bf16 %.1f", 1e-9 * r->bf16_flops.p50);
    hwnas_str_addf(out, ", memory %.1f GB/s", 1e-9 * memory->p50);
    add_interval(out, 1, 1e-9 * memory->low, 1e-9 * memory->high);
    hwnas_str_addf(out, ", more in caches%s\n",
                   r->is_unstable ? "; the machine was disturbed meanwhile: hwnas devices --refresh"
                                  : "");
}

static void fill_table(hwnas_grid *grid, const hwnas_layers *layers)
{
    static const struct {
        const char *heading;
        hwnas_grid_side side;
    } columns[] = {
        {"layer", HWNAS_GRID_LEFT},      {"operators", HWNAS_GRID_LEFT},
        {"ms", HWNAS_GRID_RIGHT},        {"% of whole", HWNAS_GRID_RIGHT},
        {"M MACs", HWNAS_GRID_RIGHT},    {"GFLOP/s", HWNAS_GRID_RIGHT},
        {"MB", HWNAS_GRID_RIGHT},        {"GB/s", HWNAS_GRID_RIGHT},
        {"FLOP/byte", HWNAS_GRID_RIGHT}, {"% of roof", HWNAS_GRID_RIGHT},
        {"bound by", HWNAS_GRID_LEFT},   {"as", HWNAS_GRID_LEFT},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        hwnas_grid_column(grid, columns[i].heading, columns[i].side);
    for (size_t i = 0; i < layers->n; i++)
        put_layer(grid, layers, &layers->layers[i]);
}

static void add_heading(hwnas_str *out, const hwnas_profile_row *row)
{
    hwnas_str_addf(out, "%s, %s%s%s, batch %d, %d thread%s, %s", row->model, row->device,
                   row->shape ? ", " : "", row->shape ? row->shape : "", row->batch, row->threads,
                   row->threads == 1 ? "" : "s", hwnas_profile_row_dtype(row));
}

static void add_sum(hwnas_str *out, const hwnas_layers *layers)
{
    const hwnas_timing *whole = &layers->whole, *beside = &layers->ratio;
    hwnas_str_addf(out, "sum of the %zu parts %.4g ms, the whole %.4g ms", layers->n,
                   1e3 * layers->sum, 1e3 * whole->p50);
    if (!isnan(whole->low) && !isnan(whole->high))
        hwnas_str_addf(out, " [%.4g, %.4g]", 1e3 * whole->low, 1e3 * whole->high);
    hwnas_str_addf(out, ": %.3f", layers->sum / whole->p50);
    if (!isnan(beside->p50)) {
        hwnas_str_addf(out, "; side by side %.3f", beside->p50);
        add_interval(out, 3, beside->low, beside->high);
    }
    if (layers->mark > 0)
        hwnas_str_addf(out, "; %.2f us taken off each part for the event behind it",
                       1e6 * layers->mark);
}

static void add_text(hwnas_str *out, const hwnas_layers *layers)
{
    hwnas_grid grid = {0};
    if (layers->has_roofline)
        add_limits(out, &layers->roofline);
    fill_table(&grid, layers);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    add_sum(out, layers);
    hwnas_str_add(out, "\n");
}

static void add_markdown(hwnas_str *out, const hwnas_layers *layers)
{
    hwnas_grid grid = {0};
    hwnas_str line = {0};
    fill_table(&grid, layers);
    hwnas_grid_markdown(out, &grid);
    hwnas_grid_done(&grid);
    if (layers->has_roofline)
        add_limits(&line, &layers->roofline);
    add_sum(&line, layers);
    hwnas_str_add(out, "\n");
    hwnas_markdown_text(out, line.s);
    hwnas_str_add(out, "\n");
    hwnas_str_done(&line);
}

static const char UNTOLD[] = "this device does not tell its steps\n";

void hwnas_layers_text(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        if (!row->layers)
            continue;
        hwnas_str_add(out, "\n");
        add_heading(out, row);
        hwnas_str_add(out, "\n");
        if (row->layers->n)
            add_text(out, row->layers);
        else
            hwnas_str_add(out, UNTOLD);
    }
}

void hwnas_layers_markdown(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        hwnas_str heading = {0};
        if (!row->layers)
            continue;
        add_heading(&heading, row);
        hwnas_str_add(out, "\n## ");
        hwnas_markdown_text(out, heading.s);
        hwnas_str_add(out, "\n\n");
        hwnas_str_done(&heading);
        if (row->layers->n)
            add_markdown(out, row->layers);
        else
            hwnas_str_add(out, UNTOLD);
    }
}

static void add_number(hwnas_str *out, double value)
{
    hwnas_str_addf(out, isnan(value) ? "," : ",%.9g", value);
}

static void add_layer(hwnas_str *out, const hwnas_profile_row *row, const hwnas_layer *layer)
{
    const figures f = figures_of(row->layers, layer);
    const double numbers[] = {layer->time.p50,     layer->time.low, layer->time.high,     f.share,
                              (double)layer->macs, layer->bytes,    layer->weight_bytes,  f.flops,
                              f.bandwidth,         f.intensity,     layer->least_seconds, f.roof};
    hwnas_csv_text(out, row->model);
    hwnas_str_add(out, ",");
    hwnas_csv_text(out, row->device);
    hwnas_str_addf(out, ",%d,%d,%s,%zu,", row->batch, row->threads, hwnas_profile_row_dtype(row),
                   layer->position);
    hwnas_csv_text(out, layer->name);
    hwnas_str_addf(out, ",%s,%s", layer->ops, layer->how);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(out, numbers[i]);
    hwnas_str_addf(out, ",%s,",
                   layer->bound == HWNAS_BOUND_NONE ? "" : hwnas_bound_name(layer->bound));
    hwnas_csv_text(out, row->shape ? row->shape : "");
    hwnas_str_add(out, "\n");
}

void hwnas_layers_csv(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_str_add(out, "model,device,batch,threads,dtype,position,layer,operators,how,p50_s,"
                       "p50_low_s,p50_high_s,share,macs_count,bytes,weight_bytes,flops_per_s,"
                       "bytes_per_s,flop_per_byte,least_s,roofline_share,bound,shape\n");
    for (const hwnas_profile_row *row = profile->rows; row < profile->rows + profile->n_rows; row++)
        for (size_t i = 0; row->layers && i < row->layers->n; i++)
            add_layer(out, row, &row->layers->layers[i]);
}
