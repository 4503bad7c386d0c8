/* gp_learn.c: the hyper-parameters: their priors, the marginal likelihood and its maximum. */
#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "predict/gp_priv.h"

enum { LEARN_STREAM = 41 };

/* Normal priors on the logarithms, and bounds that keep the arithmetic finite. */
typedef struct prior {
    double mean, sd, low, high;
} prior;

static const prior amplitude_prior = {0, 1, -6, 5};
static const prior linear_prior = {0, 1.5, -9, 5};
static const prior noise_prior = {-4, 2, -12, 1};

/* Distances grow with the number of columns, and lengths with them: Hvarfner et al., "Vanilla
 * Bayesian Optimization Performs Great in High Dimensions", ICML 2024, has log length ~
 * N(sqrt(2) + log(D) / 2, sqrt(3)), and w = length^-2. Mismatches add up without a square: all of
 * them together take the correlation to about 1/e. */
static prior weight_prior(const hwnas_gp *gp, size_t group)
{
    size_t n_categorical = gp->n_columns - gp->n_continuous;
    if (gp->group_is_categorical[group])
        return (prior){-log((double)n_categorical), 1.5, -14, 4};
    return (prior){-2 * sqrt(2) - log((double)gp->n_continuous), 2, -18, 6};
}

static prior prior_of(const hwnas_gp *gp, size_t i)
{
    if (i < gp->n_groups)
        return weight_prior(gp, i);
    i -= gp->n_groups;
    return i == HWNAS_GP_AMPLITUDE ? amplitude_prior
           : i == HWNAS_GP_LINEAR  ? linear_prior
                                   : noise_prior;
}

void hwnas_gp_prior_centre(const hwnas_gp *gp, double *parameters)
{
    for (size_t i = 0; i < gp->n_groups + HWNAS_GP_N_SHARED; i++)
        parameters[i] = prior_of(gp, i).mean;
}

double hwnas_gp_log_prior(const hwnas_gp *gp, const double *parameters, double *gradient)
{
    double sum = 0;
    for (size_t i = 0; i < gp->n_groups + HWNAS_GP_N_SHARED; i++) {
        prior p = prior_of(gp, i);
        double z = (parameters[i] - p.mean) / p.sd;
        sum -= 0.5 * z * z;
        if (gradient)
            gradient[i] -= z / p.sd;
    }
    return sum;
}

/* The rest of the gradient of the log likelihood: from the factor to the inverse, and from there
 * d/dp = 1/2 trace((a a' - K^-1) dK/dp) with a = K^-1 y (Rasmussen and Williams, eq. 5.9). */
static void add_gradient(const hwnas_gp *gp, const double *parameters, double *gradient,
                         double *factor, hwnas_gp_sums *sums, const double *full)
{
    size_t n = gp->n;
    double *weights = hwnas_alloc(n * sizeof *weights), trace = 0;
    double *factors = hwnas_alloc((gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *factors);
    hwnas_gp_factors(gp, factors, parameters);
    LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, factor, (lapack_int)n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            weights[j] = full[i] * full[j] - factor[j * n + i];
        hwnas_gp_kernel_gradient(gp, factors, gradient, sums, weights, i);
        trace += weights[i];
    }
    gradient[gp->n_groups + HWNAS_GP_NOISE] += 0.5 * factors[gp->n_groups + HWNAS_GP_NOISE] * trace;
    free(weights);
    free(factors);
}

/* hwnas_gp_log_posterior() with the rows' sums, and a matrix of n * n to work in. */
static hwnas_status find_posterior(double *out, double *gradient, const hwnas_gp *gp,
                                   const double *parameters, hwnas_gp_sums *sums, double *factor)
{
    hwnas_status status = HWNAS_OK;
    size_t n = gp->n;
    bool is_positive;
    double *full = hwnas_alloc(n * sizeof *full), sum = 0;
    TRY_OUT(hwnas_gp_factorise(gp, parameters, factor, n, sums, &is_positive));
    if (!is_positive) {
        *out = -INFINITY;
        goto out;
    }
    memcpy(full, gp->targets, n * sizeof *full);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, factor, (int)n, full,
                1);
    for (size_t i = 0; i < n; i++)
        sum -= 0.5 * full[i] * full[i] + log(factor[i * n + i]) + 0.5 * log(2 * M_PI);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, (int)n, factor, (int)n, full,
                1);
    if (gradient) {
        memset(gradient, 0, (gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *gradient);
        add_gradient(gp, parameters, gradient, factor, sums, full);
    }
    *out = sum + hwnas_gp_log_prior(gp, parameters, gradient);
out:
    free(full);
    return status;
}

static hwnas_status make_room(hwnas_gp_sums *sums, double **factor, const hwnas_gp *gp)
{
    TRY(hwnas_gp_sums_make(sums, gp));
    return hwnas_try_alloc((void **)factor, gp->n * gp->n * sizeof **factor,
                           "the matrix of a Gaussian process");
}

hwnas_status hwnas_gp_log_posterior(double *out, double *gradient, const hwnas_gp *gp,
                                    const double *parameters)
{
    hwnas_gp_sums sums = {0};
    double *factor = NULL;
    hwnas_status status = make_room(&sums, &factor, gp);
    if (status == HWNAS_OK)
        status = find_posterior(out, gradient, gp, parameters, &sums, factor);
    hwnas_gp_sums_done(&sums);
    free(factor);
    return status;
}

