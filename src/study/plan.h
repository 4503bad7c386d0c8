/* plan.h: what a search would do, before it does it. */
#ifndef HWNAS_STUDY_PLAN_H
#define HWNAS_STUDY_PLAN_H

#include <signal.h>

#include "predict/domain.h"
#include "study/setup.h"

enum { HWNAS_PLAN_NETWORKS = 3 };

typedef struct hwnas_plan {
    char encodings[64]; /* in decimal, of the space with its settings */
    bool is_exact;
    json_t *held; /* choices that are not searched in full (held.h); NULL: none */
    hwnas_sizes sizes; /* that it stays among; none: all */
    const hwnas_strategy_ops *strategy;
    hwnas_choice_of_strategy choice;
    hwnas_tasks part;    /* of a trial, that it does and others not; 0: all of it */
    bool measures_again; /* near ties, and the front's end, as a search does that is no worker */
    double seconds[HWNAS_PLAN_NETWORKS]; /* of a trial, or its part of one: the smallest, the
                                            largest and a random network; NaN: it failed */
    double seconds_a_trial;              /* mean of these; NaN: all failed */
    double trials, minutes;              /* estimates; NaN: nothing bounds them beforehand. The
                                            minutes are those of its part */
    bool trains;                         /* a program is to train networks */
    bool trains_here;                    /* it starts that itself: */
    double n_trainings;                  /* so many more at most; NaN: nothing bounds them */
    double seconds_a_training;           /* by the results that there are; NaN: there are none */
    char *missed;      /* by the smallest network, as clauses joined by "; "; NULL: no limit */
    char *shortage; /* of samples of a network that was tried, in words; NULL: there are enough */
    bool study_exists; /* something has the study's name already */
    size_t n_warm;     /* trials of another study to begin with, at most */
    size_t n_outside;  /* of it, left out: they have values that the predictor has not seen */
} hwnas_plan;

/* Opens all that a search or a worker needs which does these tasks of a trial (0: all), and tries
 * three networks for their time. HWNAS_E_INFEASIBLE where study/probe.h proves it. Writes nothing.
 */
HWNAS_CHECKED hwnas_status hwnas_plan_make(hwnas_plan *out, const hwnas_job *job, bool is_worker,
                                           hwnas_tasks tasks, const volatile sig_atomic_t *stop);
void hwnas_plan_done(hwnas_plan *plan);

#endif
