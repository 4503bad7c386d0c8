#include "report/profile_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/fields.h"
#include "report/grid.h"
#include "report/precision_notes.h"
#include "report/thread_notes.h"
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
static bool is_wide(const hwnas_profile_row *row)
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
        hwnas_grid_cell(grid, "-%s", row->m.is_unstable ? " ?" : is_wide(row) ? " ~" : "");
        return;
    }
    hwnas_grid_cell(grid, "[%.*f, %.*f]%s", decimals, row->m.p50_low / scale, decimals,
                    row->m.p50_high / scale,
                    row->m.is_unstable   ? " ?"
                    : row->m.is_cpu_time ? " c"
                    : is_wide(row)       ? " ~"
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

static void add_device(hwnas_str *out, const hwnas_profile_device *device)
{
    const hwnas_device_info *info = &device->info;
    hwnas_str_addf(out, "%s: %s%s%s%s%s\n", device->spelling, info->name,
                   *info->library ? ", " : "", info->library, *info->isa ? ", " : "", info->isa);
}

static void add_setting(hwnas_str *out, const hwnas_profile_row *row)
{
    hwnas_str_addf(out, "%s, %s, batch %d, %d thread%s, %s: ", row->model, row->device, row->batch,
                   row->threads, row->threads == 1 ? "" : "s", hwnas_profile_row_dtype(row));
}

static const char *doubt_of(const hwnas_profile_row *row)
{
    return row->status == HWNAS_OK ? row->doubt : NULL;
}

static const char *unverified_of(const hwnas_profile_row *row)
{
    return row->unverified;
}

/* How many rows of a device say the same as this one; 0: one above does, so it is said already. */
static size_t rows_that_say(const hwnas_profile *profile, size_t at,
                            const char *(*words_of)(const hwnas_profile_row *row))
{
    const char *words = words_of(&profile->rows[at]);
    size_t n = 0;
    for (size_t i = 0; i < profile->n_rows && words; i++) {
        const char *other = words_of(&profile->rows[i]);
        if (!other || strcmp(other, words) ||
            strcmp(profile->rows[i].device, profile->rows[at].device))
            continue;
        if (i < at)
            return 0;
        n++;
    }
    return n;
}

static void add_doubts(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        const size_t n = rows_that_say(profile, i, doubt_of);
        if (!n)
            continue;
        hwnas_str_add(out, "? ");
        if (n > 1)
            hwnas_str_addf(out, "%zu rows, the first of which is ", n);
        add_setting(out, row);
        hwnas_str_addf(out, "%s%s%s\n", row->doubt, row->cause ? "; " : "",
                       row->cause ? row->cause : "");
    }
}

/* What a device's clock did under its power limit is no doubt, but explains the figure. */
static void add_power(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        if (row->status != HWNAS_OK || row->doubt || !row->throttle)
            continue;
        add_setting(out, row);
        hwnas_str_addf(out, "%s held the clock down", row->throttle);
        if (!isnan(row->m.hertz))
            hwnas_str_addf(out, " to %.0f MHz", row->m.hertz * 1e-6);
        hwnas_str_add(out, "\n");
    }
}

/* A profile is of one mode; figures of another than `hot` are no news of a slower network. */
static void add_mode(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        if (row->status != HWNAS_OK)
            continue;
        if (row->m.mode != HWNAS_HOT) {
            hwnas_str_addf(out, "mode %s", row->mode);
            if (!isnan(row->mode_seconds))
                hwnas_str_addf(out, ", %g s", row->mode_seconds);
            hwnas_str_add(out, "\n");
        }
        return;
    }
}

/* What throttling shows in. */
static void add_ends(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        if (row->status != HWNAS_OK || isnan(row->m.p50_first))
            continue;
        add_setting(out, row);
        hwnas_str_addf(out, "p50 %.4g ms in the first tenth, %.4g ms in the last, %.3f times%s%s\n",
                       row->m.p50_first * MS, row->m.p50_last * MS,
                       row->m.p50_last / row->m.p50_first, row->cause ? "; " : "",
                       row->cause ? row->cause : "");
    }
}

