/* search.h: strategies that propose architectures, behind ask and tell. What one is says
 * <hwnas/strategy.h>. */
#ifndef HWNAS_SEARCH_SEARCH_H
#define HWNAS_SEARCH_SEARCH_H

#include <hwnas/strategy.h>

#include "search/pareto.h"
#include "space/arch.h"

/* Built in and registered, NULL-terminated. */
extern const hwnas_strategy_ops *hwnas_strategies[];
/* HWNAS_E_INPUT names the strategies that there are, or says why this search is not for that one.
 */
HWNAS_CHECKED hwnas_status hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                              const hwnas_strategy_config *config);
void hwnas_strategy_free(hwnas_strategy *strategy);

/* What "auto" stands for: the name of the strategy for such a search, and the reason as a clause
 * ("100 trials are too few for a model to learn from"), yours to free(). The choice must be kept
 * with a study, since its budget may change later. */
const char *hwnas_strategy_choose(char **why, const hwnas_strategy_config *config);

/* A checksum of the code that proposals follow from: strategies that are built in, spaces, random
 * numbers, the model of `bayesian`. Static. */
const char *hwnas_strategy_checksum(void);

#endif
