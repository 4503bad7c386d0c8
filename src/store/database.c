#include "store/database.h"

#include <math.h>
#include <stdarg.h>

hwnas_statement *hwnas_statement_bind(hwnas_statement *statement, const char *types, ...)
{
    const hwnas_database_ops *ops = statement->db->ops;
    va_list ap;
    va_start(ap, types);
    for (int at = 1; *types; at++, types++) {
        const void *bytes;
        switch (*types) {
        case 'i':
            ops->bind_int(statement, at, va_arg(ap, int64_t));
            break;
        case 'd':
            ops->bind_double(statement, at, va_arg(ap, double));
            break;
        case 'b':
            bytes = va_arg(ap, const void *);
            ops->bind_bytes(statement, at, bytes, va_arg(ap, size_t));
            break;
        default:
            ops->bind_text(statement, at, va_arg(ap, const char *));
        }
    }
    va_end(ap);
    return statement;
}

bool hwnas_statement_run(hwnas_statement *statement)
{
    const bool is_done = hwnas_statement_step(statement) == HWNAS_STEP_DONE;
    hwnas_statement_reset(statement);
    return is_done;
}

void hwnas_statement_free(hwnas_statement *statement)
{
    if (statement)
        statement->db->ops->finalize(statement);
}

double hwnas_row_double(hwnas_statement *row, int column)
{
    return hwnas_row_is_null(row, column) ? NAN : row->db->ops->get_double(row, column);
}
