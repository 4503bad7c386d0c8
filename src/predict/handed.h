/* handed.h: a network as a program that trains gets it: files in a scratch directory, and an
 * environment that says more. docs/predictors.md tells the contract. */
#ifndef HWNAS_PREDICT_HANDED_H
#define HWNAS_PREDICT_HANDED_H

#include "predict/scratch.h"
#include "space/arch.h"

enum { HWNAS_HANDED_ONNX, HWNAS_HANDED_PYTORCH, HWNAS_HANDED_YAML, HWNAS_N_HANDED };

typedef struct hwnas_handed {
    hwnas_scratch scratch;
    char *paths[HWNAS_N_HANDED]; /* "" where the format cannot say the network */
    char **environment;          /* ours, and the network's; NULL-terminated */
} hwnas_handed;

/* `rung`: how cheap its training is to be, 0 is a whole one. */
HWNAS_CHECKED hwnas_status hwnas_handed_make(hwnas_handed *out, const hwnas_arch *arch, int rung);
/* A variable of the environment, in the place of one that it has. */
void hwnas_handed_set(hwnas_handed *handed, const char *name, const char *value);
void hwnas_handed_done(hwnas_handed *handed); /* accepts one that was never made, of zeros */

#endif
