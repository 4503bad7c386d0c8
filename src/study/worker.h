/* worker.h: one of several processes that make the trials of one study, on any machines. */
#ifndef HWNAS_STUDY_WORKER_H
#define HWNAS_STUDY_WORKER_H

#include "study/session_options.h"
#include "study/summary.h"

/* Makes trials of a study that others may work on, and begins it where it is not there, until there
 * is no other trial to be made or `stop` is set. HWNAS_E_UNSUPPORTED: others on this machine would
 * disturb measurements, or the job has a budget of trainings. */
HWNAS_CHECKED hwnas_status hwnas_worker_run(hwnas_summary **out, const hwnas_job *job,
                                            const hwnas_session_options *options);

#endif
