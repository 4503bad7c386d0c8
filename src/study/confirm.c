#define _GNU_SOURCE 1 /* qsort_r() */
#include "study/confirm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/stats.h"
#include "study/member.h"
#include "study/study_facts.h"
#include "trial/judge.h"

#define FACT "confirmed"

enum { CANDIDATES = 3, MOST = CANDIDATES + HWNAS_CONFIRM_REFERENCES };
static const double SHARE = 0.5; /* of the time of a measurement, for one of a round */
static const double NEAR = 0.41; /* logarithm: references are up to half as fast or slow again */

/* ---- What the rounds say ---- */

static double mean_and_variance(double *variance, const double *values, int n)
{
    const double mean = hwnas_mean(values, (size_t)n);
    *variance = 0;
    for (int i = 0; i < n; i++)
        *variance += (values[i] - mean) * (values[i] - mean) / (n - 1);
    return mean;
}

/* The 97.5 % quantile of Student's t, from that of the normal distribution (Abramowitz and Stegun,
 * "Handbook of Mathematical Functions", 26.7.5). */
static double student(double freedom)
{
    const double z = 1.959964, z2 = z * z;
    const double g1 = z * (z2 + 1) / 4, g2 = z * ((5 * z2 + 16) * z2 + 3) / 96,
                 g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
                 g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / freedom) / freedom) / freedom) / freedom;
}

hwnas_reading hwnas_confirm_conclude(const double *rounds, const double *means, int n_rounds,
                                     const double *firsts, int n_references)
{
    double beside[HWNAS_CONFIRM_ROUNDS], of_rounds, of_firsts;
    for (int r = 0; r < n_rounds; r++)
        beside[r] = rounds[r] - means[r];
    const double level =
        hwnas_mean(means, (size_t)n_rounds) + mean_and_variance(&of_firsts, firsts, n_references);
    const double value = mean_and_variance(&of_rounds, beside, n_rounds) + level;
    of_rounds /= n_rounds;
    of_firsts /= n_references;
    const double variance = of_rounds + of_firsts;
    const double freedom =
        variance * variance /
        (of_rounds * of_rounds / (n_rounds - 1) + of_firsts * of_firsts / (n_references - 1));
    const double half = variance > 0 ? student(freedom) * sqrt(variance) : 0;
    return (hwnas_reading){exp(value), exp(value - half), exp(value + half)};
}

/* ---- Who takes part ---- */

/* All that was measured on one device, and who of it takes part: candidates first. */
typedef struct group {
    hwnas_session *s;
    const hwnas_trial *trials;
    size_t n_trials;
    int device;
    const char *metric; /* latency.p50 on the device */
    int n, n_candidates, n_rounds;
    size_t members[MOST];                      /* indices of trials */
    double values[HWNAS_CONFIRM_ROUNDS][MOST]; /* logarithms; NaN: disturbed, or failed */
} group;

static bool is_member(const group *g, const hwnas_trial *trial)
{
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->trials[g->members[i]].digest, trial->digest))
            return true;
    return false;
}

static double first_of(const group *g, size_t trial)
{
    const hwnas_value_row *v = hwnas_trial_value(&g->trials[trial], g->metric);
    return v && v->source == HWNAS_MEASURED && v->value > 0 ? log(v->value) : NAN;
}

/* Was measured as the winner was, but for what came of it: a measurement that was ended early is as
 * good a reference as any, and leaving it out would be a choice by its value. */
static bool can_refer(const group *g, size_t i)
{
    const hwnas_trial *t = &g->trials[i];
    return t->is_finished && t->status == HWNAS_OK && !t->rung && !t->is_unstable &&
           fabs(first_of(g, i) - first_of(g, g->members[0])) < NEAR && !is_member(g, t);
}

static int compare_orders(const void *a, const void *b, void *context)
{
    const hwnas_trial *trials = context;
    const int64_t x = trials[*(const size_t *)a].order, y = trials[*(const size_t *)b].order;
    return (x > y) - (x < y);
}

