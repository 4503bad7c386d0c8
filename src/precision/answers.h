/* answers.h: what a network gives for samples, in fp32 and with some layers in bytes or bf16. */
#ifndef HWNAS_PRECISION_ANSWERS_H
#define HWNAS_PRECISION_ANSWERS_H

#include "precision/mix.h"

typedef struct hwnas_answers hwnas_answers;

/* Runs a folded graph in fp32 on the device `cpu` and finds the ranges of its activations. The
 * graph and the samples are borrowed. HWNAS_E_INPUT where there are labels and the accuracy in fp32
 * is not defined. */
HWNAS_CHECKED hwnas_status hwnas_answers_open(hwnas_answers **out, const hwnas_graph *folded,
                                              const hwnas_mix_options *options);
void hwnas_answers_close(hwnas_answers *answers); /* accepts NULL */

/* The folded graph with the layers in bf16 that `kinds` (by node) has so. */
HWNAS_CHECKED hwnas_status hwnas_answers_round(hwnas_graph **out, const hwnas_graph *folded,
                                               const hwnas_precision *kinds);
/* The network with its layers as `kinds` has them, by node: HWNAS_F32, HWNAS_BF16 or HWNAS_S8. */
HWNAS_CHECKED hwnas_status hwnas_answers_make(hwnas_graph **out, const hwnas_answers *answers,
                                              const hwnas_precision *kinds);
/* What that gives for the first `n` batches (0: all), with the rest in `floats`, against fp32; and
 * its accuracy in percent (NULL: not wanted; NaN: there are no labels). */
HWNAS_CHECKED hwnas_status hwnas_answers_compare(hwnas_output_error *out,
                                                 hwnas_estimate_95 *accuracy,
                                                 hwnas_answers *answers,
                                                 const hwnas_precision *kinds,
                                                 hwnas_precision floats, size_t n);
/* The accuracy in fp32, on the same samples. */
hwnas_estimate_95 hwnas_answers_accuracy(const hwnas_answers *answers);
/* The accuracy of a network that hwnas_answers_make() made, or the folded one, on the samples
 * that are held out. */
HWNAS_CHECKED hwnas_status hwnas_answers_hold_out(hwnas_estimate_95 *out, hwnas_answers *answers,
                                                  const hwnas_graph *graph, hwnas_precision floats);
/* The processor has instructions for it. */
bool hwnas_answers_has_native(const hwnas_answers *answers, hwnas_precision precision);

#endif
