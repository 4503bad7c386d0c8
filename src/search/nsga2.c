/* nsga2.c: NSGA-II (Deb, Pratap, Agarwal, Meyarivan, "A Fast and Elitist Multiobjective Genetic
 * Algorithm: NSGA-II", 2002) in its steady-state form, (mu + 1): each finished trial joins the
 * population and the worst member leaves. Workers of unequal speed then never wait for the end of
 * a generation (Durillo, Nebro, Luna and Alba, EMO 2009, also found it to converge faster).
 *
 * Two departures. A member that equals an older one in every objective ranks behind it: spaces
 * spell one network in several ways, and copies of an extreme point would each have infinite
 * crowding distance and fill the population (Fortin and Parizeau, GECCO 2013). And a failed trial
 * has no objectives, so it never joins.
 *
 * Sizes and rates are chosen for searches of 100 to 300 trials, what measuring on a real device
 * allows. Mean part of the true hypervolume, NAS-Bench-Macro, accuracy and MACs, 60 to 200 seeds:
 *
 *                                                   100     200     300 trials
 *   population 16, cross or mutate, ends first     .9801   .9942   .9976
 *   population 24                                  .9760   .9932   .9975
 *   mutation of each gene at rate 1/n              .9780   .9928   .9968
 *   cross and mutate at rate 1/n, population 24    .9553   .9785   .9894    (without ends)
 *   random                                         .9413   .9566   .9652
 *
 * Three NAS-Bench-201 fronts and a model of Accel-NASBench (28 genes) rank them alike, but for the
 * rate, where one gene and 1/n are level. */
#include "search/ends.h"
#include "search/seen.h"
#include "search/strategy.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_POPULATION = 16, MIN_POPULATION = 4 };

/* Trials 0 and 1 are the ends of the space; the rest of the first population is random. */
enum { N_ENDS = 2 };

/* Attempts that repeat an old trial before a random newcomer is taken instead. */
enum { MAX_TRIES = 64 };

/* In a tournament while nothing is feasible. */
enum { N_SEEKERS = 8 };

typedef struct member {
    hwnas_arch *arch;
    hwnas_score score;
    uint64_t trial;
    int rank; /* of its front; 0 is the best */
    double crowding;
    size_t n_dominators; /* while ranking: members before it that have no rank yet */
} member;

typedef struct nsga2 {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
    size_t n;
    member *members; /* population + 1 of them */
} nsga2;

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    int population = config->population ? config->population : DEFAULT_POPULATION;
    if (population < MIN_POPULATION)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a population of %d is too small: nsga2 needs %d",
                          population, MIN_POPULATION);
    nsga2 *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_nsga2;
    search->config = *config;
    search->config.population = population;
    search->members = hwnas_alloc(((size_t)population + 1) * sizeof *search->members);
    hwnas_seen_init(&search->seen, config->space);
    *out = &search->base;
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    nsga2 *search = (nsga2 *)strategy;
    for (size_t i = 0; i < search->n; i++)
        hwnas_arch_free(search->members[i].arch);
    free(search->members);
    hwnas_seen_done(&search->seen);
    free(search);
}

/* Constrained domination (Deb et al., definition 1), made strict between equals by age. */
static bool dominates(const nsga2 *search, const member *a, const member *b)
{
    int m = search->config.n_objectives;
    if (a->score.violation != b->score.violation)
        return a->score.violation < b->score.violation;
    if (hwnas_dominates(a->score.objectives, b->score.objectives, m))
        return true;
    return a->trial < b->trial &&
           !memcmp(a->score.objectives, b->score.objectives, (size_t)m * sizeof(double));
}

static void count_dominators(nsga2 *search)
{
    for (size_t i = 0; i < search->n; i++) {
        member *a = &search->members[i];
        a->rank = -1;
        a->n_dominators = 0;
        for (size_t j = 0; j < search->n; j++)
            a->n_dominators += dominates(search, &search->members[j], a);
    }
}

/* Takes the members that nobody left dominates; returns how many. */
static size_t peel_front(nsga2 *search, int rank)
{
    size_t n = 0;
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].rank < 0 && search->members[i].n_dominators == 0) {
            search->members[i].rank = rank;
            n++;
        }
    for (member *a = search->members; a < search->members + search->n; a++)
        if (a->rank == rank)
            for (size_t j = 0; j < search->n; j++)
                search->members[j].n_dominators -= dominates(search, a, &search->members[j]);
    return n;
}

/* The order of a front along one objective. */
static bool precedes(const member *a, const member *b, int objective)
{
    double x = a->score.objectives[objective], y = b->score.objectives[objective];
    return x < y || (x == y && a->trial < b->trial);
}

/* Distance between the two neighbours of `of` in its front along one objective, as a part of the
 * front's extent; infinite at either end. */
static double gap(const nsga2 *search, const member *of, int objective)
{
    const member *before = NULL, *after = NULL, *first = of, *last = of;
    for (const member *a = search->members; a < search->members + search->n; a++) {
        if (a == of || a->rank != of->rank)
            continue;
        if (precedes(a, of, objective)) {
            before = !before || precedes(before, a, objective) ? a : before;
            first = precedes(a, first, objective) ? a : first;
        } else {
            after = !after || precedes(a, after, objective) ? a : after;
            last = precedes(last, a, objective) ? a : last;
        }
    }
    if (!before || !after)
        return INFINITY;
    double extent = last->score.objectives[objective] - first->score.objectives[objective];
    double distance = after->score.objectives[objective] - before->score.objectives[objective];
    return extent > 0 ? distance / extent : 0;
}

