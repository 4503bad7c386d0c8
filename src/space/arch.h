/* arch.h: an architecture: one value index for each gene of a space.
 *
 * Its code is the compact spelling: NAME=LABELS for each choice, joined by commas, as in
 * "e=1666666,k=3353553,l=1223341,se=1111111"; labels of more than one character are joined by '.',
 * or by ':' where a value such as 0.5 has a '.' itself.
 * A space with a single choice may drop "NAME=". */
#ifndef HWNAS_SPACE_ARCH_H
#define HWNAS_SPACE_ARCH_H

#include "base/rng.h"
#include "space/space.h"

typedef struct hwnas_arch {
    const hwnas_space *space; /* borrowed */
    uint16_t genes[];
} hwnas_arch;

hwnas_arch *hwnas_arch_new(const hwnas_space *space); /* every gene at its first value */
hwnas_arch *hwnas_arch_copy(const hwnas_arch *arch);
void hwnas_arch_free(hwnas_arch *arch);
void hwnas_arch_assign(hwnas_arch *to, const hwnas_arch *from);

bool hwnas_arch_equal(const hwnas_arch *a, const hwnas_arch *b);
uint64_t hwnas_arch_hash(const hwnas_arch *arch); /* of the encoding, not of the network */

/* Uniform over the encodings. */
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
