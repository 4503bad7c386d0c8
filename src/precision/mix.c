#include "precision/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/race.h"
#include "precision/answers.h"
#include "precision/layer_times.h"

enum {
    ALONE_SAMPLES = 8, /* that one layer in bytes is run on; the order needs no more */
    MOST_REPAIRS = 16, /* layers that are tried one by one behind the first that does not fit */
    /* Of a quick choice. Over all layers ranks of noise between 4 to 12 that were run correlate
     * with those by all runs as 0.68 to 0.75 in three networks; noise of the bytes that a layer
     * reads, which needs no run, does as -0.47 to 0.40. */
    QUICK_ALONE = 8,
    QUICK_REPAIRS = 2,
};
/* A layer that gains less than this part of its time is left in floats. */
#define LEAST_GAIN 0.02
#define LEAST_LOSS 1e-9 /* rounding of a difference of two percentages */

typedef struct chooser {
    const hwnas_mix_options *options;
    hwnas_mix *mix;
    hwnas_answers *answers;
    hwnas_runner *runner;
    bool takes_bf16;                    /* asked for, and there are instructions for it */
    hwnas_precision floats;             /* of what is being tried, and ... */
    bool *stays_float;                  /* ... by node: what is not in bytes */
    bool *float_in_way[HWNAS_MIX_WAYS]; /* the same of ways that are mixed; NULL: there is none */
} chooser;

typedef struct way_kind {
    const char *name;
    hwnas_precision floats;
} way_kind;
static const way_kind way_kinds[HWNAS_MIX_WAYS] = {
    [HWNAS_MIX_F32] = {"f32", HWNAS_F32},
    [HWNAS_MIX_BF16] = {"bf16", HWNAS_BF16},
    [HWNAS_MIX_S8] = {"s8", HWNAS_F32},
    [HWNAS_MIX_MIXED] = {"mixed", HWNAS_F32},
    [HWNAS_MIX_MIXED_BF16] = {"mixed-bf16", HWNAS_BF16},
};

void hwnas_mix_done(hwnas_mix *mix)
{
    hwnas_graph_free(mix->folded);
    hwnas_graph_free(mix->graph);
    free(mix->layers);
    *mix = (hwnas_mix){0};
}

static hwnas_status tell(const chooser *c, const char *phase, size_t done, size_t of)
{
    if (c->options->progress)
        c->options->progress(c->options->context, phase, done, of);
    if (c->options->stop && *c->options->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted; nothing was written");
    return HWNAS_OK;
}

static hwnas_measure_options measuring(const chooser *c)
{
    hwnas_measure_options out = HWNAS_MEASURE_DEFAULTS;
    if (c->options->as)
        out = *c->options->as;
    if (c->options->seconds > 0)
        out.max_seconds = c->options->seconds;
    out.stop = c->options->stop;
    return out;
}

/* ---- What each layer gains and costs ---- */

static hwnas_status find_layers(hwnas_mix *mix, const hwnas_graph *graph)
{
    if (hwnas_graph_is_quantized(graph))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "the network is quantized already"),
                          "give the network of floats that it was made of");
    TRY(hwnas_graph_fold(&mix->folded, graph));
    bool *is_layer = hwnas_quantizable_products(mix->folded);
    mix->layers = hwnas_alloc((mix->folded->n_nodes + 1) * sizeof *mix->layers);
    for (size_t n = 0; n < mix->folded->n_nodes; n++)
        if (is_layer[n])
            mix->layers[mix->n_layers++] = (hwnas_mix_layer){.node = (int)n};
    free(is_layer);
    return HWNAS_OK;
}

