/* store_statements.c: what is asked of a study's tables, for all kinds of database (database.h). */
#include "store/store_driver.h"

#define LAST_TOLD                                                                                  \
    "(SELECT max(position) FROM event WHERE event.trial = $1 AND kind IN ('finished', 'revised'))"

#define TRIALS                                                                                     \
    "SELECT number, code, digest, rung, finish_order, status, message, detail, seconds,"           \
    " violation, unstable, stopped_early, metric, value.value, low, high, unit, source"            \
    " FROM trial LEFT JOIN value ON value.trial = trial.number"

#define OUTCOME                                                                                    \
    "status = $1, message = $2, detail = $3, seconds = $4, violation = $5, unstable = $6,"         \
    " stopped_early = $7"

/* A trial that no later event wrote anew is as it is now. */
/* clang-format off */
#define THEN(column) \
    "CASE WHEN earlier.event IS NULL THEN trial." column " ELSE earlier." column " END, "
#define EITHER(column) "coalesce(value." column ", earlier_value." column "), "
#define OUTCOME_THEN \
    THEN("status") THEN("message") THEN("detail") THEN("seconds") THEN("violation") \
    THEN("unstable") THEN("stopped_early")
#define VALUE_THEN \
    EITHER("metric") EITHER("value") EITHER("low") EITHER("high") EITHER("unit") EITHER("source")
/* clang-format on */

const char *const hwnas_store_statements[HWNAS_N_STORE_SQL] = {
    [HWNAS_SQL_SET_FACT] = "INSERT INTO fact VALUES ($1, $2)"
                           " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    [HWNAS_SQL_GET_FACT] = "SELECT value FROM fact WHERE key = $1",
    /* A trial that ran when the process died is asked again, and must be the same. */
    [HWNAS_SQL_START] =
        "INSERT INTO trial (number, code, digest, rung) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (number) DO UPDATE SET code = excluded.code"
        " WHERE trial.finish_order IS NULL AND trial.code = excluded.code"
        " AND trial.digest = excluded.digest AND trial.rung = excluded.rung RETURNING number",
    [HWNAS_SQL_FINISH] = "UPDATE trial SET " OUTCOME ","
                         " finish_order = (SELECT coalesce(max(finish_order) + 1, 0) FROM trial)"
                         " WHERE number = $8 AND finish_order IS NULL RETURNING finish_order",
    [HWNAS_SQL_REVISE] = "UPDATE trial SET " OUTCOME
                         " WHERE number = $8 AND finish_order IS NOT NULL RETURNING finish_order",
    [HWNAS_SQL_FIND] = "SELECT finish_order FROM trial WHERE number = $1",
    [HWNAS_SQL_ADD_VALUE] = "INSERT INTO value VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    [HWNAS_SQL_REMOVE_VALUES] = "DELETE FROM value WHERE trial = $1",
    [HWNAS_SQL_COUNT] = "SELECT count(*) FROM trial",
    [HWNAS_SQL_COUNT_FINISHED] = "SELECT count(finish_order) FROM trial",
    [HWNAS_SQL_LIST] = TRIALS " ORDER BY number, position",
    [HWNAS_SQL_ONE] = TRIALS " WHERE number = $1 ORDER BY position",
    [HWNAS_SQL_FEW] = TRIALS " WHERE number IN ($1, $2, $3, $4, $5, $6, $7, $8)"
                             " ORDER BY number, position",
    [HWNAS_SQL_SET_AGAIN] =
        "INSERT INTO again VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (trial, metric) DO UPDATE"
        " SET value = excluded.value, low = excluded.low, high = excluded.high,"
        " rounds = excluded.rounds",
    [HWNAS_SQL_LIST_AGAIN] =
        "SELECT trial, metric, value, low, high, rounds FROM again ORDER BY trial, metric",
    [HWNAS_SQL_ADD_EVENT] =
        "INSERT INTO event VALUES ((SELECT coalesce(max(position), 0) + 1 FROM event), $1, $2)"
        " RETURNING position",
    [HWNAS_SQL_KEEP] =
        "INSERT INTO earlier SELECT " LAST_TOLD ", status, message, detail, seconds, violation,"
        " unstable, stopped_early FROM trial WHERE number = $1",
    [HWNAS_SQL_KEEP_VALUES] =
        "INSERT INTO earlier_value SELECT " LAST_TOLD ", position, metric, value.value, low,"
        " high, unit, source FROM value WHERE trial = $1",
    /* The columns of LIST as they were then, the event's kind, its position, and whether it is so
     * now. */
    [HWNAS_SQL_EVENTS] = "SELECT number, code, digest, rung, finish_order, " OUTCOME_THEN VALUE_THEN
                         "kind, event.position, CASE WHEN earlier.event IS NULL THEN 1 ELSE 0 END"
                         " FROM event JOIN trial ON trial.number = event.trial"
                         " LEFT JOIN earlier ON earlier.event = event.position"
                         " LEFT JOIN value ON value.trial = event.trial AND earlier.event IS NULL"
                         " AND kind IN ('finished', 'revised')"
                         " LEFT JOIN earlier_value ON earlier_value.event = event.position"
                         " WHERE event.position > $1 AND event.position <= $2"
                         " ORDER BY event.position, value.position, earlier_value.position",
    [HWNAS_SQL_PACK] = "INSERT INTO packed VALUES ($1, $2) ON CONFLICT (position) DO NOTHING",
    [HWNAS_SQL_COUNT_PACKED] = "SELECT count(*) FROM packed",
    [HWNAS_SQL_HAS_PACKED] = "SELECT count(*) FROM packed WHERE position = $1",
    [HWNAS_SQL_PACKED] = "SELECT events FROM packed WHERE position = $1",
    /* Of numbers without gaps, the ends. */
    [HWNAS_SQL_END] = "SELECT max(number) + 1 FROM trial",
    [HWNAS_SQL_END_FINISHED] = "SELECT max(finish_order) + 1 FROM trial",
    [HWNAS_SQL_COUNT_RUNNING] = "SELECT count(*) FROM trial WHERE finish_order IS NULL",
    [HWNAS_SQL_HAS_CODE] = "SELECT count(*) FROM trial WHERE number < $1 AND code = $2",
    [HWNAS_SQL_RUNNING] = "SELECT number, code, digest, rung FROM trial WHERE finish_order IS NULL"
                          " ORDER BY number",
    [HWNAS_SQL_POSITION] = "SELECT coalesce(max(position), 0) FROM event",
};
