/* pad.h: where padded values come from. */
#ifndef HWNAS_GRAPH_OPS_PAD_H
#define HWNAS_GRAPH_OPS_PAD_H

#include <stdint.h>

enum { HWNAS_PAD_CONSTANT, HWNAS_PAD_EDGE, HWNAS_PAD_REFLECT, HWNAS_PAD_WRAP }; /* modes */

/* Of the value at `i` of a dimension of `n`, before or behind it as well; -1: from nowhere.
 */
static inline int64_t hwnas_pad_source(int64_t i, int64_t n, int64_t mode)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case HWNAS_PAD_EDGE:
        return i < 0 ? 0 : n - 1;
    case HWNAS_PAD_REFLECT:
        return i < 0 ? -i : 2 * (n - 1) - i;
    case HWNAS_PAD_WRAP:
        return i < 0 ? i + n : i - n;
    }
    return -1;
}

#endif
