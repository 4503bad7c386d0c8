/* study.h: a study by ask and tell: for programs that run the networks themselves, on boards, in a
 * farm, in a simulator.
 *
 * The program asks for a network, runs it where it likes, and tells what it measured; hwnas has the
 * rest of a search: the strategy, the values that need no run, the limits, the front, and a study
 * that outlives the program. The job is that of a search, with `device: external`. */
#ifndef HWNAS_PUBLIC_STUDY_H
#define HWNAS_PUBLIC_STUDY_H

#include <hwnas/network.h>
#include <hwnas/search.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hwnas_study hwnas_study;

typedef struct hwnas_study_options {
    size_t size;
    const char *study;  /* SQLite file; NULL: the job's */
    bool resume;        /* go on with the study if it is there; without it that is HWNAS_E_INPUT */
    int64_t max_trials; /* 0: the job's */
    /* Several encodings may build one network. Without this its values hold for all of them, once
     * they are told, and no program is asked for it again; with it each encoding is run. Not kept
     * with the study: say the same in each session. */
    bool runs_again;
    /* (optional) Becomes nonzero, in a signal handler or another thread: an ask ends soon with
     * HWNAS_E_INTERRUPTED. Borrowed as long as the study is open. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Values of the job's keys, up to one without a name. A mistake in one has the place
     * "--NAME". */
    const hwnas_job_flag *flags;
} hwnas_study_options;
#define HWNAS_STUDY_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(hwnas_study_options), NULL, false, 0, false, NULL, NULL                             \
    }

/* Begins or continues the study of a job (a YAML file; NULL: flags say it all), whose devices must
 * all be `external` or remember (`replay`); the files of its `export` are not written. One process
 * at a time: HWNAS_E_IO names the one that has it; to read it meanwhile is fine. What was asked and
 * not told when a process ended is asked again. Reads the space and the predictor: milliseconds to
 * a second; going on takes as long as telling the strategy all trials again. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_open(hwnas_study **out, const char *job,
                                                      const hwnas_study_options *options);
/* Opens any study, a search's too, to look at it, also while it is worked on. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_read(hwnas_study **out, const char *path);
/* Whether a process works on the study at this moment. To be asked while this one does not have it
 * open to be read. Cheap for a file; of a study in a database its server is asked, and one that is
 * away says no. */
HWNAS_API bool hwnas_study_is_running(const char *path);
/* What was asked and not told is asked again when the study is opened again. A new study of which
 * nothing was asked leaves no file. */
HWNAS_API void hwnas_study_close(hwnas_study *study);

/* Which layers of a network are in 8-bit integers on one device, where each has a precision of its
 * own (docs/searching.md, "A precision for each layer"). Fields may follow, as in
 * hwnas_study_trial. */
typedef struct hwnas_study_mix {
    const char *device;     /* as the job names it; of a phase its name, or "decode.NAME" */
    hwnas_precision floats; /* of the other layers: HWNAS_F32 or HWNAS_BF16 */
    size_t n_layers, n_s8;  /* that could be in 8-bit integers; that are */
    /* A letter for each of n_layers, in the network's order: 's', 'b' in bf16 by itself, or 'f'. */
    const char *layers;
    /* Of outputs beside f32, and its limit, infinite: accuracy alone judged; shares. On so many
     * samples of the job's data; 0: on random inputs. */
    double error, max_error;
    int64_t n_samples;
    /* With labels what accuracy is, "top1" or "r2", and it and that of f32 on samples held out, in
     * percent, and how many points below f32 it might be on those that chose. Else NULL, NaN. */
    const char *accuracy_metric;
    double accuracy, f32_accuracy, max_loss;
} hwnas_study_mix;

/* A network of a study. Fields may follow in later versions, so a front that hwnas_study_front()
 * gives is for programs that are built with the headers of the library that they run with. */
typedef struct hwnas_study_trial {
    uint64_t number;
    const char *code;   /* of the network, as hwnas_network_open_in() takes it */
    const char *digest; /* as hwnas_network_digest() says it */
    /* How it is to be run: the job's, or what the search chose where the job leaves it open. */
    int batch, threads;
    hwnas_precision precision; /* with `mixing`: of floats, unless `mixes` says otherwise */
    bool is_again; /* asked: by an earlier process, which did not tell it */
    /* Asked: what is known without a run, as "params", "macs", "accuracy"; of a front: all. */
    size_t n_values;
    const hwnas_metric_value *values;
    /* HWNAS_UNMIXED: all layers have that precision, but on devices that `mixes` has, whose own
     * dtype may be another than the job's. */
    hwnas_mixing mixing;
    size_t n_mixes; /* of a front: for each device that measured the network so; else 0 */
    const hwnas_study_mix *mixes;
} hwnas_study_trial;

