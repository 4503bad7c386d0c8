/* differences_text.h: two computations of a network, node by node, for people and for programs. */
#ifndef HWNAS_REPORT_DIFFERENCES_TEXT_H
#define HWNAS_REPORT_DIFFERENCES_TEXT_H

#include "precision/differences.h"
#include "report/rendering.h"

typedef struct hwnas_compared_sides {
    const char *models[2], *devices[2];
    hwnas_precision precisions[2];
    size_t n_runs;
    bool are_random;  /* inputs */
    double tolerance; /* of the largest difference, relative to the tensor's largest value */
} hwnas_compared_sides;

/* Text, CSV with a line for each tensor, JSON ("hwnas.differences"). `out` is zeroed, or has more
 * text before. */
void hwnas_differences_render(hwnas_rendering *out, const hwnas_differences *differences,
                              const hwnas_compared_sides *sides);

/* HWNAS_E_WRONG_RESULT names the output that is furthest beyond the tolerance. */
HWNAS_CHECKED hwnas_status hwnas_differences_judge(const hwnas_differences *differences,
                                                   const hwnas_compared_sides *sides);

#endif
