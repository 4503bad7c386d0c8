/* vector.h: sixteen floats at a time, for the loops of ours that matter.
 *
 * The compiler makes of them what the processor has: HWNAS_CLONES asks for a version for each level
 * of the instruction set, of which the right one is taken when the program starts. Vectors pass
 * between functions by pointer, since how they are passed else depends on that level. */
#ifndef HWNAS_DEVICE_ONEDNN_VECTOR_H
#define HWNAS_DEVICE_ONEDNN_VECTOR_H

#include <stdint.h>

enum { HWNAS_LANES = 16 };

/* Loads and stores of them need no alignment. */
typedef float hwnas_vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t hwnas_whole_vector __attribute__((vector_size(64), aligned(4), may_alias));

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HWNAS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HWNAS_CLONES
#endif
#define HWNAS_INLINE static inline __attribute__((always_inline))

HWNAS_INLINE void hwnas_load(hwnas_vector *out, const float *from)
{
    *out = *(const hwnas_vector *)from;
}

HWNAS_INLINE void hwnas_store(float *to, const hwnas_vector *v)
{
    *(hwnas_vector *)to = *v;
}

HWNAS_INLINE float hwnas_sum(const hwnas_vector *v)
{
    float sums[HWNAS_LANES];
    hwnas_store(sums, v);
    for (int n = HWNAS_LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            sums[i] += sums[i + n];
    return sums[0];
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2, and for e^r the polynomial of Cephes' expf(): within 2e-7,
 * relative. Beyond +-87 as at +-87. */
HWNAS_INLINE void hwnas_exp(hwnas_vector *out, const hwnas_vector *in)
{
    const hwnas_vector zero = {0}, bound = zero + 87.0f;
    hwnas_vector x = *in;
    hwnas_whole_vector mask = x < -bound;
    x = (hwnas_vector)((mask & (hwnas_whole_vector)-bound) | (~mask & (hwnas_whole_vector)x));
    mask = x > bound;
    x = (hwnas_vector)((mask & (hwnas_whole_vector)bound) | (~mask & (hwnas_whole_vector)x));
    /* 1.5 * 2^23: what is added to it is rounded to a whole number, in its last bits. */
    hwnas_vector n = x * 1.44269504f + 12582912.0f;
    const hwnas_whole_vector power = (hwnas_whole_vector)n - 0x4B400000;
    n -= 12582912.0f;
    const hwnas_vector r = x - n * 0.693359375f + n * 2.12194440e-4f;
    hwnas_vector p = 1.9875691e-4f * r + 1.3981999e-3f;
    p = p * r + 8.3334519e-3f;
    p = p * r + 4.1665796e-2f;
    p = p * r + 1.6666665e-1f;
    p = p * r + 5.0000001e-1f;
    p = p * r * r + r + 1.0f;
    *out = (hwnas_vector)((hwnas_whole_vector)p + (power << 23));
}

HWNAS_INLINE void hwnas_sigmoid(hwnas_vector *out, const hwnas_vector *in)
{
    const hwnas_vector minus = -*in;
    hwnas_vector e;
    hwnas_exp(&e, &minus);
    *out = 1.0f / (1.0f + e);
}

HWNAS_INLINE void hwnas_tanh(hwnas_vector *out, const hwnas_vector *in)
{
    const hwnas_vector twice = *in * -2.0f;
    hwnas_vector e;
    hwnas_exp(&e, &twice);
    *out = (1.0f - e) / (1.0f + e);
}

#endif
