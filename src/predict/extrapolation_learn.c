/* extrapolation_learn.c: each value of each choice is left out in turn, and asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/extrapolation.h"
#include "predict/predict_priv.h"

enum {
    MIN_REST = 20,  /* different networks without the value, for a fit */
    MIN_ASKED = 10, /* rows with it, for a quantile */
    MAX_REST = 400,
    MAX_ASKED = 300,
    MAX_TRIED = 64, /* values of a choice */
    END_SHARE = 10, /* one in so many rows is at an end of a size */
};

/* Half the width of a normal distribution's 90 % interval, in standard deviations. */
static const double z_90 = 1.6448536269514722;

/* The same of Student's distribution: an error that was seen n times says of the next one only
 * this. From eleven on the first terms of its expansion do (Abramowitz and Stegun, 26.7.5). */
static double student_90(size_t n)
{
    static const double few[] = {6.314, 2.920, 2.353, 2.132, 2.015,
                                 1.943, 1.895, 1.860, 1.833, 1.812};
    return n <= sizeof few / sizeof *few ? few[n - 1]
                                         : z_90 + (pow(z_90, 3) + z_90) / (4 * (double)n);
}

typedef struct learner {
    const hwnas_model *model;
    const hwnas_rows *rows;
    hwnas_arch *const *archs;
    const hwnas_space *space;
    uint64_t seed;
} learner;

static bool has_label(const learner *l, const hwnas_arch *arch, const hwnas_choice *choice,
                      const char *label)
{
    for (size_t g = choice->first_gene; g < choice->first_gene + choice->n_positions; g++)
        if (!strcmp(l->space->genes[g].labels[arch->genes[g]], label) &&
            hwnas_arch_is_active(arch, g))
            return true;
    return false;
}

/* Keeps at most so many of the marked rows, evenly spread; returns how many. */
static size_t thin(bool *is_kept, size_t n, size_t most)
{
    size_t n_marked = 0, at = 0, n_kept = 0;
    for (size_t i = 0; i < n; i++)
        n_marked += is_kept[i];
    for (size_t i = 0; i < n && n_marked > most; i++) {
        if (!is_kept[i])
            continue;
        is_kept[i] = (at + 1) * most / n_marked > at * most / n_marked;
        at++;
    }
    for (size_t i = 0; i < n; i++)
        n_kept += is_kept[i];
    return n_kept;
}

static bool can_be_learned_from(const hwnas_rows *rows)
{
    bool is_flat = true;
    for (size_t i = 1; i < rows->n; i++)
        is_flat &= rows->values[i] == rows->values[0];
    return !is_flat && hwnas_rows_networks(rows) >= MIN_REST;
}

/* The deviation with which 90 % of the rows lie inside their 90 % intervals. All of an error
 * counts, not what lies outside the model's own interval: of an error that fits by chance the next
 * one may not. */
static double find_error(const hwnas_model *model, const hwnas_rows *asked)
{
    double *errors = hwnas_alloc(asked->n * sizeof *errors);
    hwnas_estimate *estimates = hwnas_alloc(asked->n * sizeof *estimates);
    hwnas_model_predict(estimates, model, asked->columns, asked->n);
    for (size_t i = 0; i < asked->n; i++)
        errors[i] = fabs(estimates[i].mean - asked->values[i]);
    free(estimates);
    hwnas_sort(errors, asked->n);
    const double error = hwnas_quantile(errors, asked->n, 0.9) / z_90;
    free(errors);
    return error;
}

/* *out: the deviation for each step; NaN: the value cannot be left out. */
static hwnas_status leave_out(double *out, const learner *l, const hwnas_choice *choice,
                              const char *label, double distance)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = l->rows->n;
    hwnas_model *model = NULL;
    hwnas_rows rest = {0}, asked = {0};
    bool *is_asked = hwnas_alloc(n * sizeof *is_asked), *is_rest = hwnas_alloc(n * sizeof *is_rest);
    *out = NAN;
    for (size_t i = 0; i < n; i++) {
        is_asked[i] = has_label(l, l->archs[i], choice, label);
        is_rest[i] = !is_asked[i];
    }
    if (thin(is_asked, n, MAX_ASKED) < MIN_ASKED || thin(is_rest, n, MAX_REST) < MIN_REST)
        goto out;
    rest = hwnas_rows_keep(l->rows, is_rest);
    asked = hwnas_rows_keep(l->rows, is_asked);
    if (!can_be_learned_from(&rest))
        goto out;
    TRY_OUT(hwnas_model_refit(&model, l->model, &rest, l->seed));
    *out = find_error(model, &asked) / distance;
