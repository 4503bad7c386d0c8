/* room.h: whether this machine has the memory that a network takes. */
#ifndef HWNAS_PROFILE_ROOM_H
#define HWNAS_PROFILE_ROOM_H

#include <stdint.h>

#include "graph/graph.h"

/* Weights and activations of `share` times fp32's size, for a run on this machine's processor. What
 * cannot fit is HWNAS_E_MEMORY, what is more than is free now a note, both with what it takes. */
HWNAS_CHECKED hwnas_status hwnas_room_check(const hwnas_graph *graph, const char *model, int batch,
                                            double share);
/* The same with the amounts that there are. */
HWNAS_CHECKED hwnas_status hwnas_room_check_in(uint64_t all, uint64_t available,
                                               const hwnas_graph *graph, const char *model,
                                               int batch, double share);

#endif
