/* latency_kind.h: the time of a part from those of parts of its kind. */
#ifndef HWNAS_LATENCY_LATENCY_KIND_H
#define HWNAS_LATENCY_LATENCY_KIND_H

#include "latency/latency_priv.h"

/* Estimates all parts of a table: those that were timed from their means (`noise`: sd of one
 * timing) and from their neighbours, the others from these alone. */
void hwnas_latency_table_fit_kinds(hwnas_latency_table *table, double noise);

#endif
