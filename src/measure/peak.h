/* peak.h: the most memory that this process has held at once, as Linux counts it. */
#ifndef HWNAS_MEASURE_PEAK_H
#define HWNAS_MEASURE_PEAK_H

#include <stdbool.h>
#include <stddef.h>

/* From now on. false: the system does not let the count begin anew (proc(5), clear_refs). */
bool hwnas_peak_begin(void);
/* Bytes that lay in memory at most since then, code and libraries included; 0: not known. */
size_t hwnas_peak_bytes(void);

#endif
