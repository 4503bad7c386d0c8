/* lock.h: one process at a time may change a study, or several that share it.
 *
 * The lock is on the file itself, so every name of it, also a symbolic or a hard link, leads to the
 * same lock, and it goes with the process however that ends. It is a byte far behind those that
 * SQLite locks (fcntl(2), "open file description locks").
 *
 * POSIX drops all of a process's locks on a file, SQLite's too, when any descriptor of it is
 * closed. So take a lock before SQLite opens the file, and release it after SQLite has closed it.
 */
#ifndef HWNAS_STORE_LOCK_H
#define HWNAS_STORE_LOCK_H

#include <stdbool.h>

#include "base/status.h"

typedef struct hwnas_lock {
    struct hwnas_locked_file *file; /* NULL: not held */
} hwnas_lock;

/* Locks the file that is there. HWNAS_E_NOT_FOUND: none is; HWNAS_E_IO with the number of the
 * process that has it. Messages have the name that the user gave to the study. */
HWNAS_CHECKED hwnas_status hwnas_lock_take(hwnas_lock *out, const char *file, const char *study);
/* Makes an empty file that is locked from the beginning; `is_there`: no, there is one already. */
HWNAS_CHECKED hwnas_status hwnas_lock_make(hwnas_lock *out, bool *is_there, const char *file,
                                           const char *study);
/* As hwnas_lock_take(), with others, also of this process, that do the same. */
HWNAS_CHECKED hwnas_status hwnas_lock_share(hwnas_lock *out, const char *file, const char *study);
/* Lets others share what was locked for us alone. */
HWNAS_CHECKED hwnas_status hwnas_lock_relax(hwnas_lock *lock, const char *study);
/* Whether some process, maybe this one, has the file locked. */
bool hwnas_lock_is_held(const char *file);
/* Says again who holds it: closing SQLite's descriptor makes that forgotten, not the lock. */
void hwnas_lock_sign(const hwnas_lock *lock);
int hwnas_lock_descriptor(const hwnas_lock *lock);
void hwnas_lock_release(hwnas_lock *lock); /* accepts one that is not held */

#endif
