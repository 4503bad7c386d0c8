/* search.h: strategies that propose architectures, behind ask and tell.
 *
 * A strategy sees encodings and numbers, never a device. It is steady-state: any number of asks may
 * be open, tells come in any order, and its state is a function of the seed and of that order
 * alone, so a study is continued by telling it again what the store remembers. */
#ifndef HWNAS_SEARCH_SEARCH_H
#define HWNAS_SEARCH_SEARCH_H

#include "search/pareto.h"
#include "space/arch.h"

enum { HWNAS_MAX_MARGINS = 16 };

/* How a trial ended, as numbers. All objectives are minimised: the study negates the others. */
typedef struct hwnas_score {
    double objectives[HWNAS_MAX_OBJECTIVES]; /* NaN: not known (infeasible only) */
    double violation; /* 0: feasible; > 0: sum of the relative excesses over the limits;
                         INFINITY: the trial failed and `objectives` mean nothing */
    /* (optional) By limit, the relative excess over it: <= 0 where it is met, NaN where not known.
     * It tells a model how near to a limit feasible trials are, which `violation` does not. */
    int n_margins;
    double margins[HWNAS_MAX_MARGINS];
    int rung;         /* that it was evaluated at; 0 is the real thing (hwnas_strategy_ops.rung) */
    bool is_estimate; /* some value is none of a measurement; the trial may be told again */
} hwnas_score;

typedef struct hwnas_strategy_config {
    const hwnas_space *space; /* borrowed */
    int n_objectives;
    uint64_t seed;
    int population; /* nsga2, regularized-evolution; 0: its default */

    /* What is known of the search beforehand; 0: not known. */
    uint64_t max_trials;
    double trial_seconds;
    int n_rungs; /* ways to evaluate a network, from the real thing to the cheapest; 0: 1 */
} hwnas_strategy_config;

typedef struct hwnas_strategy hwnas_strategy;

typedef struct hwnas_strategy_ops {
    const char *name, *help;
    int max_objectives; /* 0: any number */
    /* While nothing is feasible it proposes what comes nearer to the limits: when it finds nothing,
     * that says something. */
    bool seeks_feasible;
    /* (optional) The fewest trials that it makes sense with. */
    uint64_t (*min_trials)(const hwnas_strategy_config *config);
    /* HWNAS_E_INPUT for a search that it cannot do. */
    hwnas_status (*create)(hwnas_strategy **out, const hwnas_strategy_config *config);
    /* Fills `out` with a new proposal for trial number `trial` (from 0, each asked once, in order).
     * HWNAS_E_EXHAUSTED when it has no architecture left that was not proposed before. */
    hwnas_status (*ask)(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out);
    /* (optional) At which rung a trial that was asked is to be evaluated: 0 is the real thing, the
     * highest the cheapest. The same architecture may then be asked again, at a lower rung. */
    int (*rung)(const hwnas_strategy *strategy, uint64_t trial);
    /* Also accepts trials that were asked of an earlier process, and a trial that was told as an
     * estimate once more, as it was measured: then that counts in the place of the estimate. */
    hwnas_status (*tell)(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score);
    void (*free)(hwnas_strategy *strategy);
} hwnas_strategy_ops;

/* Concrete strategies embed this as their first member. */
struct hwnas_strategy {
    const hwnas_strategy_ops *ops;
};

extern const hwnas_strategy_ops *const hwnas_strategies[]; /* NULL-terminated */
/* HWNAS_E_INPUT names the strategies that there are, or says why this search is not for that one.
 */
HWNAS_CHECKED hwnas_status hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                              const hwnas_strategy_config *config);
void hwnas_strategy_free(hwnas_strategy *strategy);

/* What "auto" stands for: the name of the strategy for such a search, and the reason as a clause
 * ("100 trials are too few for a model to learn from"), yours to free(). The choice must be kept
 * with a study, since its budget may change later. */
const char *hwnas_strategy_choose(char **why, const hwnas_strategy_config *config);

#endif
