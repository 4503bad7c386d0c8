#include "study/metric.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define MEBI 1048576.0

const hwnas_metric hwnas_metrics[] = {
    {"accuracy", HWNAS_FROM_PREDICTOR, true, "%", "%", 1, "accuracy", 2,
     "what the predictor estimates"},
    {"latency.p50", HWNAS_FROM_DEVICE, false, "s", "ms", 1e-3, "latency p50", 3, "median latency"},
    {"latency.p90", HWNAS_FROM_DEVICE, false, "s", "ms", 1e-3, "latency p90", 3,
     "90th percentile of latency"},
    {"macs", HWNAS_FROM_GRAPH, false, "MACs", "M", 1e6, "MMACs", 1, "multiply-accumulates"},
    {"params", HWNAS_FROM_GRAPH, false, "params", "M", 1e6, "M params", 3, "learned values"},
    {"memory", HWNAS_FROM_GRAPH, false, "bytes", "MiB", MEBI, "peak memory", 1,
     "weights and the peak of live activations"},
    {0},
};

hwnas_status hwnas_metric_find(const hwnas_metric **out, const char *name, const hwnas_place *place)
{
    const char *names[sizeof hwnas_metrics / sizeof *hwnas_metrics + 1] = {0};
    size_t n = 0;
    if (!strcmp(name, "latency"))
        name = "latency.p50";
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++) {
        names[n++] = m->name;
        if (!strcmp(m->name, name)) {
            *out = m;
            return HWNAS_OK;
        }
    }
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, place, "there is no objective '%.60s'", name);
    const char *near = hwnas_nearest(name, names);
    if (near)
        return hwnas_hint(status, "did you mean '%s'?", near);
    hwnas_str list = {0};
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    hwnas_hint(status, "there are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

/* Units that a limit may be written in, as factors to SI. */
static const struct {
    const char *unit;
    double factor;
    const char *family; /* shown units that it fits */
} units[] = {
    {"s", 1, "ms"},       {"ms", 1e-3, "ms"},
    {"us", 1e-6, "ms"},   {"K", 1e3, "M"},
    {"M", 1e6, "M"},      {"G", 1e9, "M"},
    {"B", 1, "MiB"},      {"KiB", 1024, "MiB"},
    {"MiB", MEBI, "MiB"}, {"GiB", 1024 * MEBI, "MiB"},
    {"%", 1, "%"},
};

static hwnas_status unit_factor(double *out, const hwnas_metric *metric, const char *unit,
                                const hwnas_place *place)
{
    *out = metric->scale;
    if (!*unit)
        return HWNAS_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(units[i].unit, unit) && !strcmp(units[i].family, metric->unit)) {
            *out = units[i].factor;
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "'%s' is no unit of %s", unit, metric->name),
                      "%s is given in %s", metric->name, metric->unit);
}

hwnas_status hwnas_limit_parse(hwnas_limit *out, const char *text, const hwnas_place *place)
{
    hwnas_limit limit = {0};
    char name[32], operator[3], unit[8] = "", more;
    int used = 0;
    double value;
    if (sscanf(text, " %31[a-z0-9_.] %2[<>=] %lf %n", name, operator, & value, &used) < 3 ||
        !used || sscanf(text + used, "%7s %c", unit, &more) > 1 || !isfinite(value) ||
        (strcmp(operator, "<=") && strcmp(operator, "<") && strcmp(operator, ">=") &&
         strcmp(operator, ">")))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, place, "'%.80s' is no constraint", text),
            "write a metric, <= or >=, a number and a unit, as in 'latency.p50 <= 10 ms'");
    TRY(hwnas_metric_find(&limit.metric, name, place));
    double factor;
    TRY(unit_factor(&factor, limit.metric, unit, place));
    limit.is_upper = *operator== '<';
    limit.is_strict = !operator[1];
    limit.value = value * factor;
    snprintf(limit.text, sizeof limit.text, "%s %s %.10g %s", limit.metric->name, operator, value,
             *unit ? unit : limit.metric->unit);
    *out = limit;
    return HWNAS_OK;
}

double hwnas_limit_violation(const hwnas_limit *limit, double low, double high)
{
    double excess = limit->is_upper ? high - limit->value : limit->value - low;
    if (isnan(excess))
        return INFINITY;
    if (excess < 0 || (excess == 0 && !limit->is_strict))
        return 0;
    /* A strict limit that is just met is missed by a little. */
    return fmax(excess, 1e-12) / fmax(fabs(limit->value), 1e-300);
}
