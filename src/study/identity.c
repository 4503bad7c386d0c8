#include "study/identity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "predict/predict.h"
#include "space/table_columns.h"
#include "study/job_data.h"
#include "study/settings.h"

/* ---- Files by their contents ---- */

/* Without the option that says which trainings go on to their end: what one comes to there is the
 * same. */
static void drop_give_up(char *text)
{
    static const char option[] = "give-up=";
    for (char *at = strchr(text, '#'); at; at = strchr(at + 1, ',')) {
        if (!hwnas_starts_with(at + 1, option))
            continue;
        char *next = strchr(at + 1, ',');
        if (next)
            memmove(at + 1, next + 1, strlen(next));
        else
            *at = '\0';
        return;
    }
}

/* "table:FILE#COLUMN", "replay:FILE?NAMES#COLUMN" or the name of a predictor, with the file's hash
 * in the place of its path; what is not a file stays, and so does what has the hash already. */
static json_t *by_contents(const char *text)
{
    if (!text)
        return json_null();
    const char *colon = strchr(text, ':');
    const char *rest = colon ? colon + 1 : text;
    const size_t n = hwnas_table_name_length(rest);
    char *path = NULL, *hash = NULL;
    if (colon)
        path = hwnas_printf("%.*s", (int)n, rest);
    else if (hwnas_file_find(&path, text, "predictors", ".json") != HWNAS_OK)
        hwnas_error_clear();
    if (path && *path)
        hash = hwnas_file_hash(path);
    char *whole =
        hash ? hwnas_printf("%.*s%s%s", (int)(rest - text), text, hash, colon ? rest + n : "")
             : hwnas_strdup(text);
    drop_give_up(whole);
    json_t *json = json_string(whole);
    free(whole);
    free(hash);
    free(path);
    return json;
}

static char *contents_of(const char *path)
{
    char *hash = path ? hwnas_file_hash(path) : NULL;
    return hash || !path ? hash : hwnas_strdup(path);
}

static json_t *numbers(size_t n, const double *values)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

/* The samples of a job by the contents of their files, and how they are read. */
static json_t *data_by_contents(const hwnas_job *job)
{
    hwnas_job_data data;
    json_t *json = NULL;
    if (hwnas_job_data_read(&data, job) == HWNAS_OK) {
        const hwnas_dataset_options *o = &data.mix.options;
        char *samples = contents_of(data.file.path), *labels = contents_of(o->labels);
        json = json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:f, s:o, s:o, s:I, s:I}", "samples",
                         samples, "labels", labels, "x", data.file.array, "y", o->label_array,
                         "layout", o->layout, "scale", o->scale, "mean",
                         numbers(o->n_mean, o->mean), "std", numbers(o->n_std, o->std), "limit",
                         (json_int_t)o->limit, "calibrate", (json_int_t)data.mix.calibrate);
        free(samples);
        free(labels);
    } else {
        hwnas_error_clear(); /* whoever runs the job says so */
    }
    hwnas_job_data_done(&data);
    return json ? json : json_string(job->data);
}

static json_t *by_path(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* ---- Writing ---- */

typedef json_t *(*file_writer)(const char *text);

static json_t *value_json(const hwnas_setting_kind *setting, int value)
{
    return setting->word ? json_string(setting->word(value)) : json_integer(value);
}

/* Settings as they are where nothing is said of them are left out where they are words: studies
 * know as much without. */
static void add_settings(json_t *to, const hwnas_job *job)
{
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        const hwnas_setting_values *given = hwnas_setting_of_job(s, job);
        json_t *list = json_array();
        for (int k = 0; k < given->n; k++)
            json_array_append_new(list, value_json(s, given->values[k]));
        if (given->n > 1)
            json_object_set(to, s->name, list);
        else if (!s->word || given->values[0] != 1)
            json_object_set(to, s->name, json_array_get(list, 0));
        json_decref(list);
    }
}

