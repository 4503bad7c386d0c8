#include "study/waiting.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "trial/judge.h"
#include "trial/skip.h"

enum { FEWEST_RATIOS = 5, MOST_TRIES = 3 };

/* Seconds until the next try of a trial; and of any, twice as long after each that was disturbed.
 */
static const double PAUSE = 5, SHORTEST_PAUSE = 0.5;

struct hwnas_waiting_row {
    size_t id;
    hwnas_trial *trial; /* values and what is judged; owned */
    /* With the estimates corrected; objectives are minimised. */
    double objectives[HWNAS_MAX_OBJECTIVES], best[HWNAS_MAX_OBJECTIVES];
    bool is_feasible, cannot_improve;
    int n_tries; /* that were disturbed */
    double next_try;
};

bool hwnas_waiting_suits(const hwnas_goals *goals)
{
    return goals->devices.n == 1 && !goals->n_targets;
}

/* ---- How estimates differ ---- */

double hwnas_waiting_ratio(const hwnas_waiting *waiting)
{
    double sorted[HWNAS_WAITING_RATIOS];
    const size_t n =
        waiting->n_ratios < HWNAS_WAITING_RATIOS ? waiting->n_ratios : HWNAS_WAITING_RATIOS;
    if (n < FEWEST_RATIOS)
        return 1;
    memcpy(sorted, waiting->ratios, n * sizeof *sorted);
    hwnas_sort(sorted, n);
    return hwnas_quantile(sorted, n, 0.5);
}

static bool is_maximised(const hwnas_value_row *v)
{
    const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
    return metric && metric->is_maximised;
}

static void learn_ratio(hwnas_waiting *waiting, const hwnas_trial *estimated,
                        const hwnas_trial *measured)
{
    waiting->n_disturbed = 0;
    for (size_t i = 0; i < estimated->n_values; i++) {
        const hwnas_value_row *e = &estimated->values[i];
        const hwnas_value_row *m = hwnas_trial_value(measured, e->metric);
        if (e->source != HWNAS_ESTIMATED || !m || !(m->value > 0) || !(e->value > 0))
            continue;
        waiting->ratios[waiting->n_ratios++ % HWNAS_WAITING_RATIOS] =
            is_maximised(e) ? e->value / m->value : m->value / e->value;
        return;
    }
}

/* The trial with its estimates times a ratio; its values are to be freed. All that is estimated is
 * in proportion to the latency, or to its inverse. */
static hwnas_trial apply_bias(const hwnas_trial *trial, double ratio)
{
    hwnas_trial out = *trial;
    out.values = hwnas_alloc((trial->n_values + 1) * sizeof *out.values);
    for (size_t i = 0; i < trial->n_values; i++) {
        hwnas_value_row v = trial->values[i];
        const double factor = v.source != HWNAS_ESTIMATED ? 1
                              : is_maximised(&v)          ? 1 / ratio
                                                          : ratio;
        v.value *= factor;
        v.low *= factor;
        v.high *= factor;
        out.values[i] = v;
    }
    return out;
}

/* ---- Rows ---- */

/* False: the trial is unable to improve with its estimates as they were and as they are corrected,
 * or, in a aggressive search, misses a limit. */
static bool assess(hwnas_waiting_row *row, const hwnas_waiting *waiting, const hwnas_front *front)
{
    const hwnas_goals *goals = waiting->goals;
    hwnas_trial trial = apply_bias(row->trial, hwnas_waiting_ratio(waiting));
    trial.violation = hwnas_trial_violation(&trial, goals, false);
    const hwnas_score score = hwnas_trial_score(&trial, goals);
    memcpy(row->objectives, score.objectives, sizeof row->objectives);
    row->is_feasible = score.violation == 0;
    row->cannot_improve = hwnas_trial_cannot_improve(&trial, goals, front) ||
                          !hwnas_trial_best_objectives(row->best, &trial, goals) ||
                          (goals->is_aggressive && !row->is_feasible);
    free(trial.values);
    return !row->cannot_improve || !hwnas_trial_cannot_improve(row->trial, goals, front);
}

static hwnas_trial *copy_judged(const hwnas_trial *trial)
{
    hwnas_trial *copy = hwnas_alloc(sizeof *copy);
    *copy = *trial;
    copy->code = copy->message = copy->detail = NULL;
    copy->values = NULL;
    copy->n_values = copy->value_room = 0;
    for (size_t i = 0; i < trial->n_values; i++)
        hwnas_trial_add(copy, &trial->values[i]);
    return copy;
}

void hwnas_waiting_add(hwnas_waiting *waiting, size_t id, const hwnas_trial *trial,
                       const hwnas_front *front)
{
    hwnas_waiting_row row = {.id = id, .trial = copy_judged(trial)};
    if (!assess(&row, waiting, front)) {
        hwnas_trials_free(row.trial, 1);
        return;
    }
    HWNAS_GROW(waiting->rows, waiting->n, waiting->capacity);
    waiting->rows[waiting->n++] = row;
}

void hwnas_waiting_update(hwnas_waiting *waiting, const hwnas_front *front)
{
    size_t n = 0;
    for (size_t i = 0; i < waiting->n; i++)
        if (assess(&waiting->rows[i], waiting, front))
            waiting->rows[n++] = waiting->rows[i];
        else
            hwnas_trials_free(waiting->rows[i].trial, 1);
    waiting->n = n;
}

