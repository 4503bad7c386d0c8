/* predictor_runs.c: fits predictors to some rows of a table and judges them by others.
 *
 *     predictor_runs SPACE DATA.csv TARGET KIND SIZE SEED... [--within COLUMN]
 *     predictor_runs SPACE DATA.csv TARGET split SIZE SEED...
 *     predictor_runs --speed PREDICTOR SPACE
 *
 * A fifth of the networks are held out (other ones for each seed, at most 2000 rows), and SIZE rows
 * of the rest are drawn; 0: all of them. Where a fifth would be too few to judge by, as much is
 * held out as leaves SIZE rows. Prints a line of CSV for each seed, and for each member of an
 * ensemble: kind, rows fitted, seed, Kendall tau, tau in the top tenth, RMSE, share inside the 90 %
 * interval, the same of the top tenth, regret of the best of the ten that are predicted best,
 * processor seconds of fitting, estimates a second.
 * --within: tau is the mean over groups of rows equal in that column.
 * split: fits nothing and prints seed, row from 0, 1 if it is held out and 0 if it is fitted to,
 * for others to be judged on the same rows.
 * --speed prints how many random architectures a predictor scores in a second of one core, from the
 * choices on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/stats.h"
#include "graph/elaborate.h"
#include "predict/predict_priv.h"

enum { MAX_HELD_OUT = 2000, FEW_HELD_OUT = 400, N_FOLDS = 20, DRAW_STREAM = 71, N_BEST = 10 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* At most `most` of the rows that are marked, drawn at random, stay so. */
static void thin(bool *is_kept, size_t n, size_t most, hwnas_rng *rng)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += is_kept[i];
    size_t wanted = left < most ? left : most;
    for (size_t i = 0; i < n; i++) { /* Knuth's selection sampling */
        if (!is_kept[i])
            continue;
        is_kept[i] = hwnas_rng_double(rng) * (double)left < (double)wanted;
        wanted -= is_kept[i];
        left--;
    }
}

static double tau_within(const hwnas_estimate *estimates, const hwnas_rows *rows,
                         const char *const *groups)
{
    double sum = 0, *means = hwnas_alloc(rows->n * sizeof *means);
    double *known = hwnas_alloc(rows->n * sizeof *known);
    size_t n_groups = 0;
    for (size_t first = 0; first < rows->n; first++) {
        size_t n = 0;
        bool is_new = true;
        for (size_t i = 0; is_new && i < first; i++)
            is_new = strcmp(groups[i], groups[first]) != 0;
        for (size_t i = first; is_new && i < rows->n; i++) {
            if (strcmp(groups[i], groups[first]))
                continue;
            means[n] = estimates[i].mean;
            known[n++] = rows->values[i];
        }
        if (n < 20)
            continue;
        sum += hwnas_kendall_tau(means, known, n);
        n_groups++;
    }
    free(means);
    free(known);
    return sum / (double)n_groups;
}

/* Share of results inside the 90 % interval among the tenth that is best. */
static double top_coverage(const hwnas_estimate *estimates, const double *known, size_t n)
{
    double *sorted = hwnas_alloc(n * sizeof *sorted);
    hwnas_estimate *top = hwnas_alloc(n * sizeof *top);
    memcpy(sorted, known, n * sizeof *sorted);
    hwnas_sort(sorted, n);
    double cut = sorted[n - n / 10];
    size_t n_top = 0;
    for (size_t i = 0; i < n; i++) {
        if (known[i] < cut)
            continue;
        sorted[n_top] = known[i]; /* what was sorted is not needed any more */
        top[n_top++] = estimates[i];
    }
    double coverage = hwnas_scores(top, sorted, n_top).coverage_90;
    free(sorted);
    free(top);
    return coverage;
}

