/* bayesian.c: model-guided search: Gaussian processes on architectures, and for each trial the
 * candidate with the largest expected gain times the probability that it meets the limits (Gardner
 * and others, "Bayesian Optimization with Inequality Constraints", ICML 2014).
 *
 * The first trials are random, spread over the costs, which are free to know. From then on the
 * candidates are the neighbours of the front, networks further off from it, and random ones; then the
 * neighbours of the best candidates, in steps uphill. In a small space they are all that is left. */
#include "base/stats.h"
#include "search/codebook.h"
#include "search/gain.h"
#include "search/neighbours.h"
#include "search/seen.h"
#include "search/strategy.h"
#include "search/surrogate.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Random trials before the first model. */
enum { N_INITIAL = 10 };

/* Networks drawn for each initial trial; each takes one of a slice of like costs. */
enum { N_PER_SLICE = 8 };

/* Estimates of a proposal: with n rows of c columns a candidate costs about n (n + c). */
#define WORK 4e7
enum { MIN_CANDIDATES = 300, MAX_CANDIDATES = 8192 };

/* Fresh networks in a proposal: to build one as a graph takes as long as to judge ten. */
enum { N_DISTANT = 64, N_FRESH_RANDOM = 32, FIRST_RANDOM = 256 };

/* Steps uphill, each from so many of the best candidates. */
enum { N_STEPS = 2, N_CLIMBERS = 3, MAX_NEIGHBOURS = 48 };

enum { DESIGN_STREAM = 1001, RANDOM_STREAM = 1002 };

typedef struct bayesian {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
    hwnas_codebook book;
    hwnas_surrogate *surrogate;
    size_t n, capacity;
    hwnas_told *told; /* in the order of the tells */
    size_t n_successes;
    size_t n_pending, pending_capacity;
    hwnas_told *pending; /* asked of this process, not told yet */
    void *by_digest;     /* search tree of the first trial of each network */
    /* Trials of a network that was tried in another encoding: did they come to the same? */
    size_t n_same, n_different;
    hwnas_arch *design[N_INITIAL];
} bayesian;

static uint64_t min_trials(const hwnas_strategy_config *config)
{
    (void)config;
    return N_INITIAL + 2;
}

/* ---- The first trials ---- */

typedef struct draft {
    hwnas_arch *arch;
    double cost;
    int order;
} draft;

static int by_cost(const void *a, const void *b)
{
    const draft *x = a, *y = b;
    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost) : x->order - y->order;
}

/* One random network of each slice of like MACs, the slices in random order. */
static void make_design(bayesian *search)
{
    enum { N_DRAFTS = N_INITIAL * N_PER_SLICE };
    draft drafts[N_DRAFTS];
    hwnas_rng rng = hwnas_rng_new(search->config.seed, DESIGN_STREAM);
    for (int i = 0; i < N_DRAFTS; i++) {
        drafts[i] = (draft){.arch = hwnas_arch_new(search->config.space), .order = i};
        hwnas_arch_sample(drafts[i].arch, &rng);
        drafts[i].cost = hwnas_codebook_get(&search->book, drafts[i].arch)->encoding.costs[0];
    }
    qsort(drafts, N_DRAFTS, sizeof *drafts, by_cost);
    for (int i = 0; i < N_INITIAL; i++) {
        int slice = (int)hwnas_rng_below(&rng, (uint32_t)i + 1);
        uint32_t within = hwnas_rng_below(&rng, N_PER_SLICE);
        search->design[i] = search->design[slice];
        search->design[slice] = hwnas_arch_copy(drafts[i * N_PER_SLICE + (int)within].arch);
    }
    for (int i = 0; i < N_DRAFTS; i++)
        hwnas_arch_free(drafts[i].arch);
}

/* ---- Life ---- */

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    bayesian *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_bayesian;
    search->config = *config;
    hwnas_seen_init(&search->seen, config->space);
    hwnas_codebook_init(&search->book);
    search->surrogate = hwnas_surrogate_new(&search->config);
    make_design(search);
    *out = &search->base;
    return HWNAS_OK;
}

static void free_told(hwnas_told *told)
{
    hwnas_encoding_done((hwnas_encoding *)told->encoding);
    free((hwnas_encoding *)told->encoding);
}

static int by_digest(const void *a, const void *b)
{
    return strcmp(((const hwnas_told *)a)->encoding->digest.hex,
                  ((const hwnas_told *)b)->encoding->digest.hex);
}

