#include "report/front_mixes.h"

#include <stdlib.h>

#include "study/evaluate.h"
#include "study/job_data.h"

static double percent_of(const json_t *mix, const char *key)
{
    return 100 * json_number_value(json_object_get(mix, key));
}

static void add_share(hwnas_str *out, const json_t *mix, const char *key)
{
    const json_t *value = json_object_get(mix, key);
    if (json_is_number(value))
        hwnas_str_addf(out, "%.2f %%", json_number_value(value));
    else /* of numbers that are all the same */
        hwnas_str_add(out, "not defined");
}

/* By which inputs, and within which limits. */
static void add_choice(hwnas_str *out, const hwnas_summary *s, const json_t *mix)
{
    const long long n = json_integer_value(json_object_get(mix, "choice_samples"));
    const char *metric = json_string_value(json_object_get(mix, "accuracy_metric"));
    char *name = n && s->job.data ? hwnas_job_data_name(&s->job) : NULL;
    if (n)
        hwnas_str_addf(out, "%lld sample%s of %s", n, n == 1 ? "" : "s", name ? name : "data");
    else
        hwnas_str_add(out, "random inputs");
    free(name);
    if (json_is_number(json_object_get(mix, "max_error")))
        hwnas_str_addf(out, " (limit %g %%)", percent_of(mix, "max_error"));
    if (!metric)
        return;
    const double loss = json_number_value(json_object_get(mix, "max_loss"));
    hwnas_str_addf(out, "; %s on %lld held out ", metric,
                   (long long)json_integer_value(json_object_get(mix, "held_out_samples")));
    add_share(out, mix, "accuracy");
    hwnas_str_add(out, ", of f32 ");
    add_share(out, mix, "f32_accuracy");
    hwnas_str_addf(out, "; at most %g point%s below f32 on those that chose", loss,
                   loss == 1 ? "" : "s");
}

static void add_one(hwnas_str *out, bool *is_first, const hwnas_summary *s,
                    const hwnas_trial *trial, const char *device, const json_t *mix)
{
    const char *floats = json_string_value(json_object_get(mix, "floats"));
    const json_t *n = json_object_get(mix, "n_layers");
    hwnas_str_addf(
        out,
        "%-11s trial %llu%s%s: %lld of %lld layers in s8, the others in %s, outputs up to "
        "%.2f %% off from f32 on ",
        *is_first ? "layers" : "", (unsigned long long)trial->number,
        s->job.goals.devices.n > 1 ? " on " : "", s->job.goals.devices.n > 1 ? device : "",
        (long long)json_integer_value(json_object_get(mix, "layers_in_s8")),
        (long long)json_integer_value(n), floats ? floats : "f32", percent_of(mix, "mixed_error"));
    add_choice(out, s, mix);
    hwnas_str_add(out, "\n");
    *is_first = false;
}

void hwnas_front_mixes_text(hwnas_str *out, const hwnas_summary *s)
{
    bool is_first = true;
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n; i++) {
            const hwnas_trial *trial = &s->trials[s->fronts[f].trials[i]];
            json_t *mixes = hwnas_mixes_of(trial), *mix;
            const char *device;
            json_object_foreach(mixes, device, mix) add_one(out, &is_first, s, trial, device, mix);
            json_decref(mixes);
        }
}
