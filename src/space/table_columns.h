/* table_columns.h: which columns of a table spell an architecture. */
#ifndef HWNAS_SPACE_TABLE_COLUMNS_H
#define HWNAS_SPACE_TABLE_COLUMNS_H

#include "base/csv.h"
#include "space/space.h"

/* Those of one choice, or of the whole code. */
typedef struct hwnas_table_column {
    size_t n, *columns; /* a position each, or one for all */
} hwnas_table_column;

typedef struct hwnas_table_columns {
    bool is_code;             /* one for the whole code, `of[0]` */
    hwnas_table_column *of;   /* of each choice of the space */
    size_t n_of;
} hwnas_table_columns;

/* The path of a table, and behind a '?' what its columns are called where they are not called as the
 * choices: "FILE?depth=d,kernel=k1+k2", one column for all positions of a choice or one for each;
 * "FILE?code=name" has whole codes. A file of the whole name is taken as it is. Yours to free(). */
char *hwnas_table_file(const char **names, const char *path);
/* Of "FILE?NAMES#COLUMN" how long FILE is, and of all that hwnas_file_name_length() takes. */
size_t hwnas_table_name_length(const char *text);

/* `names`: what stands behind the '?'; NULL: nothing. To be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_table_columns_find(hwnas_table_columns *out,
                                                    const hwnas_space *space, const hwnas_csv *csv,
                                                    const char *names);
void hwnas_table_columns_done(hwnas_table_columns *columns);

/* The code of a row. */
void hwnas_table_columns_code(hwnas_str *out, const hwnas_table_columns *columns,
                              const hwnas_space *space, const hwnas_csv *csv, size_t row);

#endif
