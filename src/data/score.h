/* score.h: how well outputs agree with labels, or with another network's outputs; added up batch by
 * batch. Each figure comes with its 95 % interval over the samples. */
#ifndef HWNAS_DATA_SCORE_H
#define HWNAS_DATA_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

typedef enum hwnas_task {
    HWNAS_TASK_AUTO,     /* what the shapes say */
    HWNAS_TASK_CLASSIFY, /* outputs: a value for each class; a label is its number */
    HWNAS_TASK_TOKENS,   /* the same at each of several positions; label -100 does not count */
    HWNAS_TASK_REGRESS,  /* outputs and labels are numbers, as many */
    HWNAS_TASK_NONE,     /* no labels */
    HWNAS_N_TASKS
} hwnas_task;

const char *hwnas_task_name(hwnas_task task); /* "classify", ... */
HWNAS_CHECKED hwnas_status hwnas_task_find(hwnas_task *out, const char *name);

/* Of one sample: what a network gives, and what the labels have. */
typedef struct hwnas_score_shape {
    hwnas_task task;
    int64_t positions, values; /* CLASSIFY, TOKENS: values are classes; else positions is 1 */
    bool are_probabilities;    /* the outputs went through a softmax */
} hwnas_score_shape;

/* Whether a network's first output went through a softmax. */
bool hwnas_gives_probabilities(const hwnas_graph *graph);
/* Settles the task: `out->task` is what is asked for. Dimensions are without the batch; no labels:
 * `label_rank` is -1. */
HWNAS_CHECKED hwnas_status hwnas_score_settle(hwnas_score_shape *out, int output_rank,
                                              const int64_t *output_dims, int label_rank,
                                              const int64_t *label_dims);

/* A sum over samples of a value and of what it is a share of, as sums: their quotient. */
typedef struct hwnas_ratio {
    double n, a, b, aa, ab, bb;
} hwnas_ratio;

typedef struct hwnas_estimate_95 {
    double value, low, high; /* NaN: not known */
} hwnas_estimate_95;

/* Of so many out of `n`: Wilson's interval (Wilson 1927, "Probable inference, the law of
 * succession, and statistical inference", JASA 22), which holds for shares near 0 and 1 too. */
hwnas_estimate_95 hwnas_share_interval(double count, double n);

void hwnas_ratio_add(hwnas_ratio *ratio, double a, double b);
/* sum a / sum b with the normal interval of a ratio's linearisation (Cochran, "Sampling
 * Techniques", 3rd ed., section 2.11); where all b are 1, that of a mean. NaN at the ends with
 * fewer than two samples. */
hwnas_estimate_95 hwnas_ratio_interval(const hwnas_ratio *ratio);

typedef struct hwnas_scoring {
    hwnas_score_shape shape;
    int64_t n, not_finite;        /* samples; of them, with an output that is no finite number */
    double right, right5;         /* CLASSIFY: samples; a tie goes to the first */
    hwnas_ratio top1, top5, loss; /* TOKENS: a sample's sum over its tokens */
    hwnas_ratio square, absolute; /* REGRESS: a sample's mean error */
    size_t capacity;
    double *squares; /* REGRESS: by sample, and its labels */
    double *targets;
} hwnas_scoring;

void hwnas_score_init(hwnas_scoring *score, hwnas_score_shape shape);
void hwnas_score_done(hwnas_scoring *score);
/* That `n` samples' labels, the next to be added, are those of such outputs, as below. */
HWNAS_CHECKED hwnas_status hwnas_score_check_labels(const hwnas_scoring *score,
                                                    const double *labels, int64_t n);
/* Whether an accuracy by the labels of every `step`th of `n` samples, from the first, is defined:
 * some of them count, and numbers are not all the same. */
bool hwnas_score_is_defined(const hwnas_score_shape *shape, const double *labels, int64_t n,
                            int64_t step);
/* `n` samples: outputs and labels, one sample behind the other. A label that is no class is
 * HWNAS_E_INPUT, which says its sample; nothing of the batch counts then. */
HWNAS_CHECKED hwnas_status hwnas_score_add(hwnas_scoring *score, const float *outputs,
                                           const double *labels, int64_t n);
/* REGRESS: 1 - sum of squared errors / sum of squared deviations from the mean label, both over all
 * values, each value's mean its own; NaN: all labels of each value are the same, but for rounding.
 */
hwnas_estimate_95 hwnas_score_r2(const hwnas_scoring *score);
/* In percent: top-1, of numbers 100 r2. */
hwnas_estimate_95 hwnas_score_accuracy(const hwnas_scoring *score);

/* Outputs of a network against those of its original. */
typedef struct hwnas_agreement {
    int64_t n, positions, values;      /* as above; positions 0: no classes */
    double same, largest;              /* samples of one top class; the largest difference */
    hwnas_ratio same_positions, noise; /* noise: squared differences over squared values */
} hwnas_agreement;

void hwnas_agreement_add(hwnas_agreement *agreement, const float *outputs, const float *originals,
                         int64_t n);
/* Signal to quantisation noise in dB: 10 log10(sum of squares of the original / of differences);
 * infinite where there are none. */
hwnas_estimate_95 hwnas_agreement_sqnr(const hwnas_agreement *agreement);

#endif
