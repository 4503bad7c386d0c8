/* int8_loss.h: how much accuracy a network is likely to lose in 8-bit integers.
 *
 * What predictors are fitted to is of floats. Nobody knows what bytes cost a network until it has
 * been run on samples; until then published losses of networks of its family say what is usual, and
 * how much they scatter. */
#ifndef HWNAS_PREDICT_INT8_LOSS_H
#define HWNAS_PREDICT_INT8_LOSS_H

#include <hwnas/graph.h>

typedef struct hwnas_int8_family {
    const char *name;
    int n;           /* networks with a published loss */
    double mean, sd; /* of their losses: points of ImageNet's top-1 accuracy, after training */
} hwnas_int8_family;

/* Closed by a row without a name. The figures are those of tests/data/int8_losses.csv, which says
 * where each is from. Thread-safe. */
extern const hwnas_int8_family hwnas_int8_families[];

/* The family of a network: products of two activations make it one of attention, else convolutions
 * with a group for each channel one of depthwise convolutions. Thread-safe. */
const hwnas_int8_family *hwnas_int8_family_of(const hwnas_graph *graph);

/* The deviation of the loss of one more network of a family: that of the known ones and that of
 * their mean. */
double hwnas_int8_loss_sd(const hwnas_int8_family *family);

#endif
