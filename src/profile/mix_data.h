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
/* Chooses by them, or by random inputs where there are none; the row, of which model and batch are
 * known, gets what was found and by which samples. `out` as hwnas_mix_choose(). */
HWNAS_CHECKED hwnas_status hwnas_mix_data_choose(hwnas_mix *out, hwnas_profile_row *row,
                                                 const hwnas_mix_data *data,
                                                 const hwnas_graph *graph,
                                                 const hwnas_mix_options *options);
/* Appends " --data FILE ...", as a command has it. */
void hwnas_mix_data_command(hwnas_str *out, const hwnas_mix_data *data);

#endif
