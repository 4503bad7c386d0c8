#include "study/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/active.h"
#include "study/evaluator.h"
#include "study/exports.h"
#include "study/probe.h"
#include "study/setup.h"
#include "study/warm.h"

/* Limits that a network misses by the better end of its interval. */
static char *missed_limits(const hwnas_trial *trial, const hwnas_job *job)
{
    hwnas_str out = {0};
    for (int i = 0; i < job->goals.n_limits; i++) {
        const hwnas_limit *limit = &job->goals.limits[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
        if (!v || limit->goal.metric->source == HWNAS_FROM_PREDICTOR)
            continue;
        const double end = isnan(v->low) ? v->value : limit->is_upper ? v->low : v->high;
        const hwnas_metric m = hwnas_metric_shown(limit->goal.metric, v->value);
        if (hwnas_limit_violation(limit, end, end) > 0)
            hwnas_str_addf(&out, "%s%s, with %.*f %s", out.n ? "; " : "", limit->text, m.decimals,
                           v->value / m.scale, m.unit);
    }
    return out.s;
}

/* Seconds that one network takes as a trial; NaN when it fails. `missed`: hwnas_plan.missed of this
 * network, NULL: it does not matter. The shortage is this network's. */
static double time_network(char **missed, char **shortage, const hwnas_setup *setup,
                           const hwnas_job *job, const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    hwnas_trial trial = {0};
    hwnas_candidate c = {.arch = arch, .settings = hwnas_settings_first(job)};
    bool is_whole = true;
    double started = hwnas_now(), seconds = NAN;
    if (hwnas_graph_build(&graph, arch, c.settings.batch) == HWNAS_OK) {
        c.graph = graph;
        hwnas_status status = hwnas_evaluate_free(&trial, setup->evaluator, &c);
        for (int d = 0; d < job->goals.devices.n && status == HWNAS_OK; d++) {
            if (hwnas_evaluator_device(setup->evaluator, d))
                status = hwnas_evaluate_on(&trial, setup->evaluator, &c, d, job->max_seconds);
            else
                is_whole = false;
        }
        if (status == HWNAS_OK)
            seconds = hwnas_now() - started;
        if (status == HWNAS_OK && missed)
            *missed = missed_limits(&trial, job);
        if (status == HWNAS_OK && is_whole)
            *shortage = hwnas_evaluate_shortage(setup->evaluator, &trial);
    }
    hwnas_error_clear();
    hwnas_graph_free(graph);
    free(trial.values);
    return seconds;
}

/* Of those that the search may propose: others may have no row in a table of the job. */
static void time_networks(hwnas_plan *out, const hwnas_setup *setup, const hwnas_job *job)
{
    const hwnas_metric *macs = hwnas_metric_of(HWNAS_MACS);
    hwnas_rng rng = hwnas_rng_new(job->seed, 0x706c616e); /* the stream "plan" */
    double sum = 0;
    int n = 0, longest = 1; /* the largest network takes most */
    char *shortages[HWNAS_PLAN_NETWORKS] = {NULL};
    for (int i = 0; i < HWNAS_PLAN_NETWORKS; i++) {
        hwnas_arch *walked = i < 2 ? hwnas_probe_extreme(setup->walked, macs, i == 1)
                                   : hwnas_arch_new(setup->walked);
        const bool is_there = i != 2 || hwnas_arch_sample(walked, &rng);
        hwnas_arch *arch = hwnas_settings_strip(walked, setup->space);
        out->seconds[i] =
            is_there ? time_network(i ? NULL : &out->missed, &shortages[i], setup, job, arch) : NAN;
        if (!isnan(out->seconds[i])) {
            sum += out->seconds[i];
            n++;
        }
        hwnas_arch_free(arch);
        hwnas_arch_free(walked);
    }
    for (int i = 0; i < HWNAS_PLAN_NETWORKS && !shortages[1]; i++)
        longest = shortages[i] ? i : longest;
    out->shortage = shortages[longest];
    for (int i = 0; i < HWNAS_PLAN_NETWORKS; i++)
        if (i != longest)
            free(shortages[i]);
    out->seconds_a_trial = n ? sum / n : NAN;
}

/* Seconds that all trainings take. Several run at a time where several are asked for at once: the
 * first half of a budget. */
static double training_time(const hwnas_plan *plan, const hwnas_job *job,
                            const hwnas_trainings *trainings)
{
    const size_t first = job->train_budget ? hwnas_train_first((size_t)job->train_budget) : 0;
    const double at_once = first > trainings->n_known ? (double)(first - trainings->n_known) : 0;
    return (at_once / (double)trainings->n_jobs + plan->n_trainings - at_once) *
           plan->seconds_a_training;
}

static void add_trainings(hwnas_plan *out, const hwnas_job *job, const hwnas_trainings *trainings)
{
    const double left = (double)job->train_budget - (double)trainings->n_known;
    out->n_trainings = job->train_budget ? fmax(left, 0) : out->trials;
    out->seconds_a_training = trainings->seconds;
    if (out->n_trainings == 0)
        return;
    out->minutes += training_time(out, job, trainings) / 60;
    if (job->max_minutes > 0)
        out->minutes = fmin(isnan(out->minutes) ? INFINITY : out->minutes, job->max_minutes);
}

/* How many trials there is time for is not known where others do a part of them. */
static void estimate(hwnas_plan *out, const hwnas_job *job)
{
    double n = strtod(out->encodings, NULL);
    out->trials = job->max_trials ? (double)job->max_trials : NAN;
    if (job->max_minutes > 0 && !out->part)
        out->trials = fmin(isnan(out->trials) ? INFINITY : out->trials,
                           60 * job->max_minutes / out->seconds_a_trial);
    if (out->is_exact && !isnan(out->trials))
        out->trials = fmin(out->trials, n);
    double share = out->measures_again ? 1 + job->ties + job->confirm : 1;
    out->minutes = out->trials * out->seconds_a_trial * share / 60;
    if (job->max_minutes > 0)
        out->minutes = fmin(out->minutes, job->max_minutes);
}

/* Trials of the other study that are walked here. */
static size_t count_inside(const hwnas_warm_start *warm, const hwnas_space *walked)
{
    size_t n = 0;
    for (size_t i = 0; i < warm->n; i++) {
        hwnas_arch *arch = NULL;
        n += hwnas_arch_parse(&arch, walked, warm->trials[i].code) == HWNAS_OK;
        hwnas_arch_free(arch);
    }
    hwnas_error_clear();
    return n;
}

/* What is left to others: its time is theirs. */
static void divide(hwnas_plan *out, const hwnas_evaluator *evaluator, hwnas_tasks tasks)
{
    const hwnas_tasks all = hwnas_evaluator_tasks(evaluator);
    if (tasks && all & ~tasks)
        out->part = all & tasks;
}

hwnas_status hwnas_plan_make(hwnas_plan *out, const hwnas_job *job, bool is_worker,
                             hwnas_tasks tasks, const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    hwnas_setup setup = {0};
    hwnas_plan plan = {0};
    hwnas_warm_start warm = {0};
    hwnas_trainings trainings;
    char *count = NULL;
    TRY_OUT(hwnas_job_check_own(job));
    if (!is_worker) {
        TRY_OUT(hwnas_job_check_exports(job));
        TRY_OUT(hwnas_job_check_study(job));
    }
    TRY_OUT(hwnas_setup_open(&setup, job, NULL, tasks ? tasks : HWNAS_ALL_TASKS, stop, NULL));
    hwnas_evaluator_may_train(setup.evaluator, false);
    plan.trains = hwnas_evaluator_trainings(&trainings, setup.evaluator);
    divide(&plan, setup.evaluator, tasks);
    plan.trains_here =
        plan.trains && (!plan.part || hwnas_tasks_have(plan.part, HWNAS_TASK_TRAINING));
    TRY_OUT(hwnas_probe_limits(setup.evaluator, job, setup.space, setup.walked));
    TRY_OUT(hwnas_evaluator_train_first(setup.evaluator));
    TRY_OUT(hwnas_store_exists(&plan.study_exists, job->study));
    if (job->warm_start)
        TRY_OUT(hwnas_warm_start_load(&warm, job, setup.wide, setup.evaluator));
    count = hwnas_space_count(setup.walked, &plan.is_exact);
    snprintf(plan.encodings, sizeof plan.encodings, "%s", count);
    plan.held = setup.held ? json_incref(setup.held) : NULL;
    const hwnas_sizes *sizes = hwnas_predictor_sizes(setup.evaluator->predictor);
    if (sizes && !job->is_domain_free)
        plan.sizes = *sizes;
    plan.measures_again = !is_worker && hwnas_evaluator_measures(setup.evaluator);
    plan.strategy = setup.strategy->ops;
    plan.choice = setup.choice;
    plan.n_warm = count_inside(&warm, setup.walked);
    plan.n_outside = warm.n - plan.n_warm;
    time_networks(&plan, &setup, job);
    estimate(&plan, job);
    if (plan.trains_here)
        add_trainings(&plan, job, &trainings);
    *out = plan;
    plan.missed = plan.shortage = NULL;
    plan.held = NULL;
out:
    hwnas_plan_done(&plan);
    free(count);
    hwnas_warm_start_done(&warm);
    hwnas_setup_close(&setup);
    return status;
}

void hwnas_plan_done(hwnas_plan *plan)
{
    free(plan->missed);
    free(plan->shortage);
    json_decref(plan->held);
    plan->missed = plan->shortage = NULL;
    plan->held = NULL;
}
