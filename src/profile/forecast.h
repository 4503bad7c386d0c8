/* forecast.h: what a device makes of a network: its steps and its memory. Compiles, runs nothing,
 * so it says what a GPU would do that is not here (cuda-dry). */
#ifndef HWNAS_PROFILE_FORECAST_H
#define HWNAS_PROFILE_FORECAST_H

#include "device/device.h"

typedef struct hwnas_forecast {
    char *model, *device_name; /* heap */
    hwnas_graph *graph;        /* as it is compiled */
    hwnas_device *device;
    hwnas_exec *exec;
    hwnas_device_info info;
    hwnas_precision precision;
    hwnas_footprint footprint;
    size_t n_steps;
    const hwnas_exec_step *steps;
    bool with_steps; /* the text lists them */
} hwnas_forecast;

/* `model` is what the graph is called. To be released with hwnas_forecast_free().
 * HWNAS_E_UNSUPPORTED: the device cannot compute it, or does not tell. */
HWNAS_CHECKED hwnas_status hwnas_forecast_make(hwnas_forecast **out, const char *model,
                                               const hwnas_graph *graph, const char *device,
                                               const hwnas_exec_options *options);
void hwnas_forecast_free(hwnas_forecast *forecast); /* accepts NULL */

#endif
