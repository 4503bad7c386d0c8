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
/* The first, in lexical order, that meets the constraints; it walks, so for spaces that can be
 * walked. */
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
/* Does a gene of a settled architecture count? */
bool hwnas_arch_is_active(const hwnas_arch *arch, size_t gene);

/* What these make is settled. Where a space has constraints they try again, a bounded number of
 * times, until it is met.
 *
 * Uniform over the encodings of a space without rules; with conditions, uniform for each choice
 * that counts. */
void hwnas_arch_sample(hwnas_arch *arch, hwnas_rng *rng);
/* Changes each gene with probability `rate` to another of its values, and at least one of those
 * that can change. */
void hwnas_arch_mutate(hwnas_arch *arch, double rate, hwnas_rng *rng);
/* Uniform crossover: each gene from either parent. */
void hwnas_arch_cross(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b, hwnas_rng *rng);
/* The next encoding in lexical order; false after the last. */
bool hwnas_arch_next(hwnas_arch *arch);

/* Yours to free(). */
char *hwnas_arch_code(const hwnas_arch *arch);
HWNAS_CHECKED hwnas_status hwnas_arch_parse(hwnas_arch **out, const hwnas_space *space,
                                            const char *code);

#endif
