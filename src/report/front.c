#include "report/front.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/confirmed_text.h"
#include "report/grid.h"
#include "report/held_text.h"
#include "report/indicators_text.h"
#include "report/front_mixes.h"
#include "report/other_limits_text.h"
#include "report/unmeasured_text.h"
#include "report/verified_text.h"
#include "study/settings.h"

static const char *job_text(const hwnas_summary *s, const char *key)
{
    return json_string_value(json_object_get(s->identity, key));
}

static bool is_by_proxy(const hwnas_summary *s)
{
    const char *predictor = job_text(s, "accuracy");
    return predictor && hwnas_starts_with(predictor, "proxy:");
}

/* ---- Text ---- */

enum { MAX_COLUMNS = 2 * HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS };
_Static_assert(MAX_COLUMNS + 2 <= HWNAS_GRID_COLUMNS, "a front fits a grid");

static void add_column(hwnas_goal *out, int *n, const hwnas_goal *goal, const hwnas_trial *example)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(out[i].name, goal->name))
            return;
    if (*n < MAX_COLUMNS && hwnas_trial_value(example, goal->name))
        out[(*n)++] = *goal;
}

/* Of a front's networks: its objectives first, then what its limits ask, then what
 * everybody asks. */
static int columns(hwnas_goal out[MAX_COLUMNS], const hwnas_summary *s,
                   const hwnas_summary_front *front)
{
    const hwnas_trial *example = &s->trials[front->trials[0]];
    const hwnas_goals *g = &s->job.goals;
    int n = 0, which = front->device < 0 ? 0 : front->device;
    for (int i = 0; i < g->n_objectives; i++)
        if (hwnas_goal_counts(&g->objectives[i], g, which))
            add_column(out, &n, &g->objectives[i], example);
    for (int i = 0; i < g->n_limits; i++)
        if (hwnas_goal_counts(&g->limits[i].goal, g, which))
            add_column(out, &n, &g->limits[i].goal, example);
    for (const hwnas_metric *metric = hwnas_metrics; metric->name; metric++) {
        if (!metric->is_usual)
            continue;
        const bool is_measured = metric->source == HWNAS_FROM_DEVICE;
        if (is_measured && which < g->devices.n && *g->devices.rows[which].phase)
            continue; /* the objectives say which phase matters */
        hwnas_goal goal = hwnas_goal_of(metric, is_measured ? which : -1, &g->devices);
        if (is_by_proxy(s))
            hwnas_goals_of_scores(&goal, 1);
        add_column(out, &n, &goal, example);
    }
    return n;
}

/* Some accuracy of the front comes from a training, so that each is told what it is. */
static bool has_trained(const hwnas_summary *s, const hwnas_summary_front *front)
{
    bool is_there = false;
    for (size_t i = 0; i < front->n; i++)
        is_there |= hwnas_trial_value_of(&s->trials[front->trials[i]], HWNAS_TRAINED) != NULL;
    return is_there;
}

/* Of a number that is not to be taken at its word. */
static const char *mark_of(const hwnas_value_row *v)
{
    return hwnas_sources[v->source].doubt ? " !" : "";
}

/* `m`: the goal's metric as it is shown. */
static char *cell(const hwnas_trial *trial, const hwnas_goal *goal, const hwnas_metric *m,
                  bool with_source)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
    if (!v)
        return hwnas_strdup("-");
    if (with_source && m->source == HWNAS_FROM_PREDICTOR) {
        char *value = cell(trial, goal, m, false),
             *both = hwnas_printf("%s %s", value, hwnas_sources[v->source].name);
        free(value);
        return both;
    }
    if (hwnas_value_is_bounded(v) && v->low < v->high)
        return hwnas_printf("%.*f%s%s [%.*f, %.*f]", m->decimals, v->value / m->scale,
                            v->rounds ? " =" : "", trial->is_unstable ? " ?" : "", m->decimals,
                            v->low / m->scale, m->decimals, v->high / m->scale);
    if (hwnas_value_has_interval(v) && v->low < v->high)
        return hwnas_printf("%.*f%s +- %.*f", m->decimals, v->value / m->scale, mark_of(v),
                            m->decimals, (v->high - v->low) / 2 / m->scale);
    return hwnas_printf("%.*f%s", m->decimals, v->value / m->scale, mark_of(v));
}

