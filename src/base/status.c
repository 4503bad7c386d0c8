/* status.c: the record of the last failure, one per thread, and the table of statuses. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const struct {
    const char *name;
    int exit_code;
} rows[HWNAS_N_STATUS] = {
    [HWNAS_OK] = {"ok", 0},
    [HWNAS_E_USAGE] = {"usage", 2},
    [HWNAS_E_INPUT] = {"input", 2},
    [HWNAS_E_NOT_FOUND] = {"not_found", 2},
    [HWNAS_E_INFEASIBLE] = {"infeasible", 3},
    [HWNAS_E_EXHAUSTED] = {"exhausted", 1},
    [HWNAS_E_INTERRUPTED] = {"interrupted", 130},
    [HWNAS_E_IO] = {"io", 1},
    [HWNAS_E_MEMORY] = {"out_of_memory", 1},
    [HWNAS_E_UNSUPPORTED] = {"unsupported", 1},
    [HWNAS_E_TIMEOUT] = {"timeout", 1},
    [HWNAS_E_CRASHED] = {"crashed", 1},
    [HWNAS_E_LIBRARY] = {"library", 1},
    [HWNAS_E_SLOWER] = {"slower", 1},
    [HWNAS_E_WRONG_RESULT] = {"wrong_result", 1},
    [HWNAS_E_DISTURBED] = {"disturbed", 4},
};

static _Thread_local hwnas_error last;

const hwnas_error *hwnas_last_error(void)
{
    return &last;
}

const char *hwnas_status_name(hwnas_status status)
{
    return (unsigned)status < HWNAS_N_STATUS ? rows[status].name : "unknown";
}

int hwnas_status_exit_code(hwnas_status status)
{
    return (unsigned)status < HWNAS_N_STATUS ? rows[status].exit_code : 1;
}

hwnas_status hwnas_status_from_name(const char *name)
{
    for (int i = 0; i < HWNAS_N_STATUS; i++)
        if (!strcmp(rows[i].name, name))
            return (hwnas_status)i;
    return HWNAS_N_STATUS;
}

void hwnas_error_clear(void)
{
    memset(&last, 0, sizeof last);
}

hwnas_status hwnas_fail(hwnas_status status, const hwnas_place *place, const char *format, ...)
{
    /* Arguments may point into the old record, so the new text is made beside it. */
    char message[sizeof last.message];
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, sizeof message, format, ap);
    va_end(ap);
    hwnas_clean(message, "");
    hwnas_error_clear();
    memcpy(last.message, message, sizeof message);
    last.status = status;
    return place ? hwnas_fail_at(status, place) : status;
}

hwnas_status hwnas_fail_at(hwnas_status status, const hwnas_place *place)
{
    if (*last.file || !place->file)
        return status;
    snprintf(last.file, sizeof last.file, "%s", place->file);
    last.line = place->line;
    last.column = place->column;
    return status;
}

hwnas_status hwnas_hint(hwnas_status status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(last.hint, sizeof last.hint, format, ap);
    va_end(ap);
    hwnas_clean(last.hint, "");
    return status;
}

hwnas_status hwnas_context(hwnas_status status, const char *format, ...)
{
    char context[256], message[sizeof last.message];
    va_list ap;
    va_start(ap, format);
    vsnprintf(context, sizeof context, format, ap);
    va_end(ap);
    memcpy(message, last.message, sizeof message);
    snprintf(last.message, sizeof last.message, "%s: %.700s", context, message);
    hwnas_clean(last.message, "");
    return status;
}
