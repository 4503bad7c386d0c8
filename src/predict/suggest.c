#include "predict/suggest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/predict.h"

enum { DEFAULT_POOL = 500, POOL_STREAM = 2, N_COSTS = 3, MAX_FIGURES = 4 };

/* Of an observation, in units of the process's mean variance: a training's luck. */
static const double noise = 0.1;
/* Of the figures, in standard deviations of the pool. Tried with the choices' kernel on
 * NAS-Bench-201 and NAS-Bench-Macro: docs/predictors.md. */
static const double length_scale = 1.5;

typedef struct candidate {
    hwnas_arch *arch;
    double violation;
    hwnas_digest digest;
    double figures[MAX_FIGURES];
} candidate;

typedef struct pool {
    const hwnas_space *space;
    size_t n, n_known; /* the known ones come first */
    candidate *items;
    size_t capacity, n_suited; /* those that meet the limits */
    const hwnas_suggest_options *options;
    size_t n_figures;
    double *kernel; /* n * n */
} pool;

static hwnas_status look(candidate *out, const hwnas_arch *arch)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    TRY(hwnas_graph_build(&graph, arch, 1));
    out->digest = hwnas_graph_digest(graph);
    hwnas_graph_costs(&costs, graph);
    out->figures[0] = log1p((double)costs.macs);
    out->figures[1] = log1p((double)costs.params);
    out->figures[2] = log1p((double)costs.activation_bytes);
    hwnas_graph_free(graph);
    return HWNAS_OK;
}

static bool is_there(const pool *p, hwnas_digest digest)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->items[i].digest.hex, digest.hex))
            return true;
    return false;
}

static hwnas_status add(pool *p, const hwnas_arch *arch)
{
    candidate c = {.arch = NULL};
    TRY(look(&c, arch));
    if (is_there(p, c.digest))
        return HWNAS_OK;
    c.arch = hwnas_arch_copy(arch);
    c.violation = p->options->violation ? p->options->violation(p->options->context, arch) : 0;
    p->n_suited += c.violation == 0;
    HWNAS_GROW(p->items, p->n, p->capacity);
    p->items[p->n++] = c;
    return HWNAS_OK;
}

static int by_violation(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->violation > y->violation) - (x->violation < y->violation);
}

/* Leaves the networks that meet the limits; where these are too few, the nearest to them too. */
static void leave_suited(pool *p)
{
    const size_t n_new = p->n - p->n_known;
    size_t n_left = p->n_suited;
    if (p->n_suited == n_new)
        return;
    qsort(p->items + p->n_known, n_new, sizeof *p->items, by_violation);
    if (n_left < p->options->n)
        n_left = p->options->n < n_new ? p->options->n : n_new;
    for (size_t i = p->n_known + n_left; i < p->n; i++)
        hwnas_arch_free(p->items[i].arch);
    p->n = p->n_known + n_left;
}

/* Random networks, all different, until `n` of them meet the limits; of a small space all that
 * there are. */
static hwnas_status fill(pool *p, size_t n, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rng rng = hwnas_rng_new(seed, POOL_STREAM);
    hwnas_arch *arch = hwnas_arch_first(p->space);
    if (hwnas_space_count_up_to(p->space, n)) {
        do
            TRY_OUT(add(p, arch));
        while (p->n_suited < n && hwnas_arch_next(arch));
        goto out;
    }
    for (size_t tries = 0; p->n_suited < n && tries < 20 * n; tries++) {
        if (!hwnas_arch_sample(arch, &rng))
            break;
        TRY_OUT(add(p, arch));
    }
out:
    hwnas_arch_free(arch);
    return status;
}

static hwnas_status add_proxy(pool *p, const char *name)
{
    hwnas_status status = HWNAS_OK;
    hwnas_predictor *proxy = NULL;
    char *full = hwnas_printf("proxy:%s", name);
    TRY_OUT(hwnas_predictor_load(&proxy, full, p->space));
    for (size_t i = 0; i < p->n; i++) {
        hwnas_estimate estimate;
        const hwnas_arch *arch = p->items[i].arch;
        TRY_OUT(hwnas_predictor_score(&estimate, proxy, &arch, 1));
        p->items[i].figures[p->n_figures] = estimate.mean;
    }
    p->n_figures++;
out:
    hwnas_predictor_free(proxy);
    free(full);
    return status;
}

static void standardise(pool *p, size_t figure)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < p->n; i++)
        mean += p->items[i].figures[figure] / (double)p->n;
    for (size_t i = 0; i < p->n; i++)
        variance += pow(p->items[i].figures[figure] - mean, 2) / (double)p->n;
    for (size_t i = 0; i < p->n; i++)
        p->items[i].figures[figure] =
            variance > 0 ? (p->items[i].figures[figure] - mean) / sqrt(variance) : 0;
}