static hwnas_metric shown_for(const hwnas_goal *goal, const hwnas_summary *s,
                              const hwnas_summary_front *front)
{
    double most = 0, least = INFINITY;
    for (size_t i = 0; i < front->n; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[front->trials[i]], goal->name);
        most = v ? fmax(most, v->value) : most;
        least = v ? fmin(least, v->value) : least;
    }
    return hwnas_metric_shown_among(goal->metric, least, most);
}

static char *heading(const hwnas_goal *goal, const hwnas_metric *m)
{
    const char *on = strchr(goal->name, ' '); /* " on pi" */
    const bool is_said = *goal->phase && !m->phase;
    return hwnas_printf(strstr(m->title, m->unit) ? "%s%s%s%s" : "%s%s%s%s %s",
                        is_said ? goal->phase : "", is_said ? " " : "", m->title, on ? on : "",
                        m->unit);
}

static void add_table(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    hwnas_goal goals[MAX_COLUMNS];
    hwnas_metric shown[MAX_COLUMNS];
    const int n = columns(goals, s, front);
    const bool with_source = has_trained(s, front);
    hwnas_grid grid = {0};
    hwnas_grid_column(&grid, "  trial", HWNAS_GRID_LEFT);
    for (int c = 0; c < n; c++) {
        shown[c] = shown_for(&goals[c], s, front);
        char *text = heading(&goals[c], &shown[c]);
        hwnas_grid_column(&grid, text, HWNAS_GRID_RIGHT);
        free(text);
    }
    hwnas_grid_column(&grid, "architecture", HWNAS_GRID_LEFT);
    for (size_t i = 0; i < front->n; i++) {
        const hwnas_trial *trial = &s->trials[front->trials[i]];
        hwnas_grid_cell(&grid, "%c %5llu", (long)front->trials[i] == front->winner ? '*' : ' ',
                        (unsigned long long)trial->number);
        for (int c = 0; c < n; c++)
            hwnas_grid_take(&grid, cell(trial, &goals[c], &shown[c], with_source));
        hwnas_grid_cell(&grid, "%s", trial->code);
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
}

/* What the brackets and the plus-minus of the table are, where it has them. */
static void add_legend(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    bool has_measured = false, has_predicted = false, has_unstable = false, has_again = false;
    bool is_in_doubt[HWNAS_N_SOURCES] = {0};
    for (size_t i = 0; i < front->n; i++) {
        const hwnas_trial *trial = &s->trials[front->trials[i]];
        has_unstable |= trial->is_unstable;
        for (size_t k = 0; k < trial->n_values; k++) {
            const hwnas_value_row *v = &trial->values[k];
            const bool has_interval = hwnas_value_has_interval(v);
            has_measured |= hwnas_value_is_bounded(v);
            has_predicted |= hwnas_sources[v->source].is_predicted && has_interval;
            is_in_doubt[v->source] |= hwnas_sources[v->source].doubt != NULL;
            has_again |= v->rounds > 0;
        }
    }
    hwnas_str_add(out, "* winner");
    if (has_predicted)
        hwnas_str_add(out, "; +- standard deviation of the prediction");
    for (int i = 0; i < HWNAS_N_SOURCES; i++)
        if (is_in_doubt[i])
            hwnas_str_addf(out, "; ! %s", hwnas_sources[i].doubt);
    if (has_measured)
        hwnas_str_add(out, "; [ ] 95 % interval of the measured median");
    if (has_again)
        hwnas_str_add(out, "; = measured again in turns with others");
    if (has_unstable)
        hwnas_str_add(out, "; ? the machine was disturbed twice while it was measured");
    hwnas_str_add(out, "\n\n");
}

/* "accel_nasbench", of a name or a path to NAME.yaml. */
static void add_space(hwnas_str *out, const hwnas_summary *s)
{
    const char *space = job_text(s, "space");
    const char *name = strrchr(space, '/') ? strrchr(space, '/') + 1 : space;
    size_t length = strlen(name);
    if (hwnas_ends_with(name, ".yaml"))
        length -= strlen(".yaml");
    hwnas_str_addn(out, name, length);
}

static void add_title(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    const hwnas_goals *g = &s->job.goals;
    bool is_first = true;
    hwnas_str_add(out, "Pareto front of ");
    add_space(out, s);
    if (front->device >= 0)
        hwnas_str_addf(out, " on %s", g->devices.rows[front->device].name);
    hwnas_str_addf(out, ": %zu network%s;", front->n, front->n == 1 ? "" : "s");
    for (int i = 0; i < g->n_objectives; i++) {
        const hwnas_goal *goal = &g->objectives[i];
        if (!hwnas_goal_counts(goal, g, front->device < 0 ? 0 : front->device))
            continue;
        hwnas_str_addf(out, "%s %s %s", is_first ? "" : ",",
                       goal->metric->is_maximised ? "most" : "least", goal->name);
        is_first = false;
    }
    hwnas_str_add(out, "\n");
}

/* A proxy's score stands in the column of the accuracy. */
static void add_doubt(hwnas_str *out, const hwnas_summary *s)
{
    if (is_by_proxy(s))
        hwnas_str_addf(out, "score       of %s: it ranks, and is not a percentage\n",
                       job_text(s, "accuracy"));
}

static void add_devices(hwnas_str *out, const hwnas_summary *s)
{
    for (int i = 0; i < s->job.goals.devices.n; i++) {
        const hwnas_job_device *device = &s->job.goals.devices.rows[i];
        const hwnas_row_name row = hwnas_job_row_name(&s->job.goals.devices, i);
        const json_t *info = json_object_get(s->devices, row.text);
        const char *name = json_string_value(json_object_get(info, "name"));
        const char *library = json_string_value(json_object_get(info, "library"));
        json_int_t threads = json_integer_value(json_object_get(info, "threads"));
        bool is_named = s->job.goals.devices.n > 1 && strcmp(row.text, device->spelling) != 0;
        hwnas_str_addf(out, "device      %s%s%s%s%s%s%s", is_named ? row.text : "",
                       is_named ? " = " : "", device->spelling, name ? ": " : "", name ? name : "",
                       library ? ", " : "", library ? library : "");
        if (threads && !hwnas_setting_is_open(&s->job.threads))
            hwnas_str_addf(out, ", %lld thread%s", (long long)threads, threads == 1 ? "" : "s");
        if (threads && !hwnas_setting_is_open(&s->job.batch))
            hwnas_str_addf(out, ", batch %d",
                           device->batch ? device->batch : s->job.batch.values[0]);
        const int dtype = device->dtype ? device->dtype : s->job.dtype.values[0];
        if (threads && !hwnas_setting_is_open(&s->job.dtype) && dtype != 1 + HWNAS_F32)
            hwnas_str_addf(out, ", %s", hwnas_setting_table[HWNAS_DTYPE].word(dtype));
        hwnas_str_add(out, "\n");
    }
}

static void add_best(hwnas_str *out, const hwnas_summary *s, const char *title, long which,
                     char *(*words_of)(const hwnas_trial *, const hwnas_goals *))
{
    if (which < 0)
        return;
    const hwnas_trial *trial = &s->trials[which];
    char *words = words_of(trial, &s->job.goals);
    hwnas_str_addf(out, "%-11s trial %llu: %s\n            %s\n", title,
                   (unsigned long long)trial->number, words, trial->code);
    free(words);
}

/* Why networks dropped out: the last that did. */
static void add_failure(hwnas_str *out, const hwnas_summary *s)
{
    for (size_t i = s->n_trials; i-- > 0;) {
        const hwnas_trial *trial = &s->trials[i];
        if (!trial->is_finished || trial->status == HWNAS_OK)
            continue;
        hwnas_str_addf(out, "\n            the last that failed: trial %llu: %s",
                       (unsigned long long)trial->number, trial->message ? trial->message : "?");
        return;
    }
}

static void add_outcome(hwnas_str *out, const hwnas_summary *s)
{
    for (int i = 0; i < s->job.goals.n_limits; i++)
        hwnas_str_addf(out, "constraint  %s%s\n", s->job.goals.limits[i].text,
                       s->job.goals.limits[i].goal.metric->source == HWNAS_FROM_DEVICE
                           ? ", kept by the whole interval of each measurement"
                           : "");
    hwnas_other_limits_text(out, s);
    for (int f = 0; f < s->n_fronts; f++)
        add_best(out, s, "winner", s->fronts[f].winner, hwnas_trial_words);
    for (int f = 0; f < s->n_fronts; f++)
        hwnas_indicators_text(out, s, &s->fronts[f]);
    hwnas_confirmed_text(out, s);
    hwnas_front_mixes_text(out, s);
    if (hwnas_summary_winner(s) < 0)
        add_best(out, s, "closest", s->closest, hwnas_limit_words);
    hwnas_held_text(out, s->held, 12);
    hwnas_among_text(out, s->n_among, 12);
    hwnas_str_addf(out, "trials      %zu finished, %zu feasible, %zu failed", s->n_finished,
                   s->n_feasible, s->n_failed);
    hwnas_failures_text(out, s);
    hwnas_str_addf(out, ", in %.*f s", s->wall_seconds < 10, s->wall_seconds);
    if (s->n_short)
        hwnas_str_addf(out, ", %zu of them at a cheaper rung", s->n_short);
    if (s->wall_seconds >= 1)
        hwnas_str_addf(out, ", %.0f a minute", 60 * (double)s->n_finished / s->wall_seconds);
    if (s->wall_seconds > 0 && s->run_seconds > 0)
        hwnas_str_addf(out, ", %.0f %% of the time inside measured runs",
                       100 * s->run_seconds / s->wall_seconds);
    hwnas_left_out_text(out, s->n_left_out, 12);
    if (s->n_warm)
        hwnas_str_addf(out, "\n            the first %llu taken over from another study",
                       (unsigned long long)s->n_warm);
    if (s->n_outside)
        hwnas_str_addf(out,
                       "\n            %llu of the other study left out: outside what the predictor "
                       "has learned from",
                       (unsigned long long)s->n_outside);
    add_failure(out, s);
    hwnas_unmeasured_text(out, s);
    hwnas_verified_text(out, s);
    hwnas_slow_ones_text(out, s);
    if (s->ended)
        hwnas_str_addf(out, "\nended       %s", s->ended);
    hwnas_str_addf(out, "\nstudy       %s\n", s->study);
}

void hwnas_front_text(hwnas_str *out, const hwnas_summary *s)
{
    for (int f = 0; f < s->n_fronts; f++) {
        const hwnas_summary_front *front = &s->fronts[f];
        add_title(out, s, front);
        if (f == 0) {
            add_devices(out, s);
            add_doubt(out, s);
        }
        if (front->n) {
            hwnas_str_add(out, "\n");
            add_table(out, s, front);
            add_legend(out, s, front);
        } else {
            hwnas_str_add(out, hwnas_evidence_is_bad(&s->evidence)
                                   ? "\nthe machine was too busy to tell whether a network meets "
                                     "the constraints\n\n"
                                   : "\nno network meets the constraints so far\n\n");
        }
    }
    add_outcome(out, s);
}

/* ---- JSON ---- */

/* JSON has no other numbers than finite ones. */
static json_t *number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *hwnas_value_json(const hwnas_value_row *v)
{
    const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
    double scale = metric ? metric->scale : 1;
    json_t *low = number_json(hwnas_value_has_interval(v) ? v->low / scale : NAN);
    json_t *high = number_json(hwnas_value_has_interval(v) ? v->high / scale : NAN);
    const bool is_score = metric && metric->source == HWNAS_FROM_PREDICTOR &&
                          v->source == HWNAS_COMPUTED; /* a proxy's */
    const char *unit = is_score ? "score" : metric ? metric->unit : v->unit;
    json_t *json =
        json_pack("{s:o, s:s, s:o, s:o, s:s}", "value", number_json(v->value / scale), "unit", unit,
                  "low", low, "high", high, "source", hwnas_sources[v->source].name);
    if (v->rounds)
        json_object_set_new(json, "rounds", json_integer(v->rounds));
    return json;
}

json_t *hwnas_trial_json(const hwnas_trial *trial, const hwnas_job *job)
{
    json_t *values = json_object();
    for (size_t i = 0; i < trial->n_values; i++)
        json_object_set_new(values, trial->values[i].metric, hwnas_value_json(&trial->values[i]));
    json_t *detail = trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
    json_t *verified = json_incref(json_object_get(detail, "verified"));
    json_object_del(detail, "verified");
    if (detail && hwnas_trial_is_measured(trial))
        json_object_set_new(detail, "unstable", json_boolean(trial->is_unstable));
    if (!json_object_size(detail)) {
        json_decref(detail);
        detail = NULL;
    }
    char *code = hwnas_strdup(trial->code);
    hwnas_settings settings = hwnas_settings_cut(code, job);
    json_t *json = json_pack("{s:I, s:s, s:s, s:o, s:o*, s:o*}", "trial", (json_int_t)trial->number,
                             "arch", code, "digest", trial->digest, "objectives", values,
                             "measurement", detail, "verified", verified);
    if (trial->rung)
        json_object_set_new(json, "rung", json_integer(trial->rung));
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        const int value = *hwnas_setting_in(s, &settings);
        if (hwnas_setting_is_open(hwnas_setting_of_job(s, job)) && value)
            json_object_set_new(json, s->name,
                                s->word ? json_string(s->word(value)) : json_integer(value));
    }
    free(code);
    return json;
}

