/* names.h: names of metrics and units as they are read, row by row. */
#ifndef HWNAS_STORE_NAMES_H
#define HWNAS_STORE_NAMES_H

#include "store/database.h"

/* Those that came up lately: a study of a million trials has a few names. Begin with {0}. */
typedef struct hwnas_names {
    int n;
    const char *names[32];
} hwnas_names;

/* The column's text, interned (base/intern.h); NULL: it is SQL's NULL, no text in UTF-8, or longer
 * than a name is. */
const char *hwnas_names_read(hwnas_names *known, hwnas_statement *row, int column);

/* Whether it is text as JSON can hold it: UTF-8. Accepts NULL, which is none. */
bool hwnas_is_text(const char *text);

#endif
