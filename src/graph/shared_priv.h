/* shared_priv.h: how the networks of a space are looked at, to find what they share. */
#ifndef HWNAS_GRAPH_SHARED_PRIV_H
#define HWNAS_GRAPH_SHARED_PRIV_H

#include "graph/op.h"
#include "graph/shared.h"

typedef struct hwnas_shared_label {
    const hwnas_stmt *stmt;
    const char *text;
} hwnas_shared_label_row;

enum { HWNAS_SHARED_FACTS = 64 };

/* What must be the same of a layer in all networks that have it. */
typedef struct hwnas_shared_fact {
    const char *name;
    uint64_t hash;
    size_t n;
    int64_t values[HWNAS_SHARED_FACTS];
} hwnas_shared_fact;

/* A network by its weights: their dimensions, zeros where it has none. */
typedef struct hwnas_shared_sizes {
    size_t n, capacity;
    int64_t (*dims)[4];
} hwnas_shared_sizes;

/* Builds a network. Where `learns`, weights that are not known yet are noted, and the greatest
 * sizes; else one that is unknown, or larger, fails. `sizes` (NULL: not wanted) gets its sizes. */
HWNAS_CHECKED hwnas_status hwnas_shared_watch(hwnas_graph **out, int **weights,
                                              hwnas_shared_sizes *sizes, hwnas_shared *shared,
                                              const hwnas_arch *arch, int batch, bool learns);
void hwnas_shared_set_labels(hwnas_shared *shared);

#endif
