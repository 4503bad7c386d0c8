#include "trial/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const hwnas_source_kind hwnas_sources[HWNAS_N_SOURCES] = {
    [HWNAS_COMPUTED] = {"computed", .is_said = false},
    [HWNAS_MEASURED] = {"measured", .is_said = false, .is_of_run = true},
    [HWNAS_REPLAYED] = {"replayed", .is_said = false},
    [HWNAS_TOLD] = {"told", .is_said = true, .is_of_run = true},
    [HWNAS_TRAINED] = {"trained", .is_said = true},
    [HWNAS_PARTIAL] = {"partial", .is_said = true, .is_partial = true},
    [HWNAS_PREDICTED] = {"predicted", .is_said = true, .is_predicted = true, .is_expectable = true},
    [HWNAS_EXTRAPOLATED] = {"extrapolated", .is_said = true, .doubt = "outside what was learned",
                            .is_predicted = true},
    [HWNAS_OTHER_SIZE] = {"extrapolated-size", .is_said = true,
                          .doubt = "of a size outside what was learned", .is_predicted = true,
                          .is_expectable = true},
    [HWNAS_LEFT_OUT] = {"left-out", .is_said = true, .doubt = "of a size outside what was learned",
                        .is_predicted = true, .is_left_out = true},
    [HWNAS_PRIOR] = {"predicted-int8", .is_said = true,
                     .doubt = "predicted for floats, less what int8 costs published networks",
                     .is_predicted = true},
    [HWNAS_OF_FLOATS] = {"predicted-floats", .is_said = true,
                         .doubt = "predicted for floats: what 4-bit weights cost is not known",
                         .is_predicted = true},
    [HWNAS_OF_CURVE] = {"predicted-curve", .is_said = true,
                        .doubt = "predicted by the curve of a training that was ended early",
                        .is_predicted = true, .is_partial = true},
    [HWNAS_ESTIMATED] = {"estimated", .is_said = true},
};

hwnas_source hwnas_source_from_name(const char *name)
{
    int source = 0;
    while (source < HWNAS_N_SOURCES && strcmp(hwnas_sources[source].name, name))
        source++;
    return (hwnas_source)source;
}

bool hwnas_value_has_interval(const hwnas_value_row *v)
{
    return !isnan(v->low) && !isnan(v->high);
}

bool hwnas_value_is_bounded(const hwnas_value_row *v)
{
    return hwnas_sources[v->source].is_of_run && hwnas_value_has_interval(v);
}

double hwnas_value_low(const hwnas_value_row *v)
{
    return v->source == HWNAS_MEASURED || hwnas_value_is_bounded(v) ? v->low : v->value;
}

double hwnas_value_high(const hwnas_value_row *v)
{
    return v->source == HWNAS_MEASURED || hwnas_value_is_bounded(v) ? v->high : v->value;
}

void hwnas_trial_done(hwnas_trial *trial)
{
    free(trial->code);
    free(trial->message);
    free(trial->detail);
    free(trial->values);
}

void hwnas_trials_free(hwnas_trial *trials, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hwnas_trial_done(&trials[i]);
    free(trials);
}

void hwnas_trial_copy(hwnas_trial *out, const hwnas_trial *from)
{
    *out = *from;
    out->code = hwnas_strdup(from->code);
    out->message = from->message ? hwnas_strdup(from->message) : NULL;
    out->detail = from->detail ? hwnas_strdup(from->detail) : NULL;
    out->values = NULL;
    out->n_values = out->value_room = 0;
    for (size_t i = 0; i < from->n_values; i++)
        hwnas_trial_add(out, &from->values[i]);
}

const hwnas_value_row *hwnas_trial_value(const hwnas_trial *trial, const char *metric)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (!strcmp(trial->values[i].metric, metric))
            return &trial->values[i];
    return NULL;
}

void hwnas_trial_add(hwnas_trial *trial, const hwnas_value_row *value)
{
    if (trial->n_values == trial->value_room) { /* most have 4; a study may have a million trials */
        trial->value_room = trial->value_room ? 2 * trial->value_room : 4;
        trial->values = hwnas_realloc(trial->values, trial->value_room * sizeof *trial->values);
    }
    trial->values[trial->n_values++] = *value;
}

const hwnas_value_row *hwnas_trial_value_of(const hwnas_trial *trial, hwnas_source source)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (trial->values[i].source == source)
            return &trial->values[i];
    return NULL;
}

bool hwnas_trial_is_measured(const hwnas_trial *trial)
{
    return hwnas_trial_value_of(trial, HWNAS_MEASURED) != NULL;
}

bool hwnas_trial_was_run(const hwnas_trial *trial)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (hwnas_sources[trial->values[i].source].is_of_run)
            return true;
    return false;
}

bool hwnas_trial_is_estimated(const hwnas_trial *trial)
{
    return hwnas_trial_value_of(trial, HWNAS_ESTIMATED) != NULL;
}

bool hwnas_trial_is_partial(const hwnas_trial *trial)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (hwnas_sources[trial->values[i].source].is_partial)
            return true;
    return false;
}