/* Evenly over the time of the search. */
static void add_references(group *g, int most)
{
    size_t *able = hwnas_alloc((g->n_trials + 1) * sizeof *able), n = 0;
    for (size_t i = 0; i < g->n_trials; i++)
        if (can_refer(g, i))
            able[n++] = i;
    qsort_r(able, n, sizeof *able, compare_orders, (void *)g->trials);
    const size_t wanted = n < (size_t)most ? n : (size_t)most;
    for (size_t k = 0; k < wanted; k++) {
        const size_t pick = able[(2 * k + 1) * n / (2 * wanted)];
        if (!is_member(g, &g->trials[pick]))
            g->members[g->n++] = pick;
    }
    free(able);
}

/* ---- Measuring ---- */

static hwnas_status measure_member(double *log_seconds, const group *g, size_t trial)
{
    const hwnas_session *s = g->s;
    hwnas_trial fresh = {0};
    hwnas_member member;
    hwnas_status status =
        hwnas_member_open(&member, &g->trials[trial], s->job, s->setup.space, s->setup.walked);
    if (status == HWNAS_OK)
        status = hwnas_evaluate_on(&fresh, s->setup.evaluator, &member.candidate, g->device,
                                   SHARE * s->job->max_seconds);
    const hwnas_value_row *v = hwnas_trial_value(&fresh, g->metric);
    *log_seconds =
        status == HWNAS_OK && v && v->value > 0 && !fresh.is_unstable ? log(v->value) : NAN;
    hwnas_trial_done(&fresh);
    hwnas_member_close(&member);
    if (status == HWNAS_E_LIBRARY || status == HWNAS_E_IO || status == HWNAS_E_INTERRUPTED)
        return status;
    hwnas_error_clear(); /* its first measurement stands */
    return HWNAS_OK;
}

