/* main.c: the program: its commands, and how a failure is told. */
#define _GNU_SOURCE 1 /* vasprintf() */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hwnas/terminal.h>

#include "cli/cli.h"
#include "cli/verbosity.h"
#include "cli/terminal.h"
#include "cli/topics.h"

const char hwnas_about[] =
    "Hardware-aware neural architecture search: networks measured on your device.";

const hwnas_command hwnas_commands[] = {
    {"search", "find the networks that are accurate and fast on a device", hwnas_cmd_search},
    {"study", "look at what a search has found", hwnas_cmd_study},
    {"report", "write what a search has found as a page for a browser", hwnas_cmd_report},
    {"watch", "serve that page, live, while the search runs", hwnas_cmd_watch},
    {"worker", "search with others on one study", hwnas_cmd_worker},
    {"explain", "say why a search came to a network, and what else there is", hwnas_cmd_explain},
    {"export", "write a network as ONNX, PyTorch or YAML", hwnas_cmd_export},
    {"profile", "measure models over batches and threads", hwnas_cmd_profile},
    {"optimize", "make a trained model faster on a device", hwnas_cmd_optimize},
    {"train", "train a network by a recipe, and see how accurate it is", hwnas_cmd_train},
    {"evaluate", "see how accurate a network is on samples of yours", hwnas_cmd_evaluate},
    {"forecast", "see what a device would do with a model, and whether it fits",
     hwnas_cmd_forecast},
    {"calibrate", "fill the table of latencies for a space", hwnas_cmd_calibrate},
    {"compare", "say which device serves a model cheapest, or whether one got slower",
     hwnas_cmd_compare},
    {"space", "check, count, sample or show a search space", hwnas_cmd_space},
    {"predictor", "fit or judge an accuracy predictor", hwnas_cmd_predictor},
    {"devices", "see what this machine can run", hwnas_cmd_devices},
    {"runner", "put what measures on another machine", hwnas_cmd_runner},
    {"version", "versions of hwnas and of its libraries", hwnas_cmd_version},
    {"run", "compute a network's outputs of given inputs", hwnas_cmd_run},
    {"manual", NULL, hwnas_cmd_manual},
    {0},
};

/* Goes on from that column, in lines of 80. */
static void print_topics(int column)
{
    column += printf(", 'hwnas help TOPIC' of:");
    for (const hwnas_topic *t = hwnas_topics; t->name; t++) {
        if (column + 1 + (int)strlen(t->name) + (t[1].name != NULL) > 80)
            column = printf("\n ") - 1;
        column += printf(" %s%s", t->name, t[1].name ? "," : "\n");
    }
}

static void print_commands(const char *what, const char *about, const hwnas_command *rows)
{
    const bool fills_screen = rows == hwnas_commands; /* of 24 lines */
    hwnas_say(stdout, "Usage: %s COMMAND [ARGUMENT]...\n%s\n%s", what, about,
              fills_screen ? "" : "\n");
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help)
            hwnas_say(stdout, "  %-12s %s\n", c->name, c->help);
    if (!fills_screen)
        printf("\n");
    const int column = printf("'%s COMMAND --help' tells more of each", what);
    if (rows == hwnas_commands)
        print_topics(column);
    else
        printf(".\n");
}

/* ---- Descriptions ---- */

static const hwnas_describer *describer;

const hwnas_describer *hwnas_describer_now(void)
{
    return describer;
}

hwnas_status hwnas_describe(const hwnas_command *row, const hwnas_describer *to)
{
    static char help[] = "--help";
    char name[64];
    const hwnas_describer *before = describer;
    snprintf(name, sizeof name, "%s", row->name);
    describer = to;
    const hwnas_status status = row->run(2, (char *[]){name, help, NULL});
    describer = before;
    return status;
}

static void tell(const char *what, const char *about, const hwnas_command *rows)
{
    if (describer)
        describer->group(describer->context, what, about, rows);
    else
        print_commands(what, about, rows);
}

/* Of "hwnas" also the topics; `names` has room for MAX_NAMES, the last one NULL. */
enum { MAX_NAMES = 48 };
static const char *find_near(const char *wrong, bool is_help, const hwnas_command *rows)
{
    const char *names[MAX_NAMES] = {0};
    int n = 0;
    for (; rows[n].name && n < MAX_NAMES - 2; n++)
        names[n] = rows[n].name;
    names[n++] = "help";
    for (const hwnas_topic *t = hwnas_topics; is_help && t->name && n < MAX_NAMES - 1; t++)
        names[n++] = t->name;
    return hwnas_nearest(wrong, names);
}

/* "help study show" is "study show --help". */
static void turn_help(int argc, char **argv)
{
    static char help[] = "--help";
    memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
    argv[argc - 1] = help;
}

