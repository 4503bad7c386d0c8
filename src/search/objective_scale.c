#include "search/objective_scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

hwnas_scale hwnas_scale_fit(const double *values, size_t n)
{
    double *sorted = hwnas_alloc(n * sizeof *sorted);
    memcpy(sorted, values, n * sizeof *sorted);
    hwnas_sort(sorted, n);
    double best = sorted[0], spread = hwnas_quantile(sorted, n, 0.5) - best;
    /* Where half of the values are the best one, any positive distance will do. */
    if (spread <= 0)
        spread = fmax(1e-3 * fabs(best), 1e-9);
    hwnas_scale scale = {.floor = best > 0 ? 0 : best - spread};
    double lower = log(hwnas_quantile(sorted, n, 0.25) - scale.floor);
    double upper = log(hwnas_quantile(sorted, n, 0.75) - scale.floor);
    scale.low = lower - 3 * (upper - lower) - 1; /* 1: quartiles may be equal */
    scale.high = upper + 3 * (upper - lower) + 1;
    free(sorted);
    return scale;
}

double hwnas_scale_to(const hwnas_scale *scale, double y)
{
    double distance = y - scale->floor;
    double z = distance > 0 ? log(distance) : -INFINITY;
    return fmin(fmax(z, scale->low), scale->high);
}

double hwnas_scale_from(const hwnas_scale *scale, double z)
{
    return scale->floor + exp(z);
}

static double normal_cdf(double u)
{
    return 0.5 * erfc(-u * M_SQRT1_2);
}

double hwnas_scale_shortfall(const hwnas_scale *scale, double mean, double sd, double bound)
{
    double room = bound - scale->floor;
    if (room <= 0)
        return 0;
    double d = (log(room) - mean) / sd;
    return fmax(0, room * normal_cdf(d) - exp(mean + 0.5 * sd * sd) * normal_cdf(d - sd));
}
