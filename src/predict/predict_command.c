/* predict_command.c: the kind `command`: "command:PROGRAM[#KEY=VALUE,...]", a program of the user's
 * that trains a network and prints its accuracy. docs/predictors.md tells the contract.
 *
 * What it said once is kept in a file of results by the network's digest, so that no network is
 * trained twice, in this process or another. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/claims.h"
#include "predict/training_program.h"
#include "predict/handed.h"
#include "predict/program.h"
#include "predict/supervise.h"

/* ---- "PROGRAM#KEY=VALUE,..." ---- */

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
};

static hwnas_status set_option(hwnas_training_program *p, const char *key, const char *value)
{
    static const char *const names[] = {"cache",   "column", "jobs",    "printed",
                                        "retries", "rungs",  "timeout", NULL};
    if (!strcmp(key, "printed")) {
        p->printed = hwnas_printed_of(value);
        return p->printed ? HWNAS_OK
                          : hwnas_fail(HWNAS_E_INPUT, NULL,
                                       "'printed' of a command is percent or fraction, not '%.40s'",
                                       value);
    }
    if (!strcmp(key, "cache") || !strcmp(key, "column")) {
        char **text = *key == 'c' && key[1] == 'a' ? &p->cache : &p->base.target;
        if (!*value)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of a command is empty", key);
        free(*text);
        *text = hwnas_strdup(value);
        return HWNAS_OK;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(numbers[i].name, key))
            continue;
        char *end;
        double number = strtod(value, &end);
        if (end == value || *end || !(number >= numbers[i].low) || !(number <= numbers[i].high) ||
            (numbers[i].is_whole && number != floor(number)))
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "'%s' of a command must be a %snumber from %g to %g, not '%.40s'",
                              key, numbers[i].is_whole ? "whole " : "", numbers[i].low,
                              numbers[i].high, value);
        *(double *)((char *)p + numbers[i].offset) = number;
        return HWNAS_OK;
    }
    const char *near = hwnas_nearest(key, names);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "a command has no option '%.40s'", key),
        near ? "did you mean '%s'?"
             : "the options are cache, column, jobs, printed, retries, rungs, timeout%s",
        near ? near : "");
}

hwnas_status hwnas_training_program_set_options(hwnas_training_program *p, char *text)
{
    for (char *item; (item = strsep(&text, ","));) {
        char *equals = strchr(item, '=');
        if (!equals)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "'%.60s' after '#' is not an option of a command", item),
                              "write command:PROGRAM#timeout=3600,jobs=2");
        *equals = '\0';
        TRY(set_option(p, item, equals + 1));
    }
    return HWNAS_OK;
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

/* A file by the whole name is one word; else words are parted by blanks. */
static hwnas_status split_words(hwnas_training_program *p)
{
    if (!access(p->words, F_OK)) {
        p->arguments[p->n_words++] = p->words;
        return hwnas_training_program_check_program(p->words);
    }
    char *rest = p->words;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        if (p->n_words == HWNAS_MAX_WORDS)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, NULL, "a command has at most %d words", HWNAS_MAX_WORDS),
                "write a script");
        p->arguments[p->n_words++] = word;
    }
    if (!p->n_words)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'command:' names no program"),
                          "write command:PROGRAM");
    return hwnas_training_program_check_program(p->arguments[0]);
}

static void free_command(hwnas_predictor *base)
{
    hwnas_training_program *p = (hwnas_training_program *)base;
    for (int r = 0; r < HWNAS_MAX_RUNGS; r++)
        hwnas_results_close(p->rungs[r]);
    free(p->words);
    free(p->name);
    free(p->cache);
    free(p);
}

/* ---- Percent or fraction ---- */

static hwnas_giver giver_of(const hwnas_training_program *p, const char *said)
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

/* Brings an answer into the column's unit. */
static hwnas_status convert(const hwnas_training_program *p, hwnas_run *run)
{
    char *said = hwnas_printf("'%s' printed", run->name ? run->name : run->arguments[0]);
    const hwnas_giver giver = giver_of(p, said);
    const hwnas_status status =
        hwnas_percent_convert(&run->mean, &run->sd, run->is_percent, &giver);
    free(said);
    return status;
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
    return p;
}

/* RESULTS.csv of whole trainings, RESULTS.rung1.csv of cheaper ones: yours to free(). */
static char *results_file(const hwnas_training_program *p, int rung)
{
    const int n = (int)strlen(p->cache) - (hwnas_ends_with(p->cache, ".csv") ? 4 : 0);
    return rung ? hwnas_printf("%.*s.rung%d.csv", n, p->cache, rung) : hwnas_strdup(p->cache);
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
        const hwnas_giver giver = giver_of(p, "");
        TRY(hwnas_percent_check(p->results, &giver));
    }
    p->results = p->rungs[0];
    return HWNAS_OK;
}

