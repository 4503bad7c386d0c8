/* measurer.c: a measurer of hwnas.h: one runner, many measurements, and their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/c_locale.h"
#include "base/sized_options.h"
#include "measure/measure.h"
#include "profile/command.h"
#include "profile/record.h"
#include "trial/metric.h"
#include "trial/trial.h"

struct hwnas_measurer {
    hwnas_runner *runner;
    char *device;
    int threads;
    hwnas_measure_options options;
};

enum { MAX_VALUES = 16 };

struct hwnas_result {
    hwnas_profile *profile; /* of one row */
    size_t n;
    hwnas_metric_value values[MAX_VALUES];
};

static double or_default(double given, double fallback)
{
    return given != 0 ? given : fallback;
}

static bool is_positive(double x)
{
    return isfinite(x) && x > 0;
}

static hwnas_status read_options(hwnas_measure_options *out, const hwnas_measurer_options *o)
{
    const hwnas_measure_options defaults = HWNAS_MEASURE_DEFAULTS;
    *out = defaults;
    if ((unsigned)o->precision >= HWNAS_N_PRECISIONS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no precision number %d",
                          (int)o->precision);
    out->exec.precision = o->precision;
    out->interval = or_default(o->interval, defaults.interval);
    out->max_seconds = or_default(o->seconds, defaults.max_seconds);
    out->timeout = or_default(o->timeout, defaults.timeout);
    out->memory_limit = o->memory_limit;
    out->energy = true;
    hwnas_metric_ask_for_tails(out);
    out->stop = o->cancel;
    out->progress = o->progress;
    out->context = o->context;
    if (!is_positive(out->interval) || !is_positive(out->max_seconds) || !is_positive(out->timeout))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "interval, seconds and timeout must be positive");
    return o->mode ? hwnas_mode_parse(out, o->mode) : HWNAS_OK;
}

hwnas_status hwnas_measurer_open(hwnas_measurer **out, const hwnas_measurer_options *given)
{
    IN_C_LOCALE;
    hwnas_measurer_options options;
    hwnas_measure_options how;
    hwnas_runner *runner;
    const hwnas_device_ops *ops;
    const char *argument;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(read_options(&how, &options));
    const char *device = options.device ? options.device : "cpu";
    TRY(hwnas_device_find(&ops, &argument, device)); /* a wrong name is told before anything runs */
    TRY(hwnas_runner_open(&runner, device, options.threads));
    hwnas_measurer *m = hwnas_alloc(sizeof *m);
    *m = (hwnas_measurer){.runner = runner,
                          .device = hwnas_strdup(device),
                          .threads = options.threads ? options.threads : hwnas_device_cores(),
                          .options = how};
    *out = m;
    return HWNAS_OK;
}

void hwnas_measurer_close(hwnas_measurer *measurer)
{
    if (!measurer)
        return;
    hwnas_runner_close(measurer->runner);
    free(measurer->device);
    free(measurer);
}

/* ---- Results ---- */

static void add_values(hwnas_result *r, const hwnas_measurement *measurement, int batch)
{
    const hwnas_metric *m = NULL;
    hwnas_reading reading;
    while (r->n < MAX_VALUES &&
           hwnas_metric_next_measured(&m, &reading, measurement, "", batch, NAN))
        r->values[r->n++] = (hwnas_metric_value){.metric = m->name,
                                                 .value = reading.value,
                                                 .low = reading.low,
                                                 .high = reading.high,
                                                 .unit = m->si,
                                                 .source = hwnas_sources[HWNAS_MEASURED].name};
}

static const char *keep(hwnas_profile *profile, const char *text)
{
    return text ? hwnas_arena_string(profile->arena, text, strlen(text)) : NULL;
}

static hwnas_result *make_result(const hwnas_measurer *measurer, const hwnas_network *network,
                                 const hwnas_measurement *m, const hwnas_device_info *info)
{
    hwnas_result *r = hwnas_alloc(sizeof *r);
    r->profile = hwnas_profile_new();
    hwnas_profile_add_device(r->profile, measurer->device, info);
    hwnas_profile_row *row = hwnas_profile_add_row(r->profile);
    row->model = keep(r->profile, network->name);
    row->arch = network->code && *network->code ? keep(r->profile, network->code) : NULL;
    row->device = keep(r->profile, measurer->device);
    row->digest = network->digest;
    row->batch = network->batch;
    row->threads = measurer->threads;
    row->precision = measurer->options.exec.precision;
    row->costs = network->costs;
    row->m = *m;
    row->items_per_second = network->batch / m->p50;
    row->doubt = hwnas_measurement_doubt(m);
    row->mode = hwnas_mode_name(m->mode);
    row->mode_seconds = hwnas_mode_seconds(&measurer->options);
    row->stop = hwnas_stop_name(m->stop);
    const hwnas_recipe recipe = {.model = row->model,
                                 .arch = row->arch,
                                 .device = row->device,
                                 .batch = row->batch,
                                 .threads = row->threads};
    char *command = hwnas_recipe_command(&recipe, &measurer->options);
    row->command = keep(r->profile, command);
    free(command);
    add_values(r, m, network->batch);
    return r;
}

hwnas_status hwnas_measurer_measure(hwnas_result **out, hwnas_measurer *measurer,
                                    const hwnas_network *network)
{
    IN_C_LOCALE;
    hwnas_measurement m;
    hwnas_device_info info;
    hwnas_api_use_runner();
    TRY(hwnas_runner_measure(&m, measurer->runner, network->graph, &measurer->options));
    TRY(hwnas_runner_describe(&info, measurer->runner));
    *out = make_result(measurer, network, &m, &info);
    return HWNAS_OK;
}

void hwnas_result_free(hwnas_result *result)
{
    if (!result)
        return;
    hwnas_profile_free(result->profile);
    free(result);
}

const hwnas_metric_value *hwnas_result_value(const hwnas_result *result, size_t i)
{
    return i < result->n ? &result->values[i] : NULL;
}

const hwnas_metric_value *hwnas_result_find(const hwnas_result *result, const char *metric)
{
    for (size_t i = 0; i < result->n; i++)
        if (!strcmp(result->values[i].metric, metric))
            return &result->values[i];
    return NULL;
}

const char *hwnas_result_doubt(const hwnas_result *result)
{
    return result->profile->rows[0].doubt;
}

hwnas_status hwnas_result_json(char **out, const hwnas_result *result)
{
    IN_C_LOCALE;
    return hwnas_api_give_json(out, hwnas_profile_json(result->profile));
}
