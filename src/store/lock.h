/* lock.h: one process at a time may change a study.
 *
 * The lock is flock(2) on STUDY-lock, so it goes with the process however that ends; the file
 * itself means nothing. It is not on the database: SQLite's own locks are there, and closing a
 * second descriptor of that file would drop them. */
#ifndef HWNAS_STORE_LOCK_H
#define HWNAS_STORE_LOCK_H

#include "base/status.h"

typedef struct hwnas_lock {
    char *path; /* NULL: not held */
    int fd;
} hwnas_lock;

/* HWNAS_E_IO with the number of the process that has it. */
HWNAS_CHECKED hwnas_status hwnas_lock_take(hwnas_lock *out, const char *study);
void hwnas_lock_release(hwnas_lock *lock); /* accepts one that is not held */

#endif
