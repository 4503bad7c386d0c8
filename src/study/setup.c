#include "study/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derive/derive.h"
#include "space/among.h"
#include "study/evaluator.h"
#include "study/held.h"

static hwnas_strategy_config config_of(const hwnas_job *job, const hwnas_space *walked,
                                       uint64_t max_trials)
{
    return (hwnas_strategy_config){.space = walked,
                                   .n_objectives = job->goals.n_objectives,
                                   .seed = job->seed,
                                   .population = job->population,
                                   .max_trials = max_trials};
}

/* Ways to train a network. A budget of trainings is of whole ones. */
static int count_training_rungs(const hwnas_job *job, const hwnas_predictor *predictor)
{
    return job->train_budget ? 1 : hwnas_predictor_rungs(predictor);
}

static void choose(hwnas_choice_of_strategy *out, const hwnas_job *job, const hwnas_space *walked,
                   const hwnas_predictor *predictor)
{
    hwnas_strategy_config config = config_of(job, walked, (uint64_t)job->max_trials);
    config.n_rungs = count_training_rungs(job, predictor);
    char *why = NULL;
    const char *name = job->strategy;
    if (!strcmp(name, "auto"))
        name = hwnas_strategy_choose(&why, &config);
    *out = (hwnas_choice_of_strategy){.max_trials = config.max_trials,
                                      .n_among = walked->among ? walked->among->n : 0};
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->why, sizeof out->why, "%s", why ? why : "");
    free(why);
}

/* Ways to evaluate a network: those to train it, or a short measurement besides the whole one,
 * where something is measured. Of the latter `auto` is not told: next to the start of a runner and
 * a warm-up a short one saves little, so this ladder is for those who ask for it by name. */
static int count_rungs(const hwnas_job *job, const hwnas_predictor *predictor)
{
    const int n_trainings = count_training_rungs(job, predictor);
    const hwnas_device_ops *ops;
    const char *argument;
    bool measures = false;
    for (int i = 0; i < job->goals.devices.n; i++)
        if (hwnas_device_find(&ops, &argument, job->goals.devices.rows[i].spelling) == HWNAS_OK)
            measures |= ops->open && !ops->lookup;
        else
            hwnas_error_clear(); /* whoever opens it says so */
    return n_trainings > 1 ? n_trainings : measures ? 2 : 1;
}

/* Networks that a table does not have are not proposed. */
static hwnas_status narrow(const hwnas_space **walked, const hwnas_arch *const *archs, size_t n,
                           const char *table)
{
    const hwnas_status status = hwnas_space_among(walked, *walked, archs, n);
    return status == HWNAS_OK
               ? status
               : hwnas_hint(hwnas_fail(status, NULL,
                                       "none of the %zu networks of %s is left to search", n,
                                       table),
                            "the job's tables must have networks in common, with values that its "
                            "predictor has seen");
}

static hwnas_status stay_among(const hwnas_space **walked, const hwnas_evaluator *e)
{
    const hwnas_predictor *predictor = e->predictor;
    for (int i = 0; i < e->n; i++)
        if (e->sites[i].memory)
            TRY(narrow(walked, e->sites[i].recalled, e->sites[i].n_recalled,
                       e->sites[i].row->spelling));
    if (!predictor || !predictor->ops->recall)
        return HWNAS_OK;
    size_t n;
    const hwnas_arch *const *archs = predictor->ops->recall(&n, predictor);
    return narrow(walked, archs, n, e->job->predictor);
}

hwnas_status hwnas_setup_open(hwnas_setup *out, const hwnas_job *job,
                              const hwnas_choice_of_strategy *choice, hwnas_tasks tasks,
                              const volatile sig_atomic_t *stop, const hwnas_training_watch *watch)
{
    hwnas_status status = hwnas_load_space(&out->space, job->space);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &job->space_place);
    TRY(hwnas_settings_space(&out->wide, out->space, job));
    out->walked = out->wide;
    TRY(hwnas_evaluator_open(&out->evaluator, job, out->space, tasks, stop, watch));
    TRY(hwnas_held_find(&out->held, &out->walked, out->evaluator->predictor, job));
    /* A study that was begun before there were such searches goes on without. */
    if (!choice || choice->n_among)
        TRY(stay_among(&out->walked, out->evaluator));
    if (choice)
        out->choice = *choice;
    else
        choose(&out->choice, job, out->walked, out->evaluator->predictor);
    hwnas_strategy_config config = config_of(job, out->walked, out->choice.max_trials);
    config.n_rungs = count_rungs(job, out->evaluator->predictor);
    status = hwnas_strategy_new(&out->strategy, out->choice.name, &config);
    return status == HWNAS_OK ? status : hwnas_fail_at(status, &job->strategy_place);
}

void hwnas_setup_close(hwnas_setup *setup)
{
    hwnas_evaluator_close(setup->evaluator);
    hwnas_strategy_free(setup->strategy);
    hwnas_space_free(setup->space);
    json_decref(setup->held);
    *setup = (hwnas_setup){0};
}
