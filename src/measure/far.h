/* far.h: `hwnas runner serve`, a runner whose search is on another machine: it chooses the cores
 * here. */
#ifndef HWNAS_MEASURE_FAR_H
#define HWNAS_MEASURE_FAR_H

#include <jansson.h>

#include "base/status.h"

/* Reads the search's first frame from standard input, takes cores, and becomes `hwnas runner` with
 * the environment that a runner on them has. `device`: where the frame names none. Returns when that
 * fails. */
HWNAS_CHECKED hwnas_status hwnas_far_serve(const char *device);
/* The request that was read there; NULL: this is no such runner. */
json_t *hwnas_far_take_kept(void);

#endif
