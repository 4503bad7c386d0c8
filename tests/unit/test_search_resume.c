/* test_search_resume.c: any prefix of what a strategy was told, told to a new one, makes it go on
 * as the first one did. Of every strategy; with one and two objectives, with limits, failures, and
 * estimates that are told again as they were measured. Seed and prefixes change from day to day;
 * HWNAS_SEED gives a seed, HWNAS_LONG takes every prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "tests/unit/amount.h"
#include "tests/unit/search_fixture.h"

enum { MAX_EVENTS = 400 };

static uint64_t seed;

/* One thing that a strategy was told. */
typedef struct event {
    uint64_t trial;
    size_t index;
    hwnas_score score;
} event;

typedef struct history {
    size_t n;
    event events[MAX_EVENTS];
} history;

typedef struct search_case {
    const char *name;
    int n_objectives;
    bool has_limit, has_failures, has_estimates;
    bool is_noise; /* objectives that follow from no choice: a model foretells nothing */
    size_t n_genes, n_trials, n_prefixes;
} search_case;

/* ---- What is told ---- */

static size_t hash_of(size_t index)
{
    return (index + 1) * 2654435761U >> 7;
}

static hwnas_score measured(const search_case *c, const hwnas_arch *arch, int rung)
{
    const size_t hash = hash_of(index_of(arch));
    hwnas_score score = toy_score(arch);
    score.rung = rung;
    for (int k = 0; c->is_noise && k < c->n_objectives; k++)
        score.objectives[k] = (double)(hash_of(index_of(arch) + 4096 * (size_t)k) % 1009);
    if (c->n_objectives == 1 && !c->is_noise)
        score.objectives[0] = score.objectives[1];
    if (c->has_failures && hash % 9 == 0)
        return (hwnas_score){.objectives = {NAN, NAN}, .violation = INFINITY, .rung = rung};
    if (!c->has_limit)
        return score;
    score.n_margins = 1;
    score.margins[0] = (double)arch->genes[0] + (double)arch->genes[1] - 3.5;
    score.violation = fmax(0, score.margins[0]);
    return score;
}

/* Every other network is estimated first, some of them far off. */
static bool estimate(hwnas_score *out, const search_case *c, const hwnas_arch *arch)
{
    const size_t hash = hash_of(index_of(arch));
    if (!c->has_estimates || out->rung || hash % 2)
        return false;
    if (isinf(out->violation)) { /* nobody knew that it would fail */
        search_case without = *c;
        without.has_failures = false;
        *out = measured(&without, arch, 0);
    }
    out->is_estimate = true;
    for (int k = 0; k < c->n_objectives; k++)
        out->objectives[k] += (double)(hash / 2 % 7) - 3;
    return true;
}

/* ---- A search ---- */

static hwnas_arch *arch_of(const test_space *t, size_t index)
{
    hwnas_arch *arch = hwnas_arch_new(&t->space);
    for (size_t g = t->space.n_genes; g-- > 0; index /= t->genes[g].n_values)
        arch->genes[g] = (uint16_t)(index % t->genes[g].n_values);
    return arch;
}

static void append(history *h, hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                   const hwnas_score *score)
{
    assert_true(h->n < MAX_EVENTS);
    h->events[h->n++] = (event){.trial = trial, .index = index_of(arch), .score = *score};
    tell(strategy, trial, arch, score);
}

/* The oldest trial that was told as an estimate alone; NULL: none. */
static const event *oldest_estimate(const history *h)
{
    for (size_t i = 0; i < h->n; i++) {
        bool is_measured = false;
        for (size_t k = 0; k < h->n; k++)
            is_measured |=
                h->events[k].trial == h->events[i].trial && !h->events[k].score.is_estimate;
        if (!is_measured)
            return &h->events[i];
    }
    return NULL;
}

/* Goes on until there are enough trials. What comes next follows from the history, so a search that
 * is continued does the same, if the strategy does. Every fifth event is a measurement of what was
 * estimated. */
