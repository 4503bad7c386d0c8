/* sqlite.c: a study in one SQLite file.
 *
 * While it is open for changes it is in WAL mode, which lets others read; at rest it is one plain
 * file. This is its tables and statements; sqlite_open.c opens it, sqlite_draft.c has how it comes
 * to be, sqlite_trials.c what goes in and comes out. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite_priv.h"

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x

const char hwnas_sqlite_schema[] =
    "PRAGMA journal_mode = MEMORY;" /* of a file that nobody knows yet */
    "BEGIN;"
    "PRAGMA application_id = " STRING(
        HWNAS_SQLITE_APPLICATION) ";"
                                  "PRAGMA user_version = " STRING(
                                      HWNAS_SQLITE_VERSION) ";"
                                                            "CREATE TABLE fact ("
                                                            "    key   TEXT PRIMARY KEY,"
                                                            "    value TEXT NOT NULL"
                                                            ") WITHOUT ROWID;"
                                                            "CREATE TABLE trial ("
                                                            "    number       INTEGER PRIMARY KEY,"
                                                            "    code         TEXT NOT NULL,"
                                                            "    digest       TEXT NOT NULL,"
                                                            "    rung         INTEGER NOT NULL,"
                                                            "    finish_order INTEGER UNIQUE," /* NULL:
                                                                                                  running
                                                                                                */
                                                            "    status       TEXT,"
                                                            "    message      TEXT,"
                                                            "    detail       TEXT,"
                                                            "    seconds      REAL,"
                                                            "    violation    REAL,"
                                                            "    unstable      INTEGER,"
                                                            "    stopped_early INTEGER,"
                                                            "    CHECK ((finish_order IS NULL) = "
                                                            "(status IS NULL))"
                                                            ");"
                                                            "CREATE TABLE value ("
                                                            "    trial    INTEGER NOT NULL "
                                                            "REFERENCES trial "
                                                            "(number),"
                                                            "    position INTEGER NOT NULL,"
                                                            "    metric   TEXT NOT NULL,"
                                                            "    value    REAL," /* NULL: not a
                                                                                    number */
                                                            "    low      REAL,"
                                                            "    high     REAL,"
                                                            "    unit     TEXT NOT NULL,"
                                                            "    source   TEXT NOT NULL,"
                                                            "    PRIMARY KEY (trial, position),"
                                                            "    UNIQUE (trial, metric)"
                                                            ") WITHOUT ROWID;"
                                                            /* Values measured again, side by side
                                                             * with those of rivals; the first ones
                                                             * stay, as what the strategy was told
                                                             * follows from them. */
                                                            "CREATE TABLE again ("
                                                            "    trial  INTEGER NOT NULL "
                                                            "REFERENCES trial (number),"
                                                            "    metric TEXT NOT NULL,"
                                                            "    value  REAL NOT NULL,"
                                                            "    low    REAL NOT NULL,"
                                                            "    high   REAL NOT NULL,"
                                                            "    rounds INTEGER NOT NULL,"
                                                            "    PRIMARY KEY (trial, metric)"
                                                            ") WITHOUT ROWID;"
                                                            /* What the strategy was told, and what
                                                             * was put off, in the order in which it
                                                             * happened. */
                                                            "CREATE TABLE event ("
                                                            "    position INTEGER PRIMARY KEY,"
                                                            "    trial    INTEGER NOT NULL "
                                                            "REFERENCES trial "
                                                            "(number),"
                                                            "    kind     TEXT NOT NULL"
                                                            ");"
                                                            /* A trial as it was at an event, where
                                                             * a later one wrote it anew. */
                                                            "CREATE TABLE earlier ("
                                                            "    event     INTEGER PRIMARY KEY "
                                                            "REFERENCES event "
                                                            "(position),"
                                                            "    status    TEXT NOT NULL,"
                                                            "    message   TEXT,"
                                                            "    detail    TEXT,"
                                                            "    seconds   REAL,"
                                                            "    violation REAL,"
                                                            "    unstable      INTEGER,"
                                                            "    stopped_early INTEGER"
                                                            ");"
                                                            "CREATE TABLE earlier_value ("
                                                            "    event    INTEGER NOT NULL "
                                                            "REFERENCES earlier "
                                                            "(event),"
                                                            "    position INTEGER NOT NULL,"
                                                            "    metric   TEXT NOT NULL,"
                                                            "    value    REAL,"
                                                            "    low      REAL,"
                                                            "    high     REAL,"
                                                            "    unit     TEXT NOT NULL,"
                                                            "    source   TEXT NOT NULL,"
                                                            "    PRIMARY KEY (event, position)"
                                                            ") WITHOUT ROWID;"
                                                            "COMMIT;";

