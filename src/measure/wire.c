/* wire.c: frames, and structs as JSON through tables of their fields. */
#include "measure/wire.h"
#include "measure/verify.h"

#include <endian.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Longest payloads: protobuf's own limit for a graph, and for words the names of 100,000
 * nodes. */
static const uint64_t MAX_GRAPH = INT32_MAX, MAX_WORDS = 8 << 20;
static const char MAGIC[4] = {'h', 'w', 'n', '1'};

void hwnas_frame_encode(unsigned char head[HWNAS_FRAME_HEAD], hwnas_wire_frame frame)
{
    uint32_t type = htole32((uint32_t)frame.type);
    uint64_t length = htole64(frame.length);
    memcpy(head, MAGIC, 4);
    memcpy(head + 4, &type, 4);
    memcpy(head + 8, &length, 8);
}

bool hwnas_frame_decode(hwnas_wire_frame *out, const unsigned char head[HWNAS_FRAME_HEAD])
{
    uint32_t type;
    uint64_t length;
    memcpy(&type, head + 4, 4);
    memcpy(&length, head + 8, 8);
    type = le32toh(type);
    length = le64toh(length);
    if (memcmp(head, MAGIC, 4) || type < HWNAS_FRAME_OPEN || type > HWNAS_FRAME_GO ||
        length > (type == HWNAS_FRAME_GRAPH ? MAX_GRAPH : MAX_WORDS))
        return false;
    *out = (hwnas_wire_frame){.type = (hwnas_frame_type)type, .length = length};
    return true;
}

typedef enum field_kind {
    FIELD_DOUBLE,
    FIELD_DOUBLES, /* an array of double, or of structs of nothing else */
    FIELD_SIZE,
    FIELD_INT64,
    FIELD_INT, /* and enumerations */
    FIELD_BOOL,
    FIELD_TEXT, /* an array of char */
} field_kind;

typedef struct field {
    const char *name; /* NULL ends the table */
    field_kind kind;
    size_t offset, size;
} field;

#define FIELD(type, name, kind)                                                                    \
    {                                                                                              \
#name, kind, offsetof(type, name), sizeof(((type *)NULL)->name)                            \
    }
#define OPTION(name, kind) FIELD(hwnas_measure_options, name, kind)
#define RESULT(name, kind) FIELD(hwnas_measurement, name, kind)
#define INFO(name, kind) FIELD(hwnas_device_info, name, kind)
#define VERIFIED(name, kind) FIELD(hwnas_verified, name, kind)

_Static_assert(sizeof(hwnas_precision) == sizeof(int), "hwnas_precision travels as an int");
_Static_assert(sizeof(unsigned) == sizeof(int), "sets travel as an int");
_Static_assert(sizeof(hwnas_mode) == sizeof(int), "hwnas_mode travels as an int");
_Static_assert(sizeof(hwnas_priority) == sizeof(int), "hwnas_priority travels as an int");
_Static_assert(sizeof(hwnas_stop) == sizeof(int), "hwnas_stop travels as an int");

static const field option_fields[] = {
    {"precision", FIELD_INT, offsetof(hwnas_measure_options, exec.precision),
     sizeof(hwnas_precision)},
    OPTION(mode, FIELD_INT),
    OPTION(priority, FIELD_INT),
    OPTION(idle_seconds, FIELD_DOUBLE),
    OPTION(interval, FIELD_DOUBLE),
    OPTION(max_seconds, FIELD_DOUBLE),
    OPTION(steps_seconds, FIELD_DOUBLE),
    OPTION(steps_runs, FIELD_INT),
    OPTION(energy, FIELD_BOOL),
    OPTION(min_samples, FIELD_INT),
    OPTION(fewest, FIELD_INT),
    OPTION(tails, FIELD_DOUBLES),
    OPTION(give_up, FIELD_DOUBLE),
    OPTION(max_attempts, FIELD_INT),
    OPTION(timeout, FIELD_DOUBLE),
    OPTION(memory_limit, FIELD_SIZE),
    {0},
};

static const field measurement_fields[] = {
    RESULT(n_samples, FIELD_SIZE),
    RESULT(n_disturbed, FIELD_SIZE),
    RESULT(n_warm_up, FIELD_SIZE),
    RESULT(runs_per_sample, FIELD_INT),
    RESULT(p50, FIELD_DOUBLE),
    RESULT(p50_low, FIELD_DOUBLE),
    RESULT(p50_high, FIELD_DOUBLE),
    RESULT(min, FIELD_DOUBLE),
    RESULT(tails, FIELD_DOUBLES),
    RESULT(energy, FIELD_DOUBLE),
    RESULT(energy_low, FIELD_DOUBLE),
    RESULT(energy_high, FIELD_DOUBLE),
    RESULT(compile_seconds, FIELD_DOUBLE),
    RESULT(first_run_seconds, FIELD_DOUBLE),
    RESULT(run_seconds, FIELD_DOUBLE),
    RESULT(total_seconds, FIELD_DOUBLE),
    RESULT(memory_bytes, FIELD_SIZE),
    RESULT(stop, FIELD_INT),
    RESULT(is_unstable, FIELD_BOOL),
    RESULT(is_mixed, FIELD_BOOL),
    RESULT(disturbed_share, FIELD_DOUBLE),
    RESULT(drift, FIELD_DOUBLE),
    RESULT(trend, FIELD_DOUBLE),
    RESULT(shared_share, FIELD_DOUBLE),
    RESULT(hertz, FIELD_DOUBLE),
    RESULT(launch_seconds, FIELD_DOUBLE),
    RESULT(is_recorded, FIELD_BOOL),
    RESULT(throttles, FIELD_INT),
    RESULT(p50_first, FIELD_DOUBLE),
    RESULT(p50_last, FIELD_DOUBLE),
    RESULT(n_attempts, FIELD_INT),
    RESULT(mode, FIELD_INT),
    RESULT(is_realtime, FIELD_BOOL),
    RESULT(is_cpu_time, FIELD_BOOL),
    RESULT(quota_stops, FIELD_INT),
    RESULT(heat_stops, FIELD_INT),
    RESULT(is_governed, FIELD_BOOL),
    {0},
};

