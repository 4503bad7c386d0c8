/* training_program.h: a predictor whose networks are trained by a program: what the kinds `command`
 * and `train` share. */
#ifndef HWNAS_PREDICT_TRAINING_PROGRAM_H
#define HWNAS_PREDICT_TRAINING_PROGRAM_H

#include "predict/curve.h"
#include "predict/fork_server.h"
#include "predict/percent.h"
#include "predict/predict_priv.h"
#include "predict/results.h"

enum { HWNAS_MAX_WORDS = 32, HWNAS_MAX_ARGUMENTS = HWNAS_MAX_WORDS + 3, HWNAS_MAX_RUNGS = 8 };

/* One that was ended after n of its epochs, and where it would have come to. */
typedef struct hwnas_stopped_training {
    size_t n, n_planned;
    hwnas_curve_end end;
} hwnas_stopped_training;

typedef struct hwnas_training_program {
    hwnas_predictor base;
    char *words;                          /* the command line, cut into ... */
    char *arguments[HWNAS_MAX_ARGUMENTS]; /* words; two paths follow */
    size_t n_words;
    char *name; /* what messages call the program; NULL: its first word */
    double timeout, jobs, retries, n_rungs;
    double give_up; /* a training is ended when the chance that it is worth it is below; 0: never */
    hwnas_printed printed;                 /* of a column in % */
    char *cache;                           /* the file of results of whole trainings */
    int rung;                              /* that is trained at now: 0 is a whole training */
    hwnas_results *rungs[HWNAS_MAX_RUNGS]; /* results by rung, n_rungs */
    hwnas_results *results;                /* of `rung` */
    hwnas_results *curves;                 /* of whole trainings */
    double floor;                          /* what one must reach to be worth it; -INFINITY: any */
    hwnas_stopped_training stopped;        /* that the last score was of; `n` 0: none */
    /* (optional) Whether its trainings can begin; asked once, before the first. */
    hwnas_status (*check)(struct hwnas_training_program *p);
    bool is_checked;
    hwnas_fork_server server; /* that the program may use */
    /* (optional) Removes what the program keeps to go on with the training of a network, which was
     * ended and is not to go on. */
    void (*forget)(const struct hwnas_training_program *p, hwnas_digest digest);
} hwnas_training_program;

/* Without a command line, options and results. */
hwnas_training_program *hwnas_training_program_new(const char *kind, const hwnas_space *space);
/* "KEY=VALUE,...", which is cut. */
HWNAS_CHECKED hwnas_status hwnas_training_program_set_options(hwnas_training_program *p,
                                                              char *text);
/* Is it a program that can be run, there or in $PATH? Told now, not after a search has begun. */
HWNAS_CHECKED hwnas_status hwnas_training_program_check_program(const char *name);
/* How its program gives results; `said` begins messages, "'./train' printed", and is borrowed. */
hwnas_giver hwnas_training_program_giver(const hwnas_training_program *p, const char *said);
/* The last step: its files of results. */
HWNAS_CHECKED hwnas_status hwnas_training_program_open_results(hwnas_training_program *p);
#endif
