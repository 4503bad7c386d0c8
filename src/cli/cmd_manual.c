/* manual: writes the pages of the manual and what the completions of shells need to know. The build
 * runs it; what it writes is installed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/completions.h"
#include "cli/man_page.h"

static const hwnas_usage usage = {
    .synopsis = "manual DIR",
    .summary = "Writes manual pages and the tables of completions into a directory.",
    .min_arguments = 1,
    .max_arguments = 1};

static hwnas_status open_file(FILE **out, const char *folder, const char *before, const char *name,
                              const char *after)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s%s%s", folder, before, name, after) >= (int)sizeof path)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "the name of the directory is too long");
    *out = fopen(path, "w");
    return *out ? HWNAS_OK
                : hwnas_fail(HWNAS_E_IO, &(hwnas_place){.file = path}, "%s", strerror(errno));
}

/* Closes the file in every case. */
static hwnas_status close_file(FILE *file, hwnas_status status)
{
    const bool is_bad = ferror(file) != 0;
    if ((fclose(file) || is_bad) && status == HWNAS_OK)
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot write the manual: %s", strerror(errno));
    return status;
}

static hwnas_status write_pages(const char *folder)
{
    FILE *file;
    TRY(open_file(&file, folder, "", "hwnas", ".1"));
    hwnas_man_program(file);
    TRY(close_file(file, HWNAS_OK));
    for (const hwnas_command *c = hwnas_commands; c->name; c++)
        if (c->help) {
            TRY(open_file(&file, folder, "hwnas-", c->name, ".1"));
            TRY(close_file(file, hwnas_man_command(file, c)));
        }
    for (const hwnas_topic *t = hwnas_topics; t->name; t++) {
        TRY(open_file(&file, folder, "hwnas-", t->name, ".7"));
        hwnas_man_topic(file, t);
        TRY(close_file(file, HWNAS_OK));
    }
    return HWNAS_OK;
}

static hwnas_status write_completions(const char *folder)
{
    static const struct {
        const char *name;
        hwnas_status (*write)(FILE *to);
    } shells[] = {{"hwnas.bash", hwnas_complete_bash},
                  {"_hwnas", hwnas_complete_zsh},
                  {"hwnas.fish", hwnas_complete_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        FILE *file;
        TRY(open_file(&file, folder, "", shells[i].name, ""));
        TRY(close_file(file, shells[i].write(file)));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_manual(int argc, char **argv)
{
    const char *folder;
    bool done;
    int n;
    const hwnas_option options[] = {{0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &folder, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(write_pages(folder));
    return write_completions(folder);
}
