#include "precision/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "measure/race.h"
#include "precision/layer_times.h"
#include "precision/mix_priv.h"

/* Of what is left of the time, for one measurement; and what one takes at least. */
#define SHARE_OF_REST 0.2
#define LEAST_SECONDS 0.01
#define LONG_SECONDS 10 /* that somebody should know of beforehand */
#define LEAST_LOSS 1e-9 /* rounding of a difference of two percentages */

typedef hwnas_mix_chooser chooser;

typedef struct way_kind {
    const char *name;
    hwnas_precision floats;
} way_kind;
static const way_kind way_kinds[HWNAS_MIX_WAYS] = {
    [HWNAS_MIX_F32] = {"f32", HWNAS_F32},
    [HWNAS_MIX_BF16] = {"bf16", HWNAS_BF16},
    [HWNAS_MIX_S8] = {"s8", HWNAS_F32},
    [HWNAS_MIX_MIXED] = {"mixed", HWNAS_F32},
    [HWNAS_MIX_MIXED_BF16] = {"mixed-bf16", HWNAS_F32},
};

void hwnas_mix_done(hwnas_mix *mix)
{
    hwnas_graph_free(mix->folded);
    hwnas_graph_free(mix->graph);
    free(mix->layers);
    *mix = (hwnas_mix){0};
}

