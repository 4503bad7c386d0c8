/* energy.h: the machine's energy counters: RAPL, as Linux shows it under /sys/class/powercap
 * (Documentation/power/powercap/powercap.rst). They count whole processor packages, with all that
 * runs on them; most systems let only root read them. */
#ifndef HWNAS_MEASURE_ENERGY_H
#define HWNAS_MEASURE_ENERGY_H

#include <stdbool.h>

typedef struct hwnas_energy hwnas_energy;

/* Where the counters are: /sys/class/powercap, unless $HWNAS_POWERCAP names another directory. */
const char *hwnas_energy_root(void);

/* The packages under `root`; NULL when there is none that may be read. */
hwnas_energy *hwnas_energy_open(const char *root);
void hwnas_energy_close(hwnas_energy *energy); /* accepts NULL */

/* Joules since it was opened, over the wraps of the counters, which last minutes at least. */
double hwnas_energy_joules(hwnas_energy *energy);

#endif