hwnas_status hwnas_dispatch(const char *what, const char *about, const hwnas_command *rows,
                            int argc, char **argv)
{
    if (argc < 2)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s needs a command", what),
                          "'%s --help' lists them", what);
    const bool is_help = !strcmp(argv[1], "help") && argc > 2;
    const hwnas_topic *topic = is_help && argc == 3 ? hwnas_topic_find(argv[2]) : NULL;
    if (topic) {
        hwnas_topic_print(topic);
        return HWNAS_OK;
    }
    if (is_help)
        turn_help(argc, argv);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        tell(what, about, rows);
        return HWNAS_OK;
    }
    for (int i = 0; rows[i].name; i++)
        if (!strcmp(argv[1], rows[i].name))
            return rows[i].run(argc - 1, argv + 1);
    hwnas_status status =
        hwnas_fail(HWNAS_E_USAGE, NULL, "%s has no command '%.60s'", what, argv[1]);
    if (*argv[1] == '-')
        return hwnas_hint(status, "options follow the command: '%s COMMAND %.60s'", what, argv[1]);
    const char *near = find_near(argv[1], is_help, rows);
    return near ? hwnas_hint(status, "did you mean '%s'?", near)
                : hwnas_hint(status, "'%s --help' lists them", what);
}

/* Whoever read our output has enough of it, as `head` has. */
static bool is_reader_gone;

static hwnas_status flush(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return HWNAS_OK;
    is_reader_gone = errno == EPIPE;
    return hwnas_fail(HWNAS_E_IO, NULL, "cannot write to standard output: %s", strerror(errno));
}

/* As of a program that knows nothing of pipes: what it has to do is done by now, and nobody waits
 * for a message. */
static _Noreturn void end_by_closed_pipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
    _exit(128 + SIGPIPE);
}

static _Noreturn void end_without_memory(void)
{
    fputs("hwnas: out of memory\n", stderr);
    exit(1);
}

void *hwnas_need(size_t n, size_t size)
{
    void *room = calloc(n ? n : 1, size);
    if (!room)
        end_without_memory();
    return room;
}

void hwnas_say(FILE *to, const char *format, ...)
{
    char *text;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        end_without_memory();
    va_end(ap);
    hwnas_clean(text, "\n\t");
    fputs(text, to);
    free(text);
}

hwnas_status hwnas_print_text(char *text)
{
    const size_t n = strlen(text);
    fputs(text, stdout);
    if (n && text[n - 1] != '\n')
        putchar('\n');
    hwnas_free(text);
    return flush();
}

hwnas_status hwnas_print_json(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
    json_decref(json);
    if (!text)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name in the answer is not UTF-8");
    hwnas_say(stdout, "%s\n", text);
    free(text);
    return flush();
}

/* What was written, and what is to be known of it. */
static void print_remarks(const hwnas_report *report)
{
    const char *remark, *line;
    for (size_t i = 0; (line = hwnas_report_note(report, i)) && !hwnas_log_is_quiet(); i++)
        hwnas_say(stderr, "hwnas: note: %s\n", line);
    for (size_t i = 0; (line = hwnas_report_file(report, i, &remark)); i++)
        hwnas_say(stderr, "wrote %s%s%s\n", line, remark ? ", which " : "", remark ? remark : "");
}

hwnas_status hwnas_print_report(hwnas_report *report, hwnas_format format)
{
    char *text;
    const int columns = hwnas_terminal_columns(STDOUT_FILENO);
    hwnas_status status = hwnas_report_write(&text, report, format);
    if (status == HWNAS_OK && format == HWNAS_TEXT && columns) {
        hwnas_print_lines(text, columns);
        hwnas_free(text);
        status = flush();
    } else if (status == HWNAS_OK) {
        status = hwnas_print_text(text);
    }
    print_remarks(report);
    if (status == HWNAS_OK)
        status = hwnas_report_conclude(report);
    hwnas_report_free(report);
    return status;
}

static void print_error(void)
{
    const hwnas_error *error = hwnas_last_error();
    hwnas_say(stderr, "hwnas: ");
    if (*error->file)
        hwnas_say(stderr, "%s:", error->file);
    if (*error->file && error->line)
        hwnas_say(stderr, "%d:", error->line);
    if (*error->file && error->line && error->column)
        hwnas_say(stderr, "%d:", error->column);
    hwnas_say(stderr, "%s%s\n", *error->file ? " " : "", error->message);
    if (*error->hint)
        hwnas_say(stderr, "  hint: %s\n", error->hint);
}

/* A pipe may come from a program that does not wait for its own; a full one is not a failure here.
 */
static void make_blocking(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && flags & O_NONBLOCK)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

int main(int argc, char **argv)
{
    int exit_code;
    if (hwnas_runner_main(&exit_code, argc, argv))
        return exit_code;
    make_blocking(STDOUT_FILENO);
    make_blocking(STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN); /* the pipe of a runner may close, and a search goes on */
    if (argc > 1 && !strcmp(argv[1], "--version"))
        argv[1] = "version";
    hwnas_log_begin();
    hwnas_set_columns(hwnas_terminal_columns(STDOUT_FILENO));
    hwnas_status status = hwnas_dispatch("hwnas", hwnas_about, hwnas_commands, argc, argv);
    if (status == HWNAS_OK)
        status = flush();
    if (is_reader_gone)
        end_by_closed_pipe();
    if (status != HWNAS_OK && *hwnas_last_error()->message)
        print_error();
    return hwnas_status_exit_code(status);
}
