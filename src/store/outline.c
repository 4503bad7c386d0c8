#include "store/outline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/names.h"
#include "store/store_driver.h"

/* Columns of the two statements: one after the other is half the work of a join. */
enum {
    NUMBER,
    RUNG,
    FINISH_ORDER,
    STATUS,
    CODE,
    MESSAGE,
    DETAIL,
    VIOLATION,
    UNSTABLE,
    STOPPED_EARLY
};
enum { TRIAL, METRIC, SOURCE, VALUE, LOW, HIGH };

static const char select_trials[] =
    "SELECT number, rung, finish_order, status, CASE WHEN status <> 'ok' THEN code END,"
    " CASE WHEN status <> 'ok' THEN message END, detail, violation, unstable, stopped_early"
    " FROM trial ORDER BY number";

/* yours to free() */
static char *select_values(size_t n_metrics)
{
    hwnas_str sql = {0};
    hwnas_str_add(&sql, "SELECT trial, metric, source, value, low, high FROM value"
                        " WHERE source IN ('estimated', 'partial')");
    for (size_t i = 0; i < n_metrics; i++)
        hwnas_str_addf(&sql, "%s$%zu", i ? ", " : " OR metric IN (", i + 1);
    hwnas_str_add(&sql, n_metrics ? ") ORDER BY trial, position" : " ORDER BY trial, position");
    return sql.s;
}

static char *copy_text(hwnas_statement *row, int column)
{
    const char *text = hwnas_row_text(row, column);
    return text ? hwnas_strdup(text) : NULL;
}

static hwnas_status read_trial(hwnas_trial *out, const hwnas_store *store, hwnas_statement *row)
{
    *out = (hwnas_trial){.number = (uint64_t)hwnas_row_int(row, NUMBER),
                         .rung = (int)hwnas_row_int(row, RUNG),
                         .order = -1};
    const char *status = hwnas_row_text(row, STATUS);
    if (!status)
        return HWNAS_OK;
    out->is_finished = true;
    out->order = hwnas_row_int(row, FINISH_ORDER);
    out->status = hwnas_status_from_name(status);
    if (out->status >= HWNAS_N_STATUS)
        return hwnas_store_damaged(store, "a status is unknown");
    out->violation = hwnas_row_double(row, VIOLATION);
    out->is_unstable = (int)hwnas_row_int(row, UNSTABLE);
    out->is_stopped_early = (int)hwnas_row_int(row, STOPPED_EARLY);
    if (out->status == HWNAS_OK)
        return HWNAS_OK;
    out->code = copy_text(row, CODE);
    out->message = copy_text(row, MESSAGE);
    return hwnas_is_text(out->code) && (!out->message || hwnas_is_text(out->message))
               ? HWNAS_OK
               : hwnas_store_damaged(store, "a trial has no code, or other words that are no text");
}

/* Adds one value, in exactly the room that most need. */
static hwnas_status add_value(hwnas_trial *trial, const hwnas_store *store, hwnas_names *names,
                              const hwnas_outline_wish *wish, hwnas_statement *row)
{
    const char *source = hwnas_row_text(row, SOURCE);
    hwnas_value_row v = {.metric = hwnas_names_read(names, row, METRIC),
                         .value = hwnas_row_double(row, VALUE),
                         .low = hwnas_row_double(row, LOW),
                         .high = hwnas_row_double(row, HIGH),
                         .unit = "",
                         .source = hwnas_source_from_name(source ? source : "")};
    if (v.source == HWNAS_N_SOURCES)
        return hwnas_store_damaged(store, "the source of a value is unknown");
    if (!v.metric || !isfinite(v.value))
        return hwnas_store_damaged(store, "a value is not a number, or its words are no text");
    v.low = isfinite(v.low) ? v.low : NAN;
    v.high = isfinite(v.high) ? v.high : NAN;
    if (!trial->value_room && wish->n_metrics) {
        trial->value_room = wish->n_metrics;
        trial->values = hwnas_alloc(trial->value_room * sizeof *trial->values);
    }
    hwnas_trial_add(trial, &v);
    return HWNAS_OK;
}

static hwnas_status read_trials(hwnas_trial **trials, size_t *n, const hwnas_store *store,
                                const hwnas_outline_wish *wish, hwnas_statement *row)
{
    size_t room = 0;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        HWNAS_GROW(*trials, *n, room);
        TRY(read_trial(&(*trials)[(*n)++], store, row));
        const char *detail = hwnas_row_text(row, DETAIL);
        if (detail)
            wish->see_detail(wish->context, *n - 1, detail);
    }
    return step == HWNAS_STEP_DONE ? HWNAS_OK : hwnas_store_fail(store);
}

static hwnas_status read_values(hwnas_trial *trials, size_t n, const hwnas_store *store,
                                const hwnas_outline_wish *wish, hwnas_statement *row)
{
    hwnas_names names = {0};
    size_t at = 0;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        const uint64_t number = (uint64_t)hwnas_row_int(row, TRIAL);
        while (at < n && trials[at].number < number)
            at++;
        if (at == n || trials[at].number != number)
            return hwnas_store_damaged(store, "a trial is missing");
        TRY(add_value(&trials[at], store, &names, wish, row));
    }
    return step == HWNAS_STEP_DONE ? HWNAS_OK : hwnas_store_fail(store);
}

static hwnas_status read_outlines(hwnas_trial **trials, size_t *n, const hwnas_store *store,
                                  const hwnas_outline_wish *wish)
{
    hwnas_database *db = store->db;
    hwnas_statement *row = db->ops->prepare(db, select_trials);
    hwnas_status status = row ? read_trials(trials, n, store, wish, row) : hwnas_store_fail(store);
    hwnas_statement_free(row);
    TRY(status);
    char *sql = select_values(wish->n_metrics);
    row = db->ops->prepare(db, sql);
    free(sql);
    for (size_t i = 0; i < wish->n_metrics && row; i++)
        db->ops->bind_text(row, (int)i + 1, wish->metrics[i]);
    status = row ? read_values(*trials, *n, store, wish, row) : hwnas_store_fail(store);
    hwnas_statement_free(row);
    return status;
}

hwnas_status hwnas_store_outlines(hwnas_trial **out, size_t *n, hwnas_store *store,
                                  const hwnas_outline_wish *wish)
{
    hwnas_trial *trials = NULL;
    size_t count = 0;
    TRY(hwnas_store_begin_reading(store)); /* both statements see the same */
    const hwnas_status status = hwnas_store_end(store, read_outlines(&trials, &count, store, wish));
    if (status == HWNAS_OK) {
        *out = trials;
        *n = count;
    } else {
        hwnas_trials_free(trials, count);
    }
    return status;
}

hwnas_status hwnas_store_fill(hwnas_trial *trial, hwnas_store *store)
{
    hwnas_trial whole;
    TRY(hwnas_store_trial(&whole, store, trial->number));
    /* What it is judged as may be by other limits than those in the store. */
    whole.violation = trial->violation;
    hwnas_trial_done(trial);
    *trial = whole;
    return HWNAS_OK;
}
