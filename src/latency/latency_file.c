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

#define CACHE_ID "1752067188" /* HWNAS_LATENCY_CACHE_ID as a number */
#define CACHE_VERSION "3"

/* By a database's words for its types. `parts` has 12 bytes for each part: its signature, and the
 * set that it was timed in, -1: none; `sets` the seconds of each set. All little-endian. */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS machine (id %1$s PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS part ("
    "    signature %1$s PRIMARY KEY, kind %1$s NOT NULL, macs %2$s NOT NULL,"
    "    read_bytes %2$s NOT NULL, written_bytes %2$s NOT NULL, weight_bytes %2$s NOT NULL);"
    "CREATE TABLE IF NOT EXISTS observation ("
    "    id %1$s PRIMARY KEY, machine %1$s NOT NULL REFERENCES machine (id),"
    "    seconds %2$s NOT NULL, is_steady %1$s NOT NULL, parts %3$s NOT NULL,"
    "    sets %3$s NOT NULL);";

enum { LOCK_NAPS = 300 }; /* of 10 ms */
enum { ADD_MACHINE, ADD_PART, ADD, PARTS, OBSERVED, LAST, KEYS, N_SQL };

enum { NEWEST = 3000 };

static const char *const sql[N_SQL] = {
    [ADD_MACHINE] =
        "INSERT INTO machine VALUES ((SELECT coalesce(max(id), 0) + 1 FROM machine), $1)"
        " ON CONFLICT (name) DO NOTHING",
    [ADD_PART] =
        "INSERT INTO part VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (signature) DO NOTHING",
    [ADD] = "INSERT INTO observation VALUES ((SELECT coalesce(max(id), 0) + 1 FROM observation),"
            " (SELECT id FROM machine WHERE name = $1), $2, $3, $4, $5)",
    [PARTS] = "SELECT * FROM part ORDER BY signature",
    [OBSERVED] =
        "SELECT seconds, is_steady, parts, sets FROM (SELECT * FROM observation WHERE machine ="
        " (SELECT id FROM machine WHERE name = $1) AND id <= $2 ORDER BY id DESC LIMIT $3)"
        " AS newest ORDER BY id",
    [LAST] = "SELECT coalesce(max(id), 0) FROM observation",
    [KEYS] = "SELECT name FROM machine ORDER BY id",
};

/* How a part stands in `parts`. */
typedef struct __attribute__((packed)) stored_part {
    int64_t signature;
    int32_t set;
} stored_part;

struct hwnas_latency_file {
    hwnas_database *db;
    bool is_borrowed; /* a study's */
    char *path;
    hwnas_statement *statements[N_SQL];
};

/* ---- Opening ---- */

static hwnas_status fail(const hwnas_latency_file *file)
{
    const hwnas_place place = {.file = file->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "cannot use the table of latencies: %s",
                                 file->db->ops->reason(file->db)),
                      "it is a cache: it may be deleted");
}

char *hwnas_latency_cache_path(void)
{
    return hwnas_cache_path("latency-" CACHE_VERSION ".db");
}

static void close_database(hwnas_latency_file *file)
{
    for (int i = 0; i < N_SQL; i++) {
        hwnas_statement_free(file->statements[i]);
        file->statements[i] = NULL;
    }
    if (file->db && !file->is_borrowed)
        file->db->ops->close(file->db);
    file->db = NULL;
}

void hwnas_latency_close(hwnas_latency_file *file)
{
    if (!file)
        return;
    close_database(file);
    free(file->path);
    free(file);
}

static bool make_tables(hwnas_latency_file *file)
{
    const hwnas_database_ops *ops = file->db->ops;
    char *text = hwnas_printf(tables, ops->int_type, ops->real_type, ops->bytes_type);
    const bool is_done = file->db->ops->exec(file->db, text);
    free(text);
    return is_done;
}

static bool prepare(hwnas_latency_file *file)
{
    for (int i = 0; i < N_SQL; i++)
        if (!(file->statements[i] = file->db->ops->prepare(file->db, sql[i])))
            return false;
    return true;
}

static bool query_is(hwnas_database *db, const char *query, const char *wanted)
{
    hwnas_statement *statement = db->ops->prepare(db, query);
    const bool is_so = statement && hwnas_statement_step(statement) == HWNAS_STEP_ROW &&
                       !strcmp(hwnas_row_text(statement, 0), wanted);
    hwnas_statement_free(statement);
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
        return file->db->ops->exec(file->db, begin) && make_tables(file) && prepare(file);
    return query_is(file->db, "PRAGMA application_id", CACHE_ID) &&
           query_is(file->db, "PRAGMA user_version", CACHE_VERSION) &&
           query_is(file->db, "PRAGMA quick_check(1)", "ok") && make_tables(file) && prepare(file);
}

static bool is_worth_waiting(const hwnas_latency_file *file)
{
    const int code = sqlite3_errcode(hwnas_sqlite_handle(file->db)) & 0xff;
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

static hwnas_status open_or_begin(hwnas_latency_file *file, char **note)
{
    if (open_cache(file, is_empty(file->path)))
        return HWNAS_OK;
    if (is_worth_waiting(file))
        return fail(file);
    close_database(file);
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
    *file = (hwnas_latency_file){.db = hwnas_store_database(store),
                                 .is_borrowed = true,
                                 .path = hwnas_strdup(hwnas_store_path(store))};
    if (!make_tables(file) || !prepare(file)) {
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
    hwnas_statement *row = file->statements[PARTS];
    hwnas_part *parts = NULL;
    size_t room = 0;
    hwnas_step step;
    *n = 0;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        HWNAS_GROW(parts, *n, room);
        parts[(*n)++] = (hwnas_part){.signature = (uint64_t)hwnas_row_int(row, 0),
                                     .kind = (uint64_t)hwnas_row_int(row, 1),
                                     .macs = hwnas_row_double(row, 2),
                                     .read_bytes = hwnas_row_double(row, 3),
                                     .written_bytes = hwnas_row_double(row, 4),
                                     .weight_bytes = hwnas_row_double(row, 5)};
    }
    hwnas_statement_reset(row);
    *out = parts;
    return step == HWNAS_STEP_DONE ? HWNAS_OK : fail(file);
}

/* NULL: the row makes no sense. */
static hwnas_observation *read_row(hwnas_statement *row, const hwnas_part *parts, size_t n_parts)
{
    const double seconds = hwnas_row_double(row, 0);
    size_t bytes, set_bytes;
    const stored_part *stored = hwnas_row_bytes(row, 2, &bytes);
    const double *sets = hwnas_row_bytes(row, 3, &set_bytes);
    const size_t n = bytes / sizeof *stored, n_sets = set_bytes / sizeof *sets;
    bool is_good =
        stored && sets && n && n * sizeof *stored == bytes && seconds > 0 && seconds < 1e6;
    if (!is_good)
        return NULL;
    hwnas_observation *o = hwnas_observation_alloc(n, n_sets);
    o->seconds = seconds;
    o->is_steady = hwnas_row_int(row, 1) != 0;
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
    hwnas_statement *row = file->statements[LAST];
    const bool is_there = hwnas_statement_step(row) == HWNAS_STEP_ROW;
    if (is_there)
        *out = hwnas_row_int(row, 0);
    hwnas_statement_reset(row);
    return is_there ? HWNAS_OK : fail(file);
}

hwnas_status hwnas_latency_keys(char ***out, size_t *n, hwnas_latency_file *file)
{
    hwnas_statement *row = file->statements[KEYS];
    char **keys = NULL;
    size_t n_keys = 0, room = 0;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        HWNAS_GROW(keys, n_keys, room);
        keys[n_keys++] = hwnas_strdup(hwnas_row_text(row, 0));
    }
    hwnas_statement_reset(row);
    if (step == HWNAS_STEP_DONE) {
        *out = keys;
        *n = n_keys;
        return HWNAS_OK;
    }
    for (size_t i = 0; i < n_keys; i++)
        free(keys[i]);
    free(keys);
    return fail(file);
}

typedef void add_rows(hwnas_latency_table *table, hwnas_observation *const *observations, size_t n);

/* The newest `most` rows of a key up to `last`, oldest first. */
static hwnas_status read_rows(hwnas_latency_table *table, add_rows *add, hwnas_latency_file *file,
                              const char *key, int64_t last, int64_t most)
{
    hwnas_statement *row = file->statements[OBSERVED];
    hwnas_part *parts = NULL;
    hwnas_observation **all = NULL;
    size_t n_parts = 0, n = 0, room = 0;
    hwnas_step step;
    hwnas_status status = load_parts(&parts, &n_parts, file);
    if (status == HWNAS_OK) {
        hwnas_statement_bind(row, "tii", key, last, most);
        while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
            HWNAS_GROW(all, n, room);
            all[n] = read_row(row, parts, n_parts);
            n += all[n] != NULL;
        }
        add(table, all, n);
        status = step == HWNAS_STEP_DONE ? HWNAS_OK : fail(file);
        hwnas_statement_reset(row);
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
    return read_rows(table, hwnas_latency_table_replay, file, key, INT64_MAX, INT64_MAX);
}

/* ---- Writing ---- */

static bool add_part(hwnas_latency_file *file, const hwnas_part *part)
{
    return hwnas_statement_run(hwnas_statement_bind(
        file->statements[ADD_PART], "iidddd", (int64_t)part->signature, (int64_t)part->kind,
        part->macs, part->read_bytes, part->written_bytes, part->weight_bytes));
}

static bool add_observation(hwnas_latency_file *file, const char *key, const hwnas_observation *o)
{
    stored_part *stored = hwnas_alloc((o->n_parts + 1) * sizeof *stored);
    for (size_t i = 0; i < o->n_parts; i++)
        stored[i] = (stored_part){(int64_t)o->parts[i].signature, o->set_of[i]};
    const bool is_done = hwnas_statement_run(hwnas_statement_bind(
        file->statements[ADD], "tdibb", key, o->seconds, (int64_t)o->is_steady, stored,
        o->n_parts * sizeof *stored, o->set_seconds, o->n_sets * sizeof *o->set_seconds));
    free(stored);
    return is_done;
}

static bool add(hwnas_latency_file *file, const char *key, const hwnas_observation *o)
{
    bool is_done =
        hwnas_statement_run(hwnas_statement_bind(file->statements[ADD_MACHINE], "t", key));
    for (size_t i = 0; i < o->n_parts && is_done; i++)
        is_done = add_part(file, &o->parts[i]);
    return is_done && add_observation(file, key, o);
}

hwnas_status hwnas_latency_add(hwnas_latency_file *file, const char *key,
                               const hwnas_observation *o)
{
    const hwnas_database_ops *ops = file->db->ops;
    /* What a study has begun goes on. */
    const bool is_ours = !ops->is_in_transaction(file->db);
    if ((!is_ours || ops->begin(file->db)) && add(file, key, o) &&
        (!is_ours || ops->commit(file->db)))
        return HWNAS_OK;
    hwnas_status status = fail(file);
    if (is_ours)
        ops->rollback(file->db);
    return status;
}
