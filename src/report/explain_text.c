#include "report/explain_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/front.h"
#include "report/grid.h"

/* ---- Text ---- */

static void add_value(hwnas_str *out, const hwnas_goal *goal, double value, bool with_sign)
{
    const hwnas_metric shown = hwnas_metric_shown(goal->metric, fabs(value)), *m = &shown;
    hwnas_str_addf(out, with_sign ? "%+.*f%s%s" : "%.*f%s%s", m->decimals, value / m->scale,
                   *m->unit ? " " : "", m->unit);
}

/* That winners are found by. */
static const hwnas_goal *first_goal(const hwnas_explanation *e)
{
    for (int i = 0; i < e->summary->job.goals.n_objectives; i++)
        if (hwnas_goal_counts(&e->summary->job.goals.objectives[i], &e->summary->job.goals,
                              e->front))
            return &e->summary->job.goals.objectives[i];
    return &e->summary->job.goals.objectives[0];
}

/* Why it is where it is. */
static void add_standing(hwnas_str *out, const hwnas_explanation *e)
{
    const hwnas_summary *s = e->summary;
    const hwnas_trial *t = &s->trials[e->trial];
    const hwnas_summary_front *front = &s->fronts[e->front];
    char *words = hwnas_trial_words(t, &s->job.goals);
    hwnas_str_addf(out, "trial %llu: %s\n  %s\n\n", (unsigned long long)t->number, words, t->code);
    free(words);
    if (front->winner == e->trial)
        hwnas_str_addf(out, "It is the winner: of %zu feasible networks none has a better %s.\n",
                       s->n_feasible, first_goal(e)->name);
    else if (e->is_on_front)
        hwnas_str_add(out, "It is on the front: every feasible network that is better in one "
                           "objective is worse in another.\n");
    else if (e->dominated_by >= 0)
        hwnas_str_addf(out, "It is not on the front: trial %llu is nowhere worse.\n",
                       (unsigned long long)s->trials[e->dominated_by].number);
    for (int i = 0; i < s->job.goals.n_limits; i++) {
        const hwnas_limit *limit = &s->job.goals.limits[i];
        const hwnas_value_row *v = hwnas_trial_value(t, limit->goal.name);
        if (!v) {
            hwnas_str_addf(out, "  %s: not measured, as it misses another limit\n", limit->text);
            continue;
        }
        double end = limit->is_upper ? hwnas_value_high(v) : hwnas_value_low(v);
        double room = limit->is_upper ? limit->value - end : end - limit->value;
        if (v->source == HWNAS_PARTIAL) {
            hwnas_str_addf(out, "  %s: missed, as part of the samples was enough to tell\n",
                           limit->text);
            continue;
        }
        hwnas_str_addf(out, "  %s: %s by ", limit->text, room >= 0 ? "kept" : "missed");
        add_value(out, &limit->goal, fabs(room), false);
        hwnas_str_add(out, hwnas_value_is_bounded(v) ? ", counted from the end of its interval\n"
                                                     : "\n");
    }
    hwnas_str_add(out, "\n");
}

/* As the values of a goal are shown, which are those of one column. */
static hwnas_metric shown_for(const hwnas_explanation *e, const hwnas_goal *goal)
{
    const hwnas_value_row *own = hwnas_trial_value(&e->summary->trials[e->trial], goal->name);
    double most = own ? own->value : 0;
    for (size_t i = 0; i < e->n_neighbours; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&e->neighbours[i].values, goal->name);
        most = v ? fmax(most, v->value) : most;
    }
    return hwnas_metric_shown(goal->metric, most);
}

static char *cell(const hwnas_explanation *e, const hwnas_neighbour *n, const hwnas_goal *goal,
                  const hwnas_metric *m)
{
    const hwnas_value_row *v = hwnas_trial_value(&n->values, goal->name);
    const hwnas_value_row *own = hwnas_trial_value(&e->summary->trials[e->trial], goal->name);
    if (!v)
        return hwnas_strdup("-");
    if (v->source == HWNAS_PARTIAL) /* enough for a limit, not for a difference */
        return hwnas_strdup("partial");
    bool is_estimated = v->source == HWNAS_ESTIMATED;
    const char *mark = hwnas_sources[v->source].doubt ? " !" : "";
    if (!own)
        return hwnas_printf("%s%.*f%s", is_estimated ? "~" : "", m->decimals, v->value / m->scale,
                            mark);
    const double more = hwnas_shown_difference((v->value - own->value) / m->scale, m->decimals);
    return hwnas_printf("%s%.*f%s (%+.*f)", is_estimated ? "~" : "", m->decimals,
                        v->value / m->scale, mark, m->decimals, more);
}

static char *verdict(const hwnas_explanation *e, const hwnas_neighbour *n)
{
    const char *limits = n->violation > 0 ? ", misses a limit" : "";
    return n->trial >= 0
               ? hwnas_printf("trial %llu%s",
                              (unsigned long long)e->summary->trials[n->trial].number, limits)
               : hwnas_printf("not tried%s", limits);
}

