/* recorded_pictures.c: rows of a profile, drawn (recorded.h). Their numbers were looked at when the
 * file was read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/picture.h"
#include "report/recorded.h"

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found ? found : "";
}

static void include(double *low, double *high, double value)
{
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* A circle that tells what it is when it is pointed at. */
static void add_circle(const hwnas_axes *a, const char *style, double x, double y, double radius,
                       const char *words)
{
    hwnas_str_addf(a->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", style,
                   hwnas_axes_x(a, x), hwnas_axes_y(a, y), radius);
    hwnas_svg_text(a->out, words);
    hwnas_str_add(a->out, "</title></circle>\n");
}

/* ---- Settings ---- */

static const struct {
    const char *key, *before;
} settings[] = {{"model", ""},  {"device", ""},   {"dtype", ""},   {"shape", ""},
                {"batch", "b"}, {"threads", "t"}, {"streams", "s"}};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

static void add_setting(hwnas_str *out, const json_t *row, int i)
{
    const json_t *value = json_object_get(row, settings[i].key);
    if (json_is_string(value))
        hwnas_str_addf(out, "%s%s", out->n ? " " : "", json_string_value(value));
    else if (json_is_integer(value))
        hwnas_str_addf(out, "%s%s%lld", out->n ? " " : "", settings[i].before,
                       (long long)json_integer_value(value));
}

static void find_varying(bool varies[N_SETTINGS], const json_t *rows)
{
    size_t i;
    json_t *row;
    for (int k = 0; k < N_SETTINGS; k++) {
        const json_t *first = json_object_get(json_array_get(rows, 0), settings[k].key);
        varies[k] = false;
        json_array_foreach(rows, i, row)
        {
            const json_t *value = json_object_get(row, settings[k].key);
            varies[k] |= first && value ? !json_equal(first, value) : first != value;
        }
    }
}

/* ---- The sweep ---- */

enum { MOST_LABELS = 24 };

static bool is_measured(const json_t *row)
{
    return number(row, "p50_seconds") > 0 && number(row, "items_per_second") > 0;
}

/* No other row of the model answers sooner and serves more. */
static bool is_best(const json_t *rows, const json_t *row)
{
    size_t i;
    json_t *other;
    json_array_foreach(rows, i, other)
    {
        const double sooner = number(row, "p50_seconds") - number(other, "p50_seconds");
        const double more = number(other, "items_per_second") - number(row, "items_per_second");
        if (is_measured(other) && !strcmp(text(row, "model"), text(other, "model")) &&
            sooner >= 0 && more >= 0 && sooner + more > 0)
            return false;
    }
    return true;
}

static void add_row(const hwnas_axes *a, const json_t *rows, const json_t *row,
                    const bool varies[N_SETTINGS], bool has_label)
{
    const double ms = 1e3 * number(row, "p50_seconds"), rate = number(row, "items_per_second");
    const double low = 1e3 * number(row, "p50_low_seconds");
    const double high = 1e3 * number(row, "p50_high_seconds");
    hwnas_str label = {0}, words = {0};
    for (int k = 0; k < N_SETTINGS; k++) {
        add_setting(&words, row, k);
        if (varies[k])
            add_setting(&label, row, k);
    }
    hwnas_str_addf(&words, ": %.4g ms, %.4g items/s", ms, rate);
    if (low > 0 && high > 0)
        hwnas_axes_line(a, "whisker", hwnas_axes_x(a, low), hwnas_axes_y(a, rate),
                        hwnas_axes_x(a, high), hwnas_axes_y(a, rate));
    add_circle(a, is_best(rows, row) ? "front" : "dominated", ms, rate, 3.5, words.s);
    if (has_label && label.n) {
        /* Away from the nearer end, so that it is not cut off. */
        const double x = hwnas_axes_x(a, ms), y = hwnas_axes_y(a, rate) - 7;
        const bool is_left = ms * ms < a->x_low * a->x_high;
        hwnas_axes_text(a, is_left ? "tick" : "tick legend", x + (is_left ? -4 : 4), y, label.s);
    }
    hwnas_str_done(&label);
    hwnas_str_done(&words);
}

