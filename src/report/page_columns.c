/* page_columns.c: the trials of a page, by column: a study of 100,000 has to fit a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/page.h"
#include "report/trials_table.h"

/* What the numbers in `flags` are made of; page/study.js has the same. */
enum { IS_FEASIBLE = 1, IS_ON_FRONT = 2, IS_UNSTABLE = 4, IS_STOPPED_EARLY = 8, IS_CHEAP = 16 };

static json_t *number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static int flags_of(const hwnas_trial *t, bool is_on_front)
{
    const bool is_good = t->is_finished && t->status == HWNAS_OK;
    return (is_good && !(t->violation > 0) ? IS_FEASIBLE : 0) | (is_on_front ? IS_ON_FRONT : 0) |
           (t->is_unstable ? IS_UNSTABLE : 0) | (t->is_stopped_early ? IS_STOPPED_EARLY : 0) |
           (t->rung ? IS_CHEAP : 0);
}

/* One character for each trial: the number of its source in base 36, or '-'. */
static json_t *sources_json(const hwnas_summary *s, const char *metric)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    _Static_assert(HWNAS_N_SOURCES < sizeof digits, "a source is one digit");
    char *text = hwnas_alloc(s->n_trials + 1);
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[i], metric);
        text[i] = v ? digits[v->source] : '-';
    }
    json_t *json = json_string(text);
    free(text);
    return json;
}

/* Ends of intervals, of the trials that have some. */
static json_t *intervals_json(const hwnas_summary *s, const char *metric, double scale)
{
    json_t *ends = json_object();
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[i], metric);
        char key[32];
        if (!v || !hwnas_value_has_interval(v))
            continue;
        snprintf(key, sizeof key, "%zu", i);
        json_object_set_new(
            ends, key,
            json_pack("[o, o]", number_json(v->low / scale), number_json(v->high / scale)));
    }
    return ends;
}

static json_t *metric_json(const hwnas_summary *s, const char *name, const hwnas_metric *metric)
{
    json_t *values = json_array();
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[i], name);
        json_array_append_new(values, number_json(v ? v->value / metric->scale : NAN));
        least = v ? fmin(least, v->value / metric->scale) : least;
        most = v ? fmax(most, v->value / metric->scale) : most;
    }
    return json_pack("{s:s, s:s, s:i, s:b, s:b, s:o, s:o, s:o}", "name", name, "unit", metric->unit,
                     "decimals", hwnas_metric_decimals_among(metric, least, most), "maximised",
                     metric->is_maximised, "of_device", metric->source == HWNAS_FROM_DEVICE,
                     "values", values, "sources", sources_json(s, name), "intervals",
                     intervals_json(s, name, metric->scale));
}

static json_t *source_names(void)
{
    json_t *names = json_array();
    for (int i = 0; i < HWNAS_N_SOURCES; i++)
        json_array_append_new(names, json_string(hwnas_sources[i].name));
    return names;
}

/* By number, "running" behind the last. */
static json_t *status_names(void)
{
    json_t *names = json_array();
    for (int i = 0; i < HWNAS_N_STATUS; i++)
        json_array_append_new(names, json_string(hwnas_status_name((hwnas_status)i)));
    json_array_append_new(names, json_string("running"));
    return names;
}

/* Of the trials that were measured after all: what their latency had been thought to be, in ms. */
static void add_estimate(json_t *estimates, const char *key, const hwnas_trial *t)
{
    json_t *detail = t->detail ? json_loads(t->detail, 0, NULL) : NULL;
    const json_t *estimate = json_object_get(detail, "estimate");
    if (json_is_number(estimate))
        json_object_set_new(
            estimates, key,
            number_json(json_number_value(estimate) / hwnas_metric_of(HWNAS_LATENCY)->scale));
    json_decref(detail);
}

json_t *hwnas_page_columns(const hwnas_summary *s)
{
    const hwnas_trial_metrics m = hwnas_trial_metrics_find(s);
    bool *is_on_front = hwnas_trials_on_fronts(s);
    json_t *codes = json_array(), *states = json_array(), *flags = json_array();
    json_t *orders = json_array(), *seconds = json_array(), *metrics = json_array();
    json_t *messages = json_object(), *estimates = json_object();
    bool is_text = true; /* all names are UTF-8 */
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_trial *t = &s->trials[i];
        char key[32];
        snprintf(key, sizeof key, "%zu", i);
        is_text &= !json_array_append_new(codes, json_string(t->code));
        json_array_append_new(states,
                              json_integer(t->is_finished ? (int)t->status : HWNAS_N_STATUS));
        json_array_append_new(flags, json_integer(flags_of(t, is_on_front[i])));
        json_array_append_new(orders, json_integer(t->order));
        json_array_append_new(seconds, number_json(t->is_finished ? t->seconds : NAN));
        if (t->message)
            is_text &= !json_object_set_new(messages, key, json_string(t->message));
        add_estimate(estimates, key, t);
    }
    for (size_t i = 0; i < m.n; i++)
        json_array_append_new(metrics, metric_json(s, m.names[i], m.kinds[i]));
    free(is_on_front);
    json_t *trials =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "arch", codes, "status",
                  states, "flags", flags, "order", orders, "seconds", seconds, "messages", messages,
                  "estimates", estimates, "metrics", metrics, "source_names", source_names(),
                  "status_names", status_names());
    if (is_text)
        return trials;
    json_decref(trials);
    return NULL;
}
