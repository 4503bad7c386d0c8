/* session.h: one session of a study from inside, as its files share it: begin.c takes up what there
 * is, history.c writes what happens and reads it again, session.c does a trial, study.c is the loop
 * over them, ask_tell.c leaves the loop to another program, done.c remembers. */
#ifndef HWNAS_STUDY_SESSION_H
#define HWNAS_STUDY_SESSION_H

#include "study/evidence.h"
#include "study/probe.h"
#include "study/scores.h"
#include "study/setup.h"
#include "study/session_options.h"
#include "study/summary.h"
#include "study/time_left.h"
#include "study/verified.h"
#include "study/waiting.h"

/* Of the front of a warm start, as far as its measurements were not taken over. */
enum { HWNAS_MAX_WARM_STARTS = 16 };
/* Of one from another device: so many tell how latencies differ; then so many in each of so many
 * rounds, which should be on the front (study/warm_order.h). */
enum { HWNAS_WARM_FIRST = 10, HWNAS_WARM_ROUND = 8, HWNAS_WARM_ROUNDS = 3 };
enum {
    HWNAS_ALL_STARTS = HWNAS_MAX_STARTS + HWNAS_MAX_WARM_STARTS + HWNAS_WARM_FIRST +
                       HWNAS_WARM_ROUND * HWNAS_WARM_ROUNDS
};

/* A trial that is open: another program was asked to run it, and did not tell yet; or it waits for
 * its measurement (study/open_trials.c). */
typedef struct hwnas_asked {
    hwnas_trial trial; /* values: those that are free to know */
    hwnas_arch *walked;
    hwnas_begun begun; /* of one that waits for its measurement */
    bool is_again;     /* of an earlier session, ... */
    bool is_given;     /* ... and given in this one */
    double since;
} hwnas_asked;

/* What a session keeps of a finished trial; the store has all of it. */
typedef struct hwnas_done {
    uint64_t number;
    int rung;
    bool is_unstable;
    bool is_partial;              /* on no front */
    bool is_missed, is_disturbed; /* counted so as evidence */
} hwnas_done;

typedef struct hwnas_session {
    const hwnas_job *job;
    const hwnas_session_options *options;
    hwnas_tasks tasks; /* of a trial that it does */
    hwnas_setup setup;
    hwnas_store *store;
    hwnas_front front; /* by values; for progress */
    /* The same of what was measured undisturbed: only these tell of others that they are beaten, as
     * an unstable trial removes none that is stable (judge.h). */
    hwnas_front steady;
    hwnas_done *done; /* finished trials in the order in which they finished */
    size_t n_done, done_room;
    hwnas_scores scores;      /* of these */
    hwnas_evidence evidence;  /* of these */
    hwnas_status last_status; /* of the last of these */
    hwnas_trial duplicate;    /* that was read last, ... */
    hwnas_trial promoted;     /* ... and of those at a rung */
    hwnas_trial winner;       /* that was read last, for progress, and its id; -1: none */
    long winner_id;
    void *by_network;      /* search tree of measured networks; session.c */
    hwnas_waiting waiting; /* ids are indices of `done` */
    json_t *verified;      /* results against a reference; study/verified.h */
    double verify_seconds; /* spent on them in this session */
    size_t next_round;     /* n_done from which on the front is measured */
    double run_seconds;    /* of the measured trials, without trainings, ... */
    size_t n_run;          /* ... of which so many were undisturbed */
    bool is_deadline_near; /* the time left is as much as measuring the front takes */
    uint64_t next;         /* number of the next trial */
    uint64_t n_failed, n_warm;
    uint64_t n_outside; /* of the other study's, left out: beyond the predictor's domain */
    int n_failures_in_a_row;
    bool went_on; /* a part of a trial went well, which others go on with */
    bool leaves_time; /* others say when the time is over */
    bool knows_weights; /* those that judge are the study's (study_facts.h) */
    char *weights_file, *weights; /* as they were when it was opened; NULL: there are none */
    bool told_version; /* that another version of hwnas began the study is noted, if so */
    bool is_target_met;
    bool is_over;    /* no further trial is made; its front may be measured on */
    char *exhausted; /* why the strategy has no more networks; NULL: it has */
    bool is_told;    /* another program runs the networks: study/ask_tell.h */
    bool is_shared;  /* other processes do, too: study/worker.h */
    /* What the strategy proposed to an ask that failed: the next one has it. NULL: nothing. */
    hwnas_arch *proposed;
    int proposed_rung;
    bool runs_again; /* a network that was run is run again for each of its encodings */
    size_t n_asked, asked_room;
    hwnas_asked **asked;
    char phase[64]; /* what is being trained */
    hwnas_time_left left;
    uint64_t n_measured, n_disturbed; /* measurements of this session, for progress */
    const hwnas_trial *tried;         /* is evaluated now; NULL: none is */
    char *in_vain;                    /* why a training at the end failed; NULL: none did */
    int n_starts;                     /* proposals that come before the strategy's */
    hwnas_arch *starts[HWNAS_ALL_STARTS];
    int n_first, n_rounds; /* when so many were proposed, others follow from them; 0: none do */
    double started, earlier_seconds;
    uint64_t session_first; /* trials that earlier sessions finished */
} hwnas_session;

