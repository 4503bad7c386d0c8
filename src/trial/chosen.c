#include "trial/chosen.h"

#include <math.h>

double hwnas_value_when_chosen(const hwnas_value_row *value, const hwnas_metric *metric)
{
    if (!hwnas_sources[value->source].is_expectable || !hwnas_value_has_interval(value) ||
        !(value->high > value->low))
        return NAN;
    const double less = HWNAS_CHOSEN_DEVIATIONS * (value->high - value->low) / 2;
    return metric->is_maximised ? value->value - less : value->value + less;
}
