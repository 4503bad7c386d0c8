/* strategy.h: what the strategies share; one file each beside this one. */
#ifndef HWNAS_SEARCH_STRATEGY_H
#define HWNAS_SEARCH_STRATEGY_H

#include "search/search.h"

extern const hwnas_strategy_ops hwnas_strategy_bayesian;
extern const hwnas_strategy_ops hwnas_strategy_exhaustive;
extern const hwnas_strategy_ops hwnas_strategy_local_search;
extern const hwnas_strategy_ops hwnas_strategy_nsga2;
extern const hwnas_strategy_ops hwnas_strategy_random;
extern const hwnas_strategy_ops hwnas_strategy_regularized_evolution;
extern const hwnas_strategy_ops hwnas_strategy_successive_halving;

/* The stream of one trial. What a trial proposes then depends on what was told before it and on
 * nothing else, which is what lets another process take over. */
hwnas_rng hwnas_strategy_rng(const hwnas_strategy_config *config, uint64_t trial);

/* A trial is better when it is less infeasible, then when it dominates; neither need be better. */
bool hwnas_score_is_better(const hwnas_score *a, const hwnas_score *b, int n_objectives);

#endif
