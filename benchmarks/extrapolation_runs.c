/* extrapolation_runs.c: how far predictors are off outside what they have learned from.
 *
 *     extrapolation_runs SPACE DATA.csv TARGET KIND SIZE SEED
 *
 * Leaves out each value of each choice that can be: fits to SIZE of the rows without it, and asks
 * for at most 300 of those with it. The same of balls: a tenth of the rows, those that differ in
 * fewest genes from one of them, so that values were seen and no row is near. Prints a line of CSV
 * for each: what was left out ("embed=192", "ball 1"), how the fit judges the choice ("tried",
 * "unknown", "inside"), rows fitted, rows asked, share inside the 90 % interval of the model alone
 * and of the predictor, their mean deviations, RMSE. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/stats.h"
#include "predict/extrapolation.h"
#include "predict/predict_priv.h"

enum { MAX_ASKED = 300, MIN_ROWS = 50, MIN_ASKED = 20, N_BALLS = 3, BALL_STREAM = 83 };

typedef struct run {
    const hwnas_sample *sample;
    const hwnas_model_kind *kind;
    size_t size;
    uint64_t seed;
    bool *is_asked, *is_rest; /* by row of the sample */
} run;

/* At most `most` of the rows that are marked, drawn at random, stay so. */
static size_t thin(bool *is_kept, size_t n, size_t most, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, BALL_STREAM);
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += is_kept[i];
    const size_t n_kept = left < most ? left : most;
    for (size_t i = 0, wanted = n_kept; i < n; i++) { /* Knuth's selection sampling */
        if (!is_kept[i])
            continue;
        is_kept[i] = hwnas_rng_double(&rng) * (double)left < (double)wanted;
        wanted -= is_kept[i];
        left--;
    }
    return n_kept;
}

static hwnas_arch **keep_archs(const run *r, const bool *is_kept, size_t n)
{
    hwnas_arch **archs = hwnas_alloc((n + 1) * sizeof *archs);
    for (size_t i = 0, at = 0; i < r->sample->rows.n; i++)
        if (is_kept[i])
            archs[at++] = r->sample->table->archs[i];
    return archs;
}

static double mean_deviation(const hwnas_estimate *estimates, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += estimates[i].sd / (double)n;
    return sum;
}

/* Fits to the one part and asks for the other. */
static hwnas_status judge(const run *r, const char *what, const char *choice)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = r->sample->rows.n, width = r->sample->encoding->n_columns;
    const hwnas_space *space = r->sample->space;
    const size_t n_asked = thin(r->is_asked, n, MAX_ASKED, r->seed);
    const size_t n_rest = thin(r->is_rest, n, r->size, r->seed + 1);
    if (n_asked < MIN_ASKED || n_rest < MIN_ROWS)
        return HWNAS_OK;
    hwnas_rows rest = hwnas_rows_keep(&r->sample->rows, r->is_rest);
    hwnas_rows asked = hwnas_rows_keep(&r->sample->rows, r->is_asked);
    hwnas_arch **known = keep_archs(r, r->is_rest, n_rest);
    hwnas_arch **others = keep_archs(r, r->is_asked, n_asked);
    hwnas_estimate *crossed = hwnas_alloc(n_rest * sizeof *crossed);
    hwnas_estimate *alone = hwnas_alloc(2 * n_asked * sizeof *alone), *wide = alone + n_asked;
    hwnas_model *model = NULL;
    json_t *domain = hwnas_domain_of(space, known, n_rest), *errors = NULL;
    hwnas_domain_map *map = hwnas_domain_map_new(domain, space);
    json_t *ranges = hwnas_fact_ranges(&rest);
    const hwnas_sizes sizes = hwnas_sizes_of(r->sample->encoding, ranges);
    hwnas_extrapolation *x = NULL;
    TRY_OUT(hwnas_model_fit(&model, crossed, r->kind, &rest, r->seed));
    TRY_OUT(hwnas_extrapolation_learn(&errors, model, &rest, known, domain, r->seed));
    TRY_OUT(hwnas_extrapolation_new(&x, errors, domain, space, map, &sizes));
    for (size_t i = 0; i < n_asked; i++) {
        hwnas_model_predict(&alone[i], model, asked.columns + i * width, 1);
        wide[i] = alone[i];
        const double *row = asked.columns + i * width;
        if (hwnas_domain_is_beyond(map, others[i]) || hwnas_sizes_are_beyond(&sizes, row))
            hwnas_extrapolation_widen(&wide[i], x, others[i], row, model);
    }
    const hwnas_predictor_scores before = hwnas_scores(alone, asked.values, n_asked);
    const hwnas_predictor_scores after = hwnas_scores(wide, asked.values, n_asked);
    const char *how = !choice                                                       ? "inside"
                      : json_object_get(json_object_get(errors, "choices"), choice) ? "tried"
                                                                                    : "unknown";
    printf("%s,%s,%zu,%zu,%.4f,%.4f,%.4g,%.4g,%.4g\n", what, how, n_rest, n_asked,
           before.coverage_90, after.coverage_90, mean_deviation(alone, n_asked),
           mean_deviation(wide, n_asked), after.rmse);
    fflush(stdout);
