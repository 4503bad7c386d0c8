/* verify_front.h: a time is believed only of the right result: each network of the front is run once and
 * compared with a reference (measure/verify.h), on each of its devices. */
#ifndef HWNAS_STUDY_VERIFY_FRONT_H
#define HWNAS_STUDY_VERIFY_FRONT_H

#include "study/session.h"

/* Notes in the study why nothing is verified on a device, where nothing can be. */
HWNAS_CHECKED hwnas_status hwnas_session_note_unverified(hwnas_session *s);
/* Verifies those of the front that are not verified yet, and notes in the study and in the session
 * what came of it. `is_right`: none of them is wrong; else the front is another one now. When the
 * first networks that are tried are wrong without an exception, it is HWNAS_E_WRONG_RESULT. A
 * signal ends it, and what is done stays. */
HWNAS_CHECKED hwnas_status hwnas_session_verify(hwnas_session *s, bool *is_right);

#endif
