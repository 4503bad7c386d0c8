/* rng.h: PCG32 (XSH RR 64/32), O'Neill, "PCG: A Family of Simple Fast Space-Efficient
 * Statistically Good Algorithms for Random Number Generation", HMC-CS-2014-0905. A generator is a
 * value that is passed; each purpose has a stream of its own, so results do not depend on order. */
#ifndef HWNAS_BASE_RNG_H
#define HWNAS_BASE_RNG_H

#include <stdint.h>

typedef struct hwnas_rng {
    uint64_t state, increment;
} hwnas_rng;

hwnas_rng hwnas_rng_new(uint64_t seed, uint64_t stream);
uint32_t hwnas_rng_u32(hwnas_rng *rng);
uint32_t hwnas_rng_below(hwnas_rng *rng, uint32_t bound); /* uniform in [0, bound); bound > 0 */
double hwnas_rng_double(hwnas_rng *rng);                  /* uniform in [0, 1), 32 bits */

#endif
