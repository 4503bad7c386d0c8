#include "precision/output_error.h"

#include <math.h>

void hwnas_error_add(hwnas_error_sums *sums, const float *got, const float *right, size_t n)
{
    hwnas_error_sums s = *sums;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(right[i]) && !isfinite(got[i])) {
            s.n_others++;
            continue;
        }
        s.n_finite++;
        double difference = fabs((double)got[i] - right[i]);
        if (!isfinite(difference))
            difference = INFINITY; /* NaN compares with nothing */
        if (isfinite(right[i])) {
            s.values += (double)right[i] * right[i];
            s.value = fmax(s.value, fabs(right[i]));
        }
        s.differences += difference * difference;
        s.difference = fmax(s.difference, difference);
    }
    *sums = s;
}

hwnas_output_error hwnas_error_of(const hwnas_error_sums *s)
{
    if (s->n_others && !s->n_finite)
        return (hwnas_output_error){INFINITY, INFINITY};
    return (hwnas_output_error){
        .largest = s->value > 0 ? s->difference / s->value : s->difference,
        .noise = sqrt(s->values > 0 ? s->differences / s->values : s->differences),
    };
}
