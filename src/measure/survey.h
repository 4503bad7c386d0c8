/* survey.h: whether a device works here, and how fast it can be at most. */
#ifndef HWNAS_MEASURE_SURVEY_H
#define HWNAS_MEASURE_SURVEY_H

#include "device/device.h"
#include "measure/roofline.h"

/* One of several devices of a kind: cuda:1. */
typedef struct hwnas_device_instance {
    char spelling[32];
    bool works;
    hwnas_device_info info;
    char trouble[1024]; /* why it does not; or "" */
} hwnas_device_instance;

enum { HWNAS_SURVEY_INSTANCES = 32 };
enum { HWNAS_SURVEY_ROOFLINES = 2 * HWNAS_N_PRECISIONS };

typedef struct hwnas_device_survey {
    const hwnas_device_ops *ops;
    const char *spelling; /* borrowed */
    hwnas_device_info info;
    bool works;
    bool tells_realtime, is_realtime; /* a runner said whether it measures with that priority */
    bool is_hwnas;                    /* ... and it is hwnas, not a program of others */
    size_t n_instances; /* 0: there is one, or they are not counted */
    hwnas_device_instance instances[HWNAS_SURVEY_INSTANCES];
    char trouble[1540]; /* why it, or its roofline, cannot be had, and what to try; or "" */
    size_t n;
    hwnas_roofline rooflines[HWNAS_SURVEY_ROOFLINES]; /* one thread and all, in every precision */
} hwnas_device_survey;

/* Opens a kind of device and finds its rooflines, measured anew with `refresh`. That one cannot be
 * had is written down, and is no failure; HWNAS_E_INTERRUPTED is one. */
HWNAS_CHECKED hwnas_status hwnas_device_survey_make(hwnas_device_survey *out,
                                                    const hwnas_device_ops *ops, bool refresh,
                                                    const hwnas_measure_options *options);
/* The same of one device, wherever it is; that it does not work is a failure. */
HWNAS_CHECKED hwnas_status hwnas_device_survey_one(hwnas_device_survey *out, const char *spelling,
                                                   bool refresh,
                                                   const hwnas_measure_options *options);

#endif