static hwnas_status time_layers(chooser *c)
{
    hwnas_status status = HWNAS_OK;
    hwnas_mix *mix = c->mix;
    hwnas_measure_options how = measuring(c);
    const size_t n = mix->n_layers, n_times = c->takes_bf16 ? 3 : 2;
    hwnas_graph *bytes = NULL;
    int *nodes = hwnas_alloc(n * sizeof *nodes);
    double *f32 = hwnas_alloc(3 * n * sizeof *f32), *s8 = f32 + n, *bf16 = s8 + n;
    for (size_t i = 0; i < n; i++) {
        nodes[i] = mix->layers[i].node;
        bf16[i] = NAN;
    }
    TRY_OUT(tell(c, "timing layers in f32", 0, n_times));
    TRY_OUT(hwnas_layer_times(f32, c->runner, mix->folded, mix->folded, nodes, n, &how));
    TRY_OUT(tell(c, "timing layers in s8", 1, n_times));
    TRY_OUT(hwnas_answers_quantize(&bytes, c->answers, c->stays_float));
    TRY_OUT(hwnas_layer_times(s8, c->runner, bytes, mix->folded, nodes, n, &how));
    if (c->takes_bf16) {
        how.exec.precision = HWNAS_BF16;
        TRY_OUT(tell(c, "timing layers in bf16", 2, n_times));
        TRY_OUT(hwnas_layer_times(bf16, c->runner, mix->folded, mix->folded, nodes, n, &how));
    }
    for (size_t i = 0; i < n; i++) {
        mix->layers[i].f32_seconds = f32[i];
        mix->layers[i].bf16_seconds = bf16[i];
        mix->layers[i].s8_seconds = s8[i];
    }
out:
    hwnas_graph_free(bytes);
    free(nodes);
    free(f32);
    return status;
}

static double float_seconds(const chooser *c, const hwnas_mix_layer *layer)
{
    return c->floats == HWNAS_BF16 ? layer->bf16_seconds : layer->f32_seconds;
}

static double gain_of(const chooser *c, const hwnas_mix_layer *layer)
{
    return float_seconds(c, layer) - layer->s8_seconds;
}

static bool gains(const chooser *c, const hwnas_mix_layer *layer)
{
    return gain_of(c, layer) > LEAST_GAIN * float_seconds(c, layer);
}

static void set_all(chooser *c, bool stays_float)
{
    for (size_t i = 0; i < c->mix->n_layers; i++)
        c->stays_float[c->mix->layers[i].node] = stays_float;
}

static hwnas_status judge_layer(chooser *c, size_t i)
{
    hwnas_mix_layer *layer = &c->mix->layers[i];
    TRY(tell(c, "one layer in s8", i, c->mix->n_layers));
    c->stays_float[layer->node] = false;
    TRY(hwnas_answers_compare(&layer->alone, NULL, c->answers, c->stays_float, HWNAS_F32,
                              ALONE_SAMPLES));
    c->stays_float[layer->node] = true;
    return HWNAS_OK;
}

/* Between two layers that were run, by their places in the order of the graph. */
static void fill_between(hwnas_mix_layer *layers, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        const double t = (double)(i - from) / (double)(to - from);
        layers[i].alone = (hwnas_output_error){NAN, pow(layers[from].alone.noise, 1 - t) *
                                                        pow(layers[to].alone.noise, t)};
    }
}

static hwnas_status judge_alone(chooser *c)
{
    const size_t n = c->mix->n_layers;
    const size_t n_run = c->options->is_quick && n > QUICK_ALONE ? QUICK_ALONE : n;
    set_all(c, true);
    for (size_t k = 0, last = 0; k < n_run; k++) {
        const size_t i = n_run > 1 ? k * (n - 1) / (n_run - 1) : 0;
        TRY(judge_layer(c, i));
        fill_between(c->mix->layers, last, i);
        last = i;
    }
    return HWNAS_OK;
}

/* ---- Which of them ---- */

typedef struct ranked {
    double cost; /* noise power for each second gained */
    size_t layer;
} ranked;

static int by_cost(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* Those that gain something, the cheapest first; returns how many. */
static size_t rank(ranked *out, const chooser *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->mix->n_layers; i++) {
        const hwnas_mix_layer *layer = &c->mix->layers[i];
        if (gains(c, layer))
            out[n++] = (ranked){layer->alone.noise * layer->alone.noise / gain_of(c, layer), i};
    }
    qsort(out, n, sizeof *out, by_cost);
    return n;
}