static void destroy(hwnas_strategy *strategy)
{
    bayesian *search = (bayesian *)strategy;
    while (search->by_digest) {
        hwnas_told *first = *(hwnas_told **)search->by_digest;
        tdelete(first, &search->by_digest, by_digest);
        free(first);
    }
    for (size_t i = 0; i < search->n; i++)
        free_told(&search->told[i]);
    for (size_t i = 0; i < search->n_pending; i++)
        free_told(&search->pending[i]);
    for (int i = 0; i < N_INITIAL; i++)
        hwnas_arch_free(search->design[i]);
    free(search->told);
    free(search->pending);
    hwnas_surrogate_free(search->surrogate);
    hwnas_codebook_done(&search->book);
    hwnas_seen_done(&search->seen);
    free(search);
}

/* ---- Tell ---- */

/* A network that cannot be built has its genes alone. */
static const hwnas_encoding *encode(const hwnas_arch *arch)
{
    hwnas_encoding *encoding = hwnas_alloc(sizeof *encoding);
    if (hwnas_encode(encoding, arch) != HWNAS_OK)
        *encoding = (hwnas_encoding){.arch = hwnas_arch_copy(arch)};
    return encoding;
}

static void compare_with_twin(bayesian *search, const hwnas_told *told)
{
    if (!*told->encoding->digest.hex || isinf(told->score.violation))
        return;
    hwnas_told **found = tfind(told, &search->by_digest, by_digest);
    if (!found) {
        hwnas_told *first = hwnas_alloc(sizeof *first);
        *first = *told;
        tsearch(first, &search->by_digest, by_digest);
        return;
    }
    bool is_same = !memcmp((*found)->score.objectives, told->score.objectives,
                           (size_t)search->config.n_objectives * sizeof(double));
    search->n_same += is_same;
    search->n_different += !is_same;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_told told = {.trial = trial, .score = *score};
    for (size_t i = 0; i < search->n_pending; i++)
        if (search->pending[i].trial == trial) {
            free_told(&search->pending[i]);
            search->pending[i] = search->pending[--search->n_pending];
            break;
        }
    told.encoding = encode(arch);
    hwnas_seen_add(&search->seen, arch);
    compare_with_twin(search, &told);
    search->n_successes += !isinf(score->violation);
    HWNAS_GROW(search->told, search->n, search->capacity);
    search->told[search->n++] = told;
    return HWNAS_OK;
}

/* ---- Candidates ---- */

typedef struct candidates {
    bayesian *search;
    uint64_t mark;
    size_t n, capacity, limit;
    const hwnas_encoding **encodings;
} candidates;

/* Another encoding of a network that was tried is a candidate unless such pairs came to the same. */
static bool is_known_network(const bayesian *search, const hwnas_encoding *encoding)
{
    hwnas_told key = {.encoding = encoding};
    return search->n_same > 0 && search->n_different == 0 && *encoding->digest.hex &&
           tfind(&key, &search->by_digest, by_digest);
}

static void add_candidate(candidates *c, const hwnas_arch *arch)
{
    if (c->n >= c->limit || hwnas_seen_has(&c->search->seen, arch))
        return;
    hwnas_codebook_entry *entry = hwnas_codebook_get(&c->search->book, arch);
    if (entry->mark == c->mark)
        return;
    entry->mark = c->mark;
    if (!entry->can_be_built || is_known_network(c->search, &entry->encoding))
        return;
    HWNAS_GROW(c->encodings, c->n, c->capacity);
    c->encodings[c->n++] = &entry->encoding;
}

static void add_all(candidates *c)
{
    hwnas_arch *arch = hwnas_arch_first(c->search->config.space);
    do
        add_candidate(c, arch);
    while (hwnas_arch_next(arch));
    hwnas_arch_free(arch);
}

/* Neighbours of parents in random order, up to a number of candidates. */
static void add_neighbours(candidates *c, const hwnas_encoding *const *parents, size_t n,
                           size_t max_of_each, hwnas_rng *rng)
{
    size_t *order = hwnas_alloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        size_t j = hwnas_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < n && c->n < c->limit; i++) {
        hwnas_neighbours all;
        hwnas_neighbours_of(&all, parents[order[i]]->arch);
        if (all.n > max_of_each)
            hwnas_neighbours_shuffle(&all, rng);
        for (size_t k = 0; k < all.n && k < max_of_each; k++)
            add_candidate(c, all.archs[k]);
        hwnas_neighbours_done(&all);
    }
    free(order);
}

