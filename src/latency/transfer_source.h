/* transfer_source.h: latencies of a space's networks on other devices, from wherever they are kept.
 */
#ifndef HWNAS_LATENCY_TRANSFER_SOURCE_H
#define HWNAS_LATENCY_TRANSFER_SOURCE_H

#include "space/table.h"

typedef struct hwnas_transfer_source {
    size_t n, n_devices;
    hwnas_arch **archs; /* one a row; borrowed from the table, if there is one */
    double *logs;       /* logarithms of seconds, n_devices a row */
    hwnas_table *table; /* NULL: a database */
} hwnas_transfer_source;

/* `path` is
 *
 * - a CSV (space/table.h): columns whose names end in _ms or _us are devices;
 * - a study, as a file or an address: its networks with a latency on each of its devices, measured,
 *   told or looked up;
 * - a table of latencies (latency/latency_file.h): each key that is relied on and knows the parts
 * of most networks is a device, but for `own_key` (NULL: none), and networks are drawn.
 *
 * HWNAS_E_INPUT: it is none of these, of another space, or has no latencies. The space is borrowed;
 * let go of the source with hwnas_transfer_source_done(). */
HWNAS_CHECKED hwnas_status hwnas_transfer_source_read(hwnas_transfer_source *out,
                                                      const hwnas_space *space, const char *path,
                                                      const char *own_key, uint64_t seed);
void hwnas_transfer_source_done(hwnas_transfer_source *source);

#endif
