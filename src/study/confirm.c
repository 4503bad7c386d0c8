#define _GNU_SOURCE 1 /* qsort_r() */
#include "study/confirm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "study/drift.h"
#include "study/member.h"
#include "study/study_facts.h"
#include "trial/judge.h"

#define FACT "confirmed"

enum { CANDIDATES = 3, MOST = CANDIDATES + HWNAS_CONFIRM_REFERENCES };
static const double SHARE = 0.5; /* of the time of a measurement, for one of a round */
static const double NEAR = 0.41; /* logarithm: references are up to half as fast or slow again */

/* ---- Who takes part ---- */

/* The end of a search. */
typedef struct confirmation {
    hwnas_session *s;
    json_t *confirmed; /* the note of it */
    double deadline;
    int n_taken; /* measurements so far */
} confirmation;

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
    int places[HWNAS_CONFIRM_ROUNDS][MOST];    /* after so many others of the confirmation */
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
static hwnas_status take_round(group *g, confirmation *c, hwnas_rng *rng)
{
    int order[MOST];
    for (int i = 0; i < g->n; i++) { /* Fisher and Yates */
        const int k = (int)hwnas_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    hwnas_evaluator_renew_runner(g->s->setup.evaluator);
    for (int i = 0; i < g->n && !hwnas_session_should_stop(g->s); i++) {
        g->places[g->n_rounds][order[i]] = c->n_taken++;
        TRY(measure_member(&g->values[g->n_rounds][order[i]], g, g->members[order[i]]));
    }
    g->n_rounds += !hwnas_session_should_stop(g->s);
    return HWNAS_OK;
}

/* Rounds as long as there is time for another one like the last. */
static hwnas_status take_rounds(group *g, confirmation *c)
{
    hwnas_rng rng = hwnas_rng_new((uint64_t)g->s->job->seed, 0x636f6e6669726d); /* "confirm" */
    double start = hwnas_now(), took = 0;
    while (g->n_rounds < HWNAS_CONFIRM_ROUNDS && start + took <= c->deadline &&
           !hwnas_session_should_stop(g->s)) {
        TRY(take_round(g, c, &rng));
        took = hwnas_now() - start;
        start += took;
    }
    return HWNAS_OK;
}

/* ---- Publishing ---- */

static int count_rounds(const group *g, int member)
{
    int n = 0;
    for (int r = 0; r < g->n_rounds; r++)
        n += !isnan(g->values[r][member]);
    return n;
}

/* Those that were never undisturbed say nothing; candidates stay first. */
static void drop_unknown(group *g)
{
    int n = 0, n_candidates = 0;
    for (int i = 0; i < g->n; i++) {
        if (count_rounds(g, i) < (i < g->n_candidates ? HWNAS_CONFIRM_LEAST : 1))
            continue;
        for (int r = 0; r < g->n_rounds; r++) {
            g->values[r][n] = g->values[r][i];
            g->places[r][n] = g->places[r][i];
        }
        n_candidates += i < g->n_candidates;
        g->members[n++] = g->members[i];
    }
    g->n = n;
    g->n_candidates = n_candidates;
}

/* How many measurements of the search were before that of a trial: its time, as all take about as
 * long. */
static double place_of(const group *g, size_t trial)
{
    double place = 0;
    for (size_t i = 0; i < g->n_trials; i++)
        place += g->trials[i].order < g->trials[trial].order && !isnan(first_of(g, i));
    return place;
}

/* All fresh timings, and the first ones of references: those of candidates are why they are
 * candidates, and no evidence. Returns how many. */
static size_t gather(hwnas_drift_timing *out, const group *g)
{
    size_t n = 0;
    double n_before = 0;
    for (size_t i = 0; i < g->n_trials; i++)
        n_before += !isnan(first_of(g, i));
    for (int i = g->n_candidates; i < g->n; i++)
        out[n++] = (hwnas_drift_timing){i, place_of(g, g->members[i]), first_of(g, g->members[i])};
    for (int r = 0; r < g->n_rounds; r++)
        for (int i = 0; i < g->n; i++)
            if (!isnan(g->values[r][i]))
                out[n++] = (hwnas_drift_timing){i, n_before + g->places[r][i], g->values[r][i]};
    return n;
}

/* Of each candidate; returns how many: none where too little is left. */
static int conclude(hwnas_reading *out, group *g)
{
    hwnas_drift_timing timings[(HWNAS_CONFIRM_ROUNDS + 1) * MOST];
    drop_unknown(g);
    if (!g->n_candidates || g->n - g->n_candidates < HWNAS_CONFIRM_LEAST)
        return 0;
    const size_t n = gather(timings, g);
    hwnas_drift_conclude(out, g->n_candidates, timings, n, g->n);
    return g->n_candidates;
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

static hwnas_status publish(const group *g, int candidate, hwnas_reading is, confirmation *c)
{
    const hwnas_trial *trial = &g->trials[g->members[candidate]];
    const double first = exp(first_of(g, g->members[candidate]));
    const int n_rounds = count_rounds(g, candidate);
    char key[96];
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
    json_object_set_new(c->confirmed, key,
                        json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:i, s:i}", "trial",
                                  (json_int_t)trial->number, "metric", g->metric, "first", first,
                                  "value", is.value, "low", is.low, "high", is.high, "rounds",
                                  n_rounds, "references", g->n - g->n_candidates));
    return hwnas_facts_set_json(g->s->store, FACT, c->confirmed);
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

static hwnas_status confirm_on(group *g, confirmation *c, const size_t *front, size_t n_front)
{
    const hwnas_job *job = g->s->job;
    const hwnas_goal p50 =
        hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), g->device, &job->goals.devices);
    const int room = count_room(g->s, c->deadline - hwnas_now());
    const int most = job->goals.n_limits && room > 2 * HWNAS_CONFIRM_LEAST ? CANDIDATES : 1;
    hwnas_reading readings[CANDIDATES];
    g->metric = p50.name;
    for (size_t i = 0; i < n_front && g->n < most && room; i++)
        if (!hwnas_confirmed_of(c->confirmed, g->trials[front[i]].number, g->metric) &&
            !isnan(first_of(g, front[i])) && !is_member(g, &g->trials[front[i]]))
            g->members[g->n++] = front[i];
    g->n_candidates = g->n;
    if (!g->n)
        return HWNAS_OK;
    add_references(g, (room < MOST ? room : MOST) - g->n);
    if (g->n - g->n_candidates < HWNAS_CONFIRM_LEAST)
        return HWNAS_OK;
    TRY(take_rounds(g, c));
    const int n_known = conclude(readings, g);
    for (int i = 0; i < n_known; i++)
        TRY(publish(g, i, readings[i], c));
    return HWNAS_OK;
}

