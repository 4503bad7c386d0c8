/* database.h: a connection to a database, of any kind: statements, their parameters, rows.
 *
 * SQL is written once for all kinds. Its parameters are $1, $2, ...; each is first named in that
 * order, as SQLite counts them so. A statement is bound, stepped through and reset; PostgreSQL
 * wants one to be reset before another is stepped. */
#ifndef HWNAS_STORE_DATABASE_H
#define HWNAS_STORE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hwnas_database {
    const struct hwnas_database_ops *ops;
} hwnas_database;

typedef struct hwnas_statement {
    hwnas_database *db;
} hwnas_statement;

typedef enum hwnas_step { HWNAS_STEP_ROW, HWNAS_STEP_DONE, HWNAS_STEP_FAILED } hwnas_step;

typedef struct hwnas_database_ops {
    const char *int_type, *real_type, *bytes_type; /* its words for the types of columns */
    /* Seconds of a clock that all who are connected have in common. */
    const char *now;
    const char *skip_locked; /* ends a SELECT that passes over rows that others just change */
    void (*close)(hwnas_database *db);
    /* What the last failure was, in words that follow "cannot ...: ". */
    const char *(*reason)(const hwnas_database *db);
    bool (*exec)(hwnas_database *db, const char *sql); /* one statement or several */
    /* One process at a time is between begin and end. The end after a failure takes all back. */
    bool (*begin)(hwnas_database *db);
    /* From the first look on until the end all is read as it was then; others may change it. */
    bool (*begin_reading)(hwnas_database *db);
    bool (*commit)(hwnas_database *db);
    void (*rollback)(hwnas_database *db); /* nothing, without a transaction */
    bool (*is_in_transaction)(const hwnas_database *db);

    hwnas_statement *(*prepare)(hwnas_database *db, const char *sql); /* NULL: failed */
    void (*finalize)(hwnas_statement *statement);
    hwnas_step (*step)(hwnas_statement *statement);
    /* For another run; parameters stay. */
    void (*reset)(hwnas_statement *statement);
    /* Has the database begin with a statement that is stepped through later, with the parameters
     * that it has now, whatever else is asked in between. NULL: nothing is won by that. */
    void (*ask_ahead)(hwnas_statement *statement);

    /* Parameters count from 1. NaN becomes NULL. Texts and bytes must live until the reset. */
    void (*bind_int)(hwnas_statement *statement, int at, int64_t value);
    void (*bind_double)(hwnas_statement *statement, int at, double value);
    void (*bind_text)(hwnas_statement *statement, int at, const char *text); /* NULL: SQL's NULL */
    void (*bind_bytes)(hwnas_statement *statement, int at, const void *bytes, size_t n);

    /* Columns count from 0; what they give lives until the next step. */
    bool (*is_null)(hwnas_statement *row, int column);
    int64_t (*get_int)(hwnas_statement *row, int column);
    double (*get_double)(hwnas_statement *row, int column);
    const char *(*get_text)(hwnas_statement *row, int column); /* NULL: SQL's NULL */
    const void *(*get_bytes)(hwnas_statement *row, int column, size_t *n);
} hwnas_database_ops;

static inline hwnas_step hwnas_statement_step(hwnas_statement *statement)
{
    return statement->db->ops->step(statement);
}

static inline void hwnas_statement_reset(hwnas_statement *statement)
{
    statement->db->ops->reset(statement);
}

static inline void hwnas_statement_ask_ahead(hwnas_statement *statement)
{
    if (statement->db->ops->ask_ahead)
        statement->db->ops->ask_ahead(statement);
}

/* One letter for each parameter: i int64_t, d double, t text, b bytes and, as size_t, their number.
 * Returns the statement. */
hwnas_statement *hwnas_statement_bind(hwnas_statement *statement, const char *types, ...);
/* Does what needs no answer, and resets it. */
bool hwnas_statement_run(hwnas_statement *statement);
void hwnas_statement_free(hwnas_statement *statement); /* accepts NULL */

static inline bool hwnas_row_is_null(hwnas_statement *row, int column)
{
    return row->db->ops->is_null(row, column);
}

static inline int64_t hwnas_row_int(hwnas_statement *row, int column)
{
    return row->db->ops->get_int(row, column);
}

static inline const char *hwnas_row_text(hwnas_statement *row, int column)
{
    return row->db->ops->get_text(row, column);
}

static inline const void *hwnas_row_bytes(hwnas_statement *row, int column, size_t *n)
{
    return row->db->ops->get_bytes(row, column, n);
}

double hwnas_row_double(hwnas_statement *row, int column); /* NULL: NaN */

#endif
