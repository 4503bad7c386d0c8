/* postgresql_database.c: a connection to PostgreSQL.
 *
 * Rows come one at a time, so that a study of any size is read in little memory, and numbers as
 * bytes: nothing depends on a locale, and every bit comes back. One statement may be asked ahead:
 * its answer is taken from the connection before anything else is asked. */
#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/libpq.h"
#include "store/postgresql.h"

enum { MAX_PARAMETERS = 8, FLOAT4 = 700, FLOAT8 = 701 /* of pg_type */ };

typedef struct pq_database {
    hwnas_database base;
    const hwnas_libpq *pq;
    PGconn *connection;
    char *begin; /* yours: what a transaction begins with */
    bool is_in_transaction;
    char *reason, state[6]; /* of the last failure */
    unsigned n_prepared;    /* so far, for their names */
    struct pq_statement *ahead; /* its answer is on the way; NULL: none */
} pq_database;

typedef struct pq_statement {
    hwnas_statement base;
    char *sql, name[16];
    bool is_prepared, is_running;
    PGresult *row;
    PGresult **kept; /* of one that was asked ahead: its answer, up to the first NULL; NULL: none */
    size_t at_kept;
    int n;
    const char *values[MAX_PARAMETERS];
    uint64_t numbers[MAX_PARAMETERS]; /* as they go over the wire */
    int lengths[MAX_PARAMETERS], formats[MAX_PARAMETERS];
} pq_statement;

/* ---- Failures ---- */

/* Of what is asked in a transaction after its failure, until its end. */
static const char FAILED_BEFORE[] = "25P02";

/* The first line alone: what follows quotes our own SQL. What a transaction failed of says more
 * than that it failed. */
static void note(pq_database *db, const char *message, const char *state)
{
    if (state && !strcmp(state, FAILED_BEFORE) && db->is_in_transaction && db->reason)
        return;
    char *line = hwnas_strdup(message && *message ? message : "the connection was lost");
    line[strcspn(line, "\n")] = '\0';
    free(db->reason);
    db->reason = line;
    snprintf(db->state, sizeof db->state, "%s", state ? state : "");
}

static void note_result(pq_database *db, const PGresult *result)
{
    const hwnas_libpq *pq = db->pq;
    const char *state = result ? pq->PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message = result ? pq->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    note(db, message ? message : pq->PQerrorMessage(db->connection), state);
    /* A server that shuts down says so, and is gone. */
    if (pq->PQstatus(db->connection) == CONNECTION_BAD)
        *db->state = '\0';
}

static const char *reason(const hwnas_database *db)
{
    const pq_database *database = (const pq_database *)db;
    return database->reason ? database->reason : "the answer makes no sense";
}

const char *hwnas_postgresql_state(const hwnas_database *db)
{
    return ((const pq_database *)db)->state;
}

/* Of an answer that nobody has looked at yet: its failure may be the transaction's as well. */
static void note_failure(pq_database *db, const PGresult *result)
{
    const ExecStatusType code = db->pq->PQresultStatus(result);
    if (code != PGRES_SINGLE_TUPLE && code != PGRES_TUPLES_OK && code != PGRES_COMMAND_OK)
        note_result(db, result);
}

/* ---- What was asked ahead ---- */

static void drop_kept(pq_statement *s, const pq_database *db)
{
    for (size_t i = s->at_kept; s->kept && s->kept[i]; i++)
        db->pq->PQclear(s->kept[i]);
    free(s->kept);
    s->kept = NULL;
    s->at_kept = 0;
}

/* Takes the answer from the connection, which is asked something else now. */
static void make_way(pq_database *db)
{
    pq_statement *s = db->ahead;
    size_t n = 0, room = 0;
    db->ahead = NULL;
    if (!s)
        return;
    do {
        HWNAS_GROW(s->kept, n, room);
        s->kept[n] = db->pq->PQgetResult(db->connection);
        if (s->kept[n])
            note_failure(db, s->kept[n]);
    } while (s->kept[n++]);
}

static PGresult *next_result(pq_statement *s, const pq_database *db)
{
    if (!s->kept)
        return db->pq->PQgetResult(db->connection);
    return s->kept[s->at_kept] ? s->kept[s->at_kept++] : NULL;
}

/* ---- The connection ---- */

static void close_database(hwnas_database *base)
{
    pq_database *db = (pq_database *)base;
    db->pq->PQfinish(db->connection);
    free(db->begin);
    free(db->reason);
    free(db);
}

/* `tag`: what the server must say it did; NULL: anything. */
static bool do_exec(pq_database *db, const char *sql, const char *tag)
{
    const hwnas_libpq *pq = db->pq;
    make_way(db);
    PGresult *result = pq->PQexec(db->connection, sql);
    const ExecStatusType code = pq->PQresultStatus(result);
    bool is_done = code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK;
    if (!is_done)
        note_result(db, result);
    else if (tag && strcmp(pq->PQcmdStatus(result), tag)) {
        note(db, "a part of the transaction had failed", FAILED_BEFORE);
        is_done = false;
    }
    pq->PQclear(result);
    return is_done;
}

