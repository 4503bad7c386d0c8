/* latency_fit.c: what the observations say, taken together. In logarithms,
 *
 *     time of a part in a network = part + context of the network + level of the machine + noise,
 *
 * where the context is how much memory the network goes through (its parts find less of it in the
 * caches), and the level is that of the minute in which it was measured: what shares the machine
 * makes all parts slower together. Parts and the other two are fitted in turns; then the parts of
 * one kind are smoothed over their shapes (latency_kind.c), and whole networks correct the sums. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "latency/latency_kind.h"
#include "latency/latency_ridge.h"

enum { SWEEPS = 12 };
static const double STEADY = 0.1;        /* deviations beyond this weigh less */
static const double DOUBTFUL = 0.02;     /* weight of a timing on a disturbed machine */
static const double CONTEXT_PRIOR = 0.1; /* sd of the effect of a feature, which all have sd 1 */
static const double FACTOR_PRIOR = 0.1;  /* sd of a kind's correction */
static const double WHOLE_PRIOR = 0.3;

/* One timing of one part. */
typedef struct row {
    int network, part;
    double log_seconds, seconds, residual;
} row;

typedef struct fitter {
    hwnas_latency_table *table;
    size_t n, capacity;
    row *rows;
    double *slowness; /* by network: context and level together */
} fitter;

/* ---- Features of networks ---- */

/* Compared with caches of 1 to 8 MB, below which a network's memory stays at hand. */
void hwnas_latency_table_features(double *out, const hwnas_part *parts, size_t n)
{
    double weights = 0, values = 0, macs = 0;
    for (size_t i = 0; i < n; i++) {
        weights += parts[i].weight_bytes;
        values += parts[i].written_bytes;
        macs += parts[i].macs;
    }
    out[0] = log1p(weights / 1e6);
    out[1] = log1p(weights / 8e6);
    out[2] = log1p(values / 1e6);
    out[3] = log1p((weights + values) / 2e6);
    out[4] = log1p((double)n / 30);
    out[5] = log((macs + 1e3) / (weights + values + 1e3));
}

double hwnas_latency_table_context(const hwnas_latency_table *table, const double *features)
{
    double sum = table->context_mean;
    for (int k = 0; k < HWNAS_NET_FEATURES; k++)
        sum += table->context[k] * (features[k] - table->centre[k]);
    return sum;
}

/* ---- Rows ---- */

/* What a part's share of a set's time is: by its estimate, or before there is one by its size. Only
 * the proportion matters. */
static double share_of(const hwnas_latency_table *table, int part)
{
    const hwnas_timed_part *p = &table->parts[part];
    if (table->n_fitted && p->seconds > 0)
        return p->seconds;
    return 1e-6 + p->part.macs / 2e10 +
           (p->part.read_bytes + p->part.written_bytes + p->part.weight_bytes) / 2e10;
}

static void add_rows(fitter *f, int index)
{
    const hwnas_timed_network *net = &f->table->networks[index];
    double *shares = hwnas_alloc((net->n_sets + 1) * sizeof *shares);
    for (size_t i = 0; i < net->n_parts; i++)
        if (net->set_of[i] >= 0)
            shares[net->set_of[i]] += share_of(f->table, net->parts[i]);
    for (size_t i = 0; i < net->n_parts; i++) {
        const int set = net->set_of[i];
        if (set < 0 || !(net->set_seconds[set] > 0))
            continue;
        const double seconds =
            net->set_seconds[set] * share_of(f->table, net->parts[i]) / shares[set];
        HWNAS_GROW(f->rows, f->n, f->capacity);
        f->rows[f->n++] = (row){.network = index,
                                .part = net->parts[i],
                                .log_seconds = log(seconds),
                                .seconds = seconds};
    }
    free(shares);
}

/* ---- The machine as it is when nobody is in the way ---- */

static bool counts(const hwnas_latency_table *table, size_t network)
{
    return table->networks[network].is_steady || table->n_steady < HWNAS_LATENCY_FEW_STEADY;
}

/* Those values of networks that stand for the machine; returns how many. */
static size_t pick_steady(double *out, const hwnas_latency_table *table, const double *values)
{
    size_t n = 0;
    for (size_t i = 0; i < table->n_networks; i++)
        if (counts(table, i))
            out[n++] = values[i];
    return n;
}

