#include "base/rng.h"

#include <assert.h>

#define MULTIPLIER 6364136223846793005u

uint32_t hwnas_rng_u32(hwnas_rng *rng)
{
    uint64_t old = rng->state;
    rng->state = old * MULTIPLIER + rng->increment;
    uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    unsigned turn = (unsigned)(old >> 59);
    return (shifted >> turn) | (shifted << (-turn & 31));
}

hwnas_rng hwnas_rng_new(uint64_t seed, uint64_t stream)
{
    hwnas_rng rng = {.state = 0, .increment = (stream << 1) | 1};
    hwnas_rng_u32(&rng);
    rng.state += seed;
    hwnas_rng_u32(&rng);
    return rng;
}

uint32_t hwnas_rng_below(hwnas_rng *rng, uint32_t bound)
{
    assert(bound > 0);
    /* Numbers below the threshold would make the remainder uneven. */
    uint32_t threshold = -bound % bound;
    for (;;) {
        uint32_t r = hwnas_rng_u32(rng);
        if (r >= threshold)
            return r % bound;
    }
}

double hwnas_rng_double(hwnas_rng *rng)
{
    return hwnas_rng_u32(rng) * 0x1p-32;
}
