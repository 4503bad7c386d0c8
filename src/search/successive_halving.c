/* successive_halving.c: many networks cheaply, the best of them dearly: ASHA (Li, Jamieson,
 * Rostamizadeh and others, "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020),
 * asynchronous, so workers never wait for a rung to be full. With several objectives the rank is
 * the number of trials of the rung that are better (after Schmucker and others, "Multi-objective
 * Asynchronous Successive Halving", 2021).
 *
 * Rung 0 is the real thing, rung n_rungs - 1 the cheapest. Of n trials at a rung the best n / 3 are
 * promoted: evaluated again one rung nearer to the real thing. Where some meet the limits, only
 * they count: the others cost next to nothing, and would make room for all that do.
 *
 * New networks are those that `bayesian` proposes from what the cheapest rung told (after Klein,
 * Tiao, Lienart and others, "Model-based Asynchronous Hyperparameter and Neural Architecture
 * Search", 2020). */
#include "predict/predict.h"
#include "search/strategy.h"

#include <math.h>
#include <stdlib.h>

enum { REDUCTION = HWNAS_RUNG_REDUCTION, MAX_RUNGS = 16 };

typedef struct entry {
    hwnas_arch *arch;
    hwnas_score score;
    uint64_t trial;
    bool is_promoted;
    size_t rank; /* so many of those ranked are better */
} entry;

typedef struct rung {
    size_t n, capacity;
    entry *entries;  /* told */
    size_t n_ranked; /* the first of them */
} rung;

typedef struct halving {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_strategy *proposer; /* of new networks */
    rung rungs[MAX_RUNGS];
    size_t n_asked, asked_capacity;
    struct {
        uint64_t trial;
        int rung;
    } * asked;
} halving;

/* Enough for one network to reach the real thing. */
static uint64_t min_trials(const hwnas_strategy_config *config)
{
    uint64_t sum = 1;
    for (int r = 1; r < config->n_rungs; r++)
        sum = REDUCTION * sum + 1;
    return sum;
}

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    if (config->n_rungs < 2)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL,
                       "'successive-halving' needs a cheaper way to evaluate a network "
                       "beside the real one"),
            "without one, 'auto' chooses a strategy");
    if (config->n_rungs > MAX_RUNGS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'successive-halving' has at most %d rungs, not %d",
                          MAX_RUNGS, config->n_rungs);
    hwnas_strategy *proposer;
    TRY(hwnas_strategy_bayesian.create(&proposer, config));
    halving *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_successive_halving;
    search->config = *config;
    search->proposer = proposer;
    *out = &search->base;
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    halving *search = (halving *)strategy;
    for (int r = 0; r < search->config.n_rungs; r++) {
        for (size_t i = 0; i < search->rungs[r].n; i++)
            hwnas_arch_free(search->rungs[r].entries[i].arch);
        free(search->rungs[r].entries);
    }
    free(search->asked);
    hwnas_strategy_free(search->proposer);
    free(search);
}

/* How many may be promoted by now. */
static size_t room(const rung *at)
{
    size_t n_feasible = 0;
    for (size_t i = 0; i < at->n; i++)
        n_feasible += at->entries[i].score.violation == 0;
    return (n_feasible ? n_feasible : at->n) / REDUCTION;
}

/* Counts one of the ranked into the ranks of the others, or out of them: `by` is 1 or -1. */
static void count(const halving *search, rung *at, const entry *one, int by)
{
    for (size_t k = 0; k < at->n_ranked; k++)
        at->entries[k].rank +=
            (size_t)by *
            hwnas_score_is_better(&one->score, &at->entries[k].score, search->config.n_objectives);
}

static size_t rank_of(const halving *search, const rung *at, const entry *one)
{
    size_t rank = 0;
    for (size_t k = 0; k < at->n_ranked; k++)
        rank +=
            hwnas_score_is_better(&at->entries[k].score, &one->score, search->config.n_objectives);
    return rank;
}

/* Ranks those told since the last time: to compare all with all takes half a second of ten
 * thousand. */
static void rank_new(const halving *search, rung *at)
{
    for (; at->n_ranked < at->n; at->n_ranked++) {
        entry *e = &at->entries[at->n_ranked];
        e->rank = rank_of(search, at, e);
        count(search, at, e, 1);
    }
}

