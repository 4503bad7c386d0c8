/* simd.h: sixteen floats at a time, for the loops of ours that matter.
 *
 * The compiler makes of them what the processor has: HWNAS_CLONES asks for a version for each level
 * of the instruction set, of which the right one is taken when the program starts. Vectors pass
 * between functions by pointer, since how they are passed else depends on that level. */
#ifndef HWNAS_DEVICE_SIMD_H
#define HWNAS_DEVICE_SIMD_H

#include <stdint.h>

enum { HWNAS_LANES = 16, HWNAS_HALF_LANES = HWNAS_LANES / 2 };

/* Loads and stores of them need no alignment. */
typedef float hwnas_vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t hwnas_whole_vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t hwnas_word_vector __attribute__((vector_size(64), aligned(4), may_alias));
/* Of half the length, for what has to stay in registers with AVX2: vectors that are longer than
 * these GCC 12 keeps in memory. */
typedef float hwnas_half __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t hwnas_whole_half __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t hwnas_word_half __attribute__((vector_size(32), aligned(4), may_alias));

/* Before a loop whose turns are independent, and become vectors. Clang needs no pragma for it, and
 * warns where it is told not to optimise. */
#if defined(__clang__)
#define HWNAS_SIMD
#else
#define HWNAS_SIMD _Pragma("omp simd")
#endif
#define HWNAS_EACH_OF(i, n) HWNAS_SIMD for (int i = 0; i < (n); i++)
#define HWNAS_EACH_LANE(i) HWNAS_EACH_OF(i, HWNAS_LANES)
#if defined(__x86_64__) && !defined(__clang__) && !defined(HWNAS_SANITIZED)
#define HWNAS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HWNAS_CLONES
#endif
#define HWNAS_INLINE static inline __attribute__((always_inline))

/* Asks for what is read soon, in the second cache: of lines that are asked for there a core can
 * wait for more than of those on their way to the first. */
HWNAS_INLINE void hwnas_prefetch(const void *at)
{
    __builtin_prefetch(at, 0, 2);
}

HWNAS_INLINE void hwnas_load(hwnas_vector *out, const float *from)
{
    *out = *(const hwnas_vector *)from;
}

HWNAS_INLINE void hwnas_store(float *to, const hwnas_vector *v)
{
    *(hwnas_vector *)to = *v;
}

/* The lanes from `step` on, which is a power of 2, at the beginning: a reduction in four steps,
 * from half of the lanes on down. What is behind them is of no use. */