#define LAST_TOLD                                                                                  \
    "(SELECT max(position) FROM event WHERE event.trial = ?1 AND kind IN ('finished', 'revised'))"

#define OUTCOME                                                                                    \
    "status = ?, message = ?, detail = ?, seconds = ?, violation = ?, unstable = ?,"               \
    " stopped_early = ?"

const char *const hwnas_sqlite_statements[N_STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [SET_FACT] = "INSERT INTO fact VALUES (?, ?)"
                 " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    [GET_FACT] = "SELECT value FROM fact WHERE key = ?",
    /* A trial that ran when the process died is asked again, and must be the same. */
    [START] = "INSERT INTO trial (number, code, digest, rung) VALUES (?, ?, ?, ?)"
              " ON CONFLICT (number) DO UPDATE SET code = code WHERE finish_order IS NULL"
              " AND code = excluded.code AND digest = excluded.digest AND rung = excluded.rung",
    [FINISH] = "UPDATE trial SET " OUTCOME ","
               " finish_order = (SELECT coalesce(max(finish_order) + 1, 0) FROM trial)"
               " WHERE number = ? AND finish_order IS NULL RETURNING finish_order",
    [REVISE] = "UPDATE trial SET " OUTCOME
               " WHERE number = ? AND finish_order IS NOT NULL RETURNING finish_order",
    [FIND] = "SELECT finish_order FROM trial WHERE number = ?",
    [ADD_VALUE] = "INSERT INTO value VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [REMOVE_VALUES] = "DELETE FROM value WHERE trial = ?",
    [COUNT] = "SELECT count(*) FROM trial",
    [LIST] = "SELECT number, code, digest, rung, finish_order, status, message, detail, seconds,"
             " violation, unstable, stopped_early, metric, value, low, high, unit, source"
             " FROM trial LEFT JOIN value ON trial = number ORDER BY number, position",
    [SET_AGAIN] =
        "INSERT INTO again VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (trial, metric) DO UPDATE"
        " SET value = excluded.value, low = excluded.low, high = excluded.high,"
        " rounds = excluded.rounds",
    [LIST_AGAIN] =
        "SELECT trial, metric, value, low, high, rounds FROM again ORDER BY trial, metric",
    [ADD_EVENT] = "INSERT INTO event (trial, kind) VALUES (?, ?)",
    [KEEP] =
        "INSERT INTO earlier SELECT " LAST_TOLD ", status, message, detail, seconds, violation,"
        " unstable, stopped_early FROM trial WHERE number = ?1",
    [KEEP_VALUES] = "INSERT INTO earlier_value SELECT " LAST_TOLD ", position, metric, value, low,"
                    " high, unit, source FROM value WHERE trial = ?1",
    /* The columns of LIST, then the event's kind. */
    [HISTORY] =
        "SELECT number, code, digest, rung, finish_order, earlier.status, earlier.message,"
        " earlier.detail, earlier.seconds, earlier.violation, earlier.unstable,"
        " earlier.stopped_early, metric, value, low, high, unit, source, kind, event.position"
        " FROM event JOIN trial ON number = event.trial"
        " LEFT JOIN earlier ON earlier.event = event.position"
        " LEFT JOIN earlier_value ON earlier_value.event = event.position"
        " ORDER BY event.position, earlier_value.position",
};

/* Failures */

const char *hwnas_sqlite_reason(sqlite3 *db)
{
    const int code = sqlite3_errcode(db) & 0xff, error = sqlite3_system_errno(db);
    switch (code) {
    case SQLITE_OK: /* it did as it was told, and the answer makes no sense */
    case SQLITE_ROW:
    case SQLITE_DONE:
    case SQLITE_CORRUPT:
        return "it is damaged or cut short";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program keeps it locked";
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_READONLY:
        return "it may not be written";
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return error ? strerror(error) : "the disk, or its file system, does not do as it should";
    default:
        return sqlite3_errmsg(db);
    }
}

