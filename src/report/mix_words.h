/* mix_words.h: which layers of a network are in which precision, and what that costs, in words. */
#ifndef HWNAS_REPORT_MIX_WORDS_H
#define HWNAS_REPORT_MIX_WORDS_H

#include "base/str.h"
#include "data/score.h"

typedef struct hwnas_mix_words {
    int n_s8, n_bf16, n_layers; /* 0 layers: nobody knows how many could be in s8 */
    const char *floats;      /* of the others; NULL: f32 */
    double error, max_error; /* largest difference from f32, a share; not finite: no limit */
    int64_t n_samples;       /* that chose; 0: random inputs */
    const char *samples;     /* whose they are; NULL: nothing is said of it */
    const char *metric;      /* of accuracy; NULL: there were no labels, and so nothing below */
    int64_t n_held_out;
    hwnas_estimate_95 accuracy, f32_accuracy; /* of those, in percent; NaN: not defined */
    const hwnas_estimate_95 *s8_accuracy;     /* of all layers in s8; NULL: not known */
    double max_loss;                          /* points */
    bool is_cut_short; /* not all was tried, as the time of a search was nearly over */
} hwnas_mix_words;

/* A line, and with labels another one behind the margin. */
void hwnas_mix_words_add(hwnas_str *out, const char *margin, const hwnas_mix_words *words);

#endif
