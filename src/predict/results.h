/* results.h: a file of trained networks that grows, a CSV with the columns `code`, `digest`, the
 * target's name, `sd` and `seconds` (the last two may be empty). `hwnas predictor fit` reads it.
 *
 * A row is appended by one write under a lock, so several processes may share a file; a row that a
 * dead writer left unfinished is cut off by the next to open it. */
#ifndef HWNAS_PREDICT_RESULTS_H
#define HWNAS_PREDICT_RESULTS_H

#include "graph/graph.h"

typedef struct hwnas_result {
    hwnas_digest digest; /* of the network's graph, batch 1 */
    char *code;
    double value;
    double sd;      /* NaN: not known */
    double seconds; /* that it took; NaN: not known */
    int line;       /* 0: added since the file was read */
} hwnas_result;

typedef struct hwnas_results {
    char *path, *target;
    size_t n, capacity;
    hwnas_result *rows;
} hwnas_results;

/* A file that is not there yet is empty; it is made with the first row. HWNAS_E_INPUT for a file of
 * other columns. */
HWNAS_CHECKED hwnas_status hwnas_results_open(hwnas_results **out, const char *path,
                                              const char *target);
void hwnas_results_close(hwnas_results *results); /* accepts NULL */

/* The last row of a network; NULL: none. Borrowed until the next addition. */
const hwnas_result *hwnas_results_find(const hwnas_results *results, hwnas_digest digest);

/* Appends rows, all or none. Nothing of them is kept. */
HWNAS_CHECKED hwnas_status hwnas_results_add(hwnas_results *results, const hwnas_result *rows,
                                             size_t n);

#endif
