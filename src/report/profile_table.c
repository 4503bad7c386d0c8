/* profile_table.c: the columns of a profile. */
#include "report/profile_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial/metric.h"

#define MS 1e3

/* In which the columns of a table are. */
typedef struct units {
    hwnas_metric latency, memory;
} units;

static units find_units(const hwnas_profile *p)
{
    double seconds = 0, bytes = 0;
    for (size_t i = 0; i < p->n_rows; i++) {
        const hwnas_profile_row *row = &p->rows[i];
        if (row->status != HWNAS_OK)
            continue;
        seconds = fmax(seconds, row->m.p50);
        bytes = fmax(bytes, (double)row->m.memory_bytes);
    }
    return (units){.latency = hwnas_metric_shown(hwnas_metric_of(HWNAS_LATENCY), seconds),
                   .memory = hwnas_metric_shown(hwnas_metric_of(HWNAS_HELD_BYTES), bytes)};
}

static void put_model(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%s", row->model);
}

static void put_device(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%s", row->device);
}

static void put_batch(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%d", row->batch);
}

static void put_shape(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%s", row->shape ? row->shape : "-");
}

static void put_threads(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%d", row->threads);
}

static void put_dtype(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%s", hwnas_profile_row_dtype(row));
}

static void put_streams(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_cell(grid, "%d", row->streams);
}

/* Latencies of a row have the decimals of its median. */
static void put_latency(hwnas_grid *grid, const hwnas_profile_row *row, const units *u,
                        double seconds)
{
    const double scale = u->latency.scale;
    hwnas_grid_number(grid, hwnas_grid_decimals(row->m.p50 / scale), seconds / scale);
}

static void put_p50(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    put_latency(grid, row, u, row->m.p50);
}

/* The time was over before the interval was as narrow as asked. Copies and the mode `sustained` go
 * on for all of it in any case. */
bool hwnas_profile_is_wide(const hwnas_profile_row *row)
{
    const bool is_window = row->command && strstr(row->command, " --streams ");
    /* A row that was recorded has these as words alone. */
    const bool is_over = row->stop && !strcmp(row->stop, hwnas_stop_name(HWNAS_STOP_BUDGET));
    const bool goes_on = row->mode && !strcmp(row->mode, hwnas_mode_name(HWNAS_SUSTAINED));
    return row->status == HWNAS_OK && is_over && !row->m.is_unstable && !goes_on && !is_window;
}

static void put_interval(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    const double scale = u->latency.scale;
    const int decimals = hwnas_grid_decimals(row->m.p50 / scale);
    if (isnan(row->m.p50_low) || isnan(row->m.p50_high)) {
        hwnas_grid_cell(grid, "-%s",
                        row->m.is_unstable           ? " ?"
                        : hwnas_profile_is_wide(row) ? " ~"
                                                     : "");
        return;
    }
    hwnas_grid_cell(grid, "[%.*f, %.*f]%s", decimals, row->m.p50_low / scale, decimals,
                    row->m.p50_high / scale,
                    row->m.is_unstable           ? " ?"
                    : row->m.is_cpu_time         ? " c"
                    : hwnas_profile_is_wide(row) ? " ~"
                                                 : "");
}

static void put_p90(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    put_latency(grid, row, u, row->m.tails[HWNAS_P90].value);
}

static void put_p99(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    put_latency(grid, row, u, row->m.tails[HWNAS_P99].value);
}

static void put_throughput(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_number(grid, 1, row->items_per_second);
}

static void put_macs(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    const double macs_per_item = (double)row->costs.macs / row->batch;
    hwnas_grid_number(grid, 1, macs_per_item * row->items_per_second / 1e9);
}

static void put_energy(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    const double mj = 1e3 * row->m.energy / row->batch;
    hwnas_grid_number(grid, hwnas_grid_decimals(mj), mj);
}

static void put_memory(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    const double bytes = (double)row->m.memory_bytes; /* 0: the device does not say */
    hwnas_grid_number(grid, 1, bytes > 0 ? bytes / u->memory.scale : NAN);
}

static void put_peak(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    const double bytes = (double)row->m.peak_bytes;
    hwnas_grid_number(grid, 1, bytes / u->memory.scale);
}

static void put_compile(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_number(grid, 1, row->m.compile_seconds * MS);
}

static void put_cached(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    if (row->m.cache_lookups)
        hwnas_grid_cell(grid, "%zu/%zu", row->m.cache_hits, row->m.cache_lookups);
    else
        hwnas_grid_number(grid, 0, NAN);
}

static void put_first(hwnas_grid *grid, const hwnas_profile_row *row, const units *u)
{
    (void)u;
    hwnas_grid_number(grid, 1, row->m.first_run_seconds * MS);
}

