/* modes.h: what is done between samples; one row for each mode of measure.h. */
#ifndef HWNAS_MEASURE_MODES_H
#define HWNAS_MEASURE_MODES_H

#include "measure/measure.h"

struct hwnas_sampler;

typedef struct hwnas_mode_row {
    const char *name;
    /* What the number behind '=' in a spelling is: offset of a double in hwnas_measure_options; 0:
     * nothing. */
    size_t argument;
    /* (optional) Once, after warm-up. */
    hwnas_status (*begin)(struct hwnas_sampler *s);
    /* (optional) Before each sample, outside of its time; a sample is one inference then. */
    hwnas_status (*before)(struct hwnas_sampler *s);
    bool is_whole; /* sampling goes on for the whole budget, and a trend is what is asked for */
} hwnas_mode_row;

extern const hwnas_mode_row hwnas_modes[HWNAS_N_MODES];

#endif
