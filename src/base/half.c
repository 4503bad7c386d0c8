#include "base/half.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint16_t hwnas_half_of(float value)
{
    const uint32_t bits = bits_of(value), size = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 0x477ff000) /* 65520, half way to what would be 2^16 */
        return sign | 0x7c00;
    if (size < 0x38800000) /* 2^-14: subnormal, a multiple of 2^-24; rintf rounds to even */
        return sign | (uint16_t)rintf(fabsf(value) * 0x1p24f);
    const uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return sign | (uint16_t)((rounded - 0x38000000) >> 13); /* the bias is 15 in the place of 127 */
}

float hwnas_half_value(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent == 0
                           ? ldexpf((float)fraction, -24)
                           : ldexpf((float)(fraction + 0x400), exponent - 25);
    return half & 0x8000 ? -size : size;
}
