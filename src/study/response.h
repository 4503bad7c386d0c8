/* response.h: how a measured value responds to the choices of a space, as far as one study knows.
 *
 * A Gaussian process (predict/gp.h) of the value's logarithm over the choices and the logarithms of MACs
 * and parameters. It is there to explain, not to search: its error, by five-fold cross-validation, is
 * told beside what it says. */
#ifndef HWNAS_STUDY_RESPONSE_H
#define HWNAS_STUDY_RESPONSE_H

#include "space/arch.h"

typedef struct hwnas_response hwnas_response;

/* Fewer rows say nothing; of more than the most, as many are drawn. */
enum { HWNAS_RESPONSE_LEAST = 20, HWNAS_RESPONSE_MOST = 400 };

/* Values are above 0. NULL in `out` for too few rows. Borrows the space of the architectures. */
HWNAS_CHECKED hwnas_status hwnas_response_fit(hwnas_response **out,
                                              const hwnas_arch *const *archs, const double *macs,
                                              const double *params, const double *values, size_t n);
void hwnas_response_free(hwnas_response *response); /* accepts NULL */

/* The median, and where the value lies with one standard deviation either way. */
void hwnas_response_predict(double *out, double *low, double *high, const hwnas_response *response,
                            const hwnas_arch *arch, double macs, double params);
/* Median of |predicted / true - 1| on left-out rows. */
double hwnas_response_error(const hwnas_response *response);

#endif
