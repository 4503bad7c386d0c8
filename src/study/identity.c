#include "study/identity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/file.h"
#include "base/str.h"

/* ---- Files by their contents ---- */

/* XXH3, 128 bits, of a file; NULL: it cannot be read, which whoever needs it will say. */
static char *hash_file(const char *path)
{
    char *text = NULL;
    size_t length;
    if (hwnas_file_read(&text, &length, path, (size_t)1 << 30) != HWNAS_OK) {
        hwnas_error_clear();
        return NULL;
    }
    XXH128_hash_t hash = XXH3_128bits(text, length);
    free(text);
    return hwnas_printf("%016llx%016llx", (unsigned long long)hash.high64,
                        (unsigned long long)hash.low64);
}

/* "table:FILE#COLUMN", "replay:FILE#COLUMN" or the name of a predictor, with the file's hash in the
 * place of its path; what is no file stays. */
static json_t *by_contents(const char *text)
{
    if (!text)
        return json_null();
    const char *colon = strchr(text, ':');
    const char *rest = colon ? colon + 1 : text, *column = strrchr(rest, '#');
    char *path = NULL, *hash = NULL;
    if (colon)
        path = hwnas_printf("%.*s", (int)(column ? column - rest : (long)strlen(rest)), rest);
    else if (hwnas_file_find(&path, text, "predictors", ".json") != HWNAS_OK)
        hwnas_error_clear();
    if (path && *path)
        hash = hash_file(path);
    char *whole = hash ? hwnas_printf("%.*s%s%s", (int)(rest - text), text, hash,
                                      column ? column : "")
                       : hwnas_strdup(text);
    json_t *json = json_string(whole);
    free(whole);
    free(hash);
    free(path);
    return json;
}

static json_t *by_path(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* ---- Writing ---- */

typedef json_t *(*file_writer)(const char *text);

static json_t *setting_json(const hwnas_setting_values *setting)
{
    if (setting->n == 1)
        return json_integer(setting->values[0]);
    json_t *list = json_array();
    for (int i = 0; i < setting->n; i++)
        json_array_append_new(list, json_integer(setting->values[i]));
    return list;
}

static json_t *device_json(const hwnas_job_device *device, file_writer write)
{
    json_t *json = json_pack("{s:s, s:o}", "name", device->name, "device", write(device->spelling));
    if (device->threads)
        json_object_set_new(json, "threads", json_integer(device->threads));
    if (device->batch)
        json_object_set_new(json, "batch", json_integer(device->batch));
    if (!isnan(device->price))
        json_object_set_new(json, "price", json_real(device->price));
    return json;
}

static json_t *describe(const hwnas_job *job, file_writer write)
{
    json_t *objectives = json_array(), *constraints = json_array(), *devices = json_array();
    for (int i = 0; i < job->n_objectives; i++)
        json_array_append_new(objectives, json_string(job->objectives[i].name));
    for (int i = 0; i < job->n_limits; i++)
        json_array_append_new(constraints, json_string(job->limits[i].text));
    for (int i = 0; i < job->devices.n; i++)
        json_array_append_new(devices, device_json(&job->devices.rows[i], write));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:i, s:I, s:o, s:o, s:s}", "accuracy",
                     write(job->predictor), "device",
                     job->devices.n == 1 ? write(job->devices.rows[0].spelling) : json_null(),
                     "devices", devices, "threads", setting_json(&job->threads), "batch",
                     setting_json(&job->batch), "strategy", job->strategy, "population",
                     job->population, "seed", (json_int_t)job->seed, "objectives", objectives,
                     "constraints", constraints, "fronts",
                     job->is_front_per_device ? "each" : "together");
}

json_t *hwnas_job_identity(const hwnas_job *job)
{
    json_t *identity = describe(job, by_path);
    json_object_set_new(identity, "space", json_string(job->space));
    return identity;
}

json_t *hwnas_job_fingerprint(const hwnas_job *job)
{
    return describe(job, by_contents);
}

/* ---- Reading ---- */

static void read_setting(hwnas_setting_values *out, const json_t *json)
{
    size_t n = json_is_array(json) ? json_array_size(json) : 1;
    *out = (hwnas_setting_values){.n = n <= HWNAS_MAX_SETTING_VALUES ? (int)n : 1, .values = {1}};
    for (int i = 0; i < out->n; i++)
        out->values[i] =
            (int)json_integer_value(json_is_array(json) ? json_array_get(json, (size_t)i) : json);
}

static bool read_devices(hwnas_job_devices *out, const json_t *list)
{
    if (json_array_size(list) > HWNAS_MAX_DEVICES)
        return false;
    out->n = (int)json_array_size(list);
    for (int i = 0; i < out->n; i++) {
        const json_t *json = json_array_get(list, (size_t)i), *price = json_object_get(json, "price");
        hwnas_job_device *d = &out->rows[i];
        *d = (hwnas_job_device){
            .name = json_string_value(json_object_get(json, "name")),
            .spelling = json_string_value(json_object_get(json, "device")),
            .threads = (int)json_integer_value(json_object_get(json, "threads")),
            .batch = (int)json_integer_value(json_object_get(json, "batch")),
            .price = price ? json_number_value(price) : NAN,
        };
        if (!d->name || !d->spelling)
            return false;
    }
    return true;
}

hwnas_status hwnas_job_goals(hwnas_job *out, const json_t *identity)
{
    const hwnas_place nowhere = {0};
    const json_t *objectives = json_object_get(identity, "objectives");
    const json_t *constraints = json_object_get(identity, "constraints");
    const char *fronts = json_string_value(json_object_get(identity, "fronts"));
    bool is_clear = read_devices(&out->devices, json_object_get(identity, "devices"));
    out->is_front_per_device = fronts && !strcmp(fronts, "each");
    read_setting(&out->threads, json_object_get(identity, "threads"));
    read_setting(&out->batch, json_object_get(identity, "batch"));
    for (size_t i = 0; is_clear && i < json_array_size(objectives); i++) {
        const char *name = json_string_value(json_array_get(objectives, i));
        TRY(hwnas_goals_parse(out->objectives, &out->n_objectives, HWNAS_MAX_OBJECTIVES,
                              name ? name : "", &nowhere, false, &out->devices));
    }
    for (size_t i = 0; is_clear && i < json_array_size(constraints); i++) {
        const char *text = json_string_value(json_array_get(constraints, i));
        TRY(hwnas_limits_parse(out->limits, &out->n_limits, HWNAS_MAX_LIMITS, text ? text : "",
                               &nowhere, false, &out->devices));
    }
    if (!is_clear || !out->n_objectives)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the study does not say what it searched for");
    return HWNAS_OK;
}
