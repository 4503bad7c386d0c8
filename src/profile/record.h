/* record.h: a profile as the JSON object "hwnas.profile" (docs/json.md), and recorded ones read
 * again, from this machine or another. */
#ifndef HWNAS_PROFILE_RECORD_H
#define HWNAS_PROFILE_RECORD_H

#include <jansson.h>

#include "profile/profile.h"

/* A new reference; NULL: a name in it is not UTF-8. */
json_t *hwnas_profile_json(const hwnas_profile *profile);

/* Its member `plan`, a new reference: null where no training was asked for. */
json_t *hwnas_training_plan_json(const hwnas_training_plan *plan);

/* Writes the object to a file, whole or not at all. */
HWNAS_CHECKED hwnas_status hwnas_profile_save(const hwnas_profile *profile, const char *path);

/* Reads it. A file that is cut short, of another format or version, or that has figures that cannot
 * be: HWNAS_E_INPUT at its place. `out` is to be freed with hwnas_profile_free(). */
HWNAS_CHECKED hwnas_status hwnas_profile_load(hwnas_profile **out, const char *path);
/* The two halves of it: the JSON of a file, a new reference; and the profile that it is. */
HWNAS_CHECKED hwnas_status hwnas_record_read(json_t **out, const char *path);
HWNAS_CHECKED hwnas_status hwnas_profile_of_json(hwnas_profile **out, const json_t *json,
                                                 const char *path);

#endif