/* What the best of those that are predicted best lacks to the best of all. */
static double regret_of_best(const hwnas_estimate *estimates, const double *known, size_t n)
{
    bool *is_taken = hwnas_alloc(n * sizeof *is_taken);
    double best = -INFINITY, found = -INFINITY;
    for (size_t i = 0; i < n; i++)
        best = fmax(best, known[i]);
    for (int k = 0; k < N_BEST; k++) {
        size_t next = n;
        for (size_t i = 0; i < n; i++)
            if (!is_taken[i] && (next == n || estimates[i].mean > estimates[next].mean))
                next = i;
        is_taken[next] = true;
        found = fmax(found, known[next]);
    }
    free(is_taken);
    return best - found;
}

static void judge(const hwnas_model *model, const hwnas_rows *held_out, const char *const *groups,
                  size_t n_fitted, uint64_t seed, double fit_seconds)
{
    hwnas_estimate *estimates = hwnas_alloc(held_out->n * sizeof *estimates);
    double before = seconds();
    hwnas_model_predict(estimates, model, held_out->columns, held_out->n);
    double passed = seconds() - before;
    hwnas_predictor_scores s = hwnas_scores(estimates, held_out->values, held_out->n);
    if (groups)
        s.kendall_tau = tau_within(estimates, held_out, groups);
    printf("%s,%zu,%llu,%.5f,%.5f,%.5g,%.4f,%.4f,%.5g,%.2f,%.0f\n", model->kind->name, n_fitted,
           (unsigned long long)seed, s.kendall_tau, s.top_tenth_tau, s.rmse, s.coverage_90,
           top_coverage(estimates, held_out->values, held_out->n),
           regret_of_best(estimates, held_out->values, held_out->n), fit_seconds,
           (double)held_out->n / passed);
    fflush(stdout);
    free(estimates);
}

/* How many of the folds are held out. */
static int folds_held_out(const int *folds, size_t n_rows, size_t size)
{
    int n = N_FOLDS / 5;
    size_t n_left = n_rows;
    for (size_t i = 0; i < n_rows; i++)
        n_left -= folds[i] <= n;
    bool is_small = n_rows / 5 < FEW_HELD_OUT;
    while (is_small && size && n_left >= size && n < N_FOLDS - 1) {
        n++;
        for (size_t i = 0; i < n_rows; i++)
            n_left -= folds[i] == n;
    }
    return n;
}

/* KIND NULL: only tells which rows. */
static hwnas_status run(const hwnas_rows *rows, const char *const *groups,
                        const hwnas_model_kind *kind, size_t size, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rng rng = hwnas_rng_new(seed, DRAW_STREAM);
    int *folds = hwnas_alloc(rows->n * sizeof *folds);
    bool *is_kept = hwnas_alloc(rows->n * sizeof *is_kept);
    bool *is_held_out = hwnas_alloc(rows->n * sizeof *is_held_out);
    const char **own = groups ? hwnas_alloc(rows->n * sizeof *own) : NULL;
    hwnas_model *model = NULL;
    hwnas_rows_deal(folds, rows, N_FOLDS, seed);
    int n_held_out = folds_held_out(folds, rows->n, size);
    for (size_t i = 0; i < rows->n; i++) {
        is_held_out[i] = folds[i] < n_held_out;
        is_kept[i] = !is_held_out[i];
    }
    thin(is_held_out, rows->n, MAX_HELD_OUT, &rng);
    thin(is_kept, rows->n, size ? size : rows->n, &rng);
    for (size_t i = 0, n = 0; own && i < rows->n; i++)
        if (is_held_out[i])
            own[n++] = groups[i];
    for (size_t i = 0; !kind && i < rows->n; i++)
        if (is_kept[i] || is_held_out[i])
            printf("%llu,%zu,%d\n", (unsigned long long)seed, i, is_held_out[i]);
    hwnas_rows kept = hwnas_rows_keep(rows, is_kept), held_out = hwnas_rows_keep(rows, is_held_out);
    hwnas_estimate *crossed = hwnas_alloc(kept.n * sizeof *crossed);
    if (!kind)
        goto out;
    double before = seconds();
    TRY_OUT(hwnas_model_fit(&model, crossed, kind, &kept, seed));
    double passed = seconds() - before;
    judge(model, &held_out, own, kept.n, seed, passed);
    /* The first of a kind; other processes of an ensemble look at parts. */
    const hwnas_model *member, *before_it = NULL;
    for (int m = 0; (member = hwnas_model_member(model, m)); before_it = member, m++)
        if (!before_it || member->kind != before_it->kind)
            judge(member, &held_out, own, kept.n, seed, NAN);
out:
    hwnas_model_free(model);
    hwnas_rows_done(&kept);
    hwnas_rows_done(&held_out);
    free(crossed);
    free(own);
    free(folds);
    free(is_kept);
    free(is_held_out);
    return status;
}

