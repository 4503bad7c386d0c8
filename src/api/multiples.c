#include "api/multiples.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "trial/metric.h"

/* What the model has of a metric, as a job spells it. Of a latency the low end of its interval: a
 * limit is kept by the high end of a candidate's. */
static bool reference_of(double *out, const char *metric, size_t n, const hwnas_optimized *found)
{
    const hwnas_costs *costs = &found->original.costs;
    const struct {
        const char *name;
        double value;
    } rows[] = {{"latency", found->original.latency.low},
                {"latency.p50", found->original.latency.low},
                {"macs", (double)costs->macs},
                {"params", (double)costs->params},
                {"memory", (double)costs->peak_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (n == strlen(rows[i].name) && !strncmp(metric, rows[i].name, n)) {
            *out = rows[i].value;
            return true;
        }
    return false;
}

static const hwnas_metric *find_metric(const char *name, size_t n)
{
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (strlen(m->name) == n && !strncmp(m->name, name, n))
            return m;
    return hwnas_metric_of(HWNAS_LATENCY); /* of which "latency" is short */
}

/* In a unit that people read: a search says its limits again. */
static void add_limit(hwnas_str *out, const char *name, size_t n, double value)
{
    const hwnas_metric shown = hwnas_metric_shown(find_metric(name, n), value);
    hwnas_str_addf(out, "%.6g %s", value / shown.scale, shown.unit);
}

/* A number alone is no multiple. */
static void note_unit(const char *name, double number, const char *behind)
{
    const size_t n = strcspn(name, " <>=");
    const hwnas_metric *metric = find_metric(name, n);
    const bool is_alone = !*behind || *behind == ',' || !strncmp(behind, "and ", 4);
    if (is_alone && *metric->unit)
        hwnas_log(HWNAS_LOG_NOTE,
                  "the limit of %.*s is taken as %.6g %s; write %.6g x for a multiple of what the "
                  "model has",
                  (int)n, name, number, metric->unit, number);
}

hwnas_status hwnas_multiples_resolve(hwnas_str *out, const char *text, const hwnas_optimized *found,
                                     bool with_notes)
{
    const char *metric = text;
    for (const char *at = text; *at;) {
        char *after;
        if (isalpha((unsigned char)*at)) {
            const size_t n = strcspn(at, " <>=");
            if (strncmp(at, "and", n))
                metric = at;
            hwnas_str_addn(out, at, n);
            at += n;
            continue;
        }
        const double factor = isdigit((unsigned char)*at) || *at == '.' ? strtod(at, &after) : NAN;
        if (isnan(factor)) {
            hwnas_str_addn(out, at++, 1);
            continue;
        }
        const char *unit = after + strspn(after, " ");
        if (*unit != 'x' || isalnum((unsigned char)unit[1])) {
            if (with_notes)
                note_unit(metric, factor, unit);
            hwnas_str_addn(out, at, (size_t)(after - at));
            at = after;
            continue;
        }
        double reference;
        const size_t n = strcspn(metric, " <>=");
        if (!reference_of(&reference, metric, n, found))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_USAGE, NULL,
                           "there is no reference value of '%.*s' for this model, so 'x' "
                           "cannot be used with it",
                           (int)n, metric),
                "x goes with latency.p50, macs, params and memory");
        add_limit(out, metric, n, factor * reference);
        at = unit + 1;
    }
    return HWNAS_OK;
}
