/* predict_fitted.c: the kind `fitted`: a model as a file of text, and its estimates.
 *
 * The file is one JSON object, a line for each member, so that two fits can be compared by diff. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "predict/extrapolation.h"
#include "predict/predict_priv.h"

enum { BATCH = 64, MAX_FACTS = 4096 };

typedef struct fitted {
    hwnas_predictor base;
    hwnas_feature_encoding *encoding;
    hwnas_model *model;
    double *columns; /* of a batch */
    json_t *domain;  /* NULL: not known */
    hwnas_domain_map *map;              /* of it */
    hwnas_sizes sizes;                  /* none: not known, or not looked at */
    hwnas_extrapolation *extrapolation; /* NULL: not known */
} fitted;

static void free_fitted(hwnas_predictor *base)
{
    fitted *predictor = (fitted *)base;
    hwnas_model_free(predictor->model);
    hwnas_feature_encoding_free(predictor->encoding);
    free(predictor->columns);
    hwnas_extrapolation_free(predictor->extrapolation);
    hwnas_domain_map_free(predictor->map);
    json_decref(predictor->domain);
    free(predictor);
}

/* -- reading -- */

/* The names of the facts, sorted and different, as the encoding wants them. */
static hwnas_status read_facts(const char ***out, const json_t *list)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MAX_FACTS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'facts' are damaged");
    const char **facts = hwnas_alloc((n + 1) * sizeof *facts);
    for (size_t i = 0; i < n; i++) {
        facts[i] = json_string_value(json_array_get(list, i));
        if (facts[i] && (!i || strcmp(facts[i - 1], facts[i]) < 0))
            continue;
        hwnas_status status =
            hwnas_fail(HWNAS_E_INPUT, NULL, "number %zu of the predictor's facts is %s", i + 1,
                       facts[i] ? "out of order" : "not a name");
        free(facts);
        return status;
    }
    *out = facts;
    return HWNAS_OK;
}

/* The columns of the choices must be those that this version makes of the space. */
static hwnas_status check_columns(const json_t *names, const hwnas_feature_encoding *e)
{
    size_t n = e->first[HWNAS_COLUMN_FACT];
    hwnas_status status = HWNAS_OK;
    if (json_array_size(names) != n)
        status =
            hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu columns, this hwnas makes %zu",
                       json_array_size(names), n);
    for (size_t i = 0; status == HWNAS_OK && i < n; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name || strcmp(name, e->columns[i].name))
            status =
                hwnas_fail(HWNAS_E_INPUT, NULL,
                           "columns: number %zu is '%s' in the predictor and '%s' in this hwnas",
                           i + 1, name ? name : "no name", e->columns[i].name);
    }
    return status == HWNAS_OK ? status : hwnas_hint(status, "fit the predictor again");
}

/* Least and greatest of each fact; files of before have none. */
static hwnas_status check_ranges(const json_t *ranges, const hwnas_feature_encoding *e)
{
    const size_t n = e->n_columns - e->first[HWNAS_COLUMN_FACT];
    double range[2];
    if (ranges && json_array_size(ranges) != n)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu facts and %zu ranges of them",
                          n, json_array_size(ranges));
    for (size_t i = 0; ranges && i < n; i++)
        TRY(hwnas_numbers_read(range, json_array_get(ranges, i), 2, "ends of a fact's range"));
    return HWNAS_OK;
}

static hwnas_status read_members(fitted *predictor, json_t *file)
{
    const char *target, *unit, **facts = NULL, *space;
    json_t *columns, *fact_list;
    json_error_t error;
    if (json_unpack_ex(file, &error, 0, "{s:s, s:s, s:{s:s}, s:o, s:o}", "target", &target, "unit",
                       &unit, "space", "digest", &space, "columns", &columns, "facts", &fact_list))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor is damaged: %s", error.text);
    predictor->base.target = hwnas_strdup(target);
    predictor->base.unit = hwnas_strdup(unit);
    TRY(read_facts(&facts, fact_list));
    predictor->encoding =
        hwnas_feature_encoding_new(strcmp(space, HWNAS_ANY_SPACE) ? predictor->base.space : NULL,
                                   facts, json_array_size(fact_list));
    free(facts);
    TRY(hwnas_feature_encoding_use_plain(predictor->encoding));
    predictor->columns =
        hwnas_alloc(BATCH * (predictor->encoding->n_columns + 1) * sizeof *predictor->columns);
    TRY(check_columns(columns, predictor->encoding));
    TRY(check_ranges(json_object_get(file, "fact_ranges"), predictor->encoding));
    TRY(hwnas_model_read(&predictor->model, json_object_get(file, "model"), predictor->encoding));
    predictor->base.kind = predictor->model->kind->name;
    json_t *domain = json_object_get(file, "domain");
    if (!domain || !strcmp(space, HWNAS_ANY_SPACE))
        return HWNAS_OK;
    TRY(hwnas_domain_check(domain, predictor->base.space));
    predictor->domain = json_incref(domain);
    predictor->map = hwnas_domain_map_new(domain, predictor->base.space);
    if (hwnas_model_looks_at_sizes(predictor->model))
        predictor->sizes =
            hwnas_sizes_of(predictor->encoding, json_object_get(file, "fact_ranges"));
    const json_t *errors = json_object_get(file, "extrapolation");
    if (errors)
        TRY(hwnas_extrapolation_new(&predictor->extrapolation, errors, domain,
                                    predictor->base.space, predictor->map, &predictor->sizes));
    return HWNAS_OK;
}

