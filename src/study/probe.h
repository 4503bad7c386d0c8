/* probe.h: limits that no network of a space can meet, found before the search.
 *
 * What costs grows with the size of a network, so the smallest and the largest networks decide. They
 * are found by descent: from the best of some samples and of the two ends of the space, one choice after
 * the other goes to its best value, until none helps. Where a cost is a sum over the choices that is
 * the true end. */
#ifndef HWNAS_STUDY_PROBE_H
#define HWNAS_STUDY_PROBE_H

#include "study/evaluate.h"

/* The architecture of least (`largest`: most) MACs, params or memory, settled; yours to free. */
hwnas_arch *hwnas_probe_extreme(const hwnas_space *space, const hwnas_metric *metric, bool largest);

/* HWNAS_E_INFEASIBLE when even the network that is best for a limit misses it: for sure where the value
 * is computed; by more than a tenth, counted from the near end of its interval, where it is measured or
 * replayed, because there the smallest network need not be the fastest. Limits on accuracy are left to
 * the search. `space` is that of the job without settings. */
HWNAS_CHECKED hwnas_status hwnas_probe(hwnas_evaluator *evaluator, const hwnas_job *job,
                                       const hwnas_space *space);

#endif
