#include "profile/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/fields.h"

#define FORMAT "hwnas.profile"

enum { VERSION = 1, MAX_BYTES = 64 << 20, MAX_BATCH = 1 << 20, MAX_COPIES = 1 << 16 };
/* far from what a machine does, and from what a double cannot hold */
static const double MOST = 1e12;

/* ---- Out ---- */

/* NULL: a name in it is not UTF-8. */
static json_t *row_json(const hwnas_profile_row *row)
{
    json_t *json = json_object();
    bool is_good = true;
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++)
        if (hwnas_field_applies(f, row))
            is_good &= !json_object_set_new(json, f->name, hwnas_field_json(f, row));
    if (row->layers)
        is_good &= !json_object_set_new(json, "layers", hwnas_layers_json(row->layers));
    if (is_good)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *device_json(const hwnas_profile_device *device)
{
    const hwnas_device_info *info = &device->info;
    return json_pack("{s:s, s:s, s:s, s:s}", "spelling", device->spelling, "name", info->name,
                     "library", info->library, "isa", info->isa);
}

json_t *hwnas_training_plan_json(const hwnas_training_plan *plan)
{
    return plan->samples > 0 ? json_pack("{s:f, s:f, s:s?}", "samples", plan->samples, "epochs",
                                         plan->epochs, "currency", plan->currency)
                             : json_null();
}

json_t *hwnas_profile_json(const hwnas_profile *profile)
{
    const hwnas_host *host = &profile->host;
    json_t *rows = json_array(), *devices = json_array();
    bool is_good = true;
    for (size_t i = 0; i < profile->n_devices; i++)
        json_array_append_new(devices, device_json(&profile->devices[i]));
    for (size_t i = 0; i < profile->n_rows; i++)
        is_good &= !json_array_append_new(rows, row_json(&profile->rows[i]));
    if (!is_good) {
        json_decref(rows);
        json_decref(devices);
        return NULL;
    }
    return json_pack(
        "{s:s, s:i, s:s?, s:s, s:s, s:s, s:{s:s, s:s, s:i, s:I, s:o}, s:O?, s:o, s:o, s:o}",
        "format", FORMAT, "version", VERSION, "name", profile->name, "source", profile->source,
        "date", profile->date, "hwnas", profile->version, "machine", "processor", host->processor,
        "system", host->system, "cores", host->cores, "memory_bytes",
        (json_int_t)host->memory_bytes, "conditions", hwnas_conditions_json(&host->conditions),
        "device", json_array_get(devices, 0), "devices", devices, "rows", rows, "plan",
        hwnas_training_plan_json(&profile->plan));
}

hwnas_status hwnas_profile_save(const hwnas_profile *profile, const char *path)
{
    json_t *json = hwnas_profile_json(profile);
    char *text = json_dumps(json, JSON_INDENT(1));
    json_decref(json);
    if (!text)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a name in the profile is not UTF-8");
    hwnas_status status = hwnas_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* ---- In ---- */

typedef struct reader {
    hwnas_profile *profile;
    hwnas_place place;
} reader;

/* The text of a member; `otherwise` when it is missing or null. */
static const char *read_text(const reader *r, const json_t *object, const char *key,
                             const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? hwnas_arena_string(r->profile->arena, text, strlen(text)) : otherwise;
}

static void copy_text(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    const size_t n = text ? strlen(text) : 0;
    memcpy(out, text ? text : "", n < size ? n : size - 1);
}

static void read_head(reader *r, const json_t *json)
{
    hwnas_profile *p = r->profile;
    const json_t *machine = json_object_get(json, "machine");
    p->name = read_text(r, json, "name", NULL);
    p->source = read_text(r, json, "source", "measured");
    p->date = read_text(r, json, "date", "date unknown");
    p->version = read_text(r, json, "hwnas", "unknown");
    p->host.processor = read_text(r, machine, "processor", "unknown processor");
    p->host.system = read_text(r, machine, "system", "unknown system");
    p->host.conditions = (hwnas_conditions){.turbo = -1};
    copy_text(p->host.conditions.governor, sizeof p->host.conditions.governor,
              json_object_get(machine, "conditions"), "governor");
    p->host.cores = (int)json_integer_value(json_object_get(machine, "cores"));
    p->host.memory_bytes = json_integer_value(json_object_get(machine, "memory_bytes"));
}

static hwnas_status read_device(reader *r, const json_t *json)
{
    hwnas_device_info info = {0};
    const char *spelling = read_text(r, json, "spelling", NULL);
    if (!spelling)
        return hwnas_fail(HWNAS_E_INPUT, &r->place, "a device has no 'spelling'");
    copy_text(info.name, sizeof info.name, json, "name");
    copy_text(info.library, sizeof info.library, json, "library");
    copy_text(info.isa, sizeof info.isa, json, "isa");
    hwnas_profile_add_device(r->profile, spelling, &info);
    return HWNAS_OK;
}

/* Figures that no measurement can have. */
static const char *find_nonsense(const hwnas_profile_row *row)
{
    const hwnas_measurement *m = &row->m;
    if (row->batch < 1 || row->threads < 1 || row->streams < 1)
        return "batch, threads and streams are at least 1";
    if (row->batch > MAX_BATCH || row->threads > MAX_COPIES || row->streams > MAX_COPIES)
        return "a batch is at most 1048576, and threads and streams are at most 65536";
    if (row->status != HWNAS_OK)
        return NULL;
    if (!(m->p50 > 0) || !(row->items_per_second > 0))
        return "a latency and a throughput are more than 0";
    if (m->p50 > MOST || row->items_per_second > MOST || row->items_per_second < 1 / MOST)
        return "a latency is at most 1e12 s, and a throughput 1e-12 to 1e12 items/s";
    if (m->tails[HWNAS_P90].value < m->p50 || m->tails[HWNAS_P99].value < m->p50 ||
        m->tails[HWNAS_P99].value < m->tails[HWNAS_P90].value)
        return "p50, p90 and p99 do not fall";
    return m->p50_low > m->p50 || m->p50_high < m->p50 ? "the median lies in its interval" : NULL;
}

static hwnas_status read_row(reader *r, const json_t *json, size_t number)
{
    hwnas_profile_row *row = hwnas_profile_add_row(r->profile);
    row->status = HWNAS_OK;
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++) {
        const json_t *value = json_object_get(json, f->name);
        if (hwnas_field_applies(f, row) && !hwnas_field_read(row, f, value, r->profile->arena))
            return hwnas_fail(HWNAS_E_INPUT, &r->place, "row %zu: '%s' is %s", number + 1, f->name,
                              value ? "of the wrong kind" : "missing");
    }
    if (!row->device)
        row->device = r->profile->n_devices ? r->profile->devices[0].spelling : "unknown";
    const char *nonsense = find_nonsense(row);
    if (nonsense)
        return hwnas_fail(HWNAS_E_INPUT, &r->place, "row %zu cannot be: %s", number + 1, nonsense);
    return HWNAS_OK;
}

