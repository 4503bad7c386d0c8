/* arch.h: an architecture: one value index for each gene of a space.
 *
 * Its code is the compact spelling: NAME=LABELS for each choice, joined by commas, as in
 * "e=1666666,k=3353553,l=1223341,se=1111111"; labels of more than one character are joined by '.',
 * or by ':' where a value such as 0.5 has a '.' itself.
 * A space with a single choice may drop "NAME=". Positions at the end of a choice that do not count
 * (their condition does not hold) may be left out, and a choice of which none counts. */
#ifndef HWNAS_SPACE_ARCH_H
#define HWNAS_SPACE_ARCH_H

#include "base/rng.h"
#include "space/space.h"

typedef struct hwnas_arch {
    const hwnas_space *space; /* borrowed */
    uint16_t genes[];
} hwnas_arch;

hwnas_arch *hwnas_arch_new(const hwnas_space *space); /* every gene at its first value */
/* One that meets the constraints, from which hwnas_arch_next() goes through all; NULL: none is
 * known. */
hwnas_arch *hwnas_arch_first(const hwnas_space *space);
hwnas_arch *hwnas_arch_copy(const hwnas_arch *arch);
void hwnas_arch_free(hwnas_arch *arch);
void hwnas_arch_assign(hwnas_arch *to, const hwnas_arch *from);

bool hwnas_arch_equal(const hwnas_arch *a, const hwnas_arch *b);
uint64_t hwnas_arch_hash(const hwnas_arch *arch); /* of the encoding, not of the network */

/* What each choice is worth, as expressions see it: one value for each choice of the space, in the
 * arena. */
struct hwnas_arena;
hwnas_value *hwnas_arch_values(const hwnas_arch *arch, struct hwnas_arena *arena);

/* Puts the genes that do not count (their condition does not hold) to their first value, so that
 * encodings are equal when the choices that count are. Says whether the constraints hold. What
 * cannot be computed does not hold. */
bool hwnas_arch_settle(hwnas_arch *arch);
/* The conditions and constraints of a space can be computed for its architectures, and some meet
 * the constraints; else HWNAS_E_INPUT at the place of the first that fails. */
HWNAS_CHECKED hwnas_status hwnas_space_check_rules(const hwnas_space *space);
/* Says HWNAS_E_INPUT because no architecture was found: whether it is proven that there is none,
 * and which constraint is to blame. */
HWNAS_CHECKED hwnas_status hwnas_space_none_found(const hwnas_space *space);
/* Does a gene of a settled architecture count? */
bool hwnas_arch_is_active(const hwnas_arch *arch, size_t gene);

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
bool hwnas_arch_sample(hwnas_arch *arch, hwnas_rng *rng);
/* The same, uniform over the encodings where they can be counted. */
bool hwnas_arch_sample_evenly(hwnas_arch *arch, hwnas_rng *rng);
/* Changes each gene with probability `rate` to another of its values, and at least one of those
 * that can change. A gene that cannot change alone takes the fewest others with it (repair.h). It
 * stays as it is where no other is found. */
void hwnas_arch_mutate(hwnas_arch *arch, double rate, hwnas_rng *rng);
/* Uniform crossover: each gene from either parent. A copy of `a` where no other is found. */
void hwnas_arch_cross(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b, hwnas_rng *rng);
/* The next encoding that meets the constraints; false after the last, and where they cannot be
 * counted. In lexical order, but for rules that link genes far apart. */
bool hwnas_arch_next(hwnas_arch *arch);

/* Yours to free(). */
char *hwnas_arch_code(const hwnas_arch *arch);
HWNAS_CHECKED hwnas_status hwnas_arch_parse(hwnas_arch **out, const hwnas_space *space,
                                            const char *code);

#endif
