/* samples.h: how good a network is on labelled samples, once it has the weights that it inherits.
 *
 * The samples are shuffled by a fixed seed and parted in three: those by which weights are
 * recovered (recover.h), those by which a search judges, and the rest, by which the winner is
 * judged at the end: what was chosen by the best of many results is no longer as good on other
 * samples. */
#ifndef HWNAS_INHERIT_SAMPLES_H
#define HWNAS_INHERIT_SAMPLES_H

#include "data/dataset.h"
#include "data/score.h"
#include "derive/base_model.h"
#include "derive/derive.h"
#include "device/device.h"

typedef enum hwnas_samples_part {
    HWNAS_SAMPLES_SEARCH,
    HWNAS_SAMPLES_TEST,
    HWNAS_SAMPLES_SEEN, /* all but those: of the search, and those that recover, whose labels play
                           no part in it */
} hwnas_samples_part;

/* By what channels are ranked: the most important ones stay. */
typedef enum hwnas_samples_importance {
    HWNAS_IMPORTANCE_AUTO, /* removal where weights are recovered, which was measured to be
                              better then; else weights */
    HWNAS_IMPORTANCE_OF_WEIGHTS,
    HWNAS_IMPORTANCE_OF_ACTIVATIONS, /* on the samples that recover; so is that ... */
    HWNAS_IMPORTANCE_BY_REMOVAL,     /* ... by what the other channels cannot make up for */
} hwnas_samples_importance;

typedef struct hwnas_samples_options {
    hwnas_dataset_options data;
    const char *array;  /* in a .npz; NULL: that of the input's name, else "x" */
    int64_t n_recover;  /* samples by which weights are recovered; 0: 1024 at most */
    int64_t n_search;   /* that a search judges by; 0: 2000 at most */
    bool keeps_weights; /* as inherited, without recovering */
    hwnas_samples_importance importance;
} hwnas_samples_options;

typedef struct hwnas_samples hwnas_samples;

/* For a space that was derived from a model, which is borrowed. Reads all samples. A network with
 * several inputs is HWNAS_E_UNSUPPORTED; samples that do not fit, too few, or without labels,
 * HWNAS_E_INPUT. Seconds. */
HWNAS_CHECKED hwnas_status hwnas_samples_open(hwnas_samples **out, const hwnas_space *space,
                                              const char *path,
                                              const hwnas_samples_options *options);
/* For networks that have weights from elsewhere, and take what this one takes, in its batch. The
 * file's order stays: the first `n_recover` (0: 512 at most) are for BatchNorm's statistics, the
 * next `n_search` (0: all that are left) judge. Only hwnas_samples_judge(), _count() and _close()
 * are for these. */
HWNAS_CHECKED hwnas_status hwnas_samples_open_for(hwnas_samples **out, const hwnas_graph *graph,
                                                  const char *path,
                                                  const hwnas_samples_options *options);
void hwnas_samples_close(hwnas_samples *samples); /* accepts NULL */

int64_t hwnas_samples_count(const hwnas_samples *samples, hwnas_samples_part part);

/* Top-1 in percent, or of numbers 100 r2, computed in a precision, s8 as hwnas_samples_calibrate()
 * says; the interval is that of the samples that were run. Seconds. One thread at a time. */
HWNAS_CHECKED hwnas_status hwnas_samples_score(hwnas_estimate_95 *out, hwnas_samples *samples,
                                               const hwnas_arch *arch, hwnas_precision precision,
                                               hwnas_samples_part part);
/* The same of a network that hwnas_samples_build() made, for any batch. `each` (NULL: not wanted)
 * has room for as many as the part has samples, and gets what each adds to the score: 1 for a right
 * answer and 0 for a wrong one, of tokens how many are right, of numbers the squared error,
 * negated; the network is run on all of them then. */
HWNAS_CHECKED hwnas_status hwnas_samples_judge(hwnas_estimate_95 *out, double *each,
                                               hwnas_samples *samples, const hwnas_graph *graph,
                                               hwnas_precision precision, hwnas_samples_part part);
/* How many samples the last score was of, of *n_all that there were; fewer where it was clear that
 * the network is below the floor. */
int64_t hwnas_samples_run(int64_t *n_all, const hwnas_samples *samples);
/* From now on a network whose top-1 on the samples of the search is clearly below `floor`, in
 * percent, is not run on all of them (data/floor_test.h); 0: each is. */
void hwnas_samples_stop_below(hwnas_samples *samples, double floor);

/* How such a network is compiled in s8: with ranges of the samples by which weights are recovered,
 * in batches of `batch`, which they fill several times where they are fewer; those of the search
 * judge it. Borrows the samples, until the next call. */
HWNAS_CHECKED hwnas_status hwnas_samples_calibrate(hwnas_exec_options *out, hwnas_samples *samples,
                                                   int batch);
/* How many samples ranges are found with, in batches of `batch`. */
int64_t hwnas_samples_calibrated(const hwnas_samples *samples, int batch);
/* The network with its recovered weights, for a batch. Seconds. */
HWNAS_CHECKED hwnas_status hwnas_samples_build(hwnas_graph **out, hwnas_samples *samples,
                                               const hwnas_arch *arch, int batch);

#endif
