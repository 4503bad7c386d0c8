/* hold.h: a space in which some values are not chosen. */
#ifndef HWNAS_SPACE_HOLD_H
#define HWNAS_SPACE_HOLD_H

#include "space/space.h"

/* The space with a constraint more for each gene of which a value is not kept: kept[gene][value].
 * Codes stay as they are, and
 * `kept` of these genes tells which are left. It lies in the memory of `space`, which must live as
 * long. HWNAS_E_INPUT: no network is left. */
HWNAS_CHECKED hwnas_status hwnas_space_hold(const hwnas_space **out, const hwnas_space *space,
                                            const bool *const *kept);

#endif
