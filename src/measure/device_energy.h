/* device_energy.h: joules of a run by a device's own counter, which moves as seldom as every 100
 * ms.
 *
 * Two readings are compared that were taken just after the counter had moved; how exactly the
 * moments of its moves are known is part of the interval. */
#ifndef HWNAS_MEASURE_DEVICE_ENERGY_H
#define HWNAS_MEASURE_DEVICE_ENERGY_H

#include "measure/sampler.h"

enum { HWNAS_MAX_TICKS = 512 };
/* Between the first move that counts and the last: at least so long. */
#define HWNAS_ENERGY_SECONDS 1.0

typedef struct hwnas_tick_meter {
    double joules, when; /* of the last reading */
    bool has_any;
    int n;
    struct {
        double when, doubt, joules; /* doubt: seconds by which `when` may be wrong */
    } ticks[HWNAS_MAX_TICKS];
} hwnas_tick_meter;

/* Takes a reading. NaN: there is no counter, and never a result. */
void hwnas_tick_meter_read(hwnas_tick_meter *meter, double when, double joules);
/* Seconds between the first and the last tick; 0 without two of them. */
double hwnas_tick_meter_seconds(const hwnas_tick_meter *meter);
/* Watts between them with a 95 % interval; NaN without two. */
double hwnas_tick_meter_watts(double *low, double *high, const hwnas_tick_meter *meter);

/* Whether the executable's device can be asked so. */
bool hwnas_has_device_energy(const hwnas_exec *exec);
/* Lets the device run without a pause for at least a second, and tells what a run took; NaN where
 * it does not count. `run_seconds`: of a run. */
HWNAS_CHECKED hwnas_status hwnas_device_energy(hwnas_measurement *out, hwnas_sampler *s);

#endif
