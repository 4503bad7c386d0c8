/* search.h: strategies that propose architectures, behind ask and tell.
 *
 * A strategy sees encodings and numbers, never a device. It is steady-state: any number of asks may
 * be open, tells come in any order, and its state is a function of the seed and of that order
 * alone, so a study is continued by telling it again what the store remembers. */
#ifndef HWNAS_SEARCH_SEARCH_H
#define HWNAS_SEARCH_SEARCH_H

#include "search/pareto.h"
#include "space/arch.h"

/* How a trial ended, as numbers. All objectives are minimised: the study negates the others. */
typedef struct hwnas_score {
    double objectives[HWNAS_MAX_OBJECTIVES];
    double violation; /* 0: feasible; > 0: sum of the relative excesses over the limits;
                         INFINITY: the trial failed and `objectives` mean nothing */
} hwnas_score;

typedef struct hwnas_strategy_config {
    const hwnas_space *space; /* borrowed */
    int n_objectives;
    uint64_t seed;
    int population; /* nsga2; 0: its default */
} hwnas_strategy_config;

typedef struct hwnas_strategy hwnas_strategy;

typedef struct hwnas_strategy_ops {
    const char *name, *help;
    hwnas_status (*create)(hwnas_strategy **out, const hwnas_strategy_config *config);
    /* Fills `out` with a new proposal for trial number `trial` (from 0, each asked once, in order).
     * HWNAS_E_EXHAUSTED when it has no architecture left that was not proposed before. */
    hwnas_status (*ask)(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out);
    /* Also accepts trials that were asked of an earlier process. */
    hwnas_status (*tell)(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score);
    void (*free)(hwnas_strategy *strategy);
} hwnas_strategy_ops;

/* Concrete strategies embed this as their first member. */
struct hwnas_strategy {
    const hwnas_strategy_ops *ops;
};

extern const hwnas_strategy_ops *const hwnas_strategies[]; /* NULL-terminated */
/* HWNAS_E_INPUT names the strategies that there are. */
HWNAS_CHECKED hwnas_status hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                              const hwnas_strategy_config *config);
void hwnas_strategy_free(hwnas_strategy *strategy);

#endif
