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

#include "cli/cli.h"

static const hwnas_command commands[] = {
    {"search", "find the networks that are accurate and fast on a device", hwnas_cmd_search},
    {"study", "look at what a search has found", hwnas_cmd_study},
    {"explain", "say why a search came to a network, and what else there is", hwnas_cmd_explain},
    {"export", "write a network as ONNX, PyTorch or YAML", hwnas_cmd_export},
    {"profile", "measure models over batches and threads", hwnas_cmd_profile},
    {"optimize", "make a trained model faster on a device", hwnas_cmd_optimize},
    {"evaluate", "see how accurate a network is on samples of yours", hwnas_cmd_evaluate},
    {"forecast", "see what a device would do with a model, and whether it fits",
     hwnas_cmd_forecast},
    {"calibrate", "fill the table of latencies for a space", hwnas_cmd_calibrate},
    {"compare", "say which device serves a model cheapest, or whether one got slower",
     hwnas_cmd_compare},
    {"space", "check, count, sample or show a search space", hwnas_cmd_space},
    {"predictor", "fit or judge an accuracy predictor", hwnas_cmd_predictor},
    {"devices", "see what this machine can run", hwnas_cmd_devices},
    {"version", "versions of hwnas and of its libraries", hwnas_cmd_version},
    {"run", "compute a network's outputs of given inputs", hwnas_cmd_run},
    {0},
};

static void print_commands(const char *what, const char *about, const hwnas_command *rows)
{
    hwnas_say(stdout, "Usage: %s COMMAND [ARGUMENT]...\n%s\n\n", what, about);
    for (const hwnas_command *c = rows; c->name; c++)
        if (c->help)
            hwnas_say(stdout, "  %-12s %s\n", c->name, c->help);
    hwnas_say(stdout, "\n'%s COMMAND --help' tells more of each.\n", what);
}

hwnas_status hwnas_dispatch(const char *what, const char *about, const hwnas_command *rows,
                            int argc, char **argv)
{
    const char *names[24] = {0};
    if (argc < 2)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s needs a command", what),
                          "'%s --help' lists them", what);
    char *help[] = {argc > 2 ? argv[2] : NULL, "--help", NULL};
    const bool is_help = !strcmp(argv[1], "help");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (is_help && argc == 2)) {
        print_commands(what, about, rows);
        return HWNAS_OK;
    }
    if (is_help) {
        argc = 3;
        argv = help - 1;
    }
    for (int i = 0; rows[i].name; i++) {
        names[i] = rows[i].name;
        if (!strcmp(argv[1], rows[i].name))
            return rows[i].run(argc - 1, argv + 1);
    }
    hwnas_status status =
        hwnas_fail(HWNAS_E_USAGE, NULL, "%s has no command '%.60s'", what, argv[1]);
    const char *near = hwnas_nearest(argv[1], names);
    return near ? hwnas_hint(status, "did you mean '%s'?", near)
                : hwnas_hint(status, "'%s --help' lists them", what);
}

static hwnas_status flush(void)
{
    if (fflush(stdout) || ferror(stdout))
        return hwnas_fail(HWNAS_E_IO, NULL, "cannot write to standard output: %s", strerror(errno));
    return HWNAS_OK;
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

/* What was written, and what is to be known of it. */
static void print_remarks(const hwnas_report *report)
{
    const char *remark, *line;
    for (size_t i = 0; (line = hwnas_report_note(report, i)); i++)
        hwnas_say(stderr, "hwnas: note: %s\n", line);
    for (size_t i = 0; (line = hwnas_report_file(report, i, &remark)); i++)
        hwnas_say(stderr, "wrote %s%s%s\n", line, remark ? ", which " : "", remark ? remark : "");
}

hwnas_status hwnas_print_report(hwnas_report *report, hwnas_format format)
{
    char *text;
    hwnas_status status = hwnas_report_write(&text, report, format);
    if (status == HWNAS_OK)
        status = hwnas_print_text(text);
    print_remarks(report);
    if (status == HWNAS_OK)
        status = hwnas_report_conclude(report);
    hwnas_report_free(report);
    return status;
}

void hwnas_show_progress(void *context, const char *words)
{
    (void)context;
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    if (words)
        hwnas_say(stderr, "%s", words);
}

/* What the library has to say before it works for long. */
static void print_note(void *context, hwnas_log_level level, const char *line)
{
    (void)context;
    if (level == HWNAS_LOG_NOTE)
        hwnas_say(stderr, "hwnas: note: %s\n", line);
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
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write, told like any other */
    if (argc > 1 && !strcmp(argv[1], "--version"))
        argv[1] = "version";
    hwnas_set_log(print_note, NULL);
    hwnas_status status = hwnas_dispatch(
        "hwnas", "Hardware-aware neural architecture search: networks measured on your device.",
        commands, argc, argv);
    if (status == HWNAS_OK)
        status = flush();
    if (status != HWNAS_OK && *hwnas_last_error()->message)
        print_error();
    return hwnas_status_exit_code(status);
}
