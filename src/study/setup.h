/* setup.h: what a search consists of, opened and checked before anything is written or run. */
#ifndef HWNAS_STUDY_SETUP_H
#define HWNAS_STUDY_SETUP_H

#include "search/search.h"
#include "study/evaluate.h"

typedef struct hwnas_setup {
    hwnas_space *space;        /* of the networks */
    const hwnas_space *walked; /* with the settings that the job leaves open as choices */
    hwnas_strategy *strategy;
    hwnas_evaluator *evaluator;
} hwnas_setup;

/* All that can be refused without running a network is refused here. */
HWNAS_CHECKED hwnas_status hwnas_setup_open(hwnas_setup *out, const hwnas_job *job,
                                            const volatile sig_atomic_t *stop);
void hwnas_setup_close(hwnas_setup *setup); /* accepts one that was never opened */

#endif
