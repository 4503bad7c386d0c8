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
    if (memcmp(head, MAGIC, 4) || type < HWNAS_FRAME_OPEN || type > HWNAS_FRAME_STOP ||
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
    FIELD_INT,
    FIELD_NAME,  /* an enumeration, as the name of its value */
    FIELD_NAMES, /* a set of bits, as an array of names */
    FIELD_BOOL,
    FIELD_TEXT, /* an array of char */
} field_kind;

typedef struct field {
    const char *name; /* NULL ends the table */
    field_kind kind;
    size_t offset, size;
    const char *(*name_of)(int value); /* of FIELD_NAME and FIELD_NAMES, which know `n` values */
    int n;
} field;

#define FIELD(type, member, kind_of)                                                               \
    {                                                                                              \
        .name = #member, .kind = kind_of, .offset = offsetof(type, member),                        \
        .size = sizeof(((type *)NULL)->member)                                                     \
    }
#define NAMED(type, member, key, kind_of, names, count)                                            \
    {                                                                                              \
        .name = key, .kind = kind_of, .offset = offsetof(type, member),                            \
        .size = sizeof(((type *)NULL)->member), .name_of = names, .n = count                       \
    }
#define OPTION(name, kind) FIELD(hwnas_measure_options, name, kind)
#define RESULT(name, kind) FIELD(hwnas_measurement, name, kind)
#define HELLO(name, kind) FIELD(hwnas_hello, name, kind)
#define INFO(member, kind_of)                                                                      \
    {                                                                                              \
        .name = #member, .kind = kind_of, .offset = offsetof(hwnas_hello, info.member),            \
        .size = sizeof(((hwnas_hello *)NULL)->info.member)                                         \
    }
#define VERIFIED(name, kind) FIELD(hwnas_verified, name, kind)

_Static_assert(sizeof(hwnas_precision) == sizeof(int), "hwnas_precision travels as an int");
_Static_assert(sizeof(hwnas_optimizer) == sizeof(int), "hwnas_optimizer travels as an int");
_Static_assert(sizeof(unsigned) == sizeof(int), "sets travel as an int");
_Static_assert(sizeof(hwnas_mode) == sizeof(int), "hwnas_mode travels as an int");
_Static_assert(sizeof(hwnas_priority) == sizeof(int), "hwnas_priority travels as an int");
_Static_assert(sizeof(hwnas_stop) == sizeof(int), "hwnas_stop travels as an int");

static const char *name_of_precision(int value)
{
    return hwnas_precision_name((hwnas_precision)value);
}

static const char *name_of_optimizer(int value)
{
    return hwnas_optimizer_name((hwnas_optimizer)value);
}

static const char *name_of_mode(int value)
{
    return hwnas_mode_name((hwnas_mode)value);
}

static const char *name_of_priority(int value)
{
    return hwnas_priority_name((hwnas_priority)value);
}

static const char *name_of_stop(int value)
{
    return hwnas_stop_name((hwnas_stop)value);
}

static const char *name_of_ability(int value)
{
    static const char *const names[HWNAS_N_ABILITIES] = {
        [HWNAS_CAN_SEEDS] = "seeds",   [HWNAS_CAN_STEPS] = "steps",
        [HWNAS_CAN_RACE] = "race",     [HWNAS_CAN_COPIES] = "copies",
        [HWNAS_CAN_VERIFY] = "verify", [HWNAS_CAN_AHEAD] = "ahead",
        [HWNAS_CAN_TRAIN] = "train",   [HWNAS_CAN_REALTIME] = "realtime",
    };
    return names[value];
}

static const field option_fields[] = {
    NAMED(hwnas_measure_options, exec.precision, "precision", FIELD_NAME, name_of_precision,
          HWNAS_N_PRECISIONS),
    NAMED(hwnas_measure_options, exec.training, "training", FIELD_NAME, name_of_optimizer,
          HWNAS_N_OPTIMIZERS),
    NAMED(hwnas_measure_options, mode, "mode", FIELD_NAME, name_of_mode, HWNAS_N_MODES),
    NAMED(hwnas_measure_options, priority, "priority", FIELD_NAME, name_of_priority,
          HWNAS_N_PRIORITIES),
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
    RESULT(cache_lookups, FIELD_SIZE),
    RESULT(cache_hits, FIELD_SIZE),
    RESULT(peak_bytes, FIELD_SIZE),
    NAMED(hwnas_measurement, stop, "stop", FIELD_NAME, name_of_stop, HWNAS_STOP_ABOVE + 1),
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
    NAMED(hwnas_measurement, mode, "mode", FIELD_NAME, name_of_mode, HWNAS_N_MODES),
    RESULT(is_realtime, FIELD_BOOL),
    RESULT(is_cpu_time, FIELD_BOOL),
    RESULT(quota_stops, FIELD_INT),
    RESULT(heat_stops, FIELD_INT),
    RESULT(is_governed, FIELD_BOOL),
    {0},
};

