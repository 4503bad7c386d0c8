/* extrapolation.c: what was learned (extrapolation_learn.c), applied to networks. */
#include "predict/extrapolation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"

/* ---- Distances ---- */

/* A label as the number that columns have; false: it is a symbol, or no value of the choice. */
static bool number_of(double *out, const hwnas_space *space, const hwnas_choice *choice,
                      const char *label, hwnas_coding coding)
{
    for (size_t p = 0; p < choice->n_positions && coding != HWNAS_CODING_CODE; p++) {
        const hwnas_gene *gene = &space->genes[choice->first_gene + p];
        for (size_t v = 0; v < gene->n_values; v++) {
            if (strcmp(gene->labels[v], label))
                continue;
            hwnas_value_number(out, &gene->values[v]);
            *out = coding == HWNAS_CODING_LOG ? log(*out) : *out;
            return true;
        }
    }
    return false;
}

hwnas_reach hwnas_reach_of(const hwnas_space *space, const hwnas_choice *choice, const char *label,
                           const json_t *others)
{
    const hwnas_coding coding = hwnas_choice_coding(space, choice);
    double own, other;
    bool has_below = false, has_above = false;
    hwnas_reach out = {.distance = 1};
    if (hwnas_domain_lists(others, label))
        return (hwnas_reach){0};
    if (!number_of(&own, space, choice, label, coding))
        return out;
    out.distance = INFINITY;
    for (size_t i = 0; i < json_array_size(others); i++) {
        const char *at = json_string_value(json_array_get(others, i));
        if (!number_of(&other, space, choice, at, coding))
            continue;
        has_below |= other < own;
        has_above |= other > own;
        out.distance = fmin(out.distance, fabs(other - own));
    }
    out.distance = isfinite(out.distance) ? out.distance : 1;
    out.is_between = has_below && has_above;
    return out;
}

/* ---- Files ---- */

typedef struct choice_error {
    bool is_known;
    double between, beyond; /* for each step */
} choice_error;

struct hwnas_extrapolation {
    const hwnas_space *space;
    const hwnas_domain_map *map;
    const hwnas_sizes *sizes;
    hwnas_size_error size_errors[HWNAS_N_SIZES]; /* of these */
    double spread, per_macs, slope;
    choice_error *errors;  /* by choice */
    hwnas_reach **reaches; /* by gene and value */
    uint16_t **nearest; /* the same: the value that was seen and is nearest, or the value itself */
};

void hwnas_extrapolation_free(hwnas_extrapolation *x)
{
    if (!x)
        return;
    for (size_t g = 0; g < x->space->n_genes; g++) {
        free(x->reaches[g]);
        free(x->nearest[g]);
    }
    free(x->reaches);
    free(x->nearest);
    free(x->errors);
    free(x);
}

static bool is_deviation(double value)
{
    return isfinite(value) && value >= 0;
}

static hwnas_status read_error(choice_error *out, const json_t *errors, const char *name)
{
    const json_t *error = json_object_get(json_object_get(errors, "choices"), name);
    if (!error)
        return HWNAS_OK;
    if (json_unpack((json_t *)error, "{s:F, s:F}", "between", &out->between, "beyond",
                    &out->beyond) ||
        !is_deviation(out->between) || !is_deviation(out->beyond))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'extrapolation' of '%s' is damaged",
                          name);
    out->is_known = true;
    return HWNAS_OK;
}

static hwnas_status check_size(const json_t *errors, const char *name)
{
    const char *const ends[] = {"below", "above"};
    const json_t *error = json_object_get(json_object_get(errors, "sizes"), name);
    for (int i = 0; i < 2; i++) {
        const json_t *end = json_object_get(error, ends[i]);
        if (end && (!json_is_number(end) || !is_deviation(json_number_value(end))))
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "the predictor's 'extrapolation' of '%s' is damaged", name);
    }
    return HWNAS_OK;
}

static uint16_t find_nearest(const hwnas_space *space, const hwnas_gene *gene, uint16_t value,
                             const json_t *seen)
{
    json_t *own = json_pack("[s]", gene->labels[value]);
    const hwnas_choice *choice = &space->choices[gene->choice];
    double least = INFINITY;
    uint16_t out = value;
    for (uint16_t v = 0; v < gene->n_values; v++) {
        const double distance = hwnas_reach_of(space, choice, gene->labels[v], own).distance;
        if (hwnas_domain_lists(seen, gene->labels[v]) && distance < least) {
            least = distance;
            out = v;
        }
    }
    json_decref(own);
    return out;
}

