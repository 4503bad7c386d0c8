/* Does `--dtype mixed-bf16` find the best choice of layers? For small networks every choice of f32,
 * bf16 (where the processor has it) and 8-bit integers for each layer, and the whole network in
 * bf16, is run on the samples; those within the limit are measured in turns with what was chosen,
 * the fastest of them twice.
 * usage: benchmarks/mix_exhaustive [--quick] [PERCENT]
 * PERCENT: the limit on the error (1). --quick: the smallest network, shorter. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/figure.h"
#include "measure/race.h"
#include "measure/runner.h"
#include "precision/answers.h"
#include "precision/mix.h"
#include "profile/model_load.h"

enum { MOST_LAYERS = 6, MOST_WAYS = 729 + 1 /* 3^6 choices, and all in bf16 */, GOAL = 97 };
/* The fastest of all race so many times more. Each race compiles them anew: by where its memory
 * lies, one and the same network takes up to 7 % longer. */
enum { FINALISTS = 5, FINALS = 9 };

/* Digits of a choice. */
static const hwnas_precision kinds_of[] = {HWNAS_F32, HWNAS_S8, HWNAS_BF16};

typedef struct way {
    hwnas_precision floats;
    unsigned choice; /* a digit for each layer, the first one's is the last */
    hwnas_graph *graph;
    hwnas_judgement to_chosen; /* how its time differs from that of the chosen one */
} way;

static void must(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "%s\n", hwnas_last_error()->message);
    exit(2);
}

/* Whether it is within the limit: then it is one of them. */
static bool add_way(way *out, const hwnas_mix_options *options, hwnas_answers *answers,
                    const hwnas_precision *kinds, hwnas_precision floats)
{
    hwnas_output_error error;
    must(hwnas_answers_compare(&error, NULL, answers, kinds, floats, 0));
    if (error.largest > options->max_error)
        return false;
    *out = (way){.floats = floats};
    must(hwnas_answers_make(&out->graph, answers, kinds));
    return true;
}

/* Those within the limit. */
static int find_ways(way *out, unsigned n_kinds, const hwnas_mix *mix, hwnas_answers *answers,
                     const hwnas_mix_options *options)
{
    int n = 0;
    unsigned n_choices = 1;
    hwnas_precision *kinds = calloc(mix->folded->n_nodes + 1, sizeof *kinds);
    for (size_t i = 0; i < mix->n_layers; i++)
        n_choices *= n_kinds;
    if (n_kinds > 2)
        n += add_way(&out[n], options, answers, kinds, HWNAS_BF16);
    for (unsigned choice = 0; choice < n_choices; choice++) {
        for (size_t i = 0, left = choice; i < mix->n_layers; i++, left /= n_kinds)
            kinds[mix->layers[i].node] = kinds_of[left % n_kinds];
        if (add_way(&out[n], options, answers, kinds, HWNAS_F32))
            out[n++].choice = choice;
    }
    free(kinds);
    return n;
}

/* In turns, the chosen one in each race. */
static void race_some(way *ways, int n, const hwnas_mix *mix, double seconds)
{
    hwnas_runner *runner;
    hwnas_measure_options how = HWNAS_MEASURE_DEFAULTS;
    how.max_seconds = seconds;
    must(hwnas_runner_open(&runner, "cpu", 1));
    for (int from = 0; from < n; from += HWNAS_RACE_MOST - 1) {
        const hwnas_graph *graphs[HWNAS_RACE_MOST] = {mix->graph};
        hwnas_precision floats[HWNAS_RACE_MOST] = {mix->ways[mix->chosen].floats};
        hwnas_race race;
        int k = 1;
        for (int i = from; i < n && k < HWNAS_RACE_MOST; i++, k++) {
            graphs[k] = ways[i].graph;
            floats[k] = ways[i].floats;
        }
        must(hwnas_runner_race(&race, runner, graphs, floats, k, &how));
        for (int i = 1; i < k; i++)
            ways[from + i - 1].to_chosen = hwnas_race_judge(&race, 0, i, 0.01);
        hwnas_race_done(&race);
    }
    hwnas_runner_close(runner);
}

