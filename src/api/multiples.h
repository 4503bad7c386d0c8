/* multiples.h: "latency.p50 <= 0.5 x": limits as multiples of what a model has. */
#ifndef HWNAS_API_MULTIPLES_H
#define HWNAS_API_MULTIPLES_H

#include "base/str.h"
#include "report/optimized_text.h"

/* Appends the constraints of `text`, in which numbers with an x behind them have become those of a
 * job. `with_notes`: those without a unit are told. HWNAS_E_USAGE: the model has no such value. */
HWNAS_CHECKED hwnas_status hwnas_multiples_resolve(hwnas_str *out, const char *text,
                                                   const hwnas_optimized *found, bool with_notes);

#endif