HWNAS_INLINE void hwnas_lanes_from(hwnas_vector *out, const hwnas_vector *v, int step)
{
    const hwnas_vector x = *v;
    *out =
        step == 8   ? __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12,
                                              13, 14, 15)
        : step == 4 ? __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7)
        : step == 2 ? __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3)
                    : __builtin_shufflevector(x, x, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

HWNAS_INLINE float hwnas_sum(const hwnas_vector *v)
{
    hwnas_vector sums = *v, half;
    for (int n = HWNAS_LANES / 2; n; n /= 2) {
        hwnas_lanes_from(&half, &sums, n);
        sums += half;
    }
    return sums[0];
}

/* Comparisons are loops over the lanes, which the compiler turns into instructions for vectors as
 * long as the processor's. Of a comparison of two vectors GCC 12 makes a jump for each lane where
 * they are longer than those: three to ten times as slow with AVX2. */

/* CHOOSE: each lane, where a < b that of x, else that of y. CLAMP: each value, or the bound that it
 * is beyond; two loops are two instructions, of one GCC 12 makes six. */
#define HWNAS_COMPARISONS(VECTOR, N, CHOOSE, CLAMP)                                                \
    HWNAS_INLINE void CHOOSE(VECTOR *out, const VECTOR *a, const VECTOR *b, const VECTOR *x,       \
                             const VECTOR *y)                                                      \
    {                                                                                              \
        VECTOR chosen;                                                                             \
        float *to = (float *)&chosen;                                                              \
        HWNAS_EACH_OF(i, N)                                                                        \
        to[i] = ((const float *)a)[i] < ((const float *)b)[i] ? ((const float *)x)[i]              \
                                                              : ((const float *)y)[i];             \
        *out = chosen;                                                                             \
    }                                                                                              \
    HWNAS_INLINE void CLAMP(VECTOR *out, const VECTOR *in, float low, float high)                  \
    {                                                                                              \
        VECTOR most, kept;                                                                         \
        float *to = (float *)&most;                                                                \
        HWNAS_EACH_OF(i, N)                                                                        \
        to[i] = ((const float *)in)[i] > high ? high : ((const float *)in)[i];                     \
        to = (float *)&kept;                                                                       \
        HWNAS_EACH_OF(i, N)                                                                        \
        to[i] = ((const float *)&most)[i] < low ? low : ((const float *)&most)[i];                 \
        *out = kept;                                                                               \
    }
HWNAS_COMPARISONS(hwnas_vector, HWNAS_LANES, hwnas_choose_less, hwnas_clamp)
HWNAS_COMPARISONS(hwnas_half, HWNAS_HALF_LANES, hwnas_choose_half, hwnas_clamp_half)

/* Each lane becomes the greater of both. */
HWNAS_INLINE void hwnas_keep_greater(hwnas_vector *most, const hwnas_vector *x)
{
    hwnas_choose_less(most, most, x, x, most);
}

HWNAS_INLINE float hwnas_greatest(const hwnas_vector *v)
{
    hwnas_vector most = *v, half;
    for (int n = HWNAS_LANES / 2; n; n /= 2) {
        hwnas_lanes_from(&half, &most, n);
        hwnas_keep_greater(&most, &half);
    }
    return most[0];
}

/* e^x = 2^n e^r with |r| <= ln 2 / 2, and for e^r the polynomial of degree 5 that begins with 1 + r
 * and has the least relative error there (1.1e-7): within 3e-7, relative. Beyond +-87 as at +-87.
 */
#define HWNAS_EXPONENTIALS(VECTOR, WHOLE, CLAMP, EXP, SIGMOID, TANH)                               \
    HWNAS_INLINE void EXP(VECTOR *out, const VECTOR *in)                                           \
    {                                                                                              \
        VECTOR x;                                                                                  \
        CLAMP(&x, in, -87.0f, 87.0f);                                                              \
        /* 1.5 * 2^23: what is added to it is rounded to a whole number, in its last bits; its own \
         * last nine bits are 0. */                                                                \
        VECTOR n = x * 1.44269504f + 12582912.0f;                                                  \
        const WHOLE power = (WHOLE)n << 23;                                                        \
        n -= 12582912.0f;                                                                          \
        const VECTOR r = x - n * 0.693359375f + n * 2.12194440e-4f;                                \
        VECTOR p = 8.3125e-3f * r + 4.189033e-2f;                                                  \
        p = p * r + 1.6667115e-1f;                                                                 \
        p = p * r + 4.999923e-1f;                                                                  \
        p = p * r + 1.0f;                                                                          \
        p = p * r + 1.0f;                                                                          \
        *out = (VECTOR)((WHOLE)p + power);                                                         \
    }                                                                                              \
    HWNAS_INLINE void SIGMOID(VECTOR *out, const VECTOR *in)                                       \
    {                                                                                              \
        VECTOR e = -*in;                                                                           \
        EXP(&e, &e);                                                                               \
        *out = 1.0f / (1.0f + e);                                                                  \
    }                                                                                              \
    HWNAS_INLINE void TANH(VECTOR *out, const VECTOR *in)                                          \
    {                                                                                              \
        VECTOR e = *in * -2.0f;                                                                    \
        EXP(&e, &e);                                                                               \
        *out = (1.0f - e) / (1.0f + e);                                                            \
    }
HWNAS_EXPONENTIALS(hwnas_vector, hwnas_whole_vector, hwnas_clamp, hwnas_exp, hwnas_sigmoid,
                   hwnas_tanh)
HWNAS_EXPONENTIALS(hwnas_half, hwnas_whole_half, hwnas_clamp_half, hwnas_exp_half,
                   hwnas_sigmoid_half, hwnas_tanh_half)

#endif