/* What a way loses, and whether it may; `way` gets the figures. */
static hwnas_status judge(bool *fits, hwnas_mix_way *way, chooser *c)
{
    const double right = hwnas_answers_accuracy(c->answers).value;
    TRY(tell(c, "which layers together", 0, 0));
    TRY(hwnas_answers_compare(&way->error, &way->accuracy, c->answers, c->stays_float, c->floats,
                              0));
    const bool is_scored = isfinite(right);
    *fits = way->error.largest <= c->options->max_error &&
            (!is_scored || right - way->accuracy.value <= c->options->max_loss + LEAST_LOSS);
    return HWNAS_OK;
}

static void take_figures(hwnas_mix_way *out, const hwnas_mix_way *seen)
{
    out->error = seen->error;
    out->accuracy = seen->accuracy;
}

/* The first `n` of the order in bytes. */
static hwnas_status judge_first(bool *fits, hwnas_mix_way *way, chooser *c, const ranked *order,
                                size_t n)
{
    set_all(c, true);
    for (size_t i = 0; i < n; i++)
        c->stays_float[c->mix->layers[order[i].layer].node] = false;
    return judge(fits, way, c);
}

/* The longest beginning of the order that fits, by bisection, where none of it does; the error then
 * grows with length, but for chance, so what comes out is judged itself. */
static hwnas_status choose_first(size_t *n_first, hwnas_mix_way *way, chooser *c,
                                 const ranked *order, size_t n)
{
    size_t low = 0, high = n + 1; /* `low` fit, `high` did not */
    bool fits;
    hwnas_mix_way seen;
    TRY(judge_first(&fits, &seen, c, order, n));
    if (fits)
        low = n, take_figures(way, &seen);
    else
        high = n;
    while (low + 1 < high) {
        const size_t middle = (low + high) / 2;
        TRY(judge_first(&fits, &seen, c, order, middle));
        if (fits)
            low = middle, take_figures(way, &seen);
        else
            high = middle;
    }
    set_all(c, true);
    for (size_t i = 0; i < low; i++)
        c->stays_float[c->mix->layers[order[i].layer].node] = false;
    *n_first = low;
    return HWNAS_OK;
}

/* Others may fit as well; and beside these, as errors may cancel out, any that did not. */
static hwnas_status choose_others(size_t *n_chosen, hwnas_mix_way *way, chooser *c,
                                  const ranked *order, size_t from, size_t to)
{
    size_t left = c->options->is_quick ? QUICK_REPAIRS : MOST_REPAIRS, n_before = SIZE_MAX;
    for (size_t begin = from + 1; n_before != *n_chosen; begin = from) {
        n_before = *n_chosen;
        for (size_t i = begin; i < to && left; i++) {
            bool *stays_float = &c->stays_float[c->mix->layers[order[i].layer].node], fits;
            hwnas_mix_way seen;
            if (!*stays_float)
                continue;
            left--;
            *stays_float = false;
            TRY(judge(&fits, &seen, c));
            *stays_float = !fits;
            *n_chosen += fits;
            if (fits)
                take_figures(way, &seen);
        }
    }
    return HWNAS_OK;
}

/* Of a way that mixes, beside floats that fit by themselves. */
static hwnas_status choose_layers(chooser *c, int w)
{
    hwnas_mix *mix = c->mix;
    hwnas_mix_way *mixed = &mix->ways[w];
    ranked *order = hwnas_alloc(mix->n_layers * sizeof *order);
    c->floats = mixed->floats;
    const size_t n = rank(order, c), n_nodes = mix->folded->n_nodes;
    size_t n_chosen = 0;
    hwnas_status status = choose_first(&n_chosen, mixed, c, order, n);
    if (status == HWNAS_OK)
        status = choose_others(&n_chosen, mixed, c, order, n_chosen, n);
    mixed->n_s8 = (int)n_chosen;
    mixed->fits = true;
    c->float_in_way[w] = hwnas_alloc((n_nodes + 1) * sizeof **c->float_in_way);
    memcpy(c->float_in_way[w], c->stays_float, n_nodes * sizeof **c->float_in_way);
    free(order);
    return status;
}

/* ---- What the whole network takes ---- */

