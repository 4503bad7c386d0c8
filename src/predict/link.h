/* link.h: the scale on which a target is modelled.
 *
 * Accuracies crowd under a ceiling: a change that is worth three points to a weak network is worth
 * half a point to a strong one. On the scale -log(ceiling - y) the effects of choices nearly add
 * up. Targets that crowd over a floor (perplexity, error) have the mirror image. Which scale, and
 * how far the limit lies beyond the best row, is chosen by cross-validation among the candidates.
 */
#ifndef HWNAS_PREDICT_LINK_H
#define HWNAS_PREDICT_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { HWNAS_N_LINKS = 7 };

typedef struct hwnas_link {
    const char *name;   /* "plain", "ceiling", "floor" */
    int side;           /* 0, +1: values lie below the limit, -1: above it */
    double limit;       /* 0 for plain */
    double mean, scale; /* of the transformed values that it was made for */
} hwnas_link;

/* Candidate 0 <= i < HWNAS_N_LINKS for these values. */
void hwnas_link_make(hwnas_link *out, int i, const double *values, size_t n);
/* Its side; false when there is no such name. */
bool hwnas_link_named(hwnas_link *out, const char *name);

double hwnas_link_apply(const hwnas_link *link, double value);
/* Back to the target's unit; *slope is the size of the derivative there. */
double hwnas_link_invert(const hwnas_link *link, double t, double *slope);
/* The same of a value; NaN: it is beyond the limit. */
double hwnas_link_slope(const hwnas_link *link, double value);

#endif
