/* sqlite_priv.h: what the files of the SQLite driver share. */
#ifndef HWNAS_STORE_SQLITE_PRIV_H
#define HWNAS_STORE_SQLITE_PRIV_H

#include <sqlite3.h>

#include "store/lock.h"
#include "store/sqlite.h"

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
    ADD_EVENT,
    KEEP,
    KEEP_VALUES,
    HISTORY,
    N_STATEMENTS
};

struct hwnas_store {
    char *path;      /* as the user wrote it */
    char *file;      /* without symbolic links; "./" keeps SQLite from giving names like ":memory:"
                        a meaning */
    char *draft;     /* the file until the study is published; NULL: it is */
    hwnas_lock lock; /* of the file; not held: only for reading */
    hwnas_lock replaced; /* of the study whose place the draft is to take */
    bool is_created;     /* by this process */
    sqlite3 *db;
    int depth; /* of transactions: only the outermost is SQLite's */
    sqlite3_stmt *statements[N_STATEMENTS];
};

/* What the header of the file says of it: "hnas", and the version of the tables. */
#define HWNAS_SQLITE_APPLICATION 1752064371
#define HWNAS_SQLITE_VERSION 4

extern const char hwnas_sqlite_schema[]; /* makes the tables */
extern const char *const hwnas_sqlite_statements[N_STATEMENTS];

/* ---- sqlite_open.c ---- */

enum { HWNAS_SQLITE_HEADER = 100 };

/* Opens the file, or its draft, and looks whether it is a study, and whole. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_open(hwnas_store *store, bool for_reading);
/* Closes it; it may be opened again. */
void hwnas_sqlite_close(hwnas_store *store);
/* Whether this is the beginning of a study, of any version. */
bool hwnas_sqlite_is_ours(const unsigned char header[HWNAS_SQLITE_HEADER]);
/* Writes the tables into the empty draft. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_begin(hwnas_store *store);

/* ---- sqlite_draft.c ---- */

/* Makes and opens an empty draft. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_create(hwnas_store *store);
/* Deletes the draft that a dead process left, if there is one and it can be. */
void hwnas_sqlite_tidy(const hwnas_store *store);
/* Deletes a file with all that SQLite has beside it, or that alone. */
void hwnas_sqlite_delete(const char *file, bool and_itself);
hwnas_status hwnas_sqlite_fail_exists(const char *path);

/* ---- sqlite.c ---- */

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

#endif
