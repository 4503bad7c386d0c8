/* handover.h: what a trial has from its first tasks, as text for the worker that does the next. */
#ifndef HWNAS_STUDY_HANDOVER_H
#define HWNAS_STUDY_HANDOVER_H

#include "trial/trial.h"

/* Values, detail, seconds and marks of a trial that is not finished; yours to free(). */
char *hwnas_handover_write(const hwnas_trial *trial);
/* Puts them into a trial that has none; NULL: there are none. False: the text is damaged, and the
 * trial to be begun anew. */
bool hwnas_handover_read(hwnas_trial *trial, const char *text);

#endif
