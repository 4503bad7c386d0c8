/* ties.h: near ties on the front, measured again side by side.
 *
 * A trial that the front would keep by its value, and that leaves it only because a rival that is
 * better otherwise cannot be told from it by the intervals of their latencies, is a near tie. At
 * the end of a search the networks of each such group take turns (study/turns.h). A round's
 * own speed, the geometric mean of its values, is divided out: the rounds say how the members
 * differ, and where they lie together stays as it was first measured, so that they can be compared
 * with networks that were not measured again. What cannot be told apart by then counts as equal. */
#ifndef HWNAS_STUDY_TIES_H
#define HWNAS_STUDY_TIES_H

#include "store/store.h"
#include "study/evaluate.h"

/* Values of `n` networks in each round, values[round * n + network]: replaces each by what it would
 * be in a round whose geometric mean is that of the networks' first values. */
void hwnas_ties_level(double *values, int n_rounds, int n, const double *firsts);

/* group[i]: the first trial of the group of near ties that trial i belongs to; its own index where
 * it has no rival. An estimate is none: nothing was measured that could be measured again. */
void hwnas_ties_find(size_t *group, const hwnas_trial *trials, size_t n, const hwnas_goals *goals);

/* Measures the near ties of a study, group by group from the best in the first objective on, while
 * there is time for a whole group, and stores what came of it. `space` is without settings,
 * `walked` with. */
HWNAS_CHECKED hwnas_status hwnas_ties_measure(hwnas_store *store, hwnas_evaluator *evaluator,
                                              const hwnas_job *job, const hwnas_space *space,
                                              const hwnas_space *walked, double seconds,
                                              const volatile sig_atomic_t *stop);

#endif
