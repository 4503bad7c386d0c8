/* window.h: what one of several copies of a network does while all of them run: inferences back to
 * back, of which those within a common window of time count. */
#ifndef HWNAS_MEASURE_WINDOW_H
#define HWNAS_MEASURE_WINDOW_H

#include "measure/buffers.h"
#include "measure/machine.h"

/* More samples than these are not sent: evenly spaced order statistics stand for all. */
enum { HWNAS_WINDOW_SAMPLES = 20000 };

/* A copy that is compiled and has run. Release with hwnas_copy_done(). */
typedef struct hwnas_copy {
    hwnas_exec *exec; /* borrowed */
    hwnas_machine *machine;
    hwnas_buffers buffers;
    double first_run_seconds;
    double run_seconds; /* of the second run */
} hwnas_copy;

HWNAS_CHECKED hwnas_status hwnas_copy_open(hwnas_copy *out, hwnas_exec *exec,
                                           const hwnas_graph *graph, hwnas_machine *machine);
void hwnas_copy_done(hwnas_copy *copy);

typedef struct hwnas_window {
    hwnas_measurement m;    /* of this copy; `energy` is the whole machine's */
    double runs_per_second; /* completed */
    /* Of a device with a clock of its own, which the copies share: when the window was, by this
     * machine's clock; else both are 0. */
    double begin, end;
    size_t n;
    double *samples; /* heap; sorted */
} hwnas_window;

/* Runs for `lead` seconds and then through the window; it lasts longer only for the fewest samples
 * with a median. `out` is to be freed with hwnas_window_done() when it succeeds. */
HWNAS_CHECKED hwnas_status hwnas_window_measure(hwnas_window *out, hwnas_copy *copy, double lead,
                                                double seconds,
                                                const hwnas_measure_options *options);
void hwnas_window_done(hwnas_window *window);

/* Copies that shared a window as one measurement: percentiles over all samples, throughput and
 * memory added up. `out->runs_per_second` is theirs together; its samples are left empty. */
HWNAS_CHECKED hwnas_status hwnas_window_pool(hwnas_window *out, const hwnas_window *windows, int n);

#endif
