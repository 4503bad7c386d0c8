/* mix_samples.h: samples of the user's by which the precision of layers is chosen.
 *
 * Without labels the first of them give ranges of activations, and outputs are compared on the
 * same. With labels every second one, or of many every third and so on, is for the choice: the
 * first of these give ranges, and accuracy on all of them judges. The others are held out: accuracy
 * on them says what was lost, as the best of many choices is no longer as good on other samples. */
#ifndef HWNAS_PRECISION_MIX_SAMPLES_H
#define HWNAS_PRECISION_MIX_SAMPLES_H

#include "data/batches.h"
#include "data/score.h"

typedef struct hwnas_mix_samples {
    const hwnas_graph *graph; /* that they were read for; borrowed, as the data is */
    hwnas_dataset *data;
    int batch;
    size_t n_batches, n_calibrate; /* of the choice; those of them, from the first, for ranges */
    float *values;                 /* the inputs of a batch one after the other */
    int64_t n, n_held_out;         /* samples; held out only where there are labels */
    int64_t step;                  /* every so many'th is for the choice */
    int64_t n_labels;              /* of a sample; 0: there are none */
    double *labels;                /* of the choice's */
    hwnas_score_shape shape;
} hwnas_mix_samples;

/* That the data fits the graph, and its labels the first output; reads all labels. HWNAS_E_INPUT,
 * at the file. `name`: of the network, for messages. */
HWNAS_CHECKED hwnas_status hwnas_mix_samples_check(const hwnas_graph *graph, const char *name,
                                                   int batch, hwnas_dataset *data);
/* That data by which a loss of accuracy is limited has labels: HWNAS_E_USAGE. `max_loss` below 0:
 * nobody asked for a limit. */
HWNAS_CHECKED hwnas_status hwnas_mix_samples_check_loss(const hwnas_dataset *data, double max_loss);
/* Checks likewise and reads: `calibrate` samples (0: 64) for ranges, with labels up to 1000 for the
 * choice. `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_mix_samples_read(hwnas_mix_samples *out, const hwnas_graph *graph,
                                                  const char *name, int batch, hwnas_dataset *data,
                                                  int64_t calibrate);
void hwnas_mix_samples_done(hwnas_mix_samples *samples);

/* What is held out, from its first batch. */
hwnas_batches hwnas_mix_samples_held_out(const hwnas_mix_samples *samples);
/* "top1", "r2": what accuracy is, in percent; NULL: there are no labels. Static. */
const char *hwnas_mix_samples_metric(const hwnas_mix_samples *samples);

#endif