bool hwnas_sweep_picture(hwnas_str *out, const json_t *rows)
{
    bool varies[N_SETTINGS];
    size_t i, n = 0;
    json_t *row;
    hwnas_axes a = {.out = out, .is_log_x = true, .is_log_y = true};
    a.x_low = a.y_low = INFINITY;
    json_array_foreach(rows, i, row)
    {
        if (!is_measured(row))
            continue;
        n++;
        include(&a.x_low, &a.x_high, 1e3 * number(row, "p50_seconds"));
        include(&a.y_low, &a.y_high, number(row, "items_per_second"));
    }
    if (!n)
        return false;
    a.x_low /= 1.15;
    a.x_high *= 1.15;
    a.y_low /= 1.15;
    a.y_high *= 1.3;
    find_varying(varies, rows);
    hwnas_axes_begin(&a, "Latency and throughput", "latency p50, ms", "items/s",
                     n > 1 ? "grey: another setting is sooner and serves more" : "");
    json_array_foreach(rows, i, row)
    {
        if (is_measured(row))
            add_row(&a, rows, row, varies, n <= MOST_LABELS);
    }
    hwnas_axes_end(&a);
    return true;
}

/* ---- The roofline ---- */

enum { NAMED = 3 /* steps that have a name in the picture */, MOST_LETTERS = 34 };

static double intensity_of(const json_t *layer)
{
    return 2 * number(layer, "macs") / number(layer, "bytes");
}

static double rate_of(const json_t *layer)
{
    return 2e-9 * number(layer, "macs") / number(layer, "p50_seconds");
}

static bool computes(const json_t *layer)
{
    return number(layer, "macs") > 0 && number(layer, "bytes") > 0 &&
           number(layer, "p50_seconds") > 0;
}

/* What memory feeds at that intensity, or the arithmetic allows; GFLOP/s. */
static void add_roof(const hwnas_axes *a, const char *style, double flops, double bandwidth)
{
    const double ridge = fmin(fmax(flops / bandwidth, a->x_low), a->x_high);
    hwnas_axes_line(a, style, hwnas_axes_x(a, a->x_low),
                    hwnas_axes_y(a, 1e-9 * fmin(flops, bandwidth * a->x_low)),
                    hwnas_axes_x(a, ridge), hwnas_axes_y(a, 1e-9 * fmin(flops, bandwidth * ridge)));
    hwnas_axes_line(a, style, hwnas_axes_x(a, ridge),
                    hwnas_axes_y(a, 1e-9 * fmin(flops, bandwidth * ridge)),
                    hwnas_axes_x(a, a->x_high), hwnas_axes_y(a, 1e-9 * flops));
}

/* Of products in lower types than the others. */
static const struct lower_rate {
    const char *key, *name;
} lower_rates[] = {{"s8_flops_per_second", "s8"}, {"bf16_flops_per_second", "bf16"}};
enum { N_LOWER = sizeof lower_rates / sizeof *lower_rates };

/* Above the end of a roof. */
static void name_roof(const hwnas_axes *a, const char *name, double flops)
{
    hwnas_axes_text(a, "tick legend", hwnas_axes_x(a, a->x_high) - 8,
                    hwnas_axes_y(a, 1e-9 * flops) - 5, name);
}

/* The fastest of the caches, and the memory, which is the last. */
static void add_roofs(const hwnas_axes *a, const json_t *roofline)
{
    const json_t *bandwidths = json_object_get(roofline, "bandwidths");
    const double flops = number(roofline, "flops_per_second");
    const size_t n = json_array_size(bandwidths);
    double fastest = 0;
    for (size_t i = 0; i < n; i++)
        fastest = fmax(fastest, number(json_array_get(bandwidths, i), "bytes_per_second"));
    const double memory = number(json_array_get(bandwidths, n - 1), "bytes_per_second");
    add_roof(a, "roof cache", flops, fastest);
    add_roof(a, "roof", flops, memory);
    for (size_t i = 0; i < N_LOWER; i++) {
        if (!json_object_get(roofline, lower_rates[i].key))
            continue;
        const double rate = number(roofline, lower_rates[i].key);
        add_roof(a, "roof", rate, memory);
        name_roof(a, lower_rates[i].name, rate);
        name_roof(a, text(roofline, "precision"), flops);
    }
}

static void include_roofs(hwnas_axes *a, const json_t *roofline)
{
    const json_t *bandwidths = json_object_get(roofline, "bandwidths");
    const double flops = number(roofline, "flops_per_second");
    const double memory =
        number(json_array_get(bandwidths, json_array_size(bandwidths) - 1), "bytes_per_second");
    include(&a->x_low, &a->x_high, flops / memory);
    include(&a->y_low, &a->y_high, 1e-9 * flops);
    for (size_t i = 0; i < N_LOWER; i++)
        if (json_object_get(roofline, lower_rates[i].key))
            include(&a->y_low, &a->y_high, 1e-9 * number(roofline, lower_rates[i].key));
}

