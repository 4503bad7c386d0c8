/* slices.h: the networks of a space with slices of weights that were trained for all of them
 * (graph/shared.h), and how good each is on samples. */
#ifndef HWNAS_INHERIT_SLICES_H
#define HWNAS_INHERIT_SLICES_H

#include "graph/shared.h"
#include "inherit/samples.h"

typedef struct hwnas_supernet hwnas_supernet;

/* `weights`: a .npz with an array for each that is learned; `samples`: one with x, as networks take
 * it, and y. `shared` is borrowed. HWNAS_E_INPUT: they are not of this space. */
HWNAS_CHECKED hwnas_status hwnas_supernet_open(hwnas_supernet **out, const hwnas_shared *shared,
                                               const char *weights, const char *samples,
                                               const hwnas_samples_options *options);
/* Whether so many samples would do; if not, HWNAS_E_INPUT at the file `path`. */
HWNAS_CHECKED hwnas_status hwnas_supernet_check_samples(int64_t n,
                                                        const hwnas_samples_options *options,
                                                        const char *path);
void hwnas_supernet_close(hwnas_supernet *supernet); /* accepts NULL */

/* Top-1 in percent, or of numbers 100 r2, with the interval of the samples: the network takes its
 * slices, BatchNorm's statistics are found anew on some samples, and the others judge it. Tenths of
 * a second for small networks. One thread at a time. */
HWNAS_CHECKED hwnas_status hwnas_supernet_score(hwnas_estimate_95 *out, hwnas_supernet *supernet,
                                                const hwnas_arch *arch);

#endif