hwnas_status hwnas_mix_tell(const chooser *c, const char *phase, size_t done, size_t of)
{
    if (c->options->progress)
        c->options->progress(c->options->context, phase, done, of);
    if (c->options->stop && *c->options->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted; nothing was written");
    return HWNAS_OK;
}

static double seconds_left(const chooser *c)
{
    const double deadline = c->options->deadline;
    return deadline > 0 ? fmax(0, deadline - hwnas_now()) : INFINITY;
}

bool hwnas_mix_has_time(chooser *c, int n)
{
    const bool has = seconds_left(c) >= (n + 1) * c->one_try && seconds_left(c) > 0;
    c->mix->is_cut_short |= !has;
    return has;
}

hwnas_measure_options hwnas_mix_measuring(const chooser *c)
{
    hwnas_measure_options out = HWNAS_MEASURE_DEFAULTS;
    if (c->options->as)
        out = *c->options->as;
    if (c->options->seconds > 0)
        out.max_seconds = c->options->seconds;
    out.max_seconds = fmin(out.max_seconds, fmax(SHARE_OF_REST * seconds_left(c), LEAST_SECONDS));
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

/* What layers are timed in. */
static const struct timed_kind {
    hwnas_precision kind;
    const char *phase;
} timed_kinds[] = {{HWNAS_F32, "timing layers in f32"},
                   {HWNAS_S8, "timing layers in s8"},
                   {HWNAS_BF16, "timing layers in bf16"}};
enum { TIMED_KINDS = sizeof timed_kinds / sizeof *timed_kinds, ROUNDS = 2 };

/* Where layer `l` keeps it. */
static double *seconds_of(hwnas_mix_layer *l, hwnas_precision kind)
{
    return kind == HWNAS_F32  ? &l->f32_seconds
           : kind == HWNAS_S8 ? &l->s8_seconds
                              : &l->bf16_seconds;
}

/* The least that was seen. */
static hwnas_status time_kind(chooser *c, hwnas_precision kind, const int *nodes,
                              const hwnas_measure_options *how)
{
    hwnas_mix *mix = c->mix;
    hwnas_graph *graph = NULL;
    double *seconds = hwnas_alloc(mix->n_layers * sizeof *seconds);
    hwnas_mix_set_all(c, kind);
    hwnas_status status = hwnas_answers_make(&graph, c->answers, c->kinds);
    if (status == HWNAS_OK)
        status =
            hwnas_layer_times(seconds, c->runner, graph, mix->folded, nodes, mix->n_layers, how);
    for (size_t i = 0; i < mix->n_layers && status == HWNAS_OK; i++) {
        double *least = seconds_of(&mix->layers[i], kind);
        *least = fmin(*least, seconds[i]); /* of NaN and a number the number */
    }
    hwnas_graph_free(graph);
    free(seconds);
    return status;
}

/* The kinds in turns: a neighbour that slows the processor down for a minute would make one of them
 * look slow. */
static hwnas_status time_layers(chooser *c)
{
    hwnas_mix *mix = c->mix;
    hwnas_measure_options how = hwnas_mix_measuring(c);
    const size_t n_kinds = c->takes_bf16 ? TIMED_KINDS : TIMED_KINDS - 1;
    const size_t rounds = c->options->is_quick ? 1 : ROUNDS;
    hwnas_status status = HWNAS_OK;
    int *nodes = hwnas_alloc(mix->n_layers * sizeof *nodes);
    how.max_seconds /= (double)rounds;
    for (size_t i = 0; i < mix->n_layers; i++) {
        hwnas_mix_layer *l = &mix->layers[i];
        nodes[i] = l->node;
        l->f32_seconds = l->s8_seconds = l->bf16_seconds = NAN;
    }
    for (size_t k = 0; k < rounds * n_kinds && status == HWNAS_OK; k++) {
        const struct timed_kind *kind = &timed_kinds[k % n_kinds];
        status = hwnas_mix_tell(c, kind->phase, k, rounds * n_kinds);
        if (status == HWNAS_OK)
            status = time_kind(c, kind->kind, nodes, &how);
    }
    free(nodes);
    return status;
}

void hwnas_mix_set_all(chooser *c, hwnas_precision kind)
{
    for (size_t i = 0; i < c->mix->n_layers; i++)
        c->kinds[c->mix->layers[i].node] = kind;
}

hwnas_status hwnas_mix_judge(bool *fits, hwnas_mix_way *way, chooser *c)
{
    const double right = hwnas_answers_accuracy(c->answers).value;
    const double begin = hwnas_now();
    TRY(hwnas_mix_tell(c, "which layers together", 0, 0));
    TRY(hwnas_answers_compare(&way->error, &way->accuracy, c->answers, c->kinds, way->floats, 0));
    c->one_try = fmax(c->one_try, hwnas_now() - begin);
    const bool is_scored = isfinite(right);
    *fits = way->error.largest <= c->options->max_error &&
            (!is_scored || right - way->accuracy.value <= c->options->max_loss + LEAST_LOSS);
    return HWNAS_OK;
}

/* ---- What the whole network takes ---- */

/* Measures the ways in turns; of those that fit, the one with the shortest median is chosen. */
static hwnas_status measure(chooser *c, hwnas_graph *const *graphs)
{
    hwnas_mix *mix = c->mix;
    hwnas_measure_options how = hwnas_mix_measuring(c);
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
    TRY(hwnas_mix_tell(c, "measuring", 0, 0));
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

/* One that mixes is another one where it has no layer in bytes, or all of them, and none in bf16.
 */
static bool is_really_mixed(const chooser *c, int w)
{
    const hwnas_mix_way *way = &c->mix->ways[w];
    if (!c->kinds_in_way[w])
        return false;
    return way->n_bf16 || (w == HWNAS_MIX_MIXED && way->n_s8 && way->n_s8 < (int)c->mix->n_layers);
}

/* Of layers in a way. */
static const hwnas_precision *kinds_of(chooser *c, int w)
{
    if (c->kinds_in_way[w])
        return c->kinds_in_way[w];
    hwnas_mix_set_all(c, w == HWNAS_MIX_S8 ? HWNAS_S8 : HWNAS_F32);
    return c->kinds;
}

/* The graph of a way; NULL: there is none that is not another one's. */
static hwnas_status make_way(hwnas_graph **out, chooser *c, int w)
{
    const bool is_plain = w == HWNAS_MIX_F32 || (w == HWNAS_MIX_S8 && c->mix->ways[w].n_s8) ||
                          (w == HWNAS_MIX_BF16 && c->takes_bf16);
    *out = NULL;
    return is_plain || is_really_mixed(c, w) ? hwnas_answers_make(out, c->answers, kinds_of(c, w))
                                             : HWNAS_OK;
}

static hwnas_status hold_out(chooser *c, hwnas_graph *const *graphs)
{
    const hwnas_mix_samples *samples = c->options->samples;
    for (int w = 0; w < HWNAS_MIX_WAYS && samples && samples->n_labels; w++) {
        hwnas_mix_way *way = &c->mix->ways[w];
        TRY(hwnas_mix_tell(c, "samples that are held out", (size_t)w, HWNAS_MIX_WAYS));
        if (graphs[w] && (!c->options->is_quick || w == HWNAS_MIX_F32 || w == c->mix->chosen) &&
            hwnas_mix_has_time(c, 0))
            TRY(hwnas_answers_hold_out(&way->held_out, c->answers, graphs[w], way->floats));
    }
    return HWNAS_OK;
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
    const hwnas_precision *kinds = kinds_of(c, mix->chosen);
    for (size_t i = 0; i < mix->n_layers; i++)
        mix->layers[i].kind =
            mix->chosen == HWNAS_MIX_BF16 ? HWNAS_BF16 : kinds[mix->layers[i].node];
out:
    for (int w = 0; w < HWNAS_MIX_WAYS; w++)
        hwnas_graph_free(graphs[w]);
    return status;
}

/* A way without a choice of layers. */
static hwnas_status judge_way(chooser *c, int w)
{
    hwnas_mix_way *way = &c->mix->ways[w];
    hwnas_mix_set_all(c, w == HWNAS_MIX_S8 ? HWNAS_S8 : HWNAS_F32);
    way->n_s8 = w == HWNAS_MIX_S8 ? (int)c->mix->n_layers : 0;
    way->n_bf16 = w == HWNAS_MIX_BF16 ? (int)c->mix->n_layers : 0;
    return hwnas_mix_judge(&way->fits, way, c);
}

/* All in f32, which takes no measurement. */
static hwnas_status take_f32(hwnas_mix *mix)
{
    mix->chosen = HWNAS_MIX_F32;
    mix->is_cut_short = true;
    for (size_t i = 0; i < mix->n_layers; i++)
        mix->layers[i].kind = HWNAS_F32;
    return hwnas_graph_fold(&mix->graph, mix->folded);
}

/* What a choice that is not quick takes, for whoever waits for it. */
static void tell_length(const chooser *c)
{
    const double n = (double)c->mix->n_layers, n_each = hwnas_mix_tries(n);
    const int n_kinds = c->takes_bf16 ? 2 : 1, n_ways = 2 * n_kinds + 1;
    const double about = n_kinds * (n + n_each) * c->one_try +
                         (n_kinds + 1 + n_ways) * hwnas_mix_measuring(c).max_seconds;
    if (!c->options->is_quick && about > LONG_SECONDS)
        hwnas_log(
            HWNAS_LOG_NOTE,
            "choosing the precisions of %zu layers takes about %.0f s: each is run by itself, "
            "then choices of them together",
            c->mix->n_layers, about);
}

static hwnas_status choose_all(chooser *c)
{
    TRY(judge_way(c, HWNAS_MIX_S8));
    if (!hwnas_mix_has_time(c, 3))
        return HWNAS_OK;
    tell_length(c);
    TRY(time_layers(c));
    if (!hwnas_mix_has_time(c, 2))
        return HWNAS_OK;
    TRY(hwnas_mix_judge_alone(c));
    TRY(hwnas_mix_choose_layers(c, HWNAS_MIX_MIXED));
    if (c->takes_bf16 && hwnas_mix_has_time(c, 2))
        TRY(hwnas_mix_choose_layers(c, HWNAS_MIX_MIXED_BF16));
    return HWNAS_OK;
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
    if (!(seconds_left(c) > 0))
        return take_f32(mix);
    c->kinds = hwnas_alloc((mix->folded->n_nodes + 1) * sizeof *c->kinds);
    TRY(hwnas_mix_tell(c, "computing in f32", 0, 0));
    const double begin = hwnas_now();
    TRY(hwnas_answers_open(&c->answers, mix->folded, c->options));
    c->one_try = hwnas_now() - begin; /* with ranges; one in bytes is compiled instead */
    mix->ways[HWNAS_MIX_F32].accuracy = hwnas_answers_accuracy(c->answers);
    if (!hwnas_mix_has_time(c, 2))
        return take_f32(mix);
    TRY(hwnas_runner_open(&c->runner, "cpu", c->options->threads));
    c->takes_bf16 = c->options->takes_bf16 && hwnas_answers_has_native(c->answers, HWNAS_BF16) &&
                    hwnas_mix_has_time(c, 4);
    if (c->takes_bf16)
        TRY(judge_way(c, HWNAS_MIX_BF16));
    TRY(choose_all(c));
    return hwnas_mix_has_time(c, 0) ? take_fastest(c) : take_f32(mix);
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
        free(c.kinds_in_way[i]);
    free(c.kinds);
    return status;
}

/* Of a layer in a word. */
static const struct letter {
    char letter;
    hwnas_precision kind;
} letters[] = {{'f', HWNAS_F32}, {'b', HWNAS_BF16}, {'s', HWNAS_S8}};

/* Where all floats are of bf16 no layer says so. */
char *hwnas_mix_word(const hwnas_mix *mix)
{
    const bool is_low = mix->ways[mix->chosen].floats == HWNAS_BF16;
    char *word = hwnas_alloc(mix->n_layers + 1);
    for (size_t i = 0; i < mix->n_layers; i++)
        for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
            if (mix->layers[i].kind == letters[k].kind)
                word[i] = is_low && letters[k].kind == HWNAS_BF16 ? 'f' : letters[k].letter;
    return word;
}

static hwnas_precision kind_of(char letter)
{
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if (letters[k].letter == letter)
            return letters[k].kind;
    return HWNAS_F32;
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
    c.kinds = hwnas_alloc((mix.folded->n_nodes + 1) * sizeof *c.kinds);
    for (size_t i = 0; i < mix.n_layers; i++)
        c.kinds[mix.layers[i].node] = kind_of(word[i]);
    if (strchr(word, 's')) { /* bytes need ranges */
        TRY_OUT(hwnas_answers_open(&c.answers, mix.folded, options));
        status = hwnas_answers_make(out, c.answers, c.kinds);
    } else {
        status = hwnas_answers_round(out, mix.folded, c.kinds);
    }
out:
    hwnas_answers_close(c.answers);
    free(c.kinds);
    hwnas_mix_done(&mix);
    return status;
}
