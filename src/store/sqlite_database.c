/* sqlite_database.c: a connection to an SQLite file. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "store/sqlite.h"

#define BUSY_TIMEOUT_MS 10000

typedef struct sqlite_database {
    hwnas_database base;
    sqlite3 *db;
} sqlite_database;

typedef struct sqlite_statement {
    hwnas_statement base;
    sqlite3_stmt *stmt;
} sqlite_statement;

sqlite3 *hwnas_sqlite_handle(const hwnas_database *db)
{
    return ((const sqlite_database *)db)->db;
}

static sqlite3_stmt *stmt_of(hwnas_statement *statement)
{
    return ((sqlite_statement *)statement)->stmt;
}

/* ---- The connection ---- */

static void close_database(hwnas_database *db)
{
    sqlite3_close(hwnas_sqlite_handle(db));
    free(db);
}

static const char *reason(const hwnas_database *base)
{
    sqlite3 *db = hwnas_sqlite_handle(base);
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

static bool exec(hwnas_database *db, const char *sql)
{
    return sqlite3_exec(hwnas_sqlite_handle(db), sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool begin(hwnas_database *db)
{
    return exec(db, "BEGIN IMMEDIATE");
}

static bool begin_reading(hwnas_database *db)
{
    return exec(db, "BEGIN");
}

static bool commit(hwnas_database *db)
{
    return exec(db, "COMMIT");
}

static bool is_in_transaction(const hwnas_database *db)
{
    return !sqlite3_get_autocommit(hwnas_sqlite_handle(db));
}

static void rollback(hwnas_database *db)
{
    if (is_in_transaction(db))
        exec(db, "ROLLBACK");
}

/* ---- Statements ---- */

static hwnas_statement *prepare(hwnas_database *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(hwnas_sqlite_handle(db), sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt,
                           NULL) != SQLITE_OK)
        return NULL;
    sqlite_statement *statement = hwnas_alloc(sizeof *statement);
    *statement = (sqlite_statement){.base = {db}, .stmt = stmt};
    return &statement->base;
}

static void finalize(hwnas_statement *statement)
{
    sqlite3_finalize(stmt_of(statement));
    free(statement);
}

static hwnas_step step(hwnas_statement *statement)
{
    const int code = sqlite3_step(stmt_of(statement));
    return code == SQLITE_ROW    ? HWNAS_STEP_ROW
           : code == SQLITE_DONE ? HWNAS_STEP_DONE
                                 : HWNAS_STEP_FAILED;
}

static void reset(hwnas_statement *statement)
{
    sqlite3_reset(stmt_of(statement));
}

static void bind_int(hwnas_statement *statement, int at, int64_t value)
{
    sqlite3_bind_int64(stmt_of(statement), at, value);
}

static void bind_double(hwnas_statement *statement, int at, double value)
{
    sqlite3_bind_double(stmt_of(statement), at, value);
}

static void bind_text(hwnas_statement *statement, int at, const char *text)
{
    sqlite3_bind_text(stmt_of(statement), at, text, -1, SQLITE_STATIC);
}

static void bind_bytes(hwnas_statement *statement, int at, const void *bytes, size_t n)
{
    sqlite3_bind_blob64(stmt_of(statement), at, bytes, n, SQLITE_STATIC);
}

/* ---- Rows ---- */

static bool is_null(hwnas_statement *row, int column)
{
    return sqlite3_column_type(stmt_of(row), column) == SQLITE_NULL;
}

static int64_t get_int(hwnas_statement *row, int column)
{
    return sqlite3_column_int64(stmt_of(row), column);
}

static double get_double(hwnas_statement *row, int column)
{
    return sqlite3_column_double(stmt_of(row), column);
}

static const char *get_text(hwnas_statement *row, int column)
{
    const unsigned char *text = NULL;
    while (!is_null(row, column) && !(text = sqlite3_column_text(stmt_of(row), column)))
        hwnas_out_of_memory(); /* nothing else keeps SQLite from giving it */
    return (const char *)text;
}

static const void *get_bytes(hwnas_statement *row, int column, size_t *n)
{
    const void *bytes = sqlite3_column_blob(stmt_of(row), column);
    *n = (size_t)sqlite3_column_bytes(stmt_of(row), column);
    return bytes;
}

/* ---- The clock ---- */

/* A study in a file is shared by processes of one machine. Its time of day may be set back; this
 * begins anew when the machine does. */
static void tell_seconds(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct timespec time;
    (void)n;
    (void)values;
    clock_gettime(CLOCK_BOOTTIME, &time);
    sqlite3_result_double(context, (double)time.tv_sec + 1e-9 * (double)time.tv_nsec);
}

/* ---- Opening ---- */

static const hwnas_database_ops ops = {
    .int_type = "INTEGER",
    .real_type = "REAL",
    .bytes_type = "BLOB",
    .now = "hwnas_seconds()",
    .skip_locked = "", /* one changes it at a time */
    .close = close_database,
    .reason = reason,
    .exec = exec,
    .begin = begin,
    .begin_reading = begin_reading,
    .commit = commit,
    .rollback = rollback,
    .is_in_transaction = is_in_transaction,
    .prepare = prepare,
    .finalize = finalize,
    .step = step,
    .reset = reset,
    .bind_int = bind_int,
    .bind_double = bind_double,
    .bind_text = bind_text,
    .bind_bytes = bind_bytes,
    .is_null = is_null,
    .get_int = get_int,
    .get_double = get_double,
    .get_text = get_text,
    .get_bytes = get_bytes,
};

bool hwnas_sqlite_connect(hwnas_database **out, const char *file, int flags)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW};
    sqlite_database *database = hwnas_alloc(sizeof *database);
    database->base.ops = &ops;
    *out = &database->base;
    if (sqlite3_open_v2(file, &database->db, flags, NULL) != SQLITE_OK)
        return false;
    sqlite3_db_config(database->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        sqlite3_db_config(database->db, off[i], 0, NULL);
    sqlite3_busy_timeout(database->db, BUSY_TIMEOUT_MS);
    sqlite3_create_function(database->db, "hwnas_seconds", 0, SQLITE_UTF8, NULL, tell_seconds, NULL,
                            NULL);
    return exec(&database->base, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
}
