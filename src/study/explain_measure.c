/* explain_measure.c: neighbours measured in turns with the network itself, on the study's devices.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/stats.h"
#include "base/str.h"
#include "study/explainer.h"
#include "study/job_source.h"
#include "study/member.h"
#include "study/session.h"
#include "study/study_facts.h"
#include "study/tasks.h"
#include "study/turns.h"

/* The loops of `ref` have a share of the time, as in a search, and of that what one network may. */
static const double REF_SHARE = 0.1;

typedef struct measuring {
    hwnas_explainer *e;
    const hwnas_explain_measuring *how;
    hwnas_job job; /* of the study, with the measuring of the job that it keeps */
    hwnas_evaluator *evaluator;
    hwnas_member own;
    double started, verify_seconds;
    struct { /* by goal: what the network itself took in its turns with all neighbours */
        size_t n, room;
        double *values;
    } owns[HWNAS_EXPLAINED];
} measuring;

static bool should_stop(const measuring *m)
{
    return m->how->stop && *m->how->stop;
}

/* ---- Opening ---- */

/* How a study measures is no part of what it searches for, so it is only in the job itself. */
static void take_measuring(hwnas_job *to, const hwnas_job *from)
{
    to->interval = from->interval;
    to->max_seconds = from->max_seconds;
    to->priority = from->priority;
    to->timeout = from->timeout;
    to->memory_limit = from->memory_limit;
    to->verifies = from->verifies;
}

/* Opens the devices alone: nothing is learnt from what is measured, and nothing trained. */
static hwnas_status open_devices(measuring *m)
{
    hwnas_explainer *e = m->e;
    hwnas_job *kept;
    TRY(hwnas_job_load_kept(&kept, e->summary->study));
    m->job = e->job;
    take_measuring(&m->job, kept);
    hwnas_job_free(kept);
    m->job.study = e->summary->study;
    m->job.predictor = NULL;
    m->job.estimate = HWNAS_ESTIMATE_OFF;
    TRY(hwnas_evaluator_open(&m->evaluator, &m->job, e->space,
                             HWNAS_ALL_TASKS & ~(1U << HWNAS_TASK_TRAINING), m->how->stop, NULL));
    TRY(hwnas_facts_check_devices(e->store, &m->job, m->evaluator));
    return hwnas_member_open(&m->own, &e->summary->trials[e->out->trial], &m->job, e->space,
                             e->walked);
}

/* Says of which devices nothing is measured. */
static void note_unmeasured(const measuring *m)
{
    hwnas_str words = {0};
    if (!m->job.goals.devices.n)
        m->e->out->unmeasured = hwnas_strdup("nothing is measured, as the study has no device");
    for (int d = 0; d < m->job.goals.devices.n; d++)
        if (!hwnas_evaluator_device(m->evaluator, d))
            hwnas_str_addf(&words, "%s'%s'", words.n ? ", " : "",
                           m->job.goals.devices.rows[d].spelling);
    if (words.n)
        m->e->out->unmeasured =
            hwnas_printf("nothing is measured on %s, which runs no networks here", words.s);
    hwnas_str_done(&words);
}

/* ---- What turns say ---- */

/* A goal of this device. */
static bool is_on(const measuring *m, int goal, int device)
{
    const hwnas_goal *g = &m->e->out->goals[goal];
    return g->metric->source == HWNAS_FROM_DEVICE && g->device == device;
}

/* Something is judged on the device that does not follow from the median latency. */
static bool wants_all(const measuring *m, int device)
{
    bool wants = false;
    for (int g = 0; g < m->e->out->n_goals; g++)
        wants |= is_on(m, g, device) &&
                 !hwnas_metric_gives(hwnas_metric_of(HWNAS_LATENCY), m->e->out->goals[g].metric);
    return wants;
}

static void put(hwnas_trial *values, const hwnas_value_row *row)
{
    for (size_t i = 0; i < values->n_values; i++)
        if (!strcmp(values->values[i].metric, row->metric)) {
            values->values[i] = *row;
            return;
        }
    hwnas_trial_add(values, row);
}

/* The network's and the neighbour's value in each round in which both were undisturbed; returns how
 * many. */
