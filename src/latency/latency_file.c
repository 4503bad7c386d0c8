#include "latency/latency_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/home.h"
#include "base/mem.h"
#include "store/sqlite.h"

#define CACHE_ID "1752067188" /* "hnlt" */
#define CACHE_VERSION "3"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS machine (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS part ("
    "    signature INTEGER PRIMARY KEY, kind INTEGER NOT NULL, macs REAL NOT NULL,"
    "    read_bytes REAL NOT NULL, written_bytes REAL NOT NULL, weight_bytes REAL NOT NULL);"
    /* `parts` has 12 bytes for each part: its signature, and the set that it was timed in, -1:
     * none; `sets` the seconds of each set. All little-endian. */
    "CREATE TABLE IF NOT EXISTS observation ("
    "    id INTEGER PRIMARY KEY, machine INTEGER NOT NULL REFERENCES machine (id),"
    "    seconds REAL NOT NULL, is_steady INTEGER NOT NULL, parts BLOB NOT NULL,"
    "    sets BLOB NOT NULL);";

enum { LOCK_NAPS = 300 }; /* of 10 ms */
enum { ADD_MACHINE, ADD_PART, ADD, PARTS, OBSERVED, LAST, N_SQL };

enum { NEWEST = 3000 };

static const char *const sql[N_SQL] = {
    [ADD_MACHINE] = "INSERT OR IGNORE INTO machine (name) VALUES (?)",
    [ADD_PART] = "INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, ?)",
    [ADD] = "INSERT INTO observation (machine, seconds, is_steady, parts, sets)"
            " SELECT id, ?2, ?3, ?4, ?5 FROM machine WHERE name = ?1",
    [PARTS] = "SELECT * FROM part ORDER BY signature",
    [OBSERVED] =
        "SELECT seconds, is_steady, parts, sets FROM (SELECT * FROM observation WHERE machine ="
        " (SELECT id FROM machine WHERE name = ?) AND id <= ? ORDER BY id DESC LIMIT ?)"
        " ORDER BY id",
    [LAST] = "SELECT coalesce(max(id), 0) FROM observation",
};

/* How a part stands in `parts`. */
typedef struct __attribute__((packed)) stored_part {
    int64_t signature;
    int32_t set;
} stored_part;

struct hwnas_latency_file {
    sqlite3 *db;
    bool is_borrowed; /* a study's */
    char *path;
    sqlite3_stmt *statements[N_SQL];
};

/* ---- Opening ---- */

static hwnas_status fail(const hwnas_latency_file *file)
{
    const hwnas_place place = {.file = file->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "cannot use the table of latencies: %s",
                                 hwnas_sqlite_reason(file->db)),
                      "it is a cache: it may be deleted");
}

char *hwnas_latency_cache_path(void)
{
    return hwnas_cache_path("latency-" CACHE_VERSION ".db");
}

void hwnas_latency_close(hwnas_latency_file *file)
{
    if (!file)
        return;
    for (int i = 0; i < N_SQL; i++)
        sqlite3_finalize(file->statements[i]);
    if (!file->is_borrowed)
        sqlite3_close(file->db);
    free(file->path);
    free(file);
}

static bool prepare(hwnas_latency_file *file)
{
    bool is_done = sqlite3_exec(file->db, tables, NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; i < N_SQL && is_done; i++)
        is_done = sqlite3_prepare_v3(file->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                     &file->statements[i], NULL) == SQLITE_OK;
    return is_done;
}

static bool query_is(sqlite3 *db, const char *query, const char *wanted)
{
    sqlite3_stmt *stmt = NULL;
    bool is_so = sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_ROW && !strcmp(hwnas_sqlite_text(stmt, 0), wanted);
    sqlite3_finalize(stmt);
    return is_so;
}

static bool is_empty(const char *path)
{
    struct stat st;
    return stat(path, &st) || st.st_size == 0;
}

