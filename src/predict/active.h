/* active.h: a predictor that is fitted while it is used, on trainings that it asks for itself.
 *
 * It begins with half of its budget: networks spread over the space (suggest.h). A tenth is kept
 * for the end of the search, for the networks of its front (HWNAS_TRAIN_EACH). Then it estimates,
 * and what may be among the best is trained before it is believed: a network whose mean plus
 * deviation is above every training of one with as many multiply-accumulates or fewer. Trainings
 * are spread over the search, and with every few of them the model is fitted anew. So an
 * overestimate costs a training and is corrected by it (compare the upper confidence bound of
 * Srinivas et al., ICML 2010).
 *
 * What it says depends on the results in the command's file alone, and on how far the search is
 * (hwnas_predictor_advance()); so a search that died goes on as if it had not. */
#ifndef HWNAS_PREDICT_ACTIVE_H
#define HWNAS_PREDICT_ACTIVE_H

#include "predict/predict.h"

enum { HWNAS_MIN_TRAIN_BUDGET = 20 };

typedef struct hwnas_train_options {
    /* Trainings, those that the command's file has already included; 0: no more, only estimates. */
    size_t budget;
    uint64_t n_networks; /* that the search will ask for; 0: not known */
    uint64_t seed;
    /* (optional) By how much a network misses the limits that are free to know, 0: it meets them.
     * Only networks that do, or come nearest to it, are trained. */
    double (*violation)(void *context, const hwnas_arch *arch);
    void *context;
} hwnas_train_options;

/* Trainings of a budget that are made before the search begins. */
size_t hwnas_train_first(size_t budget);

/* Trains the first half, fits, and puts the predictor that does the rest in the place of *command,
 * a predictor of kind `command`, which it takes over. Another kind, too small a budget, or too few
 * results to fit on without one is HWNAS_E_INPUT; on failure *command is as it was, and all results
 * are kept. */
HWNAS_CHECKED hwnas_status hwnas_predictor_train(hwnas_predictor **command,
                                                 const hwnas_train_options *options);

#endif
