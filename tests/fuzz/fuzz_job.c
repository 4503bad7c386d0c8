/* Any bytes as a job. Lines "--NAME VALUE" that come first are flags of the command line; what
 * follows is the file, if anything does. It is refused with a place and a message, or its settings,
 * its goals and what is kept of it in a study agree with it. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "study/identity.h"
#include "study/job.h"
#include "study/settings.h"

enum { MAX_FLAGS = 16 };

static char *take_line(const char **text, const char *end)
{
    const char *newline = memchr(*text, '\n', (size_t)(end - *text));
    char *line = hwnas_printf("%.*s", (int)((newline ? newline : end) - *text), *text);
    *text = newline ? newline + 1 : end;
    return line;
}

/* Cuts the flags off the text. Those that no key of the table has are left out, as the command line
 * does not let them pass. */
static int take_flags(hwnas_job_flag flags[MAX_FLAGS + 1], char *lines[MAX_FLAGS],
                      const char **text, const char *end)
{
    int n = 0, n_lines = 0;
    while (n_lines < MAX_FLAGS && end - *text > 2 && !memcmp(*text, "--", 2) && (*text)[2] != '-') {
        char *line = lines[n_lines++] = take_line(text, end);
        char *space = strchr(line, ' ');
        if (!space)
            continue;
        *space = '\0';
        for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
            if (k->argument && !strcmp(k->name, line + 2)) {
                flags[n++] = (hwnas_job_flag){k->name, space + 1};
                break;
            }
    }
    flags[n] = (hwnas_job_flag){0};
    return n_lines;
}

static void check_job(const hwnas_job *job)
{
    hwnas_job read = {0};
    json_t *identity = hwnas_job_identity(job);
    FUZZ_CHECK(identity);
    FUZZ_CHECK(!hwnas_job_goals(&read, identity));
    FUZZ_CHECK(read.goals.n_objectives == job->goals.n_objectives &&
               read.goals.n_limits == job->goals.n_limits);
    FUZZ_CHECK(read.goals.devices.n == job->goals.devices.n);
    for (int i = 0; i < read.goals.n_limits; i++)
        FUZZ_CHECK(read.goals.limits[i].value == job->goals.limits[i].value);
    json_decref(identity);

    hwnas_settings settings = hwnas_settings_first(job);
    do {
        FUZZ_CHECK(settings.batch > 0 && settings.threads > 0 && settings.dtype > 0);
    } while (hwnas_settings_next(&settings, job));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_job_flag flags[MAX_FLAGS + 1];
    char *lines[MAX_FLAGS];
    const char *text = (const char *)data, *end = text + size;
    hwnas_job *job = NULL;
    const int n_lines = take_flags(flags, lines, &text, end);
    const char *path = NULL;
    if (text < end || !n_lines)
        path = fuzz_file((const uint8_t *)text, (size_t)(end - text), "fuzz.yaml");
    hwnas_status status = hwnas_job_load(&job, path, flags);
    if (status == HWNAS_OK)
        check_job(job);
    else
        fuzz_check_refused(status);
    hwnas_job_free(job);
    for (int i = 0; i < n_lines; i++)
        free(lines[i]);
    return 0;
}
