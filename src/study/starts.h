/* starts.h: proposals that come before the strategy's. */
#ifndef HWNAS_STUDY_STARTS_H
#define HWNAS_STUDY_STARTS_H

#include "study/session.h"

/* The same in each session of a study, so that each goes on where the last one ended. */
HWNAS_CHECKED hwnas_status hwnas_session_find_starts(hwnas_session *s);
/* Before a proposal: adds those that follow from what was measured of the ones before. */
HWNAS_CHECKED hwnas_status hwnas_session_add_starts(hwnas_session *s);

#endif
