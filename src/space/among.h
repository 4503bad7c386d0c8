/* among.h: a space of which only listed architectures count, such as those that a table has. */
#ifndef HWNAS_SPACE_AMONG_H
#define HWNAS_SPACE_AMONG_H

#include "base/rng.h"
#include "space/arch.h"

/* The architectures that are left: settled, each once, in lexical order. */
typedef struct hwnas_among {
    size_t n, n_genes;
    const uint16_t *genes; /* n times n_genes */
} hwnas_among;

/* The space with those of `archs` that meet its constraints. They are of the space, or of one whose
 * genes are its first: the genes behind these take each of their values. All functions of
 * <hwnas/space.h> heed it, and codes stay as they are. It lies in the memory of `space`, which must
 * live as long; it is `space` itself where nothing is left out. HWNAS_E_INPUT: none is left. */
HWNAS_CHECKED hwnas_status hwnas_space_among(const hwnas_space **out, const hwnas_space *space,
                                             const hwnas_arch *const *archs, size_t n);

/* ---- For space/ ---- */

bool hwnas_among_has(const hwnas_among *among, const uint16_t *genes);
/* The first that comes behind these genes in the order; n: none does. */
size_t hwnas_among_after(const hwnas_among *among, const uint16_t *genes);
/* The first of those with the fewest other genes than `near`, and with that value of that gene
 * unless it is SIZE_MAX; not `a` or `b`, which may be NULL. n: there is none. */
size_t hwnas_among_nearest(const hwnas_among *among, const uint16_t *near, size_t gene,
                           uint16_t value, const uint16_t *a, const uint16_t *b);

static inline const uint16_t *hwnas_among_at(const hwnas_among *among, size_t i)
{
    return among->genes + i * among->n_genes;
}

#endif
