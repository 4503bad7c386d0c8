#include "search/trust.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"

/* The first check, and how much longer the search is at the next: a check learns a model, which
 * must not take more time than those that propose. */
enum { FIRST_CHECK = 24, CHECK_DIVISOR = 4 };

/* Of the trials the last part is foretold, from at most so many before it. */
enum { FORETOLD_DIVISOR = 3, MAX_FORETOLD = 64, MAX_BEFORE = 96 };

/* Fewer say nothing of a rank. */
enum { MIN_FORETOLD = 12 };

/* What the choices tell nearly always has a higher rank here (346 of 360 times), and what they do
 * not has 0.0 +- 0.1, in recorded searches (docs/strategies.md). Below this the share of others
 * begins. */
#define ENOUGH_RANK 0.3

/* The number of trials at which the last check belongs; 0: too few. */
static size_t checkpoint(size_t n)
{
    size_t at = FIRST_CHECK;
    if (n < at)
        return 0;
    while (at + at / CHECK_DIVISOR <= n)
        at += at / CHECK_DIVISOR;
    return at;
}

/* Objectives alone: a limit that cannot be learnt is not what evolution would do better. */
static hwnas_told *without_limits(const hwnas_told *told, size_t n)
{
    hwnas_told *out = hwnas_alloc((n + 1) * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        out[i] = told[i];
        out[i].score.n_margins = 0;
        if (!isinf(out[i].score.violation))
            out[i].score.violation = 0;
    }
    return out;
}

static bool is_constant(const double *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

/* Of tau between independent values (Kendall 1938). */
static double standard_error(double n)
{
    return sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)));
}

/* The part of an objective that is in doubt: none at a rank that is enough within two errors, all
 * of it beyond three. Within one, a check in six doubted what could be learnt under a tight limit,
 * where trials differ little. */
static double doubt(double tau, size_t n)
{
    const double n_errors = (ENOUGH_RANK - tau) / standard_error((double)n);
    return fmin(fmax(n_errors - 2, 0), 1);
}

/* How well the model foretold an objective: `out` is its rank, the result the doubt. */
static double judge(double *out, const hwnas_outlook *outlook, const hwnas_told *told,
                    int objective)
{
    double *foretold = hwnas_alloc((outlook->n + 1) * sizeof *foretold);
    double *values = hwnas_alloc((outlook->n + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; i < outlook->n; i++) {
        const double y = told[i].score.objectives[objective];
        if (isinf(told[i].score.violation) || !isfinite(y))
            continue;
        foretold[n] = outlook->means[i * (size_t)outlook->n_objectives + (size_t)objective];
        values[n++] = y;
    }
    const bool can_tell = n >= MIN_FORETOLD && !is_constant(values, n);
    *out = can_tell ? hwnas_kendall_tau(foretold, values, n) : NAN;
    free(foretold);
    free(values);
    return can_tell ? doubt(*out, n) : 0;
}

static hwnas_status check(hwnas_trust *trust, const hwnas_strategy_config *config,
                          const hwnas_told *told, size_t n)
{
    size_t n_foretold = n / FORETOLD_DIVISOR;
    if (n_foretold > MAX_FORETOLD)
        n_foretold = MAX_FORETOLD;
    size_t n_before = n - n_foretold;
    const hwnas_told *last = told + n_before;
    hwnas_told *before = without_limits(told, n_before);
    const size_t first = n_before > MAX_BEFORE ? n_before - MAX_BEFORE : 0;
    const hwnas_encoding **encodings = hwnas_alloc((n_foretold + 1) * sizeof *encodings);
    hwnas_surrogate *model = hwnas_surrogate_new(config);
    hwnas_outlook outlook;
    double sum = 0;
    hwnas_status status = hwnas_surrogate_update(model, before + first, n_before - first, NULL, 0);
    if (status != HWNAS_OK)
        goto out;
    for (size_t i = 0; i < n_foretold; i++)
        encodings[i] = last[i].encoding;
    hwnas_surrogate_predict(model, &outlook, encodings, n_foretold);
    for (int k = 0; k < config->n_objectives; k++)
        sum += judge(&trust->ranks[k], &outlook, last, k);
    trust->share = sum / config->n_objectives;
    trust->n_checked = n;
    hwnas_outlook_done(&outlook);
out:
    hwnas_surrogate_free(model);
    free(encodings);
    free(before);
    return status;
}

hwnas_status hwnas_trust_update(hwnas_trust *trust, const hwnas_strategy_config *config,
                                const hwnas_told *told, size_t n)
{
    const size_t at = checkpoint(n);
    return at == trust->n_checked ? HWNAS_OK : check(trust, config, told, at);
}

void hwnas_trust_forget(hwnas_trust *trust)
{
    *trust = (hwnas_trust){0};
}
