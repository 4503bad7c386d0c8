#include "profile/prices.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"

enum { MAX_BYTES = 1 << 20 };

static hwnas_status read_price(hwnas_price *out, const hwnas_yaml *key, const hwnas_yaml *node)
{
    static const char *const keys[] = {"price", "source", "date", NULL};
    const hwnas_yaml *price = hwnas_yaml_get(node, "price");
    const hwnas_yaml *source = hwnas_yaml_get(node, "source");
    const hwnas_yaml *date = hwnas_yaml_get(node, "date");
    *out = (hwnas_price){.device = key->text, .source = "", .date = ""};
    TRY(hwnas_yaml_check_keys(node, "a device", keys));
    if (!price)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &key->place, "'%s' has no price", key->text),
                          "write price: and what an hour of it costs");
    TRY(hwnas_yaml_number(&out->per_hour, price, "a price", -1e12, 1e12));
    if (out->per_hour <= 0)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &price->place, "a price must be more than 0, not %s",
                       price->text),
            "a machine that is paid for still costs power and its share of a new one");
    if (source)
        TRY(hwnas_yaml_text(&out->source, source, "a source"));
    return date ? hwnas_yaml_text(&out->date, date, "a date") : HWNAS_OK;
}

static hwnas_status read_prices(hwnas_prices *p, const hwnas_yaml *root)
{
    static const char *const keys[] = {"currency", "devices", NULL};
    const hwnas_yaml *currency = hwnas_yaml_get(root, "currency");
    const hwnas_yaml *devices = hwnas_yaml_get(root, "devices");
    TRY(hwnas_yaml_check_keys(root, "a price file", keys));
    if (!currency || !devices)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &root->place, "a price file needs '%s'",
                                     currency ? "devices" : "currency"),
                          "examples/prices.yaml shows the form");
    TRY(hwnas_yaml_text(&p->currency, currency, "the currency"));
    TRY(hwnas_yaml_expect(devices, HWNAS_YAML_MAPPING, "'devices'"));
    p->rows = hwnas_arena_alloc(p->arena, devices->n * sizeof *p->rows);
    for (; p->n < devices->n; p->n++)
        TRY(read_price(&p->rows[p->n], devices->keys[p->n], devices->items[p->n]));
    return HWNAS_OK;
}

hwnas_status hwnas_prices_load(hwnas_prices **out, const char *path)
{
    hwnas_status status;
    hwnas_prices *prices = hwnas_alloc(sizeof *prices);
    hwnas_yaml *root;
    char *text = NULL;
    size_t length;
    prices->arena = hwnas_arena_new();
    prices->path = hwnas_arena_string(prices->arena, path, strlen(path));
    TRY_OUT(hwnas_file_read_text(&text, &length, path, MAX_BYTES));
    TRY_OUT(hwnas_yaml_parse(&root, prices->arena, path, text, length));
    TRY_OUT(read_prices(prices, root));
    *out = prices;
    prices = NULL;
out:
    free(text);
    hwnas_prices_free(prices);
    return status;
}

void hwnas_prices_free(hwnas_prices *prices)
{
    if (!prices)
        return;
    hwnas_arena_free(prices->arena);
    free(prices);
}

const hwnas_price *hwnas_prices_get(const hwnas_prices *prices, const char *device)
{
    for (size_t i = 0; i < prices->n; i++)
        if (!strcmp(prices->rows[i].device, device))
            return &prices->rows[i];
    return NULL;
}

hwnas_status hwnas_prices_find(const hwnas_price **out, const hwnas_prices *prices,
                               const char *device)
{
    const hwnas_price *found = hwnas_prices_get(prices, device);
    if (found) {
        *out = found;
        return HWNAS_OK;
    }
    const hwnas_place place = {.file = prices->path};
    const char **names = hwnas_alloc((prices->n + 1) * sizeof *names);
    hwnas_str list = {0};
    for (size_t i = 0; i < prices->n; i++) {
        names[i] = prices->rows[i].device;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hwnas_nearest(device, names);
    const hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &place, "there is no price for '%s'", device);
    if (near)
        hwnas_hint(status, "did you mean '%s'? It has prices for %s", near, list.s);
    else
        hwnas_hint(status, "it has prices for %s", list.s ? list.s : "nothing");
    hwnas_str_done(&list);
    free(names);
    return status;
}