/* Two changes away from a parent, or crossed with another. */
static void add_distant(candidates *c, const hwnas_encoding *const *parents, size_t n,
                        hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(c->search->config.space);
    for (int i = 0; i < N_DISTANT; i++) {
        const hwnas_arch *a = parents[hwnas_rng_below(rng, (uint32_t)n)]->arch;
        const hwnas_arch *b = parents[hwnas_rng_below(rng, (uint32_t)n)]->arch;
        hwnas_arch_assign(arch, a);
        if (a == b || i % 2)
            hwnas_arch_mutate(arch, 0, rng);
        else
            hwnas_arch_cross(arch, a, b, rng);
        hwnas_arch_mutate(arch, 0, rng);
        add_candidate(c, arch);
    }
    hwnas_arch_free(arch);
}

/* Random networks come from one sequence that grows with the trials, so most of them have been
 * built before. */
static void add_random(candidates *c, uint64_t trial, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(c->search->config.space);
    uint32_t n = (uint32_t)fmin(1e6, FIRST_RANDOM + N_FRESH_RANDOM * (double)trial);
    for (size_t tries = 0; tries < c->limit && c->n < c->limit; tries++) {
        hwnas_rng of_one = hwnas_strategy_rng(
            &(hwnas_strategy_config){.seed = c->search->config.seed + RANDOM_STREAM},
            hwnas_rng_below(rng, n));
        hwnas_arch_sample(arch, &of_one);
        add_candidate(c, arch);
    }
    hwnas_arch_free(arch);
}

/* ---- Ask ---- */

static void find_front(const bayesian *search, hwnas_front *front)
{
    *front = (hwnas_front){.n_objectives = search->config.n_objectives};
    for (size_t i = 0; i < search->n; i++) {
        hwnas_point point = {.id = i};
        memcpy(point.objectives, search->told[i].score.objectives, sizeof point.objectives);
        if (search->told[i].score.violation == 0)
            hwnas_front_insert(front, &point);
    }
}

/* Of the first trials: the upper quartile plus three times the distance of the quartiles, Tukey's
 * outer fence (1977). The true extremes will not do: one network of accuracy 0 would make the low
 * end of the front seem to be worth the most. */
static double reference_of(const bayesian *search, int objective)
{
    double values[2 * N_INITIAL], least = INFINITY, most = -INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < search->n && n < 2 * N_INITIAL; i++) {
        double y = search->told[i].score.objectives[objective];
        if (!isinf(search->told[i].score.violation) && isfinite(y))
            values[n++] = y;
    }
    hwnas_sort(values, n);
    least = values[0];
    most = values[n - 1];
    double upper = hwnas_quantile(values, n, 0.75), lower = hwnas_quantile(values, n, 0.25);
    double fence = upper + 3 * (upper - lower);
    return upper > lower ? fence : most > least ? most : least + fmax(fabs(least), 1e-9);
}

typedef struct parents {
    size_t n;
    const hwnas_encoding **encodings;
} parents;

