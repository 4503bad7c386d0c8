/* differing.c: hwnas_compare_outputs(): what two networks compute of the same inputs. */
#include <hwnas/data.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/batch_runner.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/log.h"
#include "base/sized_options.h"
#include "device/ranges.h"
#include "measure/reference.h"
#include "measure/verify.h"
#include "precision/differences.h"
#include "report/differences_text.h"

static const double LONG = 10; /* seconds, that somebody is told of */

static hwnas_status open_device(hwnas_device **out, const char *spelling, int threads)
{
    hwnas_device_options options = HWNAS_DEVICE_OPTIONS_INIT;
    hwnas_device_info info = {0};
    options.threads = threads;
    TRY(hwnas_device_open(out, spelling, &options));
    hwnas_device_describe(&info, *out);
    if (!info.computes)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device %s computes nothing", spelling),
            "cpu and ref do");
    return HWNAS_OK;
}

static hwnas_status check(const hwnas_outputs_options *o)
{
    for (int s = 0; s < 2; s++)
        if ((unsigned)o->precisions[s] >= HWNAS_N_PRECISIONS)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "there is no precision number %d",
                              (int)o->precisions[s]);
    if (!(o->tolerance >= 0))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a tolerance is 0 or more");
    return HWNAS_OK;
}

static double tolerance_of(const hwnas_outputs_options *o)
{
    return o->tolerance > 0 ? o->tolerance
                            : fmax(hwnas_verify_tolerance(o->precisions[0]),
                                   hwnas_verify_tolerance(o->precisions[1]));
}

/* Of the first network's inputs; *out is yours to free(). */
static hwnas_status take_samples(float **out, size_t *n, const hwnas_network *first,
                                 hwnas_dataset *data, int64_t n_samples)
{
    if (data)
        return hwnas_calibration_take(out, n, first, data, n_samples ? n_samples : first->batch);
    *n = 1;
    return hwnas_random_samples(out, first->graph, *n);
}

/* The plain loops of `ref` take minutes for a large network: outputs, then nodes. */
static void note_slow(const hwnas_side sides[2], size_t n_runs)
{
    double seconds = 0;
    for (int s = 0; s < 2; s++)
        if (!strcmp(sides[s].device->ops->name, "ref"))
            seconds += 2 * (double)n_runs * hwnas_reference_seconds(sides[s].graph);
    if (seconds > LONG)
        hwnas_log(HWNAS_LOG_NOTE,
                  "ref takes about %.0f s for %s; another runtime is a faster standard (--device "
                  "ort,cpu)",
                  seconds, sides[0].name);
}

hwnas_status hwnas_compare_outputs(hwnas_report **out, const hwnas_network *first,
                                   const hwnas_network *second, hwnas_dataset *data,
                                   const hwnas_outputs_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_outputs_options o;
    TRY(TAKE_OPTIONS(&o, given));
    const hwnas_network *const networks[] = {first, second ? second : first};
    hwnas_device *devices[2] = {NULL};
    hwnas_differences found = {0};
    hwnas_rendering told = {0};
    float *samples = NULL;
    hwnas_side sides[2];
    hwnas_compared_sides about = {.are_random = !data};
    TRY_OUT(check(&o));
    about.tolerance = tolerance_of(&o);
    for (int s = 0; s < 2; s++) {
        const char *usual = s || second ? "cpu" : "ref";
        about.models[s] = networks[s]->name;
        about.devices[s] = o.devices[s] ? o.devices[s] : usual;
        about.precisions[s] = o.precisions[s];
        TRY_OUT(open_device(&devices[s], about.devices[s], o.threads));
        sides[s] = (hwnas_side){networks[s]->name, networks[s]->graph, devices[s], o.precisions[s]};
        hwnas_device_info info = {0};
        hwnas_device_describe(&info, devices[s]);
        hwnas_device_note_overflow(&info, networks[s]->graph, networks[s]->name);
    }
    TRY_OUT(take_samples(&samples, &about.n_runs, first, data, o.n_samples));
    note_slow(sides, about.n_runs);
    TRY_OUT(hwnas_differences_find(&found, sides, about.n_runs, samples, o.cancel));
    hwnas_differences_render(&told, &found, &about);
    *out = hwnas_report_of(&told);
    hwnas_report_end(*out, hwnas_differences_judge(&found, &about));
out:
    hwnas_differences_done(&found);
    for (int s = 0; s < 2; s++)
        hwnas_device_close(devices[s]);
    free(samples);
    return status;
}