static json_t *device_json(const hwnas_job_device *device, file_writer write)
{
    json_t *json = json_pack("{s:s, s:o}", "name", device->name, "device", write(device->spelling));
    if (*device->phase)
        json_object_set_new(json, "phase", json_string(device->phase));
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        const int own = hwnas_setting_of_device(s, device);
        if (own)
            json_object_set_new(json, s->name, value_json(s, own));
    }
    if (!isnan(device->price))
        json_object_set_new(json, "price", json_real(device->price));
    return json;
}

static bool may_be_s8(const hwnas_job *job)
{
    bool is_s8 = false;
    for (int i = 0; i < job->dtype.n; i++)
        is_s8 |= job->dtype.values[i] == 1 + HWNAS_S8;
    for (int i = 0; i < job->goals.devices.n; i++)
        is_s8 |= job->goals.devices.rows[i].dtype == 1 + HWNAS_S8;
    return is_s8 || hwnas_settings_may_be_mixed(job);
}

static json_t *describe(const hwnas_job *job, file_writer write)
{
    json_t *objectives = json_array(), *constraints = json_array(), *devices = json_array();
    for (int i = 0; i < job->goals.n_objectives; i++)
        json_array_append_new(objectives, json_string(job->goals.objectives[i].name));
    for (int i = 0; i < job->goals.n_limits; i++)
        json_array_append_new(constraints, json_string(job->goals.limits[i].text));
    for (int i = 0; i < job->goals.devices.n; i++)
        json_array_append_new(devices, device_json(&job->goals.devices.rows[i], write));
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:s, s:i, s:I, s:o, s:o, s:s}", "accuracy", write(job->predictor),
        "device",
        job->goals.devices.n == 1 ? write(job->goals.devices.rows[0].spelling) : json_null(),
        "devices", devices, "strategy", job->strategy, "population", job->population, "seed",
        (json_int_t)job->seed, "objectives", objectives, "constraints", constraints, "fronts",
        job->goals.is_front_per_device ? "each" : "together");
    add_settings(json, job);
    if (job->is_domain_free)
        json_object_set_new(json, "domain", json_string("free"));
    if (job->predictor && !job->has_no_int8_loss && may_be_s8(job))
        json_object_set_new(json, "byte-loss", json_string("prior"));
    if (hwnas_settings_may_be_mixed(job) && isfinite(hwnas_settings_max_error(job)))
        json_object_set_new(json, "max-error",
                            json_real(round(1e8 * hwnas_settings_max_error(job)) / 1e6));
    if (!isnan(job->max_loss))
        json_object_set_new(json, "max-loss", json_real(job->max_loss));
    return json;
}

json_t *hwnas_job_identity(const hwnas_job *job)
{
    json_t *identity = describe(job, by_path);
    if (job->data)
        json_object_set_new(identity, "data", json_string(job->data));
    json_object_set_new(identity, "space", json_string(job->space));
    return identity;
}

json_t *hwnas_job_fingerprint(const hwnas_job *job)
{
    json_t *fingerprint = describe(job, by_contents);
    if (job->data)
        json_object_set_new(fingerprint, "data", data_by_contents(job));
    return fingerprint;
}

static bool renew(json_t *parent, const char *key)
{
    const char *text = json_string_value(json_object_get(parent, key));
    if (!text || !strchr(text, '?'))
        return false;
    json_t *renewed = by_contents(text);
    const bool is_new = strcmp(json_string_value(renewed), text) != 0;
    json_object_set_new(parent, key, renewed);
    return is_new;
}

bool hwnas_fingerprint_renew(json_t *fingerprint)
{
    bool is_new = renew(fingerprint, "accuracy");
    is_new |= renew(fingerprint, "device");
    json_t *devices = json_object_get(fingerprint, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++)
        is_new |= renew(json_array_get(devices, i), "device");
    return is_new;
}

/* ---- Reading ---- */

