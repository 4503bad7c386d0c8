/* examples.h: what a linear layer sees at rows, a line for each. */
#ifndef HWNAS_INHERIT_EXAMPLES_H
#define HWNAS_INHERIT_EXAMPLES_H

#include "inherit/layer.h"
#include "inherit/least_squares.h"

/* A position of a sample, and where its target is. */
typedef struct hwnas_row {
    int64_t target, sample, position;
} hwnas_row;

typedef struct hwnas_row_list {
    int64_t n;
    hwnas_row *at; /* heap */
} hwnas_row_list;

/* All rows of a plan. */
hwnas_row_list hwnas_rows_of(const hwnas_layer_layout *layout, const hwnas_row_plan *plan);

/* The windows of channels [begin, end) of an image, whose values are given, that a convolution
 * sees; out->at is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_examples_windows(hwnas_matrix *out, const hwnas_graph *graph,
                                                  const hwnas_node *node, const float *values,
                                                  const hwnas_row_list *rows, int64_t begin,
                                                  int64_t end);
/* The features that a fully connected layer, or a bias, sees. */
HWNAS_CHECKED hwnas_status hwnas_examples_features(hwnas_matrix *out, const hwnas_row_list *rows,
                                                   const float *values,
                                                   const hwnas_layer_layout *layout,
                                                   int64_t n_features);

#endif
