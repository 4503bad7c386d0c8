/* space.h: architectures by their genes, and random numbers: for strategies and predictors.
 *
 * An architecture is an index of a value for each gene of its space. It borrows the space. These
 * functions take micro- to milliseconds. Different architectures of a space may be used by
 * different threads. */
#ifndef HWNAS_PUBLIC_SPACE_H
#define HWNAS_PUBLIC_SPACE_H

#include <hwnas.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Random numbers ---- */

/* PCG32 (XSH RR 64/32), O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
 * Algorithms for Random Number Generation", HMC-CS-2014-0905. A generator is a value that is
 * passed; each purpose has a stream of its own, so results do not depend on order. */
typedef struct hwnas_rng {
    uint64_t state, increment;
} hwnas_rng;

HWNAS_API hwnas_rng hwnas_rng_new(uint64_t seed, uint64_t stream);
HWNAS_API uint32_t hwnas_rng_u32(hwnas_rng *rng);
HWNAS_API uint32_t hwnas_rng_below(hwnas_rng *rng, uint32_t bound); /* uniform in [0, bound);
                                                                       bound > 0 */
HWNAS_API double hwnas_rng_double(hwnas_rng *rng);                  /* uniform in [0, 1), 32 bits */

/* ---- Genes ---- */

/* A gene is one position of a choice: the unit that sampling and mutation work on. */
HWNAS_API size_t hwnas_space_genes(const hwnas_space *space);
/* Values that a gene has, at least 1; how one is spelled in a code, borrowed; and the name of the
 * gene's choice, borrowed. Genes and values count from 0. */
HWNAS_API size_t hwnas_space_values(const hwnas_space *space, size_t gene);
HWNAS_API const char *hwnas_space_label(const hwnas_space *space, size_t gene, size_t value);
HWNAS_API const char *hwnas_space_choice(const hwnas_space *space, size_t gene);

/* ---- Architectures ---- */

typedef struct hwnas_arch {
    const hwnas_space *space; /* borrowed */
    uint16_t genes[];         /* hwnas_space_genes() of them */
} hwnas_arch;

/* Every gene at its first value. It may break the space's constraints: hwnas_arch_settle() says. */
HWNAS_API hwnas_arch *hwnas_arch_new(const hwnas_space *space);
/* One that meets the constraints, from which hwnas_arch_next() goes through all; NULL: none is
 * known. */
HWNAS_API hwnas_arch *hwnas_arch_first(const hwnas_space *space);
HWNAS_API hwnas_arch *hwnas_arch_copy(const hwnas_arch *arch);
HWNAS_API void hwnas_arch_free(hwnas_arch *arch); /* accepts NULL */
/* Both of one space. */
HWNAS_API void hwnas_arch_assign(hwnas_arch *to, const hwnas_arch *from);

HWNAS_API bool hwnas_arch_equal(const hwnas_arch *a, const hwnas_arch *b);
HWNAS_API uint64_t hwnas_arch_hash(const hwnas_arch *arch); /* of the encoding, not of the
                                                               network */

/* Puts the genes that do not count (their condition does not hold) to their first value, so that
 * encodings are equal when the choices that count are. Says whether the constraints hold. What
 * cannot be computed does not hold. */
HWNAS_API bool hwnas_arch_settle(hwnas_arch *arch);
/* Does a gene of a settled architecture count? */
HWNAS_API bool hwnas_arch_is_active(const hwnas_arch *arch, size_t gene);

/* What these make is settled and meets the constraints. They take bounded time.
 *
 * Each position gets a random value, until the constraints are met; where that is rare, the values
 * are drawn by the rules, with the same chances. So it is uniform over the encodings of a space
 * without conditions; with them, uniform for each choice that counts. Where the space is too large
 * to be counted exactly (hwnas_space_count()) and one in hundreds meets the constraints, the
 * chances are others: each position in turn takes a random one of the values that do not break a
 * constraint as far as can be seen.
 *
 * false: none was found, and `arch` is as it was. That is proven where the count is exact. */
HWNAS_API bool hwnas_arch_sample(hwnas_arch *arch, hwnas_rng *rng);
/* The same, uniform over the encodings where they can be counted. */
HWNAS_API bool hwnas_arch_sample_evenly(hwnas_arch *arch, hwnas_rng *rng);
/* Changes each gene with probability `rate` to another of its values, and at least one of those
 * that can change. A gene that cannot change alone takes the fewest others with it. It stays as it
 * is where no other is found. */
HWNAS_API void hwnas_arch_mutate(hwnas_arch *arch, double rate, hwnas_rng *rng);
/* Uniform crossover: each gene from either parent. A copy of `a` where no other is found. */
HWNAS_API void hwnas_arch_cross(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b,
                                hwnas_rng *rng);
/* The next encoding that meets the constraints; false after the last, and where they cannot be
 * counted. In lexical order, but for rules that link genes far apart. */
HWNAS_API bool hwnas_arch_next(hwnas_arch *arch);

/* The compact spelling: NAME=LABELS for each choice, joined by commas, as in
 * "e=1666666,k=3353553,l=1223341,se=1111111"; labels of more than one character are joined by '.',
 * or by ':' where a value such as 0.5 has a '.' itself. A space with a single choice may drop
 * "NAME=". Positions at the end of a choice that do not count may be left out, and a choice of
 * which none counts. Yours: hwnas_free(). */
HWNAS_API char *hwnas_arch_code(const hwnas_arch *arch);
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_arch_parse(hwnas_arch **out, const hwnas_space *space,
                                                      const char *code);

#ifdef __cplusplus
}
#endif
#endif