static const field info_fields[] = {
    INFO(name, FIELD_TEXT),       INFO(library, FIELD_TEXT),  INFO(isa, FIELD_TEXT),
    INFO(threads, FIELD_INT),     INFO(native, FIELD_INT),    INFO(emulated, FIELD_INT),
    INFO(has_energy, FIELD_BOOL), INFO(computes, FIELD_BOOL), {0},
};

static const field verified_fields[] = {
    VERIFIED(against, FIELD_TEXT),     VERIFIED(error, FIELD_DOUBLE),
    VERIFIED(tolerance, FIELD_DOUBLE), VERIFIED(output, FIELD_TEXT),
    VERIFIED(at, FIELD_INT64),         VERIFIED(got, FIELD_DOUBLE),
    VERIFIED(wanted, FIELD_DOUBLE),    {0},
};

static json_t *encode_double(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *encode(const void *from, const field *fields)
{
    json_t *object = json_object();
    for (const field *f = fields; f->name; f++) {
        const char *at = (const char *)from + f->offset;
        json_t *value = NULL;
        switch (f->kind) {
        case FIELD_DOUBLE:
            value = encode_double(*(const double *)at);
            break;
        case FIELD_DOUBLES:
            value = json_array();
            for (size_t i = 0; i < f->size / sizeof(double); i++)
                json_array_append_new(value, encode_double(((const double *)at)[i]));
            break;
        case FIELD_SIZE:
            value = json_integer((json_int_t) * (const size_t *)at);
            break;
        case FIELD_INT64:
            value = json_integer(*(const int64_t *)at);
            break;
        case FIELD_INT:
            value = json_integer(*(const int *)at);
            break;
        case FIELD_BOOL:
            value = json_boolean(*(const bool *)at);
            break;
        case FIELD_TEXT:
            value = json_string(at);
            break;
        }
        json_object_set_new(object, f->name, value ? value : json_null());
    }
    return object;
}

bool hwnas_wire_read_int(int *out, const json_t *value)
{
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < INT_MIN || number > INT_MAX)
        return false;
    *out = (int)number;
    return true;
}

static bool decode_double(double *out, const json_t *value)
{
    *out = json_is_null(value) ? NAN : json_number_value(value);
    return json_is_null(value) || json_is_number(value);
}

static bool decode_field(char *at, const field *f, const json_t *value)
{
    switch (f->kind) {
    case FIELD_DOUBLE:
        return decode_double((double *)at, value);
    case FIELD_DOUBLES:
        for (size_t i = 0; i < f->size / sizeof(double); i++)
            if (!decode_double((double *)at + i, json_array_get(value, i)))
                return false;
        return json_array_size(value) == f->size / sizeof(double);
    case FIELD_SIZE:
        *(size_t *)at = (size_t)json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case FIELD_INT64:
        *(int64_t *)at = json_integer_value(value);
        return json_is_integer(value);
    case FIELD_INT:
        return hwnas_wire_read_int((int *)at, value);
    case FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_TEXT:
        if (!json_is_string(value) || json_string_length(value) >= f->size)
            return false;
        memcpy(at, json_string_value(value), json_string_length(value) + 1);
        return true;
    }
    return false;
}

static bool decode(void *out, const field *fields, const json_t *object)
{
    for (const field *f = fields; f->name; f++)
        if (!decode_field((char *)out + f->offset, f, json_object_get(object, f->name)))
            return false;
    return true;
}

json_t *hwnas_wire_options(const hwnas_measure_options *options)
{
    return encode(options, option_fields);
}

json_t *hwnas_wire_measurement(const hwnas_measurement *measurement)
{
    return encode(measurement, measurement_fields);
}

json_t *hwnas_wire_info(const hwnas_device_info *info)
{
    return encode(info, info_fields);
}

bool hwnas_wire_read_options(hwnas_measure_options *out, const json_t *object)
{
    hwnas_measure_options options = {0};
    if (!decode(&options, option_fields, object) || options.exec.precision < 0 ||
        options.exec.precision >= HWNAS_N_PRECISIONS || options.mode < 0 ||
        options.mode >= HWNAS_N_MODES || options.priority < 0 ||
        options.priority >= HWNAS_N_PRIORITIES)
        return false;
    *out = options;
    return true;
}

bool hwnas_wire_read_measurement(hwnas_measurement *out, const json_t *object)
{
    hwnas_measurement measurement = {0};
    if (!decode(&measurement, measurement_fields, object) || measurement.mode < 0 ||
        measurement.mode >= HWNAS_N_MODES || measurement.stop < 0 ||
        measurement.stop > HWNAS_STOP_ABOVE)
        return false;
    *out = measurement;
    return true;
}

bool hwnas_wire_read_info(hwnas_device_info *out, const json_t *object)
{
    hwnas_device_info info = {0};
    if (!decode(&info, info_fields, object))
        return false;
    *out = info;
    return true;
}

json_t *hwnas_wire_verified(const hwnas_verified *verified)
{
    return encode(verified, verified_fields);
}

bool hwnas_wire_read_verified(hwnas_verified *out, const json_t *object)
{
    hwnas_verified verified = {0};
    if (!decode(&verified, verified_fields, object) || isnan(verified.tolerance))
        return false;
    if (isnan(verified.error)) /* JSON has no infinity */
        verified.error = INFINITY;
    *out = verified;
    return true;
}
