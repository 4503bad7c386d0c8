/* sqlite.c: a study in one SQLite file.
 *
 * While it is open for changes it is in WAL mode, which lets others read; at rest it is one plain
 * file. This is the file and its statements; sqlite_draft.c has how it comes to be, sqlite_trials.c
 * what goes in and comes out. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite_priv.h"

#define APPLICATION_ID 1752064371 /* "hnas" */
#define SCHEMA_VERSION 4
#define BUSY_TIMEOUT_MS 10000
#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x

static const char schema[] =
    "PRAGMA journal_mode = MEMORY;" /* of a file that nobody knows yet */
    "BEGIN;"
    "PRAGMA application_id = " STRING(
        APPLICATION_ID) ";"
                        "PRAGMA user_version = " STRING(
                            SCHEMA_VERSION) ";"
                                            "CREATE TABLE fact ("
                                            "    key   TEXT PRIMARY KEY,"
                                            "    value TEXT NOT NULL"
                                            ") WITHOUT ROWID;"
                                            "CREATE TABLE trial ("
                                            "    number       INTEGER PRIMARY KEY,"
                                            "    code         TEXT NOT NULL,"
                                            "    digest       TEXT NOT NULL,"
                                            "    rung         INTEGER NOT NULL,"
                                            "    finish_order INTEGER UNIQUE," /* NULL: running */
                                            "    status       TEXT,"
                                            "    message      TEXT,"
                                            "    detail       TEXT,"
                                            "    seconds      REAL,"
                                            "    violation    REAL,"
                                            "    unstable      INTEGER,"
                                            "    stopped_early INTEGER,"
                                            "    CHECK ((finish_order IS NULL) = (status IS NULL))"
                                            ");"
                                            "CREATE TABLE value ("
                                            "    trial    INTEGER NOT NULL REFERENCES trial "
                                            "(number),"
                                            "    position INTEGER NOT NULL,"
                                            "    metric   TEXT NOT NULL,"
                                            "    value    REAL," /* NULL: not a number */
                                            "    low      REAL,"
                                            "    high     REAL,"
                                            "    unit     TEXT NOT NULL,"
                                            "    source   TEXT NOT NULL,"
                                            "    PRIMARY KEY (trial, position),"
                                            "    UNIQUE (trial, metric)"
                                            ") WITHOUT ROWID;"
                                            /* Values measured again, side by side with those of
                                             * rivals; the first ones stay, as what the strategy was
                                             * told follows from them. */
                                            "CREATE TABLE again ("
                                            "    trial  INTEGER NOT NULL REFERENCES trial (number),"
                                            "    metric TEXT NOT NULL,"
                                            "    value  REAL NOT NULL,"
                                            "    low    REAL NOT NULL,"
                                            "    high   REAL NOT NULL,"
                                            "    rounds INTEGER NOT NULL,"
                                            "    PRIMARY KEY (trial, metric)"
                                            ") WITHOUT ROWID;"
                                            /* What the strategy was told, and what was put off,
                                             * in the order in which it happened. */
                                            "CREATE TABLE event ("
                                            "    position INTEGER PRIMARY KEY,"
                                            "    trial    INTEGER NOT NULL REFERENCES trial "
                                            "(number),"
                                            "    kind     TEXT NOT NULL"
                                            ");"
                                            /* A trial as it was at an event, where a later one
                                             * wrote it anew. */
                                            "CREATE TABLE earlier ("
                                            "    event     INTEGER PRIMARY KEY REFERENCES event "
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
                                            "    event    INTEGER NOT NULL REFERENCES earlier "
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

static const char *const sql[N_STATEMENTS] = {
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

/* Opening and closing */

hwnas_status hwnas_sqlite_fail_exists(const char *path)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the study exists already"),
                      "--resume goes on with it; --study FILE names another");
}

