/* setup.h: what a search consists of, opened and checked before anything is written or run. */
#ifndef HWNAS_STUDY_SETUP_H
#define HWNAS_STUDY_SETUP_H

#include "search/search.h"
#include "study/evaluate.h"

/* What a strategy is made for. It is kept with the study: a larger budget later must not make
 * another search of it. */
typedef struct hwnas_choice_of_strategy {
    char name[32];       /* never "auto" */
    char why[160];       /* when the job says "auto"; else "" */
    uint64_t max_trials; /* 0: not known */
    uint64_t n_among;    /* networks that tables have, which it stays among; 0: the whole space */
} hwnas_choice_of_strategy;

typedef struct hwnas_setup {
    hwnas_space *space;        /* of the networks */
    const hwnas_space *wide;   /* with the settings that the job leaves open as choices */
    const hwnas_space *walked; /* what is searched of that: its codes are the same (held.h) */
    json_t *held;              /* choices that are not searched in full (held.h); NULL: none */
    hwnas_choice_of_strategy choice;
    hwnas_strategy *strategy;
    hwnas_evaluator *evaluator;
} hwnas_setup;

/* All that can be refused without running a network is refused here. `choice`: what an earlier
 * session of the study went by; NULL: it is made anew. */
HWNAS_CHECKED hwnas_status hwnas_setup_open(hwnas_setup *out, const hwnas_job *job,
                                            const hwnas_choice_of_strategy *choice,
                                            hwnas_tasks tasks, const volatile sig_atomic_t *stop,
                                            const hwnas_training_watch *watch);
void hwnas_setup_close(hwnas_setup *setup); /* accepts one that was never opened */

#endif
