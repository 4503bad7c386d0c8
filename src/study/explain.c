#include "study/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "derive/derive.h"
#include "study/explainer.h"
#include "study/held.h"
#include "study/member.h"

static void add_goal(hwnas_explanation *out, const hwnas_goal *goal)
{
    for (int i = 0; i < out->n_goals; i++)
        if (!strcmp(out->goals[i].name, goal->name))
            return;
    out->errors[out->n_goals] = out->part_errors[out->n_goals] = NAN;
    out->goals[out->n_goals++] = *goal;
}

static void list_goals(hwnas_explanation *out, const hwnas_job *job)
{
    for (int i = 0; i < job->goals.n_objectives; i++)
        add_goal(out, &job->goals.objectives[i]);
    for (int i = 0; i < job->goals.n_limits; i++)
        add_goal(out, &job->goals.limits[i].goal);
}

static hwnas_status open_all(hwnas_explainer *e)
{
    const json_t *identity = e->summary->identity;
    e->job = e->summary->job;
    e->job.space = json_string_value(json_object_get(identity, "space"));
    e->job.predictor = json_string_value(json_object_get(identity, "accuracy"));
    TRY(hwnas_load_space(&e->space, e->job.space ? e->job.space : ""));
    TRY(hwnas_settings_space(&e->walked, e->space, &e->job));
    TRY(hwnas_held_again(&e->walked, e->summary->held));
    TRY(hwnas_evaluator_open(&e->evaluator, &e->job, e->space, 0, NULL, NULL));
    TRY(hwnas_evaluator_train_first(e->evaluator));
    TRY(hwnas_evaluator_recall(e->evaluator, e->store, e->summary->devices));
    return hwnas_arch_parse(&e->arch, e->walked, e->summary->trials[e->out->trial].code);
}

static void close_all(hwnas_explainer *e)
{
    for (int i = 0; i < e->out->n_goals; i++)
        hwnas_response_free(e->responses[i]);
    hwnas_arch_free(e->arch);
    hwnas_evaluator_close(e->evaluator);
    hwnas_space_free(e->space);
}

/* ---- Estimates ---- */

static double count_of(const hwnas_trial *trial, hwnas_quantity quantity)
{
    return hwnas_explained_value(trial, hwnas_metric_of(quantity)->name);
}

/* Of a goal that runs give: how it follows from the choices, as far as this study knows. */
static hwnas_status fit(hwnas_explainer *e, int goal)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_summary *s = e->summary;
    const char *name = e->out->goals[goal].name;
    hwnas_arch **archs = hwnas_alloc((s->n_trials + 1) * sizeof *archs);
    double *columns = hwnas_alloc((3 * s->n_trials + 1) * sizeof *columns);
    double *macs = columns, *params = columns + s->n_trials, *values = columns + 2 * s->n_trials;
    size_t n = 0;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[i], name);
        if (!v || !hwnas_sources[v->source].is_of_run || !(v->value > 0))
            continue;
        macs[n] = count_of(&s->trials[i], HWNAS_MACS);
        params[n] = count_of(&s->trials[i], HWNAS_PARAMS);
        values[n] = v->value;
        TRY_OUT(hwnas_arch_parse(&archs[n], e->walked, s->trials[i].code));
        n++;
    }
    TRY_OUT(hwnas_response_fit(&e->responses[goal], (const hwnas_arch *const *)archs, macs, params,
                               values, n));
    if (n > e->out->n_measured)
        e->out->n_measured = n;
out:
    for (size_t i = 0; i < n; i++)
        hwnas_arch_free(archs[i]);
    free(archs);
    free(columns);
    return status;
}

/* ---- Neighbours ---- */

static char *change_text(const hwnas_arch *from, const hwnas_arch *to, size_t gene)
{
    const hwnas_space *space = from->space;
    const hwnas_gene *g = &space->genes[gene];
    const hwnas_choice *choice = &space->choices[g->choice];
    char position[32] = "";
    if (choice->n_positions > 1)
        snprintf(position, sizeof position, "[%zu]", g->position);
    return hwnas_printf("%s%s: %s -> %s", choice->name, position, g->labels[from->genes[gene]],
                        g->labels[to->genes[gene]]);
}

static bool is_good(const hwnas_trial *trial)
{
    return trial->is_finished && trial->status == HWNAS_OK;
}

/* The study's trial of an encoding, or else the first of the same network, measured in the same
 * way. */
