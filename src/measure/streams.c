#include "measure/streams.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "measure/conclude.h"
#include "measure/cores.h"
#include "measure/runner.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

static const double LEAD_SHARE = 0.3; /* of the budget, as the warm-up of a single network */
/* A window has room for so many runs even if each takes twice as long as alone: 6 carry a median.
 */
static const double WINDOW_RUNS = 12;

struct hwnas_streams {
    int n;
    hwnas_cores cores; /* of all */
    hwnas_runner **runners;
};

/* Copies share a window of time and this machine's cores. */
static hwnas_status check_place(const char *device)
{
    if (!hwnas_device_is_elsewhere(device))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "several copies at a time are measured on this machine's own "
                                 "devices alone, not on '%s'",
                                 device),
                      "leave --streams out");
}

hwnas_status hwnas_streams_open(hwnas_streams **out, const char *device, int threads, int streams)
{
    hwnas_status status = HWNAS_OK;
    const int here = hwnas_device_cores();
    if (threads < 1)
        threads = here / streams > 1 ? here / streams : 1;
    if ((long)threads * streams > here) {
        status = hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                            "%d stream%s of %d thread%s each need %ld cores, and there %s %d",
                            streams, streams == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                            (long)threads * streams, here == 1 ? "is" : "are", here);
        return hwnas_hint(status, "streams share no cores: ask for fewer, or for fewer threads");
    }
    TRY(check_place(device));
    hwnas_streams *s = hwnas_alloc(sizeof *s);
    s->runners = hwnas_alloc((size_t)streams * sizeof *s->runners);
    hwnas_cores_take(&s->cores, threads * streams);
    for (; s->n < streams; s->n++) {
        TRY_OUT(hwnas_runner_open(&s->runners[s->n], device, threads));
        hwnas_runner_pin(s->runners[s->n], s->cores.numbers + s->n * threads);
    }
    *out = s;
    return HWNAS_OK;
out:
    hwnas_streams_close(s);
    return status;
}

void hwnas_streams_close(hwnas_streams *streams)
{
    if (!streams)
        return;
    for (int i = 0; i < streams->n; i++)
        hwnas_runner_close(streams->runners[i]);
    hwnas_cores_release(&streams->cores);
    free(streams->runners);
    free(streams);
}

hwnas_status hwnas_streams_describe(hwnas_device_info *out, hwnas_streams *streams)
{
    return hwnas_runner_describe(out, streams->runners[0]);
}

hwnas_runner *hwnas_streams_runner(hwnas_streams *streams)
{
    return streams->runners[0];
}

/* Has the network compiled everywhere; `slowest` is the longest that any needed for a run. */
static hwnas_status make_ready(double *slowest, const hwnas_streams *s, const hwnas_graph *graph,
                               const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    void *onnx = NULL;
    size_t length;
    json_t *request = hwnas_wire_options(options), *answer = NULL;
    json_object_set_new(request, "is_copy", json_true());
    *slowest = 0;
    TRY_OUT(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_SEEDS));
    for (int i = 0; i < s->n; i++)
        TRY_OUT(hwnas_runner_request(s->runners[i], &graph, 1, request, onnx, length, options));
    for (int i = 0; i < s->n; i++) {
        TRY_OUT(hwnas_runner_receive(&answer, s->runners[i], options));
        *slowest = fmax(*slowest, json_number_value(json_object_get(answer, "ready")));
        json_decref(answer);
        answer = NULL;
    }
out:
    json_decref(request);
    json_decref(answer);
    free(onnx);
    return status;
}

/* Lets all run, and hears what each has measured. */
static hwnas_status run_window(hwnas_window *windows, const hwnas_streams *s, double slowest,
                               const hwnas_measure_options *options)
{
    const double lead = fmax(LEAD_SHARE * options->max_seconds, slowest);
    const double enough = WINDOW_RUNS * slowest, most = 2 * options->max_seconds;
    const double seconds = fmax((1 - LEAD_SHARE) * options->max_seconds,
                                options->fewest > 0 ? fmin(enough, most) : enough);
    json_t *go = json_pack("{s:f, s:f}", "lead", lead, "seconds", seconds);
    hwnas_status status = HWNAS_OK;
    for (int i = 0; i < s->n; i++)
        TRY_OUT(hwnas_runner_go(s->runners[i], go, options));
    for (int i = 0; i < s->n; i++) {
        json_t *answer;
        TRY_OUT(hwnas_runner_receive(&answer, s->runners[i], options));
        if (!hwnas_wire_read_window(&windows[i], json_object_get(answer, "window")))
            status = hwnas_runner_protocol_error(s->runners[i], "an ANSWER without `window`");
        json_decref(answer);
        TRY_OUT(status);
    }
out:
    json_decref(go);
    return status;
}

static hwnas_status measure_once(hwnas_window *out, hwnas_streams *streams,
                                 const hwnas_graph *graph, const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_window *windows = hwnas_alloc((size_t)streams->n * sizeof *windows);
    double slowest;
    TRY_OUT(make_ready(&slowest, streams, graph, options));
    TRY_OUT(run_window(windows, streams, slowest, options));
    TRY_OUT(hwnas_window_pool(out, windows, streams->n));
out:
    for (int i = 0; i < streams->n; i++) {
        hwnas_window_done(&windows[i]);
        /* The others may wait for a word that never comes. */
        if (status != HWNAS_OK)
            hwnas_runner_stop(streams->runners[i]);
    }
    free(windows);
    return status;
}

/* Hears a signal while it waits. */
static hwnas_status rest(double seconds, const hwnas_measure_options *options)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    for (const double end = hwnas_now() + seconds; hwnas_now() < end;) {
        if (options->stop && *options->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted between two attempts");
        nanosleep(&nap, NULL);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_streams_measure(hwnas_measurement *out, double *runs_per_second,
                                   hwnas_streams *streams, const hwnas_graph *graph,
                                   const hwnas_measure_options *options)
{
    hwnas_window best, again;
    const double start = hwnas_now();
    const int most = hwnas_attempts(options);
    TRY(measure_once(&best, streams, graph, options));
    const hwnas_measurement first = best.m;
    double run = first.run_seconds;
    int n = 1;
    for (; n < most && best.m.is_unstable && !hwnas_is_spent(hwnas_now() - start, options); n++) {
        TRY(rest(hwnas_attempt_pause(options, n), options));
        TRY(measure_once(&again, streams, graph, options));
        run += again.m.run_seconds;
        if (hwnas_is_steadier(&again.m, &best.m))
            best = again;
    }
    *out = best.m;
    /* Later on the library's caches are warm. */
    out->compile_seconds = first.compile_seconds;
    out->first_run_seconds = first.first_run_seconds;
    out->run_seconds = run;
    out->n_attempts = n;
    out->total_seconds = hwnas_now() - start;
    *runs_per_second = best.runs_per_second;
    return HWNAS_OK;
}