/* Of a front; -1: null. */
static json_t *chosen_json(const hwnas_summary *s, long which)
{
    if (which < 0)
        return json_null();
    json_t *json = hwnas_trial_json(&s->trials[which], &s->job);
    json_object_set_new(json, "expected", hwnas_expected_json(&s->trials[which], &s->job.goals));
    return json;
}

static json_t *list_json(const hwnas_summary *s, const hwnas_summary_front *front)
{
    json_t *list = json_array();
    for (size_t i = 0; i < front->n; i++)
        json_array_append_new(list, chosen_json(s, (long)front->trials[i]));
    return list;
}

/* One for each device. */
static json_t *fronts_json(const hwnas_summary *s)
{
    json_t *fronts = json_object();
    for (int f = 0; f < s->n_fronts && s->job.goals.is_front_per_device; f++)
        json_object_set_new(fronts, s->job.goals.devices.rows[s->fronts[f].device].name,
                            json_pack("{s:o, s:o, s:o}", "front", list_json(s, &s->fronts[f]),
                                      "winner", chosen_json(s, s->fronts[f].winner), "hypervolume",
                                      hwnas_indicators_json(s, &s->fronts[f])));
    return fronts;
}

json_t *hwnas_front_json(const hwnas_summary *s)
{
    long winner = hwnas_summary_winner(s);
    const json_t *device =
        s->job.goals.devices.n == 1
            ? json_object_get(s->devices, hwnas_job_row_name(&s->job.goals.devices, 0).text)
            : NULL;
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:O, s:O?, s:O?, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, "
                  "s:o, s:o, s:o, s:s?, s:o, s:o, s:b}",
                  "format", "hwnas.study", "version", 1, "study", s->study, "job", s->identity,
                  "device", device, "devices", s->devices, "trials", (json_int_t)s->n_trials,
                  "finished", (json_int_t)s->n_finished, "failed", (json_int_t)s->n_failed,
                  "feasible", (json_int_t)s->n_feasible, "estimated", (json_int_t)s->n_estimated,
                  "remeasured", (json_int_t)s->n_remeasured, "estimate_error",
                  number_json(s->estimate_error), "warm", (json_int_t)s->n_warm, "front",
                  list_json(s, &s->fronts[0]), "winner", chosen_json(s, winner), "closest",
                  winner < 0 && s->closest >= 0 ? hwnas_trial_json(&s->trials[s->closest], &s->job)
                                                : json_null(),
                  "failures", hwnas_failures_json(s), "ended", s->ended, "wall_seconds",
                  number_json(s->wall_seconds), "run_seconds", number_json(s->run_seconds),
                  "interrupted", s->is_interrupted);
    json_object_set_new(json, "hypervolume", hwnas_indicators_json(s, &s->fronts[0]));
    json_object_set_new(json, "failed_by", hwnas_failure_counts_json(s));
    json_object_set_new(json, "ended_early", json_integer((json_int_t)s->n_ended_early));
    json_object_set_new(json, "waiting", json_integer((json_int_t)s->n_waiting));
    json_object_set_new(json, "waiting_trained", json_integer((json_int_t)s->n_waiting_trained));
    json_object_set_new(json, "untrained", json_integer((json_int_t)s->n_untrained));
    json_object_set_new(json, "left_out", json_integer((json_int_t)s->n_left_out));
    json_object_set_new(json, "warm_outside", json_integer((json_int_t)s->n_outside));
    json_object_set_new(json, "other_limits", hwnas_other_limits_json(s));
    json_object_set_new(json, "among",
                        s->n_among ? json_integer((json_int_t)s->n_among) : json_null());
    json_object_set_new(json, "held", s->held ? json_incref(s->held) : json_object());
    json_object_set_new(json, "verified", hwnas_verified_json(s));
    json_object_set_new(json, "slow_code", hwnas_slow_ones_json(s));
    json_object_set_new(json, "conditions",
                        s->conditions ? json_incref(s->conditions) : json_null());
    if (s->thorough)
        json_object_set_new(json, "thorough", hwnas_thorough_json(s));
    json_object_set_new(json, "confirmed", hwnas_confirmed_json(s));
    json_object_set_new(json, "evidence",
                        json_pack("{s:I, s:I, s:b}", "missed", (json_int_t)s->evidence.n_missed,
                                  "disturbed", (json_int_t)s->evidence.n_disturbed, "bad",
                                  hwnas_evidence_is_bad(&s->evidence)));
    if (s->job.goals.is_front_per_device)
        json_object_set_new(json, "fronts", fronts_json(s));
    return json;
}
