/* store_driver.h: what a kind of store brings, and what all kinds share. */
#ifndef HWNAS_STORE_STORE_DRIVER_H
#define HWNAS_STORE_STORE_DRIVER_H

#include "store/database.h"
#include "store/store.h"

/* Statements, which are the same for all kinds. */
typedef enum hwnas_store_sql {
    HWNAS_SQL_SET_FACT,
    HWNAS_SQL_GET_FACT,
    HWNAS_SQL_START,
    HWNAS_SQL_FINISH,
    HWNAS_SQL_REVISE,
    HWNAS_SQL_FIND,
    HWNAS_SQL_ADD_VALUE,
    HWNAS_SQL_REMOVE_VALUES,
    HWNAS_SQL_COUNT,
    HWNAS_SQL_COUNT_FINISHED,
    HWNAS_SQL_LIST,
    HWNAS_SQL_ONE,
    HWNAS_SQL_FEW,
    HWNAS_SQL_SET_AGAIN,
    HWNAS_SQL_LIST_AGAIN,
    HWNAS_SQL_ADD_EVENT,
    HWNAS_SQL_KEEP,
    HWNAS_SQL_KEEP_VALUES,
    HWNAS_SQL_EVENTS,
    HWNAS_SQL_END,
    HWNAS_SQL_END_FINISHED,
    HWNAS_SQL_COUNT_RUNNING,
    HWNAS_SQL_RUNNING,
    HWNAS_SQL_HAS_CODE,
    HWNAS_SQL_PACK, /* this one and the next three: NULL in a study that has no such table */
    HWNAS_SQL_HAS_PACKED,
    HWNAS_SQL_COUNT_PACKED,
    HWNAS_SQL_PACKED,
    HWNAS_SQL_POSITION,
    HWNAS_N_STORE_SQL
} hwnas_store_sql;

extern const char *const hwnas_store_statements[HWNAS_N_STORE_SQL];

/* The tables of a study, by a database's words for its types and what follows a table. */
#define HWNAS_STORE_TABLES(INT, REAL, TAIL)                                                        \
    "CREATE TABLE fact ("                                                                          \
    "    key   TEXT PRIMARY KEY,"                                                                  \
    "    value TEXT NOT NULL"                                                                      \
    ")" TAIL ";"                                                                                   \
    "CREATE TABLE trial ("                                                                         \
    "    number        " INT " PRIMARY KEY,"                                                       \
    "    code          TEXT NOT NULL,"                                                             \
    "    digest        TEXT NOT NULL,"                                                             \
    "    rung          " INT " NOT NULL,"                                                          \
    "    finish_order  " INT " UNIQUE," /* NULL: running */                                        \
    "    status        TEXT,"                                                                      \
    "    message       TEXT,"                                                                      \
    "    detail        TEXT,"                                                                      \
    "    seconds       " REAL ","                                                                  \
    "    violation     " REAL ","                                                                  \
    "    unstable      " INT ","                                                                   \
    "    stopped_early " INT ","                                                                   \
    "    CHECK ((finish_order IS NULL) = (status IS NULL))"                                        \
    ");"                                                                                           \
    "CREATE TABLE value ("                                                                         \
    "    trial    " INT " NOT NULL REFERENCES trial (number),"                                     \
    "    position " INT " NOT NULL,"                                                               \
    "    metric   TEXT NOT NULL,"                                                                  \
    "    value    " REAL "," /* NULL: not a number */                                              \
    "    low      " REAL ","                                                                       \
    "    high     " REAL ","                                                                       \
    "    unit     TEXT NOT NULL,"                                                                  \
    "    source   TEXT NOT NULL,"                                                                  \
    "    PRIMARY KEY (trial, position),"                                                           \
    "    UNIQUE (trial, metric)"                                                                   \
    ")" TAIL ";" /* Values measured again, side by side with those of rivals; the first ones stay, \
                    as what the strategy was told follows from them. */                            \
    "CREATE TABLE again ("                                                                         \
    "    trial  " INT " NOT NULL REFERENCES trial (number),"                                       \
    "    metric TEXT NOT NULL,"                                                                    \
    "    value  " REAL " NOT NULL,"                                                                \
    "    low    " REAL " NOT NULL,"                                                                \
    "    high   " REAL " NOT NULL,"                                                                \
    "    rounds " INT " NOT NULL,"                                                                 \
    "    PRIMARY KEY (trial, metric)"                                                              \
    ")" TAIL ";" /* What the strategy was told, and what was put off, in its order. */             \
    "CREATE TABLE event ("                                                                         \
    "    position " INT " PRIMARY KEY,"                                                            \
    "    trial    " INT " NOT NULL REFERENCES trial (number),"                                     \
    "    kind     TEXT NOT NULL"                                                                   \
    ");" /* A trial as it was at an event, where a later one wrote it anew. */                     \
    "CREATE TABLE earlier ("                                                                       \
    "    event     " INT " PRIMARY KEY REFERENCES event (position),"                               \
    "    status    TEXT NOT NULL,"                                                                 \
    "    message   TEXT,"                                                                          \
    "    detail    TEXT,"                                                                          \
    "    seconds   " REAL ","                                                                      \
    "    violation " REAL ","                                                                      \
    "    unstable      " INT ","                                                                   \
    "    stopped_early " INT ");"                                                                  \
    "CREATE TABLE earlier_value ("                                                                 \
    "    event    " INT " NOT NULL REFERENCES earlier (event),"                                    \
    "    position " INT " NOT NULL,"                                                               \
    "    metric   TEXT NOT NULL,"                                                                  \
    "    value    " REAL ","                                                                       \
    "    low      " REAL ","                                                                       \
    "    high     " REAL ","                                                                       \
    "    unit     TEXT NOT NULL,"                                                                  \
    "    source   TEXT NOT NULL,"                                                                  \
    "    PRIMARY KEY (event, position)"                                                            \
    ")" TAIL ";"

