/* bayesian.c: model-guided search: Gaussian processes on architectures, and for each trial the
 * candidate with the largest expected gain times the probability that it meets the limits (Gardner
 * and others, "Bayesian Optimization with Inequality Constraints", ICML 2014).
 *
 * The first trials are random, spread over the costs, which are free to know. From then on the
 * candidates are the neighbours of the front, networks further off from it, and random ones; then
 * the neighbours of the best candidates, in steps uphill. In a small space they are all that is
 * left. A share of the trials, which grows as the model's foresight falls (trust.h), takes a step
 * that needs no model. */
#include "base/stats.h"
#include "search/candidates.h"
#include "search/gain.h"
#include "search/strategy.h"
#include "search/trust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Random trials before the first model. */
enum { N_INITIAL = 10 };

/* Networks drawn for each initial trial; each takes one of a slice of like costs. */
enum { N_PER_SLICE = 8 };

enum { MIN_CANDIDATES = 200, MAX_CANDIDATES = 8192 };

enum { N_STEPS = 2 }; /* uphill */

enum { DESIGN_STREAM = 1001 };

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
    hwnas_duplicates duplicates;
    hwnas_trust trust;
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
static hwnas_status make_design(bayesian *search)
{
    enum { N_DRAFTS = N_INITIAL * N_PER_SLICE };
    hwnas_status status = HWNAS_OK;
    draft drafts[N_DRAFTS] = {0};
    hwnas_rng rng = hwnas_rng_new(search->config.seed, DESIGN_STREAM);
    for (int i = 0; i < N_DRAFTS; i++) {
        drafts[i] = (draft){.arch = hwnas_arch_new(search->config.space), .order = i};
        if (!hwnas_arch_sample(drafts[i].arch, &rng)) {
            status = hwnas_space_none_found(search->config.space);
            goto out;
        }
        drafts[i].cost = hwnas_codebook_get(&search->book, drafts[i].arch)->encoding.costs[0];
    }
    qsort(drafts, N_DRAFTS, sizeof *drafts, by_cost);
    for (int i = 0; i < N_INITIAL; i++) {
        int slice = (int)hwnas_rng_below(&rng, (uint32_t)i + 1);
        uint32_t within = hwnas_rng_below(&rng, N_PER_SLICE);
        search->design[i] = search->design[slice];
        search->design[slice] = hwnas_arch_copy(drafts[i * N_PER_SLICE + (int)within].arch);
    }
out:
    for (int i = 0; i < N_DRAFTS; i++)
        hwnas_arch_free(drafts[i].arch);
    return status;
}

/* ---- Life ---- */

static void free_told(hwnas_told *told)
{
    hwnas_encoding_done((hwnas_encoding *)told->encoding);
    free((hwnas_encoding *)told->encoding);
}

static void destroy(hwnas_strategy *strategy)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_duplicates_done(&search->duplicates);
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

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    bayesian *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_bayesian;
    search->config = *config;
    hwnas_seen_init(&search->seen, config->space);
    hwnas_codebook_init(&search->book);
    search->surrogate = hwnas_surrogate_new(&search->config);
    const hwnas_status status = make_design(search);
    if (status == HWNAS_OK)
        *out = &search->base;
    else
        destroy(&search->base);
    return status;
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

/* What was told as an estimate is a measurement now; false: the trial was not told before. */
static bool tell_again(bayesian *search, const hwnas_told *told)
{
    for (size_t i = search->n; i-- > 0;)
        if (search->told[i].trial == told->trial) {
            search->n_successes += !isinf(told->score.violation);
            search->n_successes -= !isinf(search->told[i].score.violation);
            search->told[i].score = told->score;
            hwnas_duplicates_add(&search->duplicates, &search->told[i],
                                 search->config.n_objectives);
            hwnas_surrogate_forget(search->surrogate);
            hwnas_trust_forget(&search->trust);
            return true;
        }
    return false;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_told told = {.trial = trial, .score = *score};
    if (tell_again(search, &told))
        return HWNAS_OK;
    for (size_t i = 0; i < search->n_pending; i++)
        if (search->pending[i].trial == trial) {
            free_told(&search->pending[i]);
            search->pending[i] = search->pending[--search->n_pending];
            break;
        }
    told.encoding = encode(arch);
    hwnas_seen_add(&search->seen, arch);
    hwnas_duplicates_add(&search->duplicates, &told, search->config.n_objectives);
    search->n_successes += !isinf(score->violation);
    HWNAS_GROW(search->told, search->n, search->capacity);
    search->told[search->n++] = told;
    return HWNAS_OK;
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

/* One trial of so many looks for the ends of the front. */
enum { WIDE_PERIOD = 4 };

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
    if (n == 0)
        return 0; /* no trial has a number to be better than */
    hwnas_sort(values, n);
    least = values[0];
    most = values[n - 1];
    double upper = hwnas_quantile(values, n, 0.75), lower = hwnas_quantile(values, n, 0.25);
    double fence = upper + 3 * (upper - lower);
    return upper > lower ? fence : most > least ? most : least + fmax(fabs(least), 1e-9);
}

