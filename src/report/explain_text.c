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
    hwnas_str_addf(out, "trial %llu: %s\n  %s\n", (unsigned long long)t->number, words, t->code);
    free(words);
    for (int g = 0; g < e->n_goals; g++)
        if (e->now[g].metric) {
            hwnas_str_addf(out, "  %s measured now: ", e->goals[g].name);
            add_value(out, &e->goals[g], e->now[g].value, false);
            hwnas_str_addf(out, ", the median of %d turns\n", e->now[g].rounds);
        }
    hwnas_str_add(out, "\n");
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
            hwnas_str_addf(out, "  %s: not measured, as %s\n", limit->text,
                           hwnas_trial_value_of(t, HWNAS_LEFT_OUT)
                               ? "its size is outside what the predictor has learned from"
                               : "it misses another limit");
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
static hwnas_metric shown_for(const hwnas_explanation *e, int which)
{
    const hwnas_goal *goal = &e->goals[which];
    const hwnas_value_row *own = hwnas_explained_own(e, which);
    double most = own ? own->value : 0, least = own ? own->value : INFINITY;
    for (size_t i = 0; i < e->n_neighbours; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&e->neighbours[i].values, goal->name);
        most = v ? fmax(most, v->value) : most;
        least = v ? fmin(least, v->value) : least;
    }
    return hwnas_metric_shown_among(goal->metric, least, most);
}

/* By the basis of a difference: what stands before the value in the table, and its name. */
static const struct {
    const char *mark, *name;
} bases[] = {[HWNAS_BY_NOTHING] = {"", ""},
             [HWNAS_BY_VALUES] = {"", "values"},
             [HWNAS_BY_TURNS] = {"=", "turns"},
             [HWNAS_BY_PARTS] = {"~", "parts"},
             [HWNAS_BY_CHOICES] = {"~~", "choices"}};

static double shown_difference(double value, const hwnas_metric *m)
{
    return hwnas_shown_difference(value / m->scale, m->decimals);
}