int hwnas_predictor_rungs(const hwnas_predictor *base)
{
    return base && base->ops == &hwnas_predictor_command
               ? (int)((const hwnas_training_program *)base)->n_rungs
               : 1;
}

void hwnas_predictor_use_rung(hwnas_predictor *base, int rung)
{
    if (rung >= hwnas_predictor_rungs(base))
        return;
    if (base->ops == &hwnas_predictor_command) {
        hwnas_training_program *p = (hwnas_training_program *)base;
        p->rung = rung;
        p->results = p->rungs[rung];
    }
}

static hwnas_status open_command(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const char *hash = strrchr(rest, '#');
    hwnas_training_program *p = hwnas_training_program_new("command", space);
    char *options = hash ? hwnas_strdup(hash + 1) : NULL;
    p->words = hash ? hwnas_printf("%.*s", (int)(hash - rest), rest) : hwnas_strdup(rest);
    TRY_OUT(split_words(p));
    if (options)
        TRY_OUT(hwnas_training_program_set_options(p, options));
    if (!p->cache) {
        const char *slash = strrchr(p->arguments[0], '/');
        p->cache = hwnas_printf("%s.%s.csv", slash ? slash + 1 : p->arguments[0], space->name);
    }
    TRY_OUT(hwnas_training_program_open_results(p));
    *out = &p->base;
    p = NULL;
out:
    free(options);
    hwnas_predictor_free((hwnas_predictor *)p);
    return status;
}

hwnas_status hwnas_command_check(hwnas_predictor *base)
{
    hwnas_training_program *p = (hwnas_training_program *)base;
    if (p->check && !p->is_checked)
        TRY(p->check(p));
    p->is_checked = true;
    return HWNAS_OK;
}

/* ---- Runs ---- */

/* A network that waits for its accuracy. */
typedef struct request {
    const hwnas_arch *arch;
    hwnas_digest digest;
    char *code;
    bool is_claimed;
    hwnas_handed handed;
    char *arguments[HWNAS_MAX_ARGUMENTS];
} request;

typedef struct batch {
    hwnas_training_program *predictor;
    hwnas_claims *claims;
    request *requests;
    hwnas_run *runs;
    size_t n;
    double begun;
} batch;

/* READY: the network is ours to train. What others train is looked for again later; as they keep
 * their result before they give up their claim, it is there when we have the claim. */
static hwnas_status claim(batch *b, request *r, hwnas_run_state *state)
{
    hwnas_results *results = b->predictor->results;
    TRY(hwnas_claims_take(&r->is_claimed, b->claims, r->digest));
    *state = r->is_claimed ? HWNAS_RUN_READY : HWNAS_RUN_LATER;
    if (!r->is_claimed)
        return HWNAS_OK;
    TRY(hwnas_results_refresh(results));
    if (!hwnas_results_find(results, r->digest))
        return HWNAS_OK;
    *state = HWNAS_RUN_OVER;
    hwnas_claims_give_up(b->claims, r->digest);
    return HWNAS_OK;
}

static hwnas_status prepare(void *context, hwnas_run *run)
{
    batch *b = context;
    const hwnas_training_program *p = b->predictor;
    request *r = &b->requests[run - b->runs];
    TRY(claim(b, r, &run->state));
    if (run->state != HWNAS_RUN_READY)
        return HWNAS_OK;
    r->code = hwnas_arch_code(r->arch);
    TRY(hwnas_handed_make(&r->handed, r->arch, p->rung));
    memcpy(r->arguments, p->arguments, sizeof r->arguments);
    r->arguments[p->n_words] = r->handed.paths[HWNAS_HANDED_ONNX];
    r->arguments[p->n_words + 1] = r->handed.paths[HWNAS_HANDED_PYTORCH];
    run->arguments = r->arguments;
    run->name = p->name;
    run->environment = r->handed.environment;
    return HWNAS_OK;
}

static void clean_up(batch *b, request *r)
{
    hwnas_handed_done(&r->handed);
    if (r->is_claimed)
        hwnas_claims_give_up(b->claims, r->digest);
    free(r->code);
}