/* False: what is there is no cache of ours, or not a whole one. */
static bool open_cache(hwnas_latency_file *file, bool is_new)
{
    static const char begin[] = "PRAGMA journal_mode = WAL;"
                                "PRAGMA application_id = " CACHE_ID ";"
                                "PRAGMA user_version = " CACHE_VERSION ";";
    if (!hwnas_sqlite_connect(&file->db, file->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE))
        return false;
    if (is_new)
        return sqlite3_exec(file->db, begin, NULL, NULL, NULL) == SQLITE_OK && prepare(file);
    return query_is(file->db, "PRAGMA application_id", CACHE_ID) &&
           query_is(file->db, "PRAGMA user_version", CACHE_VERSION) &&
           query_is(file->db, "PRAGMA quick_check(1)", "ok") && prepare(file);
}

static bool is_worth_waiting(const hwnas_latency_file *file)
{
    const int code = sqlite3_errcode(file->db) & 0xff;
    return code == SQLITE_BUSY || code == SQLITE_CANTOPEN || code == SQLITE_READONLY ||
           code == SQLITE_IOERR || code == SQLITE_FULL || code == SQLITE_NOMEM;
}

/* Gives a file that cannot be used another name, so that nothing of it is lost. */
static hwnas_status put_aside(char **note, const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    const hwnas_place place = {.file = path};
    char *aside = hwnas_printf("%s.damaged-%lld", path, (long long)time(NULL));
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char *from = hwnas_printf("%s%s", path, suffixes[i]);
        char *to = hwnas_printf("%s%s", aside, suffixes[i]);
        const bool is_moved = !rename(from, to);
        free(from);
        free(to);
        if (!is_moved && i == 0) {
            free(aside);
            return hwnas_fail(HWNAS_E_IO, &place, "cannot put a damaged file aside: %s",
                              strerror(errno));
        }
    }
    free(*note);
    *note = hwnas_printf(
        "%s is damaged, cut short or of another program; it is %s now, and a new table "
        "of latencies is begun",
        path, aside);
    free(aside);
    return HWNAS_OK;
}

static void close_db(hwnas_latency_file *file)
{
    for (int i = 0; i < N_SQL; i++) {
        sqlite3_finalize(file->statements[i]);
        file->statements[i] = NULL;
    }
    sqlite3_close(file->db);
    file->db = NULL;
}

static hwnas_status open_or_begin(hwnas_latency_file *file, char **note)
{
    if (open_cache(file, is_empty(file->path)))
        return HWNAS_OK;
    if (is_worth_waiting(file))
        return fail(file);
    close_db(file);
    TRY(put_aside(note, file->path));
    return open_cache(file, true) ? HWNAS_OK : fail(file);
}

/* Locks the directory of a file: a descriptor, or -1. Whoever may read the directory can lock it,
 * so we wait for a while and not for ever. */
static int lock_directory(const char *path)
{
    static const struct timespec nap = {.tv_nsec = 10000000};
    char *directory = hwnas_strdup(path), *slash = strrchr(directory, '/');
    if (slash)
        slash[1] = '\0';
    const int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    for (int i = 0; fd >= 0 && i < LOCK_NAPS && flock(fd, LOCK_EX | LOCK_NB); i++)
        nanosleep(&nap, NULL);
    return fd;
}

hwnas_status hwnas_latency_open(hwnas_latency_file **out, char **note, const char *path)
{
    hwnas_latency_file *file = hwnas_alloc(sizeof *file);
    file->path = hwnas_strdup(path);
    hwnas_make_folders(path);
    /* One process at a time looks whether the file is good: of two that find it bad, the second
     * must not put aside what the first has begun. */
    const int lock = lock_directory(path);
    hwnas_status status = open_or_begin(file, note);
    if (lock >= 0)
        close(lock);
    if (status == HWNAS_OK)
        *out = file;
    else
        hwnas_latency_close(file);
    return status;
}

