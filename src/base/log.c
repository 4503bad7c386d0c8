#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static hwnas_log_function *listener; /* NULL: nobody listens */
static void *listener_context;

void hwnas_set_log(hwnas_log_function *function, void *context)
{
    listener = function;
    listener_context = context;
}

void hwnas_log(hwnas_log_level level, const char *format, ...)
{
    char line[1200]; /* a failure's message and some words */
    va_list ap;
    if (!listener)
        return;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    listener(listener_context, level, line);
}
