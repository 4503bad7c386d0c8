/* csv.h: a CSV file with one header row, read whole, through libcsv. Cells are separated by commas;
 * where the header has none, by its semicolons or tabs, and then numbers may have a decimal comma.
 */
#ifndef HWNAS_BASE_CSV_H
#define HWNAS_BASE_CSV_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

typedef struct hwnas_csv {
    const char *path;
    size_t n_columns, n_rows; /* the header is not a row */
    const char **names;
    const char **cells; /* n_rows * n_columns; empty cells are "" */
    int *lines;         /* of each row, from 1 */
    char separator;     /* of cells: ',', ';' or a tab */
    struct hwnas_arena *arena;
} hwnas_csv;

/* A row with too few or too many cells, two columns of one name, no rows: HWNAS_E_INPUT with the
 * line. */
HWNAS_CHECKED hwnas_status hwnas_csv_load(hwnas_csv **out, const char *path);
/* The same of a text, which may be a header alone; `path` is for messages. */
HWNAS_CHECKED hwnas_status hwnas_csv_parse(hwnas_csv **out, const char *path, const char *text,
                                           size_t n);
void hwnas_csv_free(hwnas_csv *csv);

long hwnas_csv_column(const hwnas_csv *csv, const char *name); /* -1: none */
/* The same, and HWNAS_E_INPUT with "did you mean" when there is none. */
HWNAS_CHECKED hwnas_status hwnas_csv_require(size_t *out, const hwnas_csv *csv, const char *name);
const char *hwnas_csv_cell(const hwnas_csv *csv, size_t row, size_t column);
/* A finite number, else HWNAS_E_INPUT at the line. */
HWNAS_CHECKED hwnas_status hwnas_csv_number(double *out, const hwnas_csv *csv, size_t row,
                                            size_t column);

/* Any text as a cell of one that is written. */
void hwnas_csv_text(hwnas_str *out, const char *text);

#endif
