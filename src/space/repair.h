/* repair.h: the architecture nearest to genes of which one is changed: what a constraint forbids is
 * mended by the fewest other changes. */
#ifndef HWNAS_SPACE_REPAIR_H
#define HWNAS_SPACE_REPAIR_H

#include "space/arch.h"

typedef struct hwnas_repair hwnas_repair;

/* `near` need not meet the constraints. */
hwnas_repair *hwnas_repair_new(const hwnas_arch *near);
void hwnas_repair_free(hwnas_repair *repair);

/* With that value of that gene, which counts then; a gene of SIZE_MAX: with any. Of several the
 * same one each time. false: none is found, and `out` is as it was. Where the space is too large
 * for its architectures to be counted exactly, it is one of the nearer ones. */
bool hwnas_repair_find(hwnas_arch *out, const hwnas_repair *repair, size_t gene, size_t value);
/* Does the gene count, and does each other value of it alone break a constraint? */
bool hwnas_arch_is_stuck(const hwnas_arch *arch, size_t gene);

#endif
