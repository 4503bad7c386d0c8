#include "cli/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name; /* NULL ends the table */
    double factor;
} unit;

static hwnas_status read(double *out, const char *option, const char *text, const unit *units,
                         const char *example)
{
    char *end;
    const double value = strtod(text, &end);
    if (end > text && isfinite(value) && value > 0) {
        end += strspn(end, " ");
        for (const unit *u = units; u->name; u++)
            if (!strcmp(end, u->name)) {
                *out = value * u->factor;
                return HWNAS_OK;
            }
    }
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is not understood", option, text),
        "write it as %s", example);
}

hwnas_status hwnas_quantity_seconds(double *out, const char *option, const char *text)
{
    static const unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {0}};
    return read(out, option, text, units, "8ms, 0.5s or 800us");
}

hwnas_status hwnas_quantity_rate(double *out, const char *option, const char *text)
{
    static const unit units[] = {
        {"", 1}, {"/s", 1}, {"/min", 1. / 60}, {"/h", 1. / 3600}, {"/day", 1. / 86400}, {0}};
    return read(out, option, text, units, "1000/s, 500/min, 10/h or 1e6/day");
}

hwnas_status hwnas_quantity_percentile(double *out, const char *option, const char *text)
{
    static const unit percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {0}};
    for (const unit *u = percentiles; u->name; u++)
        if (!strcmp(text, u->name) || !strcmp(text, u->name + 1)) { /* 99 is p99 */
            *out = u->factor;
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is not measured", option, text),
                      "the percentiles are p50, p90 and p99");
}
