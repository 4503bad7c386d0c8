/* import.h: results that a person filled into a CSV, taken into a file of results (results.h).
 *
 * A row of the CSV is a network, spelled as in any table (space/table.h), and its result; a row
 * whose result is empty waits. */
#ifndef HWNAS_PREDICT_IMPORT_H
#define HWNAS_PREDICT_IMPORT_H

#include "predict/percent.h"
#include "space/arch.h"

typedef struct hwnas_import_options {
    const char *data; /* the CSV */
    const char
        *target;      /* its column; a column `sd` is the result's deviation, where there is one */
    const char *into; /* the file of results; made when it is not there */
    hwnas_printed printed; /* what the column has, where no result is above 1 */
} hwnas_import_options;

/* The space that a CSV itself names, in a column `space`; yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_import_space(char **out, const char *path);

typedef struct hwnas_import_result {
    size_t n_taken, n_known, n_empty; /* rows: new, there already, without a result */
    size_t n_networks;                /* of the file of results now */
} hwnas_import_result;

/* Takes all rows or none. HWNAS_E_INPUT, with the line: a row outside the space, a result that is
 * no number or no percentage, all results so small that they may be fractions, two results for one
 * network (in the CSV, or there and in the file). */
HWNAS_CHECKED hwnas_status hwnas_import(hwnas_import_result *out, const hwnas_space *space,
                                        const hwnas_import_options *options);

#endif
