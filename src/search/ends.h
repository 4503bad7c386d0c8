/* ends.h: the smallest and the largest network of a space, to begin a search with.
 *
 * Widths, depths, kernels and the like are numbers. With all of them at one end a network lies near
 * an end of the front, where random samples hardly ever fall; and the smallest one tells at once
 * whether a limit can be met. Values that are names have no order, hence no ends. */
#ifndef HWNAS_SEARCH_ENDS_H
#define HWNAS_SEARCH_ENDS_H

#include "space/arch.h"

typedef enum hwnas_end { HWNAS_SMALLEST, HWNAS_LARGEST } hwnas_end;

/* Genes whose values are all numbers go to that end, the others are sampled; what a constraint
 * forbids is mended by the fewest changes. false: no architecture was found. */
bool hwnas_end_sample(hwnas_arch *out, hwnas_end end, hwnas_rng *rng);

#endif
