/* data_options.h: options that name files of samples and say how they become a network's inputs. */
#ifndef HWNAS_CLI_DATA_OPTIONS_H
#define HWNAS_CLI_DATA_OPTIONS_H

#include "cli/cli.h"

enum { HWNAS_MAX_DATA_FILES = HWNAS_OPTION_LIST_SIZE };

typedef struct hwnas_data_arguments {
    hwnas_option_list files; /* FILE, or NAME=FILE */
    const char *labels, *x, *y, *scale, *mean, *std, *layout;
    long limit;
} hwnas_data_arguments;

/* The rows of a table of options; `o` is an lvalue. */
#define HWNAS_DATA_OPTIONS(o)                                                                      \
    {"labels",    'l',    HWNAS_OPTION_TEXT,                                                       \
     &(o).labels, "FILE", "labels: .npy, .npz or IDX (in a .npz of samples: the array y)"},        \
        {"x", 0, HWNAS_OPTION_TEXT, &(o).x, "NAME", "array of the samples in a .npz (x)"},         \
        {"y", 0, HWNAS_OPTION_TEXT, &(o).y, "NAME", "array of the labels in a .npz (y)"},          \
        {"limit", 'n', HWNAS_OPTION_INT, &(o).limit, "N", "the first N samples alone"},            \
        HWNAS_RANGE_OPTIONS(o, 0)
#define HWNAS_RANGE_OPTIONS(o, rare)                                                               \
    {                                                                                              \
        "scale",    0,   HWNAS_OPTION_TEXT | (rare),                                               \
        &(o).scale, "X", "values are multiplied by it: 1/255"},                                    \
        {"mean",    0,      HWNAS_OPTION_TEXT | (rare),                                            \
         &(o).mean, "LIST", "then it is taken off: one, or one for each channel"},                 \
        {"std", 0, HWNAS_OPTION_TEXT | (rare), &(o).std, "LIST", "then they are divided by it"},   \
    {                                                                                              \
        "layout", 0, HWNAS_OPTION_TEXT | (rare), &(o).layout, "NAME",                              \
            "of the data: nchw or nhwc (as the network has it)"                                    \
    }

/* Opens the data for a network, which is borrowed. */
HWNAS_CHECKED hwnas_status hwnas_data_arguments_open(hwnas_dataset **out,
                                                     const hwnas_network *network,
                                                     const hwnas_data_arguments *arguments,
                                                     bool ignores_labels);

/* For `progress`: how many samples are done, where somebody watches. */
void hwnas_show_samples(void *context, int64_t n_done, int64_t n_samples);

#endif