void hwnas_waiting_tell(hwnas_waiting *waiting, size_t id, const hwnas_trial *measured)
{
    size_t n = 0;
    for (size_t i = 0; i < waiting->n; i++) {
        if (waiting->rows[i].id != id) {
            waiting->rows[n++] = waiting->rows[i];
            continue;
        }
        if (!measured->is_unstable)
            learn_ratio(waiting, waiting->rows[i].trial, measured);
        hwnas_trials_free(waiting->rows[i].trial, 1);
    }
    waiting->n = n;
}

bool hwnas_waiting_put_off(hwnas_waiting *waiting, size_t id, double now)
{
    waiting->next_try = now + fmin(ldexp(SHORTEST_PAUSE, waiting->n_disturbed++), PAUSE);
    for (size_t i = 0; i < waiting->n; i++) {
        hwnas_waiting_row *row = &waiting->rows[i];
        if (row->id != id)
            continue;
        row->next_try = now + PAUSE;
        return ++row->n_tries < MOST_TRIES;
    }
    return false;
}

void hwnas_waiting_clear(hwnas_waiting *waiting)
{
    while (waiting->n)
        hwnas_trials_free(waiting->rows[--waiting->n].trial, 1);
}

void hwnas_waiting_done(hwnas_waiting *waiting)
{
    hwnas_waiting_clear(waiting);
    free(waiting->rows);
    *waiting = (hwnas_waiting){.goals = waiting->goals};
}

/* ---- Which is next ---- */

/* The front as it would be if the estimates were true; an estimated trial's id is its row's. */
static hwnas_front join(const hwnas_waiting *waiting, const hwnas_front *front)
{
    hwnas_front joint = {.n_objectives = front->n_objectives};
    for (size_t i = 0; i < front->n; i++) {
        hwnas_point measured = front->points[i];
        measured.id = UINT64_MAX;
        hwnas_front_insert(&joint, &measured);
    }
    for (size_t i = 0; i < waiting->n; i++) {
        hwnas_point estimated = {.id = i};
        memcpy(estimated.objectives, waiting->rows[i].objectives, sizeof estimated.objectives);
        if (waiting->rows[i].is_feasible)
            hwnas_front_insert(&joint, &estimated);
    }
    return joint;
}

/* NULL: it is measured, or put off. */
static const hwnas_waiting_row *row_of(const hwnas_waiting *waiting, const hwnas_point *point,
                                       double now)
{
    const hwnas_waiting_row *row = point->id == UINT64_MAX ? NULL : &waiting->rows[point->id];
    return row && row->next_try <= now ? row : NULL;
}

size_t hwnas_waiting_front(size_t *next, const hwnas_waiting *waiting, const hwnas_front *front,
                           double now)
{
    hwnas_front joint = join(waiting, front);
    size_t n = 0;
    int fewest = MOST_TRIES;
    for (size_t i = 0; i < joint.n; i++) {
        const hwnas_waiting_row *row = row_of(waiting, &joint.points[i], now);
        if (!row)
            continue;
        if (row->n_tries < fewest) {
            fewest = row->n_tries;
            *next = row->id;
        }
        n++;
    }
    hwnas_front_done(&joint);
    return n;
}

static bool has_id(const size_t *ids, size_t n, size_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

size_t hwnas_waiting_list(size_t *ids, size_t most, const hwnas_waiting *waiting,
                          const hwnas_front *front, double now)
{
    hwnas_front joint = join(waiting, front);
    size_t n = 0;
    for (size_t i = 0; i < joint.n && n < most; i++) {
        const hwnas_waiting_row *row = row_of(waiting, &joint.points[i], now);
        if (row)
            ids[n++] = row->id;
    }
    hwnas_front_done(&joint);
    for (size_t i = 0; i < waiting->n && n < most; i++) {
        const hwnas_waiting_row *row = &waiting->rows[i];
        if (!row->cannot_improve && row->next_try <= now && !has_id(ids, n, row->id))
            ids[n++] = row->id;
    }
    return n;
}

size_t hwnas_waiting_possible(size_t *next, const hwnas_waiting *waiting, double now)
{
    const hwnas_waiting_row *best = NULL;
    size_t n = 0;
    for (size_t i = 0; i < waiting->n; i++) {
        const hwnas_waiting_row *row = &waiting->rows[i];
        if (row->cannot_improve || row->next_try > now)
            continue;
        if (!best || hwnas_dominates(row->best, best->best, waiting->goals->n_objectives))
            best = row;
        n++;
    }
    if (best)
        *next = best->id;
    return n;
}

size_t hwnas_waiting_left(size_t *n_trained, const hwnas_waiting *waiting, const hwnas_front *front)
{
    size_t *ids = hwnas_alloc((waiting->n + 1) * sizeof *ids), front_id;
    const size_t n_front = hwnas_waiting_front(&front_id, waiting, front, INFINITY);
    const size_t most = waiting->goals->is_aggressive ? n_front : waiting->n;
    const size_t n = hwnas_waiting_list(ids, most, waiting, front, INFINITY);
    *n_trained = 0;
    for (size_t i = 0; i < waiting->n; i++)
        *n_trained += has_id(ids, n, waiting->rows[i].id) &&
                      hwnas_trial_value_of(waiting->rows[i].trial, HWNAS_TRAINED);
    free(ids);
    return n;
}
