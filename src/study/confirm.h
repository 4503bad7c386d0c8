/* confirm.h: the front's end, measured again by fresh measurements that took no part in its choice.
 *
 * The best of many noisy values is kept, so what a search ends with looks faster than it is, and
 * may be over its limit (the winner's curse: Smith and Winkler, "The Optimizer's Curse", Management
 * Science 52, 2006). At the end the first networks of the front are measured again, in rounds, each
 * in a new process, in turns with other networks of the study that were chosen for the time of
 * their measurement alone. How much slower or faster these are than they were, and than in the
 * other rounds, says how the machine drifts and how far two runs of a network lie apart, so what a
 * network takes at the machine's mean level, and how well that is known (drift.h). What comes of it
 * is published in the place of the first measurement, which stays in the history. */
#ifndef HWNAS_STUDY_CONFIRM_H
#define HWNAS_STUDY_CONFIRM_H

#include "study/session.h"

enum {
    HWNAS_CONFIRM_ROUNDS = 12,    /* at most */
    HWNAS_CONFIRM_LEAST = 4,      /* rounds, and other networks, that say anything */
    HWNAS_CONFIRM_REFERENCES = 8, /* other networks at most */
};

/* Confirms the winner of each front in `seconds` at most: first it and those that would take its
 * place, and where none of these keeps the limits, the next ones, as long as there is time. Notes
 * in the study what came of it. */
HWNAS_CHECKED hwnas_status hwnas_session_confirm(hwnas_session *s, double seconds);

/* That note: a new reference; NULL: no network was confirmed. */
HWNAS_CHECKED hwnas_status hwnas_confirmed_load(json_t **out, hwnas_store *store);
/* What was found of a trial's median latency, "latency.p50" or "latency.p50 on pi": `trial`,
 * `metric`, `first`, `value`, `low`, `high` (seconds), `rounds` and `references`; borrowed; NULL:
 * not confirmed. */
const json_t *hwnas_confirmed_of(const json_t *confirmed, uint64_t number, const char *metric);

#endif
