#include "study/handover.h"

#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/intern.h"
#include "base/mem.h"

/* JSON has no NaN: an end that is not known is null. */
static json_t *end_json(double end)
{
    return isfinite(end) ? json_real(end) : json_null();
}

static double read_end(const json_t *json)
{
    return json_is_number(json) ? json_number_value(json) : NAN;
}

char *hwnas_handover_write(const hwnas_trial *trial)
{
    json_t *values = json_array();
    for (size_t i = 0; i < trial->n_values; i++) {
        const hwnas_value_row *v = &trial->values[i];
        json_array_append_new(values, json_pack("[s, f, o, o, s, s]", v->metric, v->value,
                                                end_json(v->low), end_json(v->high), v->unit,
                                                hwnas_sources[v->source].name));
    }
    json_t *json = json_pack("{s:o, s:s?, s:f, s:b, s:b}", "values", values, "detail",
                             trial->detail, "seconds", trial->seconds, "unstable",
                             trial->is_unstable, "stopped_early", trial->is_stopped_early);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static bool read_value(hwnas_trial *trial, const json_t *json)
{
    const char *metric, *unit, *source;
    const json_t *low, *high;
    double value;
    if (json_unpack((json_t *)json, "[s, F, o, o, s, s]", &metric, &value, &low, &high, &unit,
                    &source) ||
        hwnas_source_from_name(source) == HWNAS_N_SOURCES)
        return false;
    hwnas_trial_add(trial, &(hwnas_value_row){.metric = hwnas_intern(metric),
                                              .value = value,
                                              .low = read_end(low),
                                              .high = read_end(high),
                                              .unit = hwnas_intern(unit),
                                              .source = hwnas_source_from_name(source)});
    return true;
}

static bool read_all(hwnas_trial *trial, const json_t *json)
{
    const json_t *values;
    const char *detail = NULL;
    double seconds;
    int is_unstable, is_stopped_early;
    if (json_unpack((json_t *)json, "{s:o, s?s, s:F, s:b, s:b}", "values", &values, "detail",
                    &detail, "seconds", &seconds, "unstable", &is_unstable, "stopped_early",
                    &is_stopped_early) ||
        !json_is_array(values))
        return false;
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!read_value(trial, json_array_get(values, i)))
            return false;
    trial->detail = detail ? hwnas_strdup(detail) : NULL;
    trial->seconds = seconds;
    trial->is_unstable = is_unstable;
    trial->is_stopped_early = is_stopped_early;
    return true;
}

bool hwnas_handover_read(hwnas_trial *trial, const char *text)
{
    if (!text)
        return true;
    json_t *json = json_loads(text, 0, NULL);
    const bool is_whole = read_all(trial, json);
    json_decref(json);
    if (!is_whole)
        trial->n_values = 0;
    return is_whole;
}
