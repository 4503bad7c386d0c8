/* recipe_run.h: the program that ships as training/train.py, started for one network
 * (docs/training.md). */
#ifndef HWNAS_PREDICT_RECIPE_RUN_H
#define HWNAS_PREDICT_RECIPE_RUN_H

#include <signal.h>

#include <jansson.h>

#include "graph/shared.h"
#include "predict/fork_server.h"

enum { HWNAS_RECIPE_OPTIONS = 6 };

typedef struct hwnas_recipe_call {
    const char *recipe; /* a file */
    /* More of its options; NULL-terminated. With one of --check and --out its last line is JSON. */
    const char *options[HWNAS_RECIPE_OPTIONS];
    const hwnas_arch *arch;
    const hwnas_shared
        *shared; /* (optional) it is given the module of all these networks instead */
    hwnas_fork_server *server;                     /* (optional) that it may use */
    const volatile sig_atomic_t *stop;             /* (optional) */
    void (*says)(void *context, const char *line); /* (optional) each line that it prints */
    void *context;
} hwnas_recipe_call;

/* What it told in the end, a new reference. What it finds wrong is HWNAS_E_INPUT with its place. */
HWNAS_CHECKED hwnas_status hwnas_recipe_run(json_t **out, const hwnas_recipe_call *run);

#endif
