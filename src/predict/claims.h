/* claims.h: which networks are being trained, told between the processes that share a file of
 * results.
 *
 * A claim is a lock of one byte, at a place that the network's digest says, of a file beside the
 * results, FILE-lock. It ends with its process, however that ends; the file goes with the last
 * process that uses it. */
#ifndef HWNAS_PREDICT_CLAIMS_H
#define HWNAS_PREDICT_CLAIMS_H

#include "graph/graph.h"

typedef struct hwnas_claims hwnas_claims;

HWNAS_CHECKED hwnas_status hwnas_claims_open(hwnas_claims **out, const char *results);
void hwnas_claims_close(hwnas_claims *claims); /* gives up all claims; accepts NULL */

/* *is_ours: nobody else has claimed the network. */
HWNAS_CHECKED hwnas_status hwnas_claims_take(bool *is_ours, hwnas_claims *claims,
                                             hwnas_digest digest);
void hwnas_claims_give_up(hwnas_claims *claims, hwnas_digest digest);

#endif
