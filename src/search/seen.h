/* seen.h: hwnas_seen is public, for strategies outside of the tree. */
#ifndef HWNAS_SEARCH_SEEN_H
#define HWNAS_SEARCH_SEEN_H

#include <hwnas/strategy.h>

#include "space/arch.h"

#endif