static int gather(double *ratios, double *owns, const hwnas_turns *turns, const char *metric,
                  hwnas_value_row *like)
{
    int n = 0;
    for (int r = 0; r < turns->n_rounds; r++) {
        const hwnas_trial *own = &turns->rows[r * 2], *other = &turns->rows[r * 2 + 1];
        const hwnas_value_row *x = hwnas_trial_value(own, metric);
        const hwnas_value_row *y = hwnas_trial_value(other, metric);
        if (!x || !y || !(x->value > 0) || !(y->value > 0) || own->is_unstable ||
            other->is_unstable)
            continue;
        *like = *y;
        owns[n] = x->value;
        ratios[n++] = y->value / x->value;
    }
    return n;
}

/* Ratios within rounds, so what a round had of its own cancels out. */
static bool conclude(hwnas_neighbour *n, measuring *m, int goal, const hwnas_turns *turns)
{
    double *ratios = hwnas_alloc((size_t)(turns->n_rounds + 1) * sizeof *ratios);
    double *owns = hwnas_alloc((size_t)(turns->n_rounds + 1) * sizeof *owns);
    hwnas_value_row row;
    const int count = gather(ratios, owns, turns, m->e->out->goals[goal].name, &row);
    const bool is_enough = count >= HWNAS_TURN_LEAST;
    if (is_enough) {
        for (int i = 0; i < count; i++) {
            HWNAS_GROW(m->owns[goal].values, m->owns[goal].n, m->owns[goal].room);
            m->owns[goal].values[m->owns[goal].n++] = owns[i];
        }
        hwnas_sort(ratios, (size_t)count);
        hwnas_sort(owns, (size_t)count);
        (void)hwnas_quantile_interval(ratios, (size_t)count, 0.5, &row.low, &row.high);
        row.value = hwnas_quantile(ratios, (size_t)count, 0.5);
        row.rounds = count;
        put(&n->values, &row);
        n->differences[goal] =
            (hwnas_neighbour_difference){.basis = HWNAS_BY_TURNS,
                                         .own = hwnas_quantile(owns, (size_t)count, 0.5),
                                         .n_rounds = count};
    }
    free(ratios);
    free(owns);
    return is_enough;
}

/* A network whose own value was never measured has one now, the same for all neighbours. */
static void conclude_own(measuring *m)
{
    hwnas_explanation *out = m->e->out;
    for (int g = 0; g < out->n_goals; g++) {
        const hwnas_value_row *own = hwnas_explained_own(out, g);
        const size_t n = m->owns[g].n;
        if (!n || (own && hwnas_sources[own->source].is_of_run))
            continue;
        hwnas_sort(m->owns[g].values, n);
        out->now[g] = (hwnas_value_row){.metric = hwnas_intern(out->goals[g].name),
                                        .value = hwnas_quantile(m->owns[g].values, n, 0.5),
                                        .low = NAN,
                                        .high = NAN,
                                        .unit = out->goals[g].metric->si,
                                        .source = HWNAS_MEASURED,
                                        .rounds = (int)n};
    }
}

/* Says why a neighbour was not measured on a device, which is named where there are several. */
static void note_why_not(hwnas_neighbour *n, const measuring *m, int device, const char *why)
{
    char *before = n->why_not;
    n->why_not = m->job.goals.devices.n > 1
                     ? hwnas_printf("%s%son %s: %s", before ? before : "", before ? "; " : "",
                                    hwnas_job_row_name(&m->job.goals.devices, device).text, why)
                     : hwnas_strdup(why);
    free(before);
}

static void conclude_all(hwnas_neighbour *n, measuring *m, int device, const hwnas_turns *turns)
{
    bool is_whole = true, is_any = false;
    for (int g = 0; g < m->e->out->n_goals; g++)
        if (is_on(m, g, device)) {
            const bool is_enough = conclude(n, m, g, turns);
            is_whole &= is_enough;
            is_any |= is_enough;
        }
    m->e->out->n_turns += is_any;
    if (is_whole)
        return;
    char *why = turns->n_rounds
                    ? hwnas_printf("too few of %d rounds were undisturbed", turns->n_rounds)
                    : hwnas_strdup("no round was whole in the time that it has; try again when "
                                   "less runs on the machine");
    note_why_not(n, m, device, why);
    free(why);
}

/* ---- Measuring ---- */

