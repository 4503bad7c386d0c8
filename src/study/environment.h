/* environment.h: what a study's trials were made with: programs, machines, and what its job names,
 * by contents. */
#ifndef HWNAS_STUDY_ENVIRONMENT_H
#define HWNAS_STUDY_ENVIRONMENT_H

#include <jansson.h>

#include "store/store.h"

/* Notes this program and this machine in the study, once. */
HWNAS_CHECKED hwnas_status hwnas_environment_note(hwnas_store *store);
/* One object, format "hwnas.environment" version 1; docs/json.md describes it. A new reference. */
HWNAS_CHECKED hwnas_status hwnas_environment_load(json_t **out, hwnas_store *store);

#endif
