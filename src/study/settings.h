/* settings.h: how a network is measured, batch and threads, as choices of the search.
 *
 * A setting that a job leaves open, `batch: {values: [1, 8]}`, becomes a choice behind those of the
 * space, so strategies see one space and need to know nothing of it. An architecture of that space is
 * spelled "k=3355,batch=8". */
#ifndef HWNAS_STUDY_SETTINGS_H
#define HWNAS_STUDY_SETTINGS_H

#include "space/arch.h"
#include "study/job.h"

typedef struct hwnas_settings {
    int batch, threads;
} hwnas_settings;

/* The space that the search walks: `space` itself, or one that lives in its arena and ends with it. A
 * choice of the space with a setting's name is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_settings_space(const hwnas_space **out, hwnas_space *space,
                                                const hwnas_job *job);

/* What an architecture of that space says, and the network without it (yours to free). */
hwnas_settings hwnas_settings_of(const hwnas_arch *arch, const hwnas_job *job);
hwnas_arch *hwnas_settings_strip(const hwnas_arch *arch, const hwnas_space *space);

/* The same of a code: cuts the settings off `code`. */
hwnas_settings hwnas_settings_cut(char *code, const hwnas_job *job);

#endif
