/* rng.h: random numbers are public, for strategies and predictors outside of the tree. */
#ifndef HWNAS_BASE_RNG_H
#define HWNAS_BASE_RNG_H

#include <hwnas/space.h>

#endif