/* Columns that say nothing new in this profile are left out. */
static bool has_devices(const hwnas_profile *p)
{
    return p->n_devices > 1;
}

static bool has_shapes(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].shape)
            return true;
    return false;
}

static bool has_precisions(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].precision != HWNAS_F32 || p->rows[i].mixing)
            return true;
    return false;
}

static bool has_streams(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].streams != 1)
            return true;
    return false;
}

static bool has_energy(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].status == HWNAS_OK && !isnan(p->rows[i].m.energy))
            return true;
    return false;
}

static bool has_peak(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].status == HWNAS_OK && p->rows[i].m.peak_bytes)
            return true;
    return false;
}

static bool has_lookups(const hwnas_profile *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].status == HWNAS_OK && p->rows[i].m.cache_lookups)
            return true;
    return false;
}

static const struct column {
    const char *heading; /* NULL ends the table; one that names a unit does so in the units' own */
    hwnas_grid_side side;
    bool is_setting; /* known before anything is measured; these come first */
    void (*put)(hwnas_grid *grid, const hwnas_profile_row *row, const units *u);
    bool (*is_shown)(const hwnas_profile *profile); /* NULL: always */
} columns[] = {
    {"model", HWNAS_GRID_LEFT, true, put_model, NULL},
    {"device", HWNAS_GRID_LEFT, true, put_device, has_devices},
    {"shape", HWNAS_GRID_LEFT, true, put_shape, has_shapes},
    {"batch", HWNAS_GRID_RIGHT, true, put_batch, NULL},
    {"threads", HWNAS_GRID_RIGHT, true, put_threads, NULL},
    {"dtype", HWNAS_GRID_LEFT, true, put_dtype, has_precisions},
    {"streams", HWNAS_GRID_RIGHT, true, put_streams, has_streams},
    {"p50 ms", HWNAS_GRID_RIGHT, false, put_p50, NULL},
    {"95 % interval", HWNAS_GRID_LEFT, false, put_interval, NULL},
    {"p90 ms", HWNAS_GRID_RIGHT, false, put_p90, NULL},
    {"p99 ms", HWNAS_GRID_RIGHT, false, put_p99, NULL},
    {"items/s", HWNAS_GRID_RIGHT, false, put_throughput, NULL},
    {"GMAC/s", HWNAS_GRID_RIGHT, false, put_macs, NULL},
    {"mJ/item", HWNAS_GRID_RIGHT, false, put_energy, has_energy},
    {"MiB", HWNAS_GRID_RIGHT, false, put_memory, NULL},
    {"peak", HWNAS_GRID_RIGHT, false, put_peak, has_peak},
    {"compile", HWNAS_GRID_RIGHT, false, put_compile, NULL},
    {"cached", HWNAS_GRID_RIGHT, false, put_cached, has_lookups},
    {"first", HWNAS_GRID_RIGHT, false, put_first, NULL},
    {0},
};

static void put_heading(hwnas_grid *grid, const struct column *c, const units *u)
{
    const bool is_latency = hwnas_ends_with(c->heading, " ms");
    char *heading = is_latency ? hwnas_printf("%.*s %s", (int)strcspn(c->heading, " "), c->heading,
                                              u->latency.unit)
                    : strcmp(c->heading, "MiB") ? hwnas_strdup(c->heading)
                                                : hwnas_strdup(u->memory.unit);
    hwnas_grid_column(grid, heading, c->side);
    free(heading);
}

static void put_row(hwnas_grid *grid, const hwnas_profile *profile, const hwnas_profile_row *row,
                    const units *u)
{
    for (const struct column *c = columns; c->heading; c++) {
        if (c->is_shown && !c->is_shown(profile))
            continue;
        if (!c->is_setting && row->status != HWNAS_OK) {
            hwnas_grid_rest(grid, "%s: %s", hwnas_status_name(row->status), row->message);
            return;
        }
        c->put(grid, row, u);
    }
}

void hwnas_profile_table(hwnas_grid *grid, const hwnas_profile *profile)
{
    const units u = find_units(profile);
    for (const struct column *c = columns; c->heading; c++)
        if (!c->is_shown || c->is_shown(profile))
            put_heading(grid, c, &u);
    for (size_t i = 0; i < profile->n_rows; i++)
        put_row(grid, profile, &profile->rows[i], &u);
}

void hwnas_profile_legend(hwnas_str *out, const hwnas_profile *profile)
{
    const units u = find_units(profile);
    hwnas_str_addf(
        out,
        "compile and first run in ms; %s are weights and buffers%s%s; '-': too few samples to "
        "carry it\n",
        u.memory.unit, has_peak(profile) ? ", peak those of the whole process" : "",
        has_lookups(profile) ? "; cached: compiled plans that were kept, of those asked for" : "");
}
