#include "report/profile_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/fields.h"
#include "report/precision_notes.h"
#include "report/profile_table.h"
#include "report/thread_notes.h"

#define MS 1e3

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
        has_wide |= hwnas_profile_is_wide(&profile->rows[i]) && !is_cpu_time(&profile->rows[i]);
    }
    if (has_wide)
        hwnas_str_add(out, "~ the time was over before the interval was as narrow as asked: more "
                           "--seconds make it so\n");
    if (has_cpu_time)
        hwnas_str_add(out,
                      "c other programs had the core most of the time: CPU time of the thread, "
                      "usually 1 to 8 % longer than its\n  latency on a quiet machine\n");
}

void hwnas_profile_markdown(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_grid grid = {0};
    hwnas_profile_table(&grid, profile);
    hwnas_grid_markdown(out, &grid);
    hwnas_grid_done(&grid);
}

void hwnas_profile_text(hwnas_str *out, const hwnas_profile *profile)
{
    hwnas_grid grid = {0};
    for (size_t i = 0; i < profile->n_devices; i++)
        add_device(out, &profile->devices[i]);
    add_mode(out, profile);
    hwnas_str_add(out, "\n");
    hwnas_profile_table(&grid, profile);
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
    hwnas_profile_legend(out, profile);
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
