/* page_history.c: what was thought of networks before they were trained. */
#include <stdio.h>
#include <string.h>

#include "report/page.h"

static const hwnas_value_row *prediction_of(const hwnas_trial *t, const char *metric)
{
    const hwnas_value_row *v = hwnas_trial_value(t, metric);
    return v && hwnas_sources[v->source].is_predicted ? v : NULL;
}

typedef struct predictions {
    const hwnas_summary *summary;
    json_t *found;
} predictions;

/* Keeps the first prediction of each trial that has a better value now. */
static hwnas_status take_event(void *context, const hwnas_event *event)
{
    const predictions *p = context;
    const hwnas_summary *s = p->summary;
    const hwnas_metric *accuracy = hwnas_metric_of(HWNAS_ACCURACY);
    const hwnas_value_row *then = prediction_of(&event->trial, accuracy->name);
    const uint64_t number = event->trial.number;
    char key[32];
    if (event->kind != HWNAS_EVENT_FINISHED || !then || number >= s->n_trials ||
        !hwnas_trial_value(&s->trials[number], accuracy->name) ||
        prediction_of(&s->trials[number], accuracy->name))
        return HWNAS_OK;
    snprintf(key, sizeof key, "%llu", (unsigned long long)number);
    if (!json_object_get(p->found, key))
        json_object_set_new(p->found, key, json_real(then->value / accuracy->scale));
    return HWNAS_OK;
}

hwnas_status hwnas_page_predictions(json_t **out, const hwnas_summary *s, hwnas_store *store)
{
    predictions p = {.summary = s, .found = json_object()};
    int64_t position = 0;
    hwnas_status status = hwnas_store_begin_reading(store);
    if (status == HWNAS_OK)
        status = hwnas_store_end(store, hwnas_store_walk(&position, store, take_event, &p));
    if (status == HWNAS_OK)
        *out = p.found;
    else
        json_decref(p.found);
    return status;
}
