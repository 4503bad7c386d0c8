/* explain.h: why a study came to a network: what stands one change away, and what a limit costs. */
#ifndef HWNAS_STUDY_EXPLAIN_H
#define HWNAS_STUDY_EXPLAIN_H

#include <signal.h>

#include "study/settings.h"
#include "study/summary.h"
#include "trial/metric.h"

enum { HWNAS_EXPLAINED = HWNAS_MAX_OBJECTIVES + HWNAS_MAX_LIMITS }; /* goals at most */

/* What a difference between a network and its neighbour stands on. */
typedef enum hwnas_basis {
    HWNAS_BY_NOTHING, /* it is not known */
    HWNAS_BY_VALUES,  /* both have a value: looked up, computed, predicted, measured */
    HWNAS_BY_TURNS,   /* they were measured in turns, just now */
    HWNAS_BY_PARTS,   /* both are estimated from the parts that the study timed */
    HWNAS_BY_CHOICES, /* both are estimated from their choices */
} hwnas_basis;

/* Of one goal, the neighbour less the network. */
typedef struct hwnas_neighbour_difference {
    hwnas_basis basis;
    /* SI; NaN for low and high: no interval. By turns at 95 %. All NaN: one of the two was measured
     * and the other is an estimate, whose error would be taken for the change. */
    hwnas_reading reading;
    double own;   /* by turns: what the network itself took in them, median, SI */
    int n_rounds; /* by turns: how many stand behind it */
} hwnas_neighbour_difference;

/* A network that differs in one choice. */
typedef struct hwnas_neighbour {
    char *change; /* "k[3]: 5 -> 3"; owned */
    char *code;   /* owned */
    size_t gene;
    /* Its values: of the study's trial of the same network, where it has one that is more than an
     * estimate; else looked up, computed, predicted by the job's predictor, or "estimated" from the
     * study's measurements: from the parts that it timed, where its table of latencies is relied
     * on, else from the choices. What was measured in turns stands in the place of these. Estimates
     * and turns stand at the level of the network's own value (hwnas_explained_own()). Owned. */
    hwnas_trial values;
    hwnas_neighbour_difference differences[HWNAS_EXPLAINED]; /* by goal */
    char digest[33];
    hwnas_settings settings;
    /* It could not be measured, as was asked; of several devices each says "on NAME: why", parted
     * by semicolons. Owned. NULL: it could, or nobody asked. */
    char *why_not;
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

/* A change that leads to no network. */
typedef struct hwnas_unbuilt {
    char *change, *code, *why; /* owned */
} hwnas_unbuilt;

typedef struct hwnas_explanation {
    const hwnas_summary *summary; /* borrowed */
    long trial;                   /* index */
    int front;                    /* of the summary: the first that it is on, or the first of all */
    bool is_on_front;
    /* Not on the front, but feasible: a trial of the front that dominates it; -1. */
    long dominated_by;
    int n_goals;  /* objectives, then what only limits ask for */
    hwnas_goal goals[HWNAS_EXPLAINED];
    /* By goal, where the network's own value was never measured: the median of all the turns that
     * it took now. NULL for the metric: it was, or there were none. */
    hwnas_value_row now[HWNAS_EXPLAINED];
    double errors[HWNAS_EXPLAINED]; /* median relative error of a goal's estimates; NaN: none */
    double part_errors[HWNAS_EXPLAINED]; /* the same of those made of timed parts */
    size_t n_measured; /* networks that the estimates are made of */
    size_t n_neighbours, neighbour_room;
    hwnas_neighbour *neighbours; /* by gene */
    size_t n_relaxations, relaxation_room;
    hwnas_relaxation *relaxations; /* by limit, the smallest step first */
    size_t n_unbuilt, unbuilt_room;
    hwnas_unbuilt *unbuilt; /* by gene */
    bool is_measured;       /* measuring was asked for */
    /* Neighbours whose turns with the network gave a value, on all devices. */
    size_t n_turns;
    char *unmeasured;       /* what is measured on no device here, and why, a sentence; owned */
    /* What ended measuring before all were measured; HWNAS_OK: nothing. What is there stays. */
    hwnas_status stopped;
    char *why_stopped; /* owned */
} hwnas_explanation;

/* How neighbours are measured. */
typedef struct hwnas_explain_measuring {
    const volatile sig_atomic_t *stop;                  /* (optional) */
    void (*progress)(void *context, const char *words); /* (optional) */
    void *context;
} hwnas_explain_measuring;

/* `measuring` NULL: nothing is run. Else each neighbour takes turns with the network on each of the
 * study's devices that run networks here, with the study's settings; its result is verified before
 * where the study verifies. HWNAS_E_INPUT: a device is another one than the study was made on, or
 * the study does not keep its job; other failures: a device cannot be opened. The study is not
 * changed, nor is any table of latencies.
 * `number` < 0: the winner; `store`: what the summary was loaded from. A study whose space,
 * predictor or table has gone away is HWNAS_E_INPUT or HWNAS_E_NOT_FOUND. */
HWNAS_CHECKED hwnas_status hwnas_explain(hwnas_explanation *out, const hwnas_summary *summary,
                                         hwnas_store *store, long number,
                                         const hwnas_explain_measuring *measuring);
void hwnas_explanation_done(hwnas_explanation *explanation);

/* The value of a goal that neighbours are compared with: what the explained network took in turns
 * just now, where its trial has no measured one, else the trial's; NULL: none. */
const hwnas_value_row *hwnas_explained_own(const hwnas_explanation *explanation, int goal);

#endif
