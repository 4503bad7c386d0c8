#include "measure/modes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "measure/sampler.h"

static hwnas_status refuse_cold(const hwnas_sampler *s, const char *modes)
{
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "'%s' has caches of its own, which nothing here empties so",
                                 s->exec->ops->name),
                      "measure it %s", modes);
}

static hwnas_status begin_cold(hwnas_sampler *s)
{
    if (s->exec->ops->time)
        return s->exec->ops->evict ? HWNAS_OK : refuse_cold(s, "hot, or after-idle");
    return hwnas_evictor_open(&s->evictor);
}

/* The same numbers in the other order: still of the type and range that the network takes. */
static void turn_round(hwnas_sampler *s)
{
    for (size_t i = 0; i < s->buffers.n_inputs; i++) {
        float *values = s->buffers.inputs[i];
        int64_t n = hwnas_tensor_count(&s->graph->tensors[s->graph->inputs[i]]);
        for (int64_t k = 0; k < n / 2; k++) {
            float value = values[k];
            values[k] = values[n - 1 - k];
            values[n - 1 - k] = value;
        }
    }
}

/* What two runs on different inputs leave the same is what they only read. */
static hwnas_status begin_cold_weights(hwnas_sampler *s)
{
    if (s->exec->ops->time)
        return refuse_cold(s, s->exec->ops->evict ? "cold, or hot" : "hot, or after-idle");
    TRY(begin_cold(s));
    TRY(hwnas_sampler_run(s, 1));
    TRY(hwnas_evictor_note(s->evictor));
    turn_round(s);
    TRY(hwnas_sampler_run(s, 1));
    return hwnas_evictor_note(s->evictor);
}

static hwnas_status before_cold(hwnas_sampler *s)
{
    return s->evictor ? hwnas_evict_all(s->evictor) : s->exec->ops->evict(s->exec);
}

static hwnas_status before_cold_weights(hwnas_sampler *s)
{
    return hwnas_evict_constants(s->evictor);
}

/* In steps, so that the parent hears that we live. */
static hwnas_status before_idle(hwnas_sampler *s)
{
    const double step = 0.1;
    for (double left = s->options->idle_seconds; left > 0; left -= step) {
        TRY(hwnas_sampler_report(s, "idling"));
        s->machine->pause(s->machine, fmin(left, step));
    }
    return HWNAS_OK;
}

const hwnas_mode_row hwnas_modes[HWNAS_N_MODES] = {
    [HWNAS_HOT] = {.name = "hot"},
    [HWNAS_COLD_WEIGHTS] = {.name = "cold-weights",
                            .begin = begin_cold_weights,
                            .before = before_cold_weights},
    [HWNAS_COLD] = {.name = "cold", .begin = begin_cold, .before = before_cold},
    [HWNAS_AFTER_IDLE] = {.name = "after-idle",
                          .argument = offsetof(hwnas_measure_options, idle_seconds),
                          .before = before_idle},
    [HWNAS_SUSTAINED] = {.name = "sustained",
                         .argument = offsetof(hwnas_measure_options, max_seconds),
                         .is_whole = true},
};

const char *hwnas_mode_name(hwnas_mode mode)
{
    return hwnas_modes[mode].name;
}

double hwnas_mode_seconds(const hwnas_measure_options *options)
{
    const size_t argument = hwnas_modes[options->mode].argument;
    return argument ? *(const double *)((const char *)options + argument) : NAN;
}

static hwnas_status no_mode(const char *text)
{
    hwnas_str names = {0};
    for (int i = 0; i < HWNAS_N_MODES; i++)
        hwnas_str_addf(&names, "%s%s%s", i ? ", " : "", hwnas_modes[i].name,
                       hwnas_modes[i].argument ? "[=SECONDS]" : "");
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "there is no mode '%.60s'", text), "%s", names.s);
    hwnas_str_done(&names);
    return status;
}

hwnas_status hwnas_mode_parse(hwnas_measure_options *options, const char *text)
{
    const size_t length = strcspn(text, "=");
    for (int i = 0; i < HWNAS_N_MODES; i++) {
        const hwnas_mode_row *row = &hwnas_modes[i];
        if (strlen(row->name) != length || strncmp(row->name, text, length))
            continue;
        if (text[length]) {
            char *end;
            const double seconds = strtod(text + length + 1, &end);
            if (!row->argument || end == text + length + 1 || *end || !(seconds > 0) ||
                seconds > 86400)
                return no_mode(text);
            *(double *)((char *)options + row->argument) = seconds;
        }
        options->mode = (hwnas_mode)i;
        return HWNAS_OK;
    }
    return no_mode(text);
}
