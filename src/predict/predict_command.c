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
#include "base/log.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/claims.h"
#include "predict/epochs.h"
#include "predict/training_program.h"
#include "predict/handed.h"
#include "predict/program.h"
#include "predict/supervise.h"

/* ---- "PROGRAM#KEY=VALUE,..." ---- */

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
    hwnas_results_close(p->curves);
    hwnas_fork_server_stop(&p->server);
    free(p->words);
    free(p->name);
    free(p->cache);
    free(p);
}

/* ---- Runs ---- */

/* Brings an answer into the column's unit. */
static hwnas_status convert(const hwnas_training_program *p, hwnas_run *run)
{
    char *said = hwnas_printf("'%s' printed", run->name ? run->name : run->arguments[0]);
    const hwnas_giver giver = hwnas_training_program_giver(p, said);
    const hwnas_status status =
        hwnas_percent_convert(&run->mean, &run->sd, run->is_percent, &giver);
    free(said);
    return status;
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

bool hwnas_predictor_gives_up(const hwnas_predictor *base)
{
    return base->ops == &hwnas_predictor_command &&
           ((const hwnas_training_program *)base)->give_up > 0;
}

void hwnas_predictor_give_up_below(hwnas_predictor *base, double floor)
{
    if (base->ops == &hwnas_predictor_command)
        ((hwnas_training_program *)base)->floor = floor;
}

bool hwnas_command_was_stopped(int64_t *n, int64_t *n_all, const hwnas_predictor *base)
{
    const hwnas_stopped_training *s = &((const hwnas_training_program *)base)->stopped;
    *n = (int64_t)s->n;
    *n_all = (int64_t)s->n_planned;
    return s->n > 0;
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

/* A network that waits for its accuracy. */
typedef struct request {
    const hwnas_arch *arch;
    hwnas_digest digest;
    char *code;
    bool is_claimed;
    hwnas_epochs epochs;
    hwnas_curve_end end; /* where it would have come to, of one that is not worth going on */
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

/* Whether it is not worth going on with a training; *end: where it would come to. */
static bool is_hopeless(hwnas_curve_end *end, const hwnas_training_program *p, const double *curve,
                        size_t n, size_t n_planned)
{
    return p->give_up > 0 && p->floor > -INFINITY && n > 0 && n < n_planned &&
           hwnas_epochs_foresee(end, curve, n, n_planned, p->curves, p->rungs[0]) &&
           hwnas_curve_chance(end, p->floor) < p->give_up;
}

/* A training that was ended before, in this process or another, and still is not worth it. */
static bool was_ended(hwnas_training_program *p, hwnas_digest digest)
{
    const hwnas_result *row = p->rung || !p->curves ? NULL : hwnas_results_find(p->curves, digest);
    hwnas_stopped_training *s = &p->stopped;
    if (!row || !is_hopeless(&s->end, p, row->curve, row->n_curve, row->n_epochs))
        return false;
    s->n = row->n_curve;
    s->n_planned = row->n_epochs;
    return true;
}

/* Of a training that was ended, and whose curve is kept; it is claimed. */
static void forget(const hwnas_training_program *p, hwnas_digest digest)
{
    if (p->forget)
        p->forget(p, digest);
}

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
    if (b->predictor->curves && hwnas_results_refresh(b->predictor->curves) != HWNAS_OK)
        hwnas_error_clear(); /* what cannot be read costs no training */
    const bool is_known = hwnas_results_find(results, r->digest) != NULL;
    if (!is_known && !was_ended(b->predictor, r->digest))
        return HWNAS_OK;
    if (!is_known)
        forget(b->predictor, r->digest);
    *state = HWNAS_RUN_OVER;
    hwnas_claims_give_up(b->claims, r->digest);
    return HWNAS_OK;
}

/* A process that was killed between keeping the curve and forgetting the training has left that;
 * what cannot be removed costs no result. */
static void tidy(batch *b, hwnas_digest digest)
{
    bool is_ours = false;
    if (!b->predictor->forget)
        return;
    if ((!b->claims && hwnas_claims_open(&b->claims, b->predictor->results->path) != HWNAS_OK) ||
        hwnas_claims_take(&is_ours, b->claims, digest) != HWNAS_OK)
        hwnas_error_clear();
    if (!is_ours)
        return;
    forget(b->predictor, digest);
    hwnas_claims_give_up(b->claims, digest);
}

static hwnas_status prepare(void *context, hwnas_run *run)
{
    batch *b = context;
    hwnas_training_program *p = b->predictor;
    request *r = &b->requests[run - b->runs];
    TRY(claim(b, r, &run->state));
    if (run->state != HWNAS_RUN_READY)
        return HWNAS_OK;
    r->code = hwnas_arch_code(r->arch);
    TRY(hwnas_handed_make(&r->handed, r->arch, p->rung));
    hwnas_fork_server_offer(&p->server, &r->handed);
    memcpy(r->arguments, p->arguments, sizeof r->arguments);
    r->arguments[p->n_words] = r->handed.paths[HWNAS_HANDED_ONNX];
    r->arguments[p->n_words + 1] = r->handed.paths[HWNAS_HANDED_PYTORCH];
    run->arguments = r->arguments;
    run->name = p->name;
    run->environment = r->handed.environment;
    return HWNAS_OK;
}

/* What it was a fork of may have ended, and the program with it. */
static void prepare_again(void *context)
{
    const batch *b = context;
    hwnas_fork_server_revive(&b->predictor->server);
}

/* Only whole trainings are on a front, and have a curve that is kept. */
static void hear(void *context, hwnas_run *run, const char *line)
{
    batch *b = context;
    const hwnas_training_program *p = b->predictor;
    request *r = &b->requests[run - b->runs];
    const hwnas_giver giver = hwnas_training_program_giver(p, "");
    if (p->rung || !p->curves || run->is_enough || !hwnas_epochs_hear(&r->epochs, line, &giver))
        return;
    run->is_enough = is_hopeless(&r->end, p, r->epochs.values, r->epochs.n, r->epochs.n_planned);
    if (run->is_enough)
        hwnas_log(HWNAS_LOG_INFO, "%s: ended after epoch %zu of %zu: %g is likely, %g needed",
                  r->code, r->epochs.n, r->epochs.n_planned, r->end.mean, p->floor);
}

/* Of a training that came to an end, or was ended; one that says nothing has none. A curve that
 * cannot be kept is missed by later ones, and costs no result. */
static bool keep_curve(const batch *b, const request *r, const hwnas_run *run)
{
    const hwnas_result row = {.digest = r->digest,
                              .code = r->code,
                              .value = run->is_enough ? r->end.mean : run->mean,
                              .sd = run->is_enough ? r->end.sd : run->sd,
                              .seconds = run->seconds,
                              .n_epochs = r->epochs.n_planned,
                              .curve = r->epochs.values,
                              .n_curve = r->epochs.n};
    if (!row.n_curve || hwnas_results_add(b->predictor->curves, &row, 1) == HWNAS_OK)
        return true;
    hwnas_log(HWNAS_LOG_WARNING, "%s: the curve is not kept: %s", r->code,
              hwnas_last_error()->message);
    hwnas_error_clear();
    return false;
}

static void clean_up(batch *b, request *r)
{
    hwnas_epochs_done(&r->epochs);
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
    if (!run->error.status && !run->is_enough && convert(b->predictor, run) != HWNAS_OK)
        run->error = *hwnas_last_error();
    if (run->error.status) {
        char *message =
            hwnas_printf("%s: %s", r->code ? r->code : r->digest.hex, run->error.message);
        snprintf(run->error.message, sizeof run->error.message, "%s", message);
        free(message);
    } else if (run->is_enough) {
        b->predictor->stopped = (hwnas_stopped_training){r->epochs.n, r->epochs.n_planned, r->end};
        if (keep_curve(b, r, run))
            forget(b->predictor, r->digest);
    } else {
        const hwnas_result result = {.digest = r->digest,
                                     .code = r->code,
                                     .value = run->mean,
                                     .sd = run->sd,
                                     .seconds = run->seconds};
        status = hwnas_results_add(b->predictor->results, &result, 1);
        keep_curve(b, r, run);
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
    if (was_ended(b->predictor, digest)) {
        tidy(b, digest);
        return;
    }
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
                                     .again = prepare_again,
                                     .done = keep,
                                     .says = hear,
                                     .tick = tell,
                                     .context = &b};
    hwnas_digest *digests = hwnas_alloc(n * sizeof *digests);
    p->stopped = (hwnas_stopped_training){.n = 0};
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
        if (!b.claims)
            TRY_OUT(hwnas_claims_open(&b.claims, p->results->path));
        status = hwnas_programs_run(&programs, b.runs, b.n);
        base->spent += hwnas_now() - b.begun;
        TRY_OUT(status);
    }
    for (size_t i = 0; i < n; i++) {
        const hwnas_result *result = hwnas_results_find(p->results, digests[i]);
        out[i] = result
                     ? (hwnas_estimate){.mean = result->value, .sd = result->sd, .is_trained = true}
                     : (hwnas_estimate){.mean = p->stopped.end.mean, .sd = p->stopped.end.sd};
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
