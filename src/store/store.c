/* store.c: what all kinds of store share. */
#include "store/store_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/study_url.h"

static const hwnas_store_driver *const drivers[] = {&hwnas_postgresql_driver, &hwnas_sqlite_driver};

static const hwnas_store_driver *find_driver(const char *path)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        const char *const *prefix = drivers[i]->prefixes;
        if (!prefix)
            return drivers[i];
        for (; *prefix; prefix++)
            if (hwnas_starts_with(path, *prefix))
                return drivers[i];
    }
    return NULL;
}

/* ---- Opening and closing ---- */

hwnas_status hwnas_store_open(hwnas_store **out, const char *path, hwnas_store_mode mode)
{
    if (!*path)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the name of the study is empty");
    TRY(hwnas_study_url_check(path));
    const hwnas_store_driver *driver = find_driver(path);
    hwnas_store *store = NULL;
    const hwnas_status status = driver->open(&store, path, mode);
    if (status == HWNAS_OK)
        *out = store;
    else if (store)
        driver->shut(store, store->is_created);
    return status;
}

bool hwnas_store_is_remote(const char *path)
{
    return find_driver(path)->is_remote;
}

hwnas_status hwnas_store_exists(bool *out, const char *path)
{
    TRY(hwnas_study_url_check(path));
    return find_driver(path)->exists(out, path);
}

bool hwnas_store_is_held(const char *path)
{
    if (hwnas_study_url_check(path) == HWNAS_OK)
        return find_driver(path)->is_held(path);
    hwnas_error_clear();
    return false;
}

void hwnas_store_close(hwnas_store *store)
{
    if (store)
        store->driver->shut(store, false);
}

void hwnas_store_remove(hwnas_store *store)
{
    if (store)
        store->driver->shut(store, store->is_created);
}

void hwnas_store_discard(hwnas_store *store)
{
    int64_t n = 1;
    if (!store)
        return;
    const bool is_empty =
        store->is_created &&
        hwnas_store_query_int(&n, store, store->statements[HWNAS_SQL_COUNT], 1) == HWNAS_OK &&
        n == 0;
    store->driver->shut(store, is_empty);
}

bool hwnas_store_is_draft(const hwnas_store *store)
{
    return store->driver->is_draft(store);
}

hwnas_status hwnas_store_publish(hwnas_store *store)
{
    return hwnas_store_is_draft(store) ? store->driver->publish(store) : HWNAS_OK;
}

/* What may be done with the table of packed events, as a driver's `may_pack` says it. */
enum { NOTHING, READ, ADD };

static int right_for(int statement)
{
    switch (statement) {
    case HWNAS_SQL_PACK:
        return ADD;
    case HWNAS_SQL_HAS_PACKED:
    case HWNAS_SQL_COUNT_PACKED:
    case HWNAS_SQL_PACKED:
        return READ;
    default:
        return NOTHING;
    }
}

/* Those for which one of these rights is needed. */
static bool prepare(hwnas_store *store, int from, int64_t to)
{
    for (int i = 0; i < HWNAS_N_STORE_SQL; i++)
        if (right_for(i) >= from && right_for(i) <= to &&
            !(store->statements[i] = store->db->ops->prepare(store->db, hwnas_store_statements[i])))
            return false;
    return true;
}

bool hwnas_store_prepare(hwnas_store *store)
{
    return prepare(store, NOTHING, NOTHING);
}

hwnas_status hwnas_store_query_sql(int64_t *out, hwnas_store *store, const char *sql)
{
    hwnas_statement *statement = store->db->ops->prepare(store->db, sql);
    const hwnas_status status =
        statement ? hwnas_store_query_int(out, store, statement, 0) : hwnas_store_fail(store);
    hwnas_statement_free(statement);
    return status;
}

hwnas_status hwnas_store_prepare_packed(hwnas_store *store)
{
    int64_t right;
    TRY(hwnas_store_query_sql(&right, store, store->driver->may_pack));
    return prepare(store, READ, right) ? HWNAS_OK : hwnas_store_fail(store);
}

void hwnas_store_disconnect(hwnas_store *store)
{
    for (int i = 0; i < HWNAS_N_STORE_SQL; i++) {
        hwnas_statement_free(store->statements[i]);
        store->statements[i] = NULL;
    }
    if (store->db)
        store->db->ops->close(store->db);
    store->db = NULL;
}

/* ---- Failures ---- */

hwnas_status hwnas_store_fail(const hwnas_store *store)
{
    return store->driver->fail(store);
}

hwnas_status hwnas_store_damaged(const hwnas_store *store, const char *what)
{
    hwnas_place place = {.file = store->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the study is damaged: %s", what),
                      "take a copy of it if there is one");
}

