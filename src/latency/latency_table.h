/* latency_table.h: a table of latencies that fills itself, and what it says of networks never run.
 *
 * Every measurement tells how long the parts of a network took (graph/parts.h), alone or together,
 * and the network as a whole. From that comes an estimate for any network: the sum of its parts,
 * those never timed being predicted from similar ones, corrected by what whole networks showed. It
 * has a 95 % interval, widened or narrowed by how well earlier estimates did before their networks
 * were measured. A table is of one device with one set of options, and belongs to one thread.
 * docs/latency-table.md tells what was tried. */
#ifndef HWNAS_LATENCY_LATENCY_TABLE_H
#define HWNAS_LATENCY_LATENCY_TABLE_H

#include "graph/parts.h"
#include "measure/measure.h"

/* What one measurement taught. Parts that a device runs in one step, or in steps that share parts,
 * are a set that was timed together. */
typedef struct hwnas_observation {
    double seconds; /* median of the network as a whole */
    bool is_steady; /* by a measurement without doubt: what an estimate foretells */
    size_t n_parts, n_sets;
    hwnas_part *parts; /* in the order of the cut; their nodes mean nothing */
    int *set_of;       /* by part; -1: no step has it */
    double *set_seconds;
} hwnas_observation;

/* Of a measurement of `graph`; `steps` are of hwnas_graph_fold(graph), NULL: none. Of steps the
 * shares of the time are taken. The whole is the measurement's median where that is steady, else
 * what took turns with the steps, so that both saw the same machine; without steps, a mixed
 * measurement teaches nothing: NULL. Yours to free with hwnas_observation_free(). */
hwnas_observation *hwnas_observation_new(const hwnas_graph *graph,
                                         const hwnas_measurement *measurement,
                                         const hwnas_step_times *steps);
hwnas_observation *hwnas_observation_alloc(size_t n_parts, size_t n_sets); /* all zero */
void hwnas_observation_free(hwnas_observation *observation);               /* accepts NULL */

typedef struct hwnas_latency_table hwnas_latency_table;

hwnas_latency_table *hwnas_latency_table_new(void);
void hwnas_latency_table_free(hwnas_latency_table *table); /* accepts NULL */

/* Adds an observation, which is copied. hwnas_latency_table_tell() estimates the network first, as
 * if it had not been measured, which is how a table knows its error; hwnas_latency_table_restore()
 * adds what comes of a file, and does so with the last of it alone. */
void hwnas_latency_table_add(hwnas_latency_table *table, const hwnas_observation *observation);
void hwnas_latency_table_tell(hwnas_latency_table *table, const hwnas_observation *observation);
void hwnas_latency_table_restore(hwnas_latency_table *table, hwnas_observation *const *observations,
                                 size_t n);
/* Tells what a search measured one after the other, having asked the table before each: then it is
 * the table that the search had, to the last bit. */
void hwnas_latency_table_replay(hwnas_latency_table *table, hwnas_observation *const *observations,
                                size_t n);

typedef struct hwnas_latency_estimate {
    /* Median, and the 95 % interval, of what a steady measurement would give; where the table has
     * hardly any, of what any would. */
    double seconds, low, high;
    int n_parts, n_unknown; /* parts of the network, and those of them never timed */
} hwnas_latency_estimate;

/* False: the table knows too little to say anything. */
bool hwnas_latency_table_estimate(hwnas_latency_estimate *out, hwnas_latency_table *table,
                                  const hwnas_parts *parts);

/* How uncertain a network's estimate is because of its parts alone, as the standard deviation of
 * its logarithm; 1 where parts are of a kind never seen or the table knows nothing. */
double hwnas_latency_table_doubt(hwnas_latency_table *table, const hwnas_parts *parts);

typedef struct hwnas_latency_state {
    size_t n_parts, n_networks; /* that were timed */
    size_t n_judged; /* networks estimated before they were measured, steadily if any are; of the
                        last: */
    double error;    /* median of |estimate / measured - 1|; NaN without any */
    double within_5, within_10; /* shares whose error is at most 5 and 10 % */
    double coverage;            /* share that lay in the interval */
} hwnas_latency_state;
void hwnas_latency_table_describe(hwnas_latency_state *out, const hwnas_latency_table *table);
/* The table knows its own error well enough to be relied on. */
bool hwnas_latency_table_is_trusted(const hwnas_latency_table *table);

/* What a table belongs to, as one line: device, processor, machine (base/host.h), library,
 * instruction set, threads, precision, version of hwnas. Yours to free(). */
char *hwnas_latency_table_key(const char *device, const hwnas_device_info *info,
                              const hwnas_exec_options *options);

#endif
