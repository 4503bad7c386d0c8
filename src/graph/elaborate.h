/* elaborate.h: architecture -> graph, by walking the space's statements with the architecture's
 * choices. */
#ifndef HWNAS_GRAPH_ELABORATE_H
#define HWNAS_GRAPH_ELABORATE_H

#include "graph/graph.h"
#include "space/arch.h"
#include "space/expr.h"

/* Looks on while a network is built, to note which way each condition went, say. When building
 * fails it has seen what came before. */
typedef struct hwnas_elaborate_watcher {
    void *context;
    /* An expression was evaluated; the frame has what it could see. */
    void (*expr)(void *context, const hwnas_expr *expr, const hwnas_scope_frame *frame);
    /* Around each statement. `before` and `after`: the current tensor, in `graph` as it is by then.
     */
    void (*enter)(void *context, const hwnas_stmt *stmt, const hwnas_scope_frame *frame);
    void (*leave)(void *context, const hwnas_stmt *stmt, const hwnas_graph *graph, int before,
                  int after);
} hwnas_elaborate_watcher;

/* As hwnas_graph_build(). */
HWNAS_CHECKED hwnas_status hwnas_graph_build_watched(hwnas_graph **out, const hwnas_arch *arch,
                                                     int batch,
                                                     const hwnas_elaborate_watcher *watcher);

/* Loads a space and checks what its layers mean: operators and arguments exist, and a handful of
 * its networks (first and last values, and random ones) can be built. A file or a name
 * that ships. */
HWNAS_CHECKED hwnas_status hwnas_graph_load_space(hwnas_space **out, const char *name);
/* The check alone, for a space that is parsed already. */
HWNAS_CHECKED hwnas_status hwnas_graph_check(hwnas_space *space);

#endif
