#include "profile/slow.h"

#include <string.h>

#include "device/device.h"
#include "profile/limits.h"

static const double MATTERS = 0.1;
/* Reference code reaches some thousandths of the roofline, the slowest good code (short rows,
 * functions of many operations) some hundredths. */
static const double FAR = 0.02;
/* Loops that reach so much move values, as fast as any code would. */
static const double NEAR = 0.5;
/* A step that takes as long as so many calls consists of more than its call. */
static const double CALLS = 20, FEW_CALLS = 4; /* of plain loops, which are slow as such */
static const double FIND_SECONDS = 0.05;       /* for the measurement that comes with the steps */

static double roof_of(const hwnas_layer *layer)
{
    return layer->time.p50 > 0 ? layer->least_seconds / layer->time.p50 : NAN;
}

static bool is_slow(const hwnas_layers *layers, const hwnas_layer *layer)
{
    const double roof = roof_of(layer);
    if (!strcmp(layer->how, HWNAS_HOW_REFERENCE))
        return true;
    if (!strcmp(layer->how, HWNAS_HOW_PLAIN))
        return !(roof > NEAR) && layer->time.p50 > FEW_CALLS * layers->roofline.call_seconds;
    return layers->has_roofline && roof < FAR &&
           layer->time.p50 > CALLS * layers->roofline.call_seconds;
}

static const char *keep(hwnas_arena *arena, const char *text)
{
    return hwnas_arena_string(arena, text, strlen(text));
}

void hwnas_slow_code_of(hwnas_slow_code *out, hwnas_arena *arena, const hwnas_layers *layers)
{
    double slow = 0;
    *out = (hwnas_slow_code)HWNAS_SLOW_CODE_INIT;
    for (size_t i = 0; i < layers->n; i++) { /* the slowest first */
        const hwnas_layer *layer = &layers->layers[i];
        if (!is_slow(layers, layer))
            continue;
        if (!out->name) {
            out->name = keep(arena, layer->name);
            out->ops = keep(arena, layer->ops);
            out->how = keep(arena, layer->how);
            out->roof = roof_of(layer);
        }
        slow += layer->time.p50;
    }
    if (layers->sum > 0)
        out->share = slow / layers->sum;
}

bool hwnas_slow_code_matters(const hwnas_slow_code *slow)
{
    return slow->share > MATTERS && slow->name && slow->ops && slow->how;
}

char *hwnas_slow_code_step(const hwnas_slow_code *slow)
{
    if (isnan(slow->roof))
        return hwnas_printf("'%s' (%s by %s)", slow->name, slow->ops, slow->how);
    return hwnas_printf("'%s' (%s by %s, %.2g %% of the roofline)", slow->name, slow->ops,
                        slow->how, 100 * slow->roof);
}

bool hwnas_slow_code_applies(const char *device)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (hwnas_device_find(&ops, &argument, device) != HWNAS_OK) {
        hwnas_error_clear();
        return false;
    }
    /* A device with clocks of its own has no steps of reference code. */
    return ops->is_deployed && ops->steps && ops->run_steps && !ops->state;
}

/* What is no more than a note fails nothing. */
static hwnas_status forgive(hwnas_status status)
{
    if (status == HWNAS_E_INTERRUPTED)
        return status;
    hwnas_error_clear();
    return HWNAS_OK;
}

hwnas_status hwnas_slow_code_judge(hwnas_slow_code *out, hwnas_arena *arena, hwnas_runner *runner,
                                   const char *device, const hwnas_graph *graph,
                                   const hwnas_step_times *times,
                                   const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_graph *folded = NULL;
    hwnas_roofline roofline;
    const hwnas_precision precision = options->exec.precision;
    hwnas_arena *room = hwnas_arena_new();
    *out = (hwnas_slow_code)HWNAS_SLOW_CODE_INIT;
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_limits_get(&roofline, runner, device, folded, precision, true, options));
    hwnas_slow_code_of(out, arena, hwnas_layers_new(room, folded, precision, times, &roofline));
out:
    hwnas_graph_free(folded);
    hwnas_arena_free(room);
    return status == HWNAS_OK ? status : forgive(status);
}

hwnas_status hwnas_slow_code_find(hwnas_slow_code *out, hwnas_arena *arena, hwnas_runner *runner,
                                  const char *device, const hwnas_graph *graph,
                                  const hwnas_measure_options *options)
{
    hwnas_measurement m;
    hwnas_step_times times = {0};
    hwnas_measure_options o = *options;
    *out = (hwnas_slow_code)HWNAS_SLOW_CODE_INIT;
    if (!hwnas_slow_code_applies(device))
        return HWNAS_OK;
    o.mode = HWNAS_HOT;
    o.max_seconds = fmin(o.max_seconds, FIND_SECONDS);
    o.max_attempts = 1;
    o.give_up = 0;
    o.memory_limit = 0; /* with one each network has a runner of its own, and this one has run */
    o.steps_runs = HWNAS_SLOW_CODE_RUNS;
    const hwnas_status status = hwnas_runner_measure_steps(&m, &times, runner, graph, &o);
    if (status != HWNAS_OK)
        return forgive(status);
    const hwnas_status judged =
        hwnas_slow_code_judge(out, arena, runner, device, graph, &times, options);
    hwnas_step_times_done(&times);
    return judged;
}
