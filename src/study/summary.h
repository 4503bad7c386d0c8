/* summary.h: what a study has found so far, from its store alone. */
#ifndef HWNAS_STUDY_SUMMARY_H
#define HWNAS_STUDY_SUMMARY_H

#include "search/search.h"
#include "store/store.h"
#include "study/job.h"

typedef struct hwnas_summary {
    hwnas_job goals;  /* objectives and limits only */
    json_t *identity; /* of the job */
    json_t *device;   /* what the device says of itself; NULL: nothing was measured */
    char *study;      /* file */
    size_t n_trials, n_finished, n_failed, n_feasible;
    hwnas_trial *trials; /* by number */
    size_t n_front;
    size_t *front; /* indices of trials, best in the first objective first */
    long winner;   /* index: of the front, best in the first objective; -1: nothing is feasible */
    long closest;  /* without a winner: index of the least violation; -1: none finished */
    double wall_seconds; /* of all sessions of the search */
    double run_seconds;  /* of these, inside runs of candidates */
    bool is_interrupted; /* set by the caller that knows */
} hwnas_summary;

HWNAS_CHECKED hwnas_status hwnas_summary_load(hwnas_summary **out, hwnas_store *store,
                                              const char *study);
void hwnas_summary_free(hwnas_summary *summary);

/* How a finished trial looks to a strategy. */
hwnas_score hwnas_trial_score(const hwnas_trial *trial, const hwnas_job *goals);
/* Its measurement is marked: the machine was disturbed (measure.h: hwnas_measurement_doubt). */
bool hwnas_trial_is_unstable(const hwnas_trial *trial);
bool hwnas_trial_is_feasible(const hwnas_trial *trial, const hwnas_job *goals);

#endif
