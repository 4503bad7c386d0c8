/* scratch.h: a temporary directory that is found and removed by a later process when its own was
 * killed. */
#ifndef HWNAS_PREDICT_SCRATCH_H
#define HWNAS_PREDICT_SCRATCH_H

#include "base/status.h"

typedef struct hwnas_scratch {
    char *folder; /* NULL: none */
    int lock;     /* of the folder, as long as it is in use */
} hwnas_scratch;

/* Makes one in $TMPDIR, or in /tmp. */
HWNAS_CHECKED hwnas_status hwnas_scratch_open(hwnas_scratch *out);
/* Removes it with the files that we put there (scratch.c lists their names) and Python's cache of
 * them. It stays if there is anything else in it. Accepts one that was never opened, of zeros. */
void hwnas_scratch_close(hwnas_scratch *scratch);

/* Removes those that killed processes of this user left. */
void hwnas_scratch_sweep(void);

#endif
