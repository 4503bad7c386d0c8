/* patience.h: how long a worker waits for those who do the other tasks of its trials. */
#ifndef HWNAS_STUDY_PATIENCE_H
#define HWNAS_STUDY_PATIENCE_H

#include <stdbool.h>

#include "base/status.h"

/* Of one thread. */
typedef struct hwnas_patience {
    double seconds;  /* so long without a sign of them is too long */
    double silence;  /* seconds without one so far */
    bool has_warned; /* in this silence */
} hwnas_patience;

/* As $HWNAS_WORKER_PATIENCE says; an hour where it is not set, or empty. HWNAS_E_INPUT: it is no
 * whole number of seconds. */
HWNAS_CHECKED hwnas_status hwnas_patience_read(hwnas_patience *out);

/* There was a sign of them: the silence begins anew. */
void hwnas_patience_renew(hwnas_patience *patience);

/* So many seconds more without a sign of workers that do `tasks`, in words. After a sixtieth of the
 * patience a note says so, once. HWNAS_E_TIMEOUT, with the place `study`: it is over. */
HWNAS_CHECKED hwnas_status hwnas_patience_spend(hwnas_patience *patience, double seconds,
                                                const char *tasks, const char *study);

#endif
