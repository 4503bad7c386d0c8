/* measure.h: measuring in a process of its own.
 *
 * A measurer has a runner: a child process that compiles and runs networks, so that a crash, a hang
 * or a lack of memory is a status here, and the next measurement works again. The child comes with
 * the first measurement: the program `hwnas runner` that was installed with the library, or what
 * $HWNAS_RUNNER names, or the calling program itself, if it began with hwnas_runner_main(). */
#ifndef HWNAS_PUBLIC_MEASURE_H
#define HWNAS_PUBLIC_MEASURE_H

#include <hwnas/network.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For programs with devices of their own (hwnas/device.h), which a child must have too: to be
 * called at the beginning of main(), behind what registers them. true: this process was the child,
 * has done its work and should end with *exit_code. false: the program goes on, and the library
 * starts it again, with the one argument "runner", in order to measure. */
HWNAS_API bool hwnas_runner_main(int *exit_code, int argc, char *const *argv);

typedef struct hwnas_measurer hwnas_measurer;

typedef struct hwnas_measurer_options {
    size_t size;
    const char *device; /* NULL: "cpu" */
    int threads;        /* 0: all cores that this process may use */
    hwnas_precision precision;
    const char *mode;    /* "hot", "cold-weights", "cold", "after-idle=SECONDS",
                            "sustained=SECONDS"; NULL: "hot" (docs/measuring.md) */
    double interval;     /* sampling ends when the 95 % interval of the median is this narrow,
                            relative to it; 0: 0.01 */
    double seconds;      /* or so much time is spent in runs; 0: 1 */
    double timeout;      /* silence longer than this is a hang; 0: 60 s */
    size_t memory_limit; /* bytes of data that the runner may hold; 0: no limit */
    /* (optional) Becomes nonzero, in a signal handler or another thread: a measurement ends soon
     * with HWNAS_E_INTERRUPTED. Borrowed as long as the measurer is open. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told what the runner does, "compiling", "sampling", several times a second, in
     * the calling thread. */
    void (*progress)(void *context, const char *phase);
    void *context;
} hwnas_measurer_options;
#define HWNAS_MEASURER_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_measurer_options), NULL, 0, HWNAS_F32, NULL, 0, 0, 0, 0, NULL, NULL, NULL     \
    }

/* Starts nothing yet. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_measurer_open(hwnas_measurer **out,
                                                         const hwnas_measurer_options *options);
HWNAS_API void hwnas_measurer_close(hwnas_measurer *measurer);

typedef struct hwnas_result hwnas_result;

/* Measures a network: about options.seconds, and compiling. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_measurer_measure(hwnas_result **out,
                                                            hwnas_measurer *measurer,
                                                            const hwnas_network *network);
HWNAS_API void hwnas_result_free(hwnas_result *result);

/* Value number i, from 0; NULL behind the last. */
HWNAS_API const hwnas_metric_value *hwnas_result_value(const hwnas_result *result, size_t i);
/* The value of a metric; NULL: it was not measured, as energy without a counter. */
HWNAS_API const hwnas_metric_value *hwnas_result_find(const hwnas_result *result,
                                                      const char *metric);
/* Why the figures stand on shaky ground, as half a sentence; NULL: they do not. */
HWNAS_API const char *hwnas_result_doubt(const hwnas_result *result);
/* The object "hwnas.profile" with one row: what is measured, how, and the command that does it
 * again. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_result_json(char **out, const hwnas_result *result);

#ifdef __cplusplus
}
#endif
#endif
