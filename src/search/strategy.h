/* strategy.h: what the strategies share; one file each beside this one. */
#ifndef HWNAS_SEARCH_STRATEGY_H
#define HWNAS_SEARCH_STRATEGY_H

#include "search/search.h"

extern const hwnas_strategy_ops hwnas_strategy_random;
extern const hwnas_strategy_ops hwnas_strategy_nsga2;

/* The stream of one trial. What a trial proposes then depends on what was told before it and on
 * nothing else, which is what lets another process take over. */
hwnas_rng hwnas_strategy_rng(const hwnas_strategy_config *config, uint64_t trial);

#endif