/* Measures the ways in turns; of those that fit, the one with the shortest median is chosen. */
static hwnas_status measure(chooser *c, hwnas_graph *const *graphs)
{
    hwnas_mix *mix = c->mix;
    hwnas_measure_options how = measuring(c);
    const hwnas_graph *there[HWNAS_MIX_WAYS];
    hwnas_precision floats[HWNAS_MIX_WAYS];
    int way_of[HWNAS_MIX_WAYS], n = 0;
    hwnas_race race = {0};
    for (int i = 0; i < HWNAS_MIX_WAYS; i++)
        if (graphs[i]) {
            there[n] = graphs[i];
            floats[n] = mix->ways[i].floats;
            way_of[n++] = i;
        }
    TRY(tell(c, "measuring", 0, 0));
    hwnas_status status = hwnas_runner_race(&race, c->runner, there, floats, n, &how);
    mix->chosen = HWNAS_MIX_F32;
    for (int i = 0; i < n && status == HWNAS_OK; i++) {
        hwnas_mix_way *way = &mix->ways[way_of[i]];
        const hwnas_measurement *m = &race.measurements[i];
        way->time = (hwnas_timing){m->p50, m->p50_low, m->p50_high};
        mix->is_unstable |= m->is_unstable;
        if (way->fits && way->time.p50 < mix->ways[mix->chosen].time.p50)
            mix->chosen = way_of[i];
    }
    hwnas_race_done(&race);
    return status;
}

/* One that mixes is another one where it has no layer in bytes, or all of them beside f32. */
static bool is_really_mixed(const chooser *c, int w)
{
    const hwnas_mix_way *way = &c->mix->ways[w];
    return c->float_in_way[w] && way->n_s8 &&
           (way->floats != HWNAS_F32 || way->n_s8 < (int)c->mix->n_layers);
}

static bool *floats_of(const chooser *c, int w)
{
    return c->float_in_way[w] ? c->float_in_way[w] : c->stays_float;
}

/* The graph of a way; NULL: there is none that is not another one's. */
static hwnas_status make_way(hwnas_graph **out, chooser *c, int w)
{
    hwnas_mix *mix = c->mix;
    const bool is_plain = w == HWNAS_MIX_F32 || (w == HWNAS_MIX_BF16 && c->takes_bf16);
    *out = NULL;
    set_all(c, false);
    if (is_plain)
        return hwnas_graph_fold(out, mix->folded); /* a copy */
    if (w != HWNAS_MIX_S8 && !is_really_mixed(c, w))
        return HWNAS_OK;
    return hwnas_answers_quantize(out, c->answers, floats_of(c, w));
}

static hwnas_status hold_out(chooser *c, hwnas_graph *const *graphs)
{
    const hwnas_mix_samples *samples = c->options->samples;
    for (int w = 0; w < HWNAS_MIX_WAYS && samples && samples->n_labels; w++) {
        hwnas_mix_way *way = &c->mix->ways[w];
        TRY(tell(c, "samples that are held out", (size_t)w, HWNAS_MIX_WAYS));
        if (graphs[w] && (!c->options->is_quick || w == HWNAS_MIX_F32 || w == c->mix->chosen))
            TRY(hwnas_answers_hold_out(&way->held_out, c->answers, graphs[w], way->floats));
    }
    return HWNAS_OK;
}

static bool is_s8_in_way(const chooser *c, int w, int node)
{
    return w != HWNAS_MIX_F32 && w != HWNAS_MIX_BF16 && !floats_of(c, w)[node];
}

static hwnas_status take_fastest(chooser *c)
{
    hwnas_status status = HWNAS_OK;
    hwnas_mix *mix = c->mix;
    hwnas_graph *graphs[HWNAS_MIX_WAYS] = {NULL};
    for (int w = 0; w < HWNAS_MIX_WAYS; w++)
        TRY_OUT(make_way(&graphs[w], c, w));
    TRY_OUT(measure(c, graphs));
    TRY_OUT(hold_out(c, graphs));
    mix->graph = graphs[mix->chosen];
    graphs[mix->chosen] = NULL;
    for (size_t i = 0; i < mix->n_layers; i++)
        mix->layers[i].is_s8 = is_s8_in_way(c, mix->chosen, mix->layers[i].node);
out:
    for (int w = 0; w < HWNAS_MIX_WAYS; w++)
        hwnas_graph_free(graphs[w]);
    return status;
}