static long find_trial(const hwnas_explainer *e, const char *digest, const char *code)
{
    const hwnas_summary *s = e->summary;
    for (size_t i = 0; i < s->n_trials; i++)
        if (is_good(&s->trials[i]) && !strcmp(s->trials[i].code, code))
            return (long)i;
    char *mine = hwnas_strdup(code);
    hwnas_settings want = hwnas_settings_cut(mine, &e->job);
    long found = -1;
    for (size_t i = 0; i < s->n_trials && found < 0; i++) {
        if (!is_good(&s->trials[i]) || strcmp(s->trials[i].digest, digest))
            continue;
        char *theirs = hwnas_strdup(s->trials[i].code);
        hwnas_settings have = hwnas_settings_cut(theirs, &e->job);
        if (!memcmp(&have, &want, sizeof want))
            found = (long)i;
        free(theirs);
    }
    free(mine);
    return found;
}

/* What a trial's run gave; all that it has when it is of the same encoding. What it was kept with
 * as an estimate is estimated anew, by all that the study knows at its end. */
static void take_values(hwnas_neighbour *n, const hwnas_trial *from)
{
    bool is_same = !strcmp(from->code, n->code);
    for (size_t i = 0; i < from->n_values; i++) {
        const hwnas_source source = from->values[i].source;
        if (source != HWNAS_ESTIMATED && (is_same || hwnas_sources[source].is_of_run))
            hwnas_trial_add(&n->values, &from->values[i]);
    }
}

/* The parts that the study timed know better than the choices what a network takes. */
static hwnas_status estimate_by_parts(hwnas_trial *out, hwnas_explainer *e,
                                      const hwnas_candidate *c)
{
    for (int d = 0; d < e->job.goals.devices.n; d++) {
        const size_t n_before = out->n_values;
        bool is_known;
        double error;
        TRY(hwnas_evaluate_recall(&is_known, &error, out, e->evaluator, c, d));
        for (int g = 0; is_known && g < e->out->n_goals; g++)
            for (size_t i = n_before; i < out->n_values; i++)
                if (!strcmp(out->values[i].metric, e->out->goals[g].name))
                    e->out->part_errors[g] = error;
    }
    return HWNAS_OK;
}

static hwnas_value_row respond(const hwnas_explainer *e, int goal, const hwnas_arch *walked,
                               const hwnas_trial *counts)
{
    hwnas_value_row row = {.source = HWNAS_ESTIMATED};
    row.metric = hwnas_intern(e->out->goals[goal].name);
    row.unit = e->out->goals[goal].metric->si;
    hwnas_response_predict(&row.value, &row.low, &row.high, e->responses[goal], walked,
                           count_of(counts, HWNAS_MACS), count_of(counts, HWNAS_PARAMS));
    return row;
}

/* Where the parts said nothing. */
static void estimate(hwnas_neighbour *n, const hwnas_explainer *e, const hwnas_arch *walked)
{
    for (int g = 0; g < e->out->n_goals; g++) {
        const hwnas_value_row *v = hwnas_trial_value(&n->values, e->out->goals[g].name);
        if (v)
            n->differences[g].basis =
                v->source == HWNAS_ESTIMATED ? HWNAS_BY_PARTS : HWNAS_BY_VALUES;
        if (v || !e->responses[g])
            continue;
        const hwnas_value_row row = respond(e, g, walked, &n->values);
        hwnas_trial_add(&n->values, &row);
        n->differences[g].basis = HWNAS_BY_CHOICES;
        e->out->errors[g] = hwnas_response_error(e->responses[g]);
    }
}

const hwnas_value_row *hwnas_explained_own(const hwnas_explanation *e, int goal)
{
    return e->now[goal].metric
               ? &e->now[goal]
               : hwnas_trial_value(&e->summary->trials[e->trial], e->goals[goal].name);
}

/* A neighbour's estimate and the network's own measurement differ by the estimate's error as well
 * as by the change, and the best of many measurements is below its estimate mostly. So estimates
 * are compared with estimates: what the network's own is off by is divided out of all. Its own is
 * off too where it is an estimate that the study has kept, of the parts that were timed by then. */
static hwnas_status find_levels(hwnas_explainer *e)
{
    const hwnas_trial *own = &e->summary->trials[e->out->trial];
    hwnas_trial parts = {0};
    hwnas_member member;
    for (int g = 0; g < e->out->n_goals; g++)
        e->part_levels[g] = e->levels[g] = NAN;
    hwnas_status status = hwnas_member_open(&member, own, &e->job, e->space, e->walked);
    if (status == HWNAS_OK)
        status = estimate_by_parts(&parts, e, &member.candidate);
    for (int g = 0; g < e->out->n_goals && status == HWNAS_OK; g++) {
        const hwnas_value_row *is = hwnas_explained_own(e->out, g);
        const hwnas_value_row *by_parts = hwnas_trial_value(&parts, e->out->goals[g].name);
        if (!is || !(is->value > 0))
            continue;
        if (by_parts && by_parts->value > 0)
            e->part_levels[g] = is->value / by_parts->value;
        if (e->responses[g])
            e->levels[g] = is->value / respond(e, g, e->arch, own).value;
    }
    hwnas_member_close(&member);
    free(parts.values);
    return status;
}

