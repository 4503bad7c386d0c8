/* baseline.h: what was recorded against what is measured now. */
#ifndef HWNAS_PROFILE_BASELINE_H
#define HWNAS_PROFILE_BASELINE_H

#include "measure/verdict.h"
#include "profile/profile.h"

typedef struct hwnas_baseline_row {
    const hwnas_profile_row *before;
    hwnas_profile_row now;
    const char *trouble; /* why there is no judgement; NULL: there is one */
    hwnas_judgement judgement;
    int n_tries; /* 2: it looked slower and was measured once more */
} hwnas_baseline_row;

typedef struct hwnas_baseline {
    const hwnas_profile *before, *now; /* `now`: the device and the machine of today */
    double tolerance;
    size_t n;
    hwnas_baseline_row *rows;
} hwnas_baseline;

/* Fills in `trouble` or the judgement of a row that was measured again. */
void hwnas_baseline_judge(hwnas_baseline_row *row, double tolerance);

/* What differs between the two machines, in words, so that a difference in speed is not taken for
 * one of the network; NULL: nothing. Yours to free(). */
char *hwnas_baseline_doubt(const hwnas_baseline *baseline);

#endif
