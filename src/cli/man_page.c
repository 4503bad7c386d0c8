#include "cli/man_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Text ---- */

typedef enum font { PLAIN, MARKED /* `code` is bold */, BOLD, ITALIC } font;

/* No character of it is taken for one of roff. */
static void put_character(FILE *to, char c, bool is_first)
{
    if (c == '\\')
        fputs("\\e", to);
    else if (c == '-')
        fputs("\\-", to);
    else if (is_first && (c == '.' || c == '\''))
        fprintf(to, "\\&%c", c);
    else
        fputc(c, to);
}

static void put_text(FILE *to, const char *text, size_t n, font style)
{
    bool is_bold = style == BOLD;
    if (style == BOLD || style == ITALIC)
        fputs(style == BOLD ? "\\fB" : "\\fI", to);
    for (size_t i = 0; i < n; i++) {
        if (style == MARKED && text[i] == '`') {
            is_bold = !is_bold;
            fputs(is_bold ? "\\fB" : "\\fR", to);
        } else if (text[i] == '\n') {
            fputc(' ', to);
        } else {
            put_character(to, text[i], !i);
        }
    }
    if (is_bold || style == ITALIC)
        fputs("\\fR", to);
}

static void put(FILE *to, const char *text, font style)
{
    put_text(to, text, strlen(text), style);
}

static void put_line(FILE *to, const char *text, size_t n)
{
    put_text(to, text, n, PLAIN);
    fputc('\n', to);
}

/* ---- Parts of a page ---- */

/* "hwnas-search"; `name` NULL: the program itself. */
static void put_name(FILE *to, const char *name, bool is_upper)
{
    fputs(is_upper ? "HWNAS" : "hwnas", to);
    if (name)
        fputs("\\-", to);
    for (const char *at = name ? name : ""; *at; at++)
        put_character(to, is_upper ? (char)toupper((unsigned char)*at) : *at, false);
}

/* The day of the page: of the source where the one who builds says it, so that a build can be
 * repeated. */
static void put_title(FILE *to, const char *name, const char *section)
{
    char day[16];
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    const time_t when = epoch && *epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    struct tm utc;
    strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&when, &utc));
    fprintf(to, ".\\\" Made by \"hwnas manual\".\n.TH \"");
    put_name(to, name, true);
    fprintf(to, "\" \"%s\" \"%s\" \"hwnas %s\" \"hwnas\"\n.SH NAME\n", section, day,
            hwnas_version());
    put_name(to, name, false);
    fputs(" \\- ", to);
}

