/* elaborate.h: architecture -> graph, by walking the space's statements with the architecture's
 * choices. */
#ifndef HWNAS_GRAPH_ELABORATE_H
#define HWNAS_GRAPH_ELABORATE_H

#include "graph/graph.h"
#include "space/arch.h"

/* Loads a space and checks what its layers mean: operators and arguments exist, and a handful of
 * its networks (first and last values, and random ones) can be built. A file or a name
 * that ships. */
HWNAS_CHECKED hwnas_status hwnas_graph_load_space(hwnas_space **out, const char *name);
/* The check alone, for a space that is parsed already. */
HWNAS_CHECKED hwnas_status hwnas_graph_check(hwnas_space *space);

#endif
