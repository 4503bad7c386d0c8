#include "measure/verdict.h"

#include <math.h>

const char *hwnas_verdict_name(hwnas_verdict verdict)
{
    static const char *const names[HWNAS_N_VERDICTS] = {"same", "faster", "slower", "ambiguous"};
    return names[verdict];
}

hwnas_verdict hwnas_verdict_of(double low, double high, double tolerance)
{
    const double most = 1 + tolerance;
    if (low > most)
        return HWNAS_SLOWER;
    if (high < 1 / most)
        return HWNAS_FASTER;
    return low >= 1 / most && high <= most ? HWNAS_SAME : HWNAS_AMBIGUOUS;
}

hwnas_judgement hwnas_judge_timings(hwnas_timing before, hwnas_timing after, double tolerance)
{
    const double ratio = after.p50 / before.p50;
    const double below = hypot(log(after.p50 / after.low), log(before.high / before.p50));
    const double above = hypot(log(after.high / after.p50), log(before.p50 / before.low));
    hwnas_judgement change = {
        .ratio = ratio, .low = ratio * exp(-below), .high = ratio * exp(above)};
    change.verdict = hwnas_verdict_of(change.low, change.high, tolerance);
    return change;
}

hwnas_judgement hwnas_judge_baseline(hwnas_timing before, bool was_unstable,
                                        const hwnas_measurement *now, double tolerance)
{
    const hwnas_timing after = {.p50 = now->p50, .low = now->p50_low, .high = now->p50_high};
    hwnas_judgement change = hwnas_judge_timings(before, after, tolerance);
    if ((was_unstable || now->is_unstable) && change.verdict != HWNAS_SAME)
        change.verdict = HWNAS_AMBIGUOUS;
    return change;
}
