/* latency_kind.c: a Gaussian process for each kind of part: the logarithm of its seconds over those
 * of its MACs and bytes. It is the sum of a plane, of something smooth, and of what is a part's own
 * (how its shape fits the vector units), which neighbours do not tell. Hyper-parameters are those
 * of the greatest likelihood in a small grid (Rasmussen and Williams, "Gaussian Processes for
 * Machine Learning", 2006, algorithm 2.1 and eq. 2.30). */
#define _GNU_SOURCE 1 /* qsort_r() */
#include "latency/latency_kind.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    D = HWNAS_PART_FEATURES,
    MOST_ROWS = 300, /* of a process */
    GRID_ROWS = 120, /* that choose its hyper-parameters */
};
static const double CONSTANT = 3, SLOPE = 0.5; /* prior sd of the plane */
static const double UNKNOWN = 1;               /* sd of a part of a kind never seen */

static const struct {
    double length, smooth, own; /* length in doublings, the others as sd in logarithms */
} grid[] = {
    {0.5, 0.1, 0.02}, {0.5, 0.3, 0.02}, {0.5, 0.3, 0.1}, {1, 0.1, 0.02}, {1, 0.3, 0.02},
    {1, 0.1, 0.1},    {1, 0.3, 0.1},    {2, 0.3, 0.02},  {2, 0.1, 0.1},  {2, 0.5, 0.3},
};

static void write_features(double *out, const hwnas_part *part)
{
    out[0] = log2(1 + part->macs);
    out[1] = log2(1 + part->read_bytes);
    out[2] = log2(1 + part->written_bytes);
    out[3] = log2(1 + part->weight_bytes);
}

static double nearness(const hwnas_part_kind *kind, const double *a, const double *b)
{
    double distance = 0;
    for (int k = 0; k < D; k++)
        distance += (a[k] - b[k]) * (a[k] - b[k]);
    return exp(-distance / (2 * kind->length * kind->length));
}

static double covariance(const hwnas_part_kind *kind, const double *a, const double *b)
{
    double product = 0;
    for (int k = 0; k < D; k++)
        product += a[k] * b[k];
    return CONSTANT * CONSTANT + SLOPE * SLOPE * product +
           kind->smooth * kind->smooth * nearness(kind, a, b);
}

/* Solves for the weights of the first n rows; `noise` is their variance. Returns the logarithm of
 * the likelihood, but for a constant; -INFINITY where the matrix cannot be factored. */
static double solve(hwnas_part_kind *kind, const double *targets, const double *noise, size_t n)
{
    double *matrix = hwnas_alloc(n * n * sizeof *matrix), likelihood = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i; k++)
            matrix[i * n + k] = covariance(kind, kind->rows + i * D, kind->rows + k * D);
        matrix[i * n + i] += kind->own * kind->own + noise[i];
        kind->weights[i] = targets[i] - kind->mean;
    }
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)n, matrix, (int)n)) {
        memset(kind->weights, 0, n * sizeof *kind->weights);
        likelihood = -INFINITY;
    } else {
        LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)n, 1, matrix, (int)n, kind->weights, 1);
    }
    for (size_t i = 0; i < n && isfinite(likelihood); i++)
        likelihood -= 0.5 * (targets[i] - kind->mean) * kind->weights[i] + log(matrix[i * n + i]);
    free(matrix);
    return likelihood;
}

static void choose(hwnas_part_kind *kind, const double *targets, const double *noise)
{
    const size_t n = kind->n < GRID_ROWS ? kind->n : GRID_ROWS;
    double best = -INFINITY;
    size_t chosen = 4;
    for (size_t g = 0; g < sizeof grid / sizeof *grid; g++) {
        kind->length = grid[g].length;
        kind->smooth = grid[g].smooth;
        kind->own = grid[g].own;
        const double likelihood = solve(kind, targets, noise, n);
        if (likelihood > best) {
            best = likelihood;
            chosen = g;
        }
    }
    kind->length = grid[chosen].length;
    kind->smooth = grid[chosen].smooth;
    kind->own = grid[chosen].own;
}

