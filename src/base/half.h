/* half.h: floats of 16 bits.
 *
 * Rounded to the nearest, of two the even one (IEEE 754, roundTiesToEven), as processors and GPUs
 * do. In plain C, since not every compiler has a type for them. */
#ifndef HWNAS_BASE_HALF_H
#define HWNAS_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* binary16: 5 bits of exponent, 10 of fraction. Above 65519.99 it is infinite; NaN stays NaN. */
uint16_t hwnas_half_of(float value);
float hwnas_half_value(uint16_t half);

/* bfloat16: the upper half of a float; NaN stays one, whatever is cut off. Without jumps, so that
 * loops of them become vectors. */
static inline __attribute__((always_inline)) uint16_t hwnas_bfloat16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : rounded) >> 16);
}

static inline __attribute__((always_inline)) float hwnas_bfloat16_value(uint16_t bfloat16)
{
    const uint32_t bits = (uint32_t)bfloat16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
