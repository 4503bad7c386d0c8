#include "cli/completions.h"

#include <string.h>

#include "cli/topics.h"

/* ---- What may follow ---- */

static void put_devices(FILE *to)
{
    const char *name;
    for (size_t i = 0; (name = hwnas_device_list(i, NULL)); i++)
        fprintf(to, "%s%s", i ? " " : "", name);
}

static void put_precisions(FILE *to)
{
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        fprintf(to, "%s%s", p ? " " : "", hwnas_precision_name((hwnas_precision)p));
}

/* Words that options take; of all others that take something it is a file. */
typedef struct option_words {
    const char *option;
    void (*put)(FILE *to);
} option_words;
static const option_words known_words[] = {
    {"device", put_devices}, {"dtype", put_precisions}, {"precision", put_precisions}, {0}};

static const option_words *find_words(const hwnas_option *o)
{
    for (const option_words *w = known_words; w->option; w++)
        if (!strcmp(w->option, o->name))
            return w;
    return NULL;
}

/* An argument may be a space or a network that ships. */
static bool takes_space(const hwnas_usage *usage)
{
    const char *arguments = usage->synopsis + hwnas_command_width(usage->synopsis);
    return strstr(arguments, "SPACE") || strstr(arguments, "MODEL");
}

/* For between '...': bash and zsh have \' outside of them, fish inside. What `escaped` has gets a
 * backslash. */
static void put_quoted(FILE *to, const char *text, const char *quote, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, to);
        else if (strchr(escaped, *text))
            fprintf(to, "\\%c", *text);
        else
            fputc(*text == '\n' ? ' ' : *text, to);
    }
}

static hwnas_status describe_all(const hwnas_command *rows, const hwnas_describer *to)
{
    hwnas_status status = HWNAS_OK;
    for (const hwnas_command *c = rows; c->name && status == HWNAS_OK; c++)
        if (c->help)
            status = hwnas_describe(c, to);
    return status;
}

static void put_head(FILE *to, const char *before)
{
    fprintf(to, "%s# Completion of hwnas %s, made by \"hwnas manual\".\n", before, hwnas_version());
}

/* "space" of "hwnas space", "" of "hwnas". */
static const char *own_words(const char *what)
{
    const char *blank = strchr(what, ' ');
    return blank ? blank + 1 : "";
}

/* A command's own options, then those of all commands. */
static const hwnas_option *both(const hwnas_option *options, int i)
{
    return i ? hwnas_common_options : options;
}

/* ---- bash: a function that sets variables by the command, one that prints values ---- */

static void put_names(FILE *to, const hwnas_command *rows)
{
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help)
            fprintf(to, "%s%s", c > rows ? " " : "", c->name);
}

static void put_bash_command(void *to, const hwnas_usage *usage, const hwnas_option *options)
{
    fprintf(to, "    '%.*s')\n        options='", (int)hwnas_command_width(usage->synopsis),
            usage->synopsis);
    for (int i = 0; i < 2; i++)
        for (const hwnas_option *o = both(options, i); o->name; o++)
            fprintf(to, " --%s", o->name);
    fputs("'\n        valued='", to);
    for (int i = 0; i < 2; i++)
        for (const hwnas_option *o = both(options, i); o->name; o++) {
            if (o->argument)
                fprintf(to, " --%s", o->name);
            if (o->argument && o->letter)
                fprintf(to, " -%c", o->letter);
        }
    fprintf(to, "'\n%s        ;;\n", takes_space(usage) ? "        takes_space=yes\n" : "");
}

static void put_bash_group(void *to, const char *what, const char *about, const hwnas_command *rows)
{
    (void)about;
    fprintf(to, "    '%s') commands='", own_words(what));
    put_names(to, rows);
    fputs("' ;;\n", to);
    if (describe_all(rows, &(hwnas_describer){to, put_bash_command, put_bash_group}) != HWNAS_OK)
        return; /* --help does not fail */
}

hwnas_status hwnas_complete_bash(FILE *to)
{
    put_head(to, "");
    fputs("_hwnas_table() {\n    case $1 in\n    '') commands='help ", to);
    put_names(to, hwnas_commands);
    fputs("' ;;\n    help) commands='", to);
    put_names(to, hwnas_commands);
    for (const hwnas_topic *t = hwnas_topics; t->name; t++)
        fprintf(to, " %s", t->name);
    fputs("' ;;\n", to);
    TRY(describe_all(hwnas_commands, &(hwnas_describer){to, put_bash_command, put_bash_group}));
    fputs("    esac\n}\n_hwnas_values() {\n    case $1 in\n", to);
    for (const option_words *w = known_words; w->option; w++) {
        fprintf(to, "    --%s%s) echo '", w->option, !strcmp(w->option, "device") ? " | -d" : "");
        w->put(to);
        fputs("' ;;\n", to);
    }
    fputs("    esac\n}\n", to);
    return HWNAS_OK;
}

/* ---- zsh: a function that sets the arrays of _describe and of _arguments ---- */

