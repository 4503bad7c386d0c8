/* neighbours.h: the architectures one change away. */
#ifndef HWNAS_SEARCH_NEIGHBOURS_H
#define HWNAS_SEARCH_NEIGHBOURS_H

#include "space/arch.h"

typedef struct hwnas_neighbours {
    size_t n, capacity;
    hwnas_arch **archs; /* owned */
} hwnas_neighbours;

/* Every valid architecture that differs from `of` in one gene that counts, by gene and value, plus
 * what settling it then changes. A gene that no value fits without others changes with the fewest
 * others, once for each value. */
void hwnas_neighbours_of(hwnas_neighbours *out, const hwnas_arch *of);
void hwnas_neighbours_shuffle(hwnas_neighbours *neighbours, hwnas_rng *rng);
void hwnas_neighbours_done(hwnas_neighbours *neighbours);

#endif
