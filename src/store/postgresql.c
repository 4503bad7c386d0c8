/* postgresql.c: a study in a schema of a PostgreSQL database.
 *
 * The schema has the study's name, the same tables as a file has, and a comment that says what it
 * is and in which format. Who changes the study holds an advisory lock of the session, which goes
 * with the connection however that ends; each transaction holds another one, so that what happens
 * in the study has one order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/postgresql.h"
#include "store/store_driver.h"
#include "store/study_url.h"

#define MARK "hwnas study, format "

enum {
    LOCK_TRIES = 40, /* of 50 ms: the server needs a moment to see that a process has died */
};

/* What leads from each format to the next one, from none on. A released one is never changed. */
static const char *const migrations[] = {
    HWNAS_STORE_TABLES("BIGINT", "DOUBLE PRECISION", ""),
    /* Which worker makes a running trial (leases.h). */
    "CREATE TABLE lease (trial BIGINT PRIMARY KEY REFERENCES trial (number), worker TEXT NOT NULL,"
    " expires TIMESTAMPTZ NOT NULL);",
    "ALTER TABLE lease ALTER COLUMN expires TYPE DOUBLE PRECISION USING extract(epoch FROM expires)"
    "::double precision;",
    HWNAS_STORE_PACKED_TABLE("BIGINT", "BYTEA") /* read often */
    "ALTER TABLE packed ALTER COLUMN events SET STORAGE EXTERNAL;",
    HWNAS_STORE_LEASE_TASKS("BIGINT") HWNAS_STORE_LEASE_BEGUN,
};

enum { FORMAT = sizeof migrations / sizeof *migrations };

typedef struct postgresql_store {
    hwnas_store base;
    char *name;  /* of the schema */
    char *draft; /* of the schema until the study is published; NULL: it is */
} postgresql_store;

static const char *current_name(const postgresql_store *store)
{
    return store->draft ? store->draft : store->name;
}

/* ---- Failures ---- */

static hwnas_status fail(const hwnas_store *store)
{
    static const struct {
        const char *state; /* the beginning of an SQLSTATE */
        hwnas_status status;
        const char *message, *hint; /* message NULL: the server's */
    } rows[] = {
        {"08", HWNAS_E_IO, NULL, "go on with --resume; every finished trial is in the study"},
        {"57", HWNAS_E_IO, NULL, "go on with --resume; every finished trial is in the study"},
        {"25P03", HWNAS_E_IO, NULL, "go on with --resume; every finished trial is in the study"},
        {"25006", HWNAS_E_IO, "the study may not be written", "is this server a standby?"},
        {"53100", HWNAS_E_IO, "cannot write the study: the server's disk is full",
         "make room, then go on with --resume; every finished trial is in the study"},
        {"42501", HWNAS_E_IO, NULL,
         "the owner of the database can: GRANT CREATE ON DATABASE name TO user"},
        {"3F", HWNAS_E_INPUT, "the study was deleted meanwhile", ""},
        {"42P01", HWNAS_E_INPUT, "the study is damaged: a table is missing", "restore a backup"},
        {"42703", HWNAS_E_INPUT, "the study is damaged: a column is missing", "restore a backup"},
    };
    const hwnas_place place = {.file = store->path};
    const char *state = hwnas_postgresql_state(store->db);
    const char *reason = store->db->ops->reason(store->db);
    if (!*state)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_IO, &place, "the connection to PostgreSQL was lost: %.200s", reason),
            "go on with --resume; every finished trial is in the study");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (hwnas_starts_with(state, rows[i].state))
            return hwnas_hint(
                rows[i].message
                    ? hwnas_fail(rows[i].status, &place, "%s", rows[i].message)
                    : hwnas_fail(rows[i].status, &place, "cannot use the study: %.200s", reason),
                "%s", rows[i].hint);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_LIBRARY, &place, "cannot use the study: %.200s (%s)", reason, state),
        "did another program change it?");
}

/* ---- Asking ---- */

/* Frees `sql`. */
static hwnas_status do_exec(postgresql_store *store, char *sql)
{
    hwnas_database *db = store->base.db;
    const bool is_done = db->ops->exec(db, sql);
    free(sql);
    return is_done ? HWNAS_OK : fail(&store->base);
}

