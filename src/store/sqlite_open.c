/* sqlite_open.c: how a study's file is opened, and by what it is known, and closed. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite_priv.h"

/* Whether a file may, or must not, be there already. */
static hwnas_status check_path(bool *is_there, const char *path, hwnas_store_mode mode)
{
    hwnas_place place = {.file = path};
    struct stat st;
    *is_there = !stat(path, &st);
    if (*is_there) {
        if (S_ISDIR(st.st_mode))
            return hwnas_fail(HWNAS_E_INPUT, &place, "this is a directory, a study is a file");
        if (mode == HWNAS_STORE_CREATE)
            return hwnas_store_fail_exists(path);
        if (!S_ISREG(st.st_mode))
            return hwnas_fail(HWNAS_E_INPUT, &place, "this is not a regular file");
        return HWNAS_OK;
    }
    if (errno != ENOENT)
        return hwnas_fail(HWNAS_E_IO, &place, "cannot open the study: %s", strerror(errno));
    if (mode == HWNAS_STORE_CREATE || mode == HWNAS_STORE_REPLACE || mode == HWNAS_STORE_SHARE)
        return HWNAS_OK;
    return hwnas_store_fail_absent(path, mode);
}

static const char *current_file(const hwnas_sqlite_store *store)
{
    return store->draft ? store->draft : store->file;
}

/* A study belongs to one thread at a time. */
static hwnas_status open_file(hwnas_sqlite_store *store)
{
    return hwnas_sqlite_connect(&store->base.db, current_file(store),
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX)
               ? HWNAS_OK
               : hwnas_sqlite_fail(&store->base);
}