static hwnas_status run_all(int argc, char **argv)
{
    hwnas_status status = HWNAS_OK;
    hwnas_sample sample = {0};
    hwnas_csv *csv = NULL;
    const char **groups = NULL;
    const hwnas_model_kind *kind = hwnas_model_kind_named(argv[4]);
    if (!kind && strcmp(argv[4], "split"))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "there is no kind '%s'", argv[4]);
    TRY_OUT(hwnas_sample_load(&sample, argv[1], argv[2], argv[3]));
    if (argc > 8 && !strcmp(argv[argc - 2], "--within")) {
        size_t column;
        TRY_OUT(hwnas_csv_load(&csv, argv[2]));
        TRY_OUT(hwnas_csv_require(&column, csv, argv[argc - 1]));
        groups = hwnas_alloc(csv->n_rows * sizeof *groups);
        for (size_t i = 0; i < csv->n_rows; i++)
            groups[i] = hwnas_csv_cell(csv, i, column);
        argc -= 2;
    }
    for (int i = 6; i < argc; i++)
        TRY_OUT(run(&sample.rows, groups, kind, strtoul(argv[5], NULL, 10),
                    strtoul(argv[i], NULL, 10)));
out:
    free(groups);
    hwnas_csv_free(csv);
    hwnas_sample_done(&sample);
    return status;
}

static hwnas_status run_speed(const char *name, const char *space_name)
{
    enum { N = 20000 };
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_predictor *predictor = NULL;
    hwnas_arch **archs = hwnas_alloc(N * sizeof *archs);
    hwnas_estimate *estimates = hwnas_alloc(N * sizeof *estimates);
    hwnas_rng rng = hwnas_rng_new(1, DRAW_STREAM);
    TRY_OUT(hwnas_graph_load_space(&space, space_name));
    TRY_OUT(hwnas_predictor_load(&predictor, name, space));
    for (int i = 0; i < N; i++)
        hwnas_arch_sample(archs[i] = hwnas_arch_new(space), &rng);
    double before = seconds();
    TRY_OUT(hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)archs, N));
    printf("%.0f\n", N / (seconds() - before));
out:
    for (int i = 0; i < N; i++)
        hwnas_arch_free(archs[i]);
    free(archs);
    free(estimates);
    hwnas_predictor_free(predictor);
    hwnas_space_free(space);
    return status;
}

int main(int argc, char **argv)
{
    bool is_speed = argc == 4 && !strcmp(argv[1], "--speed");
    if (argc < 7 && !is_speed) {
        fputs("usage: predictor_runs SPACE DATA.csv TARGET KIND SIZE SEED... [--within COLUMN]\n"
              "       predictor_runs SPACE DATA.csv TARGET split SIZE SEED...\n"
              "       predictor_runs --speed PREDICTOR SPACE\n",
              stderr);
        return 2;
    }
    if ((is_speed ? run_speed(argv[2], argv[3]) : run_all(argc, argv)) == HWNAS_OK)
        return 0;
    fprintf(stderr, "predictor_runs: %s\n", hwnas_last_error()->message);
    return 1;
}
