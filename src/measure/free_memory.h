/* free_memory.h: whether there is memory for what may also stay out of it. */
#ifndef HWNAS_MEASURE_FREE_MEMORY_H
#define HWNAS_MEASURE_FREE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* More than a quarter is available: of the machine's, by the text of /proc/meminfo, and of what
 * each control group may have. `groups`: a line "LIMIT USED RECLAIMABLE" for each, in bytes; a
 * limit that is no number, "max", is none. false where /proc/meminfo does not tell. */
bool hwnas_memory_is_plenty(const char *meminfo, const char *groups);
/* How much there is for a process, in bytes, and how much of it is available: the least of the
 * machine and its control groups. The same texts; false: /proc/meminfo does not tell. */
bool hwnas_memory_find(uint64_t *all, uint64_t *available, const char *meminfo, const char *groups);
bool hwnas_memory_find_now(uint64_t *all, uint64_t *available, const char *root);
/* hwnas_memory_is_plenty() of this process, now; `root` as for hwnas_conditions_read(). Takes some
 * 50 us. */
bool hwnas_memory_is_plenty_now(const char *root);

#endif