/* A process over some parts. They are in the order of their signatures, which is none. */
static void learn(hwnas_part_kind *kind, const hwnas_latency_table *table, const int *parts,
                  size_t n, double noise)
{
    kind->n = n < MOST_ROWS ? n : MOST_ROWS;
    free(kind->rows);
    free(kind->weights);
    kind->rows = hwnas_alloc((kind->n * D + 1) * sizeof *kind->rows);
    kind->weights = hwnas_alloc((kind->n + 1) * sizeof *kind->weights);
    double *targets = hwnas_alloc((kind->n + 1) * sizeof *targets);
    double *noises = hwnas_alloc((kind->n + 1) * sizeof *noises);
    memset(kind->centre, 0, sizeof kind->centre);
    kind->mean = 0;
    for (size_t i = 0; i < kind->n; i++) {
        const hwnas_timed_part *part = &table->parts[parts[i]];
        write_features(kind->rows + i * D, &part->part);
        targets[i] = part->mean;
        noises[i] = noise * noise / part->n;
        kind->mean += targets[i] / (double)kind->n;
        for (int k = 0; k < D; k++)
            kind->centre[k] += kind->rows[i * D + (size_t)k] / (double)kind->n;
    }
    for (size_t i = 0; i < kind->n * D; i++)
        kind->rows[i] -= kind->centre[i % D];
    if (kind->n) {
        choose(kind, targets, noises);
        solve(kind, targets, noises, kind->n);
    }
    free(targets);
    free(noises);
}

/* The smooth part of a prediction, and how near the nearest row is: 1 where it is the same. */
static double predict(double *nearest, const hwnas_part_kind *kind, const hwnas_part *part)
{
    double features[D], sum = kind->mean;
    write_features(features, part);
    for (int k = 0; k < D; k++)
        features[k] -= kind->centre[k];
    *nearest = 0;
    for (size_t i = 0; i < kind->n; i++) {
        const double near = nearness(kind, features, kind->rows + i * D);
        sum += kind->weights[i] * covariance(kind, features, kind->rows + i * D);
        *nearest = fmax(*nearest, near);
    }
    return sum;
}

void hwnas_latency_table_predict(const hwnas_latency_table *table, hwnas_timed_part *part)
{
    const hwnas_part_kind *kind = part->kind < 0 ? NULL : &table->kinds[part->kind];
    const bool is_known = kind && kind->n > 0;
    double nearest;
    const double mean = predict(&nearest, is_known ? kind : &table->any, &part->part);
    part->n = 0;
    part->seconds = exp(mean);
    part->sd = is_known ? hypot(kind->own, kind->smooth * sqrt(1 - nearest * nearest)) : UNKNOWN;
}

/* A part that was timed: between what its kind says and what it showed itself. */
static void settle(const hwnas_latency_table *table, hwnas_timed_part *part, double noise)
{
    const hwnas_part_kind *kind = &table->kinds[part->kind];
    const double own = kind->own * kind->own, timed = noise * noise / part->n;
    double nearest;
    const double mean = predict(&nearest, kind, &part->part);
    const double trust = own / (own + timed);
    part->seconds = exp(mean + trust * (part->mean - mean));
    part->sd = sqrt(trust * timed);
}

static int compare_signatures(const void *a, const void *b, void *context)
{
    const hwnas_latency_table *table = context;
    const uint64_t x = table->parts[*(const int *)a].part.signature;
    const uint64_t y = table->parts[*(const int *)b].part.signature;
    return (x > y) - (x < y);
}

void hwnas_latency_table_fit_kinds(hwnas_latency_table *table, double noise)
{
    int *timed = hwnas_alloc((table->n_parts + 1) * sizeof *timed);
    int *of_kind = hwnas_alloc((table->n_parts + 1) * sizeof *of_kind);
    size_t n = 0;
    for (size_t p = 0; p < table->n_parts; p++)
        if (table->parts[p].n > 0)
            timed[n++] = (int)p;
    qsort_r(timed, n, sizeof *timed, compare_signatures, table);
    for (size_t k = 0; k < table->n_kinds; k++) {
        size_t n_of_kind = 0;
        for (size_t i = 0; i < n; i++)
            if (table->parts[timed[i]].kind == (int)k)
                of_kind[n_of_kind++] = timed[i];
        learn(&table->kinds[k], table, of_kind, n_of_kind, noise);
    }
    learn(&table->any, table, timed, n, noise);
    for (size_t p = 0; p < table->n_parts; p++)
        if (table->parts[p].n > 0)
            settle(table, &table->parts[p], noise);
        else
            hwnas_latency_table_predict(table, &table->parts[p]);
    free(timed);
    free(of_kind);
}