static int by_violation(const void *a, const void *b)
{
    const hwnas_told *x = a, *y = b;
    if (x->score.violation != y->score.violation)
        return x->score.violation < y->score.violation ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* The front; while nothing is feasible, the trials that come nearest to it. */
static parents find_parents(const bayesian *search, const hwnas_front *front)
{
    enum { N_NEAREST = 8 };
    parents out = {.n = front->n,
                   .encodings = hwnas_alloc((front->n + N_NEAREST) * sizeof *out.encodings)};
    for (size_t i = 0; i < front->n; i++)
        out.encodings[i] = search->told[front->points[i].id].encoding;
    if (front->n)
        return out;
    hwnas_told *sorted = hwnas_alloc(search->n * sizeof *sorted);
    memcpy(sorted, search->told, search->n * sizeof *sorted);
    qsort(sorted, search->n, sizeof *sorted, by_violation);
    for (; out.n < N_NEAREST && out.n < search->n; out.n++)
        out.encodings[out.n] = sorted[out.n].encoding;
    free(sorted);
    return out;
}

/* The worth of candidates from the first on. Where nothing is feasible yet, feasibility is all. */
static void judge(const bayesian *search, const hwnas_gain *gain, double *worth,
                  const candidates *c, size_t first)
{
    hwnas_outlook outlook;
    size_t m = (size_t)search->config.n_objectives;
    hwnas_surrogate_predict(search->surrogate, &outlook, c->encodings + first, c->n - first);
    for (size_t i = 0; i < outlook.n; i++)
        worth[first + i] = outlook.feasible[i] *
                           (gain ? hwnas_gain_expect(gain, &outlook.means[i * m],
                                                     &outlook.sds[i * m])
                                 : 1);
    hwnas_outlook_done(&outlook);
}

/* The best `n` of all, best first; between equals the first. */
static size_t find_best(size_t *best, size_t n, const double *worth, size_t n_all)
{
    size_t n_found = 0;
    for (size_t i = 0; i < n_all; i++) {
        size_t at = n_found;
        while (at > 0 && worth[i] > worth[best[at - 1]])
            at--;
        if (at == n)
            continue;
        n_found += n_found < n;
        memmove(&best[at + 1], &best[at], (n_found - at - 1) * sizeof *best);
        best[at] = i;
    }
    return n_found;
}

static size_t candidates_for(const hwnas_surrogate *surrogate)
{
    double rows = (double)hwnas_surrogate_rows(surrogate) + 1;
    double each = rows * (rows + (double)hwnas_surrogate_columns(surrogate));
    return (size_t)fmin(MAX_CANDIDATES, fmax(MIN_CANDIDATES, WORK / each));
}

/* Fills in the most promising candidate; false when there is none. */
static bool choose(bayesian *search, uint64_t trial, hwnas_arch *out, hwnas_rng *rng)
{
    hwnas_front front;
    hwnas_gain gain;
    double reference[HWNAS_MAX_OBJECTIVES];
    size_t limit = candidates_for(search->surrogate);
    size_t room = limit + N_STEPS * N_CLIMBERS * MAX_NEIGHBOURS, best[N_CLIMBERS];
    double *worth = hwnas_alloc(room * sizeof *worth);
    candidates c = {.search = search, .mark = trial + 1, .limit = limit};
    find_front(search, &front);
    parents p = find_parents(search, &front);
    for (int k = 0; k < search->config.n_objectives; k++)
        reference[k] = reference_of(search, k);
    if (search->seen.space_size && search->seen.space_size - search->seen.n <= limit) {
        add_all(&c);
    } else {
        c.limit = limit / 2;
        add_neighbours(&c, p.encodings, p.n, SIZE_MAX, rng);
        c.limit = limit;
        add_distant(&c, p.encodings, p.n, rng);
        add_random(&c, trial, rng);
    }
    bool any = front.n > 0;
    if (any)
        hwnas_gain_init(&gain, &front, hwnas_surrogate_scales(search->surrogate), reference, rng);
    judge(search, any ? &gain : NULL, worth, &c, 0);
    size_t n_best = find_best(best, N_CLIMBERS, worth, c.n);
    for (int step = 0; step < N_STEPS && n_best > 0; step++) {
        const hwnas_encoding *from[N_CLIMBERS];
        size_t first = c.n;
        for (size_t i = 0; i < n_best; i++)
            from[i] = c.encodings[best[i]];
        c.limit = room;
        add_neighbours(&c, from, n_best, MAX_NEIGHBOURS, rng);
        if (c.n == first)
            break;
        judge(search, any ? &gain : NULL, worth, &c, first);
        n_best = find_best(best, N_CLIMBERS, worth, c.n);
    }
    if (n_best)
        hwnas_arch_assign(out, c.encodings[best[0]]->arch);
    if (any)
        hwnas_gain_done(&gain);
    hwnas_front_done(&front);
    free(p.encodings);
    free(c.encodings);
    free(worth);
    return n_best > 0;
}

static hwnas_status update(bayesian *search)
{
    const hwnas_encoding **open = hwnas_alloc((search->n_pending + 1) * sizeof *open);
    for (size_t i = 0; i < search->n_pending; i++)
        open[i] = search->pending[i].encoding;
    hwnas_status status =
        hwnas_surrogate_update(search->surrogate, search->told, search->n, open, search->n_pending);
    free(open);
    return status;
}

static hwnas_status propose(bayesian *search, uint64_t trial, hwnas_arch *out)
{
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    if (trial < N_INITIAL && !hwnas_seen_has(&search->seen, search->design[trial])) {
        hwnas_arch_assign(out, search->design[trial]);
        return HWNAS_OK;
    }
    if (trial >= N_INITIAL && search->n_successes >= N_INITIAL / 2) {
        TRY(update(search));
        if (choose(search, trial, out, &rng))
            return HWNAS_OK;
    }
    return hwnas_seen_sample_new(&search->seen, out, &rng);
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_codebook_trim(&search->book);
    TRY(propose(search, trial, out));
    hwnas_seen_add(&search->seen, out);
    HWNAS_GROW(search->pending, search->n_pending, search->pending_capacity);
    search->pending[search->n_pending++] =
        (hwnas_told){.trial = trial, .encoding = encode(out)};
    return HWNAS_OK;
}

const hwnas_strategy_ops hwnas_strategy_bayesian = {
    .name = "bayesian",
    .help = "model-guided: Gaussian processes and expected hypervolume improvement",
    .min_trials = min_trials,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
};
