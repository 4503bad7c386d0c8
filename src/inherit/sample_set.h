/* sample_set.h: what hwnas_samples are from inside: samples.c reads them, samples_network.c gives
 * networks their weights by them, samples_score.c judges networks by them. */
#ifndef HWNAS_INHERIT_SAMPLE_SET_H
#define HWNAS_INHERIT_SAMPLE_SET_H

#include "inherit/recover.h"
#include "inherit/samples.h"

struct hwnas_samples {
    const hwnas_space *space;
    hwnas_device *device;
    int batch;
    int64_t n_values, n_labels; /* of a sample */
    int64_t n, n_recover, n_search;
    float *values; /* of all samples, in their shuffled order */
    double *labels;
    float *repeated; /* a batch that is larger than the samples that recover; NULL: none was */
    bool keeps_weights;
    hwnas_samples_importance importance; /* never AUTO */
    double floor;                        /* as hwnas_samples_stop_below() says */
    int64_t n_run, n_wanted;             /* of the last score */
    const hwnas_original *original;
    hwnas_teacher *teacher; /* NULL until it is needed; so is the ranking */
    int **ranking;
    const float *inputs[1];
};

/* Which samples a part has: from *begin up to, and without, *end. */
void hwnas_samples_range(int64_t *begin, int64_t *end, const hwnas_samples *samples,
                         hwnas_samples_part part);

/* Of `n` samples, those by which BatchNorm's statistics are found, in batches of `batch`: the
 * first; and those that judge. HWNAS_E_INPUT at the file `path`: too few. */
HWNAS_CHECKED hwnas_status hwnas_samples_part_in_two(int64_t *n_recover, int64_t *n_search,
                                                     int64_t n, int batch,
                                                     const hwnas_samples_options *options,
                                                     const char *path);

#endif