/* A way without a choice of layers. */
static hwnas_status judge_way(chooser *c, int w)
{
    hwnas_mix_way *way = &c->mix->ways[w];
    set_all(c, w != HWNAS_MIX_S8);
    c->floats = way->floats;
    way->n_s8 = w == HWNAS_MIX_S8 ? (int)c->mix->n_layers : 0;
    return judge(&way->fits, way, c);
}

static hwnas_status choose(chooser *c, const hwnas_graph *graph)
{
    hwnas_mix *mix = c->mix;
    TRY(find_layers(mix, graph));
    if (!mix->n_layers && c->options->is_quick)
        return hwnas_graph_fold(&mix->graph, mix->folded);
    if (!mix->n_layers)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "the network has no convolution and no product with weights, so there is "
                          "nothing to quantize");
    c->stays_float = hwnas_alloc((mix->folded->n_nodes + 1) * sizeof *c->stays_float);
    TRY(tell(c, "computing in f32", 0, 0));
    TRY(hwnas_answers_open(&c->answers, mix->folded, c->options));
    mix->ways[HWNAS_MIX_F32].accuracy = hwnas_answers_accuracy(c->answers);
    TRY(hwnas_runner_open(&c->runner, "cpu", c->options->threads));
    c->takes_bf16 = c->options->takes_bf16 && hwnas_answers_has_native(c->answers, HWNAS_BF16);
    if (c->takes_bf16)
        TRY(judge_way(c, HWNAS_MIX_BF16));
    TRY(judge_way(c, HWNAS_MIX_S8));
    TRY(time_layers(c));
    TRY(judge_alone(c));
    TRY(choose_layers(c, HWNAS_MIX_MIXED));
    if (c->takes_bf16 && mix->ways[HWNAS_MIX_BF16].fits)
        TRY(choose_layers(c, HWNAS_MIX_MIXED_BF16));
    return take_fastest(c);
}

hwnas_status hwnas_mix_choose(hwnas_mix *out, const hwnas_graph *graph,
                              const hwnas_mix_options *options)
{
    chooser c = {.options = options, .mix = out};
    *out = (hwnas_mix){0};
    for (int i = 0; i < HWNAS_MIX_WAYS; i++)
        out->ways[i] = (hwnas_mix_way){.name = way_kinds[i].name,
                                       .floats = way_kinds[i].floats,
                                       .time = {NAN, NAN, NAN},
                                       .accuracy = {NAN, NAN, NAN},
                                       .held_out = {NAN, NAN, NAN}};
    out->ways[HWNAS_MIX_F32].fits = true;
    const hwnas_status status = choose(&c, graph);
    hwnas_answers_close(c.answers);
    hwnas_runner_close(c.runner);
    for (int i = 0; i < HWNAS_MIX_WAYS; i++)
        free(c.float_in_way[i]);
    free(c.stays_float);
    return status;
}

char *hwnas_mix_word(const hwnas_mix *mix)
{
    char *word = hwnas_alloc(mix->n_layers + 1);
    for (size_t i = 0; i < mix->n_layers; i++)
        word[i] = mix->layers[i].is_s8 ? 's' : 'f';
    return word;
}

hwnas_status hwnas_mix_make(hwnas_graph **out, const hwnas_graph *graph, const char *word,
                            const hwnas_mix_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_mix mix = {0};
    chooser c = {.options = options, .mix = &mix};
    TRY_OUT(find_layers(&mix, graph));
    if (strlen(word) != mix.n_layers) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL,
                            "precisions of %zu layers are not those of a network that has %zu",
                            strlen(word), mix.n_layers);
        goto out;
    }
    c.stays_float = hwnas_alloc((mix.folded->n_nodes + 1) * sizeof *c.stays_float);
    for (size_t i = 0; i < mix.n_layers; i++)
        c.stays_float[mix.layers[i].node] = word[i] != 's';
    if (!strchr(word, 's')) {
        status = hwnas_graph_fold(out, mix.folded);
        goto out;
    }
    TRY_OUT(hwnas_answers_open(&c.answers, mix.folded, options));
    status = hwnas_answers_quantize(out, c.answers, c.stays_float);
out:
    hwnas_answers_close(c.answers);
    free(c.stays_float);
    hwnas_mix_done(&mix);
    return status;
}
