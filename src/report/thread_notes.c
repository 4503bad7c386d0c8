#include "report/thread_notes.h"

#include <string.h>

static bool is_same_text(const char *a, const char *b)
{
    return !strcmp(a ? a : "", b ? b : "");
}

/* Whether two rows differ by nothing but threads. */
static bool are_alike(const hwnas_profile_row *a, const hwnas_profile_row *b)
{
    return !strcmp(a->model, b->model) && !strcmp(a->device, b->device) &&
           is_same_text(a->arch, b->arch) && is_same_text(a->shape, b->shape) &&
           a->batch == b->batch && a->streams == b->streams && a->precision == b->precision &&
           a->training == b->training;
}

/* What can be relied on: a thread that lost its core makes all others wait. */
static bool is_sound(const hwnas_profile_row *row)
{
    return row->status == HWNAS_OK && !row->m.is_unstable;
}

/* The row that is like `row` with the fewest threads above `threads`; NULL: there is none. */
static const hwnas_profile_row *next_of(const hwnas_profile *profile, const hwnas_profile_row *row,
                                        int threads)
{
    const hwnas_profile_row *next = NULL;
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *other = &profile->rows[i];
        if (is_sound(other) && are_alike(row, other) && other->threads > threads &&
            (!next || other->threads < next->threads))
            next = other;
    }
    return next;
}

/* What each thread of `more` that `row` has not adds, in units of what each thread of `first` does.
 */
static double gain_of(const hwnas_profile_row *first, const hwnas_profile_row *row,
                      const hwnas_profile_row *more)
{
    const double core = 1 / (first->m.p50 * first->threads);
    return (1 / more->m.p50 - 1 / row->m.p50) / (more->threads - row->threads) / core;
}

static void add_line(hwnas_str *out, const hwnas_profile *profile, const hwnas_profile_row *first)
{
    const hwnas_profile_row *pays = first, *more = next_of(profile, first, first->threads);
    if (!more)
        return;
    while (more && gain_of(first, pays, more) >= HWNAS_THREAD_PAYS) {
        pays = more;
        more = next_of(profile, first, pays->threads);
    }
    hwnas_str_addf(out, "%s, %s, batch %d, %s: %d thread%s", first->model, first->device,
                   first->batch, hwnas_precision_name(first->precision), pays->threads,
                   pays->threads == 1 ? " pays" : "s pay");
    if (pays != first)
        hwnas_str_addf(out, ", %.2f times as fast as %d", first->m.p50 / pays->m.p50,
                       first->threads);
    if (!more)
        hwnas_str_add(out, "; more were not measured\n");
    else if (more->m.p50 >= pays->m.p50)
        hwnas_str_addf(out, "; %d are no faster\n", more->threads);
    else
        hwnas_str_addf(out, "; of %d each more adds %.0f %% of a core, below %.0f\n", more->threads,
                       100 * gain_of(first, pays, more), 100 * HWNAS_THREAD_PAYS);
}

void hwnas_thread_notes(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *row = &profile->rows[i];
        /* of those alike, the one with the fewest threads */
        if (is_sound(row) && next_of(profile, row, 0) == row)
            add_line(out, profile, row);
    }
}
