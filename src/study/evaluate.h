/* evaluate.h: one architecture -> the values that a trial is judged by. */
#ifndef HWNAS_STUDY_EVALUATE_H
#define HWNAS_STUDY_EVALUATE_H

#include <jansson.h>
#include <signal.h>

#include "device/device.h"
#include "measure/verify.h"
#include "profile/slow.h"
#include "predict/predict.h"
#include "search/pareto.h"
#include "space/arch.h"
#include "store/store.h"
#include "study/job.h"
#include "study/tasks.h"
#include "study/settings.h"

typedef struct hwnas_evaluator hwnas_evaluator;

/* Loads the predictor and opens the devices, so that what the job asks of them is known to be
 * given; no network is run yet. Job and space (without settings) are borrowed. `stop` is set by a
 * signal handler. Of a trial it does `tasks`, and leaves the other devices alone; with none only
 * hwnas_evaluate_free() works. Who watches trainings is told of them (NULL: nobody). */
HWNAS_CHECKED hwnas_status hwnas_evaluator_open(hwnas_evaluator **out, const hwnas_job *job,
                                                const hwnas_space *space, hwnas_tasks tasks,
                                                const volatile sig_atomic_t *stop,
                                                const hwnas_training_watch *watch);
void hwnas_evaluator_close(hwnas_evaluator *evaluator); /* accepts NULL */

/* Calls `tell` before each measurement. */
void hwnas_evaluator_watch_runs(hwnas_evaluator *evaluator, void (*tell)(void *context),
                                void *context);

/* The next measurement is made by a new process: two runs of one network in it lie apart as those
 * of two programs do. */
void hwnas_evaluator_renew_runner(hwnas_evaluator *evaluator);

/* How many networks may be open at a time so that no runner waits for its next; 1: each is measured
 * when it is made. */
int hwnas_evaluator_room(const hwnas_evaluator *evaluator);

/* No network is on its way to a runner that somebody waits for. */
void hwnas_evaluator_forget_ahead(hwnas_evaluator *evaluator);

/* What is learnt of latencies goes into the study as well, as long as it is open; NULL: it is
 * closed. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_use_study(hwnas_evaluator *evaluator,
                                                     hwnas_store *study);
/* Writes into the study what was learnt of latencies since the last call: with the trial that it
 * was learnt from, so that a search which dies between the two knows neither. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_keep(hwnas_evaluator *evaluator);
/* What its next decisions depend on beside the tables: an object, yours to json_decref(), and going
 * on from one. */
json_t *hwnas_evaluator_state(const hwnas_evaluator *evaluator);
void hwnas_evaluator_set_state(hwnas_evaluator *evaluator, const json_t *state);
/* What the user should know of the table of latencies, as a sentence; NULL: nothing. Borrowed. */
const char *hwnas_evaluator_note(const hwnas_evaluator *evaluator);

/* What a device of the job says of itself; borrowed; NULL: it runs nothing here. */
const hwnas_device_info *hwnas_evaluator_device(const hwnas_evaluator *evaluator, int device);
/* The spelling of a device of the job that is quick, without that (hwnas/device.h); borrowed; NULL:
 * it is none. */
const char *hwnas_evaluator_thorough(const hwnas_evaluator *evaluator, int device);
/* From now on a quick device runs networks without being so, or is quick again; others stay as they
 * are. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_set_thorough(hwnas_evaluator *evaluator, int device,
                                                        bool is_thorough);
/* Some device of the job runs networks here. */
bool hwnas_evaluator_measures(const hwnas_evaluator *evaluator);
/* The tasks that the job's trials have, whoever does them. */
hwnas_tasks hwnas_evaluator_tasks(const hwnas_evaluator *evaluator);

