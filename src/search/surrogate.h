/* surrogate.h: what the trials so far say about those not made: a Gaussian process for each
 * objective, for each limit, and for whether a trial fails. */
#ifndef HWNAS_SEARCH_SURROGATE_H
#define HWNAS_SEARCH_SURROGATE_H

#include "search/columns.h"
#include "search/objective_scale.h"
#include "search/search.h"

typedef struct hwnas_told {
    uint64_t trial;
    const hwnas_encoding *encoding; /* borrowed */
    hwnas_score score;
} hwnas_told;

typedef struct hwnas_surrogate hwnas_surrogate;

hwnas_surrogate *hwnas_surrogate_new(const hwnas_strategy_config *config);
void hwnas_surrogate_free(hwnas_surrogate *surrogate); /* accepts NULL */

/* Learns from n trials, in the order of their tells; what it then says is a function of them alone.
 * It is quick when they are those of the last call and some more: hyper-parameters are learnt anew
 * at certain numbers of trials only. `pending`: proposals that are still open; they are
 * taken to turn out as expected (the "kriging believer" of Ginsbourger, Le Riche and Carraro 2010),
 * which keeps further ones away from them.
 *
 * Of many trials it sees a part: the nearest to the front and a sample of the others, so its time
 * does not grow with their number. */
HWNAS_CHECKED hwnas_status hwnas_surrogate_update(hwnas_surrogate *surrogate,
                                                  const hwnas_told *told, size_t n,
                                                  const hwnas_encoding *const *pending,
                                                  size_t n_pending);

/* Some of the trials are not what they were: the next call learns all anew. */
void hwnas_surrogate_forget(hwnas_surrogate *surrogate);

/* Of each candidate, row by row: mean and deviation on its scale of what a trial would come to in
 * each objective, with what the encoding does not explain; and the probability that it meets the
 * limits and does not fail. */
typedef struct hwnas_outlook {
    size_t n;
    int n_objectives;
    double *means, *sds; /* n * n_objectives */
    double *feasible;    /* n */
} hwnas_outlook;

void hwnas_surrogate_predict(const hwnas_surrogate *surrogate, hwnas_outlook *out,
                             const hwnas_encoding *const *candidates, size_t n);
void hwnas_outlook_done(hwnas_outlook *outlook);

const hwnas_scale *hwnas_surrogate_scales(const hwnas_surrogate *surrogate); /* by objective */
size_t hwnas_surrogate_rows(const hwnas_surrogate *surrogate);    /* that a prediction looks at */
size_t hwnas_surrogate_columns(const hwnas_surrogate *surrogate); /* of each */

#endif
