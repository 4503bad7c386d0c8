/* runner.h: what tests want to know of a runner. */
#ifndef HWNAS_MEASURE_RUNNER_H
#define HWNAS_MEASURE_RUNNER_H

#include <sys/types.h>

#include "measure/measure.h"

/* The child's process, or 0 when there is none now. */
pid_t hwnas_runner_pid(const hwnas_runner *runner);

#endif
