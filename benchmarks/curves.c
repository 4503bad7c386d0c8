/* curves.c: whether the end that a learning curve foretells ranks networks better than the accuracy
 * so far.
 *
 *     curves [--quick] FILE.csv
 *
 * Of the curves of a file like tests/data/fashion_curves.csv: draws 20 at random, foretells from
 * them the ends of all others after some epochs (predict/curve.h), and ranks these by the accuracy
 * so far and by what was foretold. Prints Kendall's tau of both with the accuracy at the end, means
 * of 400 drawings (with --quick 20), and by how much they differ in the middle 90 % of them. The
 * figure is how much of the second one's tau the first one has where it has least. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/rng.h"
#include "base/stats.h"
#include "figure.h"
#include "predict/curve.h"

enum {
    EPOCHS = 9,
    KNOWN = 20,
    MOST = 100,
    DRAWINGS = 400,
    FEW_DRAWINGS = 20,
    STREAM = 89,
    GOAL = 80
};

/* Of one schedule of the rate. */
typedef struct curves {
    const char *schedule;
    size_t n;
    double values[MOST][EPOCHS];
} curves;

static hwnas_status read_curves(curves *out, const hwnas_csv *csv, size_t first)
{
    *out = (curves){.schedule = hwnas_csv_cell(csv, first, 0)};
    while (out->n < MOST && first + out->n < csv->n_rows &&
           !strcmp(hwnas_csv_cell(csv, first + out->n, 0), out->schedule)) {
        for (size_t k = 0; k < EPOCHS; k++)
            TRY(hwnas_csv_number(&out->values[out->n][k], csv, first + out->n, k + 1));
        out->n++;
    }
    return HWNAS_OK;
}

static void shuffle(size_t *order, size_t n, hwnas_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = hwnas_rng_below(rng, (uint32_t)i), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}

/* Kendall's tau of the accuracy after so many epochs and of the end that it foretells. */
static void rank(double *so_far, double *foretold, const curves *all, const size_t *order,
                 size_t epochs)
{
    hwnas_curve known[KNOWN];
    double reached[MOST], likely[MOST], ends[MOST];
    const size_t n = all->n - KNOWN;
    for (size_t i = 0; i < KNOWN; i++) {
        const double *values = all->values[order[i]];
        known[i] = (hwnas_curve){values, EPOCHS, values[EPOCHS - 1]};
    }
    for (size_t i = 0; i < n; i++) {
        const double *values = all->values[order[KNOWN + i]];
        hwnas_curve_end end = {0};
        hwnas_curve_extrapolate(&end, values, epochs, known, KNOWN, true);
        reached[i] = values[epochs - 1];
        likely[i] = end.mean;
        ends[i] = values[EPOCHS - 1];
    }
    *so_far = hwnas_kendall_tau(reached, ends, n);
    *foretold = hwnas_kendall_tau(likely, ends, n);
}

/* *share: as the figure has it, of all so far. */
static void judge(double *share, const curves *all, int n_drawings)
{
    static const size_t looks[] = {1, 2, 3, 4, 6};
    enum { N_LOOKS = sizeof looks / sizeof *looks };
    double gains[N_LOOKS][DRAWINGS], so_far[N_LOOKS] = {0}, foretold[N_LOOKS] = {0};
    hwnas_rng rng = hwnas_rng_new(1, STREAM);
    for (int d = 0; d < n_drawings; d++) {
        size_t order[MOST];
        shuffle(order, all->n, &rng);
        for (size_t l = 0; l < N_LOOKS; l++) {
            double a, b;
            rank(&a, &b, all, order, looks[l]);
            so_far[l] += a / n_drawings;
            foretold[l] += b / n_drawings;
            gains[l][d] = b - a;
        }
    }
    for (size_t l = 0; l < N_LOOKS; l++) {
        hwnas_sort(gains[l], (size_t)n_drawings);
        printf("%-9s after %zu of %d: %.2f, foretold %.2f (%.2f to %.2f)\n", all->schedule,
               looks[l], EPOCHS, so_far[l], foretold[l],
               hwnas_quantile(gains[l], (size_t)n_drawings, 0.05),
               hwnas_quantile(gains[l], (size_t)n_drawings, 0.95));
        *share = fmin(*share, so_far[l] / foretold[l]);
    }
}

static hwnas_status run(const char *path, int n_drawings)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_place place = {.file = path};
    hwnas_csv *csv;
    curves all;
    double share = INFINITY;
    TRY(hwnas_csv_load(&csv, path));
    for (size_t first = 0; first < csv->n_rows; first += all.n) {
        TRY_OUT(read_curves(&all, csv, first));
        if (all.n < KNOWN + 2) {
            status = hwnas_fail(HWNAS_E_INPUT, &place, "%s: only %zu curves, %d are needed",
                                all.schedule, all.n, KNOWN + 2);
            goto out;
        }
        judge(&share, &all, n_drawings);
    }
    print_figure("curves_tau_by_accuracy", 100 * share, "%", GOAL);
out:
    hwnas_csv_free(csv);
    return status;
}

int main(int argc, char **argv)
{
    const bool is_quick = argc > 1 && !strcmp(argv[1], "--quick");
    if (argc != 2 + is_quick) {
        fprintf(stderr, "usage: curves [--quick] FILE.csv\n");
        return 2;
    }
    const hwnas_status status = run(argv[1 + is_quick], is_quick ? FEW_DRAWINGS : DRAWINGS);
    if (status != HWNAS_OK)
        fprintf(stderr, "curves: %s\n", hwnas_last_error()->message);
    return status == HWNAS_OK ? 0 : 1;
}
