/* data_spelling.h: samples as one text, "FILE#KEY=VALUE,...": what a job calls them, where options
 * of a command would be several. The keys labels, layout, mean, scale, std, x and y mean what they
 * do in hwnas_dataset_options and hwnas_data_file; "\\," is a comma of a value. */
#ifndef HWNAS_DATA_DATA_SPELLING_H
#define HWNAS_DATA_DATA_SPELLING_H

#include "data/dataset.h"

enum { HWNAS_MOST_CHANNEL_VALUES = 64 };

/* A key besides those. */
typedef struct hwnas_data_key {
    const char *name; /* NULL ends them */
    hwnas_status (*read)(void *context, const char *key, const char *value);
} hwnas_data_key;

/* Stays where it is: the options point into it. */
typedef struct hwnas_data_spelling {
    char *path;
    const char *array; /* in a .npz; NULL: that of the input's name, else "x" */
    hwnas_dataset_options options;
    double mean[HWNAS_MOST_CHANNEL_VALUES], std[HWNAS_MOST_CHANNEL_VALUES];
    char *text, *labels; /* what strings of the options are in */
} hwnas_data_spelling;

/* `others` may be NULL; their readers get `context`, and a value that lives as long as `out`.
 * Labels are a file as it is named, or where there is none, beside the samples. Opens nothing.
 * HWNAS_E_INPUT. `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_data_spelling_read(hwnas_data_spelling *out, const char *text,
                                                    const hwnas_data_key *others, void *context);
void hwnas_data_spelling_done(hwnas_data_spelling *spelling);

/* For readers of keys: how many samples, from 1; and the failure of a value that is none. */
HWNAS_CHECKED hwnas_status hwnas_data_key_count(int64_t *out, const char *key, const char *value);
HWNAS_CHECKED hwnas_status hwnas_data_key_fail(const char *key, const char *value,
                                               const char *wanted);

#endif