/* Asks for a network to run; borrowed until it is told or the study is closed. One that misses a
 * limit by what is known without a run is a trial of the study, but nobody is asked to run it.
 *
 * Any number may be open at a time, and told in any order. The strategy then knows which they are,
 * and nothing of how good they are: none is proposed twice, and `bayesian` counts on less to be
 * learnt near them. With one at a time it proposes what a search would.
 *
 * HWNAS_E_EXHAUSTED: no other trial is to be made, and the message says why, as hwnas_search()
 * would end; what is open may still be told. After another failure, a full disk or `cancel`, the
 * study goes on: what the strategy had proposed is what the next ask tries. Takes what the strategy
 * takes, micro- to milliseconds, and what a predictor that trains takes. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_ask(const hwnas_study_trial **out,
                                                     hwnas_study *study);

/* Tells what was measured of a trial that was asked: a value, SI, for each metric of an external
 * device that the job judges by, at once; others of that device may come with them. What follows
 * from a value (throughput and cost from latency.p50) need not be told. `accuracy`, in %, is told
 * where the job has no predictor. Of each value `metric` and `value` are needed ("latency.p50 on
 * pi" where the job has several devices); `low` and `high`, NaN or both 0 if there is no interval,
 * count as those of a measurement do: limits are kept by the whole interval. `unit` is checked
 * unless it is NULL; `source` is not read.
 *
 * It is on disk when this returns. HWNAS_E_INPUT, and nothing is changed: the trial was told before
 * or never asked, a value is not a number, not of an external device or is lacking. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_tell(hwnas_study *study, uint64_t trial,
                                                      const hwnas_metric_value *values, size_t n);
/* Tells that a trial could not be measured, and why: a status other than HWNAS_OK, as
 * HWNAS_E_TIMEOUT, and one line. The network is not proposed again. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_tell_failure(hwnas_study *study, uint64_t trial,
                                                              hwnas_status why,
                                                              const char *message);

/* ---- What was found ---- */

/* From here on hwnas_study_front(), _report() and _trials() answer for these constraints in the
 * place of the job's (NULL: for the job's again), as of the flag --constraints, from what is known
 * of each trial: nothing is run, and the study stays as it is. A mistake in them is HWNAS_E_INPUT
 * of those functions, with the place "--constraints". */
HWNAS_API void hwnas_study_set_constraints(hwnas_study *study, const char *constraints);
/* The Pareto front so far, the best in the first objective first, which is the winner; *n may be 0.
 * `device`: of a job with a front for each device its number, from 0; else 0. Borrowed until the
 * next call or until the study is closed. Reads all trials: milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_front(const hwnas_study_trial **out, size_t *n,
                                                       hwnas_study *study, size_t device);

/* What the study has found so far. Text, JSON ("hwnas.study"). Reads all trials: milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_report(hwnas_report **out, hwnas_study *study);
/* All its trials, a row each, those that failed and those that still run among them. Text, JSON
 * ("hwnas.trials"), JSON lines, CSV. Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_trials(hwnas_report **out, hwnas_study *study);
/* The front among all trials, drawn in characters: limits, intervals, what is dominated, estimated
 * or misses a limit; as wide as hwnas_set_columns() says, 40 to 120 columns, else 80. Text. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_chart(hwnas_report **out, hwnas_study *study);
/* Why a trial (-1: the winner) stands where it does: its neighbours one change away, which choice
 * costs what, and what a looser limit would buy. Text, JSON ("hwnas.explanation").
 * HWNAS_E_INFEASIBLE: there is no winner; HWNAS_E_NOT_FOUND: no such trial, or what the job names
 * has gone away. Runs nothing; up to seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_explain(hwnas_report **out, hwnas_study *study,
                                                         int64_t trial);

typedef struct hwnas_explain_options {
    size_t size;
    /* (optional) Becomes nonzero, in a signal handler or another thread: what is measured by then
     * is told. Borrowed during the call. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told what is measured, in a line, in the calling thread. */
    void (*progress)(void *context, const char *words);
    void *context;
} hwnas_explain_options;
#define HWNAS_EXPLAIN_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(hwnas_explain_options), NULL, NULL, NULL                                            \
    }

/* The same with neighbours that are measured now, in turns with the network, on the study's devices
 * and as its job says; the study is not changed. Not while a search works on the study
 * (hwnas_study_is_running()), as each would disturb the other. HWNAS_E_INPUT: a device is another
 * one than the study was made on, or the study does not keep its job; besides what opening a device
 * fails with. The report concludes with HWNAS_E_INTERRUPTED after `cancel`, or with what ended it
 * early, and has what was measured by then. At most five times a trial's measurement for each
 * neighbour and device. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_explain_measured(
    hwnas_report **out, hwnas_study *study, int64_t trial, const hwnas_explain_options *options);

/* What its trials were made with: versions, processors, kernels, and what the job names by
 * contents. Text, JSON ("hwnas.environment"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_environment(hwnas_report **out,
                                                             hwnas_study *study);

/* ---- Studies as a whole ---- */

/* The studies in a directory (NULL: the current one) or in the PostgreSQL database of an address:
 * how far they are. Text, JSON ("hwnas.studies"). Opens each. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_studies_list(hwnas_report **out, const char *where);
/* Makes the study `to`, which must not be there, of the finished trials of others, which are one or
 * several, in files or in PostgreSQL: those of the first, then what the others have besides. Their
 * jobs, spaces and devices must be the same, their seeds and strategies need not. Text, JSON
 * ("hwnas.merged"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_studies_merge(hwnas_report **out,
                                                         const char *const *studies, size_t n,
                                                         const char *to);
/* Gives back the room that a study does not need any more. Nobody else may change it. Text, JSON
 * ("hwnas.vacuum"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_study_vacuum(hwnas_report **out, const char *path);

#ifdef __cplusplus
}
#endif
#endif
