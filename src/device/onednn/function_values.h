/* function_values.h: elementary functions without a branch or a call, so that loops of them become
 * vectors. What is not a number stays so, and what is infinite is as in math.h. */
#ifndef HWNAS_DEVICE_ONEDNN_FUNCTION_VALUES_H
#define HWNAS_DEVICE_ONEDNN_FUNCTION_VALUES_H

#include <math.h>
#include <string.h>

#include "device/onednn/simd.h"

HWNAS_INLINE uint32_t hwnas_word_of(float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

HWNAS_INLINE float hwnas_float_of(uint32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

HWNAS_INLINE float hwnas_size_of(float x)
{
    return hwnas_float_of(hwnas_word_of(x) & 0x7fffffffu);
}

/* `a` or `b`, without the jump that GCC makes of `condition ? a : b` where one takes long. */
HWNAS_INLINE float hwnas_pick(int condition, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)condition;
    return hwnas_float_of((hwnas_word_of(a) & mask) | (hwnas_word_of(b) & ~mask));
}

/* `size` with the sign of `x`. */
HWNAS_INLINE float hwnas_signed(float size, float x)
{
    return hwnas_float_of(hwnas_word_of(size) | (hwnas_word_of(x) & 0x80000000u));
}

/* As hwnas_exp(), over the whole range: 0 where the result would be denormal. */
HWNAS_INLINE float hwnas_exp_of(float x)
{
    const float shifted = x * 1.44269504f + 12582912.0f;
    const uint32_t power = hwnas_word_of(shifted) << 23;
    const float n = shifted - 12582912.0f;
    const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 8.3125e-3f * r + 4.189033e-2f;
    p = p * r + 1.6667115e-1f;
    p = p * r + 4.999923e-1f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    p = hwnas_float_of(hwnas_word_of(p) + power);
    p = hwnas_pick(x > 88.72283f, INFINITY, p);
    p = hwnas_pick(x < -87.33654f, 0.0f, p);
    return hwnas_pick(x != x, x, p);
}

/* e^x - 1, exact near 0 as well: there x + x^2/2 + ... (the terms up to x^7 / 7!). */
HWNAS_INLINE float hwnas_expm1_of(float x)
{
    float near = x * 1.9841270e-4f + 1.3888889e-3f;
    near = near * x + 8.3333333e-3f;
    near = near * x + 4.1666667e-2f;
    near = near * x + 1.6666667e-1f;
    near = near * x + 0.5f;
    near = near * x * x + x;
    const float far = hwnas_exp_of(x) - 1.0f;
    return hwnas_pick(hwnas_size_of(x) < 0.5f, near, far);
}

/* S. L. Moshier, Cephes: logf. A mantissa between sqrt(1/2) and sqrt(2), and a power of 2. */
HWNAS_INLINE float hwnas_log_of(float x)
{
    const float wide = hwnas_pick(x < 1.17549435e-38f, x * 8388608.0f, x);
    const float less = hwnas_pick(x < 1.17549435e-38f, 23.0f, 0.0f);
    const uint32_t word = hwnas_word_of(wide) - 0x3f3504f3u; /* of sqrt(1/2) */
    const float e = (float)((int32_t)word >> 23) - less;
    const float m = hwnas_float_of((word & 0x007fffffu) + 0x3f3504f3u) - 1.0f, z = m * m;
    float p = 7.0376836292e-2f * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * z + e * -2.12194440e-4f - 0.5f * z + m + e * 0.693359375f;
    p = hwnas_pick(x == 0, -INFINITY, p);
    p = hwnas_pick(x < 0, NAN, p);
    return hwnas_pick(x < INFINITY, p, x);
}

/* A quotient of polynomials of degrees 13 and 6, as in Eigen: within 3e-7, relative near 0 too. */
HWNAS_INLINE float hwnas_tanh_of(float x)
{
    const float end = 7.90531110763549805f, most = hwnas_pick(x > end, end, x);
    const float v = hwnas_pick(most < -end, -end, most), z = v * v;
    float p = -2.76076847742355e-16f * z + 2.00018790482477e-13f;
    p = p * z - 8.60467152213735e-11f;
    p = p * z + 5.12229709037114e-08f;
    p = p * z + 1.48572235717979e-05f;
    p = p * z + 6.37261928875436e-04f;
    p = p * z + 4.89352455891786e-03f;
    float q = 1.19825839466702e-06f * z + 1.18534705686654e-04f;
    q = q * z + 2.26843463243900e-03f;
    q = q * z + 4.89352518554385e-03f;
    return v * p / q;
}

/* N. Juffa's: a polynomial near 0, and 1 - e^-p of another beyond. */
HWNAS_INLINE float hwnas_erf_of(float x)
{
    const float size = hwnas_size_of(x), z = x * x, t = hwnas_pick(size > 4.0f, 4.0f, size);
    float far = -1.72853470e-5f * t + 3.83197126e-4f;
    far = far * t - 3.88396438e-3f;
    far = far * t + 2.42546219e-2f;
    far = far * t - 1.06777877e-1f;
    far = far * t - 6.34846687e-1f;
    far = far * t - 1.28717512e-1f;
    far = far * t - t;
    far = 1.0f - hwnas_exp_of(far);
    float near = -5.96761703e-4f * z + 4.99119423e-3f;
    near = near * z - 2.67681349e-2f;
    near = near * z + 1.12819925e-1f;
    near = near * z - 3.76125336e-1f;
    near = near * z + 1.28379166e-1f;
    near = near * x + x;
    return hwnas_pick(size > 0.927734375f, hwnas_signed(far, x), near);
}

/* The nearest whole number, halves to even. From 2^23 on all are. */
HWNAS_INLINE float hwnas_round_of(float x)
{
    const float size = hwnas_size_of(x), rounded = size + 8388608.0f - 8388608.0f;
    return hwnas_pick(size < 8388608.0f, hwnas_signed(rounded, x), x);
}

HWNAS_INLINE float hwnas_floor_of(float x)
{
    const float rounded = hwnas_round_of(x);
    const float floor = hwnas_pick(rounded > x, rounded - 1.0f, rounded);
    return hwnas_signed(hwnas_size_of(floor), x);
}

/* x^y by the logarithm of |x|, whose error y multiplies. `sign`: what to multiply that of a
 * negative x with, which y decides: 1, -1 or NAN. */
HWNAS_INLINE float hwnas_pow_of(float x, float y, float sign)
{
    const float size = hwnas_exp_of(y * hwnas_log_of(hwnas_size_of(x)));
    return hwnas_pick(x < 0, size * sign, size);
}

/* S. L. Moshier, Cephes: sinf, cosf. What is left of x when `n` quarters of a turn are taken off,
 * in three parts of pi / 2: within 1e-7 of a result up to HWNAS_MOST_TURNED. `quarters`: 1 for a
 * cosine. */
#define HWNAS_MOST_TURNED 8192.0f
HWNAS_INLINE float hwnas_sin_of(float x, uint32_t quarters)
{
    const float shifted = x * 0.636619772f + 12582912.0f, n = shifted - 12582912.0f;
    const uint32_t turn = hwnas_word_of(shifted) + quarters;
    const float r = x - n * 1.5703125f - n * 4.837512969970703125e-4f - n * 7.549789948768648e-8f;
    const float z = r * r;
    float sine = -1.9515295891e-4f * z + 8.3321608736e-3f;
    sine = sine * z - 1.6666654611e-1f;
    sine = sine * z * r + r;
    float cosine = 2.443315711809948e-5f * z - 1.388731625493765e-3f;
    cosine = cosine * z + 4.166664568298827e-2f;
    cosine = cosine * z * z - 0.5f * z + 1.0f;
    const float size = hwnas_pick((turn & 1) != 0, cosine, sine);
    return hwnas_float_of(hwnas_word_of(size) ^ ((turn & 2) << 30));
}

#endif
