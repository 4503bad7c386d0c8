#include "report/front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *job_text(const hwnas_summary *s, const char *key)
{
    return json_string_value(json_object_get(s->identity, key));
}

static bool has_interval(const hwnas_value_row *v)
{
    return !isnan(v->low) && !isnan(v->high);
}

static void add_words(hwnas_str *out, const hwnas_trial *trial, const hwnas_metric *m)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, m->name);
    if (v)
        hwnas_str_addf(out, "%s%s %.*f %s", out->n ? ", " : "", m->name, m->decimals,
                       v->value / m->scale, m->unit);
}

char *hwnas_trial_words(const hwnas_trial *trial, const hwnas_job *goals)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (int i = 0; i < goals->n_objectives; i++)
        add_words(&words, trial, goals->objectives[i]);
    return words.s;
}

char *hwnas_limit_words(const hwnas_trial *trial, const hwnas_job *goals)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (int i = 0; i < goals->n_limits; i++) {
        bool is_said = false;
        for (int j = 0; j < i; j++)
            is_said |= goals->limits[j].metric == goals->limits[i].metric;
        if (!is_said)
            add_words(&words, trial, goals->limits[i].metric);
    }
    return words.s;
}

/* ---- Text ---- */

/* Metrics that some network of the front has a value of: objectives first, then the rest. */
static int columns(const hwnas_metric **out, const hwnas_summary *s)
{
    int n = 0;
    for (int i = 0; i < s->goals.n_objectives; i++)
        out[n++] = s->goals.objectives[i];
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++) {
        bool wanted = strcmp(m->name, "latency.p90") != 0;
        for (int i = 0; i < s->goals.n_objectives; i++)
            wanted &= s->goals.objectives[i] != m;
        if (wanted && s->n_front && hwnas_trial_value(&s->trials[s->front[0]], m->name))
            out[n++] = m;
    }
    return n;
}

static char *cell(const hwnas_trial *trial, const hwnas_metric *m)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, m->name);
    if (!v)
        return hwnas_strdup("-");
    if (!strcmp(v->source, "measured") && has_interval(v))
        return hwnas_printf("%.*f%s [%.*f, %.*f]", m->decimals, v->value / m->scale,
                            hwnas_trial_is_unstable(trial) ? " ?" : "", m->decimals,
                            v->low / m->scale, m->decimals, v->high / m->scale);
    if (has_interval(v))
        return hwnas_printf("%.*f +- %.*f", m->decimals, v->value / m->scale, m->decimals,
                            (v->high - v->low) / 2 / m->scale);
    return hwnas_printf("%.*f", m->decimals, v->value / m->scale);
}

static char *heading(const hwnas_metric *m)
{
    return hwnas_printf(strstr(m->title, m->unit) ? "%s" : "%s %s", m->title, m->unit);
}

static void add_table(hwnas_str *out, const hwnas_summary *s)
{
    const hwnas_metric *shown[16];
    int n = columns(shown, s);
    int widths[16];
    for (int c = 0; c < n; c++) {
        char *text = heading(shown[c]);
        widths[c] = (int)strlen(text);
        free(text);
        for (size_t i = 0; i < s->n_front; i++) {
            text = cell(&s->trials[s->front[i]], shown[c]);
            if ((int)strlen(text) > widths[c])
                widths[c] = (int)strlen(text);
            free(text);
        }
    }
    hwnas_str_add(out, "  trial");
    for (int c = 0; c < n; c++) {
        char *text = heading(shown[c]);
        hwnas_str_addf(out, "  %*s", widths[c], text);
        free(text);
    }
    hwnas_str_add(out, "  architecture\n");
    for (size_t i = 0; i < s->n_front; i++) {
        const hwnas_trial *trial = &s->trials[s->front[i]];
        hwnas_str_addf(out, "%c %5llu", (long)s->front[i] == s->winner ? '*' : ' ',
                       (unsigned long long)trial->number);
        for (int c = 0; c < n; c++) {
            char *text = cell(trial, shown[c]);
            hwnas_str_addf(out, "  %*s", widths[c], text);
            free(text);
        }
        hwnas_str_addf(out, "  %s\n", trial->code);
    }
}

/* What the brackets and the plus-minus of the table are, where it has them. */
static void add_legend(hwnas_str *out, const hwnas_summary *s)
{
    bool has_measured = false, has_predicted = false, has_unstable = false;
    for (size_t i = 0; i < s->n_front; i++) {
        const hwnas_trial *trial = &s->trials[s->front[i]];
        has_unstable |= hwnas_trial_is_unstable(trial);
        for (int k = 0; k < trial->n_values; k++) {
            bool is_measured = !strcmp(trial->values[k].source, "measured");
            has_measured |= is_measured && has_interval(&trial->values[k]);
            has_predicted |= !is_measured && has_interval(&trial->values[k]);
        }
    }
    hwnas_str_add(out, "* winner");
    if (has_predicted)
        hwnas_str_add(out, "; +- standard deviation of the prediction");
    if (has_measured)
        hwnas_str_add(out, "; [ ] 95 % interval of the measured median");
    if (has_unstable)
        hwnas_str_add(out, "; ? the machine was disturbed twice while it was measured");
    hwnas_str_add(out, "\n\n");
}

