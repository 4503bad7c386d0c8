/* probe.h: what the sizes of a space's networks say of limits before the search.
 *
 * What costs grows with the size of a network, so the search for networks that meet a limit begins
 * with the smallest or the largest ones. They are found by descent: from the best of some samples
 * and of the two ends of the space, one choice after the other goes to its best value, until none
 * helps. That is a heuristic, and the smallest network need not be the fastest. So only a look at
 * every network refuses a job. */
#ifndef HWNAS_STUDY_PROBE_H
#define HWNAS_STUDY_PROBE_H

#include "study/evaluate.h"

/* The architecture of least (`largest`: most) MACs, params or memory, settled; yours to free. */
hwnas_arch *hwnas_probe_extreme(const hwnas_space *space, const hwnas_metric *metric, bool largest);

enum { HWNAS_MAX_STARTS = 8 };

/* Networks to begin with, all different: for each limit on what grows with a network's size those
 * that are likely to meet it; of a trained model also uniform scalings of it. Returns how many;
 * each is yours to free. `walked` is the job's space with its settings. */
int hwnas_probe_starts(hwnas_arch *out[HWNAS_MAX_STARTS], const hwnas_job *job,
                       const hwnas_space *walked);

/* HWNAS_E_INFEASIBLE when no network at all meets a limit on what is computed from the graph. Says
 * nothing of spaces of more than 10,000 encodings. `space` is that of the job without settings,
 * `walked` the one with them. */
HWNAS_CHECKED hwnas_status hwnas_probe_limits(hwnas_evaluator *evaluator, const hwnas_job *job,
                                              const hwnas_space *space, const hwnas_space *walked);

#endif
