/* evict.h: puts memory of this process out of the caches of all cores. */
#ifndef HWNAS_MEASURE_EVICT_H
#define HWNAS_MEASURE_EVICT_H

#include "base/status.h"

typedef struct hwnas_evictor hwnas_evictor;

/* A processor without an instruction for it, or a kernel that hides which pages are there, is
 * HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_evictor_open(hwnas_evictor **out);
void hwnas_evictor_close(hwnas_evictor *evictor); /* accepts NULL */

/* Notes what every page holds. The pages that hold something else at the second call are kept by
 * hwnas_evict_constants() from then on: call it after each of two runs on different inputs, and
 * those are the activations. */
HWNAS_CHECKED hwnas_status hwnas_evictor_note(hwnas_evictor *evictor);

HWNAS_CHECKED hwnas_status hwnas_evict_all(hwnas_evictor *evictor);
HWNAS_CHECKED hwnas_status hwnas_evict_constants(hwnas_evictor *evictor);

#endif
