/* mix_layers.c: which layers of a network go to which precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/mix_priv.h"

enum {
    ALONE_SAMPLES = 8, /* that one layer in bytes is run on; the order needs no more */
    MOST_REPAIRS = 16, /* steps that are tried one by one behind the first that does not fit */
    /* Of a quick choice. Over all layers ranks of noise between 4 to 12 that were run correlate
     * with those by all runs as 0.68 to 0.75 in three networks; noise of the bytes that a layer
     * reads, which needs no run, does as -0.47 to 0.40. */
    QUICK_ALONE = 8,
    QUICK_REPAIRS = 2,
    STEPS = 2, /* of a layer at most: to bf16, and on to bytes */
};
/* A layer that gains less than this part of its time is left as it is. */
#define LEAST_GAIN 0.02

typedef hwnas_mix_chooser chooser;
typedef hwnas_mix_layer layer;

/* ---- What each layer costs ---- */

static hwnas_status judge_layer(chooser *c, hwnas_output_error *out, const layer *l,
                                hwnas_precision kind)
{
    c->kinds[l->node] = kind;
    const hwnas_status status =
        hwnas_answers_compare(out, NULL, c->answers, c->kinds, HWNAS_F32, ALONE_SAMPLES);
    c->kinds[l->node] = HWNAS_F32;
    return status;
}

/* Between two layers that were run, by their places in the order of the graph. */
static double between(double from, double to, double t)
{
    return pow(from, 1 - t) * pow(to, t);
}

static void fill_between(layer *layers, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        const double t = (double)(i - from) / (double)(to - from);
        const layer *a = &layers[from], *b = &layers[to];
        layers[i].alone = (hwnas_output_error){NAN, between(a->alone.noise, b->alone.noise, t)};
        layers[i].bf16_alone =
            (hwnas_output_error){NAN, between(a->bf16_alone.noise, b->bf16_alone.noise, t)};
    }
}

hwnas_status hwnas_mix_judge_alone(chooser *c)
{
    layer *layers = c->mix->layers;
    const size_t n = c->mix->n_layers;
    const int n_kinds = c->takes_bf16 ? 2 : 1;
    size_t n_run = c->options->is_quick && n > QUICK_ALONE ? QUICK_ALONE : n;
    while (n_run > 1 && !hwnas_mix_has_time(c, 2 * n_kinds * (int)n_run)) /* half for the rest */
        n_run--;
    if (n_run < 2 && n > 1) { /* by what they gain alone */
        for (size_t i = 0; i < n; i++)
            layers[i].alone = layers[i].bf16_alone = (hwnas_output_error){NAN, 1};
        return HWNAS_OK;
    }
    hwnas_mix_set_all(c, HWNAS_F32);
    for (size_t k = 0, last = 0; k < n_run; k++) {
        const size_t i = n_run > 1 ? k * (n - 1) / (n_run - 1) : 0;
        TRY(hwnas_mix_tell(c, "one layer by itself", i, n));
        TRY(judge_layer(c, &layers[i].alone, &layers[i], HWNAS_S8));
        if (c->takes_bf16)
            TRY(judge_layer(c, &layers[i].bf16_alone, &layers[i], HWNAS_BF16));
        fill_between(layers, last, i);
        last = i;
    }
    return HWNAS_OK;
}

/* ---- Which of them ---- */

/* A layer goes to another precision. */
typedef struct step {
    double cost; /* noise power for each second gained */
    size_t layer;
    hwnas_precision to;
} step;

