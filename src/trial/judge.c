#include "trial/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int hwnas_n_fronts(const hwnas_goals *goals)
{
    return goals->is_front_per_device && goals->devices.n ? goals->devices.n : 1;
}

bool hwnas_goal_counts(const hwnas_goal *goal, const hwnas_goals *goals, int front)
{
    return !goals->is_front_per_device || goal->device < 0 || goal->device == front;
}

static double limit_violation(const hwnas_trial *trial, const hwnas_limit *limit, bool is_complete)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
    if (!v)
        return is_complete ? INFINITY : 0;
    return hwnas_limit_violation(limit, hwnas_value_low(v), hwnas_value_high(v));
}

double hwnas_front_violation(const hwnas_trial *trial, const hwnas_goals *goals, int front,
                             bool is_complete)
{
    double sum = 0;
    /* A strategy learns what fails by itself, whatever limits there are. */
    for (size_t i = 0; i < trial->n_values; i++)
        if (hwnas_sources[trial->values[i].source].is_left_out)
            return INFINITY;
    for (int i = 0; i < goals->n_limits; i++)
        if (hwnas_goal_counts(&goals->limits[i].goal, goals, front))
            sum += limit_violation(trial, &goals->limits[i], is_complete);
    return sum;
}

double hwnas_trial_violation(const hwnas_trial *trial, const hwnas_goals *goals, bool is_complete)
{
    double least = INFINITY;
    for (int f = 0; f < hwnas_n_fronts(goals); f++)
        least = fmin(least, hwnas_front_violation(trial, goals, f, is_complete));
    return least;
}

/* Relative excess over a limit, below 0 where it is met; NaN: not known. */
static double margin(const hwnas_trial *trial, const hwnas_limit *limit)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
    if (!v)
        return NAN;
    double end = limit->is_upper ? hwnas_value_high(v) : hwnas_value_low(v);
    double excess = limit->is_upper ? end - limit->value : limit->value - end;
    return excess / fmax(fabs(limit->value), 1e-300);
}

hwnas_score hwnas_trial_score(const hwnas_trial *trial, const hwnas_goals *goals)
{
    hwnas_score score = {
        .violation = INFINITY, .rung = trial->rung, .is_estimate = hwnas_trial_is_estimated(trial)};
    if (trial->status != HWNAS_OK)
        return score;
    score.violation = trial->violation;
    for (int i = 0; i < goals->n_objectives; i++) {
        const hwnas_goal *goal = &goals->objectives[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
        /* Not measured, or not to the end, because it is infeasible anyway; a feasible trial
         * without the value has failed. A share of some samples is far less exact than others'. */
        const bool is_known = v && v->source != HWNAS_PARTIAL;
        if (!is_known && score.violation == 0)
            score.violation = INFINITY;
        score.objectives[i] = !is_known ? NAN : goal->metric->is_maximised ? -v->value : v->value;
    }
    if (goals->n_limits <= HWNAS_MAX_MARGINS && hwnas_n_fronts(goals) == 1)
        for (int i = 0; i < goals->n_limits; i++)
            score.margins[score.n_margins++] = margin(trial, &goals->limits[i]);
    return score;
}

bool hwnas_trial_is_feasible(const hwnas_trial *trial, const hwnas_goals *goals, int front)
{
    /* A cheap look at a network finds candidates, not members of a front. */
    if (!trial->is_finished || trial->status != HWNAS_OK || trial->rung ||
        hwnas_trial_is_estimated(trial) || hwnas_trial_is_partial(trial) ||
        hwnas_front_violation(trial, goals, front, true) > 0)
        return false;
    for (int i = 0; i < goals->n_objectives; i++)
        if (hwnas_goal_counts(&goals->objectives[i], goals, front) &&
            !hwnas_trial_value(trial, goals->objectives[i].name))
            return false;
    return true;
}

bool hwnas_trial_meets_targets(const hwnas_trial *trial, const hwnas_goals *goals)
{
    if (!goals->n_targets || !trial->is_finished || trial->rung ||
        hwnas_trial_is_estimated(trial) || hwnas_trial_is_partial(trial) ||
        hwnas_trial_score(trial, goals).violation > 0)
        return false;
    for (int i = 0; i < goals->n_targets; i++)
        if (limit_violation(trial, &goals->targets[i], true) > 0)
            return false;
    return true;
}

/* ---- Which is better ---- */

int hwnas_value_compare(const hwnas_value_row *a, const hwnas_value_row *b,
                        const hwnas_metric *metric)
{
    bool overlap = hwnas_value_is_bounded(a) && hwnas_value_is_bounded(b) && a->low <= b->high &&
                   b->low <= a->high;
    if (overlap || a->value == b->value)
        return 0;
    return (a->value < b->value) == !metric->is_maximised ? -1 : 1;
}

typedef struct entry {
    const hwnas_trial *trial;
    const hwnas_value_row *values[HWNAS_MAX_OBJECTIVES];
    const hwnas_metric *metrics[HWNAS_MAX_OBJECTIVES];
    int n;
} entry;

/* By the values themselves: the best in the first objective first, then the others, then the older.
 */
static int by_values(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    for (int i = 0; i < x->n; i++)
        if (x->values[i]->value != y->values[i]->value)
            return (x->values[i]->value < y->values[i]->value) == !x->metrics[i]->is_maximised ? -1
                                                                                               : 1;
    return x->trial->number < y->trial->number ? -1 : 1;
}

static bool weakly_dominates(const entry *a, const entry *b)
{
    for (int i = 0; i < a->n; i++)
        if (hwnas_value_compare(a->values[i], b->values[i], a->metrics[i]) > 0)
            return false;
    return true;
}

/* Whether a disturbed measurement has a say in the comparison. */
static bool is_doubtful(const entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->values[i]->source == HWNAS_MEASURED)
            return e->trial->is_unstable;
    return false;
}

