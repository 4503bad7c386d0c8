/* latencies.h: tables of latencies (latency/latency_table.h) with the files behind them: the cache
 * that all share, and the study's own rows.
 *
 * A study that is continued has the tables that it had: what the cache knew when the study began,
 * told once more what the study measured, in the same order. So it estimates as if nothing had
 * happened, whatever others added to the cache meanwhile. Where that cache is gone, the study's own
 * rows are all. */
#ifndef HWNAS_LATENCY_LATENCIES_H
#define HWNAS_LATENCY_LATENCIES_H

#include "latency/latency_table.h"
#include "store/store.h"

typedef struct hwnas_latencies hwnas_latencies;

/* A cache that cannot be used is done without; hwnas_latencies_note() says why. `with_cache` false:
 * tables live as long as this and the study. */
hwnas_latencies *hwnas_latencies_open(bool with_cache);
void hwnas_latencies_close(hwnas_latencies *latencies); /* accepts NULL */
bool hwnas_latencies_have_cache(const hwnas_latencies *latencies);
/* What the user should know of the cache, as a sentence; NULL: nothing. Borrowed. */
const char *hwnas_latencies_note(const hwnas_latencies *latencies);
/* From now on observations go into the study as well, those of before the call included; `study`
 * NULL: no longer. One that is continued is to be used before any table is asked for. */
HWNAS_CHECKED hwnas_status hwnas_latencies_use_study(hwnas_latencies *latencies,
                                                     hwnas_store *study);

/* Writes into the study, if there is one, what was observed since the last call. */
HWNAS_CHECKED hwnas_status hwnas_latencies_keep(hwnas_latencies *latencies);

/* The table of a key (hwnas_latency_table_key()), filled from the files when it is first asked for.
 */
HWNAS_CHECKED hwnas_status hwnas_latencies_table(hwnas_latency_table **out,
                                                 hwnas_latencies *latencies, const char *key);

/* A hint that hwnas_latencies_measure() of the network will come (measure/runner.h). */
HWNAS_CHECKED hwnas_status hwnas_latencies_send_ahead(hwnas_latencies *latencies, const char *key,
                                                      hwnas_runner *runner,
                                                      const hwnas_graph *graph,
                                                      const hwnas_measure_options *options);

/* Measures a network, and teaches the table of `key` what there is to learn. Its steps are timed
 * where its parts are little known yet, or `always`. */
HWNAS_CHECKED hwnas_status hwnas_latencies_measure(hwnas_measurement *out,
                                                   hwnas_latencies *latencies, const char *key,
                                                   hwnas_runner *runner, const hwnas_graph *graph,
                                                   const hwnas_measure_options *options,
                                                   bool always);

#endif
