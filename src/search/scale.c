#include "search/scale.h"

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
    free(sorted);
    if (best > 0)
        return (hwnas_scale){.floor = 0, .least = 0.1 * best};
    /* Where half of the values are the best one, any positive distance will do. */
    if (spread <= 0)
        spread = fmax(1e-3 * fabs(best), 1e-9);
    return (hwnas_scale){.floor = best - spread, .least = 0.1 * spread};
}

double hwnas_scale_to(const hwnas_scale *scale, double y)
{
    return log(fmax(y - scale->floor, scale->least));
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