/* All once, in a new process and a new order. */
static hwnas_status take_round(group *g, hwnas_rng *rng)
{
    int order[MOST];
    for (int i = 0; i < g->n; i++) { /* Fisher and Yates */
        const int k = (int)hwnas_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    hwnas_evaluator_renew_runner(g->s->setup.evaluator);
    for (int i = 0; i < g->n && !hwnas_session_should_stop(g->s); i++)
        TRY(measure_member(&g->values[g->n_rounds][order[i]], g, g->members[order[i]]));
    g->n_rounds += !hwnas_session_should_stop(g->s);
    return HWNAS_OK;
}

/* Rounds as long as there is time for another one like the last. */
static hwnas_status take_rounds(group *g, double deadline)
{
    hwnas_rng rng = hwnas_rng_new((uint64_t)g->s->job->seed, 0x636f6e6669726d); /* "confirm" */
    double start = hwnas_now(), took = 0;
    while (g->n_rounds < HWNAS_CONFIRM_ROUNDS && start + took <= deadline &&
           !hwnas_session_should_stop(g->s)) {
        TRY(take_round(g, &rng));
        took = hwnas_now() - start;
        start += took;
    }
    return HWNAS_OK;
}

/* ---- Publishing ---- */

/* References that were undisturbed in most rounds stay, and of the rounds those in which all of
 * them were. */
static void drop_gaps(group *g)
{
    int n = g->n_candidates, n_rounds = 0;
    for (int i = g->n_candidates; i < g->n; i++) {
        int n_gaps = 0;
        for (int r = 0; r < g->n_rounds; r++)
            n_gaps += isnan(g->values[r][i]);
        if (4 * n_gaps > g->n_rounds)
            continue;
        for (int r = 0; r < g->n_rounds; r++)
            g->values[r][n] = g->values[r][i];
        g->members[n++] = g->members[i];
    }
    g->n = n;
    for (int r = 0; r < g->n_rounds; r++) {
        bool is_whole = true;
        for (int i = g->n_candidates; i < g->n; i++)
            is_whole &= !isnan(g->values[r][i]);
        if (is_whole)
            memmove(g->values[n_rounds++], g->values[r], sizeof g->values[r]);
    }
    g->n_rounds = n_rounds;
}

/* False: too little is left for this candidate. */
static bool conclude(hwnas_reading *out, int *n_rounds, const group *g, int candidate)
{
    double rounds[HWNAS_CONFIRM_ROUNDS], means[HWNAS_CONFIRM_ROUNDS], firsts[MOST] = {0};
    const int n_references = g->n - g->n_candidates;
    int n = 0;
    for (int r = 0; r < g->n_rounds; r++) {
        if (isnan(g->values[r][candidate]))
            continue;
        rounds[n] = g->values[r][candidate];
        means[n++] = hwnas_mean(g->values[r] + g->n_candidates, (size_t)n_references);
    }
    for (int i = 0; i < n_references; i++) {
        firsts[i] = first_of(g, g->members[g->n_candidates + i]);
        for (int r = 0; r < g->n_rounds; r++)
            firsts[i] -= g->values[r][g->n_candidates + i] / g->n_rounds;
    }
    *n_rounds = n;
    if (n < HWNAS_CONFIRM_LEAST || n_references < HWNAS_CONFIRM_LEAST)
        return false;
    *out = hwnas_confirm_conclude(rounds, means, n, firsts, n_references);
    return true;
}

/* What follows from the median latency on the device: it itself, throughput, cost. */
static bool follows(const group *g, const hwnas_value_row *v)
{
    const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
    const hwnas_metric *p50 = hwnas_metric_of(HWNAS_LATENCY);
    return v->source == HWNAS_MEASURED && metric && hwnas_metric_gives(p50, metric) &&
           hwnas_metric_is_levelled(metric) &&
           !strcmp(v->metric, hwnas_goal_of(metric, g->device, &g->s->job->goals.devices).name);
}

static hwnas_status publish(const group *g, int candidate, json_t *confirmed)
{
    const hwnas_trial *trial = &g->trials[g->members[candidate]];
    const double first = exp(first_of(g, g->members[candidate]));
    hwnas_reading is;
    int n_rounds;
    char key[96];
    if (!conclude(&is, &n_rounds, g, candidate))
        return HWNAS_OK;
    for (size_t i = 0; i < trial->n_values; i++) {
        hwnas_value_row v = trial->values[i];
        if (!follows(g, &v))
            continue;
        const bool is_inverse = hwnas_metric_of_value(v.metric)->is_maximised;
        v.low = is_inverse ? v.value * first / is.high : v.value * is.low / first;
        v.high = is_inverse ? v.value * first / is.low : v.value * is.high / first;
        v.value = is_inverse ? v.value * first / is.value : v.value * is.value / first;
        v.rounds = n_rounds;
        TRY(hwnas_store_again(g->s->store, trial->number, &v, 1));
    }
    snprintf(key, sizeof key, "%llu %s", (unsigned long long)trial->number, g->metric);
    json_object_set_new(confirmed, key,
                        json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:i, s:i}", "trial",
                                  (json_int_t)trial->number, "metric", g->metric, "first", first, "value",
                                  is.value, "low", is.low, "high", is.high, "rounds", n_rounds,
                                  "references", g->n - g->n_candidates));
    return hwnas_facts_set_json(g->s->store, FACT, confirmed);
}

hwnas_status hwnas_confirmed_load(json_t **out, hwnas_store *store)
{
    return hwnas_facts_json(out, store, FACT);
}

const json_t *hwnas_confirmed_of(const json_t *confirmed, uint64_t number, const char *metric)
{
    char key[96];
    snprintf(key, sizeof key, "%llu %s", (unsigned long long)number, metric);
    return json_object_get(confirmed, key);
}

/* ---- The front's end ---- */

/* So many networks as the time has room for, in the least number of rounds that is worth it; 0: not
 * even the fewest. */
