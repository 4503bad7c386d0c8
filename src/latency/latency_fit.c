/* latency_fit.c: what the observations say, taken together. In logarithms,
 *
 *     time of a part in a network = part + context of the network + level of the machine + noise,
 *
 * where the context is how much memory the network goes through (its parts find less of it in the
 * caches), and the level is that of the minute in which it was measured: what shares the machine
 * makes all parts slower together. Parts and the other two are fitted in turns; then the parts of
 * one kind are smoothed over their shapes (latency_kind.c), and whole networks correct the sums. */
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "latency/latency_kind.h"

enum { SWEEPS = 12, REWEIGHTS = 4 };
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

/* 1.48 times the median of the sizes: the standard deviation, were they normal. */
static double robust_sd(double *values, size_t n)
{
    if (!n)
        return 0;
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i]);
    hwnas_sort(values, n);
    return 1.4826 * hwnas_quantile(values, n, 0.5);
}

/* ---- Robust ridge regression ---- */

/* Fits targets by terms (n x d); term k has a prior of mean 0 and sd `priors[k]`. `out`: d weights;
 * returns the sd of what is left out one by one. */
static double regress(double *out, const double *terms, const double *targets, const double *priors,
                      size_t n, size_t d)
{
    double *gram = hwnas_alloc(d * d * sizeof *gram), *left = hwnas_alloc(n * sizeof *left);
    double *weights = hwnas_alloc(n * sizeof *weights), *scratch = hwnas_alloc(n * sizeof *scratch);
    double *solved = hwnas_alloc(d * sizeof *solved), sd = STEADY;
    for (size_t i = 0; i < n; i++)
        weights[i] = 1;
    for (int round = 0; round < REWEIGHTS; round++) {
        memset(gram, 0, d * d * sizeof *gram);
        memset(out, 0, d * sizeof *out);
        for (size_t i = 0; i < n; i++)
            for (size_t a = 0; a < d; a++) {
                const double w = weights[i] / (sd * sd) * terms[i * d + a];
                out[a] += w * targets[i];
                for (size_t b = 0; b <= a && w != 0; b++)
                    gram[a * d + b] += w * terms[i * d + b];
            }
        for (size_t a = 0; a < d; a++)
            gram[a * d + a] += 1 / (priors[a] * priors[a]);
        if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)d, gram, (int)d))
            memset(out, 0, d * sizeof *out);
        else
            LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)d, 1, gram, (int)d, out, 1);
        for (size_t i = 0; i < n; i++) {
            double fitted = 0, leverage = 0;
            memcpy(solved, terms + i * d, d * sizeof *solved);
            LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)d, 1, gram, (int)d, solved, 1);
            for (size_t a = 0; a < d; a++) {
                fitted += terms[i * d + a] * out[a];
                leverage += terms[i * d + a] * solved[a];
            }
            leverage *= weights[i] / (sd * sd);
            left[i] = (targets[i] - fitted) / fmax(1 - leverage, 0.1);
        }
        memcpy(scratch, left, n * sizeof *scratch);
        sd = fmax(robust_sd(scratch, n), 1e-3);
        for (size_t i = 0; i < n; i++)
            weights[i] = 1 / fmax(1, fabs(left[i]) / (2 * sd));
    }
    free(gram);
    free(left);
    free(weights);
    free(scratch);
    free(solved);
    return sd;
}

/* ---- Context and level ---- */

/* On steady networks, as who was in the way has nothing to do with memory. */
static void fit_context(fitter *f)
{
    enum { D = HWNAS_NET_FEATURES + 1 };
    hwnas_latency_table *table = f->table;
    double *terms = hwnas_alloc((table->n_networks + 1) * D * sizeof *terms);
    double *targets = hwnas_alloc((table->n_networks + 1) * sizeof *targets);
    double scale[HWNAS_NET_FEATURES], priors[D], out[D];
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
        scale[k] = fmax(sqrt(squares / (double)n), 1e-6);
        for (size_t i = 0; i < n; i++)
            terms[i * D + (size_t)k] = (terms[i * D + (size_t)k] - table->centre[k]) / scale[k];
        priors[k] = scale[k] > 1e-6 ? CONTEXT_PRIOR : 1e-6;
    }
    for (size_t i = 0; i < n; i++)
        terms[i * D + D - 1] = 1;
    priors[D - 1] = 1;
    table->level_sd = regress(out, terms, targets, priors, n, D);
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
    table->residual = regress(out, terms, targets, priors, n, d);
    for (size_t k = 0; k + 1 < d; k++)
        table->kinds[k].factor = out[k];
    table->whole = out[d - 1];
    free(terms);
    free(targets);
    free(priors);
    free(out);
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
    const double sd = n > 20 ? fmax(robust_sd(residuals, n), 0.01) : STEADY;
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