static void list_reaches(hwnas_extrapolation *x, size_t g, const json_t *domain)
{
    const hwnas_gene *gene = &x->space->genes[g];
    const hwnas_choice *choice = &x->space->choices[gene->choice];
    const json_t *seen = json_object_get(domain, choice->name);
    x->reaches[g] = hwnas_alloc(gene->n_values * sizeof *x->reaches[g]);
    x->nearest[g] = hwnas_alloc(gene->n_values * sizeof *x->nearest[g]);
    for (size_t v = 0; v < gene->n_values; v++) {
        x->nearest[g][v] = (uint16_t)v;
        if (hwnas_domain_has(domain, x->space, g, v))
            continue;
        x->reaches[g][v] = hwnas_reach_of(x->space, choice, gene->labels[v], seen);
        x->nearest[g][v] = find_nearest(x->space, gene, (uint16_t)v, seen);
    }
}

hwnas_status hwnas_extrapolation_new(hwnas_extrapolation **out, const json_t *errors,
                                     const json_t *domain, const hwnas_space *space,
                                     const hwnas_domain_map *map, const hwnas_sizes *sizes)
{
    hwnas_status status = HWNAS_OK;
    hwnas_extrapolation *x = hwnas_alloc(sizeof *x);
    *x = (hwnas_extrapolation){.space = space, .map = map, .sizes = sizes};
    x->reaches = hwnas_alloc((space->n_genes + 1) * sizeof *x->reaches);
    x->nearest = hwnas_alloc((space->n_genes + 1) * sizeof *x->nearest);
    x->errors = hwnas_alloc((space->n_choices + 1) * sizeof *x->errors);
    if (json_unpack((json_t *)errors, "{s:F, s:F, s:F}", "table_sd", &x->spread, "per_macs",
                    &x->per_macs, "slope", &x->slope) ||
        !is_deviation(x->spread) || !is_deviation(x->per_macs) || !(x->slope > 0)) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'extrapolation' is damaged");
        goto out;
    }
    for (size_t c = 0; c < space->n_choices; c++)
        TRY_OUT(read_error(&x->errors[c], errors, space->choices[c].name));
    for (size_t i = 0; i < sizes->n; i++) {
        TRY_OUT(check_size(errors, sizes->ranges[i].name));
        x->size_errors[i] = hwnas_extrapolation_of_size(errors, &sizes->ranges[i]);
    }
    for (size_t g = 0; g < space->n_genes; g++)
        list_reaches(x, g, domain);
    *out = x;
    x = NULL;
out:
    hwnas_extrapolation_free(x);
    return status;
}

/* ---- Networks ---- */

/* The error of one choice; 0: it is inside. *is_unknown: it is outside, and nobody knows by how
 * much. */
static double error_of(const hwnas_extrapolation *x, size_t choice, const hwnas_arch *arch,
                       bool *is_unknown)
{
    const hwnas_choice *of = &x->space->choices[choice];
    const choice_error *error = &x->errors[choice];
    double most = 0;
    for (size_t g = of->first_gene; g < of->first_gene + of->n_positions; g++) {
        if (!hwnas_domain_is_outside(x->map, arch, g))
            continue;
        const hwnas_reach *reach = &x->reaches[g][arch->genes[g]];
        *is_unknown |= !error->is_known;
        most = fmax(most, reach->distance * (reach->is_between ? error->between : error->beyond));
    }
    return most;
}

static bool find_log_macs(double *out, const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    hwnas_costs costs;
    if (hwnas_graph_build(&graph, arch, 1) != HWNAS_OK) {
        hwnas_error_clear(); /* the nearest values may not go together */
        return false;
    }
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    *out = log((double)costs.macs);
    return costs.macs > 0;
}

/* A network with the nearest values that were seen in the places of those outside. */
static hwnas_arch *move_inside(const hwnas_extrapolation *x, const hwnas_arch *arch,
                               bool unknown_only)
{
    hwnas_arch *inside = hwnas_arch_copy(arch);
    for (size_t g = 0; g < x->space->n_genes; g++)
        if (!unknown_only || !x->errors[x->space->genes[g].choice].is_known)
            inside->genes[g] = x->nearest[g][arch->genes[g]];
    return inside;
}

