#include "store/outline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "store/store_driver.h"

/* What of a detail is kept until the last event of its trial was seen. */
typedef struct detail {
    double run_seconds, estimate;
} detail;

typedef struct outlines {
    const hwnas_outline_wish *wish;
    const char **metrics; /* those of the wish, interned */
    size_t n;
    hwnas_trial *trials;
    detail *details; /* by trial; NULL: none has any yet */
} outlines;

static bool is_wished(const outlines *o, const hwnas_value_row *v)
{
    for (size_t i = 0; i < o->wish->n_metrics; i++)
        if (v->metric == o->metrics[i])
            return true;
    return v->source == HWNAS_ESTIMATED || hwnas_sources[v->source].is_partial ||
           hwnas_sources[v->source].is_left_out;
}

/* In exactly the room that most need. */
static void copy_values(hwnas_trial *to, const outlines *o, const hwnas_trial *from)
{
    for (size_t i = 0; i < from->n_values; i++) {
        if (!is_wished(o, &from->values[i]))
            continue;
        if (!to->value_room && o->wish->n_metrics) {
            to->value_room = o->wish->n_metrics;
            to->values = hwnas_alloc(to->value_room * sizeof *to->values);
        }
        hwnas_trial_add(to, &from->values[i]);
    }
}

static void keep_detail(outlines *o, size_t at, const hwnas_event *event)
{
    if (!o->details && event->run_seconds == 0 && isnan(event->estimate))
        return;
    if (!o->details) {
        o->details = hwnas_alloc((o->n + 1) * sizeof *o->details);
        for (size_t i = 0; i < o->n; i++)
            o->details[i] = (detail){0, NAN};
    }
    o->details[at] = (detail){event->run_seconds, event->estimate};
}

/* A later event of a trial counts in the place of an earlier one. */
static hwnas_status take_event(void *context, const hwnas_event *event)
{
    outlines *o = context;
    const hwnas_trial *from = &event->trial;
    if (event->kind != HWNAS_EVENT_FINISHED && event->kind != HWNAS_EVENT_REVISED)
        return HWNAS_OK;
    hwnas_trial *to = &o->trials[from->number];
    hwnas_trial_done(to);
    *to = (hwnas_trial){.number = from->number,
                        .rung = from->rung,
                        .is_finished = true,
                        .order = from->order,
                        .status = from->status,
                        .is_unstable = from->is_unstable,
                        .is_stopped_early = from->is_stopped_early,
                        .violation = from->violation};
    if (from->status != HWNAS_OK) {
        to->code = hwnas_strdup(from->code);
        to->message = from->message ? hwnas_strdup(from->message) : NULL;
    }
    copy_values(to, o, from);
    keep_detail(o, from->number, event);
    return HWNAS_OK;
}

static hwnas_status read_running(outlines *o, hwnas_store *store)
{
    hwnas_trial *running;
    size_t n;
    TRY(hwnas_store_running(&running, &n, store));
    for (size_t i = 0; i < n; i++)
        if (running[i].number < o->n)
            o->trials[running[i].number].rung = running[i].rung;
    hwnas_trials_free(running, n);
    return HWNAS_OK;
}

static hwnas_status read_outlines(outlines *o, hwnas_store *store)
{
    uint64_t n, n_finished;
    int64_t position = 0;
    TRY(hwnas_store_extent(&n, &n_finished, store));
    o->trials = hwnas_alloc((n + 1) * sizeof *o->trials);
    o->n = n;
    for (size_t i = 0; i < n; i++)
        o->trials[i] = (hwnas_trial){.number = i, .order = -1};
    TRY(hwnas_store_walk(&position, store, take_event, o));
    TRY(read_running(o, store));
    for (size_t i = 0; i < n && o->details && o->wish->see_detail; i++)
        if (o->details[i].run_seconds != 0 || !isnan(o->details[i].estimate))
            o->wish->see_detail(o->wish->context, i, o->details[i].run_seconds,
                                o->details[i].estimate);
    return HWNAS_OK;
}

hwnas_status hwnas_store_outlines(hwnas_trial **out, size_t *n, hwnas_store *store,
                                  const hwnas_outline_wish *wish)
{
    outlines o = {.wish = wish};
    o.metrics = hwnas_alloc((wish->n_metrics + 1) * sizeof *o.metrics);
    for (size_t i = 0; i < wish->n_metrics; i++)
        o.metrics[i] = hwnas_intern(wish->metrics[i]);
    hwnas_status status = hwnas_store_begin_reading(store); /* all is as at one moment */
    if (status == HWNAS_OK)
        status = hwnas_store_end(store, read_outlines(&o, store));
    if (status == HWNAS_OK) {
        *out = o.trials;
        *n = o.n;
    } else {
        hwnas_trials_free(o.trials, o.n);
    }
    free(o.metrics);
    free(o.details);
    return status;
}

/* `whole` are by number, each once. */
static bool take_whole(hwnas_trial *trial, hwnas_trial *whole, size_t n)
{
    size_t i = 0;
    while (i < n && (whole[i].number != trial->number || !whole[i].code))
        i++;
    if (i == n)
        return false;
    /* What it is judged as may be by other limits than those in the store. */
    whole[i].violation = trial->violation;
    hwnas_trial_done(trial);
    *trial = whole[i];
    whole[i] = (hwnas_trial){0};
    return true;
}

hwnas_status hwnas_store_fill(hwnas_trial *const *trials, size_t n, hwnas_store *store)
{
    /* A server that is far away is asked for several at once. */
    for (size_t begin = 0; begin < n; begin += HWNAS_FEW) {
        const size_t n_few = n - begin < HWNAS_FEW ? n - begin : HWNAS_FEW;
        uint64_t numbers[HWNAS_FEW];
        hwnas_trial *whole = NULL;
        size_t n_whole = 0;
        bool are_there = true;
        for (size_t i = 0; i < n_few; i++)
            numbers[i] = trials[begin + i]->number;
        TRY(hwnas_store_few(&whole, &n_whole, store, numbers, n_few));
        for (size_t i = 0; i < n_few; i++)
            are_there &= take_whole(trials[begin + i], whole, n_whole);
        hwnas_trials_free(whole, n_whole);
        if (!are_there)
            return hwnas_store_damaged(store, "a trial is missing");
    }
    return HWNAS_OK;
}
