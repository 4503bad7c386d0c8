/* backtrack.h: an architecture of a space whose diagram is too large to make. Private to space/.
 *
 * Genes get values one by one, and a value that a constraint rules out by what is known and by the
 * bounds of the rest is not taken. The genes of constraints that failed before come first
 * (Boussemart, Hemery, Lecoutre and Sais, "Boosting Systematic Search by Weighting Constraints",
 * ECAI 2004), and after some failures all begins anew. */
#ifndef HWNAS_SPACE_BACKTRACK_H
#define HWNAS_SPACE_BACKTRACK_H

#include "base/rng.h"
#include "space/ruleset.h"

typedef struct hwnas_wish {
    const uint16_t *near;  /* (optional) by gene: the value that is tried first */
    const uint16_t *other; /* (optional) with `near`: no other values than these two */
    bool is_fixed;         /* this gene counts and has this value */
    size_t gene;
    uint16_t value;
} hwnas_wish;

typedef enum hwnas_finding {
    HWNAS_FOUND,
    HWNAS_NONE,     /* it is proven that there is none */
    HWNAS_GIVEN_UP, /* after a bounded effort, a fraction of a second */
} hwnas_finding;

/* `genes` are touched when one is found. `wish` may be NULL. */
hwnas_finding hwnas_backtrack(uint16_t *genes, const hwnas_ruleset *rules, const hwnas_wish *wish,
                              hwnas_rng *rng);

#endif
