/* evaluate.h: one architecture -> the values that a trial is judged by. */
#ifndef HWNAS_STUDY_EVALUATE_H
#define HWNAS_STUDY_EVALUATE_H

#include <signal.h>

#include "device/device.h"
#include "space/arch.h"
#include "store/store.h"
#include "study/job.h"

typedef struct hwnas_evaluator hwnas_evaluator;

/* Loads the predictor and opens the device, so that what the job asks of them is known to exist; no
 * network is run yet. Job and space are borrowed. `stop` is set by a signal handler. */
HWNAS_CHECKED hwnas_status hwnas_evaluator_open(hwnas_evaluator **out, const hwnas_job *job,
                                                const hwnas_space *space,
                                                const volatile sig_atomic_t *stop);
void hwnas_evaluator_close(hwnas_evaluator *evaluator); /* accepts NULL */

/* What the device that measures says of itself; borrowed; NULL: nothing is measured. */
const hwnas_device_info *hwnas_evaluator_device(const hwnas_evaluator *evaluator);

/* Fills in values, violation and detail of a trial. A trial that misses a limit by what costs
 * nothing to know is not measured. `twin`: a finished trial of the same network, whose measurement
 * is taken over; NULL: none. A failure is the trial's own, except HWNAS_E_INTERRUPTED. */
HWNAS_CHECKED hwnas_status hwnas_evaluate(hwnas_trial *trial, hwnas_evaluator *evaluator,
                                          const hwnas_arch *arch, const hwnas_graph *graph,
                                          const hwnas_trial *twin);

#endif
