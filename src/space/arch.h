/* arch.h: an architecture from inside; <hwnas/space.h> says what one is and has the rest. */
#ifndef HWNAS_SPACE_ARCH_H
#define HWNAS_SPACE_ARCH_H

#include <hwnas/space.h>

#include "base/rng.h"
#include "space/space.h"

/* What each choice is worth, as expressions see it: one value for each choice of the space, in the
 * arena. */
struct hwnas_arena;
hwnas_value *hwnas_arch_values(const hwnas_arch *arch, struct hwnas_arena *arena);

/* The conditions and constraints of a space can be computed for its architectures, and some meet
 * the constraints; else HWNAS_E_INPUT at the place of the first that fails. */
HWNAS_CHECKED hwnas_status hwnas_space_check_rules(const hwnas_space *space);
/* Says HWNAS_E_INPUT because no architecture was found: whether it is proven that there is none,
 * and which constraint is to blame. */
HWNAS_CHECKED hwnas_status hwnas_space_none_found(const hwnas_space *space);

#endif
