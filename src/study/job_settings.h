/* job_settings.h: readers of what a job says of settings (study/settings.h). For job_keys.c. */
#ifndef HWNAS_STUDY_JOB_SETTINGS_H
#define HWNAS_STUDY_JOB_SETTINGS_H

#include "study/settings.h"

/* One value. */
HWNAS_CHECKED hwnas_status hwnas_job_read_setting_value(int *out, const hwnas_yaml *node,
                                                        const hwnas_setting_kind *setting);
/* A value; {values: [...]}, a choice of the search; or {per: layer, values: [...]}, which is one
 * value: a precision for each layer. */
HWNAS_CHECKED hwnas_status hwnas_job_read_setting(hwnas_setting_values *out, const hwnas_yaml *node,
                                                  const hwnas_setting_kind *setting);

#endif
