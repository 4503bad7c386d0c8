/* survey.h: whether a device works here, and how fast it can be at most. */
#ifndef HWNAS_MEASURE_SURVEY_H
#define HWNAS_MEASURE_SURVEY_H

#include "device/device.h"
#include "measure/roofline.h"

enum { HWNAS_SURVEY_ROOFLINES = 2 * HWNAS_N_PRECISIONS };

typedef struct hwnas_device_survey {
    const hwnas_device_ops *ops;
    hwnas_device_info info;
    bool works;
    char trouble[1024]; /* why it, or its roofline, cannot be had; or "" */
    size_t n;
    hwnas_roofline rooflines[HWNAS_SURVEY_ROOFLINES]; /* one thread and all, in every precision */
} hwnas_device_survey;

/* Opens the device and finds its rooflines, measured anew with `refresh`. That one cannot be had is
 * written down, and is no failure; HWNAS_E_INTERRUPTED is one. */
HWNAS_CHECKED hwnas_status hwnas_device_survey_make(hwnas_device_survey *out,
                                                    const hwnas_device_ops *ops, bool refresh,
                                                    const hwnas_measure_options *options);

#endif
