#include "predict/active.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/predict_priv.h"
#include "predict/results.h"
#include "predict/scratch.h"
#include "predict/suggest.h"

enum {
    N_REFITS = 5, /* in the second half of the budget */
    STRIDE = 10,  /* networks asked for between two trainings when nobody knows how many will be */
    MIN_FIT = 10, /* networks that a fit needs */
    RESERVE = 10  /* one of so many trainings is for the end of the search */
};

typedef struct active_predictor {
    hwnas_predictor base;
    hwnas_predictor *command;
    hwnas_predictor *fitted; /* NULL before the first fit */
    hwnas_train_options options;
    size_t n_fitted; /* results that it was fitted on */
    /* By result, as many as n_costs: multiply-accumulates. */
    double *costs;
    size_t n_costs;
} active_predictor;

static const hwnas_results *results_of(const active_predictor *p)
{
    return hwnas_command_results(p->command);
}

static void free_active(hwnas_predictor *base)
{
    active_predictor *p = (active_predictor *)base;
    hwnas_predictor_free(p->command);
    hwnas_predictor_free(p->fitted);
    free(p->costs);
    free(p);
}

/* ---- Fitting ---- */

/* The first n results as a table of their own. */
static hwnas_status write_rows(const char *path, const active_predictor *p, size_t n)
{
    hwnas_results *rows;
    TRY(hwnas_results_open(&rows, path, p->base.target));
    hwnas_status status = hwnas_results_add(rows, results_of(p)->rows, n);
    hwnas_results_close(rows);
    return status;
}

static hwnas_status fit(active_predictor *p, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_fit_result result = {.chosen = NULL};
    hwnas_predictor *fitted = NULL;
    hwnas_scratch scratch = {.folder = NULL};
    char *files[3] = {NULL};
    TRY(hwnas_scratch_open(&scratch, NULL));
    static const char *const names[] = {"rows.csv", "fit.json", "fit.md"};
    for (size_t i = 0; i < 3; i++)
        files[i] = hwnas_printf("%s/%s", scratch.folder, names[i]);
    const hwnas_fit_options options = {.space = p->base.space->path,
                                       .data = files[0],
                                       .target = p->base.target,
                                       .out = files[1],
                                       .command = "",
                                       .seed = p->options.seed};
    TRY_OUT(write_rows(files[0], p, n));
    TRY_OUT(hwnas_predictor_fit(&result, &options));
    TRY_OUT(hwnas_predictor_load(&fitted, files[1], p->base.space));
    hwnas_predictor_free(p->fitted);
    p->fitted = fitted;
    p->n_fitted = n;
out:
    hwnas_scratch_close(&scratch);
    for (size_t i = 0; i < 3; i++)
        free(files[i]);
    free(result.chosen);
    return status;
}

size_t hwnas_train_first(size_t budget)
{
    return budget / 2 < MIN_FIT ? MIN_FIT : budget / 2;
}

static size_t first_half(const active_predictor *p)
{
    return hwnas_train_first(p->options.budget);
}

static void trainings_of(hwnas_trainings *out, const hwnas_predictor *base)
{
    const active_predictor *p = (const active_predictor *)base;
    p->command->ops->trainings(out, p->command);
    out->budget = p->options.budget ? p->options.budget : out->n_known;
    out->reserved = p->options.budget / RESERVE;
}

/* Trains networks, watched and stopped as the search is. */
static hwnas_status train(hwnas_estimate *out, active_predictor *p, const hwnas_arch *const *archs,
                          size_t n)
{
    p->command->stop = p->base.stop;
    p->command->watch = p->base.watch;
    hwnas_status status = hwnas_predictor_score(out, p->command, archs, n);
    p->base.spent = p->command->spent;
    return status;
}

/* Fits on as many results as the plan says for so many, whoever made them and when. */
static hwnas_status refit(active_predictor *p)
{
    const size_t half = first_half(p), n = results_of(p)->n;
    const size_t rest = p->options.budget > half ? p->options.budget - half : 0;
    const size_t step = rest > N_REFITS ? rest / N_REFITS : 1;
    const size_t wanted = n <= half ? n : half + (n - half) / step * step;
    return wanted == p->n_fitted ? HWNAS_OK : fit(p, wanted);
}

/* ---- Asking ---- */

static hwnas_status count_costs(active_predictor *p)
{
    const hwnas_results *results = results_of(p);
    p->costs = hwnas_realloc(p->costs, (results->n + 1) * sizeof *p->costs);
    for (; p->n_costs < results->n; p->n_costs++) {
        hwnas_arch *arch;
        hwnas_graph *graph;
        hwnas_costs costs;
        TRY(hwnas_arch_parse(&arch, p->base.space, results->rows[p->n_costs].code));
        hwnas_status status = hwnas_graph_build(&graph, arch, 1);
        hwnas_arch_free(arch);
        TRY(status);
        hwnas_graph_costs(&costs, graph);
        hwnas_graph_free(graph);
        p->costs[p->n_costs] = (double)costs.macs;
    }
    return HWNAS_OK;
}

/* Trainings that are due by now, those of the first half included. */
static size_t allowance(const active_predictor *p)
{
    if (!p->options.budget)
        return 0;
    if (p->base.train_mode != HWNAS_TRAIN_PROMISING)
        return p->base.train_mode == HWNAS_TRAIN_EACH ? p->options.budget : 0;
    const size_t half = first_half(p);
    const size_t rest = p->options.budget - p->options.budget / RESERVE - half;
    const double share = p->options.n_networks
                             ? (double)p->base.n_asked / (double)p->options.n_networks
                             : (double)p->base.n_asked / (double)(STRIDE * rest + 1);
    const double due = ceil((double)rest * share);
    return half + (due < (double)rest ? (size_t)due : rest);
}

