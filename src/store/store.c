/* store.c: what every driver shares: trials in memory. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void free_parts(hwnas_trial *trial)
{
    free(trial->code);
    free(trial->message);
    free(trial->detail);
    free(trial->values);
}

void hwnas_trials_free(hwnas_trial *trials, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_parts(&trials[i]);
    free(trials);
}

void hwnas_events_free(hwnas_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_parts(&events[i].trial);
    free(events);
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
    HWNAS_GROW(trial->values, trial->n_values, trial->value_room);
    trial->values[trial->n_values++] = *value;
}
