/* shared.h: all networks of a space as slices of one set of weights: a supernet.
 *
 * Layers of different networks have the same weights where they come of the same statement of the
 * space, in the same turn of each loop around it. A smaller network takes the first channels of
 * them, and of a kernel the middle (Yu and Huang, "Universally Slimmable Networks and Improved
 * Training Techniques", ICCV 2019; Cai et al., "Once-for-All", ICLR 2020). */
#ifndef HWNAS_GRAPH_SHARED_H
#define HWNAS_GRAPH_SHARED_H

#include "graph/elaborate.h"

typedef struct hwnas_shared_weight {
    const char *name; /* "2/0/block/conv_bn/conv/weight": turns of loops, and layers by templates */
    uint64_t hash;    /* of the name */
    hwnas_place place;
    bool is_learned; /* else it is a statistic, which no network shares */
    int rank;
    int64_t dims[4]; /* the greatest of any network */
} hwnas_shared_weight;

typedef struct hwnas_shared {
    hwnas_arena *arena;
    const hwnas_space *space; /* borrowed */
    size_t n_weights, capacity;
    hwnas_shared_weight *weights;
    /* By gene: how many of its values are in `order`, from the one of which all others are slices
     * on to the greatest; 0: its values are alternatives, none is part of another. */
    size_t *n_ordered;
    uint16_t **order;
    hwnas_arch *largest; /* one of the networks with the greatest values */
    struct hwnas_shared_label *labels;
    size_t n_labels;
    size_t n_facts, fact_capacity;
    struct hwnas_shared_fact *facts;
} hwnas_shared;

/* What can be shared of a space. It is found by building hundreds of its networks, about a second
 * for large ones. A space whose networks cannot be slices of one another is HWNAS_E_UNSUPPORTED at
 * the line that is why. */
HWNAS_CHECKED hwnas_status hwnas_shared_new(hwnas_shared **out, const hwnas_space *space);
void hwnas_shared_free(hwnas_shared *shared); /* accepts NULL */

/* What a layer or join is called within its template: "conv", "conv_2". */
const char *hwnas_shared_label(const hwnas_shared *shared, const hwnas_stmt *stmt);

/* A network, and by tensor the index of the weight of which it has a slice, -1 where it has none;
 * yours to free(). One that needs more than there is, is HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_shared_build(hwnas_graph **out, int **weights,
                                              const hwnas_shared *shared, const hwnas_arch *arch,
                                              int batch);
/* Whether the operator may be in a network that shares weights. */
bool hwnas_shared_takes(const hwnas_op *op);
/* Where a slice of `n` begins in dimension `i` of the weight. */
int64_t hwnas_shared_begin(const hwnas_shared_weight *weight, int i, int64_t n);

#endif
