/* trial_rows.h: trials and their values as rows of a study's tables; for the files that read them. */
#ifndef HWNAS_STORE_TRIAL_ROWS_H
#define HWNAS_STORE_TRIAL_ROWS_H

#include "store/names.h"
#include "store/store_driver.h"

/* Columns of HWNAS_SQL_LIST. */
enum {
    NUMBER,
    CODE,
    DIGEST,
    RUNG,
    FINISH_ORDER,
    STATUS,
    MESSAGE,
    DETAIL,
    SECONDS,
    VIOLATION,
    UNSTABLE,
    STOPPED_EARLY,
    METRIC,
    VALUE,
    LOW,
    HIGH,
    UNIT,
    SOURCE,
    /* of HWNAS_SQL_EVENTS alone */
    KIND,
    POSITION,
    IS_NOW
};

/* A trial without its values; it is to be released also after a failure. */
HWNAS_CHECKED hwnas_status hwnas_store_read_trial(hwnas_trial *out, const hwnas_store *store,
                                                  hwnas_statement *row);
/* Adds the value of a row that has one. */
HWNAS_CHECKED hwnas_status hwnas_store_read_value(hwnas_trial *trial, const hwnas_store *store,
                                                  hwnas_names *names, hwnas_statement *row);

/* Writes that something happened, in a transaction; and packs events (packed.h) when there are
 * enough. */
HWNAS_CHECKED hwnas_status hwnas_store_add_event(hwnas_store *store, uint64_t number,
                                                 hwnas_event_kind kind);

#endif
