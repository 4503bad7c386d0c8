/* training_program.c: how a predictor that is trained by a program is made: its options and its
 * files. */
#include "predict/training_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "predict/spelled_options.h"
#include "predict/supervise.h"

/* ---- Options ---- */

static hwnas_status set_printed(void *to, const char *name, const char *value)
{
    hwnas_training_program *p = to;
    (void)name;
    p->printed = hwnas_printed_of(value);
    return p->printed
               ? HWNAS_OK
               : hwnas_fail(HWNAS_E_INPUT, NULL,
                            "'printed' of a command is percent or fraction, not '%.40s'", value);
}

static hwnas_status set_text(char **text, const char *name, const char *value)
{
    if (!*value)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of a command is empty", name);
    free(*text);
    *text = hwnas_strdup(value);
    return HWNAS_OK;
}

static hwnas_status set_cache(void *to, const char *name, const char *value)
{
    return set_text(&((hwnas_training_program *)to)->cache, name, value);
}

static hwnas_status set_column(void *to, const char *name, const char *value)
{
    return set_text(&((hwnas_training_program *)to)->base.target, name, value);
}

static const struct {
    const char *name;
    size_t offset; /* of a double */
    bool is_whole;
    double low, high;
} numbers[] = {
    {"timeout", offsetof(hwnas_training_program, timeout), false, 0.1, 1e7},
    {"jobs", offsetof(hwnas_training_program, jobs), true, 1, 1024},
    {"retries", offsetof(hwnas_training_program, retries), true, 0, 100},
    {"rungs", offsetof(hwnas_training_program, n_rungs), true, 1, HWNAS_MAX_RUNGS},
    {"give-up", offsetof(hwnas_training_program, give_up), false, 0, 0.5},
};

static hwnas_status set_number(void *to, const char *name, const char *value)
{
    size_t i = 0;
    while (strcmp(numbers[i].name, name))
        i++;
    char *end;
    const double number = strtod(value, &end);
    if (end == value || *end || !(number >= numbers[i].low) || !(number <= numbers[i].high) ||
        (numbers[i].is_whole && number != floor(number)))
        return hwnas_fail(
            HWNAS_E_INPUT, NULL, "'%s' of a command must be a %snumber from %g to %g, not '%.40s'",
            name, numbers[i].is_whole ? "whole " : "", numbers[i].low, numbers[i].high, value);
    *(double *)((char *)to + numbers[i].offset) = number;
    return HWNAS_OK;
}

hwnas_status hwnas_training_program_set_options(hwnas_training_program *p, char *text)
{
    static const hwnas_spelled_option options[] = {
        {"cache", set_cache},  {"column", set_column},   {"give-up", set_number},
        {"jobs", set_number},  {"printed", set_printed}, {"retries", set_number},
        {"rungs", set_number}, {"timeout", set_number},  {0}};
    return hwnas_spelled_options_set(p, text, options, "a command",
                                     "command:PROGRAM#timeout=3600,jobs=2");
}

hwnas_status hwnas_training_program_check_program(const char *name)
{
    char *found = hwnas_program_find(name);
    free(found);
    if (found)
        return HWNAS_OK;
    hwnas_place place = {.file = name};
    return hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, &place,
                                 access(name, F_OK) ? "there is no such program"
                                                    : "the program may not be executed"),
                      access(name, F_OK) ? "write command:./PROGRAM for one in this directory"
                                         : "chmod +x, and a script begins with #!");
}

/* ---- Making one ---- */

hwnas_giver hwnas_training_program_giver(const hwnas_training_program *p, const char *said)
{
    return (hwnas_giver){.column = p->base.target,
                         .printed = p->printed,
                         .has_percentage = hwnas_has_percentage(p->results),
                         .said = said,
                         .how_to_say =
                             "print a percentage above 1, or '0.95 %' for one below, or say "
                             "'command:PROGRAM#printed=percent' (or fraction)",
                         .how_to_name = "#column=NAME"};
}

hwnas_training_program *hwnas_training_program_new(const char *kind, const hwnas_space *space)
{
    hwnas_training_program *p = hwnas_alloc(sizeof *p);
    p->base = (hwnas_predictor){.ops = &hwnas_predictor_command,
                                .kind = kind,
                                .space = space,
                                .target = hwnas_strdup("accuracy_pct")};
    p->timeout = 86400;
    p->jobs = 1;
    p->retries = 1;
    p->n_rungs = 1;
    p->floor = -INFINITY;
    return p;
}

enum { CURVES = -1 }; /* in the place of a rung */

/* RESULTS.csv of whole trainings, RESULTS.rung1.csv of cheaper ones, RESULTS.curves.csv: yours to
 * free(). */
static char *results_file(const hwnas_training_program *p, int rung)
{
    const int n = (int)strlen(p->cache) - (hwnas_ends_with(p->cache, ".csv") ? 4 : 0);
    return rung == CURVES ? hwnas_printf("%.*s.curves.csv", n, p->cache)
           : rung         ? hwnas_printf("%.*s.rung%d.csv", n, p->cache, rung)
                          : hwnas_strdup(p->cache);
}

hwnas_status hwnas_training_program_open_results(hwnas_training_program *p)
{
    p->base.unit = hwnas_strdup(hwnas_column_unit(p->base.target));
    for (int r = 0; r < (int)p->n_rungs; r++) {
        char *file = results_file(p, r);
        const hwnas_status status = hwnas_results_open(&p->rungs[r], file, p->base.target);
        free(file);
        TRY(status);
        p->results = p->rungs[r];
        const hwnas_giver giver = hwnas_training_program_giver(p, "");
        TRY(hwnas_percent_check(p->results, &giver));
    }
    p->results = p->rungs[0];
    if (!(p->give_up > 0))
        return HWNAS_OK;
    char *file = results_file(p, CURVES);
    const hwnas_status status = hwnas_results_open_curves(&p->curves, file, p->base.target);
    free(file);
    return status;
}