/* ---- Parts and slowness in turns ---- */

static double weight_of(double residual)
{
    return 1 / (1 + fabs(residual) / STEADY);
}

/* Spaces have hardly a part in common, so nothing but this tells how slow the machine was for one
 * of them compared with another: what the steady measurements of each say of its parts is their
 * time. */
static void fit_parts(fitter *f)
{
    hwnas_latency_table *table = f->table;
    double *sums = hwnas_alloc((table->n_parts + 1) * sizeof *sums);
    double *weights = hwnas_alloc((table->n_parts + 1) * sizeof *weights);
    for (size_t r = 0; r < f->n; r++) {
        const row *at = &f->rows[r];
        const double trust = counts(table, (size_t)at->network) ? 1 : DOUBTFUL;
        const double w = trust * weight_of(at->residual);
        sums[at->part] += w * (at->log_seconds - f->slowness[at->network]);
        weights[at->part] += w;
    }
    for (size_t p = 0; p < table->n_parts; p++)
        if (weights[p] > 0)
            table->parts[p].mean = sums[p] / weights[p];
    free(sums);
    free(weights);
}

static void fit_slowness(fitter *f)
{
    hwnas_latency_table *table = f->table;
    double *sums = hwnas_alloc((table->n_networks + 1) * sizeof *sums);
    double *weights = hwnas_alloc((table->n_networks + 1) * sizeof *weights);
    for (size_t r = 0; r < f->n; r++) {
        row *at = &f->rows[r];
        const double w = at->seconds * weight_of(at->residual);
        sums[at->network] += w * (at->log_seconds - table->parts[at->part].mean);
        weights[at->network] += w;
    }
    for (size_t i = 0; i < table->n_networks; i++)
        f->slowness[i] = weights[i] > 0 ? sums[i] / weights[i] : 0;
    /* The middle network is the measure of the others. */
    const size_t n_steady = pick_steady(sums, table, f->slowness);
    hwnas_sort(sums, n_steady);
    const double middle = hwnas_quantile(sums, n_steady, 0.5);
    for (size_t i = 0; i < table->n_networks; i++)
        f->slowness[i] -= middle;
    for (size_t r = 0; r < f->n; r++) {
        row *at = &f->rows[r];
        at->residual = at->log_seconds - table->parts[at->part].mean - f->slowness[at->network];
    }
    free(sums);
    free(weights);
}

/* ---- Context and level ---- */

/* On steady networks, as who was in the way has nothing to do with memory. */
static void fit_context(fitter *f)
{
    enum { D = HWNAS_NET_FEATURES + 1 };
    hwnas_latency_table *table = f->table;
    double *terms = hwnas_alloc((table->n_networks + 1) * D * sizeof *terms);
    double *targets = hwnas_alloc((table->n_networks + 1) * sizeof *targets);
    double *scale = table->scale, priors[D], out[D];
    const size_t n = pick_steady(targets, table, f->slowness);
    for (int k = 0; k < HWNAS_NET_FEATURES; k++) {
        double sum = 0, squares = 0;
        size_t at = 0;
        for (size_t i = 0; i < table->n_networks; i++)
            if (counts(table, i))
                sum += terms[at++ * D + (size_t)k] = table->networks[i].features[k];
        table->centre[k] = sum / (double)n;
        for (size_t i = 0; i < n; i++)
            squares += pow(terms[i * D + (size_t)k] - table->centre[k], 2);
        const double sd = sqrt(squares / (double)n);
        scale[k] = sd > 1e-6 ? sd : INFINITY; /* one that is always the same tells nothing */
        for (size_t i = 0; i < n; i++)
            terms[i * D + (size_t)k] = (terms[i * D + (size_t)k] - table->centre[k]) / scale[k];
        priors[k] = CONTEXT_PRIOR;
    }
    for (size_t i = 0; i < n; i++)
        terms[i * D + D - 1] = 1;
    priors[D - 1] = 1;
    table->level_sd = hwnas_ridge(out, &table->of_context, terms, targets, priors, n, D);
    for (int k = 0; k < HWNAS_NET_FEATURES; k++)
        table->context[k] = out[k] / scale[k];
    table->context_mean = out[D - 1];
    for (size_t i = 0; i < table->n_networks; i++)
        table->networks[i].level =
            f->slowness[i] - hwnas_latency_table_context(table, table->networks[i].features);
    free(terms);
    free(targets);
}