static int count_room(const hwnas_session *s, double seconds)
{
    const double each = s->n_run ? s->run_seconds / (double)s->n_run : s->job->max_seconds;
    const double room = seconds / (fmax(SHARE * each, 1e-6) * 1.5 * HWNAS_CONFIRM_LEAST);
    return room < 1 + HWNAS_CONFIRM_LEAST ? 0 : room > MOST ? MOST : (int)room;
}

static hwnas_status confirm_on(group *g, json_t *confirmed, const size_t *front, size_t n_front,
                               double deadline)
{
    const hwnas_job *job = g->s->job;
    const hwnas_goal p50 =
        hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), g->device, &job->goals.devices);
    const int room = count_room(g->s, deadline - hwnas_now());
    const int most = job->goals.n_limits && room > 2 * HWNAS_CONFIRM_LEAST ? CANDIDATES : 1;
    g->metric = p50.name;
    for (size_t i = 0; i < n_front && g->n < most && room; i++)
        if (!hwnas_confirmed_of(confirmed, g->trials[front[i]].number, g->metric) &&
            !isnan(first_of(g, front[i])) && !is_member(g, &g->trials[front[i]]))
            g->members[g->n++] = front[i];
    g->n_candidates = g->n;
    if (!g->n)
        return HWNAS_OK;
    add_references(g, (room < MOST ? room : MOST) - g->n);
    if (g->n - g->n_candidates < HWNAS_CONFIRM_LEAST)
        return HWNAS_OK;
    TRY(take_rounds(g, deadline));
    drop_gaps(g);
    for (int i = 0; i < g->n_candidates; i++)
        TRY(publish(g, i, confirmed));
    return HWNAS_OK;
}

/* One batch of a front on a device; *is_over: there is no more to be done, or none to do it with.
 */
static hwnas_status confirm_batch(bool *is_over, hwnas_session *s, json_t *confirmed, int front,
                                  int device, double deadline)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *firsts = NULL, *published = NULL;
    size_t n = 0, n_published = 0, n_front = 0, *members = NULL;
    const hwnas_goal p50 =
        hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), device, &s->job->goals.devices);
    const size_t n_known = json_object_size(confirmed);
    *is_over = true;
    TRY_OUT(hwnas_store_trials(&firsts, &n, s->store));
    TRY_OUT(hwnas_store_trials(&published, &n_published, s->store));
    TRY_OUT(hwnas_store_replace(published, n_published, s->store));
    hwnas_verified_apply(published, n_published, s->verified, &s->job->goals);
    members = hwnas_alloc((n + 1) * sizeof *members);
    n_front = hwnas_front_find(members, published, n, &s->job->goals, front);
    if (!n_front || hwnas_confirmed_of(confirmed, published[members[0]].number, p50.name))
        goto out;
    group g = {.s = s, .trials = firsts, .n_trials = n, .device = device, .metric = p50.name};
    TRY_OUT(confirm_on(&g, confirmed, members, n_front, deadline));
    *is_over = json_object_size(confirmed) == n_known || hwnas_session_should_stop(s);
out:
    free(members);
    hwnas_trials_free(firsts, n);
    hwnas_trials_free(published, n_published);
    return status;
}

hwnas_status hwnas_session_confirm(hwnas_session *s, double seconds)
{
    hwnas_status status = HWNAS_OK;
    json_t *confirmed = NULL;
    const double deadline = hwnas_now() + seconds;
    TRY(hwnas_confirmed_load(&confirmed, s->store));
    if (!confirmed)
        confirmed = json_object();
    for (int f = 0; f < hwnas_n_fronts(&s->job->goals); f++)
        for (int d = 0; d < s->job->goals.devices.n; d++) {
            const bool counts = !s->job->goals.is_front_per_device || d == f;
            bool is_over = !counts || !hwnas_evaluator_device(s->setup.evaluator, d);
            while (!is_over)
                TRY_OUT(confirm_batch(&is_over, s, confirmed, f, d, deadline));
        }
out:
    json_decref(confirmed);
    return status == HWNAS_E_INTERRUPTED ? HWNAS_OK : status;
}
