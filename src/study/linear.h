/* linear.h: what a study's own measurements say of networks that it has not measured.
 *
 * Ridge regression of the logarithm of a value on the choices of an architecture, one indicator a value,
 * and on the logarithms of its MACs and parameters. It is there to explain, not to search: its error, by
 * five-fold cross-validation, stands beside each of its values. */
#ifndef HWNAS_STUDY_LINEAR_H
#define HWNAS_STUDY_LINEAR_H

#include "space/arch.h"

typedef struct hwnas_linear hwnas_linear;

enum { HWNAS_LINEAR_LEAST = 20 }; /* fewer rows than that say nothing */

/* Values are above 0; NULL for too few rows. Everything is copied but the space of the architectures. */
hwnas_linear *hwnas_linear_fit(const hwnas_arch *const *archs, const double *macs,
                                     const double *params, const double *values, size_t n);
void hwnas_linear_free(hwnas_linear *linear); /* accepts NULL */

double hwnas_linear_predict(const hwnas_linear *linear, const hwnas_arch *arch,
                               double macs, double params);
/* Median of |predicted / true - 1| on left-out rows. */
double hwnas_linear_error(const hwnas_linear *linear);

#endif
