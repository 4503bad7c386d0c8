/* evaluator.h: an evaluator (study/evaluate.h) from inside: what its files share. */
#ifndef HWNAS_STUDY_EVALUATOR_H
#define HWNAS_STUDY_EVALUATOR_H

#include "measure/boards.h"
#include "measure/race.h"
#include "predict/predict.h"
#include "study/evaluate.h"
#include "study/job_data.h"
#include "study/phases.h"
#include "study/tasks.h"
#include "latency/latencies.h"

/* A device of the job. */
typedef struct hwnas_site {
    const hwnas_job_device *row;
    const hwnas_job_phase *phase; /* NULL: networks are as the space's settings say */
    int host;                     /* the site whose boards it uses: the first of the same device */
    hwnas_device *memory;         /* a device that remembers; NULL: it runs, or ... */
    bool is_told;                 /* ... another program runs it, and tells what it measured */
    hwnas_device_info info;       /* of one that runs */
    char *thorough;               /* spelling of a quick one without that; NULL: it is none */
    size_t n_recalled; /* of one that remembers: what it has of the space, borrowed from it */
    const hwnas_arch *const *recalled;
    bool is_thorough;             /* and it runs like that just now */
    bool can_race;                /* and its runner lets networks take turns */
    /* Open while the device has its turn; longer where that takes nothing from the next. */
    hwnas_boards boards;
    int room; /* of networks that are on the way to them at a time; 1: each when its turn comes */
} hwnas_site;

struct hwnas_evaluator {
    const hwnas_job *job;
    hwnas_job_phases phases;
    hwnas_job_data data;        /* that chooses the precision of layers */
    hwnas_predictor *predictor; /* NULL: no accuracy */
    bool may_train;             /* of a predictor with a budget */
    hwnas_tasks tasks;          /* of a trial that this process makes */
    int n;
    hwnas_site sites[HWNAS_MAX_DEVICES];
    /* One runner at a time on this machine; others of one thread may wait for their turn. */
    hwnas_runner *runner; /* of the boards of a site; NULL: none */
    int runner_site;
    hwnas_measure_options options;
    int n_in_vain;                   /* measurements on end that stayed unstable */
    hwnas_latencies *latencies;      /* NULL: nothing is estimated */
    void (*tell_run)(void *context); /* NULL: nobody wants to know */
    void *run_context;
    size_t n_run, n_audited; /* measurements; of these of networks that an estimate would spare */
};

/* Networks are run there, by us or by another worker. */
static inline bool runs_at(const hwnas_site *s)
{
    return !s->memory && !s->is_told;
}

/* By us. */
static inline bool is_ours(const hwnas_evaluator *e, int device)
{
    return runs_at(&e->sites[device]) && hwnas_tasks_have(e->tasks, device);
}

/* What a device runs with: its own setting, else the candidate's. */
static inline int threads_at(const hwnas_site *s, int threads)
{
    return s->row->threads ? s->row->threads : threads;
}

static inline int batch_at(const hwnas_site *s, int batch)
{
    return s->row->batch ? s->row->batch : batch;
}

static inline hwnas_precision precision_at(const hwnas_site *s, int dtype)
{
    return hwnas_dtype_precision(s->row->dtype ? s->row->dtype : dtype);
}

/* HWNAS_UNMIXED: that is the precision of all layers. */
static inline hwnas_mixing mixing_at(const hwnas_site *s, int dtype)
{
    return hwnas_dtype_mixing(s->row->dtype ? s->row->dtype : dtype);
}

static inline hwnas_boards *boards_at(hwnas_evaluator *e, int device)
{
    return &e->sites[e->sites[device].host].boards;
}

/* Makes the evaluator's runner one of the device with so many threads: the first of its boards. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_use_runner(hwnas_evaluator *e, int device, int threads);
/* Another device of this machine has its turn, a program, or this process: runners here leave it
 * the cores. None is in use afterwards. */
void hwnas_evaluator_put_away(hwnas_evaluator *e);

