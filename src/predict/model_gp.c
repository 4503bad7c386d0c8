/* model_gp.c: the kind `gp`: a Gaussian process over choices and facts about the graph.
 *
 * Which columns it sees and on which scale it works are chosen by the marginal likelihood and by
 * cross-validation. The mean is that of the process given all rows (up to MAX_ROWS), whose weights
 * the file keeps; the deviation is that of the process given a few of them, which is a little wider
 * and need not keep a great matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/domain.h"
#include "predict/gp_priv.h"
#include "predict/model.h"

enum {
    MAX_ROWS = 3000,   /* more bring little: docs/predictors.md */
    MAX_SD_ROWS = 600, /* for deviations */
    CHOOSE_ROWS = 200, /* for choosing link and columns */
    LEARN_ROWS = 800,  /* for the hyper-parameters */
    FEW_ROWS = 600,    /* below, a judge learns them anew */
    ROW_STREAM = 47,
};

/* What the process looks at. (Files of before also have a process that looks at choices alone.) */
typedef enum view { VIEW_ALL, VIEW_SIZES, VIEW_CHOICES, VIEW_FACTS, N_VIEWS } view;
static const char *const view_names[N_VIEWS] = {"choices and facts", "choices and size", "choices",
                                                "facts"};

typedef struct gp_model {
    hwnas_model base;
    view view;
    size_t n_columns;
    size_t *columns; /* of the encoding */
    hwnas_link link;
    hwnas_gp *gp;    /* the mean: x, full, parameters; its factor only after fitting */
    hwnas_gp *small; /* the deviation */
} gp_model;

static void free_gp(hwnas_model *base)
{
    gp_model *model = (gp_model *)base;
    free(model->columns);
    hwnas_gp_free(model->gp);
    hwnas_gp_free(model->small);
    free(model);
}

static bool is_seen(view v, const hwnas_column *column)
{
    bool is_fact = column->coding == HWNAS_CODING_FACT;
    bool is_size = hwnas_fact_is_size(column->name);
    switch (v) {
    case VIEW_SIZES:
        return !is_fact || is_size;
    case VIEW_CHOICES:
        return !is_fact;
    case VIEW_FACTS:
        return is_fact;
    default:
        return true;
    }
}

static bool view_is_empty(view v, const hwnas_feature_encoding *e)
{
    for (size_t c = 0; c < e->n_columns; c++)
        if (is_seen(v, &e->columns[c]))
            return false;
    return true;
}

/* Each column has a length of its own, but for the paths through a cell, which share one: there are
 * many, and none of them is special. */
static gp_model *make_gp(const hwnas_feature_encoding *e, view v)
{
    gp_model *model = hwnas_alloc(sizeof *model);
    bool has_facts = v != VIEW_CHOICES && e->first[HWNAS_COLUMN_FACT] < e->n_columns;
    model->base = (hwnas_model){&hwnas_model_gp, e, has_facts, 1};
    model->view = v;
    model->columns = hwnas_alloc((e->n_columns + 1) * sizeof *model->columns);
    hwnas_gp_column *columns = hwnas_alloc((e->n_columns + 1) * sizeof *columns);
    size_t n = 0, n_groups = 0, path_group = SIZE_MAX;
    for (size_t c = 0; c < e->n_columns; c++) {
        const hwnas_column *column = &e->columns[c];
        if (!is_seen(v, column))
            continue;
        bool is_path = hwnas_starts_with(column->name, "path ");
        model->columns[n] = c;
        columns[n].is_categorical = column->coding == HWNAS_CODING_CODE || is_path;
        if (!is_path)
            columns[n++].group = n_groups++;
        else
            columns[n++].group = path_group = path_group == SIZE_MAX ? n_groups++ : path_group;
    }
    model->n_columns = n;
    model->gp = hwnas_gp_new(columns, n, true);
    model->small = hwnas_gp_new(columns, n, true);
    free(columns);
    return model;
}

/* -- fitting -- */

/* The columns that the model looks at; yours to free(). */
static double *select_columns(const gp_model *model, const double *columns, size_t n)
{
    size_t width = model->base.encoding->n_columns;
    double *out = hwnas_alloc((n * model->n_columns + 1) * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < model->n_columns; k++)
            out[i * model->n_columns + k] = columns[i * width + model->columns[k]];
    return out;
}

/* Conditions a process on the rows, on a scale. `log_slopes` (optional): the sum of the logarithms
 * of the scale's slopes, which the density of the values has more than that of what the process
 * sees. */