static void go_on(history *h, hwnas_strategy *strategy, const search_case *c, const test_space *t)
{
    uint64_t next = 0;
    for (size_t i = 0; i < h->n; i++)
        next = h->events[i].trial >= next ? h->events[i].trial + 1 : next;
    while (next < c->n_trials) {
        const event *old = h->n % 5 == 4 ? oldest_estimate(h) : NULL;
        hwnas_arch *arch = old ? arch_of(t, old->index) : hwnas_arch_new(&t->space);
        if (old) {
            const hwnas_score score = measured(c, arch, 0);
            append(h, strategy, old->trial, arch, &score);
        } else {
            ask(strategy, next, arch);
            hwnas_score score =
                measured(c, arch, strategy->ops->rung ? strategy->ops->rung(strategy, next) : 0);
            (void)estimate(&score, c, arch);
            append(h, strategy, next++, arch, &score);
        }
        hwnas_arch_free(arch);
    }
}

/* Continues the first n events of a history. */
static void resume(history *out, const history *whole, size_t n, const search_case *c,
                   const test_space *t)
{
    hwnas_strategy *strategy = make(c->name, t, seed, c->n_objectives);
    *out = (history){0};
    for (size_t i = 0; i < n; i++) {
        hwnas_arch *arch = arch_of(t, whole->events[i].index);
        append(out, strategy, whole->events[i].trial, arch, &whole->events[i].score);
        hwnas_arch_free(arch);
    }
    go_on(out, strategy, c, t);
    hwnas_strategy_free(strategy);
}

static void compare(const history *whole, const history *resumed, size_t n, const search_case *c)
{
    for (size_t i = 0; i < whole->n || i < resumed->n; i++) {
        const event *a = &whole->events[i], *b = &resumed->events[i];
        if (i < whole->n && i < resumed->n && a->trial == b->trial && a->index == b->index)
            continue;
        fail_msg("%s, %d objectives%s%s%s%s, seed %llu: continued after %zu events, event %zu of "
                 "%zu and %zu differs: network %zu, not %zu",
                 c->name, c->n_objectives, c->has_limit ? ", a limit" : "",
                 c->has_failures ? ", failures" : "", c->has_estimates ? ", estimates" : "",
                 c->is_noise ? ", noise" : "", (unsigned long long)seed, n, i, resumed->n, whole->n,
                 b->index, a->index);
    }
}

/* ---- Cases ---- */

static void try_case(const search_case *c)
{
    test_space t;
    history *whole = calloc(1, sizeof *whole), *resumed = calloc(1, sizeof *resumed);
    hwnas_rng rng = hwnas_rng_new(seed, 77);
    const bool is_long = getenv("HWNAS_LONG") != NULL;
    make_space(&t, c->n_genes, 4);
    resume(whole, whole, 0, c, &t);
    const size_t n = is_long ? whole->n : c->n_prefixes;
    for (size_t i = 0; i < n; i++) {
        const size_t k = is_long ? i : hwnas_rng_below(&rng, (uint32_t)whole->n);
        resume(resumed, whole, k, c, &t);
        compare(whole, resumed, k, c);
    }
    free(whole);
    free(resumed);
}

/* All that a case may have, for a strategy. A model's advice takes its time. */
static void try_strategy(const hwnas_strategy_ops *ops)
{
    const bool is_bayesian = !strcmp(ops->name, "bayesian"),
               is_slow = is_bayesian || !strcmp(ops->name, "successive-halving");
    for (int what = 0; what < 16; what += EVERY(3)) {
        const search_case c = {.name = ops->name,
                               .n_objectives = what & 8 && !ops->max_objectives ? 2 : 1,
                               .has_limit = what & 1,
                               .has_failures = what & 2,
                               .has_estimates = what & 4,
                               .n_genes = is_slow ? 6 : 4, /* a climb comes to its end */
                               .n_trials = is_slow ? 45 : 200,
                               .n_prefixes = is_slow ? 1 : 40};
        if (!(what & 8) || c.n_objectives == 2)
            try_case(&c);
    }
    if (is_bayesian) { /* and what it does where its model is in doubt */
        const search_case c = {.name = ops->name,
                               .n_objectives = 2,
                               .has_estimates = true,
                               .is_noise = true,
                               .n_genes = 6,
                               .n_trials = 64,
                               .n_prefixes = 1};
        try_case(&c);
    }
}

static void each_strategy_goes_on(void **state)
{
    (void)state;
    for (int i = 0; hwnas_strategies[i]; i++)
        try_strategy(hwnas_strategies[i]);
}

int main(void)
{
    const char *given = getenv("HWNAS_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) / (24 * 60 * 60);
    printf("# seed %llu (HWNAS_SEED)\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_strategy_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