/* As a trial is told again. */
static void renew(const halving *search, rung *at, entry *e, const hwnas_score *score)
{
    const bool is_ranked = e < at->entries + at->n_ranked;
    if (is_ranked)
        count(search, at, e, -1);
    e->score = *score;
    if (!is_ranked)
        return;
    count(search, at, e, 1);
    e->rank = rank_of(search, at, e);
}

/* The best that was not promoted, when it belongs to the best third; NULL: none does. */
static entry *find_promotion(const halving *search, rung *at)
{
    entry *best = NULL;
    size_t best_rank = room(at);
    rank_new(search, at);
    for (size_t i = 0; i < at->n; i++) {
        entry *e = &at->entries[i];
        if (!e->is_promoted && !isinf(e->score.violation) && e->rank < best_rank) {
            best_rank = e->rank;
            best = e;
        }
    }
    return best;
}

static size_t n_promoted(const rung *at)
{
    size_t n = 0;
    for (size_t i = 0; i < at->n; i++)
        n += at->entries[i].is_promoted;
    return n;
}

/* All of a network at a rung; false: there is none. */
static bool mark_promoted(rung *at, const hwnas_arch *arch)
{
    bool is_there = false;
    for (size_t i = 0; i < at->n; i++)
        if (hwnas_arch_equal(at->entries[i].arch, arch))
            is_there = at->entries[i].is_promoted = true;
    return is_there;
}

static void keep_asked(halving *search, uint64_t trial, int at)
{
    HWNAS_GROW(search->asked, search->n_asked, search->asked_capacity);
    search->asked[search->n_asked].trial = trial;
    search->asked[search->n_asked++].rung = at;
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    halving *search = (halving *)strategy;
    entry *promoted = NULL;
    int to = 0, cheapest = search->config.n_rungs - 1;
    for (; to < cheapest && !promoted; to++) {
        rung *from = &search->rungs[to + 1];
        /* Ranks tie where objectives conflict; the third is a number all the same. */
        if (n_promoted(from) < room(from))
            promoted = find_promotion(search, from);
    }
    if (promoted) {
        mark_promoted(&search->rungs[to], promoted->arch);
        to--;
        hwnas_arch_assign(out, promoted->arch);
    } else {
        TRY(search->proposer->ops->ask(search->proposer, trial, out));
    }
    keep_asked(search, trial, to);
    return HWNAS_OK;
}

/* It was promoted from the rung nearest to the real thing at which it is, or else it is new. */
static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    halving *search = (halving *)strategy;
    const int cheapest = search->config.n_rungs - 1;
    for (int r = 1; r <= cheapest; r++)
        if (mark_promoted(&search->rungs[r], arch)) {
            keep_asked(search, trial, r - 1);
            return;
        }
    keep_asked(search, trial, cheapest);
    search->proposer->ops->note(search->proposer, trial, arch);
}

static int rung_of(const hwnas_strategy *strategy, uint64_t trial)
{
    const halving *search = (const halving *)strategy;
    for (size_t i = search->n_asked; i-- > 0;)
        if (search->asked[i].trial == trial)
            return search->asked[i].rung;
    return search->config.n_rungs - 1; /* what others propose is to earn the real thing, too */
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    halving *search = (halving *)strategy;
    if (score->rung < 0 || score->rung >= search->config.n_rungs)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "trial %llu was evaluated at rung %d of %d",
                          (unsigned long long)trial, score->rung, search->config.n_rungs);
    /* Asked of an earlier process: it was promoted there. */
    const bool is_cheapest = score->rung + 1 == search->config.n_rungs;
    if (is_cheapest) {
        TRY(search->proposer->ops->tell(search->proposer, trial, arch, score));
    } else {
        mark_promoted(&search->rungs[score->rung + 1], arch);
        hwnas_bayesian_avoid(search->proposer, arch);
    }
    rung *at = &search->rungs[score->rung];
    for (size_t i = 0; i < at->n; i++)
        if (at->entries[i].trial == trial) {
            renew(search, at, &at->entries[i], score);
            return HWNAS_OK;
        }
    HWNAS_GROW(at->entries, at->n, at->capacity);
    at->entries[at->n++] = (entry){.arch = hwnas_arch_copy(arch), .score = *score, .trial = trial};
    return HWNAS_OK;
}

const hwnas_strategy_ops hwnas_strategy_successive_halving = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "successive-halving",
    .help = "evaluates many networks cheaply and the best of them dearly (ASHA); new ones by "
            "`bayesian`",
    .min_trials = min_trials,
    .create = create,
    .ask = ask,
    .rung = rung_of,
    .tell = tell,
    .free = destroy,
    .note = note,
};
