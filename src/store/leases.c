#include "store/leases.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store_driver.h"

enum { SETTLE, CLEAN, ADD, END, HAND_ON, TAKE, OFFERED, WAITING, HELD, RENEW, RELEASE, N_SQL };

#define FROM_NOW "@ + 60"
#define IS_OFFERED                                                                                 \
    "(expires < @ OR expires > 60 + " FROM_NOW " OR worker = $1) AND (tasks & $2) <> 0"

_Static_assert(HWNAS_LEASE_SECONDS == 60, "FROM_NOW says the same");

/* @ is the database's clock, # what passes over locked rows (database.h). */
static const char *const sql[N_SQL] = {
    [SETTLE] = "INSERT INTO lease (trial, worker, expires)"
               " SELECT number, '', 0 FROM trial WHERE finish_order IS NULL"
               " ON CONFLICT (trial) DO NOTHING",
    [CLEAN] = "DELETE FROM lease WHERE trial IN"
              " (SELECT number FROM trial WHERE finish_order IS NOT NULL)",
    [ADD] = "INSERT INTO lease (trial, worker, expires) VALUES ($1, $2, " FROM_NOW ")",
    [END] = "DELETE FROM lease WHERE trial = $1 AND worker = $2 RETURNING trial",
    /* What another one is just taking is passed over; what it has just taken is looked at again, as
     * it has changed meanwhile. One that ends later than any can was given before the clock was set
     * back. */
    [TAKE] = "UPDATE lease SET worker = $1, expires = " FROM_NOW " WHERE trial ="
             " (SELECT trial FROM lease WHERE " IS_OFFERED " ORDER BY trial LIMIT 1#)"
             " RETURNING trial, tasks, begun",
    [OFFERED] = "SELECT count(*) FROM lease WHERE " IS_OFFERED,
    [HAND_ON] = "UPDATE lease SET tasks = $1, begun = $2, expires = 0, worker = ''"
                " WHERE trial = $3 AND worker = $4 RETURNING trial",
    [WAITING] = "SELECT tasks, count(*) FROM lease WHERE worker = '' AND (tasks & $1) = 0"
                " GROUP BY tasks",
    [HELD] = "SELECT count(*) FROM lease WHERE worker <> '' AND worker <> $1 AND expires >= @",
    [RENEW] = "UPDATE lease SET expires = " FROM_NOW " WHERE worker = $1",
    [RELEASE] = "UPDATE lease SET expires = 0, worker = '' WHERE worker = $1",
};

struct hwnas_leases {
    hwnas_store *store;
    char *worker;
    hwnas_statement *statements[N_SQL];
};

static hwnas_statement *prepare(hwnas_database *db, const char *text)
{
    hwnas_str whole = {0};
    for (; *text; text++)
        if (*text == '@')
            hwnas_str_add(&whole, db->ops->now);
        else if (*text == '#')
            hwnas_str_add(&whole, db->ops->skip_locked);
        else
            hwnas_str_addf(&whole, "%c", *text);
    hwnas_statement *statement = db->ops->prepare(db, whole.s);
    hwnas_str_done(&whole);
    return statement;
}

hwnas_status hwnas_leases_open(hwnas_leases **out, hwnas_store *store, const char *worker)
{
    hwnas_leases *l = hwnas_alloc(sizeof *l);
    *l = (hwnas_leases){.store = store, .worker = hwnas_strdup(worker)};
    for (int i = 0; i < N_SQL; i++)
        if (!(l->statements[i] = prepare(store->db, sql[i]))) {
            hwnas_leases_close(l);
            return hwnas_store_fail(store);
        }
    *out = l;
    return HWNAS_OK;
}

void hwnas_leases_close(hwnas_leases *l)
{
    if (!l)
        return;
    for (int i = 0; i < N_SQL; i++)
        hwnas_statement_free(l->statements[i]);
    free(l->worker);
    free(l);
}