/* ---- Whole networks ---- */

/* Logarithm of a network over the sum of its parts, by the kinds' shares of that sum. */
static void fit_whole(fitter *f)
{
    hwnas_latency_table *table = f->table;
    const size_t n = table->n_networks, d = table->n_kinds + 1;
    double *terms = hwnas_alloc(n * d * sizeof *terms), *targets = hwnas_alloc(n * sizeof *targets);
    double *priors = hwnas_alloc(d * sizeof *priors), *out = hwnas_alloc(d * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const hwnas_timed_network *net = &table->networks[i];
        double sum = 0;
        for (size_t k = 0; k < net->n_parts; k++) {
            const hwnas_timed_part *p = &table->parts[net->parts[k]];
            sum += p->seconds;
            terms[i * d + (size_t)p->kind] += p->seconds;
        }
        for (size_t k = 0; k + 1 < d; k++)
            terms[i * d + k] /= fmax(sum, 1e-12);
        terms[i * d + d - 1] = 1;
        targets[i] = log(net->seconds / fmax(sum, 1e-12)) - f->slowness[i];
    }
    for (size_t k = 0; k < d; k++)
        priors[k] = k + 1 < d ? FACTOR_PRIOR : WHOLE_PRIOR;
    table->residual = hwnas_ridge(out, &table->of_whole, terms, targets, priors, n, d);
    for (size_t k = 0; k + 1 < d; k++)
        table->kinds[k].factor = out[k];
    table->whole = out[d - 1];
    free(terms);
    free(targets);
    free(priors);
    free(out);
}

/* Kinds that the fit did not see are as uncertain as before it. */
static double variance_of_whole(const hwnas_latency_table *table, const double *shares,
                                double strange)
{
    const size_t d = table->of_whole.d;
    double *terms = hwnas_alloc(d * sizeof *terms), unseen = strange * strange;
    memcpy(terms, shares, (d - 1) * sizeof *terms);
    terms[d - 1] = 1;
    for (size_t k = d - 1; k < table->n_kinds; k++)
        unseen += shares[k] * shares[k];
    const double variance = hwnas_posterior_variance(&table->of_whole, terms);
    free(terms);
    return variance + FACTOR_PRIOR * FACTOR_PRIOR * unseen;
}

double hwnas_latency_table_unsure(const hwnas_latency_table *table, const double *features,
                                  const double *shares, double strange)
{
    double terms[HWNAS_NET_FEATURES + 1];
    for (int k = 0; k < HWNAS_NET_FEATURES; k++)
        terms[k] = (features[k] - table->centre[k]) / table->scale[k];
    terms[HWNAS_NET_FEATURES] = 1;
    return hwnas_posterior_variance(&table->of_context, terms) +
           variance_of_whole(table, shares, strange);
}

/* ---- All together ---- */

/* Of one timing around its part, levels taken out. */
static double noise_of(const fitter *f)
{
    double *residuals = hwnas_alloc((f->n + 1) * sizeof *residuals);
    size_t n = 0;
    for (size_t r = 0; r < f->n; r++)
        if (f->table->parts[f->rows[r].part].n > 1)
            residuals[n++] = f->rows[r].residual;
    const double sd = n > 20 ? fmax(hwnas_robust_sd(residuals, n), 0.01) : STEADY;
    free(residuals);
    return sd;
}

void hwnas_latency_table_fit(hwnas_latency_table *table)
{
    fitter f = {.table = table};
    f.slowness = hwnas_alloc((table->n_networks + 1) * sizeof *f.slowness);
    for (size_t i = 0; i < table->n_networks; i++)
        add_rows(&f, (int)i);
    for (size_t p = 0; p < table->n_parts; p++)
        table->parts[p].n = 0;
    for (size_t r = 0; r < f.n; r++)
        table->parts[f.rows[r].part].n++;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        fit_parts(&f);
        fit_slowness(&f);
    }
    fit_context(&f);
    hwnas_latency_table_fit_kinds(table, noise_of(&f));
    table->n_fitted = table->n_networks;
    fit_whole(&f);
    free(f.slowness);
    free(f.rows);
}