static void read_entry(entry *out, const hwnas_trial *trial, const hwnas_goals *goals, int front)
{
    out->trial = trial;
    out->n = 0;
    for (int k = 0; k < goals->n_objectives; k++)
        if (hwnas_goal_counts(&goals->objectives[k], goals, front)) {
            out->metrics[out->n] = goals->objectives[k].metric;
            out->values[out->n++] = hwnas_trial_value(trial, goals->objectives[k].name);
        }
}

/* ---- What cannot be on the front ----
 *
 * Of a million trials nearly all are worse in each objective, with the whole of their intervals,
 * than one that was seen before. Such a one, `p`, need not be on the front itself: who removes it
 * comes earlier, is nowhere clearly worse than `p`, and so than what `p` stands for. That holds
 * where the values of an objective all have intervals to be compared by, or none has; and a `p`
 * that was measured without disturbance is removed by such ones alone. */

enum { MOST_PRUNERS = 64 };

typedef struct sieve {
    bool is_mixed; /* of some objective some have intervals: nothing is left out */
    bool is_bounded[HWNAS_MAX_OBJECTIVES]; /* of the first */
    int n;
    double worst[MOST_PRUNERS][HWNAS_MAX_OBJECTIVES]; /* ends; less is better */
} sieve;

/* The better and the worse end of a value; less is better. */
static void ends_of(double *best, double *worst, const hwnas_value_row *v,
                    const hwnas_metric *metric)
{
    const bool has_ends = hwnas_value_is_bounded(v);
    const double low = has_ends ? fmin(v->low, v->value) : v->value;
    const double high = has_ends ? fmax(v->high, v->value) : v->value;
    *best = metric->is_maximised ? -high : low;
    *worst = metric->is_maximised ? -low : high;
}

static bool is_below(const double *a, const double *b, int n)
{
    for (int k = 0; k < n; k++)
        if (!(a[k] < b[k]))
            return false;
    return n > 0;
}

static void swap_pruners(sieve *s, int a, int b)
{
    double kept[HWNAS_MAX_OBJECTIVES];
    memcpy(kept, s->worst[a], sizeof kept);
    memcpy(s->worst[a], s->worst[b], sizeof kept);
    memcpy(s->worst[b], kept, sizeof kept);
}

/* Whether it may be on the front. */
static bool passes(sieve *s, const entry *e, bool is_first)
{
    double best[HWNAS_MAX_OBJECTIVES], worst[HWNAS_MAX_OBJECTIVES];
    for (int k = 0; k < e->n; k++) {
        const bool is_bounded = hwnas_value_is_bounded(e->values[k]);
        s->is_bounded[k] = is_first ? is_bounded : s->is_bounded[k];
        s->is_mixed |= is_bounded != s->is_bounded[k];
        ends_of(&best[k], &worst[k], e->values[k], e->metrics[k]);
    }
    for (int p = 0; p < s->n; p++)
        if (is_below(s->worst[p], best, e->n)) {
            if (p)
                swap_pruners(s, p, p / 2); /* who removed one removes others */
            return false;
        }
    if (is_doubtful(e))
        return true;
    int at = 0;
    while (at < s->n && !is_below(worst, s->worst[at], e->n))
        at++;
    if (at == MOST_PRUNERS)
        return true;
    memcpy(s->worst[at], worst, (size_t)e->n * sizeof *worst);
    s->n += at == s->n;
    return true;
}

/* The feasible trials, without most of those that cannot be on the front. */
static size_t find_entries(entry **out, const hwnas_trial *trials, size_t n,
                           const hwnas_goals *goals, int front)
{
    sieve s = {0};
    entry *entries = NULL, e;
    size_t n_entries = 0, room = 0;
    for (size_t i = 0; i < n; i++) {
        if (!hwnas_trial_is_feasible(&trials[i], goals, front))
            continue;
        read_entry(&e, &trials[i], goals, front);
        const bool was_mixed = s.is_mixed;
        const bool is_taken = s.is_mixed || passes(&s, &e, !n_entries);
        if (s.is_mixed && !was_mixed) { /* from the beginning, and all of them */
            n_entries = 0;
            i = (size_t)-1;
            continue;
        }
        if (is_taken) {
            HWNAS_GROW(entries, n_entries, room);
            entries[n_entries++] = e;
        }
    }
    *out = entries;
    return n_entries;
}

size_t hwnas_front_find(size_t *out, const hwnas_trial *trials, size_t n, const hwnas_goals *goals,
                        int front)
{
    entry *entries;
    size_t n_front = 0;
    const size_t n_entries = find_entries(&entries, trials, n, goals, front);
    if (n_entries)
        qsort(entries, n_entries, sizeof *entries, by_values);
    for (size_t i = 0; i < n_entries; i++) {
        bool stays = true;
        for (size_t j = 0; j < n_front && stays; j++)
            stays = (is_doubtful(&entries[j]) && !is_doubtful(&entries[i])) ||
                    !weakly_dominates(&entries[j], &entries[i]);
        if (stays) {
            entries[n_front] = entries[i];
            out[n_front++] = (size_t)(entries[i].trial - trials);
        }
    }
    free(entries);
    return n_front;
}
