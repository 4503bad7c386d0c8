/* scratch.h: a temporary directory that is found and removed by a later process when its own was
 * killed. */
#ifndef HWNAS_PREDICT_SCRATCH_H
#define HWNAS_PREDICT_SCRATCH_H

#include "base/status.h"

typedef struct hwnas_scratch {
    char *folder; /* NULL: none */
    int lock;     /* of the folder, as long as it is in use */
} hwnas_scratch;

/* Makes one in the directory `where`; NULL: in $TMPDIR, or in /tmp. */
HWNAS_CHECKED hwnas_status hwnas_scratch_open(hwnas_scratch *out, const char *where);
/* Removes it with the files that we put there (scratch.c knows their names) and Python's cache of
 * them. It stays if there is anything else in it. Accepts one that was never opened, of zeros. */
void hwnas_scratch_close(hwnas_scratch *scratch);
/* Gives it its lasting name, on the same file system, and the mode of other directories; it is
 * closed then. After a failure it is as it was. Not while threads make files. */
HWNAS_CHECKED hwnas_status hwnas_scratch_keep(hwnas_scratch *scratch, const char *path);

/* Removes those that killed processes of this user left in a directory, as above. */
void hwnas_scratch_sweep(const char *where);

#endif
