/* cli.h: what the commands of the program share. One file a command; main.c lists them. */
#ifndef HWNAS_CLI_CLI_H
#define HWNAS_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include <hwnas.h>
#include <jansson.h>

/* Forwards a failure to the caller; for functions that own nothing yet. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        hwnas_status try_status_ = (call);                                                         \
        if (try_status_ != HWNAS_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

/* Forwards a failure through the function's one exit label; wants a local `status`. */
#define TRY_OUT(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != HWNAS_OK)                                                                    \
            goto out;                                                                              \
    } while (0)

/* Room for `n` things of this size, or one, all zero; to be given to free(). Without memory the
 * program ends. */
void *hwnas_need(size_t n, size_t size);

/* ---- Options ---- */

typedef enum hwnas_option_kind {
    HWNAS_OPTION_FLAG,   /* bool */
    HWNAS_OPTION_TEXT,   /* const char * */
    HWNAS_OPTION_INT,    /* long, not negative */
    HWNAS_OPTION_ALL,    /* long, not negative; "all" is 0 */
    HWNAS_OPTION_NUMBER, /* double, not negative */
    HWNAS_OPTION_LIST,   /* hwnas_option_list: each time that it is given, one more */
} hwnas_option_kind;
enum { HWNAS_OPTION_RARE = 64 }; /* added to a kind: seldom needed, so --help names it only */

enum { HWNAS_OPTION_LIST_SIZE = 64 };
typedef struct hwnas_option_list {
    int n;
    const char *texts[HWNAS_OPTION_LIST_SIZE];
} hwnas_option_list;

typedef struct hwnas_option {
    const char *name;     /* long form; NULL ends the table */
    char letter;          /* short form; 0: none */
    int kind;             /* hwnas_option_kind */
    void *value;          /* where it goes; untouched when it is not given */
    const char *argument; /* "FILE"; NULL for a flag */
    const char *help;     /* one line */
} hwnas_option;

typedef struct hwnas_usage {
    const char *synopsis; /* "search JOB.yaml" */
    const char *summary;
    const char *notes; /* (optional) more lines, e.g. examples */
    int min_arguments, max_arguments;
} hwnas_usage;

/* What each command takes besides. */
extern const hwnas_option hwnas_common_options[];

/* The characters of "space count" in "space count SPACE". */
size_t hwnas_command_width(const char *synopsis);

/* Splits the command line into options and arguments (`arguments` has room for max_arguments).
 * After --help, `is_done` is set: it has been printed, or given to hwnas_describe(). */
HWNAS_CHECKED hwnas_status hwnas_options_parse(const hwnas_usage *usage,
                                               const hwnas_option *options, int argc, char **argv,
                                               const char **arguments, int *n_arguments,
                                               bool *is_done);

/* ---- Output ---- */

/* All that is printed goes through these, so that no name and no message of others has power over
 * a terminal (hwnas_clean()); lines and tabs stay. */
void hwnas_say(FILE *to, const char *format, ...) HWNAS_PRINTF(2, 3);
/* What a report of rows is printed in; HWNAS_E_USAGE for two of them. */
HWNAS_CHECKED hwnas_status hwnas_table_format(hwnas_format *out, bool as_json, bool as_csv,
                                              bool as_markdown);
/* Prints a report to standard output, and what else is to be known to standard error; frees it.
 * Fails as the report concludes; a full disk or closed pipe is HWNAS_E_IO, and the
 * latter ends the program without a message. */
HWNAS_CHECKED hwnas_status hwnas_print_report(hwnas_report *report, hwnas_format format);
/* Shows how far something is, in the place of what was shown before; NULL: nothing. Where standard
 * error is no terminal it is silent. For `progress`. */
void hwnas_show_progress(void *context, const char *words);
/* Prints a text that the library gave, as a line or several, to standard output and frees it; a
 * full disk or closed pipe is HWNAS_E_IO. */
HWNAS_CHECKED hwnas_status hwnas_print_text(char *text);

