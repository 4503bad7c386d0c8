/* output_error.h: how far one computation of a tensor is from another. */
#ifndef HWNAS_PRECISION_OUTPUT_ERROR_H
#define HWNAS_PRECISION_OUTPUT_ERROR_H

#include <stddef.h>

typedef struct hwnas_output_error {
    double largest; /* difference, relative to the largest value of its output */
    double noise;   /* root of mean square of the differences to that of the values */
} hwnas_output_error;

/* Sums over samples, for one tensor; zeroed at first. */
typedef struct hwnas_error_sums {
    double values, differences; /* of squares */
    double value, difference;   /* the largest magnitude; infinite where one side alone is finite */
    size_t n_finite, n_others;  /* values that are finite somewhere, and on neither side */
} hwnas_error_sums;

/* `n` values more. What is finite on neither side is equal: which of infinity and NaN it is, is a
 * matter of the order of sums. */
void hwnas_error_add(hwnas_error_sums *sums, const float *got, const float *right, size_t n);
/* Of a tensor of zeros the differences themselves. Infinite where no value is finite: that says
 * nothing. */
hwnas_output_error hwnas_error_of(const hwnas_error_sums *sums);

#endif
