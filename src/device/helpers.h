/* helpers.h: threads that help with what nobody measures, such as compiling. */
#ifndef HWNAS_DEVICE_HELPERS_H
#define HWNAS_DEVICE_HELPERS_H

#include <stdbool.h>

/* Says which cores helpers may compute on now: writes `most` at most, returns how many. Of the
 * whole process; set it while nobody helps. NULL, and without a call: all cores of the calling
 * thread. */
void hwnas_helpers_set_room(int (*room)(int *cores, int most));

/* Calls work() on this thread and at the same time on others, `most` of them all together, one on
 * each core of the room that this thread is not bound to. Returns when each has returned. The
 * others have ordinary priority, this name, and each its own hwnas_last_error(). */
#define HWNAS_HELPER_THREAD "hwnas helper"
void hwnas_helpers_run(int most, void (*work)(void *context), void *context);

/* Asked by work() between two parts of it. false: this is one of the others, and its cores have
 * been taken for a measurement; it leaves the rest to the calling thread, for which it is always
 * true. */
bool hwnas_helper_goes_on(void);

#endif
