/* sqlite_priv.h: what the files of the SQLite driver share. */
#ifndef HWNAS_STORE_SQLITE_PRIV_H
#define HWNAS_STORE_SQLITE_PRIV_H

#include <sqlite3.h>

#include "store/lock.h"
#include "store/store.h"

/* Prepared statements. */
enum {
    BEGIN,
    COMMIT,
    ROLLBACK,
    SET_FACT,
    GET_FACT,
    START,
    FINISH,
    REVISE,
    FIND,
    ADD_VALUE,
    REMOVE_VALUES,
    COUNT,
    LIST,
    SET_AGAIN,
    LIST_AGAIN,
    N_STATEMENTS
};

struct hwnas_store {
    char *file;       /* for SQLite, which gives names like ":memory:" a meaning: "./" and ... */
    const char *path; /* ... as the user wrote it */
    hwnas_lock lock;  /* not held: only for reading */
    bool is_created;  /* by this process */
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
};

/* What SQLite's last failure means for the user. */
hwnas_status hwnas_sqlite_fail(const hwnas_store *store);
hwnas_status hwnas_sqlite_damaged(const hwnas_store *store, const char *what);

/* One letter for each parameter: i int64_t, d double (NaN becomes NULL), t text or NULL. Texts
 * must live until the statement is reset. */
sqlite3_stmt *hwnas_sqlite_bind(hwnas_store *store, int id, const char *types, ...);
/* Does what needs no answer. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_run(hwnas_store *store, sqlite3_stmt *stmt);
/* The first column of the first row; `none` without a row or when it is NULL. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_query_int(int64_t *out, hwnas_store *store,
                                                  sqlite3_stmt *stmt, int64_t none);
/* Ends the transaction: COMMIT when all went well. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_end(hwnas_store *store, hwnas_status status);

#endif
