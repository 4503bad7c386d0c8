/* objective_scale.h: the scale on which a model sees a minimised quantity: z = log(y - floor).
 *
 * What is always positive (seconds, counts) acts by its ratio, so its floor is 0. Others, such as a
 * negated accuracy, crowd near their best: the floor lies as far below the best as the median lies
 * above it, so differences count the more the nearer to the best they are. */
#ifndef HWNAS_SEARCH_OBJECTIVE_SCALE_H
#define HWNAS_SEARCH_OBJECTIVE_SCALE_H

#include <stddef.h>

typedef struct hwnas_scale {
    double floor;
    double low, high; /* of z: what lies further out is taken to lie there */
} hwnas_scale;

/* From n > 0 finite values. Low and high are Tukey's outer fences (1977), three times the distance
 * of the quartiles outside of them: one dead network of no latency must not bend the whole model.
 */
hwnas_scale hwnas_scale_fit(const double *values, size_t n);
double hwnas_scale_to(const hwnas_scale *scale, double y);
double hwnas_scale_from(const hwnas_scale *scale, double z);

/* E[max(0, bound - y)] where z is normal: the price of a put option, Black and Scholes, 1973. */
double hwnas_scale_shortfall(const hwnas_scale *scale, double mean, double sd, double bound);

#endif