/* The first row's first column, for one parameter. *out NULL: no row, or SQL's NULL; yours. */
static hwnas_status ask(char **out, bool *is_there, const postgresql_store *store, const char *sql,
                        const char *parameter)
{
    hwnas_database *db = store->base.db;
    hwnas_status status = HWNAS_OK;
    hwnas_statement *statement = db->ops->prepare(db, sql);
    const hwnas_step step = hwnas_statement_step(hwnas_statement_bind(statement, "t", parameter));
    *is_there = step == HWNAS_STEP_ROW;
    *out = NULL;
    if (step == HWNAS_STEP_FAILED)
        status = fail(&store->base);
    else if (*is_there && !hwnas_row_is_null(statement, 0))
        *out = hwnas_strdup(hwnas_row_text(statement, 0));
    hwnas_statement_free(statement);
    return status;
}

/* ---- Which schemas are studies ---- */

/* *format 0: it has none, as it is not ours. */
static hwnas_status look(bool *is_there, int *format, const postgresql_store *store,
                         const char *name)
{
    char *comment = NULL;
    TRY(ask(&comment, is_there, store,
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1",
            name));
    *format = comment && hwnas_starts_with(comment, MARK) ? atoi(comment + strlen(MARK)) : 0;
    free(comment);
    return HWNAS_OK;
}

static hwnas_status check_format(const postgresql_store *store, int format)
{
    const hwnas_place place = {.file = store->base.path};
    if (format <= 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "the schema '%s' is not a study of hwnas", store->name),
                          "study=NAME in the address names another");
    if (format > FORMAT)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "the study has format %d, this hwnas knows format %d", format,
                                     (int)FORMAT),
                          "use a newer version of hwnas");
    return HWNAS_OK;
}

static hwnas_status use_schema(postgresql_store *store)
{
    return do_exec(store, hwnas_printf("SET search_path TO \"%s\"", current_name(store)));
}

/* Brings the tables from a format, 0: none, to ours. In a transaction. */
static hwnas_status migrate(postgresql_store *store, int format)
{
    for (; format < FORMAT; format++)
        TRY(do_exec(store, hwnas_strdup(migrations[format])));
    return do_exec(store, hwnas_printf("COMMENT ON SCHEMA \"%s\" IS '" MARK "%d'",
                                       current_name(store), format));
}

static hwnas_status create_schema(postgresql_store *store)
{
    TRY(do_exec(store, hwnas_printf("DROP SCHEMA IF EXISTS \"%s-new\" CASCADE", store->name)));
    TRY(do_exec(store, hwnas_printf("CREATE SCHEMA \"%s\"", current_name(store))));
    TRY(use_schema(store));
    return migrate(store, 0);
}

static hwnas_status create(postgresql_store *store)
{
    TRY(hwnas_store_begin(&store->base));
    TRY(hwnas_store_end(&store->base, create_schema(store)));
    store->base.is_created = true;
    return HWNAS_OK;
}

/* ---- Locks ---- */

static hwnas_status find_holder(char **out, bool *is_there, const postgresql_store *store,
                                const char *lock)
{
    return ask(out, is_there, store,
               "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
               " WHERE locktype = 'advisory' AND granted AND pg_locks.database ="
               " (SELECT oid FROM pg_database WHERE datname = current_database())"
               " AND classid::bigint << 32 | objid::bigint = $1::text::bigint LIMIT 1",
               lock);
}

static hwnas_status fail_held(const postgresql_store *store, const char *lock)
{
    const hwnas_place place = {.file = store->base.path};
    char *holder = NULL;
    bool is_there;
    TRY(find_holder(&holder, &is_there, store, lock));
    hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_IO, &place, "the study is in use by %.100s",
                              holder && *holder ? holder : "another session"),
                   "wait until it ends or stop it; to look at the study meanwhile is fine");
    free(holder);
    return status;
}

/* A name's number among advisory locks. */
static hwnas_status number_lock(char **out, const postgresql_store *store, const char *purpose)
{
    bool is_there;
    char *name = hwnas_printf("hwnas %s %s", purpose, store->name);
    const hwnas_status status =
        ask(out, &is_there, store, "SELECT hashtextextended($1, 0)::text", name);
    free(name);
    return status;
}

