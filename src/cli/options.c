/* options.c: options from a table, through getopt_long; --help is printed from the same table. */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verbosity.h"

enum { MAX_OPTIONS = 64, HELP = 256, LOG, FIRST_LONG };

const hwnas_option hwnas_common_options[] = {
    {"help", 0, HWNAS_OPTION_FLAG, NULL, NULL, "print what the command does and takes"},
    {"verbose", 'v', HWNAS_OPTION_FLAG, NULL, NULL,
     "tell of each trial; twice: also what programs that train print"},
    {"quiet", 'q', HWNAS_OPTION_FLAG, NULL, NULL, "show neither progress nor notes"},
    {"log", 0, HWNAS_OPTION_TEXT, NULL, "FILE", "add all of that to a file, with the time"},
    {0}};
enum { N_COMMON = sizeof hwnas_common_options / sizeof *hwnas_common_options - 1 };

/* What getopt_long() says of each of them. */
static const int common_codes[N_COMMON] = {HELP, 'v', 'q', LOG};

size_t hwnas_command_width(const char *synopsis)
{
    size_t n = strcspn(synopsis, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[");
    while (n && synopsis[n - 1] == ' ')
        n--;
    return n;
}

/* The names alone, in lines of at most 100 columns. */
static void print_rare(const hwnas_option *options)
{
    int column = 0;
    for (const hwnas_option *o = options; o->name; o++) {
        if (!(o->kind & HWNAS_OPTION_RARE))
            continue;
        int width = (int)strlen(o->name) + 3;
        if (!column)
            column = printf("  and");
        if (column + width > 100)
            column = printf("\n     ") - 1;
        column += printf(" --%s", o->name);
    }
    if (column)
        putchar('\n');
}

static void print_help(const hwnas_usage *usage, const hwnas_option *options)
{
    printf("Usage: hwnas %s [OPTION]...\n%s\n\n", usage->synopsis, usage->summary);
    for (const hwnas_option *o = options; o->name; o++) {
        char left[64];
        if (o->kind & HWNAS_OPTION_RARE)
            continue;
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                 o->argument ? " " : "", o->argument ? o->argument : "");
        printf("  %-28s %s\n", left, o->help);
    }
    printf("  %-28s %s\n", "    --help",
           "this page; --quiet, --verbose and --log FILE go with all commands");
    print_rare(options);
    if (usage->notes)
        printf("\n%s\n", usage->notes);
}

static hwnas_status store(const hwnas_option *o, const char *text)
{
    char *end;
    errno = 0;
    switch ((hwnas_option_kind)(o->kind & ~HWNAS_OPTION_RARE)) {
    case HWNAS_OPTION_FLAG:
        *(bool *)o->value = true;
        return HWNAS_OK;
    case HWNAS_OPTION_TEXT:
        if (!*text)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s is empty", o->name);
        *(const char **)o->value = text;
        return HWNAS_OK;
    case HWNAS_OPTION_LIST: {
        hwnas_option_list *list = o->value;
        if (!*text)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s is empty", o->name);
        if (list->n == HWNAS_OPTION_LIST_SIZE)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s can be given %d times", o->name,
                              HWNAS_OPTION_LIST_SIZE);
        list->texts[list->n++] = text;
        return HWNAS_OK;
    }
    case HWNAS_OPTION_ALL:
    case HWNAS_OPTION_INT: {
        if (o->kind == HWNAS_OPTION_ALL && !strcmp(text, "all")) {
            *(long *)o->value = 0;
            return HWNAS_OK;
        }
        long value = strtol(text, &end, 10);
        if (*end || end == text || errno || value < 0)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s must be a whole number >= 0, not '%.60s'",
                              o->name, text);
        *(long *)o->value = value;
        return HWNAS_OK;
    }
    case HWNAS_OPTION_NUMBER: {
        double value = strtod(text, &end);
        if (*end || end == text || !(value >= 0) || value > 1e15)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s must be a number >= 0, not '%.60s'",
                              o->name, text);
        *(double *)o->value = value;
        return HWNAS_OK;
    }
    }
    return HWNAS_OK;
}

