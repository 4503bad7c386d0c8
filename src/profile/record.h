/* record.h: a profile as the JSON object "hwnas.profile" (docs/json.md). */
#ifndef HWNAS_PROFILE_RECORD_H
#define HWNAS_PROFILE_RECORD_H

#include <jansson.h>

#include "profile/profile.h"

json_t *hwnas_profile_json(const hwnas_profile *profile); /* a new reference */

#endif
