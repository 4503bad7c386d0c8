#include "report/trials_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "profile/fields.h"
#include "report/front.h"
#include "report/grid.h"
#include "report/other_limits_text.h"
#include "study/other_limits.h"

static bool is_known(const hwnas_trial_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->names[i], name))
            return true;
    return m->n == HWNAS_TRIAL_METRICS;
}

hwnas_trial_metrics hwnas_trial_metrics_find(const hwnas_summary *s)
{
    hwnas_trial_metrics m = {0};
    for (size_t t = 0; t < s->n_trials; t++)
        for (size_t i = 0; i < s->trials[t].n_values; i++) {
            const char *name = s->trials[t].values[i].metric;
            const hwnas_metric *kind = hwnas_metric_of_value(name);
            if (!kind || is_known(&m, name))
                continue;
            m.names[m.n] = name;
            m.kinds[m.n++] = kind;
        }
    return m;
}

bool *hwnas_trials_on_fronts(const hwnas_summary *s)
{
    bool *is_on = hwnas_alloc((s->n_trials + 1) * sizeof *is_on);
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n; i++)
            is_on[s->fronts[f].trials[i]] = true;
    return is_on;
}

/* "ok", "running", or why it failed. */
static const char *state_of(const hwnas_trial *t)
{
    return t->is_finished ? hwnas_status_name(t->status) : "running";
}

static void add_number(hwnas_str *out, double value)
{
    hwnas_str_addf(out, isfinite(value) ? ",%.9g" : ",", value);
}

void hwnas_trials_csv(hwnas_str *out, const hwnas_summary *s)
{
    const hwnas_trial_metrics m = hwnas_trial_metrics_find(s);
    bool *is_on_front = hwnas_trials_on_fronts(s);
    hwnas_str_add(out, "trial,architecture,status,front,feasible,unstable,stopped_early,seconds");
    for (size_t i = 0; i < m.n; i++) {
        const char *unit = m.kinds[i]->unit, *name = m.names[i];
        hwnas_str_addf(out, ",%s%s%s%s,%s low,%s high,%s source", name, *unit ? " (" : "", unit,
                       *unit ? ")" : "", name, name, name);
    }
    hwnas_str_add(out, ",message\n");
    for (size_t k = 0; k < s->n_trials; k++) {
        const hwnas_trial *t = &s->trials[k];
        const bool is_good = t->is_finished && t->status == HWNAS_OK;
        hwnas_str_addf(out, "%llu,", (unsigned long long)t->number);
        hwnas_csv_text(out, t->code);
        hwnas_str_addf(out, ",%s,%d,%s,%d,%d", state_of(t), is_on_front[k],
                       !is_good || hwnas_other_limits_leave_open(s, t) ? ""
                       : t->violation > 0                              ? "0"
                                                                       : "1",
                       t->is_unstable, t->is_stopped_early);
        add_number(out, t->is_finished ? t->seconds : NAN);
        for (size_t i = 0; i < m.n; i++) {
            const hwnas_value_row *v = hwnas_trial_value(t, m.names[i]);
            const double scale = m.kinds[i]->scale;
            add_number(out, v ? v->value / scale : NAN);
            add_number(out, v ? v->low / scale : NAN);
            add_number(out, v ? v->high / scale : NAN);
            hwnas_str_addf(out, ",%s", v ? hwnas_sources[v->source].name : "");
        }
        hwnas_str_add(out, ",");
        hwnas_csv_text(out, t->message ? t->message : "");
        hwnas_str_add(out, "\n");
    }
    free(is_on_front);
}

static hwnas_metric shown_for(const hwnas_summary *s, const char *name, const hwnas_metric *kind)
{
    double most = 0, least = INFINITY;
    for (size_t k = 0; k < s->n_trials; k++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[k], name);
        most = v ? fmax(most, v->value) : most;
        least = v ? fmin(least, v->value) : least;
    }
    return hwnas_metric_shown_among(kind, least, most);
}

static const char *standing_of(const hwnas_summary *s, const hwnas_trial *t)
{
    const bool is_good = t->is_finished && t->status == HWNAS_OK;
    /* What the curve of a training says of a limit is a prediction. */
    const bool is_of_curve = is_good && hwnas_trial_value_of(t, HWNAS_OF_CURVE);
    const bool is_left_out = is_good && hwnas_trial_value_of(t, HWNAS_LEFT_OUT);
    return hwnas_other_limits_leave_open(s, t) ? "not measured"
           : is_of_curve                       ? "stopped early"
           : is_left_out                       ? "left out"
           : is_good && t->violation > 0       ? "infeasible"
           : hwnas_trial_is_estimated(t)       ? "estimated"
           : is_good && t->is_stopped_early    ? "stopped early"
           : is_good && t->is_unstable         ? "unstable"
                                               : state_of(t);
}

/* The metrics of a table, each in a unit that suits all of its values. */
typedef struct shown_metrics {
    hwnas_trial_metrics metrics;
    hwnas_metric shown[HWNAS_TRIAL_METRICS];
} shown_metrics;

