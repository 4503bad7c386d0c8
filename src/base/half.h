/* half.h: floats of 16 bits.
 *
 * Rounded to the nearest, of two the even one (IEEE 754, roundTiesToEven), as processors and GPUs
 * do. In plain C, since not every compiler has a type for them. */
#ifndef HWNAS_BASE_HALF_H
#define HWNAS_BASE_HALF_H

#include <stdint.h>

/* binary16: 5 bits of exponent, 10 of fraction. Above 65519.99 it is infinite; NaN stays NaN. */
uint16_t hwnas_half_of(float value);
float hwnas_half_value(uint16_t half);

/* bfloat16: the upper half of a float. */
uint16_t hwnas_bfloat16_of(float value);
float hwnas_bfloat16_value(uint16_t bfloat16);

#endif
