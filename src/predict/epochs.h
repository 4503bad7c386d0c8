/* epochs.h: what trainings say of their epochs: the curve of one that is under way, and where it
 * will end by the curves of others. */
#ifndef HWNAS_PREDICT_EPOCHS_H
#define HWNAS_PREDICT_EPOCHS_H

#include "predict/curve.h"
#include "predict/percent.h"

typedef struct hwnas_epochs {
    double *values; /* after each epoch, in the unit of the column */
    size_t n, capacity;
    size_t n_planned; /* 0: the training has said nothing */
} hwnas_epochs;

void hwnas_epochs_done(hwnas_epochs *epochs);

/* Takes "epoch 3 of 9: loss 0.4, validation 85.2 %", or "was epoch ..." of one that an earlier
 * process had: what stands last is the result so far, as the giver gives results. True: one more
 * epoch is known. A training that begins again with an earlier epoch is taken from there; other
 * lines, and values that could be meant otherwise, are passed over. */
bool hwnas_epochs_hear(hwnas_epochs *epochs, const char *line, const hwnas_giver *giver);

/* Where a training will end after n > 0 of its epochs. `curves` is a file of curves, of which those
 * count that were to have as many epochs and have a result in `results`. False: too few. */
bool hwnas_epochs_foresee(hwnas_curve_end *out, const double *values, size_t n, size_t n_planned,
                          const hwnas_results *curves, const hwnas_results *results);

#endif