static hwnas_status check_format(const reader *r, const json_t *json)
{
    const char *format = json_string_value(json_object_get(json, "format"));
    const json_t *version = json_object_get(json, "version");
    if (!format || strcmp(format, FORMAT))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &r->place, "this is not a recorded profile"),
                          "'hwnas profile MODEL --save FILE' writes one");
    if (!json_is_integer(version) || json_integer_value(version) != VERSION)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &r->place,
                                     "a profile of version %" JSON_INTEGER_FORMAT
                                     "; this hwnas reads version %d",
                                     json_integer_value(version), VERSION),
                          "record it again with this version");
    return HWNAS_OK;
}

static hwnas_status read_profile(reader *r, const json_t *json)
{
    const json_t *devices = json_object_get(json, "devices"), *rows = json_object_get(json, "rows");
    const json_t *device = json_object_get(json, "device"); /* null in a profile without devices */
    TRY(check_format(r, json));
    read_head(r, json);
    for (size_t i = 0; i < json_array_size(devices); i++)
        TRY(read_device(r, json_array_get(devices, i)));
    if (!json_array_size(devices) && device && !json_is_null(device))
        TRY(read_device(r, device));
    if (!json_array_size(rows))
        return hwnas_fail(HWNAS_E_INPUT, &r->place, "the profile has no rows");
    for (size_t i = 0; i < json_array_size(rows); i++)
        TRY(read_row(r, json_array_get(rows, i), i));
    return HWNAS_OK;
}

hwnas_status hwnas_record_read(json_t **out, const char *path)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = path};
    json_error_t error;
    char *text = NULL;
    size_t length;
    TRY(hwnas_file_read_text(&text, &length, path, MAX_BYTES));
    json_t *json = json_loadb(text, length, 0, &error);
    if (json) {
        *out = json;
    } else {
        place.line = error.line;
        place.column = error.column;
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is no JSON: %s", error.text),
                            "a recorded profile is one JSON object; was the file cut short?");
    }
    free(text);
    return status;
}

hwnas_status hwnas_profile_of_json(hwnas_profile **out, const json_t *json, const char *path)
{
    reader r = {.profile = hwnas_profile_new(), .place = {.file = path}};
    hwnas_status status = read_profile(&r, json);
    if (status == HWNAS_OK)
        *out = r.profile;
    else
        hwnas_profile_free(r.profile);
    return status;
}

hwnas_status hwnas_profile_load(hwnas_profile **out, const char *path)
{
    json_t *json;
    TRY(hwnas_record_read(&json, path));
    hwnas_status status = hwnas_profile_of_json(out, json, path);
    json_decref(json);
    return status;
}
