#include "report/mix_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add_estimate(hwnas_str *out, const char *name, hwnas_estimate_95 e)
{
    if (isnan(e.value)) /* of numbers that are all the same */
        hwnas_str_addf(out, "%s not defined", name);
    else if (isnan(e.low))
        hwnas_str_addf(out, "%s %.2f %%", name, e.value);
    else
        hwnas_str_addf(out, "%s %.2f %% [%.2f, %.2f]", name, e.value, e.low, e.high);
}

static void add_accuracy(hwnas_str *out, const hwnas_mix_words *w)
{
    hwnas_str_addf(out, "%s on %" PRId64 " sample%s held out: ", w->metric, w->n_held_out,
                   w->n_held_out == 1 ? "" : "s");
    add_estimate(out, "mixed", w->accuracy);
    add_estimate(out, ", f32", w->f32_accuracy);
    if (w->s8_accuracy)
        add_estimate(out, ", all in s8", *w->s8_accuracy);
    hwnas_str_addf(out, "; at most %g point%s below f32 on those that chose\n", w->max_loss,
                   w->max_loss == 1 ? "" : "s");
}

void hwnas_mix_words_add(hwnas_str *out, const char *margin, const hwnas_mix_words *w)
{
    if (w->n_layers)
        hwnas_str_addf(out, "%d of %d layers in s8", w->n_s8, w->n_layers);
    else
        hwnas_str_addf(out, "%d layer%s in s8", w->n_s8, w->n_s8 == 1 ? "" : "s");
    if (w->n_bf16 && (!w->floats || !strcmp(w->floats, "f32")))
        hwnas_str_addf(out, ", %d in bf16", w->n_bf16);
    hwnas_str_addf(out,
                   ", the others in %s, largest difference from f32 %.2f %% of the largest output "
                   "on ",
                   w->floats ? w->floats : "f32", 100 * w->error);
    if (w->n_samples)
        hwnas_str_addf(out, "%" PRId64 " sample%s%s%s", w->n_samples, w->n_samples == 1 ? "" : "s",
                       w->samples ? " of " : "", w->samples ? w->samples : "");
    else
        hwnas_str_add(out, "random inputs");
    if (isfinite(w->max_error))
        hwnas_str_addf(out, " (limit %.3g %%)", 100 * w->max_error);
    if (w->is_cut_short)
        hwnas_str_add(out, "; few choices were tried, as the time was nearly over");
    hwnas_str_add(out, "\n");
    if (!w->metric)
        return;
    hwnas_str_add(out, margin);
    add_accuracy(out, w);
}