static void put_zsh_option(FILE *to, const hwnas_option *o, const char *name)
{
    const option_words *w = find_words(o);
    fprintf(to, "            '%s[", name);
    put_quoted(to, o->help, "'\\''", "[]:\\");
    fputc(']', to);
    if (o->argument) {
        fputc(':', to);
        put_quoted(to, o->argument, "'\\''", ":\\");
        fputc(':', to);
        if (w) {
            fputc('(', to);
            w->put(to);
            fputc(')', to);
        } else {
            fputs("_files", to);
        }
    }
    fputs("'\n", to);
}

static void put_zsh_command(void *to, const hwnas_usage *usage, const hwnas_option *options)
{
    char name[64];
    fprintf(to, "    '%.*s')\n        specs=(\n", (int)hwnas_command_width(usage->synopsis),
            usage->synopsis);
    for (int i = 0; i < 2; i++)
        for (const hwnas_option *o = both(options, i); o->name; o++) {
            snprintf(name, sizeof name, "--%s", o->name);
            put_zsh_option(to, o, name);
            snprintf(name, sizeof name, "-%c", o->letter);
            if (o->letter)
                put_zsh_option(to, o, name);
        }
    fprintf(to, "            '*:argument:%s'\n        ) ;;\n",
            takes_space(usage) ? "_hwnas_spaces" : "_files");
}

static void put_zsh_rows(FILE *to, const hwnas_command *rows)
{
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help) {
            fprintf(to, "            '%s:", c->name);
            put_quoted(to, c->help, "'\\''", "\\");
            fputs("'\n", to);
        }
}

static void put_zsh_group(void *to, const char *what, const char *about, const hwnas_command *rows)
{
    (void)about;
    fprintf(to, "    '%s')\n        items=(\n", own_words(what));
    put_zsh_rows(to, rows);
    fputs("        ) ;;\n", to);
    if (describe_all(rows, &(hwnas_describer){to, put_zsh_command, put_zsh_group}) != HWNAS_OK)
        return; /* --help does not fail */
}

hwnas_status hwnas_complete_zsh(FILE *to)
{
    put_head(to, "#compdef hwnas\n");
    fputs("_hwnas_table() {\n    case $1 in\n    '')\n        items=(\n            "
          "'help:a command, or a topic'\n",
          to);
    put_zsh_rows(to, hwnas_commands);
    fputs("        ) ;;\n    help)\n        items=(\n", to);
    put_zsh_rows(to, hwnas_commands);
    for (const hwnas_topic *t = hwnas_topics; t->name; t++)
        fprintf(to, "            '%s:%s'\n", t->name, t->about);
    fputs("        ) ;;\n", to);
    TRY(describe_all(hwnas_commands, &(hwnas_describer){to, put_zsh_command, put_zsh_group}));
    fputs("    esac\n}\n", to);
    return HWNAS_OK;
}

/* ---- fish: a line each ---- */

static void put_fish_name(FILE *to, const char *command, size_t width, const char *name,
                          const char *help)
{
    fprintf(to, "complete -c hwnas -n '__hwnas_is \"%.*s\"' -f -a %s -d '", (int)width, command,
            name);
    put_quoted(to, help, "\\'", "\\");
    fputs("'\n", to);
}

static void put_fish_command(void *to, const hwnas_usage *usage, const hwnas_option *options)
{
    const int width = (int)hwnas_command_width(usage->synopsis);
    for (int i = 0; i < 2; i++)
        for (const hwnas_option *o = both(options, i); o->name; o++) {
            const option_words *w = find_words(o);
            fprintf(to, "complete -c hwnas -n '__hwnas_is \"%.*s\"' -l %s", width, usage->synopsis,
                    o->name);
            if (o->letter)
                fprintf(to, " -s %c", o->letter);
            if (o->argument && !w)
                fputs(" -r", to);
            if (o->argument && w) {
                fputs(" -x -a '", to);
                w->put(to);
                fputc('\'', to);
            }
            fputs(" -d '", to);
            put_quoted(to, o->help, "\\'", "\\");
            fputs("'\n", to);
        }
    if (takes_space(usage))
        fprintf(to, "complete -c hwnas -n '__hwnas_is \"%.*s\"' -a '(__hwnas_spaces)'\n", width,
                usage->synopsis);
}

static void put_fish_group(void *to, const char *what, const char *about, const hwnas_command *rows)
{
    const char *own = own_words(what);
    (void)about;
    fprintf(to, "set -ga __hwnas_groups %s\n", own);
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help)
            put_fish_name(to, own, strlen(own), c->name, c->help);
    if (describe_all(rows, &(hwnas_describer){to, put_fish_command, put_fish_group}) != HWNAS_OK)
        return; /* --help does not fail */
}

hwnas_status hwnas_complete_fish(FILE *to)
{
    put_head(to, "");
    fputs("set -g __hwnas_groups help\n", to);
    put_fish_name(to, "", 0, "help", "a command, or a topic");
    for (const hwnas_command *c = hwnas_commands; c->name; c++)
        if (c->help) {
            put_fish_name(to, "", 0, c->name, c->help);
            put_fish_name(to, "help", 4, c->name, c->help);
        }
    for (const hwnas_topic *t = hwnas_topics; t->name; t++)
        put_fish_name(to, "help", 4, t->name, t->about);
    return describe_all(hwnas_commands, &(hwnas_describer){to, put_fish_command, put_fish_group});
}
