/* mix_few.c: of few layers, all choices.
 *
 * The greedy order leaves a gap where layers are few: the last that fits may be a small one, beside
 * a large one that does not. And times of layers add up only nearly: each is what it takes where
 * all others are in the same precision, so a change of precision between two layers is in none of
 * them. Among hundreds of layers that evens out. Among few it decides, so the best are measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/race.h"
#include "precision/mix_priv.h"

enum {
    MOST_CHOICES = 6561, /* eight layers in three precisions */
    MOST_TRIES = 64,     /* that are run */
    FINALISTS = 8,       /* of those that fit, measured in turns */
};
/* Noise adds up only nearly: a choice may have this much of the power that the limit seems to
 * allow. */
#define SLACK 1.5
/* And so do times: a choice may take this much of what is there. */
#define LONGEST 1.3
/* Of the time that a way is measured for. */
#define SHARE_OF_FINALIST 0.25

typedef hwnas_mix_chooser chooser;
typedef hwnas_mix_layer layer;

typedef struct choice {
    double seconds, noise; /* of all layers, each as it is alone; power */
    int number;            /* a digit for each layer */
} choice;

typedef struct finalist {
    int number;
    hwnas_mix_way figures;
} finalist;

static const hwnas_precision digits[] = {HWNAS_F32, HWNAS_S8, HWNAS_BF16};

static int by_seconds(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return x->number - y->number;
}

static void add_layer(choice *out, const layer *l, hwnas_precision kind)
{
    out->seconds += kind == HWNAS_S8     ? l->s8_seconds
                    : kind == HWNAS_BF16 ? l->bf16_seconds
                                         : l->f32_seconds;
    out->noise += kind == HWNAS_S8     ? hwnas_mix_power(l->alone)
                  : kind == HWNAS_BF16 ? hwnas_mix_power(l->bf16_alone)
                                       : 0;
}

static choice make_choice(const chooser *c, int number, int n_kinds)
{
    choice out = {.number = number};
    for (size_t i = 0; i < c->mix->n_layers; i++, number /= n_kinds)
        add_layer(&out, &c->mix->layers[i], digits[number % n_kinds]);
    return out;
}

static void take_choice(chooser *c, int number, int n_kinds)
{
    for (size_t i = 0; i < c->mix->n_layers; i++, number /= n_kinds)
        c->kinds[c->mix->layers[i].node] = digits[number % n_kinds];
}

/* Of what c->kinds has. */
static int number_of(const chooser *c, int n_kinds)
{
    int number = 0;
    for (size_t i = c->mix->n_layers; i--;) {
        int digit = 0;
        while (digits[digit] != c->kinds[c->mix->layers[i].node])
            digit++;
        number = number * n_kinds + digit;
    }
    return number;
}

/* Noise power at the limit on the error, by that of a choice that was run. */
static double most_noise(const chooser *c, double noise, double error)
{
    const double ratio = c->options->max_error / error;
    return noise > 0 && error > 0 ? SLACK * noise * ratio * ratio : INFINITY;
}

/* Those that may fit and may be faster than what is there, or all where all can be tried, the
 * fastest first; returns how many. */
static size_t list_choices(choice *out, const chooser *c, int n_choices, int n_kinds,
                           const finalist *there)
{
    const choice now = make_choice(c, there->number, n_kinds);
    const double noise = most_noise(c, now.noise, there->figures.error.largest);
    size_t n = 0;
    for (int number = 0; number < n_choices; number++) {
        const choice one = make_choice(c, number, n_kinds);
        const bool may_win = one.seconds < LONGEST * now.seconds && one.noise <= noise;
        if (number != now.number && (may_win || n_choices <= MOST_TRIES))
            out[n++] = one;
    }
    qsort(out, n, sizeof *out, by_seconds);
    return n;
}

/* Those of the list that fit, behind the one that is there; *n: how many there are. */
static hwnas_status find_finalists(finalist *out, int *n, chooser *c, const choice *choices,
                                   size_t n_listed, int n_kinds)
{
    for (size_t k = 0; k < n_listed && k < MOST_TRIES && *n < FINALISTS; k++) {
        hwnas_mix_way seen = {.floats = out->figures.floats};
        bool fits;
        if (!hwnas_mix_has_time(c, 2))
            break;
        take_choice(c, choices[k].number, n_kinds);
        TRY(hwnas_mix_judge(&fits, &seen, c));
        if (fits)
            out[(*n)++] = (finalist){choices[k].number, seen};
    }
    return HWNAS_OK;
}

/* Measures them in turns; *best: the one with the shortest median. */
static hwnas_status measure(int *best, chooser *c, const finalist *them, int n, int n_kinds)
{
    hwnas_measure_options how = hwnas_mix_measuring(c);
    hwnas_graph *graphs[FINALISTS] = {NULL};
    hwnas_precision floats[FINALISTS];
    hwnas_race race = {0};
    hwnas_status status = HWNAS_OK;
    how.max_seconds *= SHARE_OF_FINALIST;
    for (int i = 0; i < n; i++) {
        take_choice(c, them[i].number, n_kinds);
        TRY_OUT(hwnas_answers_make(&graphs[i], c->answers, c->kinds));
        floats[i] = them[i].figures.floats;
    }
    TRY_OUT(hwnas_mix_tell(c, "measuring choices", 0, 0));
    TRY_OUT(
        hwnas_runner_race(&race, c->runner, (const hwnas_graph *const *)graphs, floats, n, &how));
    *best = 0;
    for (int i = 1; i < n; i++)
        if (race.measurements[i].p50 < race.measurements[*best].p50)
            *best = i;
out:
    hwnas_race_done(&race);
    for (int i = 0; i < n; i++)
        hwnas_graph_free(graphs[i]);
    return status;
}

hwnas_status hwnas_mix_choose_of_all(hwnas_mix_way *way, chooser *c, bool with_bf16)
{
    const int n_kinds = with_bf16 ? 3 : 2;
    int n_choices = 1, n = 1, best = 0;
    for (size_t i = 0; i < c->mix->n_layers && n_choices <= MOST_CHOICES; i++)
        n_choices *= n_kinds;
    if (n_choices > MOST_CHOICES || c->options->is_quick)
        return HWNAS_OK;
    choice *choices = hwnas_alloc((size_t)n_choices * sizeof *choices);
    finalist them[FINALISTS] = {{number_of(c, n_kinds), *way}};
    const size_t n_listed = list_choices(choices, c, n_choices, n_kinds, them);
    hwnas_status status = find_finalists(them, &n, c, choices, n_listed, n_kinds);
    if (status == HWNAS_OK && n > 1 && hwnas_mix_has_time(c, 2))
        status = measure(&best, c, them, n, n_kinds);
    way->error = them[best].figures.error;
    way->accuracy = them[best].figures.accuracy;
    take_choice(c, them[best].number, n_kinds);
    free(choices);
    return status;
}