/* That of packed events (packed.h), by the position of the last of them, which older studies do not
 * have yet. */
#define HWNAS_STORE_PACKED_TABLE(INT, BYTES)                                                       \
    "CREATE TABLE IF NOT EXISTS packed (position " INT " PRIMARY KEY, events " BYTES " NOT NULL);"

/* What the leases of older studies do not have yet: the tasks any one of which comes next, and what
 * those before found out (leases.h). */
#define HWNAS_STORE_LEASE_TASKS(INT)                                                               \
    "ALTER TABLE lease ADD COLUMN tasks " INT " NOT NULL DEFAULT -1;"
#define HWNAS_STORE_LEASE_BEGUN "ALTER TABLE lease ADD COLUMN begun TEXT;"

typedef struct hwnas_store_driver {
    const char *const *prefixes; /* of the names of its studies; NULL: all other names */
    bool is_remote;              /* other machines reach it, and it may be away for a while */
    /* *out is to be shut where it is not NULL, also after a failure. */
    hwnas_status (*open)(hwnas_store **out, const char *path, hwnas_store_mode mode);
    /* Frees it. With `and_delete`, what this process created is deleted. */
    void (*shut)(hwnas_store *store, bool and_delete);
    hwnas_status (*exists)(bool *out, const char *path);
    bool (*is_held)(const char *path); /* some process changes it; false: no, or nobody knows */
    bool (*is_draft)(const hwnas_store *store);
    hwnas_status (*publish)(hwnas_store *store);
    /* What the connection's last failure means for the user. */
    hwnas_status (*fail)(const hwnas_store *store);
    /* Adds names to the array, in any order. */
    hwnas_status (*list)(char ***names, size_t *n, const char *where);
    const char *may_pack;   /* SQL: 1 where packed events may be read, 2 where some may be added; 0:
                               no   table of them */
    const char *size;       /* SQL that gives the bytes that the study takes */
    hwnas_status (*vacuum)(hwnas_store *store);
} hwnas_store_driver;

extern const hwnas_store_driver hwnas_sqlite_driver, hwnas_postgresql_driver;

/* A driver's own begins with it. */
struct hwnas_store {
    const hwnas_store_driver *driver;
    char *path;         /* as the user wrote it */
    bool is_created;    /* by this process */
    hwnas_database *db; /* NULL: closed */
    int depth;          /* of transactions: only the outermost is the database's */
    bool is_counted;    /* no trial was missing when the study was looked through */
    hwnas_statement *statements[HWNAS_N_STORE_SQL];
};

/* ---- store.c ---- */

/* Prepares all statements but those of packed events. False: one failed. */
bool hwnas_store_prepare(hwnas_store *store);
/* Prepares those, as far as there is their table and it may be used. */
HWNAS_CHECKED hwnas_status hwnas_store_prepare_packed(hwnas_store *store);
/* Closes the connection; another may take its place. */
void hwnas_store_disconnect(hwnas_store *store);
hwnas_status hwnas_store_fail(const hwnas_store *store);
/* It does not say what it should. */
hwnas_status hwnas_store_damaged(const hwnas_store *store, const char *what);
hwnas_status hwnas_store_fail_exists(const char *path);
hwnas_status hwnas_store_fail_absent(const char *path, hwnas_store_mode mode);

/* As hwnas_statement_bind(), of one of the store's. */
#define hwnas_store_bind(store, id, ...) hwnas_statement_bind((store)->statements[id], __VA_ARGS__)
HWNAS_CHECKED hwnas_status hwnas_store_run(hwnas_store *store, hwnas_statement *statement);
/* The one row of a statement without parameters; 0 when it is NULL. */
HWNAS_CHECKED hwnas_status hwnas_store_query_sql(int64_t *out, hwnas_store *store, const char *sql);
/* Is given each row of a statement; the first one that it fails with ends them. */
typedef hwnas_status hwnas_row_taker(void *context, hwnas_statement *row);
HWNAS_CHECKED hwnas_status hwnas_store_each_row(hwnas_store *store, hwnas_statement *statement,
                                                hwnas_row_taker *take, void *context);
/* The first column of the first row; `none` without a row or when it is NULL. */
HWNAS_CHECKED hwnas_status hwnas_store_query_int(int64_t *out, hwnas_store *store,
                                                 hwnas_statement *statement, int64_t none);

#endif