static double overlap(const pool *p, const candidate *a, const candidate *b)
{
    size_t same = 0;
    for (size_t g = 0; g < p->space->n_genes; g++)
        same += a->arch->genes[g] == b->arch->genes[g];
    return p->space->n_genes ? (double)same / (double)p->space->n_genes : 1;
}

static double nearness(const pool *p, const candidate *a, const candidate *b)
{
    double square = 0;
    for (size_t f = 0; f < p->n_figures; f++)
        square += pow(a->figures[f] - b->figures[f], 2);
    return exp(-square / (2 * length_scale * length_scale));
}

/* Choices add up (their share of agreement, centred over the pool and brought to a mean variance of
 * one), and networks of like figures are alike. */
static void make_kernel(pool *p)
{
    const size_t n = p->n;
    double *rows = hwnas_alloc(n * sizeof *rows), all = 0, trace = 0;
    p->kernel = hwnas_alloc(n * n * sizeof *p->kernel);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            p->kernel[i * n + j] = overlap(p, &p->items[i], &p->items[j]);
            rows[i] += p->kernel[i * n + j] / (double)n;
        }
    for (size_t i = 0; i < n; i++)
        all += rows[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            p->kernel[i * n + j] += all - rows[i] - rows[j];
    for (size_t i = 0; i < n; i++)
        trace += p->kernel[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            p->kernel[i * n + j] = (p->kernel[i * n + j] / fmax(trace, 1e-12) +
                                    nearness(p, &p->items[i], &p->items[j])) /
                                   2;
    free(rows);
}

/* The kernel once the result of `at` is known. */
static void condition(pool *p, size_t at)
{
    const size_t n = p->n;
    const double variance = p->kernel[at * n + at] + noise;
    double *column = hwnas_alloc(n * sizeof *column);
    for (size_t i = 0; i < n; i++)
        column[i] = p->kernel[i * n + at];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            p->kernel[i * n + j] -= column[i] * column[j] / variance;
    free(column);
}

/* By how much the sum of the variances falls when the result of `at` is known. */
static double gain(const pool *p, size_t at)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->kernel[at * p->n + i] * p->kernel[at * p->n + i];
    return sum / (p->kernel[at * p->n + at] + noise);
}

static void pick(hwnas_arch **out, pool *p, size_t n)
{
    bool *is_picked = hwnas_alloc(p->n * sizeof *is_picked);
    for (size_t i = 0; i < p->n_known; i++)
        condition(p, i);
    for (size_t k = 0; k < n; k++) {
        size_t best = p->n;
        double best_gain = -1;
        for (size_t i = p->n_known; i < p->n; i++) {
            const double g = is_picked[i] ? -1 : gain(p, i);
            if (g > best_gain) {
                best_gain = g;
                best = i;
            }
        }
        is_picked[best] = true;
        out[k] = p->items[best].arch;
        p->items[best].arch = NULL;
        condition(p, best);
    }
    free(is_picked);
}

hwnas_status hwnas_suggest(hwnas_arch **out, const hwnas_space *space,
                           const hwnas_suggest_options *options)
{
    hwnas_status status = HWNAS_OK;
    size_t size = options->pool ? options->pool : DEFAULT_POOL;
    if (size < 4 * options->n)
        size = 4 * options->n;
    pool p = {.space = space, .options = options, .n_figures = N_COSTS};
    for (size_t i = 0; i < options->n_known; i++)
        TRY_OUT(add(&p, options->known[i]));
    p.n_known = p.n;
    p.n_suited = 0;
    TRY_OUT(fill(&p, size, options->seed));
    leave_suited(&p);
    if (p.n - p.n_known < options->n) {
        hwnas_place place = {.file = space->path};
        status = hwnas_fail(
            HWNAS_E_INPUT, &place, "only %zu different networks of the space '%s' were found%s",
            p.n - p.n_known, space->name, p.n_known ? " beside those with results" : "");
        hwnas_hint(status, "ask for at most so many");
        goto out;
    }
    if (options->proxy)
        TRY_OUT(add_proxy(&p, options->proxy));
    for (size_t f = 0; f < p.n_figures; f++)
        standardise(&p, f);
    make_kernel(&p);
    pick(out, &p, options->n);
out:
    for (size_t i = 0; i < p.n; i++)
        hwnas_arch_free(p.items[i].arch);
    free(p.items);
    free(p.kernel);
    return status;
}
