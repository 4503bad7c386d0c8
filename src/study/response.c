#include "study/response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "predict/column.h"
#include "predict/gp.h"

enum { FOLDS = 5, N_COSTS = 2 };

struct hwnas_response {
    hwnas_arena *arena;
    size_t n_columns, n_genes;
    hwnas_column *choices;
    hwnas_gp *gp;
    double error;
};

/* A choice that does not count is a value of its own. */
static void list_choices(hwnas_response *r, const hwnas_space *space)
{
    r->n_genes = space->n_genes;
    r->choices = hwnas_arena_alloc(r->arena, (space->n_genes + 1) * sizeof *r->choices);
    for (size_t g = 0; g < space->n_genes; g++)
        r->choices[g] = hwnas_column_make(r->arena, space, g, 1, HWNAS_CODING_CODE, 0, -1);
}

static void write_row(double *out, const hwnas_response *r, const hwnas_arch *arch, double macs,
                      double params)
{
    hwnas_column_fill_row(out, r->choices, r->n_genes, arch);
    out[r->n_genes] = log(1 + macs);
    out[r->n_genes + 1] = log(1 + params);
}

static hwnas_gp *new_process(size_t n_genes)
{
    size_t n = n_genes + N_COSTS;
    hwnas_gp_column *columns = hwnas_alloc(n * sizeof *columns);
    for (size_t i = 0; i < n; i++)
        columns[i] = (hwnas_gp_column){.is_categorical = i < n_genes, .group = i};
    hwnas_gp *gp = hwnas_gp_new(columns, n, true);
    free(columns);
    return gp;
}

/* With the hyper-parameters that all rows have taught. */
static hwnas_status cross_validate(hwnas_response *r, const double *rows, const double *targets,
                                   size_t n)
{
    hwnas_status status = HWNAS_OK;
    size_t width = r->n_columns;
    double *kept = hwnas_alloc(n * width * sizeof *kept), *wanted = hwnas_alloc(n * sizeof *wanted);
    double *errors = hwnas_alloc(n * sizeof *errors);
    for (size_t fold = 0; fold < FOLDS; fold++) {
        size_t n_kept = 0;
        for (size_t i = 0; i < n; i++)
            if (i % FOLDS != fold) {
                memcpy(kept + n_kept * width, rows + i * width, width * sizeof *kept);
                wanted[n_kept++] = targets[i];
            }
        TRY_OUT(hwnas_gp_set(r->gp, kept, wanted, n_kept));
        for (size_t i = fold; i < n; i += FOLDS) {
            double mean;
            hwnas_gp_predict(r->gp, &mean, NULL, rows + i * width, 1);
            errors[i] = fabs(exp(mean - targets[i]) - 1);
        }
    }
    hwnas_sort(errors, n);
    r->error = hwnas_quantile(errors, n, 0.5);
    TRY_OUT(hwnas_gp_set(r->gp, rows, targets, n));
out:
    free(kept);
    free(wanted);
    free(errors);
    return status;
}

hwnas_status hwnas_response_fit(hwnas_response **out, const hwnas_arch *const *archs,
                                const double *macs, const double *params, const double *values,
                                size_t n)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_gp_learning learning = {.max_rows = HWNAS_RESPONSE_MOST};
    *out = NULL;
    if (n < HWNAS_RESPONSE_LEAST)
        return HWNAS_OK;
    size_t n_used = n < HWNAS_RESPONSE_MOST ? n : HWNAS_RESPONSE_MOST;
    hwnas_response *r = hwnas_alloc(sizeof *r);
    r->arena = hwnas_arena_new();
    list_choices(r, archs[0]->space);
    r->n_columns = r->n_genes + N_COSTS;
    r->gp = new_process(r->n_genes);
    double *rows = hwnas_alloc(n_used * r->n_columns * sizeof *rows);
    double *targets = hwnas_alloc(n_used * sizeof *targets);
    for (size_t k = 0; k < n_used; k++) {
        size_t i = k * n / n_used; /* evenly over the study */
        write_row(rows + k * r->n_columns, r, archs[i], macs[i], params[i]);
        targets[k] = log(values[i]);
    }
    TRY_OUT(hwnas_gp_set(r->gp, rows, targets, n_used));
    TRY_OUT(hwnas_gp_learn(r->gp, &learning));
    TRY_OUT(cross_validate(r, rows, targets, n_used));
    *out = r;
    r = NULL;
out:
    free(rows);
    free(targets);
    hwnas_response_free(r);
    return status;
}

void hwnas_response_free(hwnas_response *r)
{
    if (!r)
        return;
    hwnas_gp_free(r->gp);
    hwnas_arena_free(r->arena);
    free(r);
}

void hwnas_response_predict(double *out, double *low, double *high, const hwnas_response *r,
                            const hwnas_arch *arch, double macs, double params)
{
    double *row = hwnas_alloc(r->n_columns * sizeof *row), mean, sd;
    write_row(row, r, arch, macs, params);
    hwnas_gp_predict(r->gp, &mean, &sd, row, 1);
    *out = exp(mean);
    *low = exp(mean - sd);
    *high = exp(mean + sd);
    free(row);
}

double hwnas_response_error(const hwnas_response *r)
{
    return r->error;
}
