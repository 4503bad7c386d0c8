/* explain_limits.c: what a looser limit would buy. */
#include <math.h>
#include <stdlib.h>

#include "study/explainer.h"
#include "trial/judge.h"

enum { MAX_STEPS = 3 }; /* of a relaxation */

/* How much better than the front's winner a network is in the first objective that counts. */
static double gain_over(const hwnas_explainer *e, const hwnas_trial *trial)
{
    const hwnas_summary *s = e->summary;
    long winner = s->fronts[e->out->front].winner;
    for (int i = 0; i < e->job.goals.n_objectives; i++) {
        const hwnas_goal *goal = &e->job.goals.objectives[i];
        if (!hwnas_goal_counts(goal, &e->job.goals, e->out->front))
            continue;
        double now = winner >= 0 ? hwnas_explained_value(&s->trials[winner], goal->name) : NAN;
        double then = hwnas_explained_value(trial, goal->name);
        return goal->metric->is_maximised ? then - now : now - then;
    }
    return NAN;
}

/* What a limit would have to be for a network that misses it and no other; NaN. */
static double needed(const hwnas_explainer *e, const hwnas_trial *trial, int which)
{
    hwnas_job others = e->job;
    const hwnas_limit *limit = &e->job.goals.limits[which];
    const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
    others.goals.limits[which] = others.goals.limits[--others.goals.n_limits];
    if (!v || v->source == HWNAS_PARTIAL ||
        hwnas_front_violation(trial, &others.goals, e->out->front, true) > 0)
        return NAN;
    double end = limit->is_upper ? hwnas_value_high(v) : hwnas_value_low(v);
    bool is_missed = limit->is_upper ? end > limit->value : end < limit->value;
    return is_missed ? end : NAN;
}

static void offer(hwnas_explainer *e, int limit, const hwnas_trial *trial, long index,
                  long neighbour)
{
    double value = needed(e, trial, limit), gain = gain_over(e, trial);
    if (isnan(value) || !(gain > 0))
        return;
    HWNAS_GROW(e->out->relaxations, e->out->n_relaxations, e->out->relaxation_room);
    e->out->relaxations[e->out->n_relaxations++] = (hwnas_relaxation){
        .limit = limit, .value = value, .gain = gain, .trial = index, .neighbour = neighbour};
}

static const hwnas_job *compared; /* qsort() has no context */

static int by_step(const void *a, const void *b)
{
    const hwnas_relaxation *x = a, *y = b;
    if (x->limit != y->limit)
        return x->limit - y->limit;
    int order = (x->value > y->value) - (x->value < y->value);
    if (!order)
        return (x->gain < y->gain) - (x->gain > y->gain);
    return compared->goals.limits[x->limit].is_upper ? order : -order;
}

/* Only steps that buy more than the smaller ones before them, and only the first few. */
static void keep_steps(hwnas_explanation *out)
{
    size_t n = 0;
    int steps = 0;
    for (size_t i = 0; i < out->n_relaxations; i++) {
        const hwnas_relaxation *r = &out->relaxations[i];
        bool is_first = n == 0 || out->relaxations[n - 1].limit != r->limit;
        if (!is_first && (r->gain <= out->relaxations[n - 1].gain || steps == MAX_STEPS))
            continue;
        steps = is_first ? 1 : steps + 1;
        out->relaxations[n++] = *r;
    }
    out->n_relaxations = n;
}

void hwnas_explain_limits(hwnas_explainer *e)
{
    const hwnas_summary *s = e->summary;
    for (int l = 0; l < e->job.goals.n_limits; l++) {
        if (!hwnas_goal_counts(&e->job.goals.limits[l].goal, &e->job.goals, e->out->front))
            continue;
        for (size_t i = 0; i < s->n_trials; i++)
            if (s->trials[i].is_finished && s->trials[i].status == HWNAS_OK)
                offer(e, l, &s->trials[i], (long)i, -1);
        for (size_t i = 0; i < e->out->n_neighbours; i++)
            if (e->out->neighbours[i].trial < 0)
                offer(e, l, &e->out->neighbours[i].values, -1, (long)i);
    }
    compared = &e->job;
    if (e->out->n_relaxations)
        qsort(e->out->relaxations, e->out->n_relaxations, sizeof *e->out->relaxations, by_step);
    keep_steps(e->out);
}