static bool exec(hwnas_database *db, const char *sql)
{
    return do_exec((pq_database *)db, sql, NULL);
}

static void rollback(hwnas_database *base)
{
    pq_database *db = (pq_database *)base;
    char *why = db->reason, state[sizeof db->state];
    if (!db->is_in_transaction)
        return;
    memcpy(state, db->state, sizeof state); /* the failure that matters came before */
    db->reason = NULL;
    do_exec(db, "ROLLBACK", NULL);
    free(db->reason);
    db->reason = why;
    memcpy(db->state, state, sizeof state);
    db->is_in_transaction = false;
}

static bool begin_as(hwnas_database *base, const char *sql)
{
    pq_database *db = (pq_database *)base;
    free(db->reason);
    db->reason = NULL;
    db->is_in_transaction = true;
    if (do_exec(db, sql, NULL))
        return true;
    rollback(base);
    return false;
}

static bool begin(hwnas_database *base)
{
    const pq_database *db = (pq_database *)base;
    return begin_as(base, db->begin ? db->begin : "BEGIN");
}

static bool begin_reading(hwnas_database *base)
{
    return begin_as(base, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

static bool commit(hwnas_database *base)
{
    pq_database *db = (pq_database *)base;
    if (!do_exec(db, "COMMIT", "COMMIT"))
        return false;
    db->is_in_transaction = false;
    return true;
}

static bool is_in_transaction(const hwnas_database *db)
{
    return ((const pq_database *)db)->is_in_transaction;
}

void hwnas_postgresql_lock_by(hwnas_database *base, int64_t lock)
{
    pq_database *db = (pq_database *)base;
    free(db->begin);
    db->begin = hwnas_printf("BEGIN; SELECT pg_advisory_xact_lock(%lld)", (long long)lock);
}

/* ---- Statements ---- */

static hwnas_statement *prepare(hwnas_database *base, const char *sql)
{
    pq_database *db = (pq_database *)base;
    pq_statement *statement = hwnas_alloc(sizeof *statement);
    statement->base.db = base;
    statement->sql = hwnas_strdup(sql);
    snprintf(statement->name, sizeof statement->name, "s%u", db->n_prepared++);
    return &statement->base;
}

static void clear_row(pq_statement *s, const pq_database *db)
{
    db->pq->PQclear(s->row);
    s->row = NULL;
}

static void reset(hwnas_statement *statement)
{
    pq_statement *s = (pq_statement *)statement;
    pq_database *db = (pq_database *)statement->db;
    clear_row(s, db);
    for (PGresult *rest; s->is_running && (rest = next_result(s, db));) {
        note_failure(db, rest);
        db->pq->PQclear(rest);
    }
    s->is_running = false;
    drop_kept(s, db);
    if (db->ahead == s)
        db->ahead = NULL;
}

/* What it has on the server goes with the connection. */
static void finalize(hwnas_statement *statement)
{
    pq_statement *s = (pq_statement *)statement;
    reset(statement);
    free(s->sql);
    free(s);
}

/* A round trip to the server, so it is put off until the statement is needed. */
static bool prepare_now(pq_statement *s, pq_database *db)
{
    PGresult *result = db->pq->PQprepare(db->connection, s->name, s->sql, 0, NULL);
    s->is_prepared = db->pq->PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!s->is_prepared)
        note_result(db, result);
    db->pq->PQclear(result);
    return s->is_prepared;
}

static bool start(pq_statement *s, pq_database *db)
{
    make_way(db);
    if (!s->is_prepared && !prepare_now(s, db))
        return false;
    if (!db->pq->PQsendQueryPrepared(db->connection, s->name, s->n, s->values, s->lengths,
                                     s->formats, 1)) {
        note_result(db, NULL);
        return false;
    }
    db->pq->PQsetSingleRowMode(db->connection);
    s->is_running = true;
    return true;
}

/* What goes wrong is told when it is stepped through. */
static void ask_ahead(hwnas_statement *statement)
{
    pq_statement *s = (pq_statement *)statement;
    pq_database *db = (pq_database *)statement->db;
    if (start(s, db))
        db->ahead = s;
}

static hwnas_step step(hwnas_statement *statement)
{
    pq_statement *s = (pq_statement *)statement;
    pq_database *db = (pq_database *)statement->db;
    clear_row(s, db);
    if (!s->is_running && !start(s, db))
        return HWNAS_STEP_FAILED;
    if (db->ahead == s)
        db->ahead = NULL;
    s->row = next_result(s, db);
    const ExecStatusType code = s->row ? db->pq->PQresultStatus(s->row) : PGRES_FATAL_ERROR;
    if (code == PGRES_SINGLE_TUPLE)
        return HWNAS_STEP_ROW;
    const bool is_done = code == PGRES_TUPLES_OK || code == PGRES_COMMAND_OK;
    if (!is_done)
        note_result(db, s->row);
    reset(statement);
    return is_done ? HWNAS_STEP_DONE : HWNAS_STEP_FAILED;
}

/* ---- Parameters ---- */

static void bind(hwnas_statement *statement, int at, const void *bytes, size_t n, int format)
{
    pq_statement *s = (pq_statement *)statement;
    s->values[at - 1] = bytes;
    s->lengths[at - 1] = (int)n;
    s->formats[at - 1] = format;
    s->n = at > s->n ? at : s->n;
}

static void bind_int(hwnas_statement *statement, int at, int64_t value)
{
    uint64_t *number = &((pq_statement *)statement)->numbers[at - 1];
    *number = htobe64((uint64_t)value);
    bind(statement, at, number, sizeof *number, 1);
}

static void bind_double(hwnas_statement *statement, int at, double value)
{
    uint64_t *number = &((pq_statement *)statement)->numbers[at - 1];
    memcpy(number, &value, sizeof value);
    *number = htobe64(*number);
    bind(statement, at, isnan(value) ? NULL : number, sizeof *number, 1);
}

static void bind_text(hwnas_statement *statement, int at, const char *text)
{
    bind(statement, at, text, 0, 0);
}

static void bind_bytes(hwnas_statement *statement, int at, const void *bytes, size_t n)
{
    bind(statement, at, bytes ? bytes : "", n, 1);
}

/* ---- Rows ---- */

static bool is_null(hwnas_statement *row, int column)
{
    const pq_database *db = (const pq_database *)row->db;
    return db->pq->PQgetisnull(((pq_statement *)row)->row, 0, column);
}

static const void *get_bytes(hwnas_statement *row, int column, size_t *n)
{
    const pq_database *db = (const pq_database *)row->db;
    const PGresult *result = ((pq_statement *)row)->row;
    *n = (size_t)db->pq->PQgetlength(result, 0, column);
    return db->pq->PQgetvalue(result, 0, column);
}

static int64_t get_int(hwnas_statement *row, int column)
{
    size_t n;
    const unsigned char *bytes = get_bytes(row, column, &n);
    if (is_null(row, column) || n == 0 || n > sizeof(int64_t))
        return 0;
    uint64_t value = bytes[0] & 0x80 ? UINT64_MAX : 0; /* the sign */
    for (size_t i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

static double get_double(hwnas_statement *row, int column)
{
    const pq_database *db = (const pq_database *)row->db;
    const int64_t bits = get_int(row, column);
    const Oid type = db->pq->PQftype(((pq_statement *)row)->row, column);
    double value = (double)bits;
    if (type == FLOAT8) {
        memcpy(&value, &bits, sizeof value);
    } else if (type == FLOAT4) {
        const int32_t half = (int32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        value = single;
    }
    return value;
}

static const char *get_text(hwnas_statement *row, int column)
{
    size_t n;
    return is_null(row, column) ? NULL : get_bytes(row, column, &n);
}

/* ---- Opening ---- */

static const hwnas_database_ops ops = {
    .int_type = "BIGINT",
    .real_type = "DOUBLE PRECISION",
    .bytes_type = "BYTEA",
    .now = "extract(epoch FROM clock_timestamp())",
    .skip_locked = " FOR UPDATE SKIP LOCKED",
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
    .ask_ahead = ask_ahead,
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

static void be_silent(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* A machine that is gone is noticed within a minute, also when it owes an answer, and one that
 * hangs in a transaction keeps others waiting no longer than that. */
static bool set_up(pq_database *db)
{
    return exec(&db->base, "SET idle_in_transaction_session_timeout = '60s';"
                           "SET client_min_messages = error");
}

static PGconn *connect_to(const hwnas_libpq *pq, const char *conninfo)
{
    char name[64], host[40] = "";
    if (gethostname(host, sizeof host - 1))
        *host = '\0';
    snprintf(name, sizeof name, "hwnas on %.30s, process %ld", host, (long)getpid());
    /* What stands in `conninfo` goes before what stands above it. */
    const char *keys[] = {"connect_timeout",  "keepalives_idle",           "keepalives_interval",
                          "keepalives_count", "fallback_application_name", "tcp_user_timeout",
                          "dbname",           "client_encoding",           NULL};
    const char *values[] = {"10", "30", "10", "3", name, "60000", conninfo, "UTF8", NULL};
    return pq->PQconnectdbParams(keys, values, 1);
}

hwnas_status hwnas_postgresql_connect(hwnas_database **out, const char *conninfo, const char *where)
{
    const hwnas_place place = {.file = where};
    const hwnas_libpq *pq;
    TRY(hwnas_libpq_open(&pq));
    pq_database *db = hwnas_alloc(sizeof *db);
    db->base.ops = &ops;
    db->pq = pq;
    db->connection = connect_to(pq, conninfo);
    pq->PQsetNoticeProcessor(db->connection, be_silent, NULL);
    if (pq->PQstatus(db->connection) == CONNECTION_OK && set_up(db)) {
        *out = &db->base;
        return HWNAS_OK;
    }
    if (!db->reason)
        note_result(db, NULL);
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_IO, &place, "cannot connect to PostgreSQL: %.300s", db->reason),
        "is the server running? a password belongs into PGPASSWORD or ~/.pgpass");
    close_database(&db->base);
    return status;
}
