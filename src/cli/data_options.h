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

/* The rows of a table of options that say how samples are read; `o` is an lvalue. */
#define HWNAS_SAMPLE_OPTIONS(o)                                                                    \
    {"x",    0,      HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                        \
     &(o).x, "NAME", "array of the samples in a .npz (x)"},                                        \
        {"scale",    0,   HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                   \
         &(o).scale, "X", "values are multiplied by it: 1/255"},                                   \
        {"mean",    0,      HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                 \
         &(o).mean, "LIST", "then it is taken off: one, or one for each channel"},                 \
        {"std",    0,      HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                  \
         &(o).std, "LIST", "then they are divided by it"},                                         \
    {                                                                                              \
        "layout", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &(o).layout, "NAME",                   \
            "of the data: nchw or nhwc (as the network has it)"                                    \
    }

/* The rows of labels for a choice of layers; `loss` is HWNAS_NO_MAX_LOSS at first. */
#define HWNAS_CHOICE_OPTIONS(o, loss)                                                              \
    {"labels",    0,      HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                   \
     &(o).labels, "FILE", "mixed: their labels (in a .npz: the array y); accuracy judges"},        \
        {"y",    0,      HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE,                                    \
         &(o).y, "NAME", "array of the labels in a .npz (y)"},                                     \
        {"max-loss", 0,        HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE,                            \
         &(loss),    "POINTS", "mixed, with labels: accuracy that may be lost (1)"},               \
    {                                                                                              \
        "limit", 'n', HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &(o).limit, "N",                       \
            "the first N samples alone"                                                            \
    }
#define HWNAS_NO_MAX_LOSS (-1e300)
/* The limit in points as the library takes it: below 0 where none is given. Labels and a limit go
 * with samples and with what is mixed. */
HWNAS_CHECKED hwnas_status hwnas_choice_read(double *max_loss, double points,
                                             const hwnas_data_arguments *data, bool is_mixed);

/* The arguments as the library takes them; borrows from them. */
typedef struct hwnas_data_read {
    size_t n;
    hwnas_data_file files[HWNAS_MAX_DATA_FILES];
    char *names[HWNAS_MAX_DATA_FILES]; /* heap */
    double *mean, *std;                /* heap */
    hwnas_dataset_options options;
} hwnas_data_read;
/* `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_data_arguments_read(hwnas_data_read *out,
                                                     const hwnas_data_arguments *arguments,
                                                     bool ignores_labels);
void hwnas_data_read_done(hwnas_data_read *read);

/* Opens the data for a network, which is borrowed. */
HWNAS_CHECKED hwnas_status hwnas_data_arguments_open(hwnas_dataset **out,
                                                     const hwnas_network *network,
                                                     const hwnas_data_arguments *arguments,
                                                     bool ignores_labels);

/* For `progress`: how many samples are done, where somebody watches. */
void hwnas_show_samples(void *context, int64_t n_done, int64_t n_samples);

#endif
