#include "report/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "profile/record.h"

#define PROFILE "hwnas.profile"
#define COMPARISON "hwnas.comparison"

/* ---- In ---- */

static hwnas_status fail_shape(const char *path, const char *where, size_t number,
                               const json_error_t *error)
{
    const hwnas_place place = {.file = path};
    return hwnas_fail(HWNAS_E_INPUT, &place, "%s %zu: %s", where, number + 1, error->text);
}

/* Of what a picture draws, on axes of logarithms. */
static bool is_possible(const json_t *object, const char *key, bool may_be_0)
{
    const double value = json_number_value(json_object_get(object, key));
    return (may_be_0 && value == 0) || (value > 1e-15 && value < 1e21);
}

static hwnas_status check_roofline(json_t *roofline, const char *path, size_t row)
{
    json_error_t error = {.text = "a device has no such limit"};
    size_t i;
    json_t *bandwidth, *bandwidths = json_object_get(roofline, "bandwidths");
    if (!roofline || json_is_null(roofline))
        return HWNAS_OK;
    if (!is_possible(roofline, "flops_per_second", false) || !json_array_size(bandwidths))
        return fail_shape(path, "roofline of row", row, &error);
    json_array_foreach(bandwidths, i, bandwidth)
    {
        if (!is_possible(bandwidth, "bytes_per_second", false))
            return fail_shape(path, "roofline of row", row, &error);
    }
    return HWNAS_OK;
}

static bool is_layer(json_t *layer, json_error_t *error)
{
    if (json_unpack_ex(layer, error, JSON_VALIDATE_ONLY, "{s:s, s:s, s:s, s:F, s:F, s:F}", "name",
                       "operators", "how", "p50_seconds", "macs", "bytes"))
        return false;
    *error = (json_error_t){.text = "its time, MACs or bytes cannot be"};
    return is_possible(layer, "p50_seconds", true) && is_possible(layer, "macs", true) &&
           is_possible(layer, "bytes", true);
}

static hwnas_status check_layers(json_t *layers, const char *path, size_t row)
{
    json_error_t error;
    json_t *layer, *list = json_object_get(layers, "list");
    size_t i;
    if (!layers)
        return HWNAS_OK;
    if (json_unpack_ex(layers, &error, JSON_VALIDATE_ONLY, "{s:F, s:[*]}", "whole_seconds", "list"))
        return fail_shape(path, "layers of row", row, &error);
    error = (json_error_t){.text = "the whole of them takes no time"};
    if (json_array_size(list) && !is_possible(layers, "whole_seconds", false))
        return fail_shape(path, "layers of row", row, &error);
    json_array_foreach(list, i, layer)
    {
        if (!is_layer(layer, &error))
            return fail_shape(path, "a layer of row", row, &error);
    }
    return check_roofline(json_object_get(layers, "roofline"), path, row);
}

/* The rows of the choices of a comparison. */
static hwnas_status gather_choices(json_t *rows, json_t *networks, const char *path)
{
    json_error_t error;
    json_t *network, *choices, *choice, *measured;
    size_t i, k;
    json_array_foreach(networks, i, network)
    {
        if (json_unpack_ex(network, &error, JSON_VALIDATE_ONLY, "{s:s, s:[*]}", "model", "choices"))
            return fail_shape(path, "network", i, &error);
        choices = json_object_get(network, "choices");
        json_array_foreach(choices, k, choice)
        {
            if (json_unpack_ex(choice, &error, 0, "{s:s, s:o}", "device", &(char *){NULL},
                               "measured", &measured))
                return fail_shape(path, "a choice of network", i, &error);
            json_array_append(rows, measured);
        }
    }
    return HWNAS_OK;
}

static hwnas_status fail_format(const char *path, const char *format)
{
    const hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 format ? "a page is not drawn of the format '%.60s'"
                                        : "this is JSON, and nothing that hwnas recorded%s",
                                 format ? format : ""),
                      "it draws a study, what `hwnas profile --save FILE` wrote, or what `hwnas "
                      "compare --json >FILE` printed");
}

