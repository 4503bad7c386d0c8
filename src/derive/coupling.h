/* coupling.h: which channels of a network can only go together.
 *
 * Whoever takes a channel out of a convolution takes it out of what reads it, and out of whatever
 * is added to it. So every index of every dimension of every tensor (an atom) belongs to a set: the
 * atoms that go or stay together, as an operator's meaning says (coupling_rules.c). Sets that lie
 * in the same dimensions of the same weights are alike and form a group: a width is how many of a
 * group's sets are kept. What reaches an input or an output of the network, a position of an image,
 * or an operator that nothing is known of is fixed and in no set.
 *
 * The idea of following dependencies through all operators is DepGraph's (Fang et al., "DepGraph:
 * Towards Any Structural Pruning", CVPR 2023); there dimensions are followed, here each index, so
 * that concatenations, slices and heads need no cases of their own. */
#ifndef HWNAS_DERIVE_COUPLING_H
#define HWNAS_DERIVE_COUPLING_H

#include "graph/graph.h"

enum { HWNAS_SET_FIXED = -1 };

typedef struct hwnas_channel_group {
    int node;        /* the first one that makes its channels */
    int dim;         /* of the node's output, where they are */
    int64_t n_made;  /* channels that the node makes of the group */
    int n_sets;      /* at least 2; each has n_made / n_sets of these channels */
    const int *sets; /* in the order of the channels */
} hwnas_channel_group;

typedef struct hwnas_coupling {
    const hwnas_graph *graph; /* borrowed */
    hwnas_arena *arena;
    int *first;  /* by tensor: its first atom; the atoms of its dimensions follow each other */
    int *set_of; /* by atom: its set, or HWNAS_SET_FIXED */
    int n_sets;
    size_t n_groups;
    hwnas_channel_group *groups; /* by the order of their nodes */
} hwnas_coupling;

/* HWNAS_E_INPUT: the network is too large for it, 2^28 atoms. Milliseconds. */
HWNAS_CHECKED hwnas_status hwnas_coupling_find(hwnas_coupling **out, const hwnas_graph *graph);
void hwnas_coupling_free(hwnas_coupling *coupling); /* accepts NULL */

/* The sets of a tensor's dimension, one for each of its indices. */
const int *hwnas_coupling_sets(const hwnas_coupling *coupling, int tensor, int dim);

/* ---- For the rules ---- */

typedef struct hwnas_coupler {
    const hwnas_graph *graph;
    int *first;      /* by tensor, as above; atom 0 is none's: what is with it is fixed */
    int *parent;     /* by atom: another one of the same set, or itself: a disjoint-set forest */
    int *factor;     /* by node: which factor a reshape lets change (coupling_rules.c) */
    bool may_change; /* that, as all nodes have been looked at */
    bool is_changed; /* one of them was, and all rules are to be applied anew */
} hwnas_coupler;

int hwnas_coupler_atom(const hwnas_coupler *c, int tensor, int dim); /* of its first index */
int hwnas_coupler_find(hwnas_coupler *c, int atom); /* the same for all atoms of a set */
void hwnas_coupler_join(hwnas_coupler *c, int atom, int other);

/* Joins what a node's inputs and outputs have in common. */
void hwnas_coupler_apply(hwnas_coupler *c, int node);

#endif
