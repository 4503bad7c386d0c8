#include "predict/curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "predict/ridge.h"

/* The constant, the last value, and its last step: each as it differs from those of the curve that
 * is looked at, so its end is the constant. */
enum { CONSTANT, LEVEL, STEP, N_TERMS };

/* The ridge is worth so many trainings: with eight of them half of a slope is believed that is as
 * large as the noise. */
static const double PENALTY = 3;

/* Log odds end here: no share of samples tells 0 from this. */
static const double LEAST_PERCENT = 0.1;

static double to_scale(double value, bool is_of_odds)
{
    const double share = fmin(fmax(value, LEAST_PERCENT), 100 - LEAST_PERCENT);
    return is_of_odds ? log(share / (100 - share)) : value;
}

static double from_scale(double value, bool is_of_odds)
{
    return is_of_odds ? 100 / (1 + exp(-value)) : value;
}

static double step_at(const double *values, size_t n, bool is_of_odds)
{
    return n < 2 ? 0 : to_scale(values[n - 1], is_of_odds) - to_scale(values[n - 2], is_of_odds);
}

/* Divides a term by its deviation over the rows. */
static void standardise(double *terms, size_t n, size_t term)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += terms[i * N_TERMS + term];
    for (size_t i = 0; i < n; i++)
        squares += pow(terms[i * N_TERMS + term] - sum / (double)n, 2);
    const double deviation = sqrt(squares / (double)n);
    for (size_t i = 0; i < n; i++)
        terms[i * N_TERMS + term] /= deviation > 0 ? deviation : 1;
}

bool hwnas_curve_extrapolate(hwnas_curve_end *out, const double *values, size_t n,
                             const hwnas_curve *known, size_t n_known, bool is_percent)
{
    static const double shares[N_TERMS] = {[LEVEL] = 1, [STEP] = 1};
    const double level = to_scale(values[n - 1], is_percent), step = step_at(values, n, is_percent);
    double gram[N_TERMS * N_TERMS] = {0}, weights[N_TERMS] = {0}, unit[N_TERMS] = {[CONSTANT] = 1};
    double squares = 0;
    double *terms = hwnas_alloc((n_known + 1) * N_TERMS * sizeof *terms);
    double *gains = hwnas_alloc((n_known + 1) * sizeof *gains);
    size_t rows = 0;
    for (size_t i = 0; i < n_known; i++) {
        if (known[i].n < n)
            continue;
        const double then = to_scale(known[i].values[n - 1], is_percent);
        double *row = &terms[rows * N_TERMS];
        row[CONSTANT] = 1;
        row[LEVEL] = then - level;
        row[STEP] = step_at(known[i].values, n, is_percent) - step;
        gains[rows++] = to_scale(known[i].end, is_percent) - then;
    }
    if (rows >= HWNAS_CURVES_FEWEST) {
        standardise(terms, rows, LEVEL);
        standardise(terms, rows, STEP);
        hwnas_gram_add(gram, terms, rows, N_TERMS, NULL, 0);
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < N_TERMS; k++)
                weights[k] += terms[i * N_TERMS + k] * gains[i];
        hwnas_ridge_factor(gram, N_TERMS, PENALTY, shares);
        hwnas_ridge_solve(gram, weights, N_TERMS);
        hwnas_ridge_solve(gram, unit, N_TERMS);
        for (size_t i = 0; i < rows; i++)
            squares += pow(gains[i] - hwnas_dot(&terms[i * N_TERMS], weights, N_TERMS), 2);
    }
    free(terms);
    free(gains);
    if (rows < HWNAS_CURVES_FEWEST)
        return false;
    const int freedom = (int)rows - N_TERMS;
    const double middle = level + weights[CONSTANT];
    const double scale = sqrt(squares / freedom * (1 + fmax(unit[CONSTANT], 0)));
    const double sd = scale * sqrt(freedom / (freedom - 2.0));
    *out = (hwnas_curve_end){
        .mean = from_scale(middle, is_percent),
        .sd = (from_scale(middle + sd, is_percent) - from_scale(middle - sd, is_percent)) / 2,
        .middle = middle,
        .scale = scale,
        .freedom = freedom,
        .is_of_odds = is_percent};
    return true;
}

/* P(T <= t) for Student's t with whole degrees of freedom: Abramowitz and Stegun, "Handbook of
 * Mathematical Functions", 26.7.3 and 26.7.4. */
static double student(double t, int freedom)
{
    const double angle = atan(t / sqrt(freedom)), cosine = cos(angle);
    const bool is_odd = freedom % 2;
    double term = is_odd ? cosine : 1, sum = freedom > 1 ? term : 0;
    for (int k = is_odd ? 3 : 2; k < freedom; k += 2) {
        term *= cosine * cosine * (k - 1) / k;
        sum += term;
    }
    const double within = is_odd ? 2 / M_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
    return (1 + within) / 2;
}

double hwnas_curve_chance(const hwnas_curve_end *end, double floor)
{
    const double above = end->middle - to_scale(floor, end->is_of_odds);
    return end->scale > 0 ? student(above / end->scale, end->freedom) : above >= 0;
}

void hwnas_curve_interval(double *low, double *high, const hwnas_curve_end *end, double share)
{
    double below = 0, above = 1;
    while (student(above, end->freedom) < (1 + share) / 2)
        above *= 2;
    for (int i = 0; i < 60; i++) {
        const double t = (below + above) / 2;
        *(student(t, end->freedom) < (1 + share) / 2 ? &below : &above) = t;
    }
    *low = from_scale(end->middle - above * end->scale, end->is_of_odds);
    *high = from_scale(end->middle + above * end->scale, end->is_of_odds);
}
