/* dataset.h: samples as a network takes them, and their labels: files of arrays, matched with the
 * network's inputs by shape, and brought into its layout and range on the way. */
#ifndef HWNAS_DATA_DATASET_H
#define HWNAS_DATA_DATASET_H

#include "data/array_file.h"

/* What the samples are for: the network's inputs, by input how many rows the table has that is
 * looked up with it (0: none is), and the names of inputs without values, which take no samples.
 * Copied, but for the names. */
typedef struct hwnas_dataset_target {
    size_t n_inputs;
    const hwnas_array_info *inputs;
    const int64_t *entries;
    size_t n_absent;
    const char *const *absent;
} hwnas_dataset_target;

HWNAS_CHECKED hwnas_status hwnas_dataset_open_for(hwnas_dataset **out,
                                                  const hwnas_dataset_target *target,
                                                  size_t n_files, const hwnas_data_file *files,
                                                  const hwnas_dataset_options *options);

/* The next `n` samples, of which there must be so many: by input the values of all, one sample
 * behind the other; `labels` (NULL: not wanted) likewise. */
HWNAS_CHECKED hwnas_status hwnas_dataset_take(float *const *inputs, double *labels,
                                              hwnas_dataset *data, int64_t n);
/* Goes back to the first sample. */
HWNAS_CHECKED hwnas_status hwnas_dataset_rewind(hwnas_dataset *data);

/* The labels of all samples, yours to free(); there must be some. The data then is at its first
 * sample. */
HWNAS_CHECKED hwnas_status hwnas_dataset_read_labels(double **out, hwnas_dataset *data);

size_t hwnas_dataset_n_inputs(const hwnas_dataset *data);
/* Of the first input. */
const char *hwnas_dataset_path(const hwnas_dataset *data);
/* Values of a sample for this input. */
int64_t hwnas_dataset_count(const hwnas_dataset *data, size_t input);
/* NULL: there are none. */
const hwnas_array_file *hwnas_dataset_labels(const hwnas_dataset *data);

/* An input as a whole, of which the file's array has the shape, but for dimensions of 1. */
HWNAS_CHECKED hwnas_status hwnas_dataset_read_whole(float *out, const hwnas_dataset_target *target,
                                                    size_t input, size_t n_files,
                                                    const hwnas_data_file *files);

#endif