/* Prints what jansson packed, which is NULL where a name was no UTF-8, as one object; takes it. */
HWNAS_CHECKED hwnas_status hwnas_print_json(json_t *json);

/* ---- Signals ---- */

/* From here on the first SIGINT or SIGTERM makes this nonzero, a second one ends the program. */
const volatile sig_atomic_t *hwnas_stop_on_signals(void);
/* Passes them on to a group of processes; 0: to nobody. */
void hwnas_stop_with(pid_t group);
bool hwnas_is_stop_asked(void);

/* Opens a predictor and its space, both to be closed; Ctrl-C ends scores that take long. */
HWNAS_CHECKED hwnas_status hwnas_open_predictor(hwnas_predictor **out, hwnas_space **out_space,
                                                const char *name, const char *space_name);

/* ---- Commands ---- */

typedef struct hwnas_command {
    const char *name;                           /* NULL ends the table */
    const char *help;                           /* NULL: not for people, left out of the list */
    hwnas_status (*run)(int argc, char **argv); /* argv[0] is the command */
} hwnas_command;

/* Of the program, and what it is. */
extern const hwnas_command hwnas_commands[];
extern const char hwnas_about[];

/* Takes what --help would print of a command, or of commands with one name before them. */
typedef struct hwnas_describer {
    void *context;
    void (*command)(void *context, const hwnas_usage *usage, const hwnas_option *options);
    void (*group)(void *context, const char *what, const char *about, const hwnas_command *rows);
} hwnas_describer;

/* Calls one of the two for this row: help pages, manual pages and completions are made of the same
 * tables. May be called from within. */
HWNAS_CHECKED hwnas_status hwnas_describe(const hwnas_command *row, const hwnas_describer *to);
/* Who listens; NULL: nobody, it is for people. */
const hwnas_describer *hwnas_describer_now(void);

hwnas_status hwnas_cmd_calibrate(int argc, char **argv);
hwnas_status hwnas_cmd_compare(int argc, char **argv);
hwnas_status hwnas_cmd_devices(int argc, char **argv);
hwnas_status hwnas_cmd_evaluate(int argc, char **argv);
hwnas_status hwnas_cmd_explain(int argc, char **argv);
hwnas_status hwnas_cmd_export(int argc, char **argv);
hwnas_status hwnas_cmd_forecast(int argc, char **argv);
hwnas_status hwnas_cmd_manual(int argc, char **argv);
hwnas_status hwnas_cmd_optimize(int argc, char **argv);
hwnas_status hwnas_cmd_predictor(int argc, char **argv);
hwnas_status hwnas_cmd_profile(int argc, char **argv);
hwnas_status hwnas_cmd_predictor_encode(int argc, char **argv);
hwnas_status hwnas_cmd_predictor_score(int argc, char **argv);
hwnas_status hwnas_cmd_predictor_suggest(int argc, char **argv);
hwnas_status hwnas_cmd_predictor_import(int argc, char **argv);
hwnas_status hwnas_cmd_report(int argc, char **argv);
hwnas_status hwnas_cmd_run(int argc, char **argv);
hwnas_status hwnas_cmd_runner(int argc, char **argv);
hwnas_status hwnas_cmd_search(int argc, char **argv);
hwnas_status hwnas_cmd_space(int argc, char **argv);
hwnas_status hwnas_cmd_study(int argc, char **argv);
hwnas_status hwnas_cmd_train(int argc, char **argv);
hwnas_status hwnas_cmd_version(int argc, char **argv);
hwnas_status hwnas_cmd_watch(int argc, char **argv);
hwnas_status hwnas_cmd_worker(int argc, char **argv);

/* Runs the row that argv[1] names; `what` is "hwnas" or "hwnas space". Prints the list for --help.
 */
HWNAS_CHECKED hwnas_status hwnas_dispatch(const char *what, const char *about,
                                          const hwnas_command *commands, int argc, char **argv);

#endif
