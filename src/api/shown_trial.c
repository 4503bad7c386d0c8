#include "api/shown_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/evaluate.h"
#include "study/settings.h"

static double number(const json_t *mix, const char *key, double otherwise)
{
    const json_t *value = json_object_get(mix, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void show_mixes(hwnas_shown_trial *out, const hwnas_trial *trial)
{
    const char *device;
    json_t *mix;
    size_t n = 0;
    out->detail = hwnas_mixes_of(trial);
    out->mixes = hwnas_alloc((json_object_size(out->detail) + 1) * sizeof *out->mixes);
    json_object_foreach(out->detail, device, mix)
    {
        const char *layers = json_string_value(json_object_get(mix, "layers"));
        const char *floats = json_string_value(json_object_get(mix, "floats"));
        if (!layers || !floats)
            continue;
        out->mixes[n++] = (hwnas_study_mix){
            .device = device,
            .floats = strcmp(floats, hwnas_precision_name(HWNAS_BF16)) ? HWNAS_F32 : HWNAS_BF16,
            .n_layers = (size_t)json_integer_value(json_object_get(mix, "n_layers")),
            .n_s8 = (size_t)json_integer_value(json_object_get(mix, "layers_in_s8")),
            .layers = layers,
            .error = number(mix, "mixed_error", 0),
            .max_error = number(mix, "max_error", INFINITY),
            .n_samples = json_integer_value(json_object_get(mix, "choice_samples")),
            .accuracy_metric = json_string_value(json_object_get(mix, "accuracy_metric")),
            .accuracy = number(mix, "accuracy", NAN),
            .f32_accuracy = number(mix, "f32_accuracy", NAN),
            .max_loss = number(mix, "max_loss", NAN)};
    }
    out->trial.n_mixes = n;
    out->trial.mixes = out->mixes;
}

void hwnas_shown_trial_set(hwnas_shown_trial *out, const hwnas_trial *trial, const hwnas_job *job)
{
    out->code = hwnas_strdup(trial->code);
    out->values = hwnas_alloc((trial->n_values + 1) * sizeof *out->values);
    const hwnas_settings settings = hwnas_settings_cut(out->code, job);
    for (size_t i = 0; i < trial->n_values; i++) {
        const hwnas_value_row *v = &trial->values[i];
        out->values[i] = (hwnas_metric_value){.metric = v->metric,
                                              .value = v->value,
                                              .low = v->low,
                                              .high = v->high,
                                              .unit = v->unit,
                                              .source = hwnas_sources[v->source].name};
    }
    out->trial = (hwnas_study_trial){.number = trial->number,
                                     .code = out->code,
                                     .digest = trial->digest,
                                     .batch = settings.batch,
                                     .threads = settings.threads,
                                     .precision = hwnas_dtype_precision(settings.dtype),
                                     .n_values = trial->n_values,
                                     .values = out->values,
                                     .mixing = hwnas_dtype_mixing(settings.dtype)};
    show_mixes(out, trial);
}

void hwnas_shown_trial_done(hwnas_shown_trial *t)
{
    free(t->code);
    free(t->values);
    free(t->mixes);
    json_decref(t->detail);
}