static void scale(hwnas_value_row *row, double factor)
{
    row->value *= factor;
    row->low *= factor;
    row->high *= factor;
}

/* What it takes to put a neighbour's value at the level of the network's own; NaN: nothing does. */
static double level_of(const hwnas_explainer *e, int goal, hwnas_basis basis,
                       const hwnas_value_row *own)
{
    switch (basis) {
    case HWNAS_BY_TURNS:
        return own->value;
    case HWNAS_BY_PARTS:
        return e->part_levels[goal];
    case HWNAS_BY_CHOICES:
        return e->levels[goal];
    default:
        return own && own->source != HWNAS_ESTIMATED ? 1 : NAN;
    }
}

/* Puts values at the level of the network's own, and finds how they differ from it. */
static void find_differences(hwnas_neighbour *n, const hwnas_explainer *e)
{
    for (int g = 0; g < e->out->n_goals; g++) {
        hwnas_neighbour_difference *d = &n->differences[g];
        const hwnas_value_row *own = hwnas_explained_own(e->out, g);
        const double level = level_of(e, g, d->basis, own);
        hwnas_value_row *v = NULL;
        for (size_t i = n->values.n_values; i-- > 0;)
            if (!strcmp(n->values.values[i].metric, e->out->goals[g].name))
                v = &n->values.values[i];
        if (v && !isnan(level))
            scale(v, level);
        d->reading = (hwnas_reading){NAN, NAN, NAN};
        if (v && !isnan(level))
            d->reading.value = v->value - own->value;
        if (v && d->basis == HWNAS_BY_TURNS)
            d->reading =
                (hwnas_reading){v->value - own->value, v->low - own->value, v->high - own->value};
    }
}

static void free_neighbour(hwnas_neighbour *n)
{
    free(n->why_not);
    free(n->change);
    free(n->code);
    free(n->values.values);
}

/* Takes the texts of a neighbour that leads to no network, with the failure that is recorded. */
static void add_unbuilt(hwnas_explanation *out, hwnas_neighbour *n)
{
    HWNAS_GROW(out->unbuilt, out->n_unbuilt, out->unbuilt_room);
    out->unbuilt[out->n_unbuilt++] = (hwnas_unbuilt){
        .change = n->change, .code = n->code, .why = hwnas_strdup(hwnas_last_error()->message)};
    n->change = n->code = NULL;
}

/* One that a table lacks is none. */
static void add_neighbour(hwnas_explainer *e, const hwnas_arch *walked, size_t gene)
{
    hwnas_neighbour n = {.gene = gene, .trial = -1};
    hwnas_arch *arch = hwnas_settings_strip(walked, e->space);
    hwnas_graph *graph = NULL;
    n.settings = hwnas_settings_of(walked, &e->job);
    hwnas_candidate c = {.arch = arch, .settings = n.settings};
    hwnas_status status = hwnas_graph_build(&graph, arch, c.settings.batch);
    n.change = change_text(e->arch, walked, gene);
    n.code = hwnas_arch_code(walked);
    c.graph = graph;
    if (status == HWNAS_OK)
        status = hwnas_evaluator_digest(n.digest, e->evaluator, &c);
    if (status == HWNAS_OK) {
        n.trial = find_trial(e, n.digest, n.code);
        if (n.trial >= 0)
            take_values(&n, &e->summary->trials[n.trial]);
        /* Values that are there already stay. */
        status = hwnas_evaluate_free(&n.values, e->evaluator, &c);
        if (status == HWNAS_OK)
            status = estimate_by_parts(&n.values, e, &c);
    }
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    if (status != HWNAS_OK) {
        if (status != HWNAS_E_NOT_FOUND)
            add_unbuilt(e->out, &n);
        hwnas_error_clear();
        free_neighbour(&n);
        return;
    }
    estimate(&n, e, walked);
    hwnas_explanation *out = e->out;
    HWNAS_GROW(out->neighbours, out->n_neighbours, out->neighbour_room);
    out->neighbours[out->n_neighbours++] = n;
}

static bool has_basis(const hwnas_explanation *out, int goal, hwnas_basis basis)
{
    for (size_t i = 0; i < out->n_neighbours; i++)
        if (out->neighbours[i].differences[goal].basis == basis)
            return true;
    return false;
}

/* Of estimates that a measurement replaced nothing is to be said. */
static void forget_errors(hwnas_explanation *out)
{
    for (int g = 0; g < out->n_goals; g++) {
        if (!has_basis(out, g, HWNAS_BY_PARTS))
            out->part_errors[g] = NAN;
        if (!has_basis(out, g, HWNAS_BY_CHOICES))
            out->errors[g] = NAN;
    }
}