static inline bool hwnas_session_should_stop(const hwnas_session *s)
{
    return s->options->stop && *s->options->stop;
}

/* ---- done.c ---- */

/* Takes a finished trial, which is in the store: tells the strategy and remembers it. */
HWNAS_CHECKED hwnas_status hwnas_session_absorb(hwnas_session *s, const hwnas_trial *trial,
                                                const hwnas_arch *walked);
/* Trial `id` of `done`, which was estimated, is `trial` now, as it was measured: tells the strategy
 * and remembers it. */
HWNAS_CHECKED hwnas_status hwnas_session_renew(hwnas_session *s, size_t id,
                                               const hwnas_trial *trial, const hwnas_arch *walked);
/* Trial `id` of `done` as it is in the store; release with hwnas_trial_done(). */
HWNAS_CHECKED hwnas_status hwnas_session_trial(hwnas_trial *out, const hwnas_session *s, size_t id);
/* The first of the front, for whoever watches; borrowed, until the next call. NULL: there is none,
 * or it cannot be read just now. */
const hwnas_trial *hwnas_session_winner(hwnas_session *s);
/* A trial of this network at a rung, whose run gave, at rung 0, what one more would give. *out is
 * borrowed, until the next one is looked for, at rung 0 or at any other; NULL: there is none. */
HWNAS_CHECKED hwnas_status hwnas_session_duplicate(const hwnas_trial **out, hwnas_session *s,
                                                   const char *digest, hwnas_settings settings,
                                                   int rung);
bool hwnas_session_has_duplicate(const hwnas_session *s, const char *digest,
                                 hwnas_settings settings);
/* While nothing is feasible, the trial that comes closest to it, when its latency was only
 * estimated: what is told of a search that found nothing should be measured. False: there is none
 * such. */
bool hwnas_session_find_closest(size_t *id, const hwnas_session *s);
/* Makes fronts and memory anew of what is done, as some results were found wrong by now. */
HWNAS_CHECKED hwnas_status hwnas_session_drop_wrong(hwnas_session *s);
/* Frees what is remembered of trials. */
void hwnas_session_forget(hwnas_session *s);

/* ---- session.c ---- */

/* A failure that says something about the machine or the set-up, not about one candidate. */
bool hwnas_trial_is_fatal(hwnas_status status);
/* Writes into a trial what an evaluation that began at `started` came to. A failed one has no
 * values. */
void hwnas_trial_settle(hwnas_trial *trial, hwnas_status status, double started);

/* Tells the strategy of a trial that is open and not by its own proposal in this session: what it
 * does when another one is told may follow from that. */
void hwnas_session_note(hwnas_session *s, uint64_t number, const hwnas_arch *walked);
/* The next proposal and the rung that it is for; `exhausted` says if there is none. */
HWNAS_CHECKED hwnas_status hwnas_session_propose(hwnas_session *s, hwnas_arch *walked, int *rung);
/* Evaluates an architecture as the trial, whose number and rung are given: one that `is_new` begins
 * in the store, one that was estimated (`estimate`, else NULL) is measured. The trial's own failure
 * is told in it. */
HWNAS_CHECKED hwnas_status hwnas_session_evaluate(hwnas_session *s, hwnas_trial *trial,
                                                  const hwnas_arch *walked, bool is_new,
                                                  const hwnas_trial *estimate);
/* The same of a trial whose tasks several processes do, from task `n_done` on, with the values and
 * the detail that it has from those before; *next_task: the first one that is left to others, and
 * the trial as it is until then; HWNAS_N_TRIAL_TASKS: it is whole. */
HWNAS_CHECKED hwnas_status hwnas_session_evaluate_tasks(int *next_task, hwnas_session *s,
                                                        hwnas_trial *trial,
                                                        const hwnas_arch *walked, int n_done);
/* The two halves of that, of a trial that is no longer than needed in the way of others
 * (study/open_trials.c): up to a measurement, which is asked for (*is_open), and from there. */
HWNAS_CHECKED hwnas_status hwnas_session_evaluate_begin(bool *is_open, hwnas_session *s,
                                                        hwnas_asked *asked);
HWNAS_CHECKED hwnas_status hwnas_session_evaluate_end(hwnas_session *s, hwnas_trial *trial,
                                                      hwnas_asked *asked);
