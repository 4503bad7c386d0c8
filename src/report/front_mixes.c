#include "report/front_mixes.h"

#include "study/evaluate.h"

static void add_one(hwnas_str *out, bool *is_first, const hwnas_summary *s,
                    const hwnas_trial *trial, const char *device, const json_t *mix)
{
    const char *floats = json_string_value(json_object_get(mix, "floats"));
    const json_t *n = json_object_get(mix, "n_layers");
    hwnas_str_addf(
        out,
        "%-11s trial %llu%s%s: %lld of %lld layers in s8, the others in %s, outputs up to "
        "%.2f %% off from f32 on random inputs (limit %g %%)\n",
        *is_first ? "layers" : "", (unsigned long long)trial->number,
        s->job.goals.devices.n > 1 ? " on " : "", s->job.goals.devices.n > 1 ? device : "",
        (long long)json_integer_value(json_object_get(mix, "layers_in_s8")),
        (long long)json_integer_value(n), floats ? floats : "f32",
        100 * json_number_value(json_object_get(mix, "mixed_error")),
        100 * json_number_value(json_object_get(mix, "max_error")));
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
