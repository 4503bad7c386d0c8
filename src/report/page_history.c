/* page_history.c: what was thought of networks before they were trained. */
#include <stdio.h>
#include <string.h>

#include "report/page.h"

static const hwnas_value_row *prediction_of(const hwnas_trial *t, const char *metric)
{
    const hwnas_value_row *v = hwnas_trial_value(t, metric);
    return v && hwnas_sources[v->source].is_predicted ? v : NULL;
}

/* Keeps the first prediction of each trial that has a better value now. */
static void add_event(json_t *to, const hwnas_summary *s, const hwnas_event *event)
{
    const hwnas_metric *accuracy = hwnas_metric_of(HWNAS_ACCURACY);
    const hwnas_value_row *then = prediction_of(&event->trial, accuracy->name);
    const uint64_t number = event->trial.number;
    char key[32];
    if (event->kind != HWNAS_EVENT_FINISHED || !then || number >= s->n_trials ||
        !hwnas_trial_value(&s->trials[number], accuracy->name) ||
        prediction_of(&s->trials[number], accuracy->name))
        return;
    snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    if (!json_object_get(to, key))
        json_object_set_new(to, key, json_real(then->value / accuracy->scale));
}

hwnas_status hwnas_page_predictions(json_t **out, const hwnas_summary *s, hwnas_store *store)
{
    hwnas_event *events;
    size_t n;
    TRY(hwnas_store_history(&events, &n, store));
    json_t *predictions = json_object();
    for (size_t i = 0; i < n; i++)
        add_event(predictions, s, &events[i]);
    hwnas_events_free(events, n);
    *out = predictions;
    return HWNAS_OK;
}
