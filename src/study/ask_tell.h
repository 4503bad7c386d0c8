/* ask_tell.h: a study whose networks another program runs: it asks for one, or for several at a
 * time, and tells what it measured, in any order.
 *
 * The same session as a search's: what is free to know decides first, and what it decides is a
 * trial like others that nobody is asked to run. */
#ifndef HWNAS_STUDY_ASK_TELL_H
#define HWNAS_STUDY_ASK_TELL_H

#include "study/session.h"

/* A network to be run: one that an earlier session asked for and was not told, else the next
 * proposal that meets the limits by what is free to know. HWNAS_E_EXHAUSTED: there is no other
 * trial to be made, and the message says why. Borrowed, until the trial is told. */
HWNAS_CHECKED hwnas_status hwnas_session_ask(const hwnas_asked **out, hwnas_session *s);
/* Has a trial that was running when its process ended ready to be asked again. */
HWNAS_CHECKED hwnas_status hwnas_session_ask_again(hwnas_session *s, uint64_t number,
                                                   const hwnas_arch *walked);

/* Finishes a trial that was asked with what was measured of it, or with a failure. HWNAS_E_INPUT:
 * it was told before or never asked, or the values are not those of the job; it is as before. */
HWNAS_CHECKED hwnas_status hwnas_session_tell(hwnas_session *s, uint64_t number,
                                              const hwnas_metric_value *values, size_t n);
HWNAS_CHECKED hwnas_status hwnas_session_tell_failure(hwnas_session *s, uint64_t number,
                                                      hwnas_status why, const char *message);

/* ---- What open trials of all kinds share ---- */

/* Puts one at the end of the list. */
hwnas_asked *hwnas_asked_add(hwnas_session *s, uint64_t number, const hwnas_arch *walked);
/* Takes one out of the list; it is the caller's. */
void hwnas_asked_remove(hwnas_session *s, const hwnas_asked *asked);
/* What is free to know, or a duplicate's run, has settled the trial, which is written: nobody need
 * run it. */
HWNAS_CHECKED hwnas_status hwnas_asked_settle(hwnas_session *s, hwnas_asked *asked);
/* Writes what came of the trial, and the strategy learns it. Where it cannot be written it is open
 * as before. Takes `trial`. */
HWNAS_CHECKED hwnas_status hwnas_asked_finish(hwnas_session *s, hwnas_asked *asked,
                                              hwnas_trial *trial);

#endif