out:
    hwnas_model_free(model);
    hwnas_rows_done(&rest);
    hwnas_rows_done(&asked);
    free(is_asked);
    free(is_rest);
    return status;
}

static double round_to_4(double value)
{
    if (!(value > 0))
        return 0;
    const double unit = pow(10, floor(log10(value)) - 3);
    return rint(value / unit) * unit;
}

/* What n errors say of the next one. */
static double expect(const double *errors, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += errors[i] * errors[i];
    return sqrt(sum / (double)n) * student_90(n) / z_90;
}

/* Errors of values between others and of those at an end are apart: the first are smaller, but
 * never by chance alone. NULL in *out: no value can be left out. */
static hwnas_status learn_choice(json_t **out, const learner *l, const hwnas_choice *choice,
                                 const json_t *seen)
{
    double errors[2][MAX_TRIED];
    size_t n[2] = {0, 0};
    *out = NULL;
    for (size_t i = 0; i < json_array_size(seen) && i < MAX_TRIED && json_array_size(seen) > 1;
         i++) {
        const char *label = json_string_value(json_array_get(seen, i));
        double error;
        json_t *others = json_copy((json_t *)seen);
        json_array_remove(others, i);
        const hwnas_reach reach = hwnas_reach_of(l->space, choice, label, others);
        json_decref(others);
        TRY(leave_out(&error, l, choice, label, reach.distance));
        if (!isnan(error))
            errors[reach.is_between][n[reach.is_between]++] = error;
    }
    if (!n[0] && !n[1])
        return HWNAS_OK;
    const double beyond = n[0] ? expect(errors[0], n[0]) : expect(errors[1], n[1]);
    const double between = n[1] ? fmin(expect(errors[1], n[1]), beyond) : beyond;
    *out = json_pack("{s:I, s:f, s:f}", "tried", (json_int_t)(n[0] + n[1]), "between",
                     round_to_4(between), "beyond", round_to_4(beyond));
    return HWNAS_OK;
}

/* Of the rows' results. */
static double mean_slope(const hwnas_model *model, const hwnas_rows *rows)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const double slope = model->kind->slope(model, rows->values[i]);
        if (isfinite(slope)) {
            sum += slope;
            n++;
        }
    }
    return n && sum > 0 ? sum / (double)n : 1;
}

/* ---- Sizes ---- */

/* The rows at the ends of all sizes, a tenth at each: is_end[row]. */
static void mark_ends(bool *is_end, const hwnas_rows *rows, const hwnas_sizes *sizes)
{
    const size_t n = rows->n, width = rows->encoding->n_columns;
    const size_t n_tenth = n / END_SHARE > MIN_ASKED ? n / END_SHARE : MIN_ASKED;
    double *sorted = hwnas_alloc(n * sizeof *sorted);
    for (size_t s = 0; s < sizes->n && n > 2 * n_tenth; s++) {
        const double *of = rows->columns + sizes->ranges[s].column;
        for (size_t i = 0; i < n; i++)
            sorted[i] = of[i * width];
        hwnas_sort(sorted, n);
        const double low = sorted[n_tenth - 1], high = sorted[n - n_tenth];
        for (size_t i = 0; i < n; i++)
            is_end[i] |= of[i * width] <= low || of[i * width] >= high;
    }
    free(sorted);
}

/* The deviation for a factor e of a size beyond one end of what the model was fitted to, where a
 * step on its scale means no more than in the mean (`slope`); NaN: too few rows lie there. */
static double find_size_error(const hwnas_model *model, double slope, const hwnas_rows *asked,
                              const hwnas_size_range *range, bool is_above)
{
    const size_t width = asked->encoding->n_columns;
    double *errors = hwnas_alloc(2 * asked->n * sizeof *errors), *steps = errors + asked->n;
    size_t n = 0;
    for (size_t i = 0; i < asked->n; i++) {
        const double *row = asked->columns + i * width;
        const double excess = hwnas_size_excess(range, row);
        hwnas_estimate estimate;
        if (is_above ? !(excess > 0) : !(excess < 0))
            continue;
        hwnas_model_predict(&estimate, model, row, 1);
        steps[n] = fabs(excess);
        const double stretch = model->kind->slope(model, estimate.mean) / slope;
        errors[n++] =
            fabs(estimate.mean - asked->values[i]) / (isfinite(stretch) ? fmax(stretch, 1) : 1);
    }
    hwnas_sort(errors, n);
    hwnas_sort(steps, n);
    const double error =
        n < MIN_ASKED / 2 ? NAN
                          : hwnas_quantile(errors, n, 0.9) / z_90 / hwnas_quantile(steps, n, 0.5);
    free(errors);
    return error;
}

