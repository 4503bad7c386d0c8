/* sweep_lists.h: the settings of a sweep as options of the command line, and its notes. */
#ifndef HWNAS_CLI_SWEEP_LISTS_H
#define HWNAS_CLI_SWEEP_LISTS_H

#include "profile/sweep.h"

/* The settings as the user writes them: lists with commas. */
typedef struct hwnas_sweep_lists {
    const char *devices, *batches, *threads, *precisions;
    const char *streams; /* numbers, or "fill"; NULL: one copy, by the protocol for one */
} hwnas_sweep_lists;
#define HWNAS_SWEEP_DEFAULTS                                                                       \
    {                                                                                              \
        .devices = "cpu", .batches = "1", .threads = "1", .precisions = "f32"                      \
    }

/* Reads the lists. Unknown devices and precisions and what is not a list are told. */
HWNAS_CHECKED hwnas_status hwnas_sweep_read(hwnas_sweep *out, const hwnas_sweep_lists *lists);

/* Prints to standard error what a sweep leaves out of a model: for `on_skipped`. */
void hwnas_sweep_print_skipped(const char *model, const char *list);

#endif
