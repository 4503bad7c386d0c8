#include "search/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/pareto.h"

/* Trials that a process sees. Its predictions cost their square. */
enum { MAX_ROWS = 192 };

/* Trials that hyper-parameters are learnt from, by so many steps of the optimiser. */
enum { MAX_LEARNING_ROWS = 160, LEARNING_STEPS = 50 };

enum { MAX_OUTPUTS = HWNAS_MAX_OBJECTIVES + HWNAS_MAX_MARGINS + 2 };

typedef enum output_kind {
    OBJECTIVE, /* logarithm of the distance from a floor */
    MARGIN,    /* log1p of the relative excess over a limit, negative where it is met */
    VIOLATION, /* the same of all limits together, never negative: where margins are not told */
    FAILURE,   /* 1 for a trial that failed, -1 for others */
} output_kind;

typedef struct output {
    output_kind kind;
    int index;
    hwnas_gp *gp; /* NULL: too little is known */
    size_t n;     /* rows */
    double *targets;
    const hwnas_encoding **rows;
} output;

struct hwnas_surrogate {
    const hwnas_strategy_config *config; /* borrowed */
    hwnas_columns *columns;
    hwnas_scale scales[HWNAS_MAX_OBJECTIVES];
    int n_outputs;
    output outputs[MAX_OUTPUTS];
    size_t n_learnt, n_seen; /* trials at the last learning, and those added since */
    bool has_pending;
};

hwnas_surrogate *hwnas_surrogate_new(const hwnas_strategy_config *config)
{
    hwnas_surrogate *s = hwnas_alloc(sizeof *s);
    s->config = config;
    return s;
}

static void clear(hwnas_surrogate *s)
{
    for (int o = 0; o < s->n_outputs; o++) {
        hwnas_gp_free(s->outputs[o].gp);
        free(s->outputs[o].targets);
        free(s->outputs[o].rows);
    }
    memset(s->outputs, 0, sizeof s->outputs);
    s->n_outputs = 0;
    hwnas_columns_free(s->columns);
    s->columns = NULL;
}

void hwnas_surrogate_free(hwnas_surrogate *s)
{
    if (!s)
        return;
    clear(s);
    free(s);
}

/* ---- Which trials ---- */

/* The number of trials at which hyper-parameters were last learnt: often while each trial tells
 * much, at ever the same interval later. */
static size_t checkpoint(size_t n)
{
    size_t interval = n < 40 ? 2 : n < 150 ? 10 : n < 1000 ? 25 : 50;
    return n - n % interval;
}

static bool knows_objectives(const hwnas_told *t, int n_objectives)
{
    for (int k = 0; k < n_objectives; k++)
        if (!isfinite(t->score.objectives[k]))
            return false;
    return !isinf(t->score.violation);
}

typedef struct choice {
    size_t index;
    double violation, distance; /* from the front, in the objectives' scales */
    uint64_t order;
} choice;