hwnas_status hwnas_store_fail_exists(const char *path)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the study exists already"),
                      "--resume goes on with it; --study FILE names another");
}

hwnas_status hwnas_store_fail_absent(const char *path, hwnas_store_mode mode)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, &place, "there is no such study"),
                      mode == HWNAS_STORE_RESUME    ? "without --resume it is started"
                      : hwnas_store_is_remote(path) ? "'hwnas study list ADDRESS' lists those of "
                                                      "the database"
                                                    : "is it the right directory?");
}

/* ---- Statements and transactions ---- */

hwnas_status hwnas_store_run(hwnas_store *store, hwnas_statement *statement)
{
    const hwnas_step step = hwnas_statement_step(statement);
    const hwnas_status status = step == HWNAS_STEP_DONE ? HWNAS_OK : hwnas_store_fail(store);
    hwnas_statement_reset(statement);
    return status;
}

hwnas_status hwnas_store_each_row(hwnas_store *store, hwnas_statement *statement,
                                  hwnas_row_taker *take, void *context)
{
    hwnas_status status = HWNAS_OK;
    hwnas_step step = HWNAS_STEP_ROW;
    while (status == HWNAS_OK && (step = hwnas_statement_step(statement)) == HWNAS_STEP_ROW)
        status = take(context, statement);
    if (step == HWNAS_STEP_FAILED)
        status = hwnas_store_fail(store);
    hwnas_statement_reset(statement);
    return status;
}

hwnas_status hwnas_store_query_int(int64_t *out, hwnas_store *store, hwnas_statement *statement,
                                   int64_t none)
{
    const hwnas_step step = hwnas_statement_step(statement);
    hwnas_status status = HWNAS_OK;
    if (step == HWNAS_STEP_FAILED)
        status = hwnas_store_fail(store);
    else
        *out = step == HWNAS_STEP_ROW && !hwnas_row_is_null(statement, 0)
                   ? hwnas_row_int(statement, 0)
                   : none;
    hwnas_statement_reset(statement);
    return status;
}

hwnas_status hwnas_store_position(int64_t *out, hwnas_store *store)
{
    return hwnas_store_query_int(out, store, store->statements[HWNAS_SQL_POSITION], 0);
}

hwnas_status hwnas_store_begin(hwnas_store *store)
{
    if (store->depth == 0 && !store->db->ops->begin(store->db))
        return hwnas_store_fail(store);
    store->depth++;
    return HWNAS_OK;
}

hwnas_status hwnas_store_begin_reading(hwnas_store *store)
{
    if (store->depth == 0 && !store->db->ops->begin_reading(store->db))
        return hwnas_store_fail(store);
    store->depth++;
    return HWNAS_OK;
}

hwnas_status hwnas_store_end(hwnas_store *store, hwnas_status status)
{
    if (--store->depth > 0)
        return status;
    if (status == HWNAS_OK && !store->db->ops->commit(store->db))
        status = hwnas_store_fail(store);
    if (status != HWNAS_OK)
        store->db->ops->rollback(store->db);
    return status;
}

const char *hwnas_store_path(const hwnas_store *store)
{
    return store->path;
}

hwnas_database *hwnas_store_database(const hwnas_store *store)
{
    return store->db;
}

/* ---- Of the whole ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

hwnas_status hwnas_store_list(char ***out, size_t *n, const char *where)
{
    char **names = NULL;
    size_t count = 0;
    TRY(hwnas_study_url_check(where));
    const hwnas_status status = find_driver(where)->list(&names, &count, where);
    if (status == HWNAS_OK) {
        if (count)
            qsort(names, count, sizeof *names, compare_names);
        *out = names;
        *n = count;
        return HWNAS_OK;
    }
    while (count)
        free(names[--count]);
    free(names);
    return status;
}

static hwnas_status count_by(uint64_t *out, hwnas_store *store, int statement)
{
    int64_t n;
    TRY(hwnas_store_query_int(&n, store, store->statements[statement], 0));
    *out = (uint64_t)n;
    return HWNAS_OK;
}

hwnas_status hwnas_store_count(uint64_t *n, uint64_t *n_finished, hwnas_store *store)
{
    TRY(count_by(n, store, HWNAS_SQL_COUNT));
    return count_by(n_finished, store, HWNAS_SQL_COUNT_FINISHED);
}

hwnas_status hwnas_store_size(int64_t *bytes, hwnas_store *store)
{
    return hwnas_store_query_sql(bytes, store, store->driver->size);
}

hwnas_status hwnas_store_vacuum(hwnas_store *store)
{
    TRY(hwnas_store_pack(store)); /* smaller for who reads it, too */
    return store->driver->vacuum(store);
}