hwnas_status hwnas_latency_of_study(hwnas_latency_file **out, hwnas_store *store)
{
    hwnas_latency_file *file = hwnas_alloc(sizeof *file);
    *file = (hwnas_latency_file){.db = hwnas_store_connection(store),
                                 .is_borrowed = true,
                                 .path = hwnas_strdup(hwnas_store_path(store))};
    if (!prepare(file)) {
        hwnas_status status = fail(file);
        hwnas_latency_close(file);
        return status;
    }
    *out = file;
    return HWNAS_OK;
}

/* ---- Reading ---- */

static int compare_signatures(const void *a, const void *b)
{
    const hwnas_part *x = a, *y = b;
    const int64_t p = (int64_t)x->signature, q = (int64_t)y->signature; /* as SQLite orders them */
    return (p > q) - (p < q);
}

/* All parts that the file knows, in order; yours to free(). */
static hwnas_status load_parts(hwnas_part **out, size_t *n, hwnas_latency_file *file)
{
    sqlite3_stmt *row = file->statements[PARTS];
    hwnas_part *parts = NULL;
    size_t room = 0;
    int code;
    *n = 0;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        HWNAS_GROW(parts, *n, room);
        parts[(*n)++] = (hwnas_part){.signature = (uint64_t)sqlite3_column_int64(row, 0),
                                     .kind = (uint64_t)sqlite3_column_int64(row, 1),
                                     .macs = sqlite3_column_double(row, 2),
                                     .read_bytes = sqlite3_column_double(row, 3),
                                     .written_bytes = sqlite3_column_double(row, 4),
                                     .weight_bytes = sqlite3_column_double(row, 5)};
    }
    sqlite3_reset(row);
    *out = parts;
    return code == SQLITE_DONE ? HWNAS_OK : fail(file);
}

/* NULL: the row makes no sense. */
static hwnas_observation *read_row(sqlite3_stmt *row, const hwnas_part *parts, size_t n_parts)
{
    const double seconds = sqlite3_column_double(row, 0);
    const stored_part *stored = sqlite3_column_blob(row, 2);
    const double *sets = sqlite3_column_blob(row, 3);
    const size_t bytes = (size_t)sqlite3_column_bytes(row, 2), n = bytes / sizeof *stored;
    const size_t n_sets = (size_t)sqlite3_column_bytes(row, 3) / sizeof *sets;
    bool is_good =
        stored && sets && n && n * sizeof *stored == bytes && seconds > 0 && seconds < 1e6;
    if (!is_good)
        return NULL;
    hwnas_observation *o = hwnas_observation_alloc(n, n_sets);
    o->seconds = seconds;
    o->is_steady = sqlite3_column_int(row, 1);
    memcpy(o->set_seconds, sets, n_sets * sizeof *sets);
    for (size_t i = 0; i < n_sets; i++)
        is_good &= sets[i] > 0 && sets[i] < 1e6;
    for (size_t i = 0; i < n && is_good; i++) {
        const hwnas_part key = {.signature = (uint64_t)stored[i].signature};
        const hwnas_part *part =
            n_parts ? bsearch(&key, parts, n_parts, sizeof key, compare_signatures) : NULL;
        is_good = part && stored[i].set >= -1 && stored[i].set < (int64_t)n_sets;
        if (is_good)
            o->parts[i] = *part;
        o->set_of[i] = stored[i].set;
    }
    if (is_good)
        return o;
    hwnas_observation_free(o);
    return NULL;
}

hwnas_status hwnas_latency_last(int64_t *out, hwnas_latency_file *file)
{
    sqlite3_stmt *row = file->statements[LAST];
    const bool is_there = sqlite3_step(row) == SQLITE_ROW;
    if (is_there)
        *out = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return is_there ? HWNAS_OK : fail(file);
}

typedef void add_rows(hwnas_latency_table *table, hwnas_observation *const *observations, size_t n);

