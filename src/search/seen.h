/* seen.h: the encodings that a strategy has proposed or been told, so that none comes twice. */
#ifndef HWNAS_SEARCH_SEEN_H
#define HWNAS_SEARCH_SEEN_H

#include "space/arch.h"

typedef struct hwnas_seen {
    const hwnas_space *space; /* borrowed */
    uint64_t space_size;      /* encodings; 0: more than could ever be seen */
    size_t n, capacity;
    hwnas_arch **slots;
} hwnas_seen;

void hwnas_seen_init(hwnas_seen *seen, const hwnas_space *space);
void hwnas_seen_done(hwnas_seen *seen);

bool hwnas_seen_has(const hwnas_seen *seen, const hwnas_arch *arch);
void hwnas_seen_add(hwnas_seen *seen, const hwnas_arch *arch); /* a copy, unless it is there */

/* Fails with HWNAS_E_EXHAUSTED: there is no other network. */
hwnas_status hwnas_seen_all(const hwnas_seen *seen);

/* As hwnas_arch_sample() draws from the encodings not seen; `out` is not added. HWNAS_E_EXHAUSTED
 * when there is none, or none was found. */
HWNAS_CHECKED hwnas_status hwnas_seen_sample_new(const hwnas_seen *seen, hwnas_arch *out,
                                                 hwnas_rng *rng);

#endif
