/* budget.h: what a session may still spend, and when it is over. */
#ifndef HWNAS_STUDY_BUDGET_H
#define HWNAS_STUDY_BUDGET_H

#include "study/session.h"

/* Trials without those that were taken over. */
uint64_t hwnas_session_n_own(const hwnas_session *s);

/* Of all sessions of the study. */
double hwnas_session_seconds(const hwnas_session *s);
/* Seconds for trials: what is left of the budget when near ties, the front's end and the last
 * trainings have had theirs. INFINITY: without an end. */
double hwnas_session_search_seconds(const hwnas_session *s);
/* INFINITY: without an end. */
double hwnas_session_seconds_left(const hwnas_session *s);
HWNAS_CHECKED hwnas_status hwnas_session_remember_time(hwnas_session *s);
/* Of one that shares its study: what others remembered counts, where it is more. */
HWNAS_CHECKED hwnas_status hwnas_session_recall_time(hwnas_session *s);

/* Why no other trial is to be begun, as half a sentence; NULL: one is. Yours to free. */
char *hwnas_session_end(const hwnas_session *s);
/* The failure of the last trial, which is recorded still, where none of the first ones succeeded:
 * the machine or the job is wrong. */
HWNAS_CHECKED hwnas_status hwnas_session_check_hope(const hwnas_session *s);

#endif