/* Whether a file may, or must not, be there already. */
static hwnas_status check_path(bool *is_there, const char *path, hwnas_store_mode mode)
{
    hwnas_place place = {.file = path};
    struct stat st;
    if (!*path)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the name of the study is empty");
    if (hwnas_starts_with(path, "postgresql://"))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "studies in PostgreSQL come later"),
                          "give the name of a file");
    *is_there = !stat(path, &st);
    if (*is_there) {
        if (S_ISDIR(st.st_mode))
            return hwnas_fail(HWNAS_E_INPUT, &place, "this is a directory, a study is a file");
        if (mode == HWNAS_STORE_CREATE)
            return hwnas_sqlite_fail_exists(path);
        if (!S_ISREG(st.st_mode))
            return hwnas_fail(HWNAS_E_INPUT, &place, "this is not a regular file");
        return HWNAS_OK;
    }
    if (errno != ENOENT)
        return hwnas_fail(HWNAS_E_IO, &place, "cannot open the study: %s", strerror(errno));
    if (mode == HWNAS_STORE_CREATE || mode == HWNAS_STORE_REPLACE)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, &place, "there is no such study"),
                      mode == HWNAS_STORE_RESUME ? "without --resume it is started"
                                                 : "is it the right directory?");
}

bool hwnas_sqlite_connect(sqlite3 **out, const char *file, int flags)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW};
    if (sqlite3_open_v2(file, out, flags, NULL) != SQLITE_OK)
        return false;
    sqlite3_db_config(*out, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        sqlite3_db_config(*out, off[i], 0, NULL);
    sqlite3_busy_timeout(*out, BUSY_TIMEOUT_MS);
    return sqlite3_exec(*out, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL,
                        NULL) == SQLITE_OK;
}

static const char *current_file(const hwnas_store *store)
{
    return store->draft ? store->draft : store->file;
}

static hwnas_status open_file(hwnas_store *store)
{
    return hwnas_sqlite_connect(&store->db, current_file(store), SQLITE_OPEN_READWRITE)
               ? HWNAS_OK
               : hwnas_sqlite_fail(store);
}

hwnas_status hwnas_sqlite_begin(hwnas_store *store)
{
    hwnas_status status = open_file(store);
    if (status == HWNAS_OK && sqlite3_exec(store->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        status = hwnas_sqlite_fail(store);
    hwnas_sqlite_close(store);
    return status;
}

static int32_t big_endian(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
}

enum { USER_VERSION = 60, APPLICATION = 68 }; /* where they stand in the header */
static const char magic[16] = "SQLite format 3";

bool hwnas_sqlite_is_ours(const unsigned char header[HWNAS_SQLITE_HEADER])
{
    return !memcmp(header, magic, sizeof magic) &&
           big_endian(header + APPLICATION) == APPLICATION_ID;
}

/* Looks at the first bytes (https://www.sqlite.org/fileformat.html, section 1.3) before SQLite
 * does, which would recover, and so change, a file that is not ours. They are read through its
 * descriptor: closing one of our own would drop the locks that this process has on the file. */
static hwnas_status check_header(const hwnas_store *store)
{
    unsigned char header[HWNAS_SQLITE_HEADER] = {0};
    hwnas_place place = {.file = store->path};
    sqlite3_file *file = NULL;
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    int code =
        file->pMethods->xRead(file, header, sizeof header, 0); /* a short read is filled with 0 */
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
        return hwnas_fail(HWNAS_E_IO, &place, "cannot read the study");
    if (memcmp(header, magic, sizeof magic))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not a study of hwnas"),
                          "a study is an SQLite database; is it the right file?");
    if (code != SQLITE_OK)
        return hwnas_sqlite_damaged(store, "it is cut short");
    if (!hwnas_sqlite_is_ours(header))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not a study of hwnas"),
                          "it is an SQLite database of another program");
    int version = big_endian(header + USER_VERSION);
    if (version != SCHEMA_VERSION)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "the study has format %d, this hwnas knows format %d",
                       version, SCHEMA_VERSION),
            "use %s version of hwnas", version > SCHEMA_VERSION ? "a newer" : "the older");
    return HWNAS_OK;
}

static hwnas_status check_pages(const hwnas_store *store)
{
    hwnas_status status = HWNAS_OK;
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        status = hwnas_sqlite_fail(store);
    else if (strcmp(hwnas_sqlite_text(stmt, 0), "ok"))
        status = hwnas_sqlite_damaged(store, "its pages do not fit together");
    sqlite3_finalize(stmt);
    return status;
}