/* As a search verifies: a time is worth nothing where the result is wrong. */
static hwnas_status verify(measuring *m, const hwnas_candidate *c, int device)
{
    hwnas_verified verified;
    if (!m->job.verifies || hwnas_evaluator_unverifiable(m->evaluator, device))
        return HWNAS_OK;
    const double now = hwnas_now();
    const double share = fmax(REF_SHARE * (now - m->started), HWNAS_VERIFY_REF_SECONDS);
    const double left = fmax(0, fmin(share - m->verify_seconds, HWNAS_VERIFY_REF_SECONDS));
    const hwnas_status status = hwnas_evaluate_verify(&verified, m->evaluator, c, device, left);
    m->verify_seconds += hwnas_now() - now;
    TRY(status);
    return hwnas_verified_judge(&verified, hwnas_job_row_name(&m->job.goals.devices, device).text,
                                hwnas_evaluate_precision(m->evaluator, c, device));
}

static hwnas_status measure_one(hwnas_neighbour *n, measuring *m, int device)
{
    hwnas_status status;
    const hwnas_trial like = {.code = n->code};
    hwnas_member member;
    hwnas_turns turns;
    TRY_OUT(hwnas_member_open(&member, n->trial < 0 ? &like : &m->e->summary->trials[n->trial],
                              &m->job, m->e->space, m->e->walked));
    TRY_OUT(verify(m, &member.candidate, device));
    const hwnas_candidate both[2] = {m->own.candidate, member.candidate};
    TRY_OUT(hwnas_turns_take(&turns, m->evaluator, both, 2, device, m->job.max_seconds,
                             wants_all(m, device), m->how->stop));
    conclude_all(n, m, device, &turns);
    hwnas_turns_done(&turns);
out:
    hwnas_member_close(&member);
    return status;
}

/* Another encoding of the same network, measured in the same way: nothing is to be told apart. */
static bool is_same(const measuring *m, const hwnas_neighbour *n)
{
    const hwnas_settings own = m->own.candidate.settings;
    return !strcmp(n->digest, m->e->summary->trials[m->e->out->trial].digest) &&
           !memcmp(&own, &n->settings, sizeof own);
}

static void tell(const measuring *m, size_t neighbour, int device)
{
    if (!m->how->progress)
        return;
    char *words = hwnas_printf("%s on %s (%zu of %zu)", m->e->out->neighbours[neighbour].change,
                               hwnas_job_row_name(&m->job.goals.devices, device).text,
                               neighbour + 1, m->e->out->n_neighbours);
    m->how->progress(m->how->context, words);
    free(words);
}

/* A failure of a neighbour is its own; one that is none ends it. */
static hwnas_status measure_on(measuring *m, int device)
{
    hwnas_explanation *out = m->e->out;
    for (size_t i = 0; i < out->n_neighbours; i++) {
        hwnas_neighbour *n = &out->neighbours[i];
        if (is_same(m, n))
            continue;
        if (should_stop(m))
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted");
        tell(m, i, device);
        const hwnas_status status = measure_one(n, m, device);
        if (status == HWNAS_OK)
            continue;
        if (status == HWNAS_E_INTERRUPTED)
            return status;
        note_why_not(n, m, device, hwnas_last_error()->message);
        if (hwnas_trial_is_fatal(status))
            return status;
        hwnas_error_clear();
    }
    return HWNAS_OK;
}

hwnas_status hwnas_explain_measure(hwnas_explainer *e, const hwnas_explain_measuring *how)
{
    hwnas_status status;
    measuring m = {.e = e, .how = how, .started = hwnas_now()};
    e->out->is_measured = true;
    TRY_OUT(open_devices(&m));
    note_unmeasured(&m);
    for (int d = 0; d < m.job.goals.devices.n && e->out->stopped == HWNAS_OK; d++)
        if (hwnas_evaluator_device(m.evaluator, d))
            e->out->stopped = measure_on(&m, d);
    if (e->out->stopped != HWNAS_OK) {
        e->out->why_stopped = hwnas_strdup(hwnas_last_error()->message);
        hwnas_error_clear();
    }
    conclude_own(&m);
out:
    for (int g = 0; g < e->out->n_goals; g++)
        free(m.owns[g].values);
    hwnas_member_close(&m.own);
    hwnas_evaluator_close(m.evaluator);
    return status;
}
