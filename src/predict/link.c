/* link.c: the candidate scales, and going there and back. */
#include "predict/link.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

/* `reach`: how far the limit lies beyond the best value, in units of the distance from the median
 * to the best. That distance, not the range, because a few broken networks stretch the range. */
static const struct {
    const char *name;
    int side;
    double reach;
} candidates[HWNAS_N_LINKS] = {
    {"plain", 0, 0},    {"ceiling", 1, 0.4}, {"ceiling", 1, 0.8}, {"ceiling", 1, 2},
    {"floor", -1, 0.4}, {"floor", -1, 0.8},  {"floor", -1, 2},
};

static double transform(const hwnas_link *link, double value)
{
    return link->side ? -link->side * log(link->side * (link->limit - value)) : value;
}

void hwnas_link_make(hwnas_link *out, int i, const double *values, size_t n)
{
    *out = (hwnas_link){.name = candidates[i].name, .side = candidates[i].side, .scale = 1};
    double *scratch = hwnas_alloc(n * sizeof *scratch);
    memcpy(scratch, values, n * sizeof *scratch);
    hwnas_sort(scratch, n);
    double worst = scratch[0], best = scratch[n - 1], median = hwnas_quantile(scratch, n, 0.5);
    if (out->side < 0) {
        worst = scratch[n - 1];
        best = scratch[0];
    }
    double distance = fabs(best - median) > 0 ? fabs(best - median) : fabs(best - worst);
    if (!(distance > 0))
        distance = 1; /* all equal: any limit will do */
    if (out->side)
        out->limit = best + out->side * candidates[i].reach * distance;
    for (size_t k = 0; k < n; k++)
        scratch[k] = transform(out, values[k]);
    out->mean = hwnas_mean(scratch, n);
    double variance = 0;
    for (size_t k = 0; k < n; k++)
        variance += (scratch[k] - out->mean) * (scratch[k] - out->mean) / (double)n;
    if (variance > 0)
        out->scale = sqrt(variance);
    free(scratch);
}

bool hwnas_link_named(hwnas_link *out, const char *name)
{
    for (int i = 0; i < HWNAS_N_LINKS; i++) {
        if (!strcmp(candidates[i].name, name)) {
            *out = (hwnas_link){.name = candidates[i].name, .side = candidates[i].side, .scale = 1};
            return true;
        }
    }
    return false;
}

double hwnas_link_apply(const hwnas_link *link, double value)
{
    return (transform(link, value) - link->mean) / link->scale;
}

double hwnas_link_invert(const hwnas_link *link, double t, double *slope)
{
    double u = t * link->scale + link->mean;
    if (!link->side) {
        *slope = link->scale;
        return u;
    }
    double headroom = exp(fmin(-link->side * u, 300)); /* far out of the data, but finite */
    *slope = link->scale * headroom;
    return link->limit - link->side * headroom;
}

double hwnas_link_slope(const hwnas_link *link, double value)
{
    double slope;
    if (link->side && !(link->side * (link->limit - value) > 0))
        return NAN;
    hwnas_link_invert(link, hwnas_link_apply(link, value), &slope);
    return slope;
}