hwnas_status hwnas_table_format(hwnas_format *out, bool as_json, bool as_csv, bool as_markdown)
{
    if (as_json + as_csv + as_markdown > 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s and %s exclude each other",
                          as_json ? "--json" : "--csv", as_csv && as_json ? "--csv" : "--markdown");
    *out = as_json ? HWNAS_JSON : as_csv ? HWNAS_CSV : as_markdown ? HWNAS_MARKDOWN : HWNAS_TEXT;
    return HWNAS_OK;
}

static hwnas_status unknown(const hwnas_usage *usage, const hwnas_option *options,
                            const char *given)
{
    const char *names[MAX_OPTIONS + N_COMMON + 1] = {0};
    int n = 0;
    for (; options[n].name; n++)
        names[n] = options[n].name;
    for (int i = 0; i < N_COMMON; i++)
        names[n++] = hwnas_common_options[i].name;
    hwnas_status status = hwnas_fail(HWNAS_E_USAGE, NULL, "there is no option '%.60s'", given);
    const char *near = hwnas_nearest(given + strspn(given, "-"), names);
    if (near)
        return hwnas_hint(status, "did you mean --%s?", near);
    return hwnas_hint(status, "'hwnas %.*s --help' lists them",
                      (int)hwnas_command_width(usage->synopsis), usage->synopsis);
}

static void tell(const hwnas_usage *usage, const hwnas_option *options)
{
    const hwnas_describer *listener = hwnas_describer_now();
    if (listener)
        listener->command(listener->context, usage, options);
    else
        print_help(usage, options);
}

hwnas_status hwnas_options_parse(const hwnas_usage *usage, const hwnas_option *options, int argc,
                                 char **argv, const char **arguments, int *n_arguments,
                                 bool *is_done)
{
    struct option rows[MAX_OPTIONS + N_COMMON + 1] = {0};
    char letters[2 * MAX_OPTIONS + sizeof ":vq"] = ":vq";
    int n = 0, n_letters = (int)strlen(letters);
    for (; options[n].name; n++) {
        rows[n] =
            (struct option){options[n].name, options[n].argument != NULL, NULL, FIRST_LONG + n};
        if (options[n].letter)
            letters[n_letters++] = options[n].letter;
        if (options[n].letter && options[n].argument)
            letters[n_letters++] = ':';
    }
    assert(n <= MAX_OPTIONS);
    for (int i = 0; i < N_COMMON; i++) {
        const hwnas_option *o = &hwnas_common_options[i];
        rows[n + i] = (struct option){o->name, o->argument != NULL, NULL, common_codes[i]};
    }
    *is_done = false;
    opterr = 0;
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, letters, rows, NULL)) != -1;) {
        if (c == HELP) {
            tell(usage, options);
            *is_done = true;
            return HWNAS_OK;
        }
        if (c == 'v')
            hwnas_log_more();
        else if (c == 'q')
            hwnas_log_less();
        else if (c == LOG)
            TRY(hwnas_log_open(optarg));
        if (c == 'v' || c == 'q' || c == LOG)
            continue;
        if (c == '?')
            return unknown(usage, options, argv[optind - 1]);
        if (c == ':')
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s needs a value", argv[optind - 1]);
        int row = c - FIRST_LONG;
        for (int i = 0; c < FIRST_LONG && i < n; i++)
            if (options[i].letter == c)
                row = i;
        TRY(store(&options[row], optarg));
    }
    *n_arguments = argc - optind;
    if (*n_arguments < usage->min_arguments || *n_arguments > usage->max_arguments)
        return hwnas_hint(*n_arguments > usage->max_arguments
                              ? hwnas_fail(HWNAS_E_USAGE, NULL, "'%.60s' is one argument too many",
                                           argv[optind + usage->max_arguments])
                              : hwnas_fail(HWNAS_E_USAGE, NULL, "an argument is missing"),
                          "write 'hwnas %s'", usage->synopsis);
    for (int i = 0; i < *n_arguments; i++)
        arguments[i] = argv[optind + i];
    return HWNAS_OK;
}
