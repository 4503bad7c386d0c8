/* sqlite.h: SQLite as all that keep tables in it use it, in a study or in a file of their own. */
#ifndef HWNAS_STORE_SQLITE_H
#define HWNAS_STORE_SQLITE_H

#include <sqlite3.h>

#include "store/database.h"

/* Opens a database that may come from anybody (https://www.sqlite.org/security.html, 1.2): its
 * schema calls nothing that has an effect, no trigger of it runs, and no view stands for a table.
 * `out` is to be closed even when it is false. */
bool hwnas_sqlite_connect(hwnas_database **out, const char *file, int flags);

/* SQLite's own handle, for what only it has. */
sqlite3 *hwnas_sqlite_handle(const hwnas_database *db);

#endif
