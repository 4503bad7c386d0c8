/* profiling.c: hwnas/profile.h: what devices do with networks. */
#include <hwnas/profile.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/sized_options.h"
#include "latency/latency_file.h"
#include "measure/runner_install.h"
#include "report/calibration_text.h"
#include "report/forecast_text.h"
#include "report/survey_text.h"
#include "report/transfer_text.h"

/* ---- What this machine can do ---- */

hwnas_status hwnas_devices_survey(hwnas_report **out, const hwnas_survey_options *given)
{
    IN_C_LOCALE;
    hwnas_survey_options options;
    hwnas_device_survey survey;
    hwnas_rendering told = {0};
    hwnas_measure_options measuring = HWNAS_MEASURE_DEFAULTS;
    TRY(TAKE_OPTIONS(&options, given));
    measuring.stop = options.cancel;
    measuring.progress = options.progress;
    measuring.context = options.context;
    hwnas_api_use_runner();
    if (options.device) {
        TRY(hwnas_device_survey_one(&survey, options.device, options.refresh, &measuring));
        hwnas_survey_add(&told, &survey);
        if (hwnas_device_is_elsewhere(options.device))
            hwnas_survey_add_its_priority(&told, &survey);
        else
            hwnas_survey_add_priority(&told);
        *out = hwnas_report_of(&told);
        return HWNAS_OK;
    }
    for (const hwnas_device_ops **row = hwnas_devices; *row; row++) {
        const hwnas_status status =
            hwnas_device_survey_make(&survey, *row, options.refresh, &measuring);
        if (status != HWNAS_OK) {
            hwnas_rendering_done(&told);
            return status;
        }
        hwnas_survey_add(&told, &survey);
    }
    hwnas_survey_add_priority(&told);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

hwnas_status hwnas_runner_install(hwnas_report **out, const char *device, const char *file,
                                  const volatile sig_atomic_t *cancel)
{
    IN_C_LOCALE;
    hwnas_installed_runner installed;
    TRY(hwnas_runner_put_there(&installed, device, file, cancel));
    const hwnas_device_info *info = &installed.info;
    hwnas_rendering told = {
        .json = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "format", "hwnas.runner",
                          "version", 1, "device", device, "file", installed.file, "runner",
                          installed.said, "name", info->name, "library", info->library, "isa",
                          info->isa, "threads", info->threads)};
    hwnas_str_addf(&told.text, "installed  %s on %s\nanswers    %s, %s, %s, %d threads\n",
                   installed.said, installed.where, info->name, info->library, info->isa,
                   info->threads);
    hwnas_installed_runner_done(&installed);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}

/* ---- Forecasts ---- */

static void forecast_text(hwnas_str *out, const void *found)
{
    hwnas_forecast_text(out, found);
}

static json_t *forecast_json(const void *found)
{
    return hwnas_forecast_json(found);
}

static void forecast_free(void *found)
{
    hwnas_forecast_free(found);
}

hwnas_status hwnas_network_forecast(hwnas_report **out, const hwnas_network *network,
                                    const hwnas_forecast_options *given)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {
        .text = forecast_text, .json = forecast_json, .free = forecast_free};
    hwnas_forecast_options options;
    hwnas_forecast *forecast;
    TRY(TAKE_OPTIONS(&options, given));
    const hwnas_exec_options exec = {.precision = options.precision};
    TRY(hwnas_forecast_make(&forecast, network->name, network->graph,
                            options.device ? options.device : "cuda-dry:h200", &exec));
    forecast->with_steps = options.with_steps;
    *out = hwnas_report_new(&kind, forecast);
    return HWNAS_OK;
}

/* ---- The table of latencies ---- */

enum { MAX_BATCH = 1 << 16, MAX_THREADS = 1 << 12 };

static void tell_calibration(void *context, const hwnas_calibration *now)
{
    const hwnas_calibration_options *options = context;
    char *words = hwnas_calibration_words(now);
    options->progress(options->context, words);
    free(words);
}