static int by_ratio(const void *a, const void *b)
{
    const way *x = a, *y = b;
    return (x->to_chosen.ratio > y->to_chosen.ratio) - (x->to_chosen.ratio < y->to_chosen.ratio);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the races, from the least to the largest. */
static hwnas_judgement sum_up(double *ratios)
{
    qsort(ratios, FINALS, sizeof *ratios, by_value);
    return (hwnas_judgement){
        .ratio = ratios[FINALS / 2], .low = ratios[0], .high = ratios[FINALS - 1]};
}

/* The fastest comes first. Of so many one looks fast by chance, so those that do run again. */
static void race_ways(way *ways, int n, const hwnas_mix *mix, const hwnas_mix_options *options)
{
    const int n_last = n < FINALISTS ? n : FINALISTS;
    double ratios[FINALISTS][FINALS];
    race_some(ways, n, mix, options->seconds);
    qsort(ways, (size_t)n, sizeof *ways, by_ratio);
    for (int turn = 0; turn < FINALS; turn++) {
        race_some(ways, n_last, mix, options->seconds);
        for (int i = 0; i < n_last; i++)
            ratios[i][turn] = ways[i].to_chosen.ratio;
    }
    for (int i = 0; i < n_last; i++)
        ways[i].to_chosen = sum_up(ratios[i]);
    qsort(ways, (size_t)n_last, sizeof *ways, by_ratio);
}

/* "sbfs beside f32" */
static void print_way(const hwnas_mix *mix, const way *w, unsigned n_kinds)
{
    for (unsigned i = 0, left = w->choice; i < mix->n_layers; i++, left /= n_kinds)
        putchar("fsb"[left % n_kinds]);
    printf(" beside %s", hwnas_precision_name(w->floats));
}

static void try_network(const char *name, const hwnas_mix_options *options)
{
    hwnas_graph *graph;
    hwnas_mix mix;
    static way ways[MOST_WAYS];
    must(hwnas_model_load(&graph, name, NULL, 1, NULL));
    must(hwnas_mix_choose(&mix, graph, options));
    if (mix.n_layers > MOST_LAYERS)
        must(hwnas_fail(HWNAS_E_INPUT, NULL, "%s has %zu layers", name, mix.n_layers));
    hwnas_answers *answers;
    must(hwnas_answers_open(&answers, mix.folded, options));
    const unsigned n_kinds = hwnas_answers_has_native(answers, HWNAS_BF16) ? 3 : 2;
    const int n = find_ways(ways, n_kinds, &mix, answers, options);
    hwnas_answers_close(answers);
    race_ways(ways, n, &mix, options);
    const hwnas_mix_way *chosen = &mix.ways[mix.chosen];
    const hwnas_judgement *best = &ways[0].to_chosen;
    char *word = hwnas_mix_word(&mix);
    printf("%s: %s beside %s, error %.2f %%, %.3g us (f32 %.3g us); the fastest of %d ways within "
           "%.3g %%, ",
           name, word, hwnas_precision_name(chosen->floats), 100 * chosen->error.largest,
           1e6 * chosen->time.p50, 1e6 * mix.ways[HWNAS_MIX_F32].time.p50, n,
           100 * options->max_error);
    print_way(&mix, &ways[0], n_kinds);
    printf(", takes %.3f [%.3f, %.3f] of its time\n", best->ratio, best->low, best->high);
    free(word);
    char figure[64];
    snprintf(figure, sizeof figure, "mixed_of_best_%s", name);
    print_figure(figure, 100 * fmin(1, best->ratio), "%", GOAL);
    for (int i = 0; i < n; i++)
        hwnas_graph_free(ways[i].graph);
    hwnas_mix_done(&mix);
    hwnas_graph_free(graph);
}

int main(int argc, char **argv)
{
    static const char *const networks[] = {"mnist_mlp", "mnist_cnn", "cifar10_cnn"};
    const bool is_quick = argc > 1 && !strcmp(argv[1], "--quick");
    const char *percent = argc > 1 + is_quick ? argv[1 + is_quick] : "1";
    const hwnas_mix_options options = {.max_error = atof(percent) / 100,
                                       .takes_bf16 = true,
                                       .threads = 1,
                                       .seconds = is_quick ? 0.2 : 1};
    hwnas_runner_use(getenv("HWNAS") ? getenv("HWNAS") : "./hwnas");
    for (int i = 0; i < (is_quick ? 1 : 3); i++)
        try_network(networks[i], &options);
    return 0;
}