/* Where there is room on the way to the runners, sends trial `id` of `done`, which was estimated
 * and will be measured. Only where measurements may be put off (waiting.h). */
HWNAS_CHECKED hwnas_status hwnas_session_send_estimated(hwnas_session *s, size_t id);
/* Evaluates an architecture as trial `number` and stores what came of it; one that `is_new` is not
 * in the store yet. */
HWNAS_CHECKED hwnas_status hwnas_session_try(hwnas_session *s, uint64_t number,
                                             const hwnas_arch *walked, int rung, bool is_new);
/* Measures trial `id` of `done`, which was estimated, and writes it anew; or, where that was
 * disturbed, puts it off. */
HWNAS_CHECKED hwnas_status hwnas_session_remeasure(hwnas_session *s, size_t id);
/* Puts a study that replaces another into its place, if it is not there yet. */
HWNAS_CHECKED hwnas_status hwnas_session_publish(hwnas_session *s);
/* Trains trial `id` of `done`, whose accuracy was predicted, and writes it anew; *is_trained: there
 * was a training left. */
HWNAS_CHECKED hwnas_status hwnas_session_train(hwnas_session *s, bool *is_trained, size_t id);
/* Remembers a trial that is open, with its proposal; and frees one. */
void hwnas_session_add_open(hwnas_session *s, uint64_t number, int rung, const hwnas_arch *walked);
void hwnas_asked_free(hwnas_asked *asked);

/* ---- progress.c ---- */

/* `phase`: what is being done; "": the next trial. */
void hwnas_session_report(hwnas_session *s, const char *phase);
/* For hwnas_evaluator_watch_runs(): a network is about to be measured. */
void hwnas_session_tell_run(void *session);

/* What a chart needs of the trials, by number, and which of them are on the front; released with
 * hwnas_trials_free() and free(). */
HWNAS_CHECKED hwnas_status hwnas_session_outlines(hwnas_trial **out, bool **is_on_front, size_t *n,
                                                  const hwnas_session *s);

/* ---- open_trials.c ---- */

/* So many trials are open at a time. */
size_t hwnas_session_most_open(const hwnas_session *s);
/* Begins a trial; one that nothing has to be measured for is finished. One that is not new was
 * running when its process ended. */
HWNAS_CHECKED hwnas_status hwnas_session_open_trial(hwnas_session *s, uint64_t number,
                                                    const hwnas_arch *walked, int rung,
                                                    bool is_new);
bool hwnas_session_is_open(const hwnas_session *s, uint64_t number);
/* Ends the trial that was opened first. */
HWNAS_CHECKED hwnas_status hwnas_session_end_trial(hwnas_session *s);

/* ---- history.c ---- */

/* Writes that a trial is begun: number, rung, code and digest are given. */
HWNAS_CHECKED hwnas_status hwnas_session_start(hwnas_session *s, const hwnas_trial *trial);
/* Writes that a trial is begun beside others that are open. */
HWNAS_CHECKED hwnas_status hwnas_session_start_asked(hwnas_session *s, const hwnas_trial *trial);
/* Writes what happened to a trial, and with it, in one transaction, what the next decisions depend
 * on beside what the strategy was told. */
HWNAS_CHECKED hwnas_status hwnas_session_write(hwnas_session *s, hwnas_trial *trial,
                                               hwnas_event_kind kind);
/* Writes in one transaction that a trial was begun and finished: one that is taken over is never
 * running, as it would be measured after a death. */
HWNAS_CHECKED hwnas_status hwnas_session_write_whole(hwnas_session *s, hwnas_trial *trial);
/* Goes through the history of the study as it was, so that all is as at its end; then runs again
 * what was running, or has it ready to be asked again. */
HWNAS_CHECKED hwnas_status hwnas_session_replay(hwnas_session *s);

/* ---- begin.c ---- */

/* To be closed even where opening failed. `job` and `options` are borrowed. */
void hwnas_session_init(hwnas_session *s, const hwnas_job *job,
                        const hwnas_session_options *options);
/* Opens what the job names, and the study's file as the options say. */
HWNAS_CHECKED hwnas_status hwnas_session_open(hwnas_session *s, const hwnas_training_watch *watch);
/* Writes down what the study is, or checks that it is the same one and tells the strategy what the
 * store remembers; then takes over the trials of a warm start. */
HWNAS_CHECKED hwnas_status hwnas_session_begin(hwnas_session *s);
/* A new study that came to nothing leaves no file: without a trial, or with none but those that
 * failed because the job is wrong. */
void hwnas_session_discard(hwnas_session *s, hwnas_status why);
/* The study so far, which ends the session but for its store and setup: not both of a large study
 * are in memory. */
HWNAS_CHECKED hwnas_status hwnas_session_summarize(hwnas_summary **out, hwnas_session *s);
void hwnas_session_close(hwnas_session *s);

#endif
