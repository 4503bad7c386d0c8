/* results.h: a file of trained networks that grows, a CSV with the columns `code`, `digest`, the
 * target's name, `sd` and `seconds` (the last two may be empty). `hwnas predictor fit` reads it.
 *
 * A row is appended by one write under a lock, so several processes may share a file. Reading
 * changes nothing. A row that a killed writer left unfinished is passed over, and cut off by the
 * next to append; a last row that only lacks its newline counts. A file with another header is not
 * ours: it is refused, and never written to.
 *
 * A file of curves is of the same kind, with two columns more: `epochs`, how many the training was
 * to have, and `curve`, the target after each of those that it had, parted by blanks. */
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
    /* Of a file of curves, else none: */
    size_t n_epochs; /* that were planned */
    double *curve;   /* the target after each epoch; `n_curve` of them */
    size_t n_curve;
} hwnas_result;

typedef struct hwnas_results {
    char *path, *target;
    bool has_curves;
    size_t n, capacity;
    hwnas_result *rows; /* in the order of the file */
} hwnas_results;

/* A file that is not there yet is empty; it is made with the first row. HWNAS_E_INPUT for a file of
 * other columns. */
HWNAS_CHECKED hwnas_status hwnas_results_open(hwnas_results **out, const char *path,
                                              const char *target);
/* The same of a file of curves. */
HWNAS_CHECKED hwnas_status hwnas_results_open_curves(hwnas_results **out, const char *path,
                                                     const char *target);
void hwnas_results_close(hwnas_results *results); /* accepts NULL */

/* Takes in what others have appended since. */
HWNAS_CHECKED hwnas_status hwnas_results_refresh(hwnas_results *results);

/* The last row of a network; NULL: none. Borrowed until the next addition. */
const hwnas_result *hwnas_results_find(const hwnas_results *results, hwnas_digest digest);

/* Appends rows, all or none, behind what others have appended. Nothing of them is kept, curves are
 * copied. */
HWNAS_CHECKED hwnas_status hwnas_results_add(hwnas_results *results, const hwnas_result *rows,
                                             size_t n);

#endif
