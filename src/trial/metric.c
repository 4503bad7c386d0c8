#include "trial/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define MEBI 1048576.0

#define DEVICE(of, quantile, per) HWNAS_FROM_DEVICE, HWNAS_##of, quantile, HWNAS_##per, NULL
#define DEVICE_IN(phase, of, quantile, per)                                                        \
    HWNAS_FROM_DEVICE, HWNAS_##of, quantile, HWNAS_##per, phase
#define GRAPH(of, per) HWNAS_FROM_GRAPH, HWNAS_##of, 0, HWNAS_##per, NULL
#define GRAPH_IN(phase, of, per) HWNAS_FROM_GRAPH, HWNAS_##of, 0, HWNAS_##per, phase
#define PREDICTED HWNAS_FROM_PREDICTOR, HWNAS_ACCURACY, 0, HWNAS_OF_BATCH, NULL
enum { MOST = true, LEAST = false, USUAL = true, RARE = false };

/* clang-format off */
const hwnas_metric hwnas_metrics[] = {
    {"accuracy", PREDICTED, USUAL, MOST, "%", "%", 1, "accuracy", 2,
     "what the predictor estimates"},
    {"latency.p50", DEVICE(LATENCY, 0.5, OF_BATCH), USUAL, LEAST, "s", "ms", 1e-3, "latency p50", 3,
     "median latency of a batch"},
    {"latency.p90", DEVICE(LATENCY, 0.9, OF_BATCH), RARE, LEAST, "s", "ms", 1e-3, "latency p90", 3,
     "90th percentile of latency"},
    {"latency.p95", DEVICE(LATENCY, 0.95, OF_BATCH), RARE, LEAST, "s", "ms", 1e-3, "latency p95", 3,
     "95th percentile of latency"},
    {"latency.p99", DEVICE(LATENCY, 0.99, OF_BATCH), RARE, LEAST, "s", "ms", 1e-3, "latency p99", 3,
     "99th percentile of latency"},
    {"throughput", DEVICE(LATENCY, 0.5, ITEMS_PER_SECOND), RARE, MOST, "1/s", "/s", 1, "throughput", 1,
     "inferences a second: the batch over the median latency"},
    {"time-to-first-token", DEVICE_IN("prefill", LATENCY, 0.5, OF_BATCH), RARE, LEAST, "s", "ms", 1e-3, "first token", 2,
     "median latency of the phase `prefill`, which reads the prompt"},
    {"tokens/s", DEVICE_IN("decode", LATENCY, 0.5, ITEMS_PER_SECOND), RARE, MOST, "1/s", "/s", 1, "tokens", 1,
     "the batch over the median latency of the phase `decode`, which adds a token"},
    {"energy", DEVICE(ENERGY, 0, PER_ITEM), RARE, LEAST, "J", "mJ", 1e-3, "energy", 2,
     "of one inference, by the machine's counter"},
    {"cost", DEVICE(LATENCY, 0.5, PRICE_OF_MILLION), RARE, LEAST, "/M", "/M", 1, "cost", 4,
     "of a million inferences, at the device's price an hour"},
    {"memory.device", DEVICE(HELD_BYTES, 0, OF_BATCH), RARE, LEAST, "bytes", "MiB", MEBI, "held memory", 1,
     "what the device holds of the compiled network: weights and buffers"},
    {"macs", GRAPH(MACS, PER_ITEM), USUAL, LEAST, "MACs", "M", 1e6, "MMACs", 1,
     "multiply-accumulates of one inference"},
    {"params", GRAPH(PARAMS, OF_BATCH), USUAL, LEAST, "params", "M", 1e6, "M params", 3,
     "learned values"},
    {"memory", GRAPH(PEAK_BYTES, OF_BATCH), USUAL, LEAST, "bytes", "MiB", MEBI, "peak memory", 1,
     "weights and the peak of live activations"},
    {"memory.cache", GRAPH_IN("decode", CACHE_BYTES, OF_BATCH), RARE, LEAST, "bytes", "MiB", MEBI, "cache", 1,
     "keys and values that the phase `decode` reads: its inputs called past_*, in f32"},
    {0},
};

const hwnas_metric hwnas_score_metric = {
    "accuracy", PREDICTED, USUAL, MOST, "score", "", 1, "score", 2, "what a proxy says"};
/* clang-format on */

enum { N_METRICS = sizeof hwnas_metrics / sizeof *hwnas_metrics - 1 };

