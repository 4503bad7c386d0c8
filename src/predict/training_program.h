/* training_program.h: a predictor whose networks are trained by a program: what the kinds `command`
 * and `train` share. */
#ifndef HWNAS_PREDICT_TRAINING_PROGRAM_H
#define HWNAS_PREDICT_TRAINING_PROGRAM_H

#include "predict/percent.h"
#include "predict/predict_priv.h"
#include "predict/results.h"

enum { HWNAS_MAX_WORDS = 32, HWNAS_MAX_ARGUMENTS = HWNAS_MAX_WORDS + 3, HWNAS_MAX_RUNGS = 8 };

typedef struct hwnas_training_program {
    hwnas_predictor base;
    char *words;                          /* the command line, cut into ... */
    char *arguments[HWNAS_MAX_ARGUMENTS]; /* words; two paths follow */
    size_t n_words;
    char *name; /* what messages call the program; NULL: its first word */
    double timeout, jobs, retries, n_rungs;
    hwnas_printed printed;                 /* of a column in % */
    char *cache;                           /* the file of results of whole trainings */
    int rung;                              /* that is trained at now: 0 is a whole training */
    hwnas_results *rungs[HWNAS_MAX_RUNGS]; /* results by rung, n_rungs */
    hwnas_results *results;                /* of `rung` */
    /* (optional) Whether its trainings can begin; asked once, before the first. */
    hwnas_status (*check)(struct hwnas_training_program *p);
    bool is_checked;
} hwnas_training_program;

/* Without a command line, options and results. */
hwnas_training_program *hwnas_training_program_new(const char *kind, const hwnas_space *space);
/* "KEY=VALUE,...", which is cut. */
HWNAS_CHECKED hwnas_status hwnas_training_program_set_options(hwnas_training_program *p,
                                                              char *text);
/* Is it a program that can be run, there or in $PATH? Told now, not after a search has begun. */
HWNAS_CHECKED hwnas_status hwnas_training_program_check_program(const char *name);
/* The last step: its files of results. */
HWNAS_CHECKED hwnas_status hwnas_training_program_open_results(hwnas_training_program *p);
#endif