/* To be called before a network is evaluated: with a budget of trainings its first half is spent
 * here, on networks that meet the limits that are free to know. Where the job does not train, what
 * was trained before says the accuracy. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_train_first(hwnas_evaluator *evaluator);
/* What its predictor trains; false: nothing. */
bool hwnas_evaluator_trainings(hwnas_trainings *out, const hwnas_evaluator *evaluator);
/* hwnas_predictor_weights() of its predictor. */
bool hwnas_evaluator_weights(char **file, char **hash, const hwnas_evaluator *evaluator);
/* Whether a predictor with a budget may train what it is asked for. */
void hwnas_evaluator_may_train(hwnas_evaluator *evaluator, bool may_train);
/* Trains a network, if there is a training left in the budget, and puts its accuracy at the end of
 * a trial's values. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_train(hwnas_trial *out, hwnas_evaluator *evaluator,
                                                 const hwnas_arch *arch);

/* For one that does no task of a trial: takes the tables of latencies that a study has, for its
 * devices as they say what they are (study_facts.h); what is not there stays unknown. The study
 * must stay open as long. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_recall(hwnas_evaluator *evaluator, hwnas_store *study,
                                                  const json_t *devices);

/* How far an evaluation goes. */
typedef enum hwnas_stage {
    HWNAS_STAGE_WHOLE,
    HWNAS_STAGE_BEGIN, /* up to the first measurement, which is only asked for */
    HWNAS_STAGE_END,   /* from there, of a trial that was begun */
} hwnas_stage;

/* How the first measurement of a trial that is begun is to be made, by what was known then. */
typedef struct hwnas_begun {
    double give_up;
    int max_attempts;
} hwnas_begun;

/* An architecture as it is to be evaluated. */
typedef struct hwnas_candidate {
    const hwnas_arch *arch; /* of the space without settings */
    hwnas_settings settings;
    const hwnas_graph *graph; /* of the settings' batch */
    /* A finished trial of the same network and settings, whose measurements are taken over where it
     * has them; NULL: none. */
    const hwnas_trial *duplicate;
    const char *duplicate_study; /* that it is of; NULL: this one */
    const hwnas_trial *promoted; /* a finished trial of the same at the next cheaper rung; NULL:
                                    there is none */
    const hwnas_front *front;    /* measured undisturbed so far; NULL: not known */
    const hwnas_trial *estimate; /* what it was estimated as, to be measured now, in one attempt;
                                    NULL: it is new */
    bool may_wait; /* an estimate will do for now: who asks comes back (study/waiting.h) */
    int rung;      /* 0: measured and trained as the job says; above: shortly */
    hwnas_stage stage;
    hwnas_begun *begun; /* of the stages BEGIN, which sets it, and END */
    bool *is_open;      /* of BEGIN: set where a measurement is needed, and the trial to be ended */
    bool is_again;      /* of BEGIN: it is known to be needed, by an earlier session */
    bool is_twin;       /* of BEGIN: another trial that is open will measure the network */
    /* Of the kind that a trial keeps as HWNAS_MIX_DETAIL in its detail: for each device by name
     * which layers have which precision. What is not there yet is chosen and added; NULL: and
     * forgotten. */
    json_t *mixes;
    double deadline; /* of that choice and of attempts to measure, by hwnas_now(): when the search
                        ends; 0: it does not */
    bool is_lookup_only; /* what is not known is not measured: HWNAS_E_NOT_FOUND */
    /* Where tasks are shared by several processes: those below `n_done` are done, and the trial has
     * their values and its detail. The trial is left as it is then at a task that is not ours. */
    int n_done;
    int *next_task; /* set to that one; stays as it is: the trial is whole. NULL: all are ours */
    bool is_one_task; /* with such tasks: after one that was done the next is left as well */
} hwnas_candidate;

#define HWNAS_MIX_DETAIL "mix"
/* What a trial says of it, an object to be json_decref()'d. */
json_t *hwnas_mixes_of(const hwnas_trial *trial);

