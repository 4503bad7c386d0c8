#include "trial/metric.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define MEBI 1048576.0

const hwnas_metric hwnas_metrics[] = {
    {"accuracy", HWNAS_FROM_PREDICTOR, true, "%", "%", 1, "accuracy", 2,
     "what the predictor estimates"},
    {"latency.p50", HWNAS_FROM_DEVICE, false, "s", "ms", 1e-3, "latency p50", 3,
     "median latency of a batch"},
    {"latency.p90", HWNAS_FROM_DEVICE, false, "s", "ms", 1e-3, "latency p90", 3,
     "90th percentile of latency"},
    {"latency.p99", HWNAS_FROM_DEVICE, false, "s", "ms", 1e-3, "latency p99", 3,
     "99th percentile of latency"},
    {"throughput", HWNAS_FROM_DEVICE, true, "1/s", "/s", 1, "throughput", 1,
     "inferences a second: the batch over the median latency"},
    {"energy", HWNAS_FROM_DEVICE, false, "J", "mJ", 1e-3, "energy", 2,
     "of one inference, by the machine's counter"},
    {"cost", HWNAS_FROM_DEVICE, false, "/M", "/M", 1, "cost", 4,
     "of a million inferences, at the device's price an hour"},
    {"memory.device", HWNAS_FROM_DEVICE, false, "bytes", "MiB", MEBI, "held memory", 1,
     "what the device holds of the compiled network: weights and buffers"},
    {"macs", HWNAS_FROM_GRAPH, false, "MACs", "M", 1e6, "MMACs", 1,
     "multiply-accumulates of one inference"},
    {"params", HWNAS_FROM_GRAPH, false, "params", "M", 1e6, "M params", 3, "learned values"},
    {"memory", HWNAS_FROM_GRAPH, false, "bytes", "MiB", MEBI, "peak memory", 1,
     "weights and the peak of live activations"},
    {0},
};

const hwnas_metric hwnas_score_metric = {
    "accuracy", HWNAS_FROM_PREDICTOR, true, "score", "", 1, "score", 2, "what a proxy says"};

enum { N_METRICS = sizeof hwnas_metrics / sizeof *hwnas_metrics - 1 };

hwnas_status hwnas_metric_find(const hwnas_metric **out, const char *name, const hwnas_place *place)
{
    const char *names[N_METRICS + 1] = {0};
    if (!strcmp(name, "latency"))
        name = "latency.p50";
    for (int i = 0; i < N_METRICS; i++) {
        names[i] = hwnas_metrics[i].name;
        if (!strcmp(names[i], name)) {
            *out = &hwnas_metrics[i];
            return HWNAS_OK;
        }
    }
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, place, "there is no metric '%.60s'", name);
    const char *near = hwnas_nearest(name, names);
    if (near)
        return hwnas_hint(status, "did you mean '%s'?", near);
    hwnas_str list = {0};
    for (int i = 0; i < N_METRICS; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    hwnas_hint(status, "there are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

const hwnas_metric *hwnas_metric_of_value(const char *name)
{
    size_t length = strcspn(name, " ");
    for (int i = 0; i < N_METRICS; i++)
        if (strlen(hwnas_metrics[i].name) == length &&
            !strncmp(hwnas_metrics[i].name, name, length))
            return &hwnas_metrics[i];
    return NULL;
}

/* Units that a value may be written in, as factors to SI. */
static const struct {
    const char *unit;
    double factor;
    const char *family; /* shown unit of the metrics that it fits */
} units[] = {
    {"s", 1, "ms"},
    {"ms", 1e-3, "ms"},
    {"us", 1e-6, "ms"},
    {"k", 1e3, "M"},
    {"K", 1e3, "M"},
    {"M", 1e6, "M"},
    {"G", 1e9, "M"},
    {"B", 1, "MiB"},
    {"KiB", 1024, "MiB"},
    {"MiB", MEBI, "MiB"},
    {"GiB", 1024 * MEBI, "MiB"},
    {"%", 1, "%"},
    {"J", 1, "mJ"},
    {"mJ", 1e-3, "mJ"},
    {"uJ", 1e-6, "mJ"},
    {"/s", 1, "/s"},
    {"k/s", 1e3, "/s"},
    {"/M", 1, "/M"},
};

hwnas_status hwnas_metric_unit(double *out, const hwnas_metric *metric, const char *unit,
                               const hwnas_place *place)
{
    hwnas_str fitting = {0};
    *out = metric->scale;
    if (!*unit)
        return HWNAS_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].family, metric->unit))
            continue;
        if (!strcmp(units[i].unit, unit)) {
            *out = units[i].factor;
            hwnas_str_done(&fitting);
            return HWNAS_OK;
        }
        hwnas_str_addf(&fitting, "%s%s", fitting.n ? ", " : "", units[i].unit);
    }
    hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "'%s' is not a unit of %s", unit, metric->name),
                   "%s is given in %s", metric->name, fitting.s);
    hwnas_str_done(&fitting);
    return status;
}
