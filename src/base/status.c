/* status.c: the record of the last failure, one per thread, and the table of statuses. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Bytes of the character at `text`, or 0 when it is none that may be printed: messages quote what
 * users wrote, and must stay one line of UTF-8 that does nothing to a terminal. */
static size_t printable(const unsigned char *text)
{
    if (*text < 0x80)
        return *text >= 0x20 && *text != 0x7F;
    size_t n = *text >= 0xF0 ? 4 : *text >= 0xE0 ? 3 : 2;
    if (*text < 0xC2 || *text > 0xF4 || (*text == 0xC2 && text[1] < 0xA0))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

static void clean(char *text)
{
    for (size_t n; *text; text += n) {
        n = printable((const unsigned char *)text);
        if (n == 0) {
            *text = (unsigned char)*text < 0x80 ? ' ' : '?';
            n = 1;
        }
    }
}

hwnas_status hwnas_fail(hwnas_status status, const hwnas_place *place, const char *format, ...)
{
    /* Arguments may point into the old record, so the new text is made beside it. */
    char message[sizeof last.message];
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, sizeof message, format, ap);
    va_end(ap);
    clean(message);
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
    clean(last.hint);
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
    clean(last.message);
    return status;
}
