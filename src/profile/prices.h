/* prices.h: what an hour of each device costs: the user's YAML. docs/cpu-or-gpu.md has the form. */
#ifndef HWNAS_PROFILE_PRICES_H
#define HWNAS_PROFILE_PRICES_H

#include "base/mem.h"

typedef struct hwnas_price {
    const char *device;
    double per_hour;
    const char *source, *date; /* "" where the file has none */
} hwnas_price;

typedef struct hwnas_prices {
    hwnas_arena *arena;
    const char *path, *currency;
    size_t n;
    hwnas_price *rows;
} hwnas_prices;

/* Mistakes are told with their line and column; a price is more than 0. */
HWNAS_CHECKED hwnas_status hwnas_prices_load(hwnas_prices **out, const char *path);
void hwnas_prices_free(hwnas_prices *prices); /* accepts NULL */

/* NULL: the device has no price. */
const hwnas_price *hwnas_prices_get(const hwnas_prices *prices, const char *device);
/* A device without a price is HWNAS_E_INPUT with the nearest one that has one. */
HWNAS_CHECKED hwnas_status hwnas_prices_find(const hwnas_price **out, const hwnas_prices *prices,
                                             const char *device);

#endif
