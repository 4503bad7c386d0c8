/* verdict.h: is a network faster or slower than it was, or than another?
 *
 * Statistics of two medians, each with its 95 % interval. The ratio after / before gets an interval
 * of its own, and that is held against a tolerance: the smallest change that anybody cares for. */
#ifndef HWNAS_MEASURE_VERDICT_H
#define HWNAS_MEASURE_VERDICT_H

#include "measure/measure.h"

/* With a tolerance t, by the interval of the ratio: */
typedef enum hwnas_verdict {
    HWNAS_SAME,      /* it lies within 1 / (1 + t) and 1 + t */
    HWNAS_FASTER,    /* it lies below 1 / (1 + t) */
    HWNAS_SLOWER,    /* it lies above 1 + t */
    HWNAS_AMBIGUOUS, /* it lies on both sides of a border: more samples are needed, or a quieter
                        hour */
    HWNAS_N_VERDICTS
} hwnas_verdict;

/* "same", "faster", "slower", "ambiguous" */
const char *hwnas_verdict_name(hwnas_verdict verdict);

typedef struct hwnas_judgement {
    hwnas_verdict verdict;
    double ratio, low, high; /* after / before, and its 95 % interval */
} hwnas_judgement;

/* What the interval of a ratio says; `tolerance` is a share, 0.03 for 3 %. */
hwnas_verdict hwnas_verdict_of(double low, double high, double tolerance);

/* Two medians measured apart from each other. The interval of their ratio is made of theirs, on a
 * log scale, by Zou and Donner, "Construction of confidence limits about effect measures: a general
 * approach", Statistics in Medicine 27 (2008): the distances of each end from its middle add up as
 * squares. It knows nothing of what differs between two runs of a program, another placement in
 * memory, another hour; the tolerance has to cover that. */
hwnas_judgement hwnas_judge_timings(hwnas_timing before, hwnas_timing after, double tolerance);

/* A new measurement against a recorded one. Where either is unstable the verdict is at most `same`:
 * a doubtful number accuses nobody. */
hwnas_judgement hwnas_judge_baseline(hwnas_timing before, bool was_unstable,
                                     const hwnas_measurement *now, double tolerance);

#endif
