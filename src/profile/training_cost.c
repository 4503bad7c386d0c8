#include "profile/training_cost.h"

#include <math.h>
#include <string.h>

static const hwnas_training_cost unknown = {.seconds = NAN, .low = NAN, .high = NAN, .money = NAN};

hwnas_training_cost hwnas_training_cost_of(const hwnas_training_plan *plan,
                                           const hwnas_profile_row *row, const hwnas_price *price)
{
    if (!(plan->samples > 0) || row->status != HWNAS_OK || !row->training)
        return unknown;
    const double steps = ceil(ceil(plan->samples / row->batch) * plan->epochs);
    return (hwnas_training_cost){
        .steps = (int64_t)steps,
        .seconds = steps * row->m.p50,
        .low = steps * row->m.p50_low,
        .high = steps * row->m.p50_high,
        .money = price ? steps * row->m.p50 / 3600 * price->per_hour : NAN,
    };
}

static bool are_rivals(const hwnas_profile_row *a, const hwnas_profile_row *b)
{
    return !strcmp(a->model, b->model) && !strcmp(a->device, b->device) &&
           !strcmp(a->shape ? a->shape : "", b->shape ? b->shape : "");
}

void hwnas_training_costs_fill(hwnas_profile *profile, const hwnas_training_plan *plan,
                               const hwnas_prices *prices)
{
    profile->plan = *plan;
    if (prices)
        profile->plan.currency =
            hwnas_arena_string(profile->arena, prices->currency, strlen(prices->currency));
    for (size_t i = 0; i < profile->n_rows; i++) {
        hwnas_profile_row *row = &profile->rows[i];
        row->train = hwnas_training_cost_of(plan, row,
                                            prices ? hwnas_prices_get(prices, row->device) : NULL);
    }
    for (size_t i = 0; i < profile->n_rows; i++) {
        hwnas_profile_row *row = &profile->rows[i];
        row->train.is_cheapest = !isnan(row->train.seconds);
        for (size_t k = 0; k < profile->n_rows; k++) {
            const hwnas_profile_row *other = &profile->rows[k];
            if (are_rivals(row, other) && (other->train.seconds < row->train.seconds ||
                                           (other->train.seconds == row->train.seconds && k < i)))
                row->train.is_cheapest = false;
        }
    }
}

hwnas_status hwnas_training_plan_check(const hwnas_training_plan *plan, const int *batches, int n)
{
    if (plan->samples < 0 || plan->epochs < 0 || plan->samples > 1e15 || plan->epochs > 1e9)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "a training is of 1 to 1e15 samples, and of at most 1e9 epochs");
    for (int i = 0; i < n && plan->samples > 0; i++)
        if (batches[i] > plan->samples)
            return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                         "a batch of %d is more than the %.0f samples there are",
                                         batches[i], plan->samples),
                              "--samples counts those of the whole training set");
    return HWNAS_OK;
}
