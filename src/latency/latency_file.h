/* latency.h: what was timed of networks and their parts (latency/latency_table.h), on disk: in a
 * study, and in a cache that studies and processes share. Each addition is one transaction; what
 * two processes add at once is all kept. */
#ifndef HWNAS_LATENCY_LATENCY_FILE_H
#define HWNAS_LATENCY_LATENCY_FILE_H

#include "latency/latency_table.h"
#include "store/store.h"

typedef struct hwnas_latency_file hwnas_latency_file;

/* What SQLite's head of a cache has at byte 68, four bytes. */
#define HWNAS_LATENCY_CACHE_ID "hnlt"

/* Where the shared cache is: $XDG_CACHE_HOME/hwnas/latency-3.db, or in ~/.cache; NULL: nowhere. Its
 * name has the version of its format, so another version of hwnas has another file. Yours to
 * free(). */
char *hwnas_latency_cache_path(void);

/* Opens, or begins, a cache. A file that is damaged, cut short or not ours is put aside under
 * another name, and `note` (yours to free(), else untouched) says so. */
HWNAS_CHECKED hwnas_status hwnas_latency_open(hwnas_latency_file **out, char **note,
                                              const char *path);
/* The rows of a study that is open for changes; to be closed before it. */
HWNAS_CHECKED hwnas_status hwnas_latency_of_study(hwnas_latency_file **out, hwnas_store *store);
void hwnas_latency_close(hwnas_latency_file *file); /* accepts NULL */

/* The keys that the file has rows of, oldest first; both they and the array are yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_latency_keys(char ***out, size_t *n, hwnas_latency_file *file);

/* The number of the last row; 0: there is none. Rows are numbered as they come. */
HWNAS_CHECKED hwnas_status hwnas_latency_last(int64_t *out, hwnas_latency_file *file);
/* Adds to a table what the file has under a key up to row `last`, the newest 3000 networks of that.
 * Rows that make no sense are left out. */
HWNAS_CHECKED hwnas_status hwnas_latency_load(hwnas_latency_table *table, hwnas_latency_file *file,
                                              const char *key, int64_t last);
/* Tells a table all that the file has under a key, as it was told when it was measured. */
HWNAS_CHECKED hwnas_status hwnas_latency_replay(hwnas_latency_table *table,
                                                hwnas_latency_file *file, const char *key);
HWNAS_CHECKED hwnas_status hwnas_latency_add(hwnas_latency_file *file, const char *key,
                                             const hwnas_observation *observation);

#endif
