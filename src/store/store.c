/* store.c: what every driver shares: what happened, in memory. */
#include "store/store.h"

#include <stdlib.h>

void hwnas_events_free(hwnas_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hwnas_trial_done(&events[i].trial);
    free(events);
}
