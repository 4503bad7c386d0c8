/* sqlite_priv.h: what the files of the SQLite driver share. */
#ifndef HWNAS_STORE_SQLITE_PRIV_H
#define HWNAS_STORE_SQLITE_PRIV_H

#include "store/lock.h"
#include "store/sqlite.h"
#include "store/store_driver.h"

typedef struct hwnas_sqlite_store {
    hwnas_store base;
    char *file;      /* without symbolic links; "./" keeps SQLite from giving names like ":memory:"
                        a meaning */
    char *draft;     /* the file until the study is published; NULL: it is */
    hwnas_lock lock; /* of the file; not held: only for reading */
    hwnas_lock replaced; /* of the study whose place the draft is to take */
} hwnas_sqlite_store;

/* What the header of the file says of it: "hnas", and the version of the tables. */
#define HWNAS_SQLITE_APPLICATION 1752064371
#define HWNAS_SQLITE_VERSION 4

extern const char hwnas_sqlite_schema[];      /* makes the tables */
extern const char hwnas_sqlite_lease_table[]; /* makes that of workers, where it is not there, */
extern const char hwnas_sqlite_lease_tasks[]; /* and what it lacks in older studies */
extern const char hwnas_sqlite_packed_table[]; /* the same of packed events (packed.h) */

/* ---- sqlite.c ---- */

/* What SQLite's last failure means for the user. */
hwnas_status hwnas_sqlite_fail(const hwnas_store *store);

/* ---- sqlite_open.c ---- */

enum { HWNAS_SQLITE_HEADER = 100 };

/* Opens the file, or its draft, and looks whether it is a study, and whole. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_open(hwnas_sqlite_store *store, bool for_reading);
/* Closes it; it may be opened again. */
void hwnas_sqlite_close(hwnas_sqlite_store *store);
/* Whether this is the beginning of a study, of any version. */
bool hwnas_sqlite_is_ours(const unsigned char header[HWNAS_SQLITE_HEADER]);
/* Writes the tables into the empty draft. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_begin(hwnas_sqlite_store *store);

/* ---- sqlite_draft.c ---- */

/* Makes and opens an empty draft. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_create(hwnas_sqlite_store *store);
/* Puts it into its place. */
HWNAS_CHECKED hwnas_status hwnas_sqlite_publish(hwnas_store *store);
/* Deletes the draft that a dead process left, if there is one and it can be. */
void hwnas_sqlite_tidy(const hwnas_sqlite_store *store);
/* Deletes a file with all that SQLite has beside it, or that alone. */
void hwnas_sqlite_delete(const char *file, bool and_itself);

#endif
