#include "measure/pace.h"

#include <math.h>

#include "base/clock.h"

enum { RUN_OF_READINGS = 8 };
enum { CHAIN_ROUNDS = 64, CHAIN_ADDS = 64, WIDE_ROUNDS = 256, WIDE_ADDS = 48 };

/* A core to itself reads 97 to 100 % of its widest, a shared one 40 to 65 %; docs/measuring.md. */
static const double SHARED = 0.85;
/* Every x86 core with AVX2 adds four numbers in a cycle (Haswell and Zen 1 on; A. Fog,
 * "The microarchitecture of Intel, AMD and VIA CPUs"), so a reading below three is a shared one. */
static const double ASSUMED_WIDTH = 4 * 0.9;

#define EIGHT_TIMES(text) text text text text text text text text

#if defined __x86_64__
#define CHAIN "add %1, %0\n\t"
#define WIDE "add %6, %0\n\tadd %6, %1\n\tadd %6, %2\n\tadd %6, %3\n\tadd %6, %4\n\tadd %6, %5\n\t"
#elif defined __aarch64__
#define CHAIN "add %0, %0, %1\n\t"
#define WIDE                                                                                       \
    "add %0, %0, %6\n\tadd %1, %1, %6\n\tadd %2, %2, %6\n\t"                                       \
    "add %3, %3, %6\n\tadd %4, %4, %6\n\tadd %5, %5, %6\n\t"
#endif

hwnas_pace hwnas_pace_read(void)
{
    hwnas_pace pace = {.hertz = NAN, .width = NAN};
#ifdef CHAIN
    unsigned long a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, one = 1;
    const double start = hwnas_now();
    for (int i = 0; i < CHAIN_ROUNDS; i++)
        __asm__ volatile(EIGHT_TIMES(EIGHT_TIMES(CHAIN)) : "+r"(a) : "r"(one));
    const double middle = hwnas_now();
    for (int i = 0; i < WIDE_ROUNDS; i++)
        __asm__ volatile(EIGHT_TIMES(WIDE)
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)
                         : "r"(one));
    const double end = hwnas_now();
    pace.hertz = CHAIN_ROUNDS * CHAIN_ADDS / (middle - start);
    pace.width = WIDE_ROUNDS * WIDE_ADDS / (end - middle) / pace.hertz;
#endif
    return pace;
}

double hwnas_pace_assumed(void)
{
#if defined __x86_64__
    return __builtin_cpu_supports("avx2") ? ASSUMED_WIDTH : 0;
#else
    return 0;
#endif
}

bool hwnas_pace_is_shared(hwnas_pace_best *best, hwnas_pace pace, double assumed)
{
    if (isnan(pace.width))
        return false;
    if (best->width == 0)
        best->width = assumed;
    /* An interrupt within the chain makes the rest look wide, and so does a clock rate that rises
     * meanwhile. One such reading in thousands must not make every core a shared one ever after, so
     * what all readings of a run reach is believed. */
    best->least = best->n == 0 ? pace.width : fmin(best->least, pace.width);
    if (++best->n == RUN_OF_READINGS) {
        best->width = fmax(best->width, best->least);
        best->n = 0;
    }
    return pace.width < SHARED * best->width;
}
