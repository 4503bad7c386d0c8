/* study.h: the loop, the one place where the stages meet: ask, build, estimate, measure, tell,
 * store. */
#ifndef HWNAS_STUDY_STUDY_H
#define HWNAS_STUDY_STUDY_H

#include "study/session_options.h"
#include "study/summary.h"

/* Runs a job until its budget is spent, the space is exhausted, or `stop` is set (then the summary
 * says so). Finished trials are in the store when this returns, however it returns. */
HWNAS_CHECKED hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                                           const hwnas_session_options *options);

#endif
