/* table.h: a published table: a CSV whose rows are architectures of a space.
 *
 * A row is spelled either by a column named `code` or `arch`, or by one column for each choice of
 * the space, named as the choice. */
#ifndef HWNAS_SPACE_TABLE_H
#define HWNAS_SPACE_TABLE_H

#include "base/csv.h"
#include "space/arch.h"

typedef struct hwnas_table {
    hwnas_csv *csv;
    size_t n;           /* rows */
    size_t n_inside;    /* of them, of the space: all, unless only a part was asked for */
    hwnas_arch **archs; /* one a row */
} hwnas_table;

/* `path` may say which columns stand for which choices (table_columns.h). A row outside the space
 * is HWNAS_E_INPUT at its line. The space is borrowed. */
HWNAS_CHECKED hwnas_status hwnas_table_load(hwnas_table **out, const hwnas_space *space,
                                            const char *path);
/* The same where rows may lie outside the space: archs[row] is NULL for these. HWNAS_E_INPUT when
 * all do, with what is wrong with the first. */
HWNAS_CHECKED hwnas_status hwnas_table_load_part(hwnas_table **out, const hwnas_space *space,
                                                 const char *path);
void hwnas_table_free(hwnas_table *table);

/* A column as numbers, by row, yours to free(): the first row of an architecture has the mean of
 * all its rows, such as one for each seed, the others NaN; NaN: no cell of it has a value. A note
 * tells where such rows differ. Cells of rows outside the space are not looked at. */
HWNAS_CHECKED hwnas_status hwnas_table_values(double **out, const hwnas_table *table,
                                              size_t column);

/* The row of an architecture (the first of several), or -1. */
long hwnas_table_find(const hwnas_table *table, const hwnas_arch *arch);

#endif
