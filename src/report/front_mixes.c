#include "report/front_mixes.h"

#include <math.h>
#include <stdlib.h>

#include "report/mix_words.h"
#include "study/evaluate.h"
#include "study/job_data.h"

static double number(const json_t *mix, const char *key)
{
    const json_t *value = json_object_get(mix, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int count(const json_t *mix, const char *key)
{
    return (int)json_integer_value(json_object_get(mix, key));
}

static void add_words(hwnas_str *out, const hwnas_summary *s, const json_t *mix)
{
    char *name = s->job.data ? hwnas_job_data_name(&s->job) : NULL;
    const hwnas_mix_words words = {
        .n_s8 = count(mix, "layers_in_s8"),
        .n_bf16 = count(mix, "layers_in_bf16"),
        .n_layers = count(mix, "n_layers"),
        .floats = json_string_value(json_object_get(mix, "floats")),
        .error = number(mix, "mixed_error"),
        .max_error = number(mix, "max_error"),
        .n_samples = count(mix, "choice_samples"),
        .samples = name,
        .metric = json_string_value(json_object_get(mix, "accuracy_metric")),
        .n_held_out = count(mix, "held_out_samples"),
        .accuracy = {number(mix, "accuracy"), number(mix, "accuracy_low"),
                     number(mix, "accuracy_high")},
        .f32_accuracy = {number(mix, "f32_accuracy"), NAN, NAN},
        .max_loss = number(mix, "max_loss"),
        .is_cut_short = json_is_true(json_object_get(mix, "cut_short"))};
    hwnas_mix_words_add(out, "            ", &words);
    free(name);
}

static void add_one(hwnas_str *out, bool *is_first, const hwnas_summary *s,
                    const hwnas_trial *trial, const char *device, const json_t *mix)
{
    const bool has_several = s->job.goals.devices.n > 1;
    hwnas_str_addf(out, "%-11s trial %llu%s%s: ", *is_first ? "layers" : "",
                   (unsigned long long)trial->number, has_several ? " on " : "",
                   has_several ? device : "");
    add_words(out, s, mix);
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