/* One who changes it alone keeps all others out, and one who shares it those. */
static hwnas_status take_lock(postgresql_store *store, bool is_shared)
{
    static const struct timespec nap = {.tv_nsec = 50000000};
    char *session = NULL, *transactions = NULL, *got = NULL;
    hwnas_status status = HWNAS_OK;
    bool is_there, is_ours = false;
    TRY_OUT(number_lock(&session, store, "study"));
    TRY_OUT(number_lock(&transactions, store, "transaction"));
    hwnas_postgresql_lock_by(store->base.db, strtoll(transactions, NULL, 10));
    for (int i = 0; i < LOCK_TRIES && !is_ours; i++) {
        if (i)
            nanosleep(&nap, NULL);
        free(got);
        TRY_OUT(ask(&got, &is_there, store,
                    is_shared ? "SELECT pg_try_advisory_lock_shared($1::text::bigint)::text"
                              : "SELECT pg_try_advisory_lock($1::text::bigint)::text",
                    session));
        is_ours = got && !strcmp(got, "true");
    }
    if (!is_ours)
        status = fail_held(store, session);
out:
    free(session);
    free(transactions);
    free(got);
    return status;
}

/* ---- Opening ---- */

static hwnas_status open_for_reading(postgresql_store *store)
{
    bool is_there;
    int format;
    TRY(look(&is_there, &format, store, store->name));
    if (!is_there)
        return hwnas_store_fail_absent(store->base.path, HWNAS_STORE_READ);
    TRY(check_format(store, format));
    TRY(do_exec(store, hwnas_strdup("SET default_transaction_read_only = on")));
    return use_schema(store);
}

static hwnas_status resume(postgresql_store *store, int format)
{
    TRY(check_format(store, format));
    TRY(use_schema(store));
    if (format == FORMAT)
        return HWNAS_OK;
    TRY(hwnas_store_begin(&store->base));
    return hwnas_store_end(&store->base, migrate(store, format));
}

static hwnas_status join(postgresql_store *store)
{
    bool is_there;
    int format;
    TRY(look(&is_there, &format, store, store->name));
    return is_there ? resume(store, format) : create_schema(store);
}

static hwnas_status open_for_changes(postgresql_store *store, hwnas_store_mode mode)
{
    bool is_there;
    int format;
    TRY(take_lock(store, mode == HWNAS_STORE_SHARE));
    if (mode == HWNAS_STORE_SHARE) {
        TRY(hwnas_store_begin(&store->base));
        return hwnas_store_end(&store->base, join(store));
    }
    TRY(look(&is_there, &format, store, store->name));
    if (mode == HWNAS_STORE_CREATE && is_there)
        return hwnas_store_fail_exists(store->base.path);
    if (mode == HWNAS_STORE_RESUME)
        return is_there ? resume(store, format) : hwnas_store_fail_absent(store->base.path, mode);
    if (is_there) {
        TRY(check_format(store, format));
        store->draft = hwnas_printf("%s-new", store->name);
    }
    return create(store);
}

static hwnas_status open_store(hwnas_store **out, const char *path, hwnas_store_mode mode)
{
    char *conninfo = NULL, *name = NULL;
    TRY(hwnas_study_url_split(&conninfo, &name, path));
    postgresql_store *store = hwnas_alloc(sizeof *store);
    store->base.driver = &hwnas_postgresql_driver;
    store->base.path = hwnas_strdup(path);
    store->name = name;
    *out = &store->base;
    hwnas_status status = hwnas_postgresql_connect(&store->base.db, conninfo, path);
    free(conninfo);
    TRY(status);
    TRY(mode == HWNAS_STORE_READ ? open_for_reading(store) : open_for_changes(store, mode));
    return hwnas_store_prepare(&store->base) ? hwnas_store_prepare_packed(&store->base)
                                             : fail(&store->base);
}

static void shut(hwnas_store *base, bool and_delete)
{
    postgresql_store *store = (postgresql_store *)base;
    for (int i = 0; i < HWNAS_N_STORE_SQL; i++)
        if (base->statements[i])
            hwnas_statement_reset(base->statements[i]);
    if (base->db && base->is_created && (and_delete || store->draft)) {
        char *sql = hwnas_printf("DROP SCHEMA \"%s\" CASCADE", current_name(store));
        base->db->ops->exec(base->db, sql);
        free(sql);
    }
    hwnas_store_disconnect(base);
    free(store->draft);
    free(store->name);
    free(base->path);
    free(store);
}

/* ---- Publishing ---- */

static bool is_draft(const hwnas_store *store)
{
    return ((const postgresql_store *)store)->draft != NULL;
}

static hwnas_status take_place(postgresql_store *store)
{
    TRY(do_exec(store, hwnas_printf("DROP SCHEMA \"%s\" CASCADE", store->name)));
    return do_exec(store,
                   hwnas_printf("ALTER SCHEMA \"%s\" RENAME TO \"%s\"", store->draft, store->name));
}