static void set_if_known(json_t *object, const char *key, double value)
{
    if (!isnan(value))
        json_object_set_new(object, key, json_real(round_to_4(value)));
}

/* {NAME: {"below", "above"}}: what is known of it. */
static hwnas_status learn_sizes(json_t **out, const learner *l)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_rows *rows = l->rows;
    hwnas_model *model = NULL;
    hwnas_rows rest = {0}, asked = {0};
    bool *is_asked = hwnas_alloc(rows->n * sizeof *is_asked);
    bool *is_rest = hwnas_alloc(rows->n * sizeof *is_rest);
    json_t *sizes = json_object(), *ranges = NULL;
    ranges = hwnas_fact_ranges(rows);
    const hwnas_sizes all = hwnas_sizes_of(rows->encoding, ranges);
    mark_ends(is_asked, rows, &all);
    for (size_t i = 0; i < rows->n; i++)
        is_rest[i] = !is_asked[i];
    if (thin(is_asked, rows->n, MAX_ASKED) < MIN_ASKED ||
        thin(is_rest, rows->n, MAX_REST) < MIN_REST)
        goto out;
    rest = hwnas_rows_keep(rows, is_rest);
    asked = hwnas_rows_keep(rows, is_asked);
    if (!can_be_learned_from(&rest))
        goto out;
    TRY_OUT(hwnas_model_refit(&model, l->model, &rest, l->seed));
    json_decref(ranges);
    ranges = hwnas_fact_ranges(&rest);
    const hwnas_sizes inner = hwnas_sizes_of(rows->encoding, ranges);
    const double slope = mean_slope(model, rows);
    for (size_t s = 0; s < inner.n; s++) {
        const hwnas_size_range *range = &inner.ranges[s];
        json_t *error = json_object();
        set_if_known(error, "below", find_size_error(model, slope, &asked, range, false));
        set_if_known(error, "above", find_size_error(model, slope, &asked, range, true));
        json_object_set_new(sizes, inner.ranges[s].name, error);
    }
out:
    hwnas_model_free(model);
    hwnas_rows_done(&rest);
    hwnas_rows_done(&asked);
    json_decref(ranges);
    free(is_asked);
    free(is_rest);
    if (status == HWNAS_OK)
        *out = sizes;
    else
        json_decref(sizes);
    return status;
}

static double deviation(const double *values, size_t n, size_t stride)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i * stride] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i * stride] - mean) * (values[i * stride] - mean);
    return sqrt(squares / (double)(n - 1));
}

/* How results move with size: the slope of the line on which both spread as they do (the reduced
 * major axis), so it is not flattened by what else moves them. 0: the table is of one size. */
static double slope_of_macs(const hwnas_rows *rows, double spread)
{
    const hwnas_feature_encoding *e = rows->encoding;
    for (size_t c = e->first[HWNAS_COLUMN_FACT]; c < e->n_columns; c++) {
        if (strcmp(e->columns[c].name, "log macs"))
            continue;
        const double macs = deviation(rows->columns + c, rows->n, e->n_columns);
        return macs > 1e-3 ? spread / macs : 0;
    }
    return 0;
}

hwnas_status hwnas_extrapolation_learn(json_t **out, const hwnas_model *model,
                                       const hwnas_rows *rows, hwnas_arch *const *archs,
                                       const json_t *domain, uint64_t seed)
{
    const hwnas_space *space = rows->encoding->space;
    const learner l = {model, rows, archs, space, seed};
    const double spread = deviation(rows->values, rows->n, 1);
    json_t *choices = json_object(), *error, *sizes;
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        const hwnas_status status =
            learn_choice(&error, &l, choice, json_object_get(domain, choice->name));
        if (status != HWNAS_OK) {
            json_decref(choices);
            return status;
        }
        if (error)
            json_object_set_new(choices, choice->name, error);
    }
    const hwnas_status status = learn_sizes(&sizes, &l);
    if (status != HWNAS_OK) {
        json_decref(choices);
        return status;
    }
    *out = json_pack("{s:f, s:f, s:f, s:o, s:o}", "table_sd", round_to_4(spread), "per_macs",
                     round_to_4(slope_of_macs(rows, spread)), "slope",
                     round_to_4(mean_slope(model, rows)), "choices", choices, "sizes", sizes);
    return HWNAS_OK;
}
