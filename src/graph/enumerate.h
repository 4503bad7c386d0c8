/* enumerate.h: goes through all that a space can be. */
#ifndef HWNAS_GRAPH_ENUMERATE_H
#define HWNAS_GRAPH_ENUMERATE_H

#include <stdint.h>

#include "space/space.h"

/* Loads the space `name` with each value of each setting of `space`, which is that one, the others
 * as they are: each must be as right as the first. */
HWNAS_CHECKED hwnas_status hwnas_graph_check_settings(const hwnas_space *space, const char *name);

/* Number of networks with different graphs, by building every one of the `n` > 0 encodings. */
HWNAS_CHECKED hwnas_status hwnas_graph_count_distinct(uint64_t *out, const hwnas_space *space,
                                                      uint64_t n);

#endif
