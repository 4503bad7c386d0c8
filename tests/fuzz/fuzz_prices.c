/* Any bytes as a file of prices: it is refused with a place, or each of its devices has a price. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "profile/prices.h"

static void look_up(const hwnas_prices *prices)
{
    const hwnas_price *price = NULL;
    FUZZ_CHECK(*prices->currency);
    for (size_t i = 0; i < prices->n; i++) {
        FUZZ_CHECK(!hwnas_prices_find(&price, prices, prices->rows[i].device));
        FUZZ_CHECK(price == &prices->rows[i]);
        FUZZ_CHECK(price->per_hour > 0 && isfinite(price->per_hour));
        FUZZ_CHECK(price->source && price->date);
    }
    hwnas_status status = hwnas_prices_find(&price, prices, "cpuu");
    if (status != HWNAS_OK)
        fuzz_check_refused(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_prices *prices = NULL;
    hwnas_status status = hwnas_prices_load(&prices, fuzz_file(data, size, "fuzz.yaml"));
    if (status == HWNAS_OK) {
        look_up(prices);
    } else {
        fuzz_check_refused(status);
        FUZZ_CHECK(hwnas_last_error()->line > 0);
    }
    hwnas_prices_free(prices);
    return 0;
}
