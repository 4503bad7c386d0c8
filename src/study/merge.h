/* merge.h: one study of the trials of several that searched for the same. */
#ifndef HWNAS_STUDY_MERGE_H
#define HWNAS_STUDY_MERGE_H

#include "store/store.h"

typedef struct hwnas_merged {
    uint64_t n_trials;     /* that the new one has */
    uint64_t n_same;       /* left out, as an earlier study has the network */
    uint64_t n_unfinished; /* left out, as they were running */
} hwnas_merged;

/* Makes the study `to` of the finished trials of others, study by study in the order in which they
 * finished. They may differ by seed and strategy; those of the first one go on with the new one.
 * HWNAS_E_INPUT: two have other jobs, spaces or devices, or `to` is there already. */
HWNAS_CHECKED hwnas_status hwnas_study_merge(hwnas_merged *out, const char *to,
                                             const char *const *from, size_t n);

#endif
