/* profile.h: what devices do with networks: measured side by side, compared, forecast, learnt.
 *
 * Each function gives a report (hwnas.h). Where it measures it does so in a runner, as a measurer
 * does. Any thread may call them; two that measure at a time disturb each other. */
#ifndef HWNAS_PUBLIC_PROFILE_H
#define HWNAS_PUBLIC_PROFILE_H

#include <hwnas.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What this machine can do ---- */

typedef struct hwnas_survey_options {
    size_t size;
    bool refresh; /* measure again what is known from an earlier call */
    /* (optional) Becomes nonzero, in a signal handler or another thread: HWNAS_E_INTERRUPTED. */
    const volatile sig_atomic_t *cancel;
} hwnas_survey_options;
#define HWNAS_SURVEY_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_survey_options), false, NULL                                                  \
    }

/* The devices that the library knows: whether each works here, its precisions, how fast it computes
 * and moves values at most; and whether measurements may have real-time priority. Text, JSON
 * ("hwnas.devices"). The first time seconds for each precision; the figures are kept in the user's
 * cache. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_devices_survey(hwnas_report **out,
                                                          const hwnas_survey_options *options);

/* ---- Forecasts ---- */

typedef struct hwnas_forecast_options {
    size_t size;
    const char *device; /* NULL: "cuda-dry:h200" */
    hwnas_precision precision;
    bool with_steps; /* the text lists them; JSON does in any case */
} hwnas_forecast_options;
#define HWNAS_FORECAST_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_forecast_options), NULL, HWNAS_F32, false                                     \
    }

/* Compiles a network for a device and tells its steps and its memory; runs nothing, so the device
 * need not be here (cuda-dry). HWNAS_E_UNSUPPORTED: the device cannot compute the network, or does
 * not tell. Text, JSON ("hwnas.forecast"). Milliseconds to seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_forecast(hwnas_report **out,
                                                            const hwnas_network *network,
                                                            const hwnas_forecast_options *options);

/* ---- The table of latencies ---- */

typedef struct hwnas_calibration_options {
    size_t size;
    const char *device; /* NULL: "cpu" */
    int threads;        /* 0: all cores that this process may use */
    int batch;          /* 0: 1 */
    hwnas_precision precision;
    double seconds; /* to be spent; 0: 300 */
    uint64_t seed;  /* of the networks */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the report concludes with
     * HWNAS_E_INTERRUPTED, and what was measured is kept. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told how far it is, in a line, in the calling thread. */
    void (*progress)(void *context, const char *words);
    void *context;
} hwnas_calibration_options;
#define HWNAS_CALIBRATION_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(hwnas_calibration_options), NULL, 0, 0, HWNAS_F32, 0, 0, NULL, NULL, NULL           \
    }

/* Measures those networks of a space that teach the user's table of latencies most, so that
 * searches can estimate others without running them (docs/latency-table.md). Text, JSON
 * ("hwnas.calibration"). Takes options->seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_calibrate(
    hwnas_report **out, const hwnas_space *space, const hwnas_calibration_options *options);

#ifdef __cplusplus
}
#endif
#endif