static void add_goals(hwnas_str *out, const hwnas_summary *s)
{
    const char *space = job_text(s, "space"); /* a name, or a path to NAME.yaml */
    const char *name_of_space = strrchr(space, '/') ? strrchr(space, '/') + 1 : space;
    int length = (int)strlen(name_of_space);
    if (hwnas_ends_with(name_of_space, ".yaml"))
        length -= (int)strlen(".yaml");
    hwnas_str_addf(out, "Pareto front of %.*s: %zu network%s;", length, name_of_space, s->n_front,
                   s->n_front == 1 ? "" : "s");
    for (int i = 0; i < s->goals.n_objectives; i++)
        hwnas_str_addf(out, "%s %s %s", i ? "," : "",
                       s->goals.objectives[i]->is_maximised ? "most" : "least",
                       s->goals.objectives[i]->name);
    const char *name = json_string_value(json_object_get(s->device, "name"));
    const char *library = json_string_value(json_object_get(s->device, "library"));
    if (job_text(s, "device"))
        hwnas_str_addf(out, "\ndevice      %s%s%s%s%s", job_text(s, "device"), name ? ": " : "",
                       name ? name : "", library ? ", " : "", library ? library : "");
    json_int_t threads = json_integer_value(json_object_get(s->device, "threads"));
    if (threads)
        hwnas_str_addf(out, ", %lld thread%s, batch %lld", (long long)threads,
                       threads == 1 ? "" : "s",
                       (long long)json_integer_value(json_object_get(s->identity, "batch")));
    hwnas_str_add(out, "\n");
}

static void add_outcome(hwnas_str *out, const hwnas_summary *s)
{
    for (int i = 0; i < s->goals.n_limits; i++)
        hwnas_str_addf(out, "constraint  %s%s\n", s->goals.limits[i].text,
                       s->goals.limits[i].metric->source == HWNAS_FROM_DEVICE
                           ? ", kept by the whole interval of each measurement"
                           : "");
    const hwnas_trial *best = s->winner >= 0    ? &s->trials[s->winner]
                              : s->closest >= 0 ? &s->trials[s->closest]
                                                : NULL;
    if (best) {
        char *words = s->winner >= 0 ? hwnas_trial_words(best, &s->goals)
                                     : hwnas_limit_words(best, &s->goals);
        hwnas_str_addf(out, "%s     trial %llu: %s\n            %s\n",
                       s->winner >= 0 ? "winner " : "closest", (unsigned long long)best->number,
                       words, best->code);
        free(words);
    }
    hwnas_str_addf(out, "trials      %zu finished, %zu feasible, %zu failed, in %.*f s",
                   s->n_finished, s->n_feasible, s->n_failed, s->wall_seconds < 10,
                   s->wall_seconds);
    if (s->wall_seconds >= 1)
        hwnas_str_addf(out, ", %.0f a minute", 60 * (double)s->n_finished / s->wall_seconds);
    if (s->wall_seconds > 0 && s->run_seconds > 0)
        hwnas_str_addf(out, ", %.0f %% of the time inside measured runs",
                       100 * s->run_seconds / s->wall_seconds);
    hwnas_str_addf(out, "\nstudy       %s\n", s->study);
}

void hwnas_front_text(hwnas_str *out, const hwnas_summary *s)
{
    add_goals(out, s);
    if (s->n_front) {
        hwnas_str_add(out, "\n");
        add_table(out, s);
        add_legend(out, s);
    } else {
        hwnas_str_add(out, "\nno network meets the constraints so far\n\n");
    }
    add_outcome(out, s);
}

/* ---- JSON ---- */

static json_t *value_json(const hwnas_value_row *v)
{
    const hwnas_metric *metric = NULL;
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (!strcmp(m->name, v->metric))
            metric = m;
    double scale = metric ? metric->scale : 1;
    json_t *low = has_interval(v) ? json_real(v->low / scale) : json_null();
    json_t *high = has_interval(v) ? json_real(v->high / scale) : json_null();
    return json_pack("{s:f, s:s, s:o, s:o, s:s}", "value", v->value / scale, "unit",
                     metric ? metric->unit : v->unit, "low", low, "high", high, "source",
                     v->source);
}

static json_t *trial_json(const hwnas_trial *trial)
{
    json_t *values = json_object();
    for (int i = 0; i < trial->n_values; i++)
        json_object_set_new(values, trial->values[i].metric, value_json(&trial->values[i]));
    json_t *detail = trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
    return json_pack("{s:I, s:s, s:s, s:o, s:o*}", "trial", (json_int_t)trial->number, "arch",
                     trial->code, "digest", trial->digest, "objectives", values, "measurement",
                     detail);
}

static json_t *failures_json(const hwnas_summary *s)
{
    json_t *failures = json_array();
    for (size_t i = 0; i < s->n_trials; i++)
        if (s->trials[i].is_finished && s->trials[i].status != HWNAS_OK)
            json_array_append_new(
                failures,
                json_pack("{s:I, s:s, s:s, s:s}", "trial", (json_int_t)s->trials[i].number, "arch",
                          s->trials[i].code, "status", hwnas_status_name(s->trials[i].status),
                          "message", s->trials[i].message ? s->trials[i].message : ""));
    return failures;
}

json_t *hwnas_front_json(const hwnas_summary *s)
{
    json_t *front = json_array();
    for (size_t i = 0; i < s->n_front; i++)
        json_array_append_new(front, trial_json(&s->trials[s->front[i]]));
    return json_pack(
        "{s:s, s:i, s:s, s:O, s:O?, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:f, s:f, s:b}",
        "format", "hwnas.study", "version", 1, "study", s->study, "job", s->identity, "device",
        s->device, "trials", (json_int_t)s->n_trials, "finished", (json_int_t)s->n_finished,
        "failed", (json_int_t)s->n_failed, "feasible", (json_int_t)s->n_feasible, "front", front,
        "winner", s->winner >= 0 ? trial_json(&s->trials[s->winner]) : json_null(), "closest",
        s->winner < 0 && s->closest >= 0 ? trial_json(&s->trials[s->closest]) : json_null(),
        "failures", failures_json(s), "wall_seconds", s->wall_seconds, "run_seconds",
        s->run_seconds, "interrupted", s->is_interrupted);
}
