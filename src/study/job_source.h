/* job_source.h: a job as a study keeps it, so that workers need no file of it. */
#ifndef HWNAS_STUDY_JOB_SOURCE_H
#define HWNAS_STUDY_JOB_SOURCE_H

#include "store/store.h"
#include "study/job.h"

/* Writes the job's text and flags into the study, unless it was read from there. */
HWNAS_CHECKED hwnas_status hwnas_job_keep(hwnas_store *store, const hwnas_job *job);
/* Reads the job of a study, whose name it has then. Other files, such as those of its space, it
 * names as the one that began it did. HWNAS_E_INPUT: the study keeps none. */
HWNAS_CHECKED hwnas_status hwnas_job_load_kept(hwnas_job **out, const char *study);

#endif
