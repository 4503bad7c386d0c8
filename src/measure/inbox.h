/* inbox.h: what the parent sends, as the runner reads it.
 *
 * A device that prepares networks (hwnas_device_ops.prepare) is helped by a thread: while one
 * network is measured it reads the request for the next, and has the device make what that one will
 * want, on cores where nothing is measured. In its turn the request is read as if nothing had been
 * done: what failed ahead fails then, and what was not done is done. */
#ifndef HWNAS_MEASURE_INBOX_H
#define HWNAS_MEASURE_INBOX_H

#include <hwnas/device.h>

#include "base/status.h"

typedef struct hwnas_inbox hwnas_inbox;

/* Reads from `fd`, which must live as long. Never NULL. */
hwnas_inbox *hwnas_inbox_new(int fd);
void hwnas_inbox_free(hwnas_inbox *inbox);
/* The next `n` bytes in the order in which they were sent. HWNAS_E_NOT_FOUND: the parent has closed
 * its end. Not between hwnas_inbox_begin() and _end(). */
HWNAS_CHECKED hwnas_status hwnas_inbox_read(hwnas_inbox *inbox, void *out, size_t n);

/* Whether there is something to read, after at most so many seconds. */
bool hwnas_inbox_has_more(hwnas_inbox *inbox, double seconds);

/* Starts the thread, on these cores but those that are `taken`; where none is left, or there may be
 * no thread, nothing is prepared. Of the others it leaves those alone that somebody holds or
 * measures on (cores.h), as they come and go, from one plan to the next; while that is all of them
 * nothing is prepared either. Returns on how many cores the thread is; 0: there is none. */
int hwnas_inbox_help(hwnas_inbox *inbox, hwnas_device *device, const int *cores, int n,
                      const int *taken, int n_taken);
/* Ends it, before the device is closed; waits until it is out of the device. */
void hwnas_inbox_rest(hwnas_inbox *inbox);
/* A network runs from here to there, so that the thread may work. The end does not wait for it: it
 * leaves what it is at as soon as it can. */
void hwnas_inbox_begin(hwnas_inbox *inbox);
void hwnas_inbox_end(hwnas_inbox *inbox);
/* Whether the thread has been at work yet: then this process's memory tells nothing of one network.
 */
bool hwnas_inbox_has_prepared(hwnas_inbox *inbox);

#endif
