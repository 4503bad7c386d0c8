/* duplicates.h: encodings of one network, and whether trying both told anything.
 *
 * A table may give them different values (the network was trained twice); then both are worth a
 * trial. A measurement or a predictor gives them one. Which of the two it is, the first pair tells.
 */
#ifndef HWNAS_SEARCH_DUPLICATES_H
#define HWNAS_SEARCH_DUPLICATES_H

#include "search/surrogate.h"

typedef struct hwnas_duplicates {
    void *by_digest; /* search tree of the first feasible trial of each network */
    size_t n_same, n_different;
} hwnas_duplicates;

void hwnas_duplicates_done(hwnas_duplicates *duplicates);

/* The trial's encoding is borrowed. An estimate stands for its network, and says nothing of pairs.
 */
void hwnas_duplicates_add(hwnas_duplicates *duplicates, const hwnas_told *told, int n_objectives);
/* The network was tried, and in no pair did the second trial tell anything. */
bool hwnas_duplicates_has(const hwnas_duplicates *duplicates, const hwnas_encoding *encoding);

#endif