static hwnas_status set_rows(hwnas_gp *gp, const gp_model *model, const hwnas_link *link,
                             const hwnas_rows *rows, double *log_slopes)
{
    double *columns = select_columns(model, rows->columns, rows->n);
    double *targets = hwnas_alloc(rows->n * sizeof *targets), slope;
    if (log_slopes)
        *log_slopes = 0;
    for (size_t i = 0; i < rows->n; i++) {
        targets[i] = hwnas_link_apply(link, rows->values[i]);
        hwnas_link_invert(link, targets[i], &slope);
        if (log_slopes)
            *log_slopes -= log(slope);
    }
    hwnas_status status = hwnas_gp_set(gp, columns, targets, rows->n);
    free(columns);
    free(targets);
    return status;
}

/* At most so many of the rows, drawn at random, in random order. */
static hwnas_rows draw_rows(const hwnas_rows *rows, size_t most, uint64_t seed)
{
    size_t width = rows->encoding->n_columns, n = rows->n < most ? rows->n : most;
    hwnas_rng rng = hwnas_rng_new(seed, ROW_STREAM);
    size_t *order = hwnas_alloc((rows->n + 1) * sizeof *order);
    hwnas_rows out = {.encoding = rows->encoding, .n = n};
    out.columns = hwnas_alloc((n + 1) * width * sizeof *out.columns);
    out.values = hwnas_alloc((n + 1) * sizeof *out.values);
    out.networks = hwnas_alloc((n + 1) * sizeof *out.networks);
    for (size_t i = 0; i < rows->n; i++)
        order[i] = i;
    for (size_t i = 0; i < n; i++) { /* Fisher and Yates, the first n */
        size_t j = i + hwnas_rng_below(&rng, (uint32_t)(rows->n - i)), row = order[j];
        order[j] = order[i];
        memcpy(out.columns + i * width, rows->columns + row * width, width * sizeof *out.columns);
        out.values[i] = rows->values[row];
        out.networks[i] = rows->networks[row];
    }
    free(order);
    return out;
}

/* The scale under which the values are likeliest, the hyper-parameters fitted to each for a few
 * steps; the process keeps those of the best. */
static hwnas_status choose_link(gp_model *model, const hwnas_rows *rows)
{
    hwnas_status status = HWNAS_OK;
    size_t n_parameters = model->gp->n_groups + HWNAS_GP_N_SHARED;
    double best = -INFINITY, *kept = hwnas_alloc(2 * n_parameters * sizeof *kept);
    double *first = kept + n_parameters;
    for (int l = 0; l < HWNAS_N_LINKS; l++) {
        hwnas_link link;
        double log_slopes, posterior;
        hwnas_link_make(&link, l, rows->values, rows->n);
        TRY_OUT(set_rows(model->gp, model, &link, rows, &log_slopes));
        TRY_OUT(hwnas_gp_learn(model->gp, &(hwnas_gp_learning){.n_steps = l ? 8 : 25}));
        if (l == 0)
            memcpy(first, model->gp->parameters, n_parameters * sizeof *first);
        TRY_OUT(hwnas_gp_log_posterior(&posterior, NULL, model->gp, model->gp->parameters));
        if (posterior + log_slopes > best) {
            best = posterior + log_slopes;
            model->link = link;
            memcpy(kept, model->gp->parameters, n_parameters * sizeof *kept);
        }
        memcpy(model->gp->parameters, first, n_parameters * sizeof *first);
    }
    memcpy(model->gp->parameters, kept, n_parameters * sizeof *kept);
out:
    free(kept);
    return status;
}

