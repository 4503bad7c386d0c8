#include "measure/streamed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "measure/conclude.h"
#include "measure/sampler.h"

void hwnas_streamed_done(hwnas_streamed *s)
{
    free(s->seconds);
    free(s->sorted);
    *s = (hwnas_streamed){0};
}

bool hwnas_streamed_add(hwnas_streamed *s, const json_t *frame)
{
    const json_t *list = json_object_get(frame, "seconds");
    const size_t n = json_array_size(list);
    if (!n || n > HWNAS_STREAMED_MOST - s->n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const double seconds = json_number_value(json_array_get(list, i));
        if (!(seconds > 0) || !isfinite(seconds))
            return false;
        HWNAS_GROW(s->seconds, s->n, s->room);
        s->seconds[s->n++] = seconds;
        s->sum += seconds;
    }
    return true;
}

static void sort(hwnas_streamed *s)
{
    free(s->sorted);
    s->sorted = hwnas_alloc((s->n + 1) * sizeof *s->sorted);
    memcpy(s->sorted, s->seconds, s->n * sizeof *s->sorted);
    hwnas_sort(s->sorted, s->n);
}

/* Why sampling may end; false: it may not. */
static bool find_stop(hwnas_stop *out, hwnas_streamed *s, const hwnas_measure_options *o)
{
    double low, high;
    sort(s);
    const bool is_bounded = s->n && hwnas_quantile_interval(s->sorted, s->n, 0.5, &low, &high);
    const double p50 = s->n ? hwnas_quantile(s->sorted, s->n, 0.5) : NAN;
    *out = HWNAS_STOP_BUDGET;
    if (is_bounded && o->give_up > 0 && low > o->give_up)
        *out = HWNAS_STOP_ABOVE;
    else if (is_bounded && (int)s->n >= o->min_samples && high - low <= o->interval * p50)
        *out = HWNAS_STOP_INTERVAL;
    return *out != HWNAS_STOP_BUDGET || s->sum >= (is_bounded ? 1 : 2) * o->max_seconds;
}

bool hwnas_streamed_is_enough(hwnas_streamed *s, const hwnas_measure_options *options)
{
    hwnas_stop stop;
    /* Not after each of very many frames: sorting would take longer than sampling. */
    if (s->is_told || s->n < s->n_judged + s->n_judged / 10)
        return false;
    s->n_judged = s->n;
    s->is_told = find_stop(&stop, s, options);
    return s->is_told;
}

static double number(const json_t *answer, const char *key)
{
    const double value = json_number_value(json_object_get(answer, key));
    return value > 0 && isfinite(value) ? value : 0;
}

bool hwnas_streamed_conclude(hwnas_measurement *out, hwnas_streamed *s, const json_t *answer,
                             const hwnas_measure_options *options)
{
    hwnas_measurement m = {.energy = NAN,
                           .energy_low = NAN,
                           .energy_high = NAN,
                           .hertz = NAN,
                           .shared_share = NAN,
                           .p50_first = NAN,
                           .p50_last = NAN,
                           .runs_per_sample = 1,
                           .n_attempts = 1,
                           .mode = options->mode};
    const json_int_t bytes = json_integer_value(json_object_get(answer, "memory_bytes"));
    if (!s->n)
        return false;
    find_stop(&m.stop, s, options);
    m.n_samples = s->n;
    m.run_seconds = s->sum;
    m.compile_seconds = number(answer, "compile_seconds");
    m.first_run_seconds = number(answer, "first_run_seconds");
    m.memory_bytes = bytes > 0 ? (size_t)bytes : 0;
    hwnas_ask_for_tails(&m, options);
    hwnas_tell_quantiles(&m, s->sorted, s->n);
    double *scratch = hwnas_alloc(s->n * sizeof *scratch);
    m.trend = hwnas_find_trend(scratch, s->seconds, s->n);
    free(scratch);
    m.is_unstable = hwnas_measurement_doubt(&m) != NULL;
    *out = m;
    return true;
}
