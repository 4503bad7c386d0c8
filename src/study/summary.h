/* summary.h: what a study has found so far, from its store alone. */
#ifndef HWNAS_STUDY_SUMMARY_H
#define HWNAS_STUDY_SUMMARY_H

#include "store/store.h"
#include "study/evidence.h"
#include "study/indicators.h"
#include "study/job.h"
#include "trial/judge.h"

/* The front of all devices together, or of one of them. */
typedef struct hwnas_summary_front {
    int device; /* of the job; -1: all together */
    size_t n;
    size_t *trials; /* indices, best in the first objective first */
    long winner;    /* index: the first of them; -1: nothing is feasible */
    hwnas_indicators indicators;
} hwnas_summary_front;

typedef struct hwnas_summary {
    hwnas_job job;      /* objectives, limits, devices and settings only */
    json_t *identity;   /* of the job */
    json_t *devices;    /* what those that run say of themselves, by name */
    json_t *conditions; /* of the machine, when the last session began; NULL: nothing ran */
    json_t *thorough;   /* the front of a quick device; NULL: nothing; study/thorough.h */
    json_t *confirmed;  /* the front's end, measured again; NULL: it was not; study/confirm.h */
    uint64_t n_among;   /* networks that its tables have, which it stayed among; 0: the space */
    json_t *held;       /* choices that were not searched in full (held.h); NULL: none */
    json_t *verified;   /* results against a reference; study/verified.h */
    char *study;        /* file */
    char *ended;        /* why the search is over; NULL: it is not, or died */
    uint64_t n_warm;    /* trials taken over from another study, the first ones */
    uint64_t n_outside; /* of it, left out: they have values that the predictor has not seen */
    size_t n_trials, n_finished, n_failed, n_feasible;
    size_t n_ended_early;  /* of the finished: trainings, as their curves told enough */
    size_t n_estimated;    /* of the finished: not measured, as their estimates told enough */
    size_t n_remeasured;   /* estimated first, and measured then */
    /* Estimated, and left without the measurement that says whether they belong on the front, when
     * the search was ended; of these, so many were trained. */
    size_t n_waiting, n_waiting_trained;
    size_t n_untrained;    /* of the front, for which trainings of the budget were left then */
    bool waits_for_time;   /* a session of the same time measures and trains none of them */
    double estimate_error; /* of these, where the machine was quiet: relative, median; NaN: none */
    size_t n_left_out;     /* of the finished: of a size outside what the predictor learned from */
    size_t n_short;        /* of the finished: evaluated in a cheaper way, so not for the front */
    hwnas_trial *trials;   /* by number, with what was measured again */
    int n_fronts;
    hwnas_summary_front fronts[HWNAS_MAX_DEVICES];
    hwnas_evidence evidence; /* that nothing is feasible, where there is no winner */
    long closest;        /* without any winner: index of the least violation, of the measured trials
                            where there are any; -1: none finished */
    double wall_seconds; /* of all sessions of the search */
    double run_seconds;  /* of these, inside runs of candidates */
    bool is_interrupted; /* set by the caller that knows */
    bool has_other_limits; /* those of the job that it is judged by were given to look at it */
    size_t n_without[HWNAS_MAX_LIMITS]; /* then: networks without the value of such a limit */
    size_t n_left_open; /* then: networks that may meet them, of which a value was not measured */
    char *note;         /* the same; what the user should know, as a sentence; NULL: nothing */
} hwnas_summary;

/* All of it is read as it was at one moment, also while others write. */
HWNAS_CHECKED hwnas_status hwnas_summary_load(hwnas_summary **out, hwnas_store *store,
                                              const char *study);

typedef struct hwnas_summary_view {
    /* The limits, as of a flag --constraints; NULL: the job's. Which of the trials meet them
     * follows from what is known of each. */
    const char *constraints;
    /* Only what is shown is whole: the trials of fronts, the closest, and of those that failed code
     * and message. Others have no code, digest and detail, and of values those that are judged. A
     * study of a million trials fits into memory so. */
    bool is_brief;
} hwnas_summary_view;
HWNAS_CHECKED hwnas_status hwnas_summary_load_as(hwnas_summary **out, hwnas_store *store,
                                                 const char *study, const hwnas_summary_view *view);
/* What is judged of all trials, by number: outlines (store/outline.h). */
HWNAS_CHECKED hwnas_status hwnas_summary_outlines(hwnas_trial **out, size_t *n, hwnas_store *store,
                                                  const hwnas_goals *goals);
void hwnas_summary_free(hwnas_summary *summary);

/* The winner of the first front that has one; -1: none. */
long hwnas_summary_winner(const hwnas_summary *summary);

#endif
