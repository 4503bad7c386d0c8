/* study_url.h: the name of a study in PostgreSQL: an address as libpq takes it, and with
 * study=NAME in its query. */
#ifndef HWNAS_STORE_STUDY_URL_H
#define HWNAS_STORE_STUDY_URL_H

#include "base/status.h"

bool hwnas_study_is_url(const char *path);
/* HWNAS_E_INPUT: a password stands in it, which every list of processes, message and study would
 * show. The message does not. */
HWNAS_CHECKED hwnas_status hwnas_study_url_check(const char *path);
/* What is for libpq, and the study's name (hwnas). Both are yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_study_url_split(char **conninfo, char **name, const char *path);

#endif
