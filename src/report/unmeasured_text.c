#include "report/unmeasured_text.h"

#include <math.h>

static void add_estimates(hwnas_str *out, const hwnas_summary *s)
{
    if (!s->n_estimated && !s->n_remeasured)
        return;
    hwnas_str_addf(out, "\nestimates   %zu trial%s kept as %s, %zu remeasured", s->n_estimated,
                   s->n_estimated == 1 ? "" : "s",
                   s->n_estimated == 1 ? "an estimate" : "estimates", s->n_remeasured);
    if (!isnan(s->estimate_error))
        hwnas_str_addf(out, ": %.1f %% off in the median", 100 * s->estimate_error);
}

/* The front lacks them, and nothing else would say so. */
static void add_waiting(hwnas_str *out, const hwnas_summary *s)
{
    if (!s->n_waiting)
        return;
    const char *subject = s->n_waiting == 1 ? "it" : "them";
    hwnas_str_addf(out, "\nwaiting     %zu that may belong on the front", s->n_waiting);
    if (s->n_waiting_trained)
        hwnas_str_addf(out, ", %zu trained", s->n_waiting_trained);
    if (s->waits_for_time)
        hwnas_str_addf(out, ": 'hwnas search ... --resume' with more time measures %s", subject);
    else
        hwnas_str_addf(out, ": 'hwnas search ... --resume' measures %s", subject);
}

/* Whose accuracy is only predicted stands there; not that this was to be mended. */
static void add_untrained(hwnas_str *out, const hwnas_summary *s)
{
    if (s->n_untrained)
        hwnas_str_addf(out,
                       "\nuntrained   %zu of the front, which 'hwnas search ... --resume' %strains",
                       s->n_untrained, s->waits_for_time ? "with more time " : "");
}

static void add_ended_early(hwnas_str *out, const hwnas_summary *s)
{
    if (s->n_ended_early)
        hwnas_str_addf(out, "\ntrainings   %zu ended early, as their curves told enough",
                       s->n_ended_early);
}

void hwnas_unmeasured_text(hwnas_str *out, const hwnas_summary *s)
{
    add_estimates(out, s);
    add_waiting(out, s);
    add_untrained(out, s);
    add_ended_early(out, s);
}