static void rank_members(nsga2 *search)
{
    count_dominators(search);
    int rank = 0;
    for (size_t n_ranked = 0; n_ranked < search->n; rank++)
        n_ranked += peel_front(search, rank);
    for (size_t i = 0; i < search->n; i++) {
        search->members[i].crowding = 0;
        for (int k = 0; k < search->config.n_objectives; k++)
            search->members[i].crowding += gap(search, &search->members[i], k);
    }
}

/* The crowded-comparison operator; younger members lose between equals. */
static bool is_better(const member *a, const member *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->crowding != b->crowding)
        return a->crowding > b->crowding;
    return a->trial < b->trial;
}

static void remove_worst(nsga2 *search)
{
    member *worst = &search->members[0];
    for (size_t i = 1; i < search->n; i++)
        if (is_better(worst, &search->members[i]))
            worst = &search->members[i];
    hwnas_arch_free(worst->arch);
    *worst = search->members[--search->n];
}

/* Of a trial that is told again. */
static void forget(nsga2 *search, uint64_t trial)
{
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].trial == trial) {
            hwnas_arch_free(search->members[i].arch);
            search->members[i] = search->members[--search->n];
            return;
        }
}

static bool is_known(const nsga2 *search, const hwnas_score *score)
{
    for (int k = 0; k < search->config.n_objectives; k++)
        if (!isfinite(score->objectives[k]))
            return false;
    return true;
}

/* Whether a newcomer would leave a full population at once, and all others as they are: whoever a
 * member of the last front dominates is alone behind it. Most trials of a long search are such. */
static bool is_hopeless(const nsga2 *search, const member *newcomer)
{
    int last = 0;
    if (search->n < (size_t)search->config.population || !is_known(search, &newcomer->score))
        return false;
    for (size_t i = 0; i < search->n; i++)
        last = search->members[i].rank > last ? search->members[i].rank : last;
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].rank == last && is_known(search, &search->members[i].score) &&
            dominates(search, &search->members[i], newcomer))
            return true;
    return false;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    nsga2 *search = (nsga2 *)strategy;
    hwnas_seen_add(&search->seen, arch);
    forget(search, trial);
    if (isinf(score->violation))
        return HWNAS_OK;
    for (int k = 0; k < search->config.n_objectives; k++)
        assert(isfinite(score->objectives[k]) || score->violation > 0);
    const member newcomer = {.score = *score, .trial = trial};
    if (is_hopeless(search, &newcomer))
        return HWNAS_OK;
    search->members[search->n] = newcomer;
    search->members[search->n++].arch = hwnas_arch_copy(arch);
    rank_members(search);
    if (search->n > (size_t)search->config.population) {
        remove_worst(search);
        rank_members(search);
    }
    return HWNAS_OK;
}

static bool has_feasible(const nsga2 *search)
{
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].score.violation == 0)
            return true;
    return false;
}

/* Of two members; while nothing is feasible of more, as there is one goal and no front to spread.
 */
static const member *tournament(const nsga2 *search, hwnas_rng *rng)
{
    const member *best = &search->members[hwnas_rng_below(rng, (uint32_t)search->n)];
    const int n = has_feasible(search) ? 2 : N_SEEKERS;
    for (int i = 1; i < n; i++) {
        const member *other = &search->members[hwnas_rng_below(rng, (uint32_t)search->n)];
        best = is_better(other, best) ? other : best;
    }
    return best;
}

/* Crossover or mutation of one gene, by equal chance. Both at once, as for real numbers, moves too
 * far in spaces of some ten genes. */
static void breed(const nsga2 *search, hwnas_arch *child, hwnas_rng *rng)
{
    const hwnas_arch *parent = tournament(search, rng)->arch;
    if (hwnas_rng_below(rng, 2)) {
        hwnas_arch_cross(child, parent, tournament(search, rng)->arch, rng);
    } else {
        hwnas_arch_assign(child, parent);
        hwnas_arch_mutate(child, 0, rng);
    }
}

/* One attempt at a proposal; false when it is not new. */
static bool try_proposal(const nsga2 *search, uint64_t trial, hwnas_arch *out, hwnas_rng *rng)
{
    if (trial < N_ENDS) {
        if (!hwnas_end_sample(out, trial == 0 ? HWNAS_SMALLEST : HWNAS_LARGEST, rng))
            return false;
    } else if (trial < (uint64_t)search->config.population || search->n < 2) {
        return false;
    } else {
        breed(search, out, rng);
    }
    return !hwnas_seen_has(&search->seen, out);
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    nsga2 *search = (nsga2 *)strategy;
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    bool is_new = false;
    for (int i = 0; i < MAX_TRIES && !is_new; i++)
        is_new = try_proposal(search, trial, out, &rng);
    if (!is_new)
        TRY(hwnas_seen_sample_new(&search->seen, out, &rng));
    hwnas_seen_add(&search->seen, out);
    return HWNAS_OK;
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    (void)trial;
    hwnas_seen_add(&((nsga2 *)strategy)->seen, arch);
}

const hwnas_strategy_ops hwnas_strategy_nsga2 = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "nsga2",
    .help = "steady-state NSGA-II: evolves a population towards the whole front",
    .seeks_feasible = true,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