/* A result is in the file as soon as it is there; others may take hours yet. */
static hwnas_status keep(void *context, hwnas_run *run)
{
    batch *b = context;
    request *r = &b->requests[run - b->runs];
    hwnas_status status = HWNAS_OK;
    if (!run->error.status && convert(b->predictor, run) != HWNAS_OK)
        run->error = *hwnas_last_error();
    if (run->error.status) {
        char *message =
            hwnas_printf("%s: %s", r->code ? r->code : r->digest.hex, run->error.message);
        snprintf(run->error.message, sizeof run->error.message, "%s", message);
        free(message);
    } else {
        const hwnas_result result = {.digest = r->digest,
                                     .code = r->code,
                                     .value = run->mean,
                                     .sd = run->sd,
                                     .seconds = run->seconds};
        status = hwnas_results_add(b->predictor->results, &result, 1);
    }
    clean_up(b, r);
    return status;
}

static void tell(void *context)
{
    const batch *b = context;
    const hwnas_training_watch *watch = &b->predictor->base.watch;
    size_t n_done = 0;
    for (size_t i = 0; i < b->n; i++)
        n_done += b->runs[i].state == HWNAS_RUN_OVER;
    if (watch->tell)
        watch->tell(watch->context, n_done, b->n, hwnas_now() - b->begun);
}

/* Asks for a network that is neither known nor asked for. */
static void ask(batch *b, const hwnas_arch *arch, hwnas_digest digest)
{
    if (hwnas_results_find(b->predictor->results, digest))
        return;
    for (size_t i = 0; i < b->n; i++)
        if (!strcmp(b->requests[i].digest.hex, digest.hex))
            return;
    b->requests[b->n++] = (request){.arch = arch, .digest = digest};
}

const hwnas_results *hwnas_command_results(const hwnas_predictor *command)
{
    return ((const hwnas_training_program *)command)->results;
}

static hwnas_status score_command(hwnas_estimate *out, hwnas_predictor *base,
                                  const hwnas_arch *const *archs, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_training_program *p = (hwnas_training_program *)base;
    batch b = {.predictor = p, .begun = hwnas_now()};
    const hwnas_programs programs = {.jobs = (size_t)p->jobs,
                                     .retries = (int)p->retries,
                                     .timeout = p->timeout,
                                     .stop = p->base.stop,
                                     .begin = prepare,
                                     .done = keep,
                                     .tick = tell,
                                     .context = &b};
    hwnas_digest *digests = hwnas_alloc(n * sizeof *digests);
    b.requests = hwnas_alloc(n * sizeof *b.requests);
    b.runs = hwnas_alloc(n * sizeof *b.runs);
    for (size_t i = 0; i < n; i++) {
        hwnas_graph *graph;
        TRY_OUT(hwnas_graph_build(&graph, archs[i], 1));
        digests[i] = hwnas_graph_digest(graph);
        hwnas_graph_free(graph);
        ask(&b, archs[i], digests[i]);
    }
    if (b.n) {
        TRY_OUT(hwnas_command_check(base));
        hwnas_scratch_sweep(NULL);
        TRY_OUT(hwnas_claims_open(&b.claims, p->results->path));
        status = hwnas_programs_run(&programs, b.runs, b.n);
        base->spent += hwnas_now() - b.begun;
        TRY_OUT(status);
    }
    for (size_t i = 0; i < n; i++) {
        const hwnas_result *result = hwnas_results_find(p->results, digests[i]);
        out[i] = (hwnas_estimate){.mean = result->value, .sd = result->sd, .is_trained = true};
    }
out:
    hwnas_claims_close(b.claims);
    free(digests);
    free(b.requests);
    free(b.runs);
    return status;
}

static double mean_seconds(const hwnas_results *results)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++)
        if (!isnan(results->rows[i].seconds)) {
            sum += results->rows[i].seconds;
            n++;
        }
    return n ? sum / (double)n : NAN;
}

static void trainings_of(hwnas_trainings *out, const hwnas_predictor *base)
{
    const hwnas_training_program *p = (const hwnas_training_program *)base;
    double weight = 1, sum = 0, weights = 0;
    for (int r = 0; r < (int)p->n_rungs; r++, weight *= HWNAS_RUNG_REDUCTION) {
        sum += weight * mean_seconds(p->rungs[r]);
        weights += weight;
    }
    out->n_known = p->rungs[0]->n;
    out->n_jobs = (size_t)p->jobs;
    out->seconds = sum / weights;
}

const hwnas_predictor_ops hwnas_predictor_command = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "command",
    .heeds_stop = true,
    .open = open_command,
    .score = score_command,
    .trainings = trainings_of,
    .free = free_command,
};