/* What the mark of some value means; NULL: none is marked. */
static const char *find_doubt(const hwnas_explanation *e)
{
    for (size_t i = 0; i < e->n_neighbours; i++)
        for (size_t k = 0; k < e->neighbours[i].values.n_values; k++)
            if (hwnas_sources[e->neighbours[i].values.values[k].source].doubt)
                return hwnas_sources[e->neighbours[i].values.values[k].source].doubt;
    return NULL;
}

static void add_neighbours(hwnas_str *out, const hwnas_explanation *e)
{
    hwnas_grid grid = {0};
    hwnas_metric shown[HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS];
    hwnas_str_addf(out, "One change away (%zu networks; in brackets the difference):\n\n",
                   e->n_neighbours);
    hwnas_grid_column(&grid, "  change", HWNAS_GRID_LEFT);
    for (int g = 0; g < e->n_goals; g++) {
        shown[g] = shown_for(e, &e->goals[g]);
        const char *unit = shown[g].unit;
        char *title = hwnas_printf("%s%s%s", e->goals[g].name, *unit ? " " : "", unit);
        hwnas_grid_column(&grid, title, HWNAS_GRID_RIGHT);
        free(title);
    }
    hwnas_grid_column(&grid, "", HWNAS_GRID_LEFT);
    for (size_t i = 0; i < e->n_neighbours; i++) {
        const hwnas_neighbour *n = &e->neighbours[i];
        hwnas_grid_cell(&grid, "  %s", n->change);
        for (int g = 0; g < e->n_goals; g++)
            hwnas_grid_take(&grid, cell(e, n, &e->goals[g], &shown[g]));
        hwnas_grid_take(&grid, verdict(e, n));
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
    const char *doubt = find_doubt(e);
    if (doubt)
        hwnas_str_addf(out, "! %s\n\n", doubt);
    bool is_estimated = false;
    for (int g = 0; g < e->n_goals; g++)
        if (!isnan(e->errors[g])) {
            is_estimated = true;
            hwnas_str_addf(
                out,
                "~ %s estimated from the choices of %zu measured networks of this study; on "
                "left-out ones\n  it is off by %.1f %% in the middle\n",
                e->goals[g].name, e->n_measured, 100 * e->errors[g]);
        }
    for (int g = 0; g < e->n_goals; g++)
        if (!isnan(e->part_errors[g])) {
            is_estimated = true;
            hwnas_str_addf(out,
                           "~ %s estimated from the parts that this study timed (table of "
                           "latencies); networks that it\n  estimated before they were measured "
                           "were %.1f %% off in the middle\n",
                           e->goals[g].name, 100 * e->part_errors[g]);
        }
    if (!is_estimated && e->n_measured > 0)
        hwnas_str_addf(out, "- not measured; %zu measured networks are too few to estimate from\n",
                       e->n_measured);
    hwnas_str_add(out, is_estimated || e->n_measured ? "\n" : "");
}

/* The change that helps one goal most; NULL: none does. */
static const hwnas_neighbour *best_for(const hwnas_explanation *e, const hwnas_goal *goal)
{
    const hwnas_value_row *own = hwnas_trial_value(&e->summary->trials[e->trial], goal->name);
    const hwnas_neighbour *best = NULL;
    double most = 0;
    for (size_t i = 0; i < e->n_neighbours && own; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&e->neighbours[i].values, goal->name);
        double gain = !v                           ? 0
                      : goal->metric->is_maximised ? v->value - own->value
                                                   : own->value - v->value;
        if (gain > most) {
            most = gain;
            best = &e->neighbours[i];
        }
    }
    return best;
}

/* Every neighbour has a value. */
static bool is_known(const hwnas_explanation *e, const hwnas_goal *goal)
{
    for (size_t i = 0; i < e->n_neighbours; i++)
        if (!hwnas_trial_value(&e->neighbours[i].values, goal->name))
            return false;
    return true;
}

static void add_dearest(hwnas_str *out, const hwnas_explanation *e)
{
    hwnas_str_add(out, "What each objective could gain most by one change:\n");
    for (int g = 0; g < e->n_goals; g++) {
        const hwnas_neighbour *best = best_for(e, &e->goals[g]);
        if (!best) {
            hwnas_str_addf(out, "  %s: %s\n", e->goals[g].name,
                           is_known(e, &e->goals[g]) ? "nothing" : "not known");
            continue;
        }
        hwnas_str_addf(out, "  %s: %s;", e->goals[g].name, best->change);
        for (int h = 0, n = 0; h < e->n_goals; h++) {
            const hwnas_value_row *v = hwnas_trial_value(&best->values, e->goals[h].name);
            const hwnas_value_row *own =
                hwnas_trial_value(&e->summary->trials[e->trial], e->goals[h].name);
            if (!v || !own)
                continue;
            hwnas_str_addf(out, "%s %s ", n++ ? "," : "", e->goals[h].name);
            add_value(out, &e->goals[h], v->value - own->value, true);
        }
        hwnas_str_add(out, best->violation > 0 ? "; misses a limit\n" : "\n");
    }
    hwnas_str_add(out, "\n");
}