hwnas_status hwnas_sqlite_open(hwnas_store *store, bool for_reading)
{
    hwnas_place place = {.file = store->path};
    /* What a dead writer left in the write-ahead log can only be read by someone who may write;
     * SQLite falls back to reading alone by itself where the permissions say so. */
    TRY(open_file(store));
    TRY(check_header(store));
    TRY(check_pages(store));
    for (int i = 0; i < N_STATEMENTS; i++)
        if (sqlite3_prepare_v3(store->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &store->statements[i], NULL) != SQLITE_OK)
            return sqlite3_errcode(store->db) == SQLITE_ERROR /* a table or a column is not there */
                       ? hwnas_sqlite_damaged(store, sqlite3_errmsg(store->db))
                       : hwnas_sqlite_fail(store);
    if (for_reading)
        return HWNAS_OK;
    /* SQLite opens what it may not write for reading, without a word. */
    if (sqlite3_db_readonly(store->db, "main"))
        return hwnas_fail(HWNAS_E_IO, &place, "the study may not be written");
    /* NORMAL: a power cut may take the last trials, the death of the process takes none. */
    if ((!store->draft &&
         sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK) ||
        sqlite3_exec(store->db, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", NULL, NULL,
                     NULL) != SQLITE_OK)
        return hwnas_sqlite_fail(store);
    hwnas_lock_sign(&store->lock);
    return HWNAS_OK;
}

void hwnas_sqlite_close(hwnas_store *store)
{
    for (int i = 0; i < N_STATEMENTS; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    sqlite3_close(store->db);
    store->db = NULL;
    hwnas_lock_sign(&store->replaced);
}

static void shut(hwnas_store *store, bool and_delete)
{
    if (!store)
        return;
    const bool is_whole = store->statements[N_STATEMENTS - 1] != NULL;
    if (is_whole && store->lock.file && !store->draft) {
        for (int i = 0; i < N_STATEMENTS; i++)
            sqlite3_reset(store->statements[i]);
        /* One plain file again. Not when somebody reads just now; then WAL mode stays. */
        sqlite3_busy_timeout(store->db, 0);
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    }
    hwnas_sqlite_close(store);
    if (and_delete || store->draft)
        hwnas_sqlite_delete(current_file(store), true);
    hwnas_lock_release(&store->lock);
    hwnas_lock_release(&store->replaced);
    free(store->draft);
    free(store->file);
    free(store->path);
    free(store);
}

/* A study that is to be replaced must be one, and stays locked meanwhile. */
static hwnas_status hold_old(hwnas_store *store)
{
    TRY(hwnas_lock_take(&store->replaced, store->file, store->path));
    hwnas_status status = hwnas_sqlite_open(store, true);
    hwnas_sqlite_close(store);
    return status;
}

static hwnas_status open_as(hwnas_store *store, hwnas_store_mode mode, bool is_there)
{
    if (mode == HWNAS_STORE_READ)
        return hwnas_sqlite_open(store, true);
    if (mode == HWNAS_STORE_RESUME) {
        TRY(hwnas_lock_take(&store->lock, store->file, store->path));
        hwnas_sqlite_tidy(store);
        return hwnas_sqlite_open(store, false);
    }
    if (is_there)
        TRY(hold_old(store));
    TRY(hwnas_sqlite_create(store));
    return is_there ? HWNAS_OK : hwnas_store_publish(store);
}

hwnas_status hwnas_store_open(hwnas_store **out, const char *path, hwnas_store_mode mode)
{
    bool is_there = false;
    TRY(check_path(&is_there, path, mode));
    hwnas_store *store = hwnas_alloc(sizeof *store);
    char *target = hwnas_file_follow(path);
    store->path = hwnas_strdup(path);
    store->file = hwnas_printf("%s%s", *target == '/' ? "" : "./", target);
    free(target);
    const hwnas_status status = open_as(store, mode, is_there);
    if (status == HWNAS_OK)
        *out = store;
    else
        shut(store, store->is_created);
    return status;
}

void hwnas_store_close(hwnas_store *store)
{
    shut(store, false);
}

void hwnas_store_remove(hwnas_store *store)
{
    shut(store, store->is_created);
}

void hwnas_store_discard(hwnas_store *store)
{
    int64_t n = 1;
    bool is_empty = store && store->is_created &&
                    hwnas_sqlite_query_int(&n, store, store->statements[COUNT], 1) == HWNAS_OK &&
                    n == 0;
    shut(store, is_empty);
}
