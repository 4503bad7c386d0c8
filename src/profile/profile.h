/* profile.h: measurements of models side by side: what `hwnas profile` prints and saves, and what
 * `hwnas compare` reads. */
#ifndef HWNAS_PROFILE_PROFILE_H
#define HWNAS_PROFILE_PROFILE_H

#include "base/mem.h"
#include "graph/graph.h"
#include "measure/measure.h"

/* Strings are borrowed, from the profile's arena or from who made the row. */
typedef struct hwnas_profile_device {
    const char *spelling; /* "cpu" */
    hwnas_device_info info;
} hwnas_profile_device;

/* One model under one setting. */
typedef struct hwnas_profile_row {
    const char *model, *device;
    int batch, threads, streams;
    hwnas_precision precision;
    hwnas_costs costs; /* of the whole batch */
    hwnas_status
        status; /* of the measurement; when it failed, what follows `message` means nothing */
    const char *message; /* why it failed */
    hwnas_measurement m; /* of one run, which is a batch */
    double items_per_second;
    const char *doubt; /* why the measurement is unstable; NULL when it is not */
} hwnas_profile_row;

/* What was asked, and the answers. */
typedef struct hwnas_profile {
    hwnas_arena *arena;
    size_t n_devices, n_rows;
    hwnas_profile_device *devices;
    hwnas_profile_row *rows;
    size_t device_capacity, row_capacity;
} hwnas_profile;

hwnas_profile *hwnas_profile_new(void);
void hwnas_profile_free(hwnas_profile *profile); /* accepts NULL */

/* Adds a device unless it is there; notes what it says of itself either way. `info` NULL: it did
 * not come to say anything. */
void hwnas_profile_add_device(hwnas_profile *profile, const char *spelling,
                              const hwnas_device_info *info);
/* A new row of zeros; valid until the next is added. */
hwnas_profile_row *hwnas_profile_add_row(hwnas_profile *profile);

#endif