/* By how much the choices of which nothing is known move the MACs, as a logarithm. */
static double find_move(const hwnas_extrapolation *x, const hwnas_arch *arch)
{
    hwnas_arch *inside = move_inside(x, arch, true);
    double here, there;
    const bool is_found = find_log_macs(&here, arch) && find_log_macs(&there, inside);
    hwnas_arch_free(inside);
    return is_found ? fabs(here - there) : 0;
}

/* By how much the model thinks that the values outside move the result. */
static double find_step(const hwnas_extrapolation *x, const hwnas_arch *arch, double mean,
                        const hwnas_model *model)
{
    hwnas_arch *inside = move_inside(x, arch, false);
    double *row = hwnas_alloc((model->encoding->n_columns + 1) * sizeof *row), step = 0;
    hwnas_estimate estimate;
    if (hwnas_feature_encoding_row(model->encoding, row, inside, model->has_facts) == HWNAS_OK) {
        hwnas_model_predict(&estimate, model, row, 1);
        step = fabs(mean - estimate.mean);
    } else {
        hwnas_error_clear(); /* the nearest values do not go together */
    }
    free(row);
    hwnas_arch_free(inside);
    return step;
}

/* The greatest error of a size: MACs and parameters mostly leave the table together. */
static double error_of_size(const hwnas_extrapolation *x, const double *row)
{
    double most = 0;
    for (size_t i = 0; i < x->sizes->n && row; i++) {
        const double excess = hwnas_size_excess(&x->sizes->ranges[i], row);
        const hwnas_size_error *error = &x->size_errors[i];
        most = fmax(most, excess > 0 ? excess * error->above : -excess * error->below);
    }
    return most;
}

void hwnas_extrapolation_widen(hwnas_estimate *estimate, const hwnas_extrapolation *x,
                               const hwnas_arch *arch, const double *row, const hwnas_model *model)
{
    const double of_size = error_of_size(x, row);
    double variance = of_size * of_size, unknown = 0, step = 0;
    size_t n_unknown = 0;
    for (size_t c = 0; c < x->space->n_choices; c++) {
        bool is_unknown = false;
        const double error = error_of(x, c, arch, &is_unknown);
        variance += is_unknown ? 0 : error * error;
        n_unknown += is_unknown;
    }
    if (n_unknown)
        unknown = fmax(x->spread * sqrt((double)n_unknown), x->per_macs * find_move(x, arch));
    /* Errors of the model were seen where the table's results lie. Where a step means more than
     * there, they are greater; where it means less, nobody knows that a limit is where the model
     * sees it. */
    const double slope = model->kind->slope(model, estimate->mean);
    const double stretch = isfinite(slope) ? fmax(slope / x->slope, 1) : 1;
    const double learned = stretch * sqrt(variance);
    if (hwnas_domain_is_beyond(x->map, arch))
        step = find_step(x, arch, estimate->mean, model);
    estimate->sd = hypot(hypot(estimate->sd, step), hypot(unknown, learned));
}

/* Predictors of before do not know it, nor those of few rows: then results are taken to spread over
 * sizes that are spread evenly from end to end. */
hwnas_size_error hwnas_extrapolation_of_size(const json_t *errors, const hwnas_size_range *range)
{
    const json_t *error = json_object_get(json_object_get(errors, "sizes"), range->name);
    const json_t *below = json_object_get(error, "below"), *above = json_object_get(error, "above");
    const double spread = json_number_value(json_object_get(errors, "table_sd"));
    const double width = range->high - range->low;
    const double unknown = width > 0 ? spread * sqrt(12) / width : spread;
    return (hwnas_size_error){below ? json_number_value(below) : unknown,
                              above ? json_number_value(above) : unknown};
}

double hwnas_extrapolation_most(bool *is_known, const json_t *errors, const hwnas_space *space,
                                const hwnas_choice *choice, const json_t *seen,
                                const json_t *unseen)
{
    const json_t *error = json_object_get(json_object_get(errors, "choices"), choice->name);
    double most = 0;
    *is_known = error;
    if (!error)
        return json_number_value(json_object_get(errors, "table_sd"));
    for (size_t i = 0; i < json_array_size(unseen); i++) {
        const hwnas_reach reach =
            hwnas_reach_of(space, choice, json_string_value(json_array_get(unseen, i)), seen);
        const char *where = reach.is_between ? "between" : "beyond";
        most = fmax(most, reach.distance * json_number_value(json_object_get(error, where)));
    }
    return most;
}