hwnas_status hwnas_fitted_read(hwnas_predictor **out, json_t *file, const char *path,
                               const hwnas_space *space)
{
    fitted *predictor = hwnas_alloc(sizeof *predictor);
    predictor->base = (hwnas_predictor){.ops = &hwnas_predictor_fitted, .space = space};
    hwnas_status status = read_members(predictor, file);
    if (status == HWNAS_OK) {
        *out = &predictor->base;
        return HWNAS_OK;
    }
    hwnas_predictor_free(&predictor->base);
    hwnas_place place = {.file = path}; /* here it becomes known where */
    return hwnas_fail_at(status, &place);
}

/* -- estimates -- */

static hwnas_status score_fitted(hwnas_estimate *out, hwnas_predictor *base,
                                 const hwnas_arch *const *archs, size_t n)
{
    fitted *predictor = (fitted *)base;
    size_t width = predictor->encoding->n_columns;
    const bool with_facts = predictor->model->has_facts || predictor->sizes.n;
    for (size_t done = 0; done < n;) {
        size_t batch = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < batch; i++)
            TRY(hwnas_feature_encoding_row(predictor->encoding, predictor->columns + i * width,
                                           archs[done + i], with_facts));
        hwnas_model_predict(out + done, predictor->model, predictor->columns, batch);
        for (size_t i = 0; predictor->map && i < batch; i++) {
            const double *row = predictor->columns + i * width;
            hwnas_estimate *estimate = &out[done + i];
            estimate->is_outside = hwnas_domain_is_beyond(predictor->map, archs[done + i]) ||
                                   hwnas_sizes_are_beyond(&predictor->sizes, row);
            if (estimate->is_outside && predictor->extrapolation)
                hwnas_extrapolation_widen(estimate, predictor->extrapolation, archs[done + i], row,
                                          predictor->model);
        }
        done += batch;
    }
    return HWNAS_OK;
}

const hwnas_predictor_ops hwnas_predictor_fitted = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "fitted",
    .score = score_fitted,
    .free = free_fitted,
};

static const hwnas_domain_map *map_of(const hwnas_predictor *base)
{
    return base->ops == &hwnas_predictor_fitted ? ((const fitted *)base)->map : NULL;
}

/* A network that cannot be built has no size. */
static void add_sizes(hwnas_str *out, size_t n, const fitted *predictor, const hwnas_arch *arch)
{
    double *row = hwnas_alloc((predictor->encoding->n_columns + 1) * sizeof *row);
    const bool is_built = predictor->sizes.n && hwnas_feature_encoding_row(predictor->encoding, row,
                                                                           arch, true) == HWNAS_OK;
    if (!is_built)
        hwnas_error_clear();
    for (size_t i = 0; i < predictor->sizes.n && is_built; i++)
        if (hwnas_size_excess(&predictor->sizes.ranges[i], row) != 0)
            hwnas_str_addf(out, "%s%s", n++ ? " " : "",
                           predictor->sizes.ranges[i].name + strlen("log "));
    free(row);
}

void hwnas_predictor_outside(hwnas_str *out, const hwnas_predictor *base, const hwnas_arch *arch)
{
    const hwnas_domain_map *map = map_of(base);
    const hwnas_space *space = arch->space;
    size_t n = 0;
    for (size_t c = 0; map && c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        bool is_outside = false;
        for (size_t p = 0; p < choice->n_positions; p++)
            is_outside |= hwnas_domain_is_outside(map, arch, choice->first_gene + p);
        if (is_outside)
            hwnas_str_addf(out, "%s%s", n++ ? " " : "", choice->name);
    }
    if (map)
        add_sizes(out, n, (const fitted *)base, arch);
}