static void put_option(FILE *to, const hwnas_option *o)
{
    fputs(".TP\n", to);
    if (o->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", to);
    put(to, o->name, PLAIN);
    fputs("\\fR", to);
    if (o->argument) {
        fputc(' ', to);
        put(to, o->argument, ITALIC);
    }
    fputc('\n', to);
    put_line(to, o->help, strlen(o->help));
}

static void put_options(FILE *to, const hwnas_option *options)
{
    for (const hwnas_option *o = options; o->name; o++)
        put_option(to, o);
}

static void put_synopsis(FILE *to, const char *synopsis)
{
    const size_t n = hwnas_command_width(synopsis);
    fputs("\\fBhwnas ", to);
    put_text(to, synopsis, n, PLAIN);
    fputs("\\fR [\\fIOPTION\\fR]...", to);
    put(to, synopsis + n, ITALIC);
    fputc('\n', to);
}

/* A command line in a text for people: "hwnas ...", and how it goes on. */
static bool is_example(const char *line, bool goes_on)
{
    return goes_on || !strncmp(line, "hwnas ", 6);
}

/* Sentences become one paragraph, command lines stay as they are. */
static void put_notes(FILE *to, const char *notes)
{
    bool was_example = false, goes_on = false;
    if (!is_example(notes, false))
        fputs(".PP\n", to);
    for (const char *line = notes; *line;) {
        const size_t n = strcspn(line, "\n");
        const bool is = is_example(line, goes_on);
        goes_on = is && n && line[n - 1] == '\\';
        if (is != was_example)
            fputs(is ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n.PP\n", to);
        put_line(to, line, n);
        was_example = is;
        line += n + (line[n] == '\n');
    }
    if (was_example)
        fputs(".RE\n.fi\n", to);
}

static void put_blocks(FILE *to, const hwnas_topic_block *blocks)
{
    for (const hwnas_topic_block *b = blocks; b->text; b++) {
        const bool was_code = b > blocks && b[-1].kind == HWNAS_BLOCK_CODE;
        const bool is_code = b->kind == HWNAS_BLOCK_CODE;
        if (is_code && !was_code)
            fprintf(to, "%s.nf\n.RS 4\n", b > blocks ? ".PP\n" : "");
        if (b->kind == HWNAS_BLOCK_HEADING)
            fputs(".SS ", to);
        else if (b->kind == HWNAS_BLOCK_ITEM)
            fputs(".TP\n", to);
        else if (!is_code && b > blocks && b[-1].kind != HWNAS_BLOCK_HEADING)
            fputs(".PP\n", to);
        if (b->kind == HWNAS_BLOCK_ITEM) {
            put(to, b->term, MARKED);
            fputc('\n', to);
        }
        put(to, b->text, is_code ? PLAIN : MARKED);
        fputc('\n', to);
        if (is_code && b[1].kind != HWNAS_BLOCK_CODE)
            fputs(".RE\n.fi\n", to);
    }
}

static void put_reference(FILE *to, const char *name, const char *section, bool goes_on)
{
    fputs(".BR ", to);
    put_name(to, name, false);
    fprintf(to, " (%s)%s\n", section, goes_on ? "," : "");
}

static void put_topics(FILE *to)
{
    for (const hwnas_topic *t = hwnas_topics; t->name; t++)
        put_reference(to, t->name, "7", t[1].name);
}

/* ---- Pages ---- */

static void put_description(FILE *to, const hwnas_usage *usage)
{
    put_line(to, usage->summary, strlen(usage->summary));
    if (usage->notes)
        put_notes(to, usage->notes);
}

static void write_command(void *to, const hwnas_usage *usage, const hwnas_option *options)
{
    fputs(".SH SYNOPSIS\n", to);
    put_synopsis(to, usage->synopsis);
    fputs(".SH DESCRIPTION\n", to);
    put_description(to, usage);
    fputs(".SH OPTIONS\n", to);
    put_options(to, options);
    put_options(to, hwnas_common_options);
}

/* A command of a group is a part of its page. */
static void write_part(void *to, const hwnas_usage *usage, const hwnas_option *options)
{
    fputs(".SS ", to);
    put_synopsis(to, usage->synopsis);
    put_description(to, usage);
    put_options(to, options);
}

static void write_group(void *to, const char *what, const char *about, const hwnas_command *rows)
{
    const hwnas_describer parts = {to, write_part, write_group};
    fputs(".SH SYNOPSIS\n", to);
    put(to, what, BOLD);
    fputs(" \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n.SH DESCRIPTION\n", to);
    put_line(to, about, strlen(about));
    fputs(".SH COMMANDS\n", to);
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help && hwnas_describe(c, &parts) != HWNAS_OK)
            return;
    fputs(".SH COMMON OPTIONS\n", to);
    put_options(to, hwnas_common_options);
}

hwnas_status hwnas_man_command(FILE *to, const hwnas_command *row)
{
    const hwnas_describer pages = {to, write_command, write_group};
    put_title(to, row->name, "1");
    put_line(to, row->help, strlen(row->help));
    TRY(hwnas_describe(row, &pages));
    fputs(".SH SEE ALSO\n", to);
    put_reference(to, NULL, "1", true);
    put_topics(to);
    return HWNAS_OK;
}

void hwnas_man_program(FILE *to)
{
    put_title(to, NULL, "1");
    fputs("hardware\\-aware neural architecture search\n.SH SYNOPSIS\n"
          "\\fBhwnas\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n.SH DESCRIPTION\n",
          to);
    put_line(to, hwnas_about, strlen(hwnas_about));
    fputs("Each command has a page of its own, such as\n.BR hwnas\\-search (1).\n"
          ".SH COMMANDS\n",
          to);
    for (const hwnas_command *c = hwnas_commands; c->name; c++)
        if (c->help) {
            fputs(".TP\n", to);
            put(to, c->name, BOLD);
            fputc('\n', to);
            put_line(to, c->help, strlen(c->help));
        }
    fputs(".SH COMMON OPTIONS\n", to);
    put_options(to, hwnas_common_options);
    fputs(".SH EXIT STATUS\n", to);
    put_blocks(to, hwnas_topic_find("exit-codes")->blocks);
    fputs(".SH SEE ALSO\n", to);
    for (const hwnas_command *c = hwnas_commands; c->name; c++)
        if (c->help)
            put_reference(to, c->name, "1", true);
    put_topics(to);
}

void hwnas_man_topic(FILE *to, const hwnas_topic *topic)
{
    put_title(to, topic->name, "7");
    put_line(to, topic->about, strlen(topic->about));
    fputs(".SH DESCRIPTION\n", to);
    put_blocks(to, topic->blocks);
    fputs(".SH SEE ALSO\n.BR hwnas (1)\n", to);
}
