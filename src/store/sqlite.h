/* sqlite.h: SQLite as all that keep tables in it use it, in a study or in a file of their own. */
#ifndef HWNAS_STORE_SQLITE_H
#define HWNAS_STORE_SQLITE_H

#include <sqlite3.h>

#include "store/store.h"

/* Opens a database that may come from anybody (https://www.sqlite.org/security.html, 1.2): its
 * schema calls nothing that has an effect, no trigger of it runs, and no view stands for a table.
 * `out` is to be closed even when it is false. */
bool hwnas_sqlite_connect(sqlite3 **out, const char *file, int flags);

/* What SQLite's last failure was, in words that follow "cannot ...: ". */
const char *hwnas_sqlite_reason(sqlite3 *db);

/* The text of a column, NULL: SQL's NULL. It lives until the statement's next step. */
const char *hwnas_sqlite_text(sqlite3_stmt *stmt, int column);

/* An open study's connection, for tables of others beside its own; borrowed, until it is closed. */
sqlite3 *hwnas_store_connection(const hwnas_store *store);

#endif