/* Rows of a comparison are held to what those of a recorded profile are held to. */
static hwnas_status take_comparison(hwnas_recorded *r)
{
    const hwnas_place place = {.file = r->path};
    if (json_integer_value(json_object_get(r->json, "version")) != 1)
        return hwnas_fail(HWNAS_E_INPUT, &place, "a comparison of another version than 1");
    r->rows = json_array();
    TRY(gather_choices(r->rows, json_object_get(r->json, "networks"), r->path));
    json_t *json = json_pack("{s:s, s:i, s:O}", "format", PROFILE, "version", 1, "rows", r->rows);
    hwnas_status status = hwnas_profile_of_json(&r->profile, json, r->path);
    json_decref(json);
    return status;
}

static hwnas_status take_profile(hwnas_recorded *r)
{
    r->rows = json_incref(json_object_get(r->json, "rows"));
    return hwnas_profile_of_json(&r->profile, r->json, r->path);
}

static hwnas_status take_rows(hwnas_recorded *r)
{
    const char *format = json_string_value(json_object_get(r->json, "format"));
    size_t i;
    json_t *row;
    if (!format || (strcmp(format, PROFILE) != 0 && strcmp(format, COMPARISON) != 0))
        return fail_format(r->path, format);
    TRY(strcmp(format, PROFILE) ? take_comparison(r) : take_profile(r));
    json_array_foreach(r->rows, i, row)
    {
        json_t *layers = json_object_get(row, "layers");
        TRY(check_layers(layers, r->path, i));
        if (layers)
            r->profile->rows[i].layers = hwnas_layers_of_json(r->profile->arena, layers);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_recorded_load(hwnas_recorded *out, const char *path)
{
    hwnas_recorded r = {0};
    TRY(hwnas_record_read(&r.json, path));
    r.path = hwnas_strdup(path);
    hwnas_status status = take_rows(&r);
    if (status == HWNAS_OK)
        *out = r;
    else
        hwnas_recorded_done(&r);
    return status;
}

void hwnas_recorded_done(hwnas_recorded *r)
{
    hwnas_profile_free(r->profile);
    json_decref(r->rows);
    json_decref(r->json);
    free(r->path);
}

/* ---- Out ---- */

/* What `draw` made, or null. */
static json_t *picture_json(bool (*draw)(hwnas_str *, const json_t *), const json_t *drawn)
{
    hwnas_str svg = {0};
    json_t *json = draw(&svg, drawn) ? json_string(svg.s) : json_null();
    hwnas_str_done(&svg);
    return json;
}

json_t *hwnas_recorded_page(const hwnas_recorded *r)
{
    json_t *page = json_copy(r->json), *rooflines = json_array(), *row;
    size_t i;
    json_array_foreach(r->rows, i, row)
    {
        json_array_append_new(rooflines, picture_json(hwnas_roofline_picture, row));
    }
    json_object_set_new(
        page, "page",
        json_pack("{s:s, s:s, s:{s:o, s:o}}", "file", r->path, "hwnas", hwnas_version(), "pictures",
                  "sweep", picture_json(hwnas_sweep_picture, r->rows), "rooflines", rooflines));
    return page;
}

static hwnas_status fail_empty(const hwnas_recorded *r, const char *what, const char *hint)
{
    const hwnas_place place = {.file = r->path};
    return hwnas_hint(hwnas_fail(HWNAS_E_INFEASIBLE, &place, "%s", what), "%s", hint);
}

hwnas_status hwnas_recorded_picture(hwnas_str *out, const hwnas_recorded *r, const char *name)
{
    json_t *row;
    size_t i;
    if (!strcmp(name, "sweep"))
        return hwnas_sweep_picture(out, r->rows)
                   ? HWNAS_OK
                   : fail_empty(r, "no row was measured", "the page says why each failed");
    if (strcmp(name, "roofline") != 0)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "there is no picture '%.40s' of a recorded file", name),
            "'sweep' or 'roofline'; of a study 'front' or 'curve'");
    json_array_foreach(r->rows, i, row)
    {
        if (hwnas_roofline_picture(out, row))
            return HWNAS_OK;
    }
    return fail_empty(r, "it has no layers, which a roofline is drawn of",
                      "`hwnas profile MODEL --layers --save FILE` records them");
}
