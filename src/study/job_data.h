/* job_data.h: the samples of a job, `data: FILE#KEY=VALUE,...`, by which the layers of its networks
 * get a precision each. Their labels count where the job limits a loss of accuracy. */
#ifndef HWNAS_STUDY_JOB_DATA_H
#define HWNAS_STUDY_JOB_DATA_H

#include "data/data_spelling.h"
#include "profile/mix_data.h"
#include "study/job.h"

/* Stays where it is. */
typedef struct hwnas_job_data {
    hwnas_data_spelling spelling;
    hwnas_data_file file;
    hwnas_mix_data mix; /* no files: the job has no samples */
} hwnas_job_data;

/* Reads what the job says of them, and opens nothing. HWNAS_E_INPUT, at the key. `out` is to be
 * done with even after a failure, and may be zeros. */
HWNAS_CHECKED hwnas_status hwnas_job_data_read(hwnas_job_data *out, const hwnas_job *job);
void hwnas_job_data_done(hwnas_job_data *data);

/* That they are for this network, and have the labels that count. HWNAS_E_INPUT, at the key. */
HWNAS_CHECKED hwnas_status hwnas_job_data_check(const hwnas_job_data *data, const hwnas_job *job,
                                                const hwnas_graph *graph, int batch);

/* The name of the file without its directory, yours to free(). */
char *hwnas_job_data_name(const hwnas_job *job);

#endif