hwnas_status hwnas_sqlite_begin(hwnas_sqlite_store *store)
{
    hwnas_status status = open_file(store);
    if (status == HWNAS_OK && !store->base.db->ops->exec(store->base.db, hwnas_sqlite_schema))
        status = hwnas_sqlite_fail(&store->base);
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

/* What files that are given for a study often are, by the end of their names. */
static const char *hint_for(const char *path)
{
    static const struct {
        const char *ending, *hint;
    } rows[] = {
        {".yaml", "`hwnas search JOB.yaml` makes a study of a job, in JOB.db"},
        {".onnx", "`hwnas profile` measures an ONNX file, `hwnas optimize` makes it faster"},
        {".json", "`hwnas report` shows what was recorded as JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (hwnas_ends_with(path, rows[i].ending))
            return rows[i].hint;
    return "a study is an SQLite database; is it the right file?";
}

/* Looks at the first bytes (https://www.sqlite.org/fileformat.html, section 1.3) before SQLite
 * does, which would recover, and so change, a file that is not ours. They are read through its
 * descriptor: closing one of our own would drop the locks that this process has on the file. */
static hwnas_status check_header(const hwnas_sqlite_store *store)
{
    unsigned char header[HWNAS_SQLITE_HEADER] = {0};
    hwnas_place place = {.file = store->base.path};
    sqlite3_file *file = NULL;
    sqlite3_file_control(hwnas_sqlite_handle(store->base.db), "main", SQLITE_FCNTL_FILE_POINTER,
                         &file);
    int code =
        file->pMethods->xRead(file, header, sizeof header, 0); /* a short read is filled with 0 */
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
        return hwnas_fail(HWNAS_E_IO, &place, "cannot read the study");
    if (memcmp(header, magic, sizeof magic))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not a study of hwnas"), "%s",
                          hint_for(store->base.path));
    if (code != SQLITE_OK)
        return hwnas_store_damaged(&store->base, "it is cut short");
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

/* A larger study takes seconds to look through; its pages are checked as they are read. */
enum { MOST_CHECKED_MB = 64 };

static hwnas_status check_pages(hwnas_sqlite_store *store)
{
    hwnas_database *db = store->base.db;
    int64_t bytes;
    TRY(hwnas_store_size(&bytes, &store->base));
    if (bytes > MOST_CHECKED_MB * INT64_C(1000000))
        return HWNAS_OK;
    hwnas_statement *check = db->ops->prepare(db, "PRAGMA quick_check(1)");
    hwnas_status status = HWNAS_OK;
    if (!check || hwnas_statement_step(check) != HWNAS_STEP_ROW)
        status = hwnas_sqlite_fail(&store->base);
    else if (strcmp(hwnas_row_text(check, 0), "ok"))
        status = hwnas_store_damaged(&store->base, "its pages do not fit together");
    hwnas_statement_free(check);
    return status;
}

hwnas_status hwnas_sqlite_open(hwnas_sqlite_store *store, bool for_reading)
{
    hwnas_place place = {.file = store->base.path};
    /* What a dead writer left in the write-ahead log can only be read by someone who may write;
     * SQLite falls back to reading alone by itself where the permissions say so. */
    TRY(open_file(store));
    TRY(check_header(store));
    TRY(check_pages(store));
    hwnas_database *db = store->base.db;
    sqlite3 *handle = hwnas_sqlite_handle(db);
    if (!hwnas_store_prepare(&store->base))
        return sqlite3_errcode(handle) == SQLITE_ERROR /* a table or a column is not there */
                   ? hwnas_store_damaged(&store->base, sqlite3_errmsg(handle))
                   : hwnas_sqlite_fail(&store->base);
    if (for_reading)
        return hwnas_store_prepare_packed(&store->base);
    /* SQLite opens what it may not write for reading, without a word. */
    if (sqlite3_db_readonly(handle, "main"))
        return hwnas_fail(HWNAS_E_IO, &place, "the study may not be written");
    /* NORMAL: a power cut may take the last trials, the death of the process takes none. */
    if ((!store->draft && !db->ops->exec(db, "PRAGMA journal_mode = WAL")) ||
        !db->ops->exec(db, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON") ||
        !db->ops->exec(db, hwnas_sqlite_packed_table))
        return hwnas_sqlite_fail(&store->base);
    TRY(hwnas_store_prepare_packed(&store->base));
    hwnas_lock_sign(&store->lock);
    return HWNAS_OK;
}

void hwnas_sqlite_close(hwnas_sqlite_store *store)
{
    hwnas_store_disconnect(&store->base);
    hwnas_lock_sign(&store->replaced);
}

/* One plain file again. Not when somebody reads just now; then WAL mode stays. */
static void leave_wal(hwnas_store *store)
{
    for (int i = 0; i < HWNAS_N_STORE_SQL; i++)
        if (store->statements[i])
            hwnas_statement_reset(store->statements[i]);
    sqlite3_busy_timeout(hwnas_sqlite_handle(store->db), 0);
    store->db->ops->exec(store->db, "PRAGMA journal_mode = DELETE");
}

static void shut(hwnas_store *base, bool and_delete)
{
    hwnas_sqlite_store *store = (hwnas_sqlite_store *)base;
    const bool is_whole = base->statements[HWNAS_N_STORE_SQL - 1] != NULL;
    if (is_whole && store->lock.file && !store->draft)
        leave_wal(base);
    hwnas_sqlite_close(store);
    if (and_delete || store->draft)
        hwnas_sqlite_delete(current_file(store), true);
    hwnas_lock_release(&store->lock);
    hwnas_lock_release(&store->replaced);
    free(store->draft);
    free(store->file);
    free(base->path);
    free(store);
}

/* A study that is to be replaced must be one, and stays locked meanwhile. */
static hwnas_status hold_old(hwnas_sqlite_store *store)
{
    TRY(hwnas_lock_take(&store->replaced, store->file, store->base.path));
    hwnas_status status = hwnas_sqlite_open(store, true);
    hwnas_sqlite_close(store);
    return status;
}

/* ---- Sharing ---- */

enum {
    SHARE_TRIES = 20, /* of 50 ms: of several that begin a study, one does, and others wait */
    /* The lock of a file is not given in the order of asking, and a worker may be stopped with it.
     */
    SHARE_TIMEOUT_MS = 60000
};

/* In a transaction: of several that open it, one makes them. */
static hwnas_status make_leases(hwnas_store *store)
{
    int64_t has_tasks;
    if (!store->db->ops->exec(store->db, hwnas_sqlite_lease_table))
        return hwnas_sqlite_fail(store);
    TRY(hwnas_store_query_sql(
        &has_tasks, store, "SELECT count(*) FROM pragma_table_info('lease') WHERE name = 'tasks'"));
    return has_tasks || store->db->ops->exec(store->db, hwnas_sqlite_lease_tasks)
               ? HWNAS_OK
               : hwnas_sqlite_fail(store);
}

static hwnas_status open_shared(hwnas_sqlite_store *store)
{
    if (hwnas_file_exists(store->file)) {
        TRY(hwnas_lock_share(&store->lock, store->file, store->base.path));
        TRY(hwnas_sqlite_open(store, false));
    } else {
        TRY(hwnas_sqlite_create(store));
        TRY(hwnas_sqlite_publish(&store->base));
        TRY(hwnas_lock_relax(&store->lock, store->base.path));
    }
    sqlite3_busy_timeout(hwnas_sqlite_handle(store->base.db), SHARE_TIMEOUT_MS);
    TRY(hwnas_store_begin(&store->base));
    return hwnas_store_end(&store->base, make_leases(&store->base));
}

/* As if nothing had been opened. */
static void part(hwnas_sqlite_store *store)
{
    hwnas_sqlite_close(store);
    if (store->draft)
        hwnas_sqlite_delete(store->draft, true);
    free(store->draft);
    store->draft = NULL;
    store->base.is_created = false;
    hwnas_lock_release(&store->lock);
}

static hwnas_status share(hwnas_sqlite_store *store)
{
    static const struct timespec nap = {.tv_nsec = 50000000};
    hwnas_status status = open_shared(store);
    for (int i = 0; i < SHARE_TRIES && (status == HWNAS_E_IO || store->draft); i++) {
        part(store);
        nanosleep(&nap, NULL);
        hwnas_error_clear();
        status = open_shared(store);
    }
    return status;
}

static hwnas_status open_as(hwnas_sqlite_store *store, hwnas_store_mode mode, bool is_there)
{
    if (mode == HWNAS_STORE_SHARE)
        return share(store);
    if (mode == HWNAS_STORE_READ)
        return hwnas_sqlite_open(store, true);
    if (mode == HWNAS_STORE_RESUME) {
        TRY(hwnas_lock_take(&store->lock, store->file, store->base.path));
        hwnas_sqlite_tidy(store);
        return hwnas_sqlite_open(store, false);
    }
    if (is_there)
        TRY(hold_old(store));
    TRY(hwnas_sqlite_create(store));
    return is_there ? HWNAS_OK : hwnas_sqlite_publish(&store->base);
}

static hwnas_status open_store(hwnas_store **out, const char *path, hwnas_store_mode mode)
{
    bool is_there = false;
    TRY(check_path(&is_there, path, mode));
    hwnas_sqlite_store *store = hwnas_alloc(sizeof *store);
    char *target = hwnas_file_follow(path);
    store->base.driver = &hwnas_sqlite_driver;
    store->base.path = hwnas_strdup(path);
    store->file = hwnas_printf("%s%s", *target == '/' ? "" : "./", target);
    free(target);
    *out = &store->base;
    return open_as(store, mode, is_there);
}

/* ---- Of the whole ---- */

static hwnas_status exists(bool *out, const char *path)
{
    *out = hwnas_file_exists(path);
    return HWNAS_OK;
}

static bool is_study(const char *file)
{
    unsigned char header[HWNAS_SQLITE_HEADER];
    struct stat st;
    if (stat(file, &st) || !S_ISREG(st.st_mode))
        return false;
    FILE *stream = fopen(file, "rb");
    const bool is_whole = stream && fread(header, 1, sizeof header, stream) == sizeof header;
    if (stream)
        fclose(stream);
    return is_whole && hwnas_sqlite_is_ours(header);
}

/* Files of the directory itself, without those that are being made. */
static hwnas_status list(char ***names, size_t *n, const char *where)
{
    const hwnas_place place = {.file = where};
    size_t room = 0;
    DIR *folder = opendir(where);
    if (!folder)
        return hwnas_fail(errno == ENOENT    ? HWNAS_E_NOT_FOUND
                          : errno == ENOTDIR ? HWNAS_E_INPUT
                                             : HWNAS_E_IO,
                          &place, "cannot look into the directory: %s", strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char *file = strcmp(where, ".") ? hwnas_printf("%s/%s", where, entry->d_name)
                                        : hwnas_strdup(entry->d_name);
        if (!is_study(file) || hwnas_ends_with(file, "-new") || hwnas_ends_with(file, "-old")) {
            free(file);
            continue;
        }
        HWNAS_GROW(*names, *n, room);
        (*names)[(*n)++] = file;
    }
    closedir(folder);
    return HWNAS_OK;
}

static hwnas_status vacuum(hwnas_store *store)
{
    return store->db->ops->exec(store->db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
               ? HWNAS_OK
               : hwnas_sqlite_fail(store);
}

static bool is_draft(const hwnas_store *store)
{
    return ((const hwnas_sqlite_store *)store)->draft != NULL;
}

const hwnas_store_driver hwnas_sqlite_driver = {
    .open = open_store,
    .shut = shut,
    .exists = exists,
    .is_held = hwnas_lock_is_held,
    .is_draft = is_draft,
    .publish = hwnas_sqlite_publish,
    .fail = hwnas_sqlite_fail,
    .list = list,
    .may_pack = "SELECT 2 * count(*) FROM sqlite_master WHERE type = 'table' AND name = 'packed'",
    .size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    .vacuum = vacuum,
};