/* A deviation depends on the rows but not on their targets, so the small process is given none. */
static hwnas_status set_small(gp_model *model, const double *columns, size_t n)
{
    size_t n_few = n < MAX_SD_ROWS ? n : MAX_SD_ROWS;
    double *none = hwnas_alloc(n_few * sizeof *none);
    memcpy(model->small->parameters, model->gp->parameters,
           (model->gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *model->gp->parameters);
    hwnas_status status = hwnas_gp_set(model->small, columns, none, n_few);
    free(none);
    return status;
}

/* Hyper-parameters from at most so many rows, going on from those that there are. */
static hwnas_status learn(gp_model *model, const hwnas_rows *rows, size_t most, int n_steps,
                          uint64_t seed)
{
    hwnas_rows drawn = draw_rows(rows, most, seed + 1);
    hwnas_status status = set_rows(model->gp, model, &model->link, &drawn, NULL);
    if (status == HWNAS_OK)
        status = hwnas_gp_learn(model->gp, &(hwnas_gp_learning){.n_steps = n_steps});
    hwnas_rows_done(&drawn);
    return status;
}

/* How many steps of the likelihood's climb: of a part fewer, as it only has a share in an ensemble.
 */
static int n_steps(view v, bool is_judge)
{
    return (is_judge ? 30 : 50) / (v == VIEW_ALL ? 1 : 2);
}

static hwnas_status fit_view(hwnas_model **out, view v, const hwnas_rows *all,
                             const hwnas_model *like, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rows rows = draw_rows(all, MAX_ROWS, seed), few = {0};
    double *columns = NULL;
    gp_model *model = NULL;
    if (like) {
        const gp_model *old = (const gp_model *)like;
        model = make_gp(all->encoding, old->view);
        model->link = old->link;
        memcpy(model->gp->parameters, old->gp->parameters,
               (old->gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *old->gp->parameters);
        /* With few rows each of them has a say in the hyper-parameters, and errors of rows that had
         * one would be too small. A judge must learn from as many as what it judges: from fewer its
         * deviations are too wide for its errors, and those of what it judges come out too small.
         */
        if (rows.n < FEW_ROWS) {
            hwnas_gp_prior_centre(model->gp, model->gp->parameters);
            TRY_OUT(learn(model, &rows, LEARN_ROWS, n_steps(old->view, true), seed));
        }
    } else {
        few = draw_rows(&rows, CHOOSE_ROWS, seed);
        model = make_gp(all->encoding, v);
        TRY_OUT(choose_link(model, &few));
        TRY_OUT(learn(model, &rows, LEARN_ROWS, n_steps(v, false), seed));
    }
    TRY_OUT(set_rows(model->gp, model, &model->link, &rows, NULL));
    columns = select_columns(model, rows.columns, rows.n);
    TRY_OUT(set_small(model, columns, rows.n));
    *out = &model->base;
    model = NULL;
out:
    hwnas_model_free((hwnas_model *)model);
    hwnas_rows_done(&rows);
    hwnas_rows_done(&few);
    free(columns);
    return status;
}

static hwnas_status fit_gp(hwnas_model **out, const hwnas_rows *rows, const hwnas_model *like,
                           uint64_t seed)
{
    return fit_view(out, VIEW_ALL, rows, like, seed);
}

static hwnas_status fit_sizes(hwnas_model **out, const hwnas_rows *rows, const hwnas_model *like,
                              uint64_t seed)
{
    return fit_view(out, VIEW_SIZES, rows, like, seed);
}

static hwnas_status fit_facts(hwnas_model **out, const hwnas_rows *rows, const hwnas_model *like,
                              uint64_t seed)
{
    return fit_view(out, VIEW_FACTS, rows, like, seed);
}

/* Where there are both choices and facts; else a part would be all. */
static bool has_parts(const hwnas_feature_encoding *encoding)
{
    return !view_is_empty(VIEW_CHOICES, encoding) && !view_is_empty(VIEW_FACTS, encoding);
}

/* -- estimates -- */

static void predict_gp(hwnas_estimate *out, const hwnas_model *base, const double *columns,
                       size_t n)
{
    const gp_model *model = (const gp_model *)base;
    double *rows = select_columns(model, columns, n);
    double *means = hwnas_alloc(2 * (n + 1) * sizeof *means), *sds = means + n, slope;
    hwnas_gp_predict(model->small, means, sds, rows, n);
    hwnas_gp_predict(model->gp, means, NULL, rows, n);
    for (size_t i = 0; i < n; i++) {
        out[i].mean = hwnas_link_invert(&model->link, means[i], &slope);
        out[i].sd = slope * model->gp->target_scale * hypot(sds[i], hwnas_gp_noise(model->small));
    }
    free(rows);
    free(means);
}

static double slope_of_gp(const hwnas_model *base, double value)
{
    return hwnas_link_slope(&((const gp_model *)base)->link, value);
}

/* -- files -- */

/* The rows are kept as the encoding gave them, with the weights that the mean gives each. */
static json_t *write_gp(const hwnas_model *base)
{
    const gp_model *model = (const gp_model *)base;
    const hwnas_gp *gp = model->gp;
    json_t *file = json_object(), *rows = json_array();
    double *row = hwnas_alloc((gp->n_columns + 1) * sizeof *row);
    json_object_set_new(file, "view", json_string(view_names[model->view]));
    json_object_set_new(file, "link", hwnas_link_write(&model->link));
    json_object_set_new(file, "parameters",
                        hwnas_numbers_write(gp->parameters, gp->n_groups + HWNAS_GP_N_SHARED));
    json_object_set_new(file, "means", hwnas_numbers_write(gp->means, gp->n_columns));
    json_object_set_new(file, "scales", hwnas_numbers_write(gp->scales, gp->n_columns));
    json_object_set_new(file, "target", json_pack("[f, f]", gp->target_mean, gp->target_scale));
    json_object_set_new(file, "weights", hwnas_numbers_write(gp->full, gp->n));
    for (size_t i = 0; i < gp->n; i++) {
        hwnas_gp_own_row(gp, row, i);
        for (size_t c = 0; c < gp->n_columns; c++)
            row[c] = rint(1e6 * (row[c] * gp->scales[c] + gp->means[c])) / 1e6;
        json_array_append_new(rows, hwnas_numbers_write(row, gp->n_columns));
    }
    json_object_set_new(file, "rows", rows);
    free(row);
    return file;
}

static hwnas_status read_rows(gp_model *model, const json_t *means, const json_t *scales,
                              const json_t *target, const json_t *weights, const json_t *rows)
{
    hwnas_status status = HWNAS_OK;
    hwnas_gp *gp = model->gp;
    size_t n = json_array_size(rows), n_columns = gp->n_columns;
    double targets[2], *full = hwnas_alloc((n + 1) * sizeof *full), *columns = NULL;
    TRY_OUT(hwnas_try_alloc((void **)&columns, (n * n_columns + 1) * sizeof *columns,
                            "the predictor's rows"));
    TRY_OUT(hwnas_numbers_read(gp->means, means, n_columns, "means"));
    TRY_OUT(hwnas_numbers_read(gp->scales, scales, n_columns, "scales"));
    TRY_OUT(hwnas_numbers_read(targets, target, 2, "numbers of the target"));
    TRY_OUT(hwnas_numbers_read(full, weights, n, "weights"));
    for (size_t i = 0; i < n; i++)
        TRY_OUT(hwnas_numbers_read(columns + i * n_columns, json_array_get(rows, i), n_columns,
                                   "columns of a row"));
    bool is_positive = n > 0 && targets[1] > 0;
    for (size_t c = 0; c < n_columns; c++)
        is_positive &= gp->scales[c] > 0;
    if (!is_positive) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL,
                            "the predictor has no rows, or a scale is not positive");
        goto out;
    }
    gp->target_mean = targets[0];
    gp->target_scale = targets[1];
    TRY_OUT(hwnas_gp_restore(gp, columns, full, n));
    TRY_OUT(set_small(model, columns, n));
out:
    free(full);
    free(columns);
    return status;
}

