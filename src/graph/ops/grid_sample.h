/* grid_sample.h: of which pixels a value between them is made. */
#ifndef HWNAS_GRAPH_OPS_GRID_SAMPLE_H
#define HWNAS_GRAPH_OPS_GRID_SAMPLE_H

#include "graph/op.h"

enum { HWNAS_SAMPLE_LINEAR, HWNAS_SAMPLE_NEAREST, HWNAS_SAMPLE_CUBIC };    /* modes */
enum { HWNAS_SAMPLE_ZEROS, HWNAS_SAMPLE_BORDER, HWNAS_SAMPLE_REFLECTION }; /* beyond the image */
enum { HWNAS_SAMPLE_MAX_TAPS = 4 };                                        /* along an axis */

typedef struct hwnas_sampling {
    int64_t mode, padding;
    bool is_aligned; /* -1 and 1 are the centres of the outermost pixels, not their outer edges */
} hwnas_sampling;

hwnas_sampling hwnas_sampling_of(const hwnas_node *node);

/* Along an axis of `n` pixels, for the place `x` of a grid, -1 to 1: where the pixels are, -1 for
 * one that counts as zero, and their weights; how many, which is the same for each place. */
int hwnas_sample_taps(int64_t *at, float *weights, const hwnas_sampling *how, float x, int64_t n);

#endif
