/* job_goals.h: readers of the keys that say what a job wants. For job_keys.c. */
#ifndef HWNAS_STUDY_JOB_GOALS_H
#define HWNAS_STUDY_JOB_GOALS_H

#include "study/job.h"

HWNAS_CHECKED hwnas_status hwnas_job_read_objectives(hwnas_job *job, const hwnas_yaml *node);
HWNAS_CHECKED hwnas_status hwnas_job_read_constraints(hwnas_job *job, const hwnas_yaml *node);
HWNAS_CHECKED hwnas_status hwnas_job_read_until(hwnas_job *job, const hwnas_yaml *node);

#endif