bool hwnas_predictor_has_seen_values(const hwnas_predictor *base, const hwnas_arch *arch)
{
    const hwnas_domain_map *map = map_of(base);
    return !map || !hwnas_domain_is_beyond(map, arch);
}

const json_t *hwnas_predictor_domain(const hwnas_predictor *base)
{
    return base->ops == &hwnas_predictor_fitted ? ((const fitted *)base)->domain : NULL;
}

const hwnas_sizes *hwnas_predictor_sizes(const hwnas_predictor *base)
{
    return base && base->ops == &hwnas_predictor_fitted ? &((const fitted *)base)->sizes : NULL;
}

/* -- writing -- */

/* Takes the value. */
static void add_member(hwnas_str *text, const char *name, json_t *value, const char *end)
{
    /* Twelve digits: estimates from a file and from the fit itself agree far below any noise. */
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS |
                                       JSON_REAL_PRECISION(12));
    hwnas_str_addf(text, "  \"%s\": %s%s\n", name, dump, end);
    free(dump);
    json_decref(value);
}

static json_t *list_names(const hwnas_feature_encoding *e, size_t first, size_t end)
{
    json_t *list = json_array();
    for (size_t c = first; c < end; c++)
        json_array_append_new(list, json_string(e->columns[c].name));
    return list;
}

json_t *hwnas_fact_ranges(const hwnas_rows *rows)
{
    const hwnas_feature_encoding *e = rows->encoding;
    json_t *ranges = json_array();
    for (size_t c = e->first[HWNAS_COLUMN_FACT]; c < e->n_columns; c++) {
        double range[2] = {INFINITY, -INFINITY};
        for (size_t i = 0; i < rows->n; i++) {
            range[0] = fmin(range[0], rows->columns[i * e->n_columns + c]);
            range[1] = fmax(range[1], rows->columns[i * e->n_columns + c]);
        }
        json_array_append_new(ranges, hwnas_numbers_write(range, 2));
    }
    return ranges;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *hwnas_fit_text(const hwnas_fit *fit)
{
    const hwnas_sample *sample = fit->sample;
    const hwnas_feature_encoding *e = sample->encoding;
    const hwnas_predictor_scores *scores = &fit->scores;
    char *digest =
        sample->space ? hwnas_space_digest(sample->space) : hwnas_strdup(HWNAS_ANY_SPACE);
    hwnas_str text = {0};
    hwnas_str_add(&text, "{\n");
    add_member(&text, "format", json_string(HWNAS_PREDICTOR_FORMAT), ",");
    add_member(&text, "version", json_integer(HWNAS_PREDICTOR_VERSION), ",");
    add_member(&text, "kind", json_string(fit->model->kind->name), ",");
    add_member(&text, "space",
               json_pack("{s:s, s:s}", "name",
                         sample->space ? sample->space->name : HWNAS_ANY_SPACE, "digest", digest),
               ",");
    add_member(&text, "target", json_string(fit->options->target), ",");
    add_member(&text, "unit", json_string(hwnas_column_unit(fit->options->target)), ",");
    add_member(&text, "rows", json_integer((json_int_t)sample->rows.n), ",");
    add_member(&text, "seed", json_integer((json_int_t)fit->options->seed), ",");
    add_member(&text, "cross_validation",
               json_pack("{s:i, s:f, s:f, s:f, s:o, s:o}", "folds", fit->n_folds, "kendall_tau",
                         scores->kendall_tau, "rmse", scores->rmse, "mean_absolute_error",
                         scores->mean_absolute_error, "top_tenth_tau",
                         number_or_null(scores->top_tenth_tau), "coverage_90",
                         number_or_null(scores->coverage_90)),
               ",");
    if (sample->domain)
        add_member(&text, "domain", json_incref(sample->domain), ",");
    if (fit->extrapolation)
        add_member(&text, "extrapolation", json_incref((json_t *)fit->extrapolation), ",");
    add_member(&text, "columns", list_names(e, 0, e->first[HWNAS_COLUMN_FACT]), ",");
    add_member(&text, "facts", list_names(e, e->first[HWNAS_COLUMN_FACT], e->n_columns), ",");
    add_member(&text, "fact_ranges", hwnas_fact_ranges(&sample->rows), ",");
    add_member(&text, "model", hwnas_model_write(fit->model), "");
    hwnas_str_add(&text, "}\n");
    free(digest);
    return text.s;
}