/* A climb: the best point that it met, wherever the optimiser ends. */
typedef struct climb {
    const hwnas_gp *gp;
    double best;
    double *best_parameters;
    hwnas_gp_sums sums;
    double *factor;
    hwnas_status status;
} climb;

static double descend(unsigned n, const double *parameters, double *gradient, void *data)
{
    climb *c = data;
    double value = -INFINITY;
    if (c->status == HWNAS_OK)
        c->status = find_posterior(&value, gradient, c->gp, parameters, &c->sums, c->factor);
    if (value > c->best) {
        c->best = value;
        memcpy(c->best_parameters, parameters, n * sizeof *parameters);
    }
    for (size_t i = 0; gradient && i < n; i++)
        gradient[i] = isfinite(value) ? -gradient[i] : 0;
    return isfinite(value) ? -value : HUGE_VAL;
}

/* L-BFGS within the bounds, from `start`, which it overwrites. */
static hwnas_status run_climb(climb *c, double *start, int n_steps)
{
    unsigned n = (unsigned)(c->gp->n_groups + HWNAS_GP_N_SHARED);
    nlopt_opt optimiser = nlopt_create(NLOPT_LD_LBFGS, n);
    double end;
    for (unsigned i = 0; i < n; i++) {
        prior p = prior_of(c->gp, i);
        start[i] = fmin(fmax(start[i], p.low), p.high);
        nlopt_set_lower_bound(optimiser, (int)i, p.low);
        nlopt_set_upper_bound(optimiser, (int)i, p.high);
    }
    nlopt_set_min_objective(optimiser, descend, c);
    nlopt_set_maxeval(optimiser, n_steps);
    nlopt_set_ftol_abs(optimiser, 1e-3);    /* of a log posterior: no data could tell */
    nlopt_optimize(optimiser, start, &end); /* whatever it says, `c` has the best point */
    nlopt_destroy(optimiser);
    return c->status;
}

/* A process with some of the rows of another, drawn at random, as they are standardised there. */
static hwnas_status draw_rows(hwnas_gp **out, const hwnas_gp *gp, size_t n, hwnas_rng *rng)
{
    hwnas_gp *drawn = hwnas_gp_new(gp->columns, gp->n_columns, gp->has_linear);
    size_t *order = hwnas_alloc(gp->n * sizeof *order);
    double *rows = hwnas_alloc(n * gp->n_columns * sizeof *rows);
    double *targets = hwnas_alloc(n * sizeof *targets);
    for (size_t i = 0; i < gp->n; i++)
        order[i] = i;
    for (size_t i = 0; i < n; i++) { /* Fisher and Yates, the first n */
        size_t j = i + hwnas_rng_below(rng, (uint32_t)(gp->n - i)), row = order[j];
        order[j] = order[i];
        hwnas_gp_own_row(gp, rows + i * gp->n_columns, row);
        targets[i] = gp->targets[row];
    }
    hwnas_status status = hwnas_gp_set(drawn, rows, targets, n);
    free(order);
    free(rows);
    free(targets);
    if (status == HWNAS_OK)
        *out = drawn;
    else
        hwnas_gp_free(drawn);
    return status;
}

hwnas_status hwnas_gp_learn(hwnas_gp *gp, const hwnas_gp_learning *learning)
{
    assert(gp->n > 0);
    hwnas_status status = HWNAS_OK;
    size_t n_parameters = gp->n_groups + HWNAS_GP_N_SHARED;
    size_t most = learning->max_rows ? learning->max_rows : 1000;
    int n_starts = learning->n_starts ? learning->n_starts : 1;
    int n_steps = learning->n_steps ? learning->n_steps : 60;
    hwnas_gp *drawn = NULL;
    hwnas_rng rng = hwnas_rng_new(learning->seed, LEARN_STREAM);
    double *start = hwnas_alloc(2 * n_parameters * sizeof *start);
    climb c = {.gp = gp, .best = -INFINITY, .best_parameters = start + n_parameters};
    if (gp->n > most) {
        TRY_OUT(draw_rows(&drawn, gp, most, &rng));
        c.gp = drawn;
    }
    TRY_OUT(make_room(&c.sums, &c.factor, c.gp));
    for (int s = 0; s < n_starts; s++) {
        memcpy(start, gp->parameters, n_parameters * sizeof *start);
        /* The second start is the centre of the priors, the others lie about it. */
        if (s > 0)
            hwnas_gp_prior_centre(gp, start);
        for (size_t i = 0; s > 1 && i < n_parameters; i++)
            start[i] += prior_of(gp, i).sd * (2 * hwnas_rng_double(&rng) - 1);
        TRY_OUT(run_climb(&c, start, n_steps));
    }
    if (isfinite(c.best))
        memcpy(gp->parameters, c.best_parameters, n_parameters * sizeof *start);
    TRY_OUT(hwnas_gp_condition(gp));
out:
    hwnas_gp_sums_done(&c.sums);
    free(c.factor);
    hwnas_gp_free(drawn);
    free(start);
    return status;
}