static hwnas_status run_for_worker(hwnas_leases *l, int id)
{
    return hwnas_store_run(l->store, hwnas_statement_bind(l->statements[id], "t", l->worker));
}

hwnas_status hwnas_leases_settle(hwnas_leases *l)
{
    TRY(hwnas_store_run(l->store, l->statements[CLEAN]));
    return hwnas_store_run(l->store, l->statements[SETTLE]);
}

hwnas_status hwnas_leases_add(hwnas_leases *l, uint64_t number)
{
    return hwnas_store_run(
        l->store, hwnas_statement_bind(l->statements[ADD], "it", (int64_t)number, l->worker));
}

hwnas_status hwnas_leases_end(bool *was_ours, hwnas_leases *l, uint64_t number)
{
    int64_t found = -1;
    TRY(hwnas_store_query_int(
        &found, l->store,
        hwnas_statement_bind(l->statements[END], "it", (int64_t)number, l->worker), -1));
    *was_ours = found >= 0;
    return HWNAS_OK;
}

hwnas_status hwnas_leases_hand_on(bool *was_ours, hwnas_leases *l, const hwnas_lease *lease)
{
    int64_t found = -1;
    TRY(hwnas_store_query_int(&found, l->store,
                              hwnas_statement_bind(l->statements[HAND_ON], "itit", lease->tasks,
                                                   lease->begun, (int64_t)lease->number, l->worker),
                              -1));
    *was_ours = found >= 0;
    return HWNAS_OK;
}

hwnas_status hwnas_leases_take(bool *is_there, hwnas_lease *out, hwnas_leases *l, int64_t tasks)
{
    enum { TRIAL_OF, TASKS_OF, BEGUN_OF };
    hwnas_statement *row = hwnas_statement_bind(l->statements[TAKE], "ti", l->worker, tasks);
    const hwnas_step step = hwnas_statement_step(row);
    hwnas_status status = HWNAS_OK;
    *is_there = step == HWNAS_STEP_ROW;
    if (step == HWNAS_STEP_FAILED) {
        status = hwnas_store_fail(l->store);
    } else if (*is_there) {
        const char *begun = hwnas_row_text(row, BEGUN_OF);
        *out = (hwnas_lease){.number = (uint64_t)hwnas_row_int(row, TRIAL_OF),
                             .tasks = hwnas_row_int(row, TASKS_OF),
                             .begun = begun ? hwnas_strdup(begun) : NULL};
    }
    hwnas_statement_reset(row);
    return status;
}

hwnas_status hwnas_leases_waiting(int64_t *n, int64_t *others, hwnas_leases *l, int64_t tasks)
{
    enum { TASKS_OF, N_OF };
    hwnas_statement *row = hwnas_statement_bind(l->statements[WAITING], "i", tasks);
    hwnas_step step;
    int64_t sum = 0, all = 0;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        all |= hwnas_row_int(row, TASKS_OF);
        sum += hwnas_row_int(row, N_OF);
    }
    const hwnas_status status = step == HWNAS_STEP_FAILED ? hwnas_store_fail(l->store) : HWNAS_OK;
    hwnas_statement_reset(row);
    if (status == HWNAS_OK) {
        *n = sum;
        *others = all;
    }
    return status;
}

hwnas_status hwnas_leases_offered(int64_t *n, hwnas_leases *l, int64_t tasks)
{
    return hwnas_store_query_int(
        n, l->store, hwnas_statement_bind(l->statements[OFFERED], "ti", l->worker, tasks), 0);
}

hwnas_status hwnas_leases_held(int64_t *n, hwnas_leases *l)
{
    return hwnas_store_query_int(n, l->store,
                                 hwnas_statement_bind(l->statements[HELD], "t", l->worker), 0);
}

hwnas_status hwnas_leases_renew(hwnas_leases *l)
{
    return run_for_worker(l, RENEW);
}

hwnas_status hwnas_leases_release(hwnas_leases *l)
{
    return run_for_worker(l, RELEASE);
}