static void begin_table(hwnas_grid *grid, shown_metrics *m, const hwnas_summary *s,
                        const char *first)
{
    m->metrics = hwnas_trial_metrics_find(s);
    hwnas_grid_column(grid, first, HWNAS_GRID_LEFT);
    for (size_t i = 0; i < m->metrics.n; i++) {
        m->shown[i] = shown_for(s, m->metrics.names[i], m->metrics.kinds[i]);
        char *heading = hwnas_printf("%s %s", m->metrics.names[i], m->shown[i].unit);
        hwnas_grid_column(grid, heading, HWNAS_GRID_RIGHT);
        free(heading);
    }
    hwnas_grid_column(grid, "status", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "architecture", HWNAS_GRID_LEFT);
}

/* What stands behind the trial's number. */
static void add_trial(hwnas_grid *grid, const shown_metrics *m, const hwnas_summary *s,
                      const hwnas_trial *t)
{
    for (size_t i = 0; i < m->metrics.n; i++) {
        const hwnas_value_row *v = hwnas_trial_value(t, m->metrics.names[i]);
        hwnas_grid_number(grid, m->shown[i].decimals, v ? v->value / m->shown[i].scale : NAN);
    }
    hwnas_grid_cell(grid, "%s", standing_of(s, t));
    hwnas_grid_cell(grid, "%s", t->code);
}

void hwnas_trials_text(hwnas_str *out, const hwnas_summary *s)
{
    bool *is_on_front = hwnas_trials_on_fronts(s);
    hwnas_grid grid = {0};
    shown_metrics m;
    begin_table(&grid, &m, s, "  trial");
    for (size_t k = 0; k < s->n_trials; k++) {
        hwnas_grid_cell(&grid, "%c %5llu", is_on_front[k] ? '*' : ' ',
                        (unsigned long long)s->trials[k].number);
        add_trial(&grid, &m, s, &s->trials[k]);
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n*: on the Pareto front\n");
    hwnas_other_limits_text(out, s);
    free(is_on_front);
}

/* The trials with these places in the summary (NULL: all), as a table of Markdown. */
static void add_markdown(hwnas_str *out, const hwnas_summary *s, const size_t *places, size_t n)
{
    hwnas_grid grid = {0};
    shown_metrics m;
    begin_table(&grid, &m, s, "trial");
    for (size_t i = 0; i < n; i++) {
        const hwnas_trial *t = &s->trials[places ? places[i] : i];
        hwnas_grid_cell(&grid, "%llu", (unsigned long long)t->number);
        add_trial(&grid, &m, s, t);
    }
    hwnas_grid_markdown(out, &grid);
    hwnas_grid_done(&grid);
}

void hwnas_trials_markdown(hwnas_str *out, const hwnas_summary *s)
{
    const long winner = hwnas_summary_winner(s);
    hwnas_str_add(out, "# ");
    hwnas_markdown_text(out, s->study);
    hwnas_str_add(out, "\n");
    for (int f = 0; f < s->n_fronts; f++) {
        hwnas_str_add(out, "\n## Pareto front");
        if (s->fronts[f].device >= 0) {
            hwnas_str_add(out, " on ");
            hwnas_markdown_text(out, s->job.goals.devices.rows[s->fronts[f].device].name);
        }
        hwnas_str_addf(out, ": %zu network%s of %zu trial%s\n\n", s->fronts[f].n,
                       s->fronts[f].n == 1 ? "" : "s", s->n_trials, s->n_trials == 1 ? "" : "s");
        add_markdown(out, s, s->fronts[f].trials, s->fronts[f].n);
    }
    if (winner >= 0)
        hwnas_str_addf(out, "\nThe winner is trial %llu.\n",
                       (unsigned long long)s->trials[winner].number);
    hwnas_str_add(out, "\n## All trials\n\n");
    add_markdown(out, s, NULL, s->n_trials);
}

static json_t *row_json(const hwnas_summary *s, const hwnas_trial *t, bool is_on_front)
{
    json_t *row = hwnas_trial_json(t, &s->job);
    json_object_set_new(row, "status", json_string(state_of(t)));
    json_object_set_new(row, "front", json_boolean(is_on_front));
    if (t->is_finished && t->status == HWNAS_OK)
        json_object_set_new(
            row, "feasible",
            hwnas_other_limits_leave_open(s, t) ? json_null() : json_boolean(!(t->violation > 0)));
    if (t->message)
        json_object_set_new(row, "message", json_string(t->message));
    return row;
}

json_t *hwnas_trials_json(const hwnas_summary *s)
{
    bool *is_on_front = hwnas_trials_on_fronts(s);
    json_t *rows = json_array();
    for (size_t k = 0; k < s->n_trials; k++)
        json_array_append_new(rows, row_json(s, &s->trials[k], is_on_front[k]));
    free(is_on_front);
    return json_pack("{s:s, s:i, s:s, s:o, s:o}", "format", "hwnas.trials", "version", 1, "study",
                     s->study, "other_limits", hwnas_other_limits_json(s), "trials", rows);
}

void hwnas_trials_jsonl(hwnas_str *out, const hwnas_summary *s)
{
    bool *is_on_front = hwnas_trials_on_fronts(s);
    for (size_t k = 0; k < s->n_trials; k++) {
        json_t *row = row_json(s, &s->trials[k], is_on_front[k]);
        char *line = json_dumps(row, JSON_COMPACT);
        hwnas_str_addf(out, "%s\n", line);
        free(line);
        json_decref(row);
    }
    free(is_on_front);
}
