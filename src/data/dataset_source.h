/* dataset_source.h: the array that an input's samples come from: found by its name, and matched
 * with the input by its shape. */
#ifndef HWNAS_DATA_DATASET_SOURCE_H
#define HWNAS_DATA_DATASET_SOURCE_H

#include "data/dataset.h"

/* How the data's layout becomes the network's. */
typedef enum hwnas_layout_change {
    HWNAS_LAYOUT_KEPT,
    HWNAS_TO_CHANNELS_FIRST,
    HWNAS_TO_CHANNELS_LAST,
} hwnas_layout_change;

typedef struct hwnas_dataset_source {
    hwnas_array_file *file;
    const char *input; /* its name */
    int64_t count;     /* values of a sample */
    hwnas_layout_change order;
    int64_t n_channels;   /* value i is of channel i / channel_step % n_channels, as the network */
    int64_t channel_step; /* has them */
    int64_t entries;      /* 0: it is no index */
    bool is_whole;
    bool takes_non_finite;
    double *row; /* one sample as it is in the file */
} hwnas_dataset_source;

/* Sees that the target has inputs, and each file is for one of them, or for all. */
HWNAS_CHECKED hwnas_status hwnas_dataset_check_files(const hwnas_dataset_target *target,
                                                     size_t n_files, const hwnas_data_file *files);
/* Opens the array of an input. `layout`: "nchw", "nhwc", or NULL. Closed also after a failure. */
HWNAS_CHECKED hwnas_status hwnas_dataset_source_open(hwnas_dataset_source *out,
                                                     const hwnas_dataset_target *target,
                                                     size_t input, size_t n_files,
                                                     const hwnas_data_file *files,
                                                     const char *layout);
/* Whether a value may be given to the input; `sample` is where, for the message. */
HWNAS_CHECKED hwnas_status hwnas_dataset_check_value(const hwnas_dataset_source *source,
                                                     int64_t sample, double value);
void hwnas_dataset_source_close(hwnas_dataset_source *source);

/* Whether an archive with these members (hwnas_zip_list()) has an array of that name; the failure
 * where it has none. `wanted` is as the message says it. */
bool hwnas_dataset_has_array(char **members, const char *name);
HWNAS_CHECKED hwnas_status hwnas_dataset_no_array(const char *path, char **members,
                                                  const char *wanted);

#endif
