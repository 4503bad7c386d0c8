/* runner_install.h: puts the runner that scripts/build-runner has packed on another machine. */
#ifndef HWNAS_MEASURE_RUNNER_INSTALL_H
#define HWNAS_MEASURE_RUNNER_INSTALL_H

#include <signal.h>

#include "measure/measure.h"

typedef struct hwnas_installed_runner {
    char *file, *where, *said; /* what was put on which machine, and what it says of itself there */
    hwnas_device_info info;    /* as it answers a search */
} hwnas_installed_runner;

/* On the machine of a device `ssh:HOST`, whose kind it is asked for where `file` is NULL. It takes
 * the place of an earlier one when it is there whole, and has been started once. `out` stays as it
 * is on failure. */
HWNAS_CHECKED hwnas_status hwnas_runner_put_there(hwnas_installed_runner *out, const char *device,
                                                  const char *file,
                                                  const volatile sig_atomic_t *stop);
void hwnas_installed_runner_done(hwnas_installed_runner *installed);

#endif
