/* profile.h: measurements of models, side by side: what `hwnas profile` prints. */
#ifndef HWNAS_REPORT_PROFILE_H
#define HWNAS_REPORT_PROFILE_H

#include <jansson.h>

#include "base/str.h"
#include "graph/graph.h"
#include "measure/measure.h"

/* One model under one setting. */
typedef struct hwnas_profile_row {
    const char *model; /* borrowed */
    int batch, threads;
    hwnas_costs costs;
    hwnas_status status; /* of the measurement; when it failed, `m` means nothing */
    char *message;       /* heap; why it failed */
    hwnas_measurement m;
} hwnas_profile_row;

/* What was asked, and the answers. */
typedef struct hwnas_profile {
    const char *device; /* borrowed */
    hwnas_device_info info;
    size_t n_rows;
    hwnas_profile_row *rows; /* heap */
} hwnas_profile;

void hwnas_profile_done(hwnas_profile *profile);

void hwnas_profile_text(hwnas_str *out, const hwnas_profile *profile);
void hwnas_profile_csv(hwnas_str *out, const hwnas_profile *profile);
json_t *hwnas_profile_json(const hwnas_profile *profile); /* a new reference; docs/json.md */

#endif