/* The fewest samples that say a metric's quantile with its interval; 0: any do. */
int hwnas_evaluate_samples_for(const hwnas_metric *metric);

/* ---- limit_scale.c ---- */

/* Notes what a limit on the accuracy excludes, where that is nothing or all. */
void hwnas_evaluator_tell_of_limits(const hwnas_evaluator *e);

/* ---- evaluate.c ---- */

/* Of what a goal judges by, and a whole trial does not have: too few samples were taken. In words,
 * yours to free(); NULL: it has all. */
char *hwnas_evaluate_shortage(const hwnas_evaluator *e, const hwnas_trial *trial);

/* ---- evaluate_mix.c ---- */

/* The graph of a candidate whose layers have a precision each, with the one of what is not in
 * bytes: as the candidate's mixes have it, else chosen, and put there. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_mix(hwnas_graph **out, hwnas_precision *floats,
                                              hwnas_evaluator *e, const hwnas_candidate *c,
                                              int device);
/* What a candidate is computed in on a device, but for what the graph has in bytes. */
hwnas_precision hwnas_evaluate_floats(const hwnas_evaluator *e, const hwnas_candidate *c,
                                      int device);
/* That the job's devices, accuracy and samples go with it, where layers have a precision each. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_check_mixed(const hwnas_evaluator *e,
                                                       const hwnas_space *space);

/* ---- evaluate_values.c ---- */

/* By how much a network misses limits that are free to know, of the graph and of devices that
 * remember, with the setting that suits it best. */
double hwnas_evaluate_free_violation(void *evaluator, const hwnas_arch *arch);

/* A score of the predictor takes so long that latencies come first, estimated or measured: a
 * network that misses a limit needs none. */
bool hwnas_evaluate_is_accuracy_dear(const hwnas_evaluator *e);
/* Adds the accuracy, unless it would have to be trained and the trial misses a limit already. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_accuracy(hwnas_trial *trial, hwnas_evaluator *e,
                                                   const hwnas_candidate *c);

/* Puts a reading of a metric at the end of the trial's values, and what follows from it; where the
 * trial has a value already, that stays. */
void hwnas_evaluate_add_given(hwnas_trial *trial, const hwnas_evaluator *e, int device, int batch,
                              hwnas_source source, const hwnas_metric *metric,
                              hwnas_reading reading);
void hwnas_evaluate_add_measurement(hwnas_trial *trial, const hwnas_evaluator *e, int device,
                                    int batch, const hwnas_measurement *measurement);

/* ---- evaluate_latency.c ---- */

/* How a candidate is measured on a device in at most `seconds`. */
hwnas_measure_options hwnas_evaluate_options(const hwnas_evaluator *e, const hwnas_candidate *c,
                                             int device, double seconds);
/* The graph as a device gets it, of its own batch where it has one, and the precision that it is to
 * be computed in; `own` is to be freed. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_graph(const hwnas_graph **out, hwnas_graph **own,
                                                hwnas_precision *precision, hwnas_evaluator *e,
                                                const hwnas_candidate *c, int device);
/* What the table of latencies says of a candidate; *is_known: something that is relied on. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_estimate(hwnas_latency_estimate *out, bool *is_known,
                                                   hwnas_evaluator *e, const hwnas_candidate *c,
                                                   int device);
/* Puts estimates in the place of a measurement that would be for nothing; *is_skipped: they are. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_skip(bool *is_skipped, hwnas_trial *trial,
                                               hwnas_evaluator *e, const hwnas_candidate *c,
                                               int device, json_t *detail);
/* How a candidate is to be measured by what is known now. */
void hwnas_evaluate_note_begun(hwnas_begun *out, const hwnas_trial *trial, const hwnas_evaluator *e,
                               const hwnas_candidate *c, int device);
/* Measures a candidate on a device that runs. `trial` (NULL: it does not matter) is what is known
 * of it so far: where that is enough to tell that it is beaten, measuring stops early. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_run(hwnas_measurement *out, const hwnas_trial *trial,
                                              hwnas_evaluator *e, const hwnas_candidate *c,
                                              int device, double seconds);

#endif
