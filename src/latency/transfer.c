#include "latency/transfer.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

/* The power of a source's correlation with the new device that it counts by. Devices are of few
 * families, and one that is not of the largest is told apart by it. */
static const double LIKENESS = 6;
/* Deviations of what facts and choices add to the sources' own, and of a measurement, as shares of
 * the deviation over networks; and how far from its mean a latency counts, in deviations. Found on
 * the published columns of NAS-Bench-201 (benchmarks/transfer). */
static const double BY_FACTS = 0.3, BY_CHOICES = 0.3, NOISE = 0.2, FARTHEST = 5;
static const double COVERAGE = 0.9;

enum { POOL = 400, JUDGED = 300, NO_SOURCE = -1 };

struct hwnas_transfer {
    size_t n_rows, n_sources, n_facts, n_genes;
    double *logs;  /* as given */
    double *likes; /* rows x (sources, facts): of mean 0 and deviation 1 */
    uint16_t *genes;
    double *shares; /* of each value of each gene, at `first` */
    size_t *first;
    double shared, own; /* what two rows have in common on average, and one with itself */
    /* What was learned: */
    size_t n;
    size_t rows[HWNAS_TRANSFER_MOST];
    struct fitted {
        double *by_source; /* what each source counts for; 1 together */
        double inverse[HWNAS_TRANSFER_MOST * HWNAS_TRANSFER_MOST];
        double weights[HWNAS_TRANSFER_MOST], sums[HWNAS_TRANSFER_MOST]; /* inverse times y, and 1 */
        double level, total, variance;
    } fitted;
    double widths; /* deviations that the interval reaches */
};

void hwnas_transfer_facts(double out[HWNAS_TRANSFER_FACTS], const hwnas_graph *graph)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    out[0] = log((double)costs.macs + 1);
    out[1] = (double)costs.macs;
    out[2] = log((double)costs.params + 1);
}

/* Brings the columns to mean 0 and deviation 1. */
static void standardise(double *to, size_t stride, const double *from, size_t n_rows, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < n_rows; r++)
            mean += from[r * n + c] / (double)n_rows;
        for (size_t r = 0; r < n_rows; r++)
            square += (from[r * n + c] - mean) * (from[r * n + c] - mean) / (double)n_rows;
        for (size_t r = 0; r < n_rows; r++) {
            const double z = square > 0 ? (from[r * n + c] - mean) / sqrt(square) : 0;
            to[r * stride + c] = fmax(-FARTHEST, fmin(FARTHEST, z));
        }
    }
}

static void count_values(hwnas_transfer *t)
{
    size_t n = 0;
    t->first = hwnas_alloc((t->n_genes + 1) * sizeof *t->first);
    for (size_t g = 0; g < t->n_genes; g++) {
        size_t most = 0;
        for (size_t r = 0; r < t->n_rows; r++)
            if (t->genes[r * t->n_genes + g] > most)
                most = t->genes[r * t->n_genes + g];
        t->first[g] = n;
        n += most + 1;
    }
    t->shares = hwnas_alloc((n + 1) * sizeof *t->shares);
    for (size_t g = 0; g < t->n_genes; g++)
        for (size_t r = 0; r < t->n_rows; r++)
            t->shares[t->first[g] + t->genes[r * t->n_genes + g]] += 1.0 / (double)t->n_rows;
    for (size_t v = 0; v < n; v++)
        t->shared += t->shares[v] * t->shares[v];
    t->own = (double)t->n_genes - t->shared;
}

hwnas_transfer *hwnas_transfer_new(size_t n_rows, size_t n_sources, const double *logs,
                                   size_t n_facts, const double *facts, size_t n_genes,
                                   const uint16_t *genes)
{
    hwnas_transfer *t = hwnas_alloc(sizeof *t);
    const size_t n = n_sources + n_facts;
    *t = (hwnas_transfer){
        .n_rows = n_rows, .n_sources = n_sources, .n_facts = n_facts, .n_genes = n_genes};
    t->logs = hwnas_alloc(n_rows * n_sources * sizeof *t->logs);
    t->likes = hwnas_alloc(n_rows * n * sizeof *t->likes);
    t->genes = hwnas_alloc((n_rows * n_genes + 1) * sizeof *t->genes);
    memcpy(t->logs, logs, n_rows * n_sources * sizeof *logs);
    memcpy(t->genes, genes, n_rows * n_genes * sizeof *genes);
    standardise(t->likes, n, logs, n_rows, n_sources);
    standardise(t->likes + n_sources, n, facts, n_rows, n_facts);
    count_values(t);
    t->fitted.by_source = hwnas_alloc(n_sources * sizeof *t->fitted.by_source);
    return t;
}

void hwnas_transfer_free(hwnas_transfer *t)
{
    if (!t)
        return;
    free(t->logs);
    free(t->likes);
    free(t->genes);
    free(t->shares);
    free(t->first);
    free(t->fitted.by_source);
    free(t);
}

