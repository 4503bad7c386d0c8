#include "predict/gp_loops.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define BODY static inline __attribute__((always_inline))

BODY void add_mismatches(double *restrict sums, const double *restrict x, double value,
                         double weight, size_t n)
{
    for (size_t j = 0; j < n; j++)
        sums[j] += x[j] != value ? weight : 0;
}

BODY void add_distances(double *restrict distances, const double *restrict x, double value,
                        double weight, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const double d = x[j] - value;
        distances[j] += weight * d * d;
    }
}

BODY void add_products(double *restrict products, const double *restrict x, double value, size_t n)
{
    for (size_t j = 0; j < n; j++)
        products[j] += x[j] * value;
}

/* e^-x for x >= 0, as 2^n e^r with |r| <= ln 2 / 2 and Taylor's polynomial of degree 13 for e^r,
 * whose remainder there is 4e-18. ln 2 comes in two pieces, the first with so few bits that n times
 * it is exact (Cody and Waite, "Software Manual for the Elementary Functions", 1980). Without
 * branches or calls, so that a loop over it is vectorised: that is why the bound compares bits,
 * which are in the order of the numbers that they stand for. */
BODY double exp_of_minus(double x)
{
    static const double high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;
    /* What is added to 1.5 * 2^52 is rounded to a whole number, in the last bits of the sum. */
    static const double shift = 0x1.8p52;
    static const int64_t bits_of_700 = 0x4085e00000000000;
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bits < bits_of_700 ? bits : bits_of_700;
    memcpy(&x, &bits, sizeof x);
    const double shifted = shift - x * 0x1.71547652b82fep0, n = shifted - shift;
    const double r = (-x - n * high) - n * low;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = (p * r) * r + r + 1;
    uint64_t result, power;
    memcpy(&result, &p, sizeof result);
    memcpy(&power, &shifted, sizeof power);
    result += power << 52; /* n to the exponent */
    memcpy(&p, &result, sizeof p);
    return p;
}

BODY void finish(double *restrict out, double *restrict distances, double *restrict mismatches,
                 const double *restrict products, double amplitude, double linear, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const double r = sqrt(5 * distances[j]);
        const double decay = exp_of_minus(r + mismatches[j]);
        out[j] = amplitude * (1 + r + r * r * (1.0 / 3)) * decay + linear * products[j];
        distances[j] = r;
        mismatches[j] = decay;
    }
}

BODY void derive(double *restrict distances, double *restrict mismatches,
                 const double *restrict weights, double amplitude, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const double r = distances[j], decay = amplitude * weights[j] * mismatches[j];
        distances[j] = -5.0 / 6 * decay * (1 + r);
        mismatches[j] = -decay * (1 + r + r * r * (1.0 / 3));
    }
}

/* ---- Sums ---- */

/* GCC warns, at the end of the file, of how a vector is returned, which is of no matter to
 * functions that are always inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Several sums side by side, as an addition has to wait for the one before it. */
enum { LANES = 4, N_SUMS = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lane_bits __attribute__((vector_size(LANES * sizeof(int64_t))));
typedef enum { DISTANCE, MISMATCH, PRODUCT } term;

BODY double term_of(term what, double a, double x, double value)
{
    switch (what) {
    case DISTANCE:
        return a * ((x - value) * (x - value));
    case MISMATCH:
        return x != value ? a : 0;
    case PRODUCT:
        break;
    }
    return a * x;
}

BODY lanes terms_of(term what, const double *from_a, const double *from_x, double value)
{
    lanes a, x;
    memcpy(&a, from_a, sizeof a);
    memcpy(&x, from_x, sizeof x);
    switch (what) {
    case DISTANCE:
        return a * ((x - value) * (x - value));
    case MISMATCH:
        return (lanes)((lane_bits)a & (x != value));
    case PRODUCT:
        break;
    }
    return a * x;
}

BODY double sum_terms(term what, const double *a, const double *x, double value, size_t n)
{
    lanes sums[N_SUMS] = {{0}};
    double rest = 0;
    size_t j = 0;
    for (; j + N_SUMS * LANES <= n; j += N_SUMS * LANES)
#pragma GCC unroll 4
        for (size_t k = 0; k < N_SUMS; k++)
            sums[k] += terms_of(what, a + j + k * LANES, x + j + k * LANES, value);
    for (; j < n; j++)
        rest += term_of(what, a[j], x[j], value);
    const lanes all = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    return (all[0] + all[2]) + (all[1] + all[3]) + rest;
}

/* The loops above, compiled once more: functions `name`_mismatches and so on. */
#define COMPILE(name, attributes)                                                                  \
    attributes static void name##_mismatches(double *restrict sums, const double *restrict x,      \
                                             double value, double weight, size_t n)                \
    {                                                                                              \
        add_mismatches(sums, x, value, weight, n);                                                 \
    }                                                                                              \
    attributes static void name##_distances(double *restrict distances, const double *restrict x,  \
                                            double value, double weight, size_t n)                 \
    {                                                                                              \
        add_distances(distances, x, value, weight, n);                                             \
    }                                                                                              \
    attributes static void name##_products(double *restrict products, const double *restrict x,    \
                                           double value, size_t n)                                 \
    {                                                                                              \
        add_products(products, x, value, n);                                                       \
    }                                                                                              \
    attributes static void name##_finish(                                                          \
        double *restrict out, double *restrict distances, double *restrict mismatches,             \
        const double *restrict products, double amplitude, double linear, size_t n)                \
    {                                                                                              \
        finish(out, distances, mismatches, products, amplitude, linear, n);                        \
    }                                                                                              \
    attributes static void name##_derive(double *restrict distances, double *restrict mismatches,  \
                                         const double *restrict weights, double amplitude,         \
                                         size_t n)                                                 \
    {                                                                                              \
        derive(distances, mismatches, weights, amplitude, n);                                      \
    }                                                                                              \
    attributes static double name##_sum_distances(const double *slopes, const double *x,           \
                                                  double value, size_t n)                          \
    {                                                                                              \
        return sum_terms(DISTANCE, slopes, x, value, n);                                           \
    }                                                                                              \
    attributes static double name##_sum_mismatches(const double *slopes, const double *x,          \
                                                   double value, size_t n)                         \
    {                                                                                              \
        return sum_terms(MISMATCH, slopes, x, value, n);                                           \
    }                                                                                              \
    attributes static double name##_sum_products(const double *a, const double *b, size_t n)       \
    {                                                                                              \
        return sum_terms(PRODUCT, a, b, 0, n);                                                     \
    }
#define LOOPS(name, is_supported)                                                                  \
    {                                                                                              \
#name, is_supported, name##_mismatches, name##_distances, name##_products, name##_finish,  \
            name##_derive, name##_sum_distances, name##_sum_mismatches, name##_sum_products        \
    }

COMPILE(plain, )

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)
/* Not with FMA, nor AVX-512 that brings its own: fused operations round otherwise. */
COMPILE(avx2, __attribute__((target("avx2"))))

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#endif

const hwnas_gp_loops hwnas_gp_loops_all[] = {
#if defined(__x86_64__)
    LOOPS(avx2, has_avx2),
#endif
    LOOPS(plain, always),
};

const hwnas_gp_loops *hwnas_gp_loops_best(void)
{
    const hwnas_gp_loops *loops = hwnas_gp_loops_all;
    while (!loops->is_supported())
        loops++;
    return loops;
}
