/* mix_report.h: which layers of a network are of bytes, and what comes of it. */
#ifndef HWNAS_REPORT_MIX_REPORT_H
#define HWNAS_REPORT_MIX_REPORT_H

#include <jansson.h>

#include "base/str.h"
#include "precision/mix.h"

typedef struct hwnas_mix_report {
    char *model; /* heap; so `file` */
    char *file;
    int batch, threads;  /* threads 0: all */
    long long n_samples; /* 0: random inputs */
    long long n_held_out; /* samples with labels that did not choose; 0: there are no labels */
    const char *metric;   /* that accuracy is: "top1", "r2"; NULL: there are no labels; static */
    double max_error;     /* infinite: only accuracy judges */
    double max_loss;      /* points of accuracy; NaN: there are no labels */
    hwnas_mix mix;
} hwnas_mix_report;
void hwnas_mix_report_free(hwnas_mix_report *report); /* accepts NULL */

void hwnas_mix_text(hwnas_str *out, const hwnas_mix_report *report);
json_t *hwnas_mix_json(const hwnas_mix_report *report); /* "hwnas.mix", a new reference */

#endif