/* How much two networks go together, where sources count for so much. */
static double covariance(const hwnas_transfer *t, size_t a, size_t b, const double *by_source)
{
    const size_t n = t->n_sources + t->n_facts;
    const double *x = t->likes + a * n, *y = t->likes + b * n;
    const uint16_t *g = t->genes + a * t->n_genes, *h = t->genes + b * t->n_genes;
    double sources = 0, facts = 0, choices = t->shared;
    for (size_t s = 0; s < t->n_sources; s++)
        sources += by_source[s] * x[s] * y[s];
    for (size_t f = t->n_sources; f < n; f++)
        facts += x[f] * y[f];
    for (size_t i = 0; i < t->n_genes; i++)
        choices += (g[i] == h[i]) - t->shares[t->first[i] + g[i]] - t->shares[t->first[i] + h[i]];
    return sources + (t->n_facts ? BY_FACTS * BY_FACTS * facts / (double)t->n_facts : 0) +
           (t->own > 0 ? BY_CHOICES * BY_CHOICES * choices / t->own : 0);
}

/* ---- Which rows ---- */

static size_t draw_pool(size_t *pool, const hwnas_transfer *t, hwnas_rng *rng)
{
    size_t *all = hwnas_alloc(t->n_rows * sizeof *all);
    const size_t n = t->n_rows < POOL ? t->n_rows : POOL;
    for (size_t i = 0; i < t->n_rows; i++)
        all[i] = i;
    for (size_t i = 0; i < n; i++) {
        const size_t k = i + hwnas_rng_below(rng, (uint32_t)(t->n_rows - i));
        pool[i] = all[k];
        all[k] = all[i];
    }
    free(all);
    return n;
}

/* A Cholesky factorisation that takes the row with the largest variance left. */
size_t hwnas_transfer_choose(size_t *rows, const hwnas_transfer *t, size_t n, hwnas_rng *rng)
{
    size_t pool[POOL];
    double left[POOL];
    const size_t n_pool = draw_pool(pool, t, rng);
    double *factor = hwnas_alloc((n + 1) * POOL * sizeof *factor);
    double *by_source = hwnas_alloc((t->n_sources + 1) * sizeof *by_source);
    for (size_t s = 0; s < t->n_sources; s++)
        by_source[s] = 1 / (double)t->n_sources;
    n = n < n_pool ? n : n_pool;
    for (size_t i = 0; i < n_pool; i++)
        left[i] = covariance(t, pool[i], pool[i], by_source);
    for (size_t k = 0; k < n; k++) {
        double *row = factor + k * POOL;
        size_t best = 0;
        for (size_t i = 1; i < n_pool; i++)
            if (left[i] > left[best])
                best = i;
        const double root = sqrt(fmax(left[best], 0) + NOISE * NOISE);
        for (size_t i = 0; i < n_pool; i++) {
            double common = covariance(t, pool[i], pool[best], by_source);
            for (size_t m = 0; m < k; m++)
                common -= factor[m * POOL + i] * factor[m * POOL + best];
            row[i] = common / root;
        }
        for (size_t i = 0; i < n_pool; i++)
            left[i] -= row[i] * row[i];
        rows[k] = pool[best];
        left[best] = -INFINITY;
    }
    free(factor);
    free(by_source);
    return n;
}

/* ---- Learning ---- */

/* What each source counts for: a power of its correlation with what was measured; those that go the
 * other way, and `without`, nothing. */
static void weigh_sources(double *by_source, const hwnas_transfer *t, const double *y, long without)
{
    const size_t stride = t->n_sources + t->n_facts;
    double sum = 0;
    for (size_t s = 0; s < t->n_sources; s++) {
        double x[HWNAS_TRANSFER_MOST], xx = 0, yy = 0, xy = 0;
        for (size_t i = 0; i < t->n; i++)
            x[i] = t->likes[t->rows[i] * stride + s];
        const double mean_x = hwnas_mean(x, t->n), mean_y = hwnas_mean(y, t->n);
        for (size_t i = 0; i < t->n; i++) {
            xx += (x[i] - mean_x) * (x[i] - mean_x);
            yy += (y[i] - mean_y) * (y[i] - mean_y);
            xy += (x[i] - mean_x) * (y[i] - mean_y);
        }
        const bool is_alike = xy > 0 && (long)s != without;
        by_source[s] = is_alike ? pow(xy / sqrt(xx * yy), LIKENESS) : 0;
        sum += by_source[s];
    }
    for (size_t s = 0; s < t->n_sources && sum > 0; s++)
        by_source[s] /= sum;
}

