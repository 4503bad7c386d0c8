/* sqlite_open.c: how a study's file is opened, and by what it is known, and closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite_priv.h"

#define BUSY_TIMEOUT_MS 10000

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
    if (status == HWNAS_OK &&
        sqlite3_exec(store->db, hwnas_sqlite_schema, NULL, NULL, NULL) != SQLITE_OK)
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
           big_endian(header + APPLICATION) == HWNAS_SQLITE_APPLICATION;
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
    if (version != HWNAS_SQLITE_VERSION)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "the study has format %d, this hwnas knows format %d",
                       version, HWNAS_SQLITE_VERSION),
            "use %s version of hwnas", version > HWNAS_SQLITE_VERSION ? "a newer" : "the older");
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
        if (sqlite3_prepare_v3(store->db, hwnas_sqlite_statements[i], -1, SQLITE_PREPARE_PERSISTENT,
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
