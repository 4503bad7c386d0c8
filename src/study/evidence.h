/* evidence.h: what a search without a winner may say.
 *
 * That no network meets a limit is a statement about the networks, and on a busy machine most
 * measurements tell of the machine: it is said only when most of the measurements that missed a
 * limit were undisturbed (docs/searching.md). */
#ifndef HWNAS_STUDY_EVIDENCE_H
#define HWNAS_STUDY_EVIDENCE_H

#include "trial/judge.h"

typedef struct hwnas_evidence {
    size_t n_missed;    /* trials that nothing but a measured value keeps from being feasible */
    size_t n_disturbed; /* of these, those whose measurement is marked */
} hwnas_evidence;

/* Counts a finished trial. One that misses a limit by what was computed, predicted or estimated
 * does so on any machine, and does not count. At a cheaper rung a latency is measured as at the
 * whole training; an accuracy is another one there. */
void hwnas_evidence_add(hwnas_evidence *evidence, const hwnas_trial *trial,
                        const hwnas_goals *goals);
/* More than half of what missed was disturbed. */
bool hwnas_evidence_is_bad(const hwnas_evidence *evidence);
/* HWNAS_E_DISTURBED, with the counts, when the evidence is bad. */
HWNAS_CHECKED hwnas_status hwnas_evidence_check(const hwnas_evidence *evidence);

#endif
