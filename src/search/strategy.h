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

/* A network that `bayesian` is not to propose, and learns nothing of. */
void hwnas_bayesian_avoid(hwnas_strategy *bayesian, const hwnas_arch *arch);

#endif