/* 0: there is no such value. */
static int read_value(const hwnas_setting_kind *setting, const json_t *json)
{
    const json_int_t number = json_integer_value(json);
    if (setting->word)
        return json_is_string(json) ? hwnas_setting_read(setting, json_string_value(json)) : 0;
    return number >= 1 && number <= setting->most ? (int)number : 0;
}

/* What is not said is 1, as in a job. */
static void read_setting(hwnas_job *out, const hwnas_setting_kind *setting, const json_t *json)
{
    hwnas_setting_values *to = (hwnas_setting_values *)hwnas_setting_of_job(setting, out);
    size_t n = json_is_array(json) ? json_array_size(json) : 1;
    *to = (hwnas_setting_values){.n = n && n <= HWNAS_MAX_SETTING_VALUES ? (int)n : 1};
    for (int i = 0; i < to->n; i++) {
        const json_t *one = json_is_array(json) ? json_array_get(json, (size_t)i) : json;
        const int value = read_value(setting, one);
        to->values[i] = value ? value : 1;
    }
}

static bool read_devices(hwnas_job_devices *out, const json_t *list)
{
    if (json_array_size(list) > HWNAS_MAX_DEVICES)
        return false;
    out->n = (int)json_array_size(list);
    for (int i = 0; i < out->n; i++) {
        const json_t *json = json_array_get(list, (size_t)i),
                     *price = json_object_get(json, "price");
        hwnas_job_device *d = &out->rows[i];
        *d = (hwnas_job_device){
            .name = json_string_value(json_object_get(json, "name")),
            .spelling = json_string_value(json_object_get(json, "device")),
            .price = price ? json_number_value(price) : NAN,
        };
        const char *phase = json_string_value(json_object_get(json, "phase"));
        snprintf(d->phase, sizeof d->phase, "%s", phase ? phase : "");
        for (int k = 0; k < HWNAS_N_SETTINGS; k++) {
            const hwnas_setting_kind *s = &hwnas_setting_table[k];
            *(int *)((char *)d + s->own) = read_value(s, json_object_get(json, s->name));
        }
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
    const char *predictor = json_string_value(json_object_get(identity, "accuracy"));
    bool is_clear = json_is_string(json_object_get(identity, "space"));
    is_clear &= read_devices(&out->goals.devices, json_object_get(identity, "devices"));
    const json_t *max_error = json_object_get(identity, "max-error");
    const json_t *max_loss = json_object_get(identity, "max-loss");
    out->goals.is_front_per_device = fronts && !strcmp(fronts, "each");
    out->max_error = max_error ? json_number_value(max_error) : NAN;
    out->max_loss = max_loss ? json_number_value(max_loss) : NAN;
    out->data = json_string_value(json_object_get(identity, "data"));
    for (int i = 0; i < HWNAS_N_SETTINGS; i++)
        read_setting(out, &hwnas_setting_table[i],
                     json_object_get(identity, hwnas_setting_table[i].name));
    for (size_t i = 0; is_clear && i < json_array_size(objectives); i++) {
        const char *name = json_string_value(json_array_get(objectives, i));
        TRY(hwnas_goals_parse(out->goals.objectives, &out->goals.n_objectives, HWNAS_MAX_OBJECTIVES,
                              name ? name : "", &nowhere, false, &out->goals.devices));
    }
    for (size_t i = 0; is_clear && i < json_array_size(constraints); i++) {
        const char *text = json_string_value(json_array_get(constraints, i));
        TRY(hwnas_limits_parse(out->goals.limits, &out->goals.n_limits, HWNAS_MAX_LIMITS,
                               text ? text : "", &nowhere, false, &out->goals.devices));
    }
    if (predictor && hwnas_predictor_name_ranks(predictor)) {
        hwnas_goals_of_scores(out->goals.objectives, out->goals.n_objectives);
        hwnas_limits_of_scores(out->goals.limits, out->goals.n_limits);
    }
    if (!is_clear || !out->goals.n_objectives)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the study does not say what it searched for");
    return HWNAS_OK;
}
