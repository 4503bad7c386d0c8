/* mix_data.h: files of samples by which a sweep chooses the precision of layers. */
#ifndef HWNAS_PROFILE_MIX_DATA_H
#define HWNAS_PROFILE_MIX_DATA_H

#include "base/str.h"
#include "precision/mix.h"
#include "profile/profile.h"

/* All borrowed. */
typedef struct hwnas_mix_data {
    size_t n; /* files; 0: none, so inputs are random */
    const hwnas_data_file *files;
    hwnas_dataset_options options;
    int64_t calibrate; /* samples that give ranges; 0: 64 */
    double max_loss;   /* points of accuracy, where there are labels, ... */
    bool needs_labels; /* ... which must be there, as somebody asked for the limit */
} hwnas_mix_data;

/* That the files are for this graph, called `name`; reads labels alone. HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_mix_data_check(const hwnas_mix_data *data,
                                                const hwnas_graph *graph, const char *name,
                                                int batch);
/* Opened for one network; zeros: there are none. */
typedef struct hwnas_mix_opened {
    hwnas_dataset *dataset;
    hwnas_mix_samples samples;
} hwnas_mix_opened;
/* Opens and reads what there is, and puts it into `how`, with the limit on the loss. `name`: of the
 * network, for messages. `out` is to be closed even after a failure, and outlives `how`. */
HWNAS_CHECKED hwnas_status hwnas_mix_data_open(hwnas_mix_opened *out, hwnas_mix_options *how,
                                               const hwnas_mix_data *data, const hwnas_graph *graph,
                                               const char *name, int batch);
void hwnas_mix_data_close(hwnas_mix_opened *opened);

/* As hwnas_mix_make(), with ranges of those samples that gave them when the word was chosen. */
HWNAS_CHECKED hwnas_status hwnas_mix_data_make(hwnas_graph **out, const hwnas_mix_data *data,
                                               const hwnas_graph *graph, const char *name,
                                               int batch, const char *word,
                                               const hwnas_mix_options *options);

/* Chooses by them, or by random inputs where there are none; the row, of which model and batch are
 * known, gets what was found and by which samples. `out` as hwnas_mix_choose(). */
HWNAS_CHECKED hwnas_status hwnas_mix_data_choose(hwnas_mix *out, hwnas_profile_row *row,
                                                 const hwnas_mix_data *data,
                                                 const hwnas_graph *graph,
                                                 const hwnas_mix_options *options);
/* Appends " --data FILE ...", as a command has it. */
void hwnas_mix_data_command(hwnas_str *out, const hwnas_mix_data *data);

#endif
