#include "profile/fields.h"

#include <math.h>
#include <string.h>

#include "base/csv.h"

/* clang-format off */
#define FIELD(json, csv, kind, when, member)                                                       \
    {json, csv, HWNAS_FIELD_##kind, HWNAS_FIELD_##when, offsetof(hwnas_profile_row, member), false}
#define NEEDED(json, csv, kind, when, member)                                                      \
    {json, csv, HWNAS_FIELD_##kind, HWNAS_FIELD_##when, offsetof(hwnas_profile_row, member), true}
/* clang-format on */

const hwnas_profile_field hwnas_profile_fields[] = {
    NEEDED("model", "model", TEXT, ALWAYS, model),
    FIELD("device", "device", TEXT, ALWAYS, device),
    NEEDED("batch", "batch", INT, ALWAYS, batch),
    NEEDED("threads", "threads", INT, ALWAYS, threads),
    FIELD("dtype", "dtype", PRECISION, ALWAYS, precision),
    FIELD("streams", "streams", INT, ALWAYS, streams),
    NEEDED("status", "status", STATUS, ALWAYS, status),
    FIELD("params", "params_count", INT64, ALWAYS, costs.params),
    FIELD("macs", "macs_count", INT64, ALWAYS, costs.macs),
    NEEDED("p50_seconds", "p50_s", NUMBER, MEASURED, m.p50),
    FIELD("p50_low_seconds", "p50_low_s", NUMBER, MEASURED, m.p50_low),
    FIELD("p50_high_seconds", "p50_high_s", NUMBER, MEASURED, m.p50_high),
    FIELD("p90_seconds", "p90_s", NUMBER, MEASURED, m.tails[HWNAS_P90].value),
    FIELD("p90_low_seconds", "p90_low_s", NUMBER, MEASURED, m.tails[HWNAS_P90].low),
    FIELD("p90_high_seconds", "p90_high_s", NUMBER, MEASURED, m.tails[HWNAS_P90].high),
    FIELD("p99_seconds", "p99_s", NUMBER, MEASURED, m.tails[HWNAS_P99].value),
    FIELD("p99_low_seconds", "p99_low_s", NUMBER, MEASURED, m.tails[HWNAS_P99].low),
    FIELD("p99_high_seconds", "p99_high_s", NUMBER, MEASURED, m.tails[HWNAS_P99].high),
    NEEDED("items_per_second", "items_per_s", NUMBER, MEASURED, items_per_second),
    FIELD("energy_joules", "energy_j", NUMBER, MEASURED, m.energy),
    FIELD("energy_low_joules", "energy_low_j", NUMBER, MEASURED, m.energy_low),
    FIELD("energy_high_joules", "energy_high_j", NUMBER, MEASURED, m.energy_high),
    FIELD("memory_bytes", "memory_bytes", SIZE, MEASURED, m.memory_bytes),
    FIELD("peak_memory_bytes", "peak_memory_bytes", SIZE, MEASURED, m.peak_bytes),
    FIELD("cache_lookups", "cache_lookups_count", SIZE, MEASURED, m.cache_lookups),
    FIELD("cache_hits", "cache_hits_count", SIZE, MEASURED, m.cache_hits),
    FIELD("compile_seconds", "compile_s", NUMBER, MEASURED, m.compile_seconds),
    FIELD("first_run_seconds", "first_run_s", NUMBER, MEASURED, m.first_run_seconds),
    FIELD("samples", "samples_count", SIZE, MEASURED, m.n_samples),
    FIELD("disturbed", "disturbed_count", SIZE, MEASURED, m.n_disturbed),
    FIELD("unstable", "unstable", FLAG, MEASURED, m.is_unstable),
    FIELD("doubt", "doubt", TEXT, MEASURED, doubt),
    FIELD("cause", "cause", TEXT, MEASURED, cause),
    FIELD("attempts", "attempts_count", INT, MEASURED, m.n_attempts),
    FIELD("mode", "mode", TEXT, MEASURED, mode),
    FIELD("mode_seconds", "mode_s", NUMBER, MEASURED, mode_seconds),
    FIELD("stop", "stop", TEXT, MEASURED, stop),
    FIELD("realtime", "realtime", FLAG, MEASURED, m.is_realtime),
    FIELD("cpu_time", "cpu_time", FLAG, MEASURED, m.is_cpu_time),
    FIELD("shared_share", "shared_share", NUMBER, MEASURED, m.shared_share),
    FIELD("clock_hertz", "clock_hz", NUMBER, MEASURED, m.hertz),
    FIELD("launch_seconds", "launch_s", NUMBER, MEASURED, m.launch_seconds),
    FIELD("recorded", "recorded", FLAG, MEASURED, m.is_recorded),
    FIELD("throttled_by", "throttled_by", TEXT, MEASURED, throttle),
    FIELD("p50_first_seconds", "p50_first_s", NUMBER, MEASURED, m.p50_first),
    FIELD("p50_last_seconds", "p50_last_s", NUMBER, MEASURED, m.p50_last),
    FIELD("command", "command", TEXT, ALWAYS, command),
    FIELD("arch", "arch", TEXT, ALWAYS, arch),
    FIELD("digest", "digest", DIGEST, ALWAYS, digest),
    FIELD("verified_against", "verified_against", TEXT, ALWAYS, verified_against),
    FIELD("verified_error", "verified_error", NUMBER, ALWAYS, verified_error),
    FIELD("verified_tolerance", "verified_tolerance", NUMBER, ALWAYS, verified_tolerance),
    FIELD("shape", "shape", TEXT, ALWAYS, shape),
    FIELD("slow_share", "slow_share", NUMBER, MEASURED, slow.share),
    FIELD("slow_step", "slow_step", TEXT, MEASURED, slow.name),
    FIELD("slow_operators", "slow_operators", TEXT, MEASURED, slow.ops),
    FIELD("slow_how", "slow_how", TEXT, MEASURED, slow.how),
    FIELD("slow_roof_share", "slow_roof_share", NUMBER, MEASURED, slow.roof),
    FIELD("training", "training", OPTIMIZER, ALWAYS, training),
    FIELD("train_steps", "train_steps_count", INT64, MEASURED, train.steps),
    FIELD("train_seconds", "train_s", NUMBER, MEASURED, train.seconds),
    FIELD("train_low_seconds", "train_low_s", NUMBER, MEASURED, train.low),
    FIELD("train_high_seconds", "train_high_s", NUMBER, MEASURED, train.high),
    FIELD("train_cost", "train_cost", NUMBER, MEASURED, train.money),
    FIELD("train_cheapest", "train_cheapest", FLAG, MEASURED, train.is_cheapest),
    FIELD("floats", "floats", TEXT, ALWAYS, floats),
    FIELD("layers_in_s8", "layers_in_s8_count", INT, ALWAYS, layers_in_s8),
    FIELD("layers_in_bf16", "layers_in_bf16_count", INT, ALWAYS, layers_in_bf16),
    FIELD("max_error", "max_error", NUMBER, ALWAYS, max_error),
    FIELD("mixed_error", "mixed_error", NUMBER, ALWAYS, mixed_error),
    FIELD("choice_samples", "choice_samples_count", INT64, ALWAYS, choice_samples),
    FIELD("held_out_samples", "held_out_samples_count", INT64, ALWAYS, held_out_samples),
    FIELD("accuracy_metric", "accuracy_metric", TEXT, ALWAYS, accuracy_metric),
    FIELD("max_loss", "max_loss", NUMBER, ALWAYS, max_loss),
    FIELD("accuracy", "accuracy", NUMBER, ALWAYS, accuracy.value),
    FIELD("accuracy_low", "accuracy_low", NUMBER, ALWAYS, accuracy.low),
    FIELD("accuracy_high", "accuracy_high", NUMBER, ALWAYS, accuracy.high),
    FIELD("f32_accuracy", "f32_accuracy", NUMBER, ALWAYS, f32_accuracy.value),
    FIELD("f32_accuracy_low", "f32_accuracy_low", NUMBER, ALWAYS, f32_accuracy.low),
    FIELD("f32_accuracy_high", "f32_accuracy_high", NUMBER, ALWAYS, f32_accuracy.high),
    FIELD("s8_accuracy", "s8_accuracy", NUMBER, ALWAYS, s8_accuracy.value),
    FIELD("s8_accuracy_low", "s8_accuracy_low", NUMBER, ALWAYS, s8_accuracy.low),
    FIELD("s8_accuracy_high", "s8_accuracy_high", NUMBER, ALWAYS, s8_accuracy.high),
    FIELD("message", "message", TEXT, FAILED, message),
    {0},
};

bool hwnas_field_applies(const hwnas_profile_field *field, const hwnas_profile_row *row)
{
    return field->when == HWNAS_FIELD_ALWAYS ||
           (field->when == HWNAS_FIELD_MEASURED) == (row->status == HWNAS_OK);
}

json_t *hwnas_field_json(const hwnas_profile_field *field, const hwnas_profile_row *row)
{
    const void *at = (const char *)row + field->offset;
    switch (field->kind) {
    case HWNAS_FIELD_TEXT: {
        const char *text = *(const char *const *)at;
        return text ? json_string(text) : json_null();
    }
    case HWNAS_FIELD_INT:
        return json_integer(*(const int *)at);
    case HWNAS_FIELD_INT64:
        return json_integer(*(const int64_t *)at);
    case HWNAS_FIELD_SIZE:
        return json_integer((json_int_t) * (const size_t *)at);
    case HWNAS_FIELD_NUMBER:
        return !isfinite(*(const double *)at) ? json_null() : json_real(*(const double *)at);
    case HWNAS_FIELD_FLAG:
        return json_boolean(*(const bool *)at);
    case HWNAS_FIELD_PRECISION:
        return json_string(hwnas_profile_row_dtype(row));
    case HWNAS_FIELD_OPTIMIZER:
        return json_string(hwnas_optimizer_name(*(const hwnas_optimizer *)at));
    case HWNAS_FIELD_STATUS:
        return json_string(hwnas_status_name(*(const hwnas_status *)at));
    case HWNAS_FIELD_DIGEST: {
        const char *hex = ((const hwnas_digest *)at)->hex;
        return *hex ? json_string(hex) : json_null();
    }
    }
    return NULL;
}

static bool read_integer(json_int_t *out, const json_t *value, json_int_t most)
{
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0 && *out <= most;
}

static bool read_digest(hwnas_digest *out, const char *hex)
{
    if (!hex || strlen(hex) >= sizeof out->hex)
        return false;
    memcpy(out->hex, hex, strlen(hex) + 1);
    return true;
}

bool hwnas_field_read(hwnas_profile_row *row, const hwnas_profile_field *field, const json_t *value,
                      hwnas_arena *arena)
{
    void *at = (char *)row + field->offset;
    const char *text = json_string_value(value);
    json_int_t integer;
    bool is_good = false;
    if (!value || json_is_null(value)) {
        if (field->kind == HWNAS_FIELD_NUMBER)
            *(double *)at = NAN;
        return !field->is_required;
    }
    switch (field->kind) {
    case HWNAS_FIELD_TEXT:
        if (text)
            *(const char **)at = hwnas_arena_string(arena, text, strlen(text));
        return text != NULL;
    case HWNAS_FIELD_INT:
        is_good = read_integer(&integer, value, INT32_MAX);
        *(int *)at = (int)integer;
        return is_good;
    case HWNAS_FIELD_INT64:
        is_good = read_integer(&integer, value, INT64_MAX);
        *(int64_t *)at = integer;
        return is_good;
    case HWNAS_FIELD_SIZE:
        is_good = read_integer(&integer, value, INT64_MAX);
        *(size_t *)at = (size_t)integer;
        return is_good;
    case HWNAS_FIELD_NUMBER:
        *(double *)at = json_number_value(value);
        return json_is_number(value);
    case HWNAS_FIELD_FLAG:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case HWNAS_FIELD_PRECISION:
        row->mixing = text ? hwnas_mixing_find(text) : HWNAS_UNMIXED;
        return row->mixing || (text && hwnas_precision_find(at, text) == HWNAS_OK);
    case HWNAS_FIELD_OPTIMIZER:
        return text && hwnas_optimizer_find(at, text) == HWNAS_OK;
    case HWNAS_FIELD_STATUS:
        *(hwnas_status *)at = text ? hwnas_status_from_name(text) : HWNAS_N_STATUS;
        return *(hwnas_status *)at != HWNAS_N_STATUS;
    case HWNAS_FIELD_DIGEST:
        return read_digest(at, text);
    }
    return false;
}

void hwnas_csv_value(hwnas_str *out, json_t *value)
{
    if (json_is_string(value))
        hwnas_csv_text(out, json_string_value(value));
    else if (json_is_integer(value))
        hwnas_str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        hwnas_str_addf(out, "%.9g", json_real_value(value));
    else if (json_is_boolean(value))
        hwnas_str_addf(out, "%d", json_is_true(value));
    json_decref(value);
}