static void add_relaxations(hwnas_str *out, const hwnas_explanation *e)
{
    const hwnas_goals *goals = &e->summary->job.goals;
    const hwnas_goal *first = first_goal(e);
    if (!goals->n_limits)
        return;
    hwnas_str_add(out, "What a looser limit would buy:\n");
    for (int l = 0; l < goals->n_limits; l++) {
        bool is_any = false;
        for (size_t i = 0; i < e->n_relaxations; i++) {
            const hwnas_relaxation *r = &e->relaxations[i];
            if (r->limit != l)
                continue;
            is_any = true;
            hwnas_str_addf(out, "  %s of ", goals->limits[l].goal.name);
            add_value(out, &goals->limits[l].goal, r->value, false);
            hwnas_str_addf(out, " instead of ");
            add_value(out, &goals->limits[l].goal, goals->limits[l].value, false);
            hwnas_str_addf(out, ": %s ", first->name);
            add_value(out, first, first->metric->is_maximised ? r->gain : -r->gain, true);
            if (r->trial >= 0)
                hwnas_str_addf(out, ", trial %llu\n",
                               (unsigned long long)e->summary->trials[r->trial].number);
            else
                hwnas_str_addf(out, ", %s, not tried\n", e->neighbours[r->neighbour].change);
        }
        if (!is_any)
            hwnas_str_addf(out, "  %s: nothing that this study has seen\n", goals->limits[l].text);
    }
}

void hwnas_explain_text(hwnas_str *out, const hwnas_explanation *e)
{
    add_standing(out, e);
    if (e->n_neighbours) {
        add_neighbours(out, e);
        add_dearest(out, e);
    } else {
        hwnas_str_add(out, "No network is one change away.\n\n");
    }
    add_relaxations(out, e);
}

/* ---- JSON ---- */

static json_t *neighbour_json(const hwnas_explanation *e, const hwnas_neighbour *n)
{
    json_t *values = json_object();
    for (int g = 0; g < e->n_goals; g++) {
        const hwnas_value_row *v = hwnas_trial_value(&n->values, e->goals[g].name);
        if (v)
            json_object_set_new(values, e->goals[g].name, hwnas_value_json(v));
    }
    return json_pack("{s:s, s:s, s:o, s:b, s:o}", "change", n->change, "arch", n->code, "trial",
                     n->trial >= 0 ? json_integer((json_int_t)e->summary->trials[n->trial].number)
                                   : json_null(),
                     "feasible", n->violation == 0, "objectives", values);
}

static json_t *relaxation_json(const hwnas_explanation *e, const hwnas_relaxation *r)
{
    const hwnas_limit *limit = &e->summary->job.goals.limits[r->limit];
    const hwnas_goal *first = first_goal(e);
    return json_pack(
        "{s:s, s:f, s:s, s:s, s:f, s:s, s:o, s:s}", "constraint", limit->text, "value",
        r->value / limit->goal.metric->scale, "unit", limit->goal.metric->unit, "buys", first->name,
        "gain", r->gain / first->metric->scale, "gain_unit", first->metric->unit, "trial",
        r->trial >= 0 ? json_integer((json_int_t)e->summary->trials[r->trial].number) : json_null(),
        "arch",
        r->trial >= 0 ? e->summary->trials[r->trial].code : e->neighbours[r->neighbour].code);
}

json_t *hwnas_explain_json(const hwnas_explanation *e)
{
    const hwnas_summary *s = e->summary;
    json_t *neighbours = json_array(), *relaxations = json_array(), *errors = json_object();
    json_t *part_errors = json_object();
    for (size_t i = 0; i < e->n_neighbours; i++)
        json_array_append_new(neighbours, neighbour_json(e, &e->neighbours[i]));
    for (size_t i = 0; i < e->n_relaxations; i++)
        json_array_append_new(relaxations, relaxation_json(e, &e->relaxations[i]));
    for (int g = 0; g < e->n_goals; g++)
        if (!isnan(e->errors[g]))
            json_object_set_new(errors, e->goals[g].name, json_real(e->errors[g]));
    for (int g = 0; g < e->n_goals; g++)
        if (!isnan(e->part_errors[g]))
            json_object_set_new(part_errors, e->goals[g].name, json_real(e->part_errors[g]));
    return json_pack(
        "{s:s, s:i, s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:I}", "format",
        "hwnas.explanation", "version", 1, "study", s->study, "trial",
        hwnas_trial_json(&s->trials[e->trial], &s->job), "is_winner",
        s->fronts[e->front].winner == e->trial, "is_on_front", e->is_on_front, "dominated_by",
        e->dominated_by >= 0 ? json_integer((json_int_t)s->trials[e->dominated_by].number)
                             : json_null(),
        "neighbours", neighbours, "relaxations", relaxations, "estimate_errors", errors,
        "part_errors", part_errors, "estimated_from", (json_int_t)e->n_measured);
}