static int by_distance(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->violation != y->violation)
        return x->violation < y->violation ? -1 : 1;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_order(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1)
                                : (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* By how much a trial would have to be better to belong to the front: by the least of its leads, in
 * some objective, over the point that it lies behind most. */
static double distance_from(const hwnas_front *front, const hwnas_scale *scales, const double *y)
{
    double most = 0;
    for (size_t i = 0; i < front->n; i++) {
        double least = INFINITY;
        for (int k = 0; k < front->n_objectives; k++)
            least = fmin(least, hwnas_scale_to(&scales[k], y[k]) -
                                    hwnas_scale_to(&scales[k], front->points[i].objectives[k]));
        most = fmax(most, least);
    }
    return most;
}

static void find_front(hwnas_front *front, const hwnas_told *told, size_t n, int n_objectives)
{
    *front = (hwnas_front){.n_objectives = n_objectives};
    for (size_t i = 0; i < n; i++) {
        hwnas_point point = {.id = i};
        memcpy(point.objectives, told[i].score.objectives, sizeof point.objectives);
        if (told[i].score.violation == 0)
            hwnas_front_insert(front, &point);
    }
}

/* Half of the rows for what is near the front, where the search goes on; half for a sample of the
 * rest, the same from one learning to the next. Ascending; yours to free(). */
static choice *choose_rows(const hwnas_surrogate *s, const hwnas_told *told, size_t n,
                           size_t *n_chosen)
{
    choice *choices = hwnas_alloc((n + 1) * sizeof *choices);
    for (size_t i = 0; i < n; i++)
        choices[i] = (choice){.index = i,
                              .violation = told[i].score.violation,
                              .order = hwnas_arch_hash(told[i].encoding->arch)};
    *n_chosen = n;
    if (n <= MAX_ROWS)
        return choices;
    hwnas_front front;
    find_front(&front, told, n, s->config->n_objectives);
    for (size_t i = 0; i < n; i++)
        if (knows_objectives(&told[i], s->config->n_objectives))
            choices[i].distance = distance_from(&front, s->scales, told[i].score.objectives);
    hwnas_front_done(&front);
    qsort(choices, n, sizeof *choices, by_distance);
    qsort(choices + MAX_ROWS / 2, n - MAX_ROWS / 2, sizeof *choices, by_order);
    qsort(choices, MAX_ROWS, sizeof *choices, by_index);
    *n_chosen = MAX_ROWS;
    return choices;
}

/* ---- Outputs ---- */

/* What a trial says of an output; NaN: nothing. */
static double target_of(const hwnas_surrogate *s, const output *o, const hwnas_told *t)
{
    const hwnas_score *score = &t->score;
    bool has_failed = isinf(score->violation);
    if (o->kind == FAILURE)
        return has_failed ? 1 : -1;
    if (has_failed)
        return NAN;
    if (o->kind == VIOLATION)
        return log1p(score->violation);
    if (o->kind == MARGIN) {
        const double margin = o->index < score->n_margins ? score->margins[o->index] : NAN;
        return isnan(margin) ? NAN : log1p(fmax(margin, -1 + 1e-6)); /* -1: a value of 0 */
    }
    double y = score->objectives[o->index];
    return isfinite(y) ? hwnas_scale_to(&s->scales[o->index], y) : NAN;
}

static void add_output(hwnas_surrogate *s, output_kind kind, int index)
{
    s->outputs[s->n_outputs++] = (output){.kind = kind, .index = index};
}

static void list_outputs(hwnas_surrogate *s, const hwnas_told *told, size_t n)
{
    int n_margins = 0;
    bool some_fail = false, some_violate = false;
    for (size_t i = 0; i < n; i++) {
        bool has_failed = isinf(told[i].score.violation);
        some_fail |= has_failed;
        some_violate |= !has_failed && told[i].score.violation > 0;
        if (told[i].score.n_margins > n_margins)
            n_margins = told[i].score.n_margins;
    }
    for (int k = 0; k < s->config->n_objectives; k++)
        add_output(s, OBJECTIVE, k);
    for (int k = 0; k < n_margins; k++)
        add_output(s, MARGIN, k);
    if (some_violate && !n_margins)
        add_output(s, VIOLATION, 0);
    if (some_fail)
        add_output(s, FAILURE, 0);
}

static void fit_scales(hwnas_surrogate *s, const hwnas_told *told, size_t n)
{
    double *values = hwnas_alloc((n + 1) * sizeof *values);
    for (int k = 0; k < s->config->n_objectives; k++) {
        size_t n_known = 0;
        for (size_t i = 0; i < n; i++)
            if (!isinf(told[i].score.violation) && isfinite(told[i].score.objectives[k]))
                values[n_known++] = told[i].score.objectives[k];
        s->scales[k] = n_known ? hwnas_scale_fit(values, n_known) : (hwnas_scale){.high = 1};
    }
    free(values);
}

static double *make_rows(const hwnas_surrogate *s, const hwnas_encoding *const *encodings, size_t n)
{
    double *rows = hwnas_alloc((n * s->columns->n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        hwnas_columns_row(s->columns, rows + i * s->columns->n, encodings[i]);
    return rows;
}

/* Gives the process its rows at the last learning. */
static hwnas_status set_rows(const hwnas_surrogate *s, output *o)
{
    double *rows = make_rows(s, o->rows, o->n);
    hwnas_status status = hwnas_gp_set(o->gp, rows, o->targets, o->n);
    free(rows);
    return status;
}

static hwnas_status learn_output(hwnas_surrogate *s, output *o, const hwnas_told *told,
                                 const choice *chosen, size_t n)
{
    o->targets = hwnas_alloc((n + 1) * sizeof *o->targets);
    o->rows = hwnas_alloc((n + 1) * sizeof *o->rows);
    for (size_t i = 0; i < n; i++) {
        double target = target_of(s, o, &told[chosen[i].index]);
        if (isnan(target))
            continue;
        o->targets[o->n] = target;
        o->rows[o->n++] = told[chosen[i].index].encoding;
    }
    if (o->n < 2)
        return HWNAS_OK;
    hwnas_gp_learning learning = {
        .n_steps = LEARNING_STEPS, .max_rows = MAX_LEARNING_ROWS, .seed = s->config->seed};
    o->gp = hwnas_gp_new(s->columns->columns, s->columns->n, true);
    TRY(set_rows(s, o));
    return hwnas_gp_learn(o->gp, &learning);
}

static hwnas_status learn(hwnas_surrogate *s, const hwnas_told *told, size_t n)
{
    hwnas_status status = HWNAS_OK;
    size_t n_chosen;
    clear(s);
    fit_scales(s, told, n);
    list_outputs(s, told, n);
    choice *chosen = choose_rows(s, told, n, &n_chosen);
    const hwnas_encoding **encodings = hwnas_alloc((n_chosen + 1) * sizeof *encodings);
    for (size_t i = 0; i < n_chosen; i++)
        encodings[i] = told[chosen[i].index].encoding;
    s->columns = hwnas_columns_new(s->config->space, encodings, n_chosen);
    for (int o = 0; o < s->n_outputs; o++)
        TRY_OUT(learn_output(s, &s->outputs[o], told, chosen, n_chosen));
    s->n_learnt = s->n_seen = n;
    s->has_pending = false;
out:
    free(encodings);
    free(chosen);
    return status;
}

/* ---- Updates ---- */

static hwnas_status add(hwnas_surrogate *s, const hwnas_encoding *encoding, const hwnas_told *told)
{
    double *row = make_rows(s, &encoding, 1), target;
    hwnas_status status = HWNAS_OK;
    for (int o = 0; o < s->n_outputs; o++) {
        output *at = &s->outputs[o];
        if (!at->gp)
            continue;
        if (told)
            target = target_of(s, at, told);
        else
            hwnas_gp_predict(at->gp, &target, NULL, row, 1);
        if (!isnan(target))
            TRY_OUT(hwnas_gp_add(at->gp, row, target));
    }
out:
    free(row);
    return status;
}

hwnas_status hwnas_surrogate_update(hwnas_surrogate *s, const hwnas_told *told, size_t n,
                                    const hwnas_encoding *const *pending, size_t n_pending)
{
    size_t from = checkpoint(n);
    if (from != s->n_learnt || !s->columns)
        TRY(learn(s, told, from));
    if (s->has_pending) { /* the last call's are told by now, or are told again */
        for (int o = 0; o < s->n_outputs; o++)
            if (s->outputs[o].gp)
                TRY(set_rows(s, &s->outputs[o]));
        s->n_seen = s->n_learnt;
    }
    for (; s->n_seen < n; s->n_seen++)
        TRY(add(s, told[s->n_seen].encoding, &told[s->n_seen]));
    for (size_t i = 0; i < n_pending; i++)
        TRY(add(s, pending[i], NULL));
    s->has_pending = n_pending > 0;
    return HWNAS_OK;
}

void hwnas_surrogate_forget(hwnas_surrogate *s)
{
    s->n_learnt = SIZE_MAX;
}

/* ---- Predictions ---- */

static double normal_cdf(double u)
{
    return 0.5 * erfc(-u * M_SQRT1_2);
}

/* That the true value is not positive. A failure is learnt as a number (least-squares
 * classification, Rasmussen and Williams, section 6.5). */
static double probability(const output *o, double mean, double sd)
{
    double noise = hwnas_gp_noise(o->gp);
    /* A violation of 0 says that the limits are met, not by how much. */
    double bound = o->kind == VIOLATION ? 0.5 * noise : 0;
    return normal_cdf((bound - mean) / sqrt(sd * sd + noise * noise + 1e-18));
}

void hwnas_surrogate_predict(const hwnas_surrogate *s, hwnas_outlook *out,
                             const hwnas_encoding *const *candidates, size_t n)
{
    int m = s->config->n_objectives;
    double *rows = make_rows(s, candidates, n);
    double *means = hwnas_alloc((n + 1) * sizeof *means), *sds = hwnas_alloc((n + 1) * sizeof *sds);
    *out = (hwnas_outlook){.n = n,
                           .n_objectives = m,
                           .means = hwnas_alloc((n * (size_t)m + 1) * sizeof *out->means),
                           .sds = hwnas_alloc((n * (size_t)m + 1) * sizeof *out->sds),
                           .feasible = hwnas_alloc((n + 1) * sizeof *out->feasible)};
    for (size_t i = 0; i < n; i++)
        out->feasible[i] = 1;
    for (int o = 0; o < s->n_outputs; o++) {
        const output *at = &s->outputs[o];
        double noise = at->gp ? hwnas_gp_noise(at->gp) : 1;
        if (at->gp)
            hwnas_gp_predict(at->gp, means, sds, rows, n);
        for (size_t i = 0; i < n; i++) {
            if (at->kind == OBJECTIVE) { /* of what nothing is known anything may be hoped */
                out->means[i * (size_t)m + (size_t)at->index] = at->gp ? means[i] : 0;
                out->sds[i * (size_t)m + (size_t)at->index] =
                    at->gp ? sqrt(sds[i] * sds[i] + noise * noise) : 1;
            } else if (at->gp) {
                out->feasible[i] *= probability(at, means[i], sds[i]);
            }
        }
    }
    free(means);
    free(sds);
    free(rows);
}

void hwnas_outlook_done(hwnas_outlook *outlook)
{
    free(outlook->means);
    free(outlook->sds);
    free(outlook->feasible);
    memset(outlook, 0, sizeof *outlook);
}

const hwnas_scale *hwnas_surrogate_scales(const hwnas_surrogate *s)
{
    return s->scales;
}

size_t hwnas_surrogate_rows(const hwnas_surrogate *s)
{
    size_t most = 0;
    for (int o = 0; o < s->n_outputs; o++)
        if (s->outputs[o].gp && s->outputs[o].gp->n > most)
            most = s->outputs[o].gp->n;
    return most;
}

size_t hwnas_surrogate_columns(const hwnas_surrogate *s)
{
    return s->columns->n;
}