static hwnas_status publish(hwnas_store *base)
{
    postgresql_store *store = (postgresql_store *)base;
    TRY(hwnas_store_begin(base));
    TRY(hwnas_store_end(base, take_place(store)));
    free(store->draft);
    store->draft = NULL;
    return use_schema(store);
}

/* ---- Of the whole ---- */

static hwnas_status list_schemas(char ***names, size_t *n, const postgresql_store *store)
{
    static const char sql[] =
        "SELECT nspname FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE '" MARK
        "%' AND nspname NOT LIKE '%-new'";
    hwnas_database *db = store->base.db;
    size_t room = 0;
    hwnas_step step = HWNAS_STEP_FAILED;
    hwnas_statement *statement = db->ops->prepare(db, sql);
    while (statement && (step = hwnas_statement_step(statement)) == HWNAS_STEP_ROW) {
        HWNAS_GROW(*names, *n, room);
        (*names)[(*n)++] =
            hwnas_printf("%s%cstudy=%s", store->base.path,
                         strchr(store->base.path, '?') ? '&' : '?', hwnas_row_text(statement, 0));
    }
    hwnas_statement_free(statement);
    return step == HWNAS_STEP_DONE ? HWNAS_OK : fail(&store->base);
}

/* A schema that is no study is there, too. */
static hwnas_status exists(bool *out, const char *path)
{
    char *conninfo = NULL;
    int format;
    postgresql_store store = {.base.driver = &hwnas_postgresql_driver};
    TRY(hwnas_study_url_split(&conninfo, &store.name, path));
    store.base.path = (char *)path;
    hwnas_status status = hwnas_postgresql_connect(&store.base.db, conninfo, path);
    if (status == HWNAS_OK)
        status = look(out, &format, &store, store.name);
    hwnas_store_disconnect(&store.base);
    free(conninfo);
    free(store.name);
    return status;
}

static hwnas_status look_for_holder(bool *out, const char *path)
{
    char *conninfo = NULL, *session = NULL, *holder = NULL;
    postgresql_store store = {.base.driver = &hwnas_postgresql_driver};
    TRY(hwnas_study_url_split(&conninfo, &store.name, path));
    store.base.path = (char *)path;
    hwnas_status status = hwnas_postgresql_connect(&store.base.db, conninfo, path);
    if (status == HWNAS_OK)
        status = number_lock(&session, &store, "study");
    if (status == HWNAS_OK)
        status = find_holder(&holder, out, &store, session);
    hwnas_store_disconnect(&store.base);
    free(conninfo);
    free(store.name);
    free(session);
    free(holder);
    return status;
}

static bool is_held(const char *path)
{
    bool is_held = false;
    if (look_for_holder(&is_held, path) != HWNAS_OK)
        hwnas_error_clear();
    return is_held;
}

/* `where` may name a study, which counts for nothing. */
static hwnas_status list(char ***names, size_t *n, const char *where)
{
    char *conninfo = NULL, *name = NULL;
    postgresql_store store = {.base.driver = &hwnas_postgresql_driver};
    TRY(hwnas_study_url_split(&conninfo, &name, where));
    store.base.path = conninfo;
    hwnas_status status = hwnas_postgresql_connect(&store.base.db, conninfo, where);
    if (status == HWNAS_OK)
        status = list_schemas(names, n, &store);
    hwnas_store_disconnect(&store.base);
    free(conninfo);
    free(name);
    return status;
}

static hwnas_status vacuum(hwnas_store *base)
{
    postgresql_store *store = (postgresql_store *)base;
    char *tables = NULL;
    bool is_there;
    TRY(ask(&tables, &is_there, store,
            "SELECT string_agg(format('%I', tablename), ', ') FROM pg_tables WHERE schemaname = $1",
            current_name(store)));
    const hwnas_status status = do_exec(store, hwnas_printf("VACUUM (FULL, ANALYZE) %s", tables));
    free(tables);
    return status;
}

static const char *const prefixes[] = {"postgresql://", "postgres://", NULL};

const hwnas_store_driver hwnas_postgresql_driver = {
    .prefixes = prefixes,
    .is_remote = true,
    .open = open_store,
    .shut = shut,
    .exists = exists,
    .is_held = is_held,
    .is_draft = is_draft,
    .publish = publish,
    .fail = fail,
    .list = list,
    .may_pack = "SELECT 1 + has_table_privilege(oid, 'INSERT')::int FROM pg_class"
                " WHERE oid = to_regclass(quote_ident(current_schema()) || '.packed')"
                " AND has_table_privilege(oid, 'SELECT')",
    .size = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
    .vacuum = vacuum,
};