static void judge_neighbours(hwnas_explainer *e)
{
    for (size_t i = 0; i < e->out->n_neighbours; i++) {
        hwnas_neighbour *n = &e->out->neighbours[i];
        find_differences(n, e);
        n->violation = hwnas_front_violation(&n->values, &e->job.goals, e->out->front, false);
    }
}

static void list_neighbours(hwnas_explainer *e)
{
    hwnas_arch *other = hwnas_arch_copy(e->arch);
    for (size_t g = 0; g < e->walked->n_genes; g++)
        for (size_t v = 0; v < e->walked->genes[g].n_values; v++) {
            hwnas_arch_assign(other, e->arch);
            other->genes[g] = (uint16_t)v;
            if (v != e->arch->genes[g] && hwnas_arch_is_active(e->arch, g) &&
                hwnas_arch_settle(other) && !hwnas_arch_equal(other, e->arch))
                add_neighbour(e, other, g);
        }
    hwnas_arch_free(other);
}

/* ---- Standing ---- */

static bool is_member(const hwnas_summary_front *front, long trial)
{
    for (size_t i = 0; i < front->n; i++)
        if ((long)front->trials[i] == trial)
            return true;
    return false;
}

static bool weakly_dominates(const hwnas_explainer *e, const hwnas_trial *a, const hwnas_trial *b)
{
    for (int i = 0; i < e->job.goals.n_objectives; i++) {
        const hwnas_goal *goal = &e->job.goals.objectives[i];
        const hwnas_value_row *x = hwnas_trial_value(a, goal->name);
        const hwnas_value_row *y = hwnas_trial_value(b, goal->name);
        if (hwnas_goal_counts(goal, &e->job.goals, e->out->front) &&
            (!x || !y || hwnas_value_compare(x, y, goal->metric) > 0))
            return false;
    }
    return true;
}

static void find_standing(hwnas_explainer *e)
{
    hwnas_explanation *out = e->out;
    const hwnas_summary *s = e->summary;
    for (int f = s->n_fronts - 1; f >= 0; f--)
        if (is_member(&s->fronts[f], out->trial)) {
            out->is_on_front = true;
            out->front = f;
        }
    const hwnas_summary_front *front = &s->fronts[out->front];
    for (size_t i = 0; i < front->n && !out->is_on_front && out->dominated_by < 0; i++)
        if (weakly_dominates(e, &s->trials[front->trials[i]], &s->trials[out->trial]))
            out->dominated_by = (long)front->trials[i];
}

hwnas_status hwnas_explain(hwnas_explanation *out, const hwnas_summary *summary, hwnas_store *store,
                           long number, const hwnas_explain_measuring *measuring)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = summary->study};
    long trial = number < 0 ? hwnas_summary_winner(summary) : number;
    if (trial < 0)
        TRY(hwnas_evidence_check(&summary->evidence));
    if (trial < 0)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INFEASIBLE, &place, "no trial of the study meets the constraints"),
            "--trial N explains one that does not");
    if ((size_t)trial >= summary->n_trials)
        return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "the study has %zu trials, none is %ld",
                          summary->n_trials, trial);
    const hwnas_trial *t = &summary->trials[trial];
    if (!t->is_finished || t->status != HWNAS_OK)
        return hwnas_fail(HWNAS_E_NOT_FOUND, &place, "trial %ld %s%s", trial,
                          t->is_finished ? "failed: " : "is not finished",
                          t->message ? t->message : "");
    *out = (hwnas_explanation){.summary = summary, .trial = trial, .dominated_by = -1};
    hwnas_explainer e = {.out = out, .summary = summary, .store = store};
    TRY_OUT(open_all(&e));
    list_goals(out, &e.job);
    for (int g = 0; g < out->n_goals; g++)
        if (out->goals[g].metric->source == HWNAS_FROM_DEVICE)
            TRY_OUT(fit(&e, g));
    find_standing(&e);
    list_neighbours(&e);
    if (measuring)
        TRY_OUT(hwnas_explain_measure(&e, measuring));
    TRY_OUT(find_levels(&e));
    forget_errors(out);
    judge_neighbours(&e);
    hwnas_explain_limits(&e);
out:
    close_all(&e);
    if (status != HWNAS_OK)
        hwnas_explanation_done(out);
    return status;
}

void hwnas_explanation_done(hwnas_explanation *out)
{
    for (size_t i = 0; i < out->n_neighbours; i++)
        free_neighbour(&out->neighbours[i]);
    free(out->neighbours);
    free(out->relaxations);
    for (size_t i = 0; i < out->n_unbuilt; i++) {
        free(out->unbuilt[i].change);
        free(out->unbuilt[i].code);
        free(out->unbuilt[i].why);
    }
    free(out->unbuilt);
    free(out->unmeasured);
    free(out->why_stopped);
    *out = (hwnas_explanation){0};
}