out:
    hwnas_extrapolation_free(x);
    hwnas_domain_map_free(map);
    hwnas_model_free(model);
    json_decref(domain);
    json_decref(errors);
    json_decref(ranges);
    hwnas_rows_done(&rest);
    hwnas_rows_done(&asked);
    free(known);
    free(others);
    free(crossed);
    free(alone);
    return status;
}

static hwnas_status leave_out_value(const run *r, const hwnas_choice *choice, const char *label)
{
    const hwnas_space *space = r->sample->space;
    for (size_t i = 0; i < r->sample->rows.n; i++) {
        const hwnas_arch *arch = r->sample->table->archs[i];
        r->is_asked[i] = false;
        for (size_t g = choice->first_gene; g < choice->first_gene + choice->n_positions; g++)
            r->is_asked[i] |= !strcmp(space->genes[g].labels[arch->genes[g]], label) &&
                              hwnas_arch_is_active(arch, g);
        r->is_rest[i] = !r->is_asked[i];
    }
    char *what = hwnas_printf("%s=%s", choice->name, label);
    const hwnas_status status = judge(r, what, choice->name);
    free(what);
    return status;
}

/* The tenth of the rows that is nearest to one of them. */
static hwnas_status leave_out_ball(const run *r, int number)
{
    const size_t n = r->sample->rows.n, n_genes = r->sample->space->n_genes;
    hwnas_arch *const *archs = r->sample->table->archs;
    hwnas_rng rng = hwnas_rng_new(r->seed * N_BALLS + (uint64_t)number, BALL_STREAM);
    const size_t centre = hwnas_rng_below(&rng, (uint32_t)n);
    double *distances = hwnas_alloc(2 * n * sizeof *distances), *sorted = distances + n;
    for (size_t i = 0; i < n; i++) {
        for (size_t g = 0; g < n_genes; g++)
            distances[i] += archs[i]->genes[g] != archs[centre]->genes[g];
        sorted[i] = distances[i];
    }
    hwnas_sort(sorted, n);
    const double radius = sorted[n / 10];
    for (size_t i = 0; i < n; i++) {
        r->is_asked[i] = distances[i] < radius;
        r->is_rest[i] = distances[i] > radius;
    }
    free(distances);
    char *what = hwnas_printf("ball %d", number + 1);
    const hwnas_status status = judge(r, what, NULL);
    free(what);
    return status;
}

static hwnas_status run_all(char **argv)
{
    hwnas_status status = HWNAS_OK;
    hwnas_sample sample = {0};
    run r = {.sample = &sample,
             .kind = hwnas_model_kind_named(argv[4]),
             .size = strtoul(argv[5], NULL, 10),
             .seed = strtoul(argv[6], NULL, 10)};
    if (!r.kind)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "there is no kind '%s'", argv[4]);
    TRY_OUT(hwnas_sample_load(&sample, argv[1], argv[2], argv[3]));
    r.is_asked = hwnas_alloc(sample.rows.n * sizeof *r.is_asked);
    r.is_rest = hwnas_alloc(sample.rows.n * sizeof *r.is_rest);
    for (size_t c = 0; c < sample.space->n_choices; c++) {
        const hwnas_choice *choice = &sample.space->choices[c];
        const json_t *seen = json_object_get(sample.domain, choice->name);
        for (size_t i = 0; i < json_array_size(seen) && json_array_size(seen) > 1; i++)
            TRY_OUT(leave_out_value(&r, choice, json_string_value(json_array_get(seen, i))));
    }
    for (int i = 0; i < N_BALLS; i++)
        TRY_OUT(leave_out_ball(&r, i));
out:
    free(r.is_asked);
    free(r.is_rest);
    hwnas_sample_done(&sample);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs("usage: extrapolation_runs SPACE DATA.csv TARGET KIND SIZE SEED\n", stderr);
        return 2;
    }
    if (run_all(argv) == HWNAS_OK)
        return 0;
    fprintf(stderr, "extrapolation_runs: %s\n", hwnas_last_error()->message);
    return 1;
}