/* How many results were compared with a reference, and how far off they were. */
static void add_verified(hwnas_str *out, const hwnas_profile *profile)
{
    size_t n = 0, n_beyond = 0;
    double largest = 0;
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        if (!row->verified_against || row->status == HWNAS_E_WRONG_RESULT)
            continue;
        n++;
        n_beyond += strstr(row->verified_against, "where values fit") != NULL;
        largest = fmax(largest, row->verified_error);
    }
    if (n)
        hwnas_str_addf(out, "verified: %zu of %zu rows against a reference, largest error %.1g\n",
                       n, profile->n_rows, largest);
    if (n_beyond)
        hwnas_str_addf(out, "%zu of these where values fit f16 alone: others overflow on the way\n",
                       n_beyond);
    for (size_t i = 0; i < profile->n_rows; i++)
        if (rows_that_say(profile, i, unverified_of))
            hwnas_str_addf(out, "not verified on %s: %s\n", profile->rows[i].device,
                           profile->rows[i].unverified);
}

static bool is_cpu_time(const hwnas_profile_row *row)
{
    return row->status == HWNAS_OK && row->m.is_cpu_time && !row->m.is_unstable;
}

void hwnas_slow_code_line(hwnas_str *out, const hwnas_profile_row *row)
{
    if (row->status != HWNAS_OK || !hwnas_slow_code_matters(&row->slow))
        return;
    char *step = hwnas_slow_code_step(&row->slow);
    hwnas_str_add(out, "! ");
    add_setting(out, row);
    hwnas_str_addf(out,
                   "%.0f %% of the time is slow code, most of it %s: a fast runtime takes less\n",
                   100 * row->slow.share, step);
    free(step);
}

/* What stands behind an interval, in words. */
static void add_marks(hwnas_str *out, const hwnas_profile *profile)
{
    bool has_wide = false, has_cpu_time = false;
    for (size_t i = 0; i < profile->n_rows; i++) {
        has_cpu_time |= is_cpu_time(&profile->rows[i]);
        has_wide |= is_wide(&profile->rows[i]) && !is_cpu_time(&profile->rows[i]);
    }
    if (has_wide)
        hwnas_str_add(out, "~ the time was over before the interval was as narrow as asked: more "
                           "--seconds make it so\n");
    if (has_cpu_time)
        hwnas_str_add(out,
                      "c other programs had the core most of the time: CPU time of the thread, "
                      "usually 1 to 8 % longer than its\n  latency on a quiet machine\n");
}

static void fill_table(hwnas_grid *grid, const hwnas_profile *profile, const units *u)
{
    for (const struct column *c = columns; c->heading; c++)
        if (!c->is_shown || c->is_shown(profile))
            put_heading(grid, c, u);
    for (size_t i = 0; i < profile->n_rows; i++)
        put_row(grid, profile, &profile->rows[i], u);
}

void hwnas_profile_markdown(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_grid grid = {0};
    const units u = find_units(profile);
    fill_table(&grid, profile, &u);
    hwnas_grid_markdown(out, &grid);
    hwnas_grid_done(&grid);
}

void hwnas_profile_text(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_grid grid = {0};
    const units u = find_units(profile);
    for (size_t i = 0; i < profile->n_devices; i++)
        add_device(out, &profile->devices[i]);
    add_mode(out, profile);
    hwnas_str_add(out, "\n");
    fill_table(&grid, profile, &u);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_addf(
        out,
        "\ncompile and first run in ms; %s are weights and buffers%s%s; '-': too few "
        "samples to carry it\n",
        u.memory.unit, has_peak(profile) ? ", peak those of the whole process" : "",
        has_lookups(profile) ? "; cached: compiled plans that were kept, of those asked for" : "");
    add_marks(out, profile);
    add_ends(out, profile);
    add_verified(out, profile);
    hwnas_precision_notes(out, profile);
    hwnas_thread_notes(out, profile);
    for (size_t i = 0; i < profile->n_rows; i++)
        hwnas_slow_code_line(out, &profile->rows[i]);
    add_doubts(out, profile);
    add_power(out, profile);
}

void hwnas_profile_csv_row(hwnas_str *out, const hwnas_profile_row *row)
{
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++) {
        if (f != hwnas_profile_fields)
            hwnas_str_add(out, ",");
        if (hwnas_field_applies(f, row))
            hwnas_csv_value(out, hwnas_field_json(f, row));
    }
    hwnas_str_add(out, "\n");
}

void hwnas_profile_csv(hwnas_str *out, const hwnas_profile *profile)
{
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++)
        hwnas_str_addf(out, "%s%s", f == hwnas_profile_fields ? "" : ",", f->column);
    hwnas_str_add(out, "\n");
    for (size_t i = 0; i < profile->n_rows; i++)
        hwnas_profile_csv_row(out, &profile->rows[i]);
}
