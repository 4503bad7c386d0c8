/* partial.h: what a condition is worth while some genes are open. Private to space/.
 *
 * An expression of which a part is known is reduced: known parts are computed as eval.c computes
 * them, the others become bounds. What is left is written as a key: two assignments of the same
 * genes with equal keys leave the same expression of the open genes. So sums fold into one number,
 * and a diagram of a space (diagram.h) has a node for each sum, not one for each way to it. */
#ifndef HWNAS_SPACE_PARTIAL_H
#define HWNAS_SPACE_PARTIAL_H

#include "base/mem.h"
#include "space/bounds.h"
#include "space/space.h"

typedef struct hwnas_partial {
    const hwnas_space *space;
    const uint16_t *genes;
    const bool *is_known; /* by gene; those of a single value are always known */
    bool *is_seen;        /* (optional) by gene: set where an open one was looked at */
    hwnas_arena *arena;   /* scratch; the caller renews it */
    uint64_t work;        /* counts expressions that were looked at */
    char *key;            /* heap; of the last expression whose truth was open */
    size_t n_key, key_capacity;
    hwnas_value position; /* worth of `i` */
} hwnas_partial;

/* Of a condition at a position. What cannot be computed is false. Always decided when each gene
 * that it looks at is known. */
hwnas_truth hwnas_partial_truth(hwnas_partial *partial, const hwnas_expr *expr, size_t position);
void hwnas_partial_done(hwnas_partial *partial);

#endif