/* The newest `most` rows of a key up to `last`, oldest first; `most` -1: all. */
static hwnas_status read_rows(hwnas_latency_table *table, add_rows *add, hwnas_latency_file *file,
                              const char *key, int64_t last, int most)
{
    sqlite3_stmt *row = file->statements[OBSERVED];
    hwnas_part *parts = NULL;
    hwnas_observation **all = NULL;
    size_t n_parts = 0, n = 0, room = 0;
    int code;
    hwnas_status status = load_parts(&parts, &n_parts, file);
    if (status == HWNAS_OK) {
        sqlite3_bind_text(row, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_int64(row, 2, last);
        sqlite3_bind_int(row, 3, most);
        while ((code = sqlite3_step(row)) == SQLITE_ROW) {
            HWNAS_GROW(all, n, room);
            all[n] = read_row(row, parts, n_parts);
            n += all[n] != NULL;
        }
        add(table, all, n);
        status = code == SQLITE_DONE ? HWNAS_OK : fail(file);
        sqlite3_reset(row);
    }
    for (size_t i = 0; i < n; i++)
        hwnas_observation_free(all[i]);
    free(all);
    free(parts);
    return status;
}

hwnas_status hwnas_latency_load(hwnas_latency_table *table, hwnas_latency_file *file,
                                const char *key, int64_t last)
{
    return read_rows(table, hwnas_latency_table_restore, file, key, last, NEWEST);
}

hwnas_status hwnas_latency_replay(hwnas_latency_table *table, hwnas_latency_file *file,
                                  const char *key)
{
    return read_rows(table, hwnas_latency_table_replay, file, key, INT64_MAX, -1);
}

/* ---- Writing ---- */

static bool run(sqlite3_stmt *stmt)
{
    const bool is_done = sqlite3_step(stmt) == SQLITE_DONE;
    sqlite3_reset(stmt);
    return is_done;
}

static bool add_part(hwnas_latency_file *file, const hwnas_part *part)
{
    sqlite3_stmt *stmt = file->statements[ADD_PART];
    sqlite3_bind_int64(stmt, 1, (int64_t)part->signature);
    sqlite3_bind_int64(stmt, 2, (int64_t)part->kind);
    sqlite3_bind_double(stmt, 3, part->macs);
    sqlite3_bind_double(stmt, 4, part->read_bytes);
    sqlite3_bind_double(stmt, 5, part->written_bytes);
    sqlite3_bind_double(stmt, 6, part->weight_bytes);
    return run(stmt);
}

static bool add(hwnas_latency_file *file, const char *key, const hwnas_observation *o)
{
    sqlite3_stmt *stmt = file->statements[ADD];
    stored_part *stored = hwnas_alloc((o->n_parts + 1) * sizeof *stored);
    for (size_t i = 0; i < o->n_parts; i++)
        stored[i] = (stored_part){(int64_t)o->parts[i].signature, o->set_of[i]};
    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_double(stmt, 2, o->seconds);
    sqlite3_bind_int(stmt, 3, o->is_steady);
    sqlite3_bind_blob(stmt, 4, stored, (int)(o->n_parts * sizeof *stored), SQLITE_STATIC);
    sqlite3_bind_blob(stmt, 5, o->set_seconds, (int)(o->n_sets * sizeof *o->set_seconds),
                      SQLITE_STATIC);
    const bool is_done = run(stmt);
    sqlite3_clear_bindings(stmt);
    free(stored);
    return is_done;
}

hwnas_status hwnas_latency_add(hwnas_latency_file *file, const char *key,
                               const hwnas_observation *o)
{
    /* What a study has begun goes on. */
    const bool is_ours = sqlite3_get_autocommit(file->db);
    bool is_done =
        !is_ours || sqlite3_exec(file->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_bind_text(file->statements[ADD_MACHINE], 1, key, -1, SQLITE_STATIC);
    is_done = is_done && run(file->statements[ADD_MACHINE]);
    for (size_t i = 0; i < o->n_parts && is_done; i++)
        is_done = add_part(file, &o->parts[i]);
    is_done = is_done && add(file, key, o) &&
              (!is_ours || sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    if (is_done)
        return HWNAS_OK;
    hwnas_status status = fail(file);
    if (is_ours && !sqlite3_get_autocommit(file->db))
        sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
