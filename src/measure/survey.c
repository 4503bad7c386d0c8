#include "measure/survey.h"

#include <stdio.h>

#include "measure/runner.h"
#include "measure/runner_link.h"

static void note_trouble(hwnas_device_survey *f)
{
    const hwnas_error *error = hwnas_last_error();
    snprintf(f->trouble, sizeof f->trouble, "%s%s%s", error->message, *error->hint ? "; " : "",
             error->hint);
    hwnas_error_clear();
}

/* What another process runs says who it is where no argument is needed to find it. */
static void ask_runner(hwnas_device_survey *f)
{
    hwnas_runner *runner = NULL;
    f->works = hwnas_link_check_program(f->spelling) == HWNAS_OK &&
               (hwnas_link_needs_argument(f->spelling) ||
                (hwnas_runner_open(&runner, f->spelling, 0) == HWNAS_OK &&
                 hwnas_runner_describe(&f->info, runner) == HWNAS_OK));
    if (!f->works)
        note_trouble(f);
    hwnas_runner_close(runner);
}

static void open_device(hwnas_device_survey *f)
{
    hwnas_device *device = NULL;
    const hwnas_device_options options = {0};
    f->works = hwnas_device_open(&device, f->spelling, &options) == HWNAS_OK;
    if (f->works)
        device->ops->describe(device, &f->info);
    else
        note_trouble(f);
    hwnas_device_close(device);
}

static void open_instance(hwnas_device_instance *out, const hwnas_device_ops *ops, int i)
{
    hwnas_device *device = NULL;
    const hwnas_device_options options = {0};
    snprintf(out->spelling, sizeof out->spelling, "%s:%d", ops->name, i);
    out->works = hwnas_device_open(&device, out->spelling, &options) == HWNAS_OK;
    if (out->works) {
        device->ops->describe(device, &out->info);
    } else {
        snprintf(out->trouble, sizeof out->trouble, "%s", hwnas_last_error()->message);
        hwnas_error_clear();
    }
    hwnas_device_close(device);
}

static void open_instances(hwnas_device_survey *f)
{
    const int n = f->ops->count ? f->ops->count() : 0;
    for (int i = 0; i < n && i < HWNAS_SURVEY_INSTANCES; i++)
        open_instance(&f->instances[f->n_instances++], f->ops, i);
}

static void tell(const hwnas_device_survey *f, int threads, hwnas_precision precision,
                 const hwnas_measure_options *options)
{
    char words[128];
    if (!options->progress)
        return;
    snprintf(words, sizeof words, "%s, %s, %d thread%s: how fast it is at most", f->spelling,
             hwnas_precision_name(precision), threads, threads == 1 ? "" : "s");
    options->progress(options->context, words);
}

/* In every precision, at a number of threads. */
static hwnas_status measure_at(hwnas_device_survey *f, int threads, bool refresh,
                               const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_measure_options silent = *options;
    silent.progress = NULL;
    hwnas_runner *runner;
    TRY(hwnas_runner_open(&runner, f->spelling, threads));
    for (int p = 0; p < HWNAS_N_PRECISIONS && status == HWNAS_OK; p++) {
        if (!(f->ops->precisions & (f->info.native | f->info.emulated) & 1U << p) ||
            hwnas_precision_weight_bits((hwnas_precision)p))
            continue; /* those compute in f32 */
        tell(f, threads, (hwnas_precision)p, options);
        status = hwnas_roofline_get(&f->rooflines[f->n], runner, f->spelling, (hwnas_precision)p,
                                    refresh, &silent);
        f->n += status == HWNAS_OK;
    }
    hwnas_runner_close(runner);
    return status;
}

/* Of a device that networks are deployed on: at one thread and at all. */
static hwnas_status find_rooflines(hwnas_device_survey *f, bool refresh,
                                   const hwnas_measure_options *options)
{
    if (!f->ops->is_deployed)
        return HWNAS_OK;
    hwnas_status status = measure_at(f, 1, refresh, options);
    if (status == HWNAS_OK && f->info.threads > 1)
        status = measure_at(f, f->info.threads, refresh, options);
    if (status == HWNAS_E_INTERRUPTED)
        return status;
    if (status != HWNAS_OK)
        note_trouble(f);
    return HWNAS_OK;
}

hwnas_status hwnas_device_survey_make(hwnas_device_survey *f, const hwnas_device_ops *ops,
                                      bool refresh, const hwnas_measure_options *options)
{
    *f = (hwnas_device_survey){.ops = ops, .spelling = ops->name, .works = true};
    /* It needs a file, or is not ours to open. */
    if (f->ops->lookup || !f->ops->open)
        return HWNAS_OK;
    if (hwnas_device_is_elsewhere(f->spelling)) {
        ask_runner(f);
        return HWNAS_OK;
    }
    open_device(f);
    open_instances(f);
    return f->works ? find_rooflines(f, refresh, options) : HWNAS_OK;
}

hwnas_status hwnas_device_survey_one(hwnas_device_survey *f, const char *spelling, bool refresh,
                                     const hwnas_measure_options *options)
{
    const char *argument;
    hwnas_runner *runner;
    *f = (hwnas_device_survey){.spelling = spelling, .works = true};
    TRY(hwnas_device_find(&f->ops, &argument, spelling));
    if (f->ops->lookup || !f->ops->open)
        return HWNAS_OK;
    TRY(hwnas_runner_open(&runner, spelling, 0));
    const hwnas_status status = hwnas_runner_describe(&f->info, runner);
    if (status == HWNAS_OK) {
        f->tells_realtime = hwnas_runner_tells_realtime(&f->is_realtime, runner);
        f->is_hwnas = hwnas_runner_is_hwnas(runner);
    }
    hwnas_runner_close(runner);
    TRY(status);
    return find_rooflines(f, refresh, options);
}
