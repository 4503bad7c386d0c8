/* thorough.h: the front of a search on a quick device, measured without being quick.
 *
 * A quick device (hwnas/device.h) prepares networks sooner, for a search that wants hundreds of
 * them; what is deployed is prepared with time. So at the end each network of the front is measured
 * again without, the winner first, and that is published in the place of the first value, which
 * stays in the history. Where that puts others on the front, they are measured as well. These
 * measurements took no part in the choice, so on such a device near ties are not measured in turns
 * (ties.h) and the front's end is not confirmed (confirm.h). */
#ifndef HWNAS_STUDY_THOROUGH_H
#define HWNAS_STUDY_THOROUGH_H

#include "study/session.h"

/* Measures the fronts, as long as the search's time lasts, and notes in the study what came of it.
 */
HWNAS_CHECKED hwnas_status hwnas_session_measure_thoroughly(hwnas_session *s);

/* That note: a new reference; NULL: none was measured. A member for each network and device:
 * `trial`, `device` (the spelling it was measured with), `first` and `value`, of latency.p50
 * (seconds); or `failed`, why it could not be. */
HWNAS_CHECKED hwnas_status hwnas_thorough_load(json_t **out, hwnas_store *store);

#endif