static const char *const styles[] = {"compute", "cache", "memory"};
enum { N_STYLES = sizeof styles / sizeof *styles };

/* What the colours mean, in the corner that no step reaches: below the roof, far to the right. */
static void add_key(const hwnas_axes *a)
{
    for (int i = 0; i < N_STYLES; i++) {
        char *word = hwnas_printf("bound by %s", styles[i]);
        char *style = hwnas_printf("legend %s", styles[i]);
        hwnas_axes_text(a, style, hwnas_axes_x(a, a->x_high) - 8,
                        hwnas_axes_y(a, a->y_low) - 10 - 18 * (N_STYLES - 1 - i), word);
        free(word);
        free(style);
    }
}

static const char *style_of(const json_t *layer)
{
    for (int i = 0; i < N_STYLES; i++)
        if (!strcmp(text(layer, "bound"), styles[i]))
            return styles[i];
    return "unknown";
}

/* The end of a name says most. */
static char *short_name(const json_t *layer)
{
    const char *name = text(layer, "name");
    size_t n = strlen(name), skip = n > MOST_LETTERS ? n - MOST_LETTERS : 0;
    while (skip && ((unsigned char)name[skip] & 0xc0) == 0x80) /* inside of a character */
        skip++;
    return hwnas_printf("%s%s", skip ? "..." : "", name + skip);
}

static void add_step(const hwnas_axes *a, const json_t *layer, double whole, bool is_named)
{
    const double share = number(layer, "p50_seconds") / whole;
    const double x = intensity_of(layer), y = rate_of(layer);
    const double radius = 2.5 + 16 * sqrt(fmin(share, 1));
    char *words = hwnas_printf(
        "%s: %s, %.4g ms, %.1f %% of the whole, %.4g GFLOP/s, %.3g FLOP/byte", text(layer, "name"),
        text(layer, "operators"), 1e3 * number(layer, "p50_seconds"), 100 * share, y, x);
    add_circle(a, style_of(layer), x, y, radius, words);
    if (is_named) {
        char *name = short_name(layer);
        const bool is_left = x * x < a->x_low * a->x_high;
        const double at = hwnas_axes_x(a, x) + (is_left ? radius + 3 : -radius - 3);
        hwnas_axes_text(a, is_left ? "tick" : "tick legend", at, hwnas_axes_y(a, y) + 4, name);
        free(name);
    }
    free(words);
}

static char *title_of(const json_t *row)
{
    hwnas_str title = {0};
    for (int k = 0; k < 4; k++)
        add_setting(&title, row, k);
    hwnas_str_addf(&title, ", batch %d, %d thread%s", (int)number(row, "batch"),
                   (int)number(row, "threads"), number(row, "threads") == 1 ? "" : "s");
    return title.s;
}

bool hwnas_roofline_picture(hwnas_str *out, const json_t *row)
{
    const json_t *layers = json_object_get(row, "layers"), *list = json_object_get(layers, "list");
    const json_t *roofline = json_object_get(layers, "roofline");
    const double whole = number(layers, "whole_seconds");
    hwnas_axes a = {.out = out, .is_log_x = true, .is_log_y = true};
    a.x_low = a.y_low = INFINITY;
    size_t i;
    json_t *layer;
    json_array_foreach(list, i, layer)
    {
        if (!computes(layer))
            continue;
        include(&a.x_low, &a.x_high, intensity_of(layer));
        include(&a.y_low, &a.y_high, rate_of(layer));
    }
    if (!(a.x_high > 0) || !(whole > 0))
        return false;
    if (json_is_object(roofline))
        include_roofs(&a, roofline);
    a.x_low /= 1.5;
    a.x_high *= 1.5;
    a.y_low /= 1.5;
    a.y_high *= 1.5;
    char *title = title_of(row);
    hwnas_axes_begin(&a, title, "arithmetic intensity, FLOP/byte", "GFLOP/s",
                     "area: share of the time");
    free(title);
    if (json_is_object(roofline))
        add_roofs(&a, roofline);
    add_key(&a);
    size_t n = 0;
    json_array_foreach(list, i, layer)
    {
        if (computes(layer))
            add_step(&a, layer, whole, n++ < NAMED);
    }
    hwnas_axes_end(&a);
    return true;
}