hwnas_status hwnas_sqlite_fail(const hwnas_store *store)
{
    static const struct {
        int code;
        hwnas_status status;
        const char *message, *hint; /* message NULL: SQLite's reason */
    } rows[] = {
        {SQLITE_NOTADB, HWNAS_E_INPUT, "this is not a study of hwnas", "is it the right file?"},
        {SQLITE_CORRUPT, HWNAS_E_INPUT, "the study is damaged or cut short",
         "take a copy of it if there is one; 'sqlite3 FILE .recover' may save a part"},
        {SQLITE_BUSY, HWNAS_E_IO, "another program keeps the study locked",
         "close the program that has it open"},
        {SQLITE_FULL, HWNAS_E_IO, "cannot write the study: the disk is full",
         "make room, then go on with --resume; every finished trial is in the study"},
        {SQLITE_NOMEM, HWNAS_E_MEMORY, "no memory for SQLite", ""},
        {SQLITE_READONLY, HWNAS_E_IO, "the study may not be written", "look at its permissions"},
        {SQLITE_CANTOPEN, HWNAS_E_IO, NULL,
         "are it and its directory readable and writable? files lie beside it while it is open"},
        {SQLITE_IOERR, HWNAS_E_IO, NULL,
         "is there room on the disk, and is it whole? every finished trial is in the study"},
    };
    hwnas_place place = {.file = store->path};
    const char *reason = hwnas_sqlite_reason(store->db);
    int code = sqlite3_errcode(store->db) & 0xff;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && rows[i].message)
            return hwnas_hint(hwnas_fail(rows[i].status, &place, "%s", rows[i].message), "%s",
                              rows[i].hint);
        else if (rows[i].code == code)
            return hwnas_hint(
                hwnas_fail(rows[i].status, &place, "cannot use the study: %s", reason), "%s",
                rows[i].hint);
    return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, &place, "cannot use the study: %s", reason),
                      "did another program change it?");
}

hwnas_status hwnas_sqlite_damaged(const hwnas_store *store, const char *what)
{
    hwnas_place place = {.file = store->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the study is damaged: %s", what),
                      "take a copy of it if there is one");
}

/* Statements */

sqlite3_stmt *hwnas_sqlite_bind(hwnas_store *store, int id, const char *types, ...)
{
    sqlite3_stmt *stmt = store->statements[id];
    va_list ap;
    va_start(ap, types);
    for (int i = 1; *types; i++, types++) {
        if (*types == 'i')
            sqlite3_bind_int64(stmt, i, va_arg(ap, int64_t));
        else if (*types == 'd')
            sqlite3_bind_double(stmt, i, va_arg(ap, double));
        else
            sqlite3_bind_text(stmt, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
    }
    va_end(ap);
    return stmt;
}

const char *hwnas_sqlite_text(sqlite3_stmt *stmt, int column)
{
    const bool is_null = sqlite3_column_type(stmt, column) == SQLITE_NULL;
    const unsigned char *text = NULL;
    while (!is_null && !(text = sqlite3_column_text(stmt, column)))
        hwnas_out_of_memory(); /* nothing else keeps SQLite from giving it */
    return (const char *)text;
}

hwnas_status hwnas_sqlite_run(hwnas_store *store, sqlite3_stmt *stmt)
{
    hwnas_status status = sqlite3_step(stmt) == SQLITE_DONE ? HWNAS_OK : hwnas_sqlite_fail(store);
    sqlite3_reset(stmt);
    return status;
}

hwnas_status hwnas_sqlite_query_int(int64_t *out, hwnas_store *store, sqlite3_stmt *stmt,
                                    int64_t none)
{
    hwnas_status status = HWNAS_OK;
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL)
        *out = sqlite3_column_int64(stmt, 0);
    else if (code == SQLITE_ROW || code == SQLITE_DONE)
        *out = none;
    else
        status = hwnas_sqlite_fail(store);
    sqlite3_reset(stmt);
    return status;
}

hwnas_status hwnas_store_begin(hwnas_store *store)
{
    if (store->depth == 0)
        TRY(hwnas_sqlite_run(store, store->statements[BEGIN]));
    store->depth++;
    return HWNAS_OK;
}

hwnas_status hwnas_store_end(hwnas_store *store, hwnas_status status)
{
    if (--store->depth > 0)
        return status;
    if (status == HWNAS_OK)
        status = hwnas_sqlite_run(store, store->statements[COMMIT]);
    if (status != HWNAS_OK && !sqlite3_get_autocommit(store->db)) {
        sqlite3_step(store->statements[ROLLBACK]);
        sqlite3_reset(store->statements[ROLLBACK]);
    }
    return status;
}

const char *hwnas_store_path(const hwnas_store *store)
{
    return store->path;
}

sqlite3 *hwnas_store_connection(const hwnas_store *store)
{
    return store->db;
}
