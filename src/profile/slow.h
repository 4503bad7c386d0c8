/* slow.h: how much of a network's time is in code that nobody would deploy: reference code, plain
 * loops of one thread, and steps that are far from what the device can do. */
#ifndef HWNAS_PROFILE_SLOW_H
#define HWNAS_PROFILE_SLOW_H

#include <math.h>

#include "profile/layers.h"

/* Texts are in the arena of who asked. */
typedef struct hwnas_slow_code {
    double share;     /* of a run, 0 to 1; NaN: not known */
    const char *name; /* of the step of it that takes longest; NULL: there is none */
    const char *ops;  /* its operators, "13 conv 12 relu" */
    const char *how;  /* what computes it */
    double roof;      /* what it reaches of the roofline, 0 to 1; NaN: not known */
} hwnas_slow_code;

/* Nothing known. */
#define HWNAS_SLOW_CODE_INIT                                                                       \
    {                                                                                              \
        .share = NAN, .roof = NAN                                                                  \
    }

/* Of steps that were timed. Those of known slow code count; plain loops only where they do not come
 * near the roofline, as a copy does; and any others below 2 % of the roofline that are longer than
 * calls explain. */
void hwnas_slow_code_of(hwnas_slow_code *out, hwnas_arena *arena, const hwnas_layers *layers);

/* Whether a latency with it is another than the one that would be deployed: more than a tenth. */
bool hwnas_slow_code_matters(const hwnas_slow_code *slow);

/* "mul (partition of mul add, 0.3 % of the roofline)", the words for the step; yours to free(). */
char *hwnas_slow_code_step(const hwnas_slow_code *slow);

/* Runs the steps of a network that is measured otherwise a few times, on a device that tells them;
 * one that does not, or is no device to deploy on, leaves it unknown, and so does a failure. Takes
 * tenths of a second and two runs. HWNAS_E_INTERRUPTED is all that fails. */
HWNAS_CHECKED hwnas_status hwnas_slow_code_find(hwnas_slow_code *out, hwnas_arena *arena,
                                                hwnas_runner *runner, const char *device,
                                                const hwnas_graph *graph,
                                                const hwnas_measure_options *options);

/* The same of steps that have been timed together with a measurement. */
HWNAS_CHECKED hwnas_status hwnas_slow_code_judge(hwnas_slow_code *out, hwnas_arena *arena,
                                                 hwnas_runner *runner, const char *device,
                                                 const hwnas_graph *graph,
                                                 const hwnas_step_times *times,
                                                 const hwnas_measure_options *options);
/* Whether steps on the device can be judged at all. */
bool hwnas_slow_code_applies(const char *device);

enum { HWNAS_SLOW_CODE_RUNS = 3 }; /* step by step */

#endif