static int by_cost(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* False: too little is gained. */
static bool add_step(step *out, const layer *l, size_t i, hwnas_precision to, double gain,
                     double noise)
{
    if (!(gain > LEAST_GAIN * l->f32_seconds))
        return false;
    *out = (step){noise / gain, i, to};
    return true;
}

/* The steps of one layer, the cheaper first: those on the lower convex hull of noise over time, as
 * for a knapsack of which each class gives one item (Sinha and Zoltners, "The Multiple-Choice
 * Knapsack Problem", 1979). Returns how many. */
static size_t steps_of(step *out, const chooser *c, size_t i, bool with_bf16)
{
    const layer *l = &c->mix->layers[i];
    const double s8_gain = l->f32_seconds - l->s8_seconds;
    const double bf16_gain = l->f32_seconds - l->bf16_seconds;
    step whole, half;
    const bool has_s8 = add_step(&whole, l, i, HWNAS_S8, s8_gain, hwnas_mix_power(l->alone));
    if (!with_bf16 ||
        !add_step(&half, l, i, HWNAS_BF16, bf16_gain, hwnas_mix_power(l->bf16_alone)) ||
        (has_s8 && whole.cost <= half.cost)) {
        *out = whole;
        return has_s8;
    }
    out[0] = half;
    return 1 + add_step(&out[1], l, i, HWNAS_S8, s8_gain - bf16_gain,
                        hwnas_mix_power(l->alone) - hwnas_mix_power(l->bf16_alone));
}

/* Of all layers, the cheapest first; returns how many. */
static size_t rank(step *out, const chooser *c, bool with_bf16)
{
    size_t n = 0;
    for (size_t i = 0; i < c->mix->n_layers; i++)
        n += steps_of(out + n, c, i, with_bf16);
    qsort(out, n, sizeof *out, by_cost);
    return n;
}

static hwnas_precision *kind_of(const chooser *c, const step *s)
{
    return &c->kinds[c->mix->layers[s->layer].node];
}

/* The first `n` of the order alone; of two of a layer the second is the later one. */
static void take_first(chooser *c, const step *order, size_t n)
{
    hwnas_mix_set_all(c, HWNAS_F32);
    for (size_t i = 0; i < n; i++)
        *kind_of(c, &order[i]) = order[i].to;
}

static void take_figures(hwnas_mix_way *out, const hwnas_mix_way *seen)
{
    out->error = seen->error;
    out->accuracy = seen->accuracy;
}

static hwnas_status judge_first(bool *fits, hwnas_mix_way *seen, chooser *c, const step *order,
                                size_t n)
{
    take_first(c, order, n);
    return hwnas_mix_judge(fits, seen, c);
}

/* The longest beginning of the order that fits, by bisection, where none of it does; the error then
 * grows with length, but for chance, so what comes out is judged itself. */
static hwnas_status choose_first(size_t *n_first, hwnas_mix_way *way, chooser *c, const step *order,
                                 size_t n)
{
    size_t low = 0, high = n + 1; /* `low` fit, `high` did not */
    bool fits;
    hwnas_mix_way seen = {.floats = way->floats};
    TRY(judge_first(&fits, &seen, c, order, n));
    if (fits)
        low = n, take_figures(way, &seen);
    else
        high = n;
    while (low + 1 < high && hwnas_mix_has_time(c, 1)) {
        const size_t middle = (low + high) / 2;
        TRY(judge_first(&fits, &seen, c, order, middle));
        if (fits)
            low = middle, take_figures(way, &seen);
        else
            high = middle;
    }
    take_first(c, order, low);
    *n_first = low;
    return HWNAS_OK;
}

/* Whether a step would make the layer faster than it is. */
static bool is_open(const chooser *c, const step *s)
{
    const hwnas_precision now = *kind_of(c, s);
    return now == HWNAS_F32 || (now == HWNAS_BF16 && s->to == HWNAS_S8);
}

/* Others may fit as well; and beside these, as errors may cancel out, any that did not. */
static hwnas_status choose_others(hwnas_mix_way *way, chooser *c, const step *order, size_t from,
                                  size_t to)
{
    size_t left = c->options->is_quick ? QUICK_REPAIRS : MOST_REPAIRS;
    bool found = true;
    for (size_t begin = from + 1; found; begin = from) {
        found = false;
        for (size_t i = begin; i < to && left && hwnas_mix_has_time(c, 1); i++) {
            hwnas_precision *kind = kind_of(c, &order[i]), before = *kind;
            hwnas_mix_way seen = {.floats = way->floats};
            bool fits;
            if (!is_open(c, &order[i]))
                continue;
            left--;
            *kind = order[i].to;
            TRY(hwnas_mix_judge(&fits, &seen, c));
            found |= fits;
            if (fits)
                take_figures(way, &seen);
            else
                *kind = before;
        }
    }
    return HWNAS_OK;
}

static int count(const chooser *c, hwnas_precision kind)
{
    int n = 0;
    for (size_t i = 0; i < c->mix->n_layers; i++)
        n += c->kinds[c->mix->layers[i].node] == kind;
    return n;
}

double hwnas_mix_tries(double n_layers)
{
    return 1 + log2(n_layers + 1) + fmin(n_layers, MOST_REPAIRS) / 2;
}

hwnas_status hwnas_mix_choose_layers(chooser *c, int w)
{
    hwnas_mix *mix = c->mix;
    hwnas_mix_way *mixed = &mix->ways[w];
    step *order = hwnas_alloc((STEPS * mix->n_layers + 1) * sizeof *order);
    const size_t n = rank(order, c, w == HWNAS_MIX_MIXED_BF16), n_nodes = mix->folded->n_nodes;
    size_t n_first = 0;
    hwnas_status status = choose_first(&n_first, mixed, c, order, n);
    if (status == HWNAS_OK)
        status = choose_others(mixed, c, order, n_first, n);
    if (status == HWNAS_OK)
        status = hwnas_mix_choose_of_all(mixed, c, w == HWNAS_MIX_MIXED_BF16);
    mixed->n_s8 = count(c, HWNAS_S8);
    mixed->n_bf16 = count(c, HWNAS_BF16);
    mixed->fits = true;
    c->kinds_in_way[w] = hwnas_alloc((n_nodes + 1) * sizeof **c->kinds_in_way);
    memcpy(c->kinds_in_way[w], c->kinds, n_nodes * sizeof **c->kinds_in_way);
    free(order);
    return status;
}