static const field hello_fields[] = {
    HELLO(protocol, FIELD_INT),
    HELLO(version, FIELD_TEXT),
    HELLO(machine, FIELD_TEXT),
    HELLO(priority, FIELD_TEXT),
    HELLO(batch, FIELD_INT),
    NAMED(hwnas_hello, abilities, "abilities", FIELD_NAMES, name_of_ability, HWNAS_N_ABILITIES),
    INFO(name, FIELD_TEXT),
    INFO(library, FIELD_TEXT),
    INFO(isa, FIELD_TEXT),
    INFO(threads, FIELD_INT),
    NAMED(hwnas_hello, info.native, "native", FIELD_NAMES, name_of_precision, HWNAS_N_PRECISIONS),
    NAMED(hwnas_hello, info.emulated, "emulated", FIELD_NAMES, name_of_precision,
          HWNAS_N_PRECISIONS),
    INFO(has_energy, FIELD_BOOL),
    INFO(computes, FIELD_BOOL),
    INFO(memory_bytes, FIELD_DOUBLE),
    INFO(cache_bytes, FIELD_DOUBLE),
    {0},
};

static const field verified_fields[] = {
    VERIFIED(against, FIELD_TEXT),
    VERIFIED(error, FIELD_DOUBLE),
    VERIFIED(tolerance, FIELD_DOUBLE),
    VERIFIED(output, FIELD_TEXT),
    VERIFIED(at, FIELD_INT64),
    VERIFIED(got, FIELD_DOUBLE),
    VERIFIED(wanted, FIELD_DOUBLE),
    VERIFIED(may_overflow, FIELD_BOOL),
    {0},
};

static json_t *encode_double(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *encode_names(int set, const field *f)
{
    json_t *names = json_array();
    for (int i = 0; i < f->n; i++)
        if (set & 1 << i)
            json_array_append_new(names, json_string(f->name_of(i)));
    return names;
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
        case FIELD_NAME:
            value = json_string(f->name_of(*(const int *)at));
            break;
        case FIELD_NAMES:
            value = encode_names(*(const int *)at, f);
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

/* The value of that name; -1: there is none. */
static int find_name(const field *f, const json_t *value)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && i < f->n; i++)
        if (!strcmp(text, f->name_of(i)))
            return i;
    return -1;
}

/* Names that we do not know yet are left out. */
static bool decode_names(int *out, const field *f, const json_t *names)
{
    *out = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const int value = find_name(f, json_array_get(names, i));
        *out |= value < 0 ? 0 : 1 << value;
    }
    return json_is_array(names);
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
    case FIELD_NAME:
        *(int *)at = find_name(f, value);
        return *(int *)at >= 0;
    case FIELD_NAMES:
        return decode_names((int *)at, f, value);
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

/* With `all` each member must be there. */
static bool decode(void *out, const field *fields, const json_t *object, bool all)
{
    for (const field *f = fields; f->name; f++) {
        const json_t *value = json_object_get(object, f->name);
        if ((value || all) && !decode_field((char *)out + f->offset, f, value))
            return false;
    }
    return json_is_object(object);
}

json_t *hwnas_wire_options(const hwnas_measure_options *options)
{
    return encode(options, option_fields);
}

json_t *hwnas_wire_measurement(const hwnas_measurement *measurement)
{
    return encode(measurement, measurement_fields);
}

json_t *hwnas_wire_hello(const hwnas_hello *hello)
{
    return encode(hello, hello_fields);
}

bool hwnas_wire_read_options(hwnas_measure_options *out, const json_t *object)
{
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    if (!decode(&options, option_fields, object, false))
        return false;
    *out = options;
    return true;
}

bool hwnas_wire_read_measurement(hwnas_measurement *out, const json_t *object)
{
    hwnas_measurement measurement = {0};
    if (!decode(&measurement, measurement_fields, object, true))
        return false;
    *out = measurement;
    return true;
}

bool hwnas_wire_read_hello(hwnas_hello *out, const json_t *object)
{
    hwnas_hello hello = {0};
    if (!decode(&hello, hello_fields, object, false) || !*hello.info.name)
        return false;
    *out = hello;
    return true;
}

json_t *hwnas_wire_verified(const hwnas_verified *verified)
{
    return encode(verified, verified_fields);
}

bool hwnas_wire_read_verified(hwnas_verified *out, const json_t *object)
{
    hwnas_verified verified = {0};
    if (!decode(&verified, verified_fields, object, true) || isnan(verified.tolerance))
        return false;
    if (isnan(verified.error)) /* JSON has no infinity */
        verified.error = INFINITY;
    *out = verified;
    return true;
}