/* One batch of a front on a device; *is_over: there is no more to be done, or none to do it with.
 */
static hwnas_status confirm_batch(bool *is_over, confirmation *c, int front, int device)
{
    hwnas_status status = HWNAS_OK;
    hwnas_session *s = c->s;
    hwnas_trial *firsts = NULL, *published = NULL;
    size_t n = 0, n_published = 0, n_front = 0, *members = NULL;
    const hwnas_goal p50 =
        hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), device, &s->job->goals.devices);
    const size_t n_known = json_object_size(c->confirmed);
    *is_over = true;
    TRY_OUT(hwnas_store_trials(&firsts, &n, s->store));
    TRY_OUT(hwnas_store_trials(&published, &n_published, s->store));
    TRY_OUT(hwnas_store_replace(published, n_published, s->store));
    hwnas_verified_apply(published, n_published, s->verified, &s->job->goals);
    members = hwnas_alloc((n + 1) * sizeof *members);
    n_front = hwnas_front_find(members, published, n, &s->job->goals, front);
    if (!n_front || hwnas_confirmed_of(c->confirmed, published[members[0]].number, p50.name))
        goto out;
    group g = {.s = s, .trials = firsts, .n_trials = n, .device = device, .metric = p50.name};
    TRY_OUT(confirm_on(&g, c, members, n_front));
    *is_over = json_object_size(c->confirmed) == n_known || hwnas_session_should_stop(s);
out:
    free(members);
    hwnas_trials_free(firsts, n);
    hwnas_trials_free(published, n_published);
    return status;
}

hwnas_status hwnas_session_confirm(hwnas_session *s, double seconds)
{
    hwnas_status status = HWNAS_OK;
    confirmation c = {.s = s, .deadline = hwnas_now() + seconds};
    TRY(hwnas_confirmed_load(&c.confirmed, s->store));
    if (!c.confirmed)
        c.confirmed = json_object();
    for (int f = 0; f < hwnas_n_fronts(&s->job->goals); f++)
        for (int d = 0; d < s->job->goals.devices.n; d++) {
            const bool counts = !s->job->goals.is_front_per_device || d == f;
            bool is_over = !counts || !hwnas_evaluator_device(s->setup.evaluator, d) ||
                           hwnas_evaluator_thorough(s->setup.evaluator, d);
            while (!is_over)
                TRY_OUT(confirm_batch(&is_over, &c, f, d));
        }
out:
    json_decref(c.confirmed);
    return status == HWNAS_E_INTERRUPTED ? HWNAS_OK : status;
}
