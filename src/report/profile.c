/* profile.c: a table for people, a CSV for spreadsheets, JSON for programs. */
#include "report/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1e3
#define MEBI 1048576.0

void hwnas_profile_done(hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++)
        free(profile->rows[i].message);
    free(profile->rows);
}

/* Inferences of single items in a second, one batch after the other. */
static double throughput(const hwnas_profile_row *row)
{
    return row->batch / row->m.p50;
}

/* A number of a column, or an empty place where there is none. */
static void add_cell(hwnas_str *out, int width, int decimals, double value)
{
    if (isnan(value))
        hwnas_str_addf(out, "  %*s", width, "-");
    else
        hwnas_str_addf(out, "  %*.*f", width, decimals, value);
}

static int decimals_of(double ms)
{
    return ms < 1 ? 4 : ms < 10 ? 3 : ms < 100 ? 2 : 1;
}

static void add_row(hwnas_str *out, const hwnas_profile_row *row, int width)
{
    const hwnas_measurement *m = &row->m;
    hwnas_str_addf(out, "%-*s  %5d  %7d", width, row->model, row->batch, row->threads);
    if (row->status != HWNAS_OK) {
        hwnas_str_addf(out, "  %s: %s\n", hwnas_status_name(row->status), row->message);
        return;
    }
    const int decimals = decimals_of(m->p50 * MS);
    char *interval = hwnas_printf("[%.*f, %.*f]%s", decimals, m->p50_low * MS, decimals,
                                  m->p50_high * MS, m->is_unstable ? " ?" : "");
    add_cell(out, 8, decimals, m->p50 * MS);
    hwnas_str_addf(out, "  %-20s", interval);
    add_cell(out, 8, decimals, m->p90 * MS);
    add_cell(out, 8, decimals, m->p99 * MS);
    add_cell(out, 9, 1, throughput(row));
    add_cell(out, 8, 1, (double)row->costs.macs / m->p50 / 1e9);
    add_cell(out, 8, 1, (double)m->memory_bytes / MEBI);
    add_cell(out, 8, 1, m->compile_seconds * MS);
    add_cell(out, 8, 1, m->first_run_seconds * MS);
    hwnas_str_add(out, "\n");
    free(interval);
}

void hwnas_profile_text(hwnas_str *out, const hwnas_profile *profile)
{
    int width = 5;
    bool is_unstable = false;
    for (size_t i = 0; i < profile->n_rows; i++) {
        const int length = (int)strlen(profile->rows[i].model);
        width = length > width ? length : width;
        is_unstable |= profile->rows[i].status == HWNAS_OK && profile->rows[i].m.is_unstable;
    }
    hwnas_str_addf(out, "%s: %s%s%s%s%s\n\n", profile->device, profile->info.name,
                   *profile->info.library ? ", " : "", profile->info.library,
                   *profile->info.isa ? ", " : "", profile->info.isa);
    hwnas_str_addf(out, "%-*s  %5s  %7s  %8s  %-20s  %8s  %8s  %9s  %8s  %8s  %8s  %8s\n", width,
                   "model", "batch", "threads", "p50 ms", "95 % interval", "p90 ms", "p99 ms",
                   "items/s", "GMAC/s", "MiB", "compile", "first");
    for (size_t i = 0; i < profile->n_rows; i++)
        add_row(out, &profile->rows[i], width);
    hwnas_str_add(out, "\ncompile and first run in ms; MiB are weights and buffers; '-': too few "
                       "samples to carry it\n");
    for (size_t i = 0; i < profile->n_rows && is_unstable; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        const char *doubt = row->status == HWNAS_OK ? hwnas_measurement_doubt(&row->m) : NULL;
        if (doubt)
            hwnas_str_addf(out, "? %s, batch %d, %d thread%s: %s\n", row->model, row->batch,
                           row->threads, row->threads == 1 ? "" : "s", doubt);
    }
}

/* A field, in quotes where it needs them (RFC 4180). */
static void add_field(hwnas_str *out, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        hwnas_str_add(out, text);
        return;
    }
    hwnas_str_add(out, "\"");
    for (; *text; text++)
        hwnas_str_addf(out, *text == '"' ? "\"\"" : "%c", *text);
    hwnas_str_add(out, "\"");
}

static void add_number(hwnas_str *out, double value)
{
    hwnas_str_addf(out, isnan(value) ? "," : ",%.9g", value);
}

void hwnas_profile_csv(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_str_add(out, "model,device,batch,threads,status,p50_s,p50_low_s,p50_high_s,p90_s,p99_s,"
                       "items_per_s,params_count,macs_count,memory_bytes,compile_s,first_run_s,"
                       "samples_count,unstable\n");
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        const hwnas_measurement *m = &row->m;
        add_field(out, row->model);
        hwnas_str_add(out, ",");
        add_field(out, profile->device);
        hwnas_str_addf(out, ",%d,%d,%s", row->batch, row->threads, hwnas_status_name(row->status));
        if (row->status != HWNAS_OK) {
            hwnas_str_addf(out, ",,,,,,,%lld,%lld,,,,,\n", (long long)row->costs.params,
                           (long long)row->costs.macs);
            continue;
        }
        const double times[] = {m->p50, m->p50_low, m->p50_high, m->p90, m->p99, throughput(row)};
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            add_number(out, times[k]);
        hwnas_str_addf(out, ",%lld,%lld,%zu", (long long)row->costs.params,
                       (long long)row->costs.macs, m->memory_bytes);
        add_number(out, m->compile_seconds);
        add_number(out, m->first_run_seconds);
        hwnas_str_addf(out, ",%zu,%d\n", m->n_samples, m->is_unstable);
    }
}

static json_t *number_json(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *row_json(const hwnas_profile_row *row)
{
    const hwnas_measurement *m = &row->m;
    json_t *json = json_pack("{s:s, s:i, s:i, s:s, s:I, s:I}", "model", row->model, "batch",
                             row->batch, "threads", row->threads, "status",
                             hwnas_status_name(row->status), "params", (json_int_t)row->costs.params,
                             "macs", (json_int_t)row->costs.macs);
    if (row->status != HWNAS_OK) {
        json_object_set_new(json, "message", json_string(row->message));
        return json;
    }
    json_t *measured = json_pack(
        "{s:f, s:f, s:f, s:o, s:o, s:f, s:I, s:f, s:f, s:I, s:I, s:b, s:s?}", "p50_seconds",
        m->p50, "p50_low_seconds", m->p50_low, "p50_high_seconds", m->p50_high, "p90_seconds",
        number_json(m->p90), "p99_seconds", number_json(m->p99), "items_per_second",
        throughput(row), "memory_bytes", (json_int_t)m->memory_bytes, "compile_seconds",
        m->compile_seconds, "first_run_seconds", m->first_run_seconds, "samples",
        (json_int_t)m->n_samples, "disturbed", (json_int_t)m->n_disturbed, "unstable",
        m->is_unstable, "doubt", hwnas_measurement_doubt(m));
    json_object_update(json, measured);
    json_decref(measured);
    return json;
}

json_t *hwnas_profile_json(const hwnas_profile *profile)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < profile->n_rows; i++)
        json_array_append_new(rows, row_json(&profile->rows[i]));
    return json_pack("{s:s, s:i, s:{s:s, s:s, s:s, s:s}, s:o}", "format", "hwnas.profile",
                     "version", 1, "device", "spelling", profile->device, "name",
                     profile->info.name, "library", profile->info.library, "isa",
                     profile->info.isa, "rows", rows);
}