/* Of all feasible trials: as far beyond the worst as that is from the best. The fence alone leaves
 * out a cheap end of the front that is worse than it in another objective; this reaches further
 * with each network that is found there. */
static double wide_reference_of(const bayesian *search, int objective)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < search->n; i++) {
        const double y = search->told[i].score.objectives[objective];
        if (search->told[i].score.violation == 0 && isfinite(y)) {
            least = fmin(least, y);
            most = fmax(most, y);
        }
    }
    const double fence = reference_of(search, objective);
    return most > least ? fmax(fence, most + (most - least)) : fence;
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
    for (size_t i = 0; i < search->n; i++)
        sorted[i] = search->told[i];
    qsort(sorted, search->n, sizeof *sorted, by_violation);
    for (; out.n < N_NEAREST && out.n < search->n; out.n++)
        out.encodings[out.n] = sorted[out.n].encoding;
    free(sorted);
    return out;
}

/* The worth of candidates from the first on. Where nothing is feasible yet, feasibility is all. */
static void judge(const bayesian *search, const hwnas_gain *gain, double *worth,
                  const hwnas_candidates *c, size_t first)
{
    hwnas_outlook outlook;
    size_t m = (size_t)search->config.n_objectives;
    if (first == c->n)
        return;
    hwnas_surrogate_predict(search->surrogate, &outlook, c->encodings + first, c->n - first);
    for (size_t i = 0; i < outlook.n; i++)
        worth[first + i] =
            outlook.feasible[i] *
            (gain ? hwnas_gain_expect(gain, &outlook.means[i * m], &outlook.sds[i * m]) : 1);
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

static size_t candidates_for(const hwnas_surrogate *surrogate, double work)
{
    double rows = (double)hwnas_surrogate_rows(surrogate) + 1;
    double each = rows * (rows + (double)hwnas_surrogate_columns(surrogate));
    return (size_t)fmin(MAX_CANDIDATES, fmax(MIN_CANDIDATES, work / each));
}

/* Fills in the most promising candidate; false when there is none. */
static bool choose(bayesian *search, uint64_t trial, hwnas_arch *out, hwnas_rng *rng)
{
    hwnas_front front;
    hwnas_gain gain;
    double reference[HWNAS_MAX_OBJECTIVES];
    const hwnas_effort *effort = hwnas_effort_for(&search->seen);
    size_t limit = candidates_for(search->surrogate, effort->work);
    size_t room = limit + N_STEPS * effort->n_climbers * effort->max_neighbours;
    size_t best[HWNAS_MAX_CLIMBERS];
    double *worth = hwnas_alloc(room * sizeof *worth);
    hwnas_candidates c = {.seen = &search->seen,
                          .duplicates = &search->duplicates,
                          .book = &search->book,
                          .mark = trial + 1,
                          .limit = limit};
    find_front(search, &front);
    parents p = find_parents(search, &front);
    if (search->seen.space_size && search->seen.space_size - search->seen.n <= limit) {
        hwnas_candidates_add_all(&c);
    } else {
        c.limit = limit / 2;
        hwnas_candidates_add_neighbours(&c, p.encodings, p.n, SIZE_MAX, rng);
        c.limit = limit;
        hwnas_candidates_add_distant(&c, p.encodings, p.n, rng);
        hwnas_candidates_add_random(&c, search->config.seed, trial, rng);
    }
    bool any = front.n > 0;
    for (int k = 0; any && k < search->config.n_objectives; k++)
        reference[k] = trial % WIDE_PERIOD == WIDE_PERIOD - 1 ? wide_reference_of(search, k)
                                                              : reference_of(search, k);
    if (any)
        hwnas_gain_init(&gain, &front, hwnas_surrogate_scales(search->surrogate), reference, rng);
    judge(search, any ? &gain : NULL, worth, &c, 0);
    size_t n_best = find_best(best, effort->n_climbers, worth, c.n);
    for (int step = 0; step < N_STEPS && n_best > 0; step++) {
        const hwnas_encoding *from[HWNAS_MAX_CLIMBERS];
        size_t first = c.n;
        for (size_t i = 0; i < n_best; i++)
            from[i] = c.encodings[best[i]];
        c.limit = room;
        hwnas_candidates_add_neighbours(&c, from, n_best, effort->max_neighbours, rng);
        if (c.n == first)
            break;
        judge(search, any ? &gain : NULL, worth, &c, first);
        n_best = find_best(best, effort->n_climbers, worth, c.n);
    }
    if (n_best)
        hwnas_arch_assign(out, c.encodings[best[0]]->arch);
    if (any)
        hwnas_gain_done(&gain);
    hwnas_front_done(&front);
    free(p.encodings);
    hwnas_candidates_done(&c);
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

/* A step of local search, a neighbour of the front, or of evolution, a mutated crossing of its
 * members, by equal chance; false where none is new. */
static bool step_without_model(bayesian *search, uint64_t trial, hwnas_arch *out, hwnas_rng *rng)
{
    hwnas_front front;
    hwnas_candidates c = {.seen = &search->seen,
                          .duplicates = &search->duplicates,
                          .book = &search->book,
                          .mark = trial + 1,
                          .limit = SIZE_MAX};
    find_front(search, &front);
    parents p = find_parents(search, &front);
    if (hwnas_rng_below(rng, 2)) {
        c.limit = 1;
        hwnas_candidates_add_distant(&c, p.encodings, p.n, rng);
    } else {
        const size_t first = hwnas_rng_below(rng, (uint32_t)p.n);
        for (size_t i = 0; i < p.n && c.n == 0; i++)
            hwnas_candidates_add_neighbours(&c, &p.encodings[(first + i) % p.n], 1, SIZE_MAX, rng);
    }
    const bool found = c.n > 0;
    if (found)
        hwnas_arch_assign(out, c.encodings[hwnas_rng_below(rng, (uint32_t)c.n)]->arch);
    hwnas_front_done(&front);
    free(p.encodings);
    hwnas_candidates_done(&c);
    return found;
}

/* With a model that foretells all nothing is drawn. */
static bool is_others_turn(const bayesian *search, hwnas_rng *rng)
{
    return search->trust.share > 0 && hwnas_rng_double(rng) < search->trust.share;
}

static hwnas_status propose(bayesian *search, uint64_t trial, hwnas_arch *out)
{
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    bool is_start = trial < N_INITIAL && search->n_successes < N_INITIAL; /* not of a warm one */
    if (is_start && !hwnas_seen_has(&search->seen, search->design[trial])) {
        hwnas_arch_assign(out, search->design[trial]);
        return HWNAS_OK;
    }
    if (!is_start && search->n_successes >= N_INITIAL / 2) {
        TRY(hwnas_trust_update(&search->trust, &search->config, search->told, search->n));
        if (is_others_turn(search, &rng) && step_without_model(search, trial, out, &rng))
            return HWNAS_OK;
        TRY(update(search));
        if (choose(search, trial, out, &rng))
            return HWNAS_OK;
    }
    return hwnas_seen_sample_new(&search->seen, out, &rng);
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_seen_add(&search->seen, arch);
    HWNAS_GROW(search->pending, search->n_pending, search->pending_capacity);
    search->pending[search->n_pending++] = (hwnas_told){.trial = trial, .encoding = encode(arch)};
}

void hwnas_bayesian_avoid(hwnas_strategy *strategy, const hwnas_arch *arch)
{
    hwnas_seen_add(&((bayesian *)strategy)->seen, arch);
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    bayesian *search = (bayesian *)strategy;
    hwnas_codebook_trim(&search->book);
    TRY(propose(search, trial, out));
    note(strategy, trial, out);
    return HWNAS_OK;
}

const hwnas_strategy_ops hwnas_strategy_bayesian = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "bayesian",
    .help = "model-guided: Gaussian processes and expected hypervolume improvement",
    .seeks_feasible = true,
    .min_trials = min_trials,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