static char *cell(const hwnas_neighbour *n, const hwnas_goal *goal,
                  const hwnas_neighbour_difference *d, const hwnas_metric *m)
{
    const hwnas_value_row *v = hwnas_trial_value(&n->values, goal->name);
    hwnas_str out = {0};
    if (!v)
        return hwnas_strdup("-");
    if (v->source == HWNAS_PARTIAL) /* enough for a limit, not for a difference */
        return hwnas_strdup("partial");
    const char *mark = hwnas_sources[v->source].doubt ? " !" : "";
    hwnas_str_addf(&out, "%s%.*f%s", bases[d->basis].mark, m->decimals, v->value / m->scale, mark);
    if (isnan(d->reading.value))
        return out.s;
    hwnas_str_addf(&out, " (%+.*f", m->decimals, shown_difference(d->reading.value, m));
    if (!isnan(d->reading.low))
        hwnas_str_addf(&out, ", %+.*f to %+.*f", m->decimals, shown_difference(d->reading.low, m),
                       m->decimals, shown_difference(d->reading.high, m));
    hwnas_str_add(&out, ")");
    return out.s;
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

/* The network's own value of some goal was measured now alone. */
static bool has_now(const hwnas_explanation *e)
{
    bool has = false;
    for (int g = 0; g < e->n_goals; g++)
        has |= e->now[g].metric != NULL;
    return has;
}

/* Goals of which a neighbour was measured and the network itself was not, or the other way. */
static void add_unlike(hwnas_str *out, const hwnas_explanation *e)
{
    for (int g = 0; g < e->n_goals; g++) {
        bool is_any = false;
        for (size_t i = 0; i < e->n_neighbours; i++)
            is_any |= hwnas_trial_value(&e->neighbours[i].values, e->goals[g].name) &&
                      isnan(e->neighbours[i].differences[g].reading.value);
        if (is_any && hwnas_explained_own(e, g))
            hwnas_str_addf(out,
                           "- %s: no difference is told of a measured value and an estimate; "
                           "--measure measures both\n\n",
                           e->goals[g].name);
    }
}

/* What was measured, and what was not, as asked. */
static void add_measured(hwnas_str *out, const hwnas_explanation *e)
{
    if (e->n_turns)
        hwnas_str_addf(out,
                       "= measured now, each in turns with the network itself (%zu times); in "
                       "brackets the difference\n  and its 95 %% interval, at the level of the "
                       "network's own value%s\n",
                       e->n_turns,
                       has_now(e) ? ", measured now where the study has only\n  an estimate" : "");
    if (e->unmeasured)
        hwnas_str_addf(out, "- %s\n", e->unmeasured);
    for (size_t i = 0; i < e->n_neighbours; i++)
        if (e->neighbours[i].why_not)
            hwnas_str_addf(out, "- %s was not measured: %s\n", e->neighbours[i].change,
                           e->neighbours[i].why_not);
    if (e->stopped != HWNAS_OK)
        hwnas_str_addf(out, "- measuring ended early, the rest is as it was known: %s\n",
                       e->why_stopped);
    hwnas_str_add(out, e->is_measured ? "\n" : "");
}

static void add_unbuilt(hwnas_str *out, const hwnas_explanation *e)
{
    for (size_t i = 0; i < e->n_unbuilt; i++)
        hwnas_str_addf(out, "- %s is no network: %s\n", e->unbuilt[i].change, e->unbuilt[i].why);
    hwnas_str_add(out, e->n_unbuilt ? "\n" : "");
}

static void add_neighbours(hwnas_str *out, const hwnas_explanation *e)
{
    hwnas_grid grid = {0};
    hwnas_metric shown[HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS];
    hwnas_str_addf(out, "One change away (%zu network%s; in brackets the difference):\n\n",
                   e->n_neighbours, e->n_neighbours == 1 ? "" : "s");
    hwnas_grid_column(&grid, "  change", HWNAS_GRID_LEFT);
    for (int g = 0; g < e->n_goals; g++) {
        shown[g] = shown_for(e, g);
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
            hwnas_grid_take(&grid, cell(n, &e->goals[g], &n->differences[g], &shown[g]));
        hwnas_grid_take(&grid, verdict(e, n));
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    hwnas_str_add(out, "\n");
    add_measured(out, e);
    add_unlike(out, e);
    const char *doubt = find_doubt(e);
    if (doubt)
        hwnas_str_addf(out, "! %s\n\n", doubt);
    bool is_estimated = false;
    for (int g = 0; g < e->n_goals; g++)
        if (!isnan(e->errors[g])) {
            is_estimated = true;
            hwnas_str_addf(
                out,
                "~~ %s estimated from the choices of %zu measured networks of this study; on "
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
    const bool is_told = is_estimated || (!e->n_turns && e->n_measured > 0);
    if (is_told && !is_estimated)
        hwnas_str_addf(out, "- not measured; %zu measured networks are too few to estimate from\n",
                       e->n_measured);
    hwnas_str_add(out, is_told ? "\n" : "");
}

/* The change that helps one goal most; NULL: none does. */
static const hwnas_neighbour *best_for(const hwnas_explanation *e, int goal)
{
    const hwnas_neighbour *best = NULL;
    double most = 0;
    for (size_t i = 0; i < e->n_neighbours; i++) {
        const double more = e->neighbours[i].differences[goal].reading.value;
        const double gain = e->goals[goal].metric->is_maximised ? more : -more;
        if (gain > most) {
            most = gain;
            best = &e->neighbours[i];
        }
    }
    return best;
}

/* How every neighbour differs is known. */
static bool is_known(const hwnas_explanation *e, int goal)
{
    for (size_t i = 0; i < e->n_neighbours; i++)
        if (isnan(e->neighbours[i].differences[goal].reading.value))
            return false;
    return true;
}

static void add_dearest(hwnas_str *out, const hwnas_explanation *e)
{
    hwnas_str_add(out, "What each objective could gain most by one change:\n");
    for (int g = 0; g < e->n_goals; g++) {
        const hwnas_neighbour *best = best_for(e, g);
        if (!best) {
            hwnas_str_addf(out, "  %s: %s\n", e->goals[g].name,
                           is_known(e, g) ? "nothing" : "not known");
            continue;
        }
        hwnas_str_addf(out, "  %s: %s;", e->goals[g].name, best->change);
        for (int h = 0, n = 0; h < e->n_goals; h++) {
            const double more = best->differences[h].reading.value;
            if (isnan(more))
                continue;
            hwnas_str_addf(out, "%s %s ", n++ ? "," : "", e->goals[h].name);
            add_value(out, &e->goals[h], more, true);
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
    add_unbuilt(out, e);
    add_relaxations(out, e);
}

/* ---- JSON ---- */

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *difference_json(const hwnas_neighbour_difference *d, const hwnas_goal *goal)
{
    const hwnas_metric *m = goal->metric;
    json_t *json =
        json_pack("{s:o, s:s, s:o, s:o, s:s}", "value", number_or_null(d->reading.value / m->scale),
                  "unit", m->unit, "low", number_or_null(d->reading.low / m->scale), "high",
                  number_or_null(d->reading.high / m->scale), "by", bases[d->basis].name);
    if (d->basis == HWNAS_BY_TURNS) {
        json_object_set_new(json, "rounds", json_integer(d->n_rounds));
        json_object_set_new(json, "own", json_real(d->own / m->scale));
    }
    return json;
}

static json_t *neighbour_json(const hwnas_explanation *e, const hwnas_neighbour *n)
{
    json_t *values = json_object(), *differences = json_object();
    for (int g = 0; g < e->n_goals; g++) {
        const hwnas_value_row *v = hwnas_trial_value(&n->values, e->goals[g].name);
        if (!v)
            continue;
        json_object_set_new(values, e->goals[g].name, hwnas_value_json(v));
        json_object_set_new(differences, e->goals[g].name,
                            difference_json(&n->differences[g], &e->goals[g]));
    }
    return json_pack(
        "{s:s, s:s, s:o, s:b, s:o, s:o, s:s?}", "change", n->change, "arch", n->code, "trial",
        n->trial >= 0 ? json_integer((json_int_t)e->summary->trials[n->trial].number) : json_null(),
        "feasible", n->violation == 0, "objectives", values, "differences", differences,
        "not_measured", n->why_not);
}

static json_t *unbuilt_json(const hwnas_explanation *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_unbuilt; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "change", e->unbuilt[i].change, "arch",
                                        e->unbuilt[i].code, "message", e->unbuilt[i].why));
    return list;
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

/* By metric, what was measured now of the network itself. */
static json_t *now_json(const hwnas_explanation *e)
{
    json_t *now = json_object();
    for (int g = 0; g < e->n_goals; g++)
        if (e->now[g].metric)
            json_object_set_new(now, e->goals[g].name, hwnas_value_json(&e->now[g]));
    return now;
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
        "{s:s, s:i, s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:b, s:s?, s:s?, s:o}",
        "format", "hwnas.explanation", "version", 1, "study", s->study, "trial",
        hwnas_trial_json(&s->trials[e->trial], &s->job), "is_winner",
        s->fronts[e->front].winner == e->trial, "is_on_front", e->is_on_front, "dominated_by",
        e->dominated_by >= 0 ? json_integer((json_int_t)s->trials[e->dominated_by].number)
                             : json_null(),
        "neighbours", neighbours, "relaxations", relaxations, "estimate_errors", errors,
        "part_errors", part_errors, "estimated_from", (json_int_t)e->n_measured, "unbuilt",
        unbuilt_json(e), "measured", e->is_measured, "unmeasured", e->unmeasured, "stopped",
        e->why_stopped, "own_now", now_json(e));
}
