/* store_again.c: values that were measured again, beside those that a strategy was told. */
#include <math.h>
#include <string.h>

#include "store/store_driver.h"

/* An end of an interval that is not known is stored as one that may be anywhere. */
static double stored_end(double end, double otherwise)
{
    return isnan(end) ? otherwise : end;
}

/* As it was stored. */
static double end_of(hwnas_statement *row, int column)
{
    const double end = hwnas_row_double(row, column);
    return isfinite(end) ? end : NAN;
}

hwnas_status hwnas_store_again(hwnas_store *store, uint64_t number, const hwnas_value_row *values,
                               size_t n)
{
    hwnas_status status = HWNAS_OK;
    TRY(hwnas_store_begin(store));
    for (size_t i = 0; i < n && status == HWNAS_OK; i++)
        status = hwnas_store_run(
            store, hwnas_store_bind(
                       store, HWNAS_SQL_SET_AGAIN, "itdddi", (int64_t)number, values[i].metric,
                       values[i].value, stored_end(values[i].low, -INFINITY),
                       stored_end(values[i].high, INFINITY), (int64_t)values[i].rounds));
    return hwnas_store_end(store, status);
}

typedef struct replacement {
    const hwnas_store *store;
    hwnas_trial *trials;
    size_t n;
} replacement;

static hwnas_status replace(void *context, hwnas_statement *row)
{
    const replacement *r = context;
    const uint64_t number = (uint64_t)hwnas_row_int(row, 0);
    const char *metric = hwnas_row_text(row, 1);
    if (number >= r->n || r->trials[number].number != number)
        return HWNAS_OK;
    hwnas_trial *trial = &r->trials[number];
    if (!isfinite(hwnas_row_double(row, 2)))
        return hwnas_store_damaged(r->store, "a value that was measured again is not a number");
    for (size_t i = 0; i < trial->n_values; i++) {
        hwnas_value_row *v = &trial->values[i];
        if (strcmp(v->metric, metric ? metric : ""))
            continue;
        v->value = hwnas_row_double(row, 2);
        v->low = end_of(row, 3);
        v->high = end_of(row, 4);
        v->rounds = (int)hwnas_row_int(row, 5);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_store_replace(hwnas_trial *trials, size_t n, hwnas_store *store)
{
    replacement r = {store, trials, n};
    return hwnas_store_each_row(store, store->statements[HWNAS_SQL_LIST_AGAIN], replace, &r);
}
