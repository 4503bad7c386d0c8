/* candidates.h: architectures that a model is asked about: each once, none that was proposed. */
#ifndef HWNAS_SEARCH_CANDIDATES_H
#define HWNAS_SEARCH_CANDIDATES_H

#include "search/codebook.h"
#include "search/seen.h"
#include "search/duplicates.h"

/* To build a network as a graph takes as long as to judge ten. So most candidates are such as were
 * built before, in reach of a front that changes little; how many are fresh depends on whether the
 * space can be gone through, when they are soon built all. */
typedef struct hwnas_effort {
    double work; /* with n rows of c columns a candidate costs about n (n + c) */
    int n_distant;
    int more_random, max_random; /* the random sequence: growth by a trial, and its end */
    size_t n_climbers, max_neighbours;
} hwnas_effort;

enum { HWNAS_MAX_CLIMBERS = 3 };
const hwnas_effort *hwnas_effort_for(const hwnas_seen *seen);

typedef struct hwnas_candidates {
    const hwnas_seen *seen; /* these three are borrowed */
    const hwnas_duplicates *duplicates;
    hwnas_codebook *book;
    uint64_t mark; /* of these in the book: other than before */
    size_t limit;  /* no more are added */
    size_t n, capacity;
    const hwnas_encoding **encodings; /* the book's */
} hwnas_candidates;

void hwnas_candidates_done(hwnas_candidates *candidates);

/* The whole space. */
void hwnas_candidates_add_all(hwnas_candidates *candidates);
/* Neighbours of the parents, which come in random order; at most so many of each. */
void hwnas_candidates_add_neighbours(hwnas_candidates *candidates,
                                     const hwnas_encoding *const *parents, size_t n,
                                     size_t max_of_each, hwnas_rng *rng);
/* Two changes away from a parent, or crossed with another and changed. */
void hwnas_candidates_add_distant(hwnas_candidates *candidates,
                                  const hwnas_encoding *const *parents, size_t n, hwnas_rng *rng);
/* From the random sequence of a seed, as far as a trial of that number sees it. */
void hwnas_candidates_add_random(hwnas_candidates *candidates, uint64_t seed, uint64_t trial,
                                 hwnas_rng *rng);

#endif
