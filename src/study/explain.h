/* explain.h: why a study came to a network: what stands one change away, and what a limit costs. */
#ifndef HWNAS_STUDY_EXPLAIN_H
#define HWNAS_STUDY_EXPLAIN_H

#include "study/summary.h"

/* A network that differs in one choice. */
typedef struct hwnas_neighbour {
    char *change; /* "k[3]: 5 -> 3"; owned */
    char *code;   /* owned */
    size_t gene;
    /* Its values: of the study's trial of the same network, where it has one; else looked up,
     * computed, predicted by the job's predictor, or "estimated" from the study's measurements:
     * from the parts that it timed, where its table of latencies is relied on, else from the
     * choices. Owned. */
    hwnas_trial values;
    long trial;       /* that trial's index; -1: the study has none */
    double violation; /* of the limits that can be judged */
} hwnas_neighbour;

/* A limit's next looser value that lets a more accurate (or whatever is the first objective)
 * network in. */
typedef struct hwnas_relaxation {
    int limit;      /* of the job */
    double value;   /* SI: what it would have to be */
    double gain;    /* of the first objective, SI, above 0 */
    long trial;     /* index of the trial that would win ... */
    long neighbour; /* ... or of a neighbour, of which the study has no trial; -1 */
} hwnas_relaxation;

typedef struct hwnas_explanation {
    const hwnas_summary *summary; /* borrowed */
    long trial;                   /* index */
    int front;                    /* of the summary: the first that it is on, or the first of all */
    bool is_on_front;
    long dominated_by; /* not on the front, but feasible: a trial of the front that dominates it; -1
                   */
    int n_goals;  /* objectives, then what only limits ask for */
    hwnas_goal goals[HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS];
    double errors[HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS]; /* median relative error of estimates of
                                                               a goal; NaN: none was made */
    double part_errors[HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS]; /* the same of those made of timed
                                                                    parts */
    size_t n_measured; /* networks that the estimates are made of */
    size_t n_neighbours, neighbour_room;
    hwnas_neighbour *neighbours; /* by gene */
    size_t n_relaxations, relaxation_room;
    hwnas_relaxation *relaxations; /* by limit, the smallest step first */
} hwnas_explanation;

/* `number` < 0: the winner; `store`: what the summary was loaded from. A study whose space,
 * predictor or table has gone away is HWNAS_E_INPUT or HWNAS_E_NOT_FOUND. */
HWNAS_CHECKED hwnas_status hwnas_explain(hwnas_explanation *out, const hwnas_summary *summary,
                                         hwnas_store *store, long number);
void hwnas_explanation_done(hwnas_explanation *explanation);

#endif