const hwnas_metric *hwnas_metric_of(hwnas_quantity quantity)
{
    const hwnas_metric *m = hwnas_metrics;
    while (m->of != quantity)
        m++;
    return m;
}

static const struct smaller_unit {
    const char *of, *unit;
    double scale; /* of the one of which it is a part */
    int decimals;
    double below;                 /* so many of the larger */
    const char *title, *as_title; /* of a metric whose title has the unit in it */
} smaller_units[] = {
    {"ms", "us", 1e-3, 2, 1, NULL, NULL},
    {"mJ", "uJ", 1e-3, 2, 1, NULL, NULL},
    {"MiB", "KiB", 1 / 1024.0, 1, 1, NULL, NULL},
    {"M", "k", 1e-3, 1, 0.1, "MMACs", "kMACs"},
    {"M", "k", 1e-3, 2, 0.01, "M params", "k params"},
};

enum { MOST_DECIMALS = 9 };

/* Of values below 1: three digits that count. */
static int decimals_of(int usual, double most)
{
    const int wanted = most > 0 && most < 1 ? 2 - (int)floor(log10(most)) : 0;
    return wanted < usual ? usual : wanted < MOST_DECIMALS ? wanted : MOST_DECIMALS;
}

int hwnas_metric_decimals_among(const hwnas_metric *metric, double least, double most)
{
    const int usual = decimals_of(metric->decimals, most);
    const double spread = most - least;
    if (!(spread > 0) || spread >= 1.5 * pow(10, -usual))
        return usual; /* all the same, or told apart */
    const int wanted = 1 - (int)floor(log10(spread));
    return wanted < MOST_DECIMALS ? wanted : MOST_DECIMALS;
}

hwnas_metric hwnas_metric_shown(const hwnas_metric *metric, double most)
{
    hwnas_metric shown = *metric;
    for (size_t i = 0; i < sizeof smaller_units / sizeof *smaller_units; i++) {
        const struct smaller_unit *smaller = &smaller_units[i];
        if (strcmp(metric->unit, smaller->of) != 0 ||
            !(most > 0 && most < smaller->below * metric->scale) ||
            (smaller->title && strcmp(metric->title, smaller->title) != 0))
            continue;
        if (smaller->title)
            shown.title = smaller->as_title;
        shown.unit = smaller->unit;
        shown.scale = metric->scale * smaller->scale;
        shown.decimals = smaller->decimals + (most < 10 * shown.scale);
    }
    shown.decimals = decimals_of(shown.decimals, most / shown.scale);
    return shown;
}

hwnas_metric hwnas_metric_shown_among(const hwnas_metric *metric, double least, double most)
{
    hwnas_metric shown = hwnas_metric_shown(metric, most);
    shown.decimals = hwnas_metric_decimals_among(&shown, least / shown.scale, most / shown.scale);
    return shown;
}

/* "latency" is the first of "latency.*", unless something has that very name. */
static const hwnas_metric *find_plain(const char *name)
{
    const size_t length = strlen(name);
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (!strcmp(m->name, name))
            return m;
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (!strncmp(m->name, name, length) && m->name[length] == '.')
            return m;
    return NULL;
}

/* What stands behind the first word of a name, if there is more: "latency.p50" of
 * "decode.latency.p50". */
static const char *behind_phase(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot && dot > name && dot - name < HWNAS_PHASE_NAME ? dot + 1 : NULL;
}

static const hwnas_metric *find(char phase[HWNAS_PHASE_NAME], const char *name)
{
    const hwnas_metric *found = find_plain(name);
    const char *rest = behind_phase(name);
    phase[0] = '\0';
    if (found && found->phase)
        snprintf(phase, HWNAS_PHASE_NAME, "%s", found->phase);
    if (found || !rest)
        return found;
    found = find_plain(rest);
    if (found && !found->phase && found->source != HWNAS_FROM_PREDICTOR)
        snprintf(phase, HWNAS_PHASE_NAME, "%.*s", (int)(rest - 1 - name), name);
    return *phase ? found : NULL;
}

bool hwnas_metric_is_in(const hwnas_metric *metric, const char *phase)
{
    return !metric->phase || !strcmp(metric->phase, phase);
}