/* Level and scale have no prior. Without HWNAS_OK the numbers were none. */
static hwnas_status learn(struct fitted *f, const hwnas_transfer *t, const double *y, long without)
{
    const size_t n = t->n;
    weigh_sources(f->by_source, t, y, without);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            f->inverse[i * n + k] = f->inverse[k * n + i] =
                covariance(t, t->rows[i], t->rows[k], f->by_source) + (i == k ? NOISE * NOISE : 0);
    /* Positive definite: the noise stands on the diagonal. */
    if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, f->inverse, (lapack_int)n) ||
        LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, f->inverse, (lapack_int)n))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the latencies cannot be told apart from noise");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            f->inverse[i * n + k] = f->inverse[k * n + i];
    f->total = f->level = f->variance = 0;
    for (size_t i = 0; i < n; i++) {
        f->sums[i] = 0;
        for (size_t k = 0; k < n; k++)
            f->sums[i] += f->inverse[i * n + k];
        f->total += f->sums[i];
        f->level += f->sums[i] * y[i];
    }
    f->level /= f->total;
    for (size_t i = 0; i < n; i++) {
        f->weights[i] = 0;
        for (size_t k = 0; k < n; k++)
            f->weights[i] += f->inverse[i * n + k] * (y[k] - f->level);
        f->variance += f->weights[i] * (y[i] - f->level) / (double)(n - 1);
    }
    return HWNAS_OK;
}

typedef struct guess {
    double mean, deviation;
} guess;

static guess predict(const struct fitted *f, const hwnas_transfer *t, size_t row)
{
    double common[HWNAS_TRANSFER_MOST], mean = f->level, level = 1;
    double left = covariance(t, row, row, f->by_source) + NOISE * NOISE;
    for (size_t i = 0; i < t->n; i++) {
        common[i] = covariance(t, row, t->rows[i], f->by_source);
        mean += common[i] * f->weights[i];
        level -= common[i] * f->sums[i];
    }
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->n; k++)
            left -= common[i] * f->inverse[i * t->n + k] * common[k];
    left += level * level / f->total;
    return (guess){mean, sqrt(fmax(f->variance * left, 0))};
}

/* What share of the interval's half each of the others needs when it is carried over itself. */
static hwnas_status learn_widths(hwnas_transfer *t)
{
    hwnas_status status = HWNAS_OK;
    const size_t step = t->n_rows > JUDGED ? t->n_rows / JUDGED : 1;
    double *ratios = hwnas_alloc(t->n_sources * (t->n_rows / step + 1) * sizeof *ratios);
    struct fitted *other = hwnas_alloc(sizeof *other);
    other->by_source = hwnas_alloc(t->n_sources * sizeof *other->by_source);
    size_t n = 0;
    for (size_t s = 0; s < t->n_sources; s++) {
        double y[HWNAS_TRANSFER_MOST];
        for (size_t i = 0; i < t->n; i++)
            y[i] = t->logs[t->rows[i] * t->n_sources + s];
        TRY_OUT(learn(other, t, y, (long)s));
        for (size_t r = 0; r < t->n_rows; r += step) {
            const guess g = predict(other, t, r);
            const double error = fabs(g.mean - t->logs[r * t->n_sources + s]);
            if (g.deviation > 0)
                ratios[n++] = error / g.deviation;
        }
    }
    hwnas_sort(ratios, n);
    /* The new device is one more of their kind: split conformal prediction with devices as what is
     * exchangeable (Vovk, Gammerman and Shafer 2005). */
    const double share = fmin(COVERAGE * (1 + 1 / (double)t->n_sources), 1);
    const double widths = n ? hwnas_quantile(ratios, n, share) : 0;
    /* A device alone tells nothing of how others differ; so wide is a normal interval. */
    t->widths = t->n_sources > 1 ? widths : fmax(widths, 1.645);
out:
    free(other->by_source);
    free(other);
    free(ratios);
    return status;
}

hwnas_status hwnas_transfer_fit(hwnas_transfer *t, size_t n, const size_t *rows,
                                const double *seconds)
{
    double y[HWNAS_TRANSFER_MOST];
    if (n < HWNAS_TRANSFER_LEAST || n > HWNAS_TRANSFER_MOST)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%zu networks, not %d to %d", n,
                          HWNAS_TRANSFER_LEAST, HWNAS_TRANSFER_MOST);
    for (size_t i = 0; i < n; i++) {
        if (!(seconds[i] > 0) || !isfinite(seconds[i]))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "a latency of %g s is not above 0", seconds[i]);
        y[i] = log(seconds[i]);
    }
    t->n = n;
    memcpy(t->rows, rows, n * sizeof *rows);
    TRY(learn(&t->fitted, t, y, NO_SOURCE));
    return learn_widths(t);
}

hwnas_transferred hwnas_transfer_estimate(const hwnas_transfer *t, size_t row)
{
    const guess g = predict(&t->fitted, t, row);
    const double half = t->widths * g.deviation;
    return (hwnas_transferred){exp(g.mean), exp(g.mean - half), exp(g.mean + half)};
}

/* By the inverse of the covariance, with the level learned from the others too: Rasmussen and
 * Williams 2006, equation 5.12, of the matrix from which the level is projected out. */
double hwnas_transfer_left_out(const hwnas_transfer *t, size_t i)
{
    const struct fitted *f = &t->fitted;
    const double own = f->inverse[i * t->n + i] - f->sums[i] * f->sums[i] / f->total;
    return own > 0 ? exp(-f->weights[i] / own) - 1 : 0;
}
