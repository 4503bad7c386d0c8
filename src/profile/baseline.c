#include "profile/baseline.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

/* A row of figures without an interval counts as exact. */
static hwnas_timing timing_of(const hwnas_profile_row *row)
{
    const hwnas_measurement *m = &row->m;
    return (hwnas_timing){.p50 = m->p50,
                          .low = isnan(m->p50_low) ? m->p50 : m->p50_low,
                          .high = isnan(m->p50_high) ? m->p50 : m->p50_high};
}

void hwnas_baseline_judge(hwnas_baseline_row *row, double tolerance)
{
    const hwnas_profile_row *before = row->before, *now = &row->now;
    row->trouble = NULL;
    if (now->status != HWNAS_OK)
        row->trouble = now->message;
    else if (*before->digest.hex && strcmp(before->digest.hex, now->digest.hex))
        row->trouble = "it is another network than the one that was recorded";
    else
        row->judgement =
            hwnas_judge_baseline(timing_of(before), before->m.is_unstable, &now->m, tolerance);
}

static void add_difference(hwnas_str *out, const char *what, const char *before, const char *now)
{
    if (strcmp(before, now))
        hwnas_str_addf(out, "%s%s: recorded '%s', now '%s'", out->n ? "; " : "", what, before, now);
}

/* What stands between the devices and us says nothing of their speed. */
static bool uses_this_machine(const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_devices; i++)
        if (!hwnas_device_is_elsewhere(profile->devices[i].spelling))
            return true;
    return false;
}

char *hwnas_baseline_doubt(const hwnas_baseline *b)
{
    hwnas_str out = {0};
    const char *governor = b->before->host.conditions.governor;
    const bool is_here = uses_this_machine(b->now);
    if (is_here)
        add_difference(&out, "processor", b->before->host.processor, b->now->host.processor);
    if (is_here && *governor && *b->now->host.conditions.governor)
        add_difference(&out, "governor", governor, b->now->host.conditions.governor);
    for (size_t i = 0; i < b->now->n_devices; i++)
        for (size_t k = 0; k < b->before->n_devices; k++) {
            const hwnas_profile_device *now = &b->now->devices[i], *was = &b->before->devices[k];
            if (strcmp(now->spelling, was->spelling))
                continue;
            if (hwnas_device_is_elsewhere(now->spelling))
                add_difference(&out, "device", was->info.name, now->info.name);
            add_difference(&out, "library", was->info.library, now->info.library);
            add_difference(&out, "instructions", was->info.isa, now->info.isa);
        }
    return out.s;
}