/* What tells a candidate's network from others, those of the phases that the job judges by
 * included: networks of one digest are measured once. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_digest(char out[33], const hwnas_evaluator *evaluator,
                                                  const hwnas_candidate *candidate);

/* Puts what the tables of latencies say of a candidate on a device at the end of a trial's values;
 * *is_known: something, whose estimates were off by *error, relative, in the median. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_recall(bool *is_known, double *error, hwnas_trial *trial,
                                                 hwnas_evaluator *evaluator,
                                                 const hwnas_candidate *c, int device);

/* Fills in values, violation and detail of a trial. A trial that misses a limit by what costs
 * nothing to know, or by a device that came before, is not measured further. A failure is the
 * trial's own, except HWNAS_E_INTERRUPTED. */
HWNAS_CHECKED hwnas_status hwnas_evaluate(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                          const hwnas_candidate *candidate);

/* Where a candidate can be sent ahead to the device that will measure it in at most `seconds`, it
 * is. `trial` is what is known of it. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_send(const hwnas_trial *trial, hwnas_evaluator *evaluator,
                                               const hwnas_candidate *candidate, int device,
                                               double seconds);
/* The values that need neither a run nor a predictor: recalled and computed. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_costs(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                                const hwnas_candidate *candidate);

/* The values that need no run: recalled, computed and predicted. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_free(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                               const hwnas_candidate *candidate);

/* ---- Devices that another program runs (study/evaluate_told.c) ---- */

/* Before anything is opened: HWNAS_E_INPUT for a job with such a device, which only who asks and
 * tells can do. */
HWNAS_CHECKED hwnas_status hwnas_job_check_own(const hwnas_job *job);
/* The same for a job of who asks and tells: a device is run here, or nothing is left to be told. */
HWNAS_CHECKED hwnas_status hwnas_job_check_told(const hwnas_job *job);
/* The job judges by values that the trial lacks, and that are to be told. */
bool hwnas_evaluate_awaits(const hwnas_evaluator *evaluator, const hwnas_trial *trial);
/* Adds what is told to the values that were free, and judges the trial. HWNAS_E_INPUT: something is
 * told that is no value of the job's devices, or is lacking; the trial is untouched. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_tell(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                               hwnas_settings settings,
                                               const hwnas_metric_value *values, size_t n);

/* One measurement on a device that runs, of at most `seconds`, and the values that it gives, which
 * are put at the end of the trial's; one that is marked marks the trial. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_on(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                             const hwnas_candidate *candidate, int device,
                                             double seconds);

/* Networks that are measured in turns need one runner: the same threads and precision on it. */
bool hwnas_evaluate_can_race(const hwnas_evaluator *evaluator, const hwnas_candidate *candidates,
                             int n, int device);
/* `n` networks in turns on a device that runs, of at most `seconds` for each (measure/race.h): a
 * row of `turns` for each block in which nobody was disturbed, turns[block * n + network], with the
 * values that a median gives at the end of theirs. `turns` is yours, with hwnas_trials_free() of
 * *n_blocks * n; no blocks where the machine let none be whole. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_race(hwnas_trial **turns, int *n_blocks,
                                               hwnas_evaluator *evaluator,
                                               const hwnas_candidate *candidates, int n, int device,
                                               double seconds);

/* Why results of a device of the job cannot be verified, as half a sentence; NULL: they can. */
const char *hwnas_evaluator_unverifiable(const hwnas_evaluator *evaluator, int device);
/* Runs the network once on a device of the job and compares what it gives with a reference
 * (measure/verify.h); `ref` may take so many seconds. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_verify(hwnas_verified *out, hwnas_evaluator *evaluator,
                                                 const hwnas_candidate *candidate, int device,
                                                 double ref_seconds);
/* How much of its time is slow code there (profile/slow.h); texts are in the arena. */
HWNAS_CHECKED hwnas_status hwnas_evaluate_slow_code(hwnas_slow_code *out, hwnas_arena *arena,
                                                    hwnas_evaluator *evaluator,
                                                    const hwnas_candidate *candidate, int device);
/* What the candidate is computed in on a device of the job. */
hwnas_precision hwnas_evaluate_precision(const hwnas_evaluator *evaluator,
                                         const hwnas_candidate *candidate, int device);

#endif
