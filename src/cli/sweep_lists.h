/* sweep_lists.h: the settings of a sweep as options of the command line: lists with commas. */
#ifndef HWNAS_CLI_SWEEP_LISTS_H
#define HWNAS_CLI_SWEEP_LISTS_H

#include <hwnas/profile.h>

#include "cli/data_options.h"

enum { HWNAS_MAX_MODELS = 64, HWNAS_MAX_LIST = 16 };

/* As the user writes them, NULL: the option was not given; and room for what is read of them. */
typedef struct hwnas_sweep_lists {
    const char *devices, *batches, *threads, *precisions;
    const char *streams; /* numbers, or "fill" */
    const char *models[HWNAS_MAX_MODELS];
    char device_room[8192], precision_room[256];
    const char *device_words[HWNAS_MAX_LIST];
    int batch_numbers[HWNAS_MAX_LIST], thread_numbers[HWNAS_MAX_LIST],
        stream_numbers[HWNAS_MAX_LIST];
    hwnas_precision precision_values[HWNAS_MAX_LIST];
    double max_error; /* percent; HWNAS_NO_MAX_ERROR: not given */
} hwnas_sweep_lists;

/* What --max-error is where it is not given. */
#define HWNAS_NO_MAX_ERROR (-1e300)
/* A limit in percent as the library takes it: a share, below 0 where none is given. */
HWNAS_CHECKED hwnas_status hwnas_max_error_read(double *out, double percent, bool is_mixed);

/* What is said of a training step, and of the training that it is a step of. */
typedef struct hwnas_training_words {
    bool trains;
    const char *optimizer; /* NULL: not given */
    long samples;          /* HWNAS_TRAINING_WORDS_INIT: not given */
    double epochs;
} hwnas_training_words;
#define HWNAS_TRAINING_WORDS_INIT                                                                  \
    {                                                                                              \
        false, NULL, -1, -1                                                                        \
    }
/* Gives them to the options; what makes no sense without --training, or without --samples, is
 * refused. `prices`: as the user wrote it, NULL: not at all. */
HWNAS_CHECKED hwnas_status hwnas_training_read(hwnas_profile_options *out,
                                               const hwnas_training_words *words,
                                               const char *prices);

/* Reads the lists into the options, which then borrow from them. */
HWNAS_CHECKED hwnas_status hwnas_sweep_read(hwnas_profile_options *out, hwnas_sweep_lists *lists);

/* Samples by which layers are chosen: after the lists are read. The options borrow from `read`,
 * which is to be done with even after a failure. `max_loss`: HWNAS_NO_MAX_LOSS: not given. */
HWNAS_CHECKED hwnas_status hwnas_sweep_samples(hwnas_profile_options *out, hwnas_data_read *read,
                                               const hwnas_data_arguments *data, double max_loss);

#endif