static hwnas_status read_gp(hwnas_model **out, const json_t *file, const hwnas_feature_encoding *encoding)
{
    const char *view_name;
    json_t *link, *parameters, *means, *scales, *target, *weights, *rows;
    json_error_t error;
    if (json_unpack_ex((json_t *)file, &error, 0, "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                       "view", &view_name, "link", &link, "parameters", &parameters, "means",
                       &means, "scales", &scales, "target", &target, "weights", &weights, "rows",
                       &rows))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor is damaged: %s", error.text);
    view v = VIEW_ALL;
    while (v < N_VIEWS && strcmp(view_names[v], view_name))
        v++;
    if (v == N_VIEWS || view_is_empty(v, encoding))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor cannot look at '%s'", view_name);
    gp_model *model = make_gp(encoding, v);
    hwnas_status status = HWNAS_OK;
    size_t n_parameters = model->gp->n_groups + HWNAS_GP_N_SHARED;
    TRY_OUT(hwnas_link_read(&model->link, link));
    TRY_OUT(hwnas_numbers_read(model->gp->parameters, parameters, n_parameters, "parameters"));
    for (size_t i = 0; i < n_parameters; i++) {
        if (fabs(model->gp->parameters[i]) > 60) {
            status = hwnas_fail(HWNAS_E_INPUT, NULL, "parameter %zu is out of range", i + 1);
            goto out;
        }
    }
    TRY_OUT(read_rows(model, means, scales, target, weights, rows));
    *out = &model->base;
    model = NULL;
out:
    hwnas_model_free((hwnas_model *)model);
    return status;
}

static void describe_gp(const hwnas_model *base, hwnas_str *text, const char *unit)
{
    const gp_model *model = (const gp_model *)base;
    hwnas_str_add(text, "a Gaussian process (Matern 5/2, overlap and linear kernel), ");
    hwnas_link_describe(&model->link, text, unit);
    hwnas_str_addf(text, ";\n  it looks at %s: %zu columns of %zu rows", view_names[model->view],
                   model->n_columns, model->gp->n);
}

const hwnas_model_kind hwnas_model_gp = {
    .name = "gp",
    .help = "a Gaussian process (LAPACK): best with few rows",
    .fit = fit_gp,
    .predict = predict_gp,
    .slope = slope_of_gp,
    .write = write_gp,
    .read = read_gp,
    .describe = describe_gp,
    .free = free_gp,
};

const hwnas_model_kind hwnas_model_gp_sizes = {
    .name = "gp",
    .suits = has_parts,
    .fit = fit_sizes,
};

const hwnas_model_kind hwnas_model_gp_facts = {
    .name = "gp",
    .suits = has_parts,
    .fit = fit_facts,
};
