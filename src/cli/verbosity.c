#include "cli/verbosity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

static struct {
    int verbosity; /* -1: quiet */
    FILE *file;    /* NULL: none; stays open until the program ends */
} told;

static const struct level {
    const char *name;
    int verbosity; /* from which it is said */
} levels[] = {
    [HWNAS_LOG_WARNING] = {"warning", 1},
    [HWNAS_LOG_INFO] = {"info", 1},
    [HWNAS_LOG_DEBUG] = {"debug", 2},
    [HWNAS_LOG_NOTE] = {"note", 0},
};

static void write_line(const char *level, const char *line)
{
    char when[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    hwnas_say(told.file, "%s %s: %s\n", when, level, line);
    fflush(told.file);
}

static void listen(void *context, hwnas_log_level level, const char *line)
{
    (void)context;
    if ((unsigned)level >= sizeof levels / sizeof *levels)
        return;
    if (told.file)
        write_line(levels[level].name, line);
    if (told.verbosity < levels[level].verbosity)
        return;
    hwnas_show_progress(NULL, NULL); /* which stands on this line of a terminal */
    hwnas_say(stderr, "hwnas: %s: %s\n", levels[level].name, line);
}

void hwnas_log_begin(void)
{
    hwnas_set_log(listen, NULL);
}

void hwnas_log_more(void)
{
    told.verbosity += 1 + (told.verbosity < 0);
}

void hwnas_log_less(void)
{
    told.verbosity = -1;
}

bool hwnas_log_is_quiet(void)
{
    return told.verbosity < 0;
}

hwnas_status hwnas_log_open(const char *path)
{
    FILE *file = fopen(path, "ae");
    if (!file)
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot write the log %s: %s", path, strerror(errno));
    if (told.file)
        fclose(told.file);
    told.file = file;
    return HWNAS_OK;
}