/* Nothing that was trained and costs no more is as good as this may be. */
static bool may_be_best(const active_predictor *p, const hwnas_estimate *estimate, double macs)
{
    const hwnas_results *results = results_of(p);
    for (size_t i = 0; i < results->n; i++)
        if (p->costs[i] <= macs && results->rows[i].value >= estimate->mean + estimate->sd)
            return false;
    return true;
}

static hwnas_estimate trained(const hwnas_result *result)
{
    return (hwnas_estimate){.mean = result->value, .sd = result->sd, .is_trained = true};
}

static hwnas_status score_one(hwnas_estimate *out, active_predictor *p, const hwnas_arch *arch)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    hwnas_estimate estimate;
    TRY(hwnas_graph_build(&graph, arch, 1));
    const hwnas_digest digest = hwnas_graph_digest(graph);
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    const hwnas_result *known = hwnas_results_find(results_of(p), digest);
    if (known) {
        *out = trained(known);
        return HWNAS_OK;
    }
    TRY(refit(p));
    TRY(count_costs(p));
    TRY(hwnas_predictor_score(&estimate, p->fitted, &arch, 1));
    /* Of a size that nothing was trained of yet, it is trained where it may be the best. */
    estimate.is_outside &= !hwnas_predictor_has_seen_values(p->fitted, arch);
    if (results_of(p)->n < allowance(p) &&
        (p->base.train_mode == HWNAS_TRAIN_EACH || may_be_best(p, &estimate, (double)costs.macs)))
        TRY(train(&estimate, p, &arch, 1));
    *out = estimate;
    return HWNAS_OK;
}

static hwnas_status score_active(hwnas_estimate *out, hwnas_predictor *base,
                                 const hwnas_arch *const *archs, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_estimate *estimates = hwnas_alloc(n * sizeof *estimates);
    for (size_t i = 0; i < n; i++)
        TRY_OUT(score_one(&estimates[i], (active_predictor *)base, archs[i]));
    memcpy(out, estimates, n * sizeof *out);
out:
    free(estimates);
    return status;
}

static const hwnas_predictor_ops active_ops = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "active",
    .heeds_stop = true,
    .score = score_active,
    .trainings = trainings_of,
    .free = free_active,
};

/* ---- The first half ---- */

static hwnas_status train_first(active_predictor *p)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_results *results = results_of(p);
    const size_t n_known = results->n;
    if (n_known >= first_half(p))
        return HWNAS_OK;
    const size_t n = first_half(p) - n_known;
    hwnas_arch **known = hwnas_alloc((n_known + 1) * sizeof *known);
    hwnas_arch **picked = hwnas_alloc(n * sizeof *picked);
    hwnas_estimate *estimates = hwnas_alloc(n * sizeof *estimates);
    for (size_t i = 0; i < n_known; i++)
        TRY_OUT(hwnas_arch_parse(&known[i], p->base.space, results->rows[i].code));
    const hwnas_suggest_options options = {.n = n,
                                           .seed = p->options.seed,
                                           .n_known = n_known,
                                           .known = (const hwnas_arch *const *)known,
                                           .violation = p->options.violation,
                                           .context = p->options.context};
    TRY_OUT(hwnas_suggest(picked, p->base.space, &options));
    TRY_OUT(train(estimates, p, (const hwnas_arch *const *)picked, n));
out:
    for (size_t i = 0; i < n_known; i++)
        hwnas_arch_free(known[i]);
    for (size_t i = 0; i < n; i++)
        hwnas_arch_free(picked[i]);
    free(known);
    free(picked);
    free(estimates);
    return status;
}

hwnas_status hwnas_predictor_train(hwnas_predictor **command, const hwnas_train_options *options)
{
    if ((*command)->ops != &hwnas_predictor_command)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "a budget of trainings needs a program that trains, the "
                                     "accuracy comes from a %s",
                                     (*command)->kind),
                          "write accuracy: train:RECIPE, or command:PROGRAM");
    if (!options->budget && hwnas_command_results(*command)->n < MIN_FIT)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%zu networks were trained: too few to estimate by",
                          hwnas_command_results(*command)->n);
    if (options->budget && options->budget < HWNAS_MIN_TRAIN_BUDGET)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%zu trainings are too few: at least %d are needed",
                          options->budget, HWNAS_MIN_TRAIN_BUDGET);
    active_predictor *p = hwnas_alloc(sizeof *p);
    p->base = (hwnas_predictor){.ops = &active_ops,
                                .kind = "active",
                                .space = (*command)->space,
                                .target = hwnas_strdup((*command)->target),
                                .unit = hwnas_strdup((*command)->unit),
                                .stop = (*command)->stop,
                                .watch = (*command)->watch};
    p->command = *command;
    p->options = *options;
    hwnas_status status = options->budget ? train_first(p) : HWNAS_OK;
    if (status == HWNAS_OK)
        status = refit(p);
    if (status == HWNAS_OK) {
        *command = &p->base;
        return HWNAS_OK;
    }
    p->command = NULL;
    hwnas_predictor_free(&p->base);
    return status;
}