hwnas_status hwnas_metric_find(const hwnas_metric **out, char phase[HWNAS_PHASE_NAME],
                               const char *name, const hwnas_place *place)
{
    const char *names[N_METRICS + 2] = {0};
    const hwnas_metric *found = find(phase, name);
    if (found) {
        *out = found;
        return HWNAS_OK;
    }
    for (int i = 0; i < N_METRICS; i++)
        names[i] = hwnas_metrics[i].name;
    names[N_METRICS] = "latency"; /* short for its median */
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

static const hwnas_metric *find_stored(const char *name)
{
    size_t length = strcspn(name, " ");
    for (int i = 0; i < N_METRICS; i++)
        if (strlen(hwnas_metrics[i].name) == length &&
            !strncmp(hwnas_metrics[i].name, name, length))
            return &hwnas_metrics[i];
    return NULL;
}

const hwnas_metric *hwnas_metric_of_value(const char *name)
{
    const hwnas_metric *found = find_stored(name);
    const char *rest = found ? NULL : behind_phase(name);
    return rest ? find_stored(rest) : found;
}

static hwnas_reading scaled(double factor, hwnas_reading r)
{
    return (hwnas_reading){factor * r.value, factor * r.low, factor * r.high};
}

hwnas_reading hwnas_metric_read(const hwnas_metric *metric, hwnas_reading q, int batch,
                                double price)
{
    switch (metric->per) {
    case HWNAS_PER_ITEM:
        return (hwnas_reading){q.value / batch, q.low / batch, q.high / batch};
    case HWNAS_ITEMS_PER_SECOND:
        return (hwnas_reading){batch / q.value, batch / q.high, batch / q.low};
    case HWNAS_PRICE_OF_MILLION: /* which takes 1e6 / batch runs */
        return scaled(price / 3600 * 1e6 / batch, q);
    default:
        return q;
    }
}

/* What a measurement says of the quantity that a metric is a reading of; NaN: nothing. */
static hwnas_reading reading_of(const hwnas_measurement *m, const hwnas_metric *metric)
{
    const double bytes = m->memory_bytes ? (double)m->memory_bytes : NAN; /* the same each time */
    switch (metric->of) {
    case HWNAS_LATENCY:
        for (const hwnas_tail *t = m->tails; t < m->tails + HWNAS_MAX_TAILS; t++)
            if (t->of == metric->quantile)
                return (hwnas_reading){t->value, t->low, t->high};
        return metric->quantile == 0.5 ? (hwnas_reading){m->p50, m->p50_low, m->p50_high}
                                       : (hwnas_reading){NAN, NAN, NAN};
    case HWNAS_ENERGY:
        return (hwnas_reading){m->energy, m->energy_low, m->energy_high};
    default:
        return (hwnas_reading){bytes, bytes, bytes};
    }
}

bool hwnas_metric_next_measured(const hwnas_metric **metric, hwnas_reading *reading,
                                const hwnas_measurement *m, const char *phase, int batch,
                                double price)
{
    for (const hwnas_metric *next = *metric ? *metric + 1 : hwnas_metrics; next->name; next++) {
        if (next->source != HWNAS_FROM_DEVICE || !hwnas_metric_is_in(next, phase))
            continue;
        *reading = hwnas_metric_read(next, reading_of(m, next), batch, price);
        *metric = next;
        if (!isnan(reading->value))
            return true;
    }
    return false;
}

void hwnas_metric_ask_for_tails(hwnas_measure_options *out)
{
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++) {
        int i = 0;
        while (i < HWNAS_MAX_TAILS && out->tails[i] > 0 && out->tails[i] != m->quantile)
            i++;
        if (m->quantile > 0.5 && i < HWNAS_MAX_TAILS)
            out->tails[i] = m->quantile;
    }
}

double hwnas_metric_count(const hwnas_metric *metric, const hwnas_costs *costs, int batch)
{
    const int64_t count = metric->of == HWNAS_PARAMS        ? costs->params
                          : metric->of == HWNAS_PEAK_BYTES  ? costs->peak_bytes
                          : metric->of == HWNAS_CACHE_BYTES ? costs->cache_bytes
                                                            : costs->macs;
    return hwnas_metric_read(metric, (hwnas_reading){.value = (double)count}, batch, NAN).value;
}

bool hwnas_metric_gives(const hwnas_metric *metric, const hwnas_metric *other)
{
    return metric == other || (metric->of == other->of && metric->quantile == other->quantile &&
                               metric->per == HWNAS_OF_BATCH);
}

/* Quantiles far from the middle need more samples, and a count of bytes needs none. */
bool hwnas_metric_is_levelled(const hwnas_metric *metric)
{
    return metric->of == HWNAS_ENERGY || (metric->of == HWNAS_LATENCY && metric->quantile == 0.5);
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