/* Minutes of measurements that nothing keeps help no search. */
static hwnas_status fail_without_cache(const hwnas_latencies *latencies)
{
    const char *note = hwnas_latencies_note(latencies);
    char *path = hwnas_latency_cache_path();
    const hwnas_place place = {.file = path};
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_IO, path ? &place : NULL, "%.*s",
                   note ? (int)strcspn(note, ";") : INT_MAX,
                   note ? note : "there is no folder for the table of latencies"),
        "nothing was measured; $XDG_CACHE_HOME names a folder that it may be kept in, else "
        "$HOME/.cache is used");
    free(path);
    return status;
}

hwnas_status hwnas_space_calibrate(hwnas_report **out, const hwnas_space *space,
                                   const hwnas_calibration_options *given)
{
    IN_C_LOCALE;
    hwnas_calibration_options options;
    hwnas_calibration result;
    hwnas_rendering told = {0};
    TRY(TAKE_OPTIONS(&options, given));
    const hwnas_calibrate_options how = {.device = options.device ? options.device : "cpu",
                                         .threads = options.threads,
                                         .batch = options.batch ? options.batch : 1,
                                         .precision = options.precision,
                                         .seconds = options.seconds != 0 ? options.seconds : 300,
                                         .seed = options.seed,
                                         .stop = options.cancel,
                                         .progress = options.progress ? tell_calibration : NULL,
                                         .context = &options};
    if (how.threads < 0 || how.threads > MAX_THREADS || how.batch < 1 || how.batch > MAX_BATCH ||
        !(how.seconds > 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "threads, batch or seconds are out of range");
    hwnas_api_use_runner();
    hwnas_api_note_crowd(how.device, how.threads, HWNAS_PRIORITY_AUTO);
    hwnas_latencies *latencies = hwnas_latencies_open(true);
    const hwnas_status status = hwnas_latencies_have_cache(latencies)
                                    ? hwnas_calibrate(&result, latencies, space, &how)
                                    : fail_without_cache(latencies);
    const char *note = hwnas_latencies_note(latencies);
    if (status == HWNAS_OK || status == HWNAS_E_INTERRUPTED) {
        hwnas_calibration_tell(&told, &result);
        *out = hwnas_report_of(&told);
        if (status != HWNAS_OK)
            hwnas_report_end(
                *out, hwnas_fail(status, NULL, "interrupted; what was measured is in the table"));
        if (note)
            hwnas_report_add_note(*out, note);
    }
    hwnas_latencies_close(latencies);
    return status == HWNAS_E_INTERRUPTED ? HWNAS_OK : status;
}

/* ---- From other devices ---- */

static void tell_transfer(void *context, size_t n_measured)
{
    const hwnas_transfer_options *options = context;
    char *words = hwnas_printf("%zu of %d networks measured", n_measured, options->n);
    options->progress(options->context, words);
    free(words);
}

hwnas_status hwnas_space_transfer(hwnas_report **out, const hwnas_space *space,
                                  const hwnas_transfer_options *given)
{
    IN_C_LOCALE;
    hwnas_transfer_options options;
    hwnas_transfer_result result;
    hwnas_rendering told = {0};
    TRY(TAKE_OPTIONS(&options, given));
    options.n = options.n ? options.n : 10;
    const hwnas_transfer_how how = {.device = options.device ? options.device : "cpu",
                                    .threads = options.threads,
                                    .batch = options.batch ? options.batch : 1,
                                    .precision = options.precision,
                                    .from = options.from,
                                    .out = options.out,
                                    .n = options.n < 0 ? 0 : (size_t)options.n,
                                    .seed = options.seed,
                                    .stop = options.cancel,
                                    .progress = options.progress ? tell_transfer : NULL,
                                    .context = &options};
    if (how.threads < 0 || how.threads > MAX_THREADS || how.batch < 1 || how.batch > MAX_BATCH ||
        !how.from)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "from, threads or batch are out of range");
    hwnas_api_use_runner();
    hwnas_api_note_crowd(how.device, how.threads, HWNAS_PRIORITY_AUTO);
    TRY(hwnas_transfer_table(&result, space, &how));
    hwnas_transfer_tell(&told, &result, how.device, how.out);
    hwnas_transfer_result_done(&result);
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}
