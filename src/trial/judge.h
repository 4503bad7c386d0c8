/* judge.h: a trial against what the search is after: limits, scores, and which of two is better.
 *
 * A job has one front, or one for each device; a front's goals are those of the networks and those
 * of its device. */
#ifndef HWNAS_TRIAL_JUDGE_H
#define HWNAS_TRIAL_JUDGE_H

#include "search/search.h"
#include "trial/goal.h"
#include "trial/trial.h"

int hwnas_n_fronts(const hwnas_goals *goals);
bool hwnas_goal_counts(const hwnas_goal *goal, const hwnas_goals *goals, int front);

/* Sum of the relative excesses over the limits that count for a front; 0: feasible. A limit holds
 * for the whole interval of a measurement. One on a value that is not known is missed by infinity
 * when `is_complete`, else it is left out. By infinity a trial misses all that was left out of the
 * search (trial.h). */
double hwnas_front_violation(const hwnas_trial *trial, const hwnas_goals *goals, int front,
                             bool is_complete);
/* Of the front that is violated least: a trial is feasible when some front takes it. */
double hwnas_trial_violation(const hwnas_trial *trial, const hwnas_goals *goals, bool is_complete);

/* How a finished trial looks to a strategy. */
hwnas_score hwnas_trial_score(const hwnas_trial *trial, const hwnas_goals *goals);
bool hwnas_trial_is_feasible(const hwnas_trial *trial, const hwnas_goals *goals, int front);
/* A feasible trial meets the job's targets (false without any). */
bool hwnas_trial_meets_targets(const hwnas_trial *trial, const hwnas_goals *goals);

/* Two values of one metric: below 0 when `a` is better, 0 when they cannot be told apart. Measured
 * ones can when their 95 % intervals do not overlap, which is stricter than a test of the
 * difference (Schenker and Gentleman, "On Judging the Significance of Differences by Examining the
 * Overlap Between Confidence Intervals", The American Statistician 55, 2001); others are compared
 * as they are. */
int hwnas_value_compare(const hwnas_value_row *a, const hwnas_value_row *b,
                        const hwnas_metric *metric);

/* The front of a job's trials by that comparison: going from the best in the first objective on, a
 * feasible trial stays unless one that stays is nowhere worse. Two that are equal in one objective
 * as far as was measured are so judged by the others; as nobody is removed but by one that stays,
 * each removed one is dominated by one on the front (compare Laumanns, Thiele, Deb, Zitzler,
 * "Combining Convergence and Diversity in Evolutionary Multiobjective Optimization", 2002, whose
 * archive treats all within epsilon so). A trial with an unstable measurement among these values
 * removes none without: a doubtful number may stand beside a clean one, with its mark, but not in
 * its place. `out` gets indices of trials in that order, and has room for n. Returns how many. */
size_t hwnas_front_find(size_t *out, const hwnas_trial *trials, size_t n, const hwnas_goals *goals,
                        int front);

#endif
