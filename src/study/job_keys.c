/* job_keys.c: the keys of a job, in the order in which they are read: devices come before what
 * names them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "device/device.h"
#include "predict/active.h"
#include "space/table_columns.h"
#include "study/job_goals.h"
#include "study/job_settings.h"
#include "study/settings.h"

/* Makes the path of a file that `rest`, the end of `text`, names, seen from the directory of the
 * job, or of the user where a flag says it, absolute. What does not exist is left for its reader to
 * complain of. `length_of`: of "FILE#..." how long FILE is; NULL: it is all of it. */
static const char *resolve_file(hwnas_job *job, const hwnas_yaml *node, const char *text,
                                const char *rest, size_t (*length_of)(const char *text))
{
    const bool is_of_file = job->path && !strcmp(node->place.file, job->path);
    const char *from = is_of_file       ? job->path
                       : job->directory ? hwnas_arena_printf(job->arena, "%s/.", job->directory)
                                        : "";
    char *path = hwnas_file_beside(from, rest);
    char *column = path + (length_of ? length_of(path) : strlen(path));
    const char mark = *column; /* of the column, or of what columns are called */
    if (mark)
        *column++ = '\0';
    char *absolute = hwnas_file_real(path);
    char *whole = hwnas_arena_printf(job->arena, "%.*s%s%.*s%s", (int)(rest - text), text,
                                     absolute ? absolute : path, mark ? 1 : 0, &mark, column);
    free(absolute);
    free(path);
    return whole;
}

/* The same of the path in "table:FILE#COLUMN", "replay:FILE#COLUMN" or FILE.yaml; what is no file
 * stays. */
static const char *resolve(hwnas_job *job, const hwnas_yaml *node, const char *text)
{
    static const char *const prefixes[] = {
        "table:", "replay:", "onnx:", "samples:", "supernet:", "train:", NULL};
    const char *rest = text;
    for (const char *const *p = prefixes; *p; p++)
        if (hwnas_starts_with(text, *p))
            rest = text + strlen(*p);
    static const char *const others[] = {"command:", "runner:", "ssh:", NULL};
    for (const char *const *p = others; *p; p++)
        if (hwnas_starts_with(text,
                              *p)) /* a program, from where the search is started; a machine */
            return text;
    bool is_file = rest != text || strchr(text, '/') || hwnas_ends_with(text, ".yaml") ||
                   hwnas_ends_with(text, ".json");
    return is_file
               ? resolve_file(job, node, text, rest, rest != text ? hwnas_table_name_length : NULL)
               : text;
}

/* A number above 0. */
static hwnas_status read_positive(double *out, const hwnas_yaml *node, const char *what,
                                  double high)
{
    TRY(hwnas_yaml_number(out, node, what, 0, high));
    if (*out == 0)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be above 0", what);
    return HWNAS_OK;
}

/* ---- Devices and how they measure ---- */

static const char name_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

static hwnas_status check_name(const hwnas_job *job, const char *name, const hwnas_place *place)
{
    if (name[strspn(name, name_letters)] || strlen(name) > 31)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, place,
                       "'%.60s' is not a name of a device: up to 31 letters, digits, '-', '_', '.'",
                       name),
            strchr(name, ',') ? "several devices are a list: devices: [cpu, ort]"
                              : "write {name: ..., device: ...}");
    for (int i = 0; i < job->goals.devices.n; i++)
        if (!strcmp(job->goals.devices.rows[i].name, name))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "two devices are called '%s'", name),
                              "write {name: ..., device: ...}");
    return HWNAS_OK;
}

/* The spelling of a device in a list; NULL: there is none. */
static const char *spelling_of(const hwnas_yaml *node)
{
    const hwnas_yaml *spelling =
        node->kind == HWNAS_YAML_MAPPING ? hwnas_yaml_get(node, "device") : node;
    return spelling && spelling->kind == HWNAS_YAML_SCALAR ? spelling->text : NULL;
}

/* The kind of the device; where the list has several of one kind all of the spelling, with '-' for
 * what no name has: `ssh:pi1` is ssh-pi1. */
static const char *name_device(hwnas_job *job, const char *spelling, const hwnas_yaml *list)
{
    const size_t n = strcspn(spelling, ":");
    int n_of_kind = 0;
    for (size_t i = 0; list && i < list->n; i++) {
        const char *other = spelling_of(list->items[i]);
        n_of_kind += other && strcspn(other, ":") == n && !strncmp(other, spelling, n);
    }
    char *name = hwnas_arena_string(job->arena, spelling, n_of_kind > 1 ? strlen(spelling) : n);
    for (char *c = name; *c; c++)
        if (n_of_kind > 1 && !strchr(name_letters, *c))
            *c = '-';
    return name;
}

/* One device: its spelling, or a mapping with more. `list`: NULL, or where it is one of several. */
static hwnas_status read_one_device(hwnas_job *job, const hwnas_yaml *node, const hwnas_yaml *list)
{
    static const char *const keys[] = {"name",  "device", "threads", "batch",
                                       "dtype", "price",  NULL};
    hwnas_job_device device = {.place = node->place, .price = NAN};
    const hwnas_yaml *spelling = node;
    if (node->kind == HWNAS_YAML_MAPPING) {
        TRY(hwnas_yaml_check_keys(node, "a device", keys));
        const hwnas_yaml *name = hwnas_yaml_get(node, "name");
        const hwnas_yaml *price = hwnas_yaml_get(node, "price");
        spelling = hwnas_yaml_get(node, "device");
        if (!spelling)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "which device?"),
                              "add device: cpu");
        if (name)
            TRY(hwnas_yaml_text(&device.name, name, "name"));
        for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
            const hwnas_setting_kind *s = &hwnas_setting_table[i];
            const hwnas_yaml *own = hwnas_yaml_get(node, s->name);
            if (own)
                TRY(hwnas_job_read_setting_value((int *)((char *)&device + s->own), own, s));
        }
        if (price)
            TRY(hwnas_yaml_number(&device.price, price, "price", 0, 1e9));
    }
    if (job->goals.devices.n == HWNAS_MAX_DEVICES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "at most %d devices", HWNAS_MAX_DEVICES);
    TRY(hwnas_yaml_text(&device.spelling, spelling, "device"));
    device.place = spelling->place;
    if (!device.name)
        device.name = name_device(job, device.spelling, list);
    TRY(check_name(job, device.name, &device.place));
    device.spelling = resolve(job, node, device.spelling);
    job->goals.devices.rows[job->goals.devices.n++] = device;
    return HWNAS_OK;
}

static hwnas_status read_device(hwnas_job *job, const hwnas_yaml *node)
{
    job->goals.devices.n = 0;
    return read_one_device(job, node, NULL);
}

static hwnas_status read_devices(hwnas_job *job, const hwnas_yaml *node)
{
    hwnas_status status = hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "devices");
    if (status != HWNAS_OK)
        return hwnas_hint(status, "write [cpu, ort], also for one");
    if (job->goals.devices.n && !strcmp(job->goals.devices.rows[0].place.file, node->place.file))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "both device and devices"),
                          "put all of them into devices");
    if (!node->n)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "the list of devices is empty");
    job->goals.devices.n = 0;
    for (size_t i = 0; i < node->n; i++)
        TRY(read_one_device(job, node->items[i], node));
    return HWNAS_OK;
}

/* "val.npz#scale=1/255" */
static hwnas_status read_data(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "data"));
    job->data = resolve_file(job, node, text, text, hwnas_file_name_length);
    return HWNAS_OK;
}

/* ---- How to search, and how long ---- */

static hwnas_status read_minutes(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_number(&job->max_minutes, node, "minutes", 0, 1e9));
    if (job->max_minutes == 0)
        return hwnas_fail(HWNAS_E_INPUT, &node->place,
                          "a budget of 0 minutes leaves no time for a trial");
    return HWNAS_OK;
}

static hwnas_status read_improvement(hwnas_job *job, const hwnas_yaml *node)
{
    /* "0.1 %", or 0.001 */
    const char *text;
    char *end;
    TRY(hwnas_yaml_text(&text, node, "improvement"));
    double value = strtod(text, &end);
    bool is_percent = end != text && !strcmp(end + strspn(end, " "), "%");
    value = is_percent ? value / 100 : value;
    if (end == text || (*end && !is_percent) || !(value > 0 && value < 1))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &node->place,
                       "improvement must be above 0 %% and below 100 %%, not '%.40s'", text),
            "write improvement: 0.1 %%; with trials or minutes alone a search does not ask for it");
    job->improvement = value;
    return HWNAS_OK;
}

static hwnas_status read_priority(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "priority"));
    hwnas_status status = hwnas_priority_find(&job->priority, text);
    return status == HWNAS_OK ? HWNAS_OK : hwnas_fail_at(status, &node->place);
}

/* ---- Keys that are what their row says ---- */

/* Where a key's value is in a job. */
static void *value_of(hwnas_job *job, const hwnas_job_key *key)
{
    return (char *)job + key->offset;
}

static void set_integer(hwnas_job *job, const hwnas_job_key *key, int64_t value)
{
    void *at = value_of(job, key);
    if (key->size == sizeof(bool))
        *(bool *)at = value != 0;
    else if (key->size == sizeof(int))
        *(int *)at = (int)value;
    else
        *(int64_t *)at = value;
}

/* One of the words of a key; the first, which says no, is named last. */
static hwnas_status read_word(hwnas_job *job, const hwnas_job_key *key, const hwnas_yaml *node)
{
    const char *text;
    hwnas_str list = {0};
    TRY(hwnas_yaml_text(&text, node, key->name));
    for (int i = 0; key->words[i]; i++)
        if (!strcmp(text, key->words[i])) {
            set_integer(job, key, i);
            return HWNAS_OK;
        }
    for (int i = 1; key->words[i]; i++)
        hwnas_str_addf(&list, "%s%s", i > 1 ? ", " : "", key->words[i]);
    hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "%s is %s or %s, not '%.30s'", key->name,
                              list.s, key->words[0], text),
                   "%s", key->hint);
    hwnas_str_done(&list);
    return status;
}

static hwnas_status read_text(hwnas_job *job, const hwnas_job_key *key, const hwnas_yaml *node)
{
    const char **out = value_of(job, key);
    TRY(hwnas_yaml_text(out, node, key->name));
    if (key->type == HWNAS_KEY_PATH)
        *out = resolve(job, node, *out);
    return HWNAS_OK;
}

static hwnas_status read_integer(hwnas_job *job, const hwnas_job_key *key, const hwnas_yaml *node)
{
    int64_t value;
    const int64_t most = key->high < 0x1p63 ? (int64_t)key->high : INT64_MAX;
    hwnas_status status = hwnas_yaml_int(&value, node, key->name, (int64_t)key->low, most);
    if (status != HWNAS_OK)
        return key->hint ? hwnas_hint(status, "%s", key->hint) : status;
    set_integer(job, key, value * (key->unit ? key->unit : 1));
    return HWNAS_OK;
}

hwnas_status hwnas_job_key_read(hwnas_job *job, const hwnas_job_key *key, const hwnas_yaml *node)
{
    if (key->place)
        *(hwnas_place *)((char *)job + key->place) = node->place;
    switch (key->type) {
    case HWNAS_KEY_INTEGER:
        return read_integer(job, key, node);
    case HWNAS_KEY_NUMBER:
        return hwnas_yaml_number(value_of(job, key), node, key->name, key->low, key->high);
    case HWNAS_KEY_POSITIVE:
        return read_positive(value_of(job, key), node, key->name, key->high);
    case HWNAS_KEY_TEXT:
    case HWNAS_KEY_PATH:
        return read_text(job, key, node);
    case HWNAS_KEY_WORD:
        return read_word(job, key, node);
    case HWNAS_KEY_SETTING:
        return hwnas_job_read_setting(value_of(job, key), node, hwnas_setting_named(key->name));
    case HWNAS_KEY_SPECIAL:
        break;
    }
    return key->read(job, node);
}

void hwnas_job_preset(hwnas_job *job)
{
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        switch (k->type) {
        case HWNAS_KEY_INTEGER:
        case HWNAS_KEY_WORD:
            set_integer(job, k, (int64_t)k->preset);
            break;
        case HWNAS_KEY_NUMBER:
        case HWNAS_KEY_POSITIVE:
            *(double *)value_of(job, k) = k->preset;
            break;
        case HWNAS_KEY_TEXT:
        case HWNAS_KEY_PATH:
            *(const char **)value_of(job, k) = k->preset_text;
            break;
        case HWNAS_KEY_SETTING:
            *(hwnas_setting_values *)value_of(job, k) =
                (hwnas_setting_values){.n = 1, .values = {(int)k->preset}};
            break;
        case HWNAS_KEY_SPECIAL:
            break;
        }
}

bool hwnas_job_key_is_same(const hwnas_job_key *a, const hwnas_job_key *b)
{
    return a->type == b->type && a->offset == b->offset && a->read == b->read;
}

#define OF(member)                                                                                 \
    .offset = offsetof(hwnas_job, member), .size = sizeof(((hwnas_job *)NULL)->member)
#define PLACE(member) .place = offsetof(hwnas_job, member)
#define INTEGER(member, least, most)                                                               \
    .type = HWNAS_KEY_INTEGER, OF(member), .low = (least), .high = (most)
#define NUMBER(member, least, most, value)                                                         \
    .type = HWNAS_KEY_NUMBER, OF(member), .low = (least), .high = (most), .preset = (value)
#define TEXT(member) .type = HWNAS_KEY_TEXT, .is_text = true, OF(member)
#define PATH(member) .type = HWNAS_KEY_PATH, .is_text = true, OF(member)
#define WORD(member, value, ...)                                                                   \
    .type = HWNAS_KEY_WORD, .is_text = true, OF(member), .preset = (value), .words = {__VA_ARGS__}
#define SETTING(member) .type = HWNAS_KEY_SETTING, OF(member), .preset = 1
#define SPECIAL(reader) .read = reader

/* clang-format off */
const hwnas_job_key hwnas_job_keys[] = {
    {NULL, "space", .is_rare = true, PATH(space), PLACE(space_place),
     .argument = "SPACE", .help = "a YAML file, or a space that ships"},
    {NULL, "accuracy", .is_rare = true, PATH(predictor), PLACE(predictor_place),
     .argument = "NAME", .help = "a fitted predictor, table:, proxy:, onnx:, train:, supernet:, command:"},
    {NULL, "domain", .is_rare = true, WORD(is_domain_free, 0, "seen", "free"),
     .hint = "seen: choices stay among the values that the predictor has learned from; free: all are searched",
     .argument = "HOW", .help = "seen: values that the predictor knows; free: all (seen)"},
    {NULL, "byte-loss", .is_rare = true, WORD(has_no_int8_loss, 0, "prior", "none"),
     .hint = "prior: what int8 costs published networks is taken off predicted accuracies in s8; none: they are of s8 already",
     .argument = "HOW", .help = "of predictions in s8: prior, or none if they are of s8 (prior)"},
    {NULL, "train-budget", .is_rare = true, INTEGER(train_budget, HWNAS_MIN_TRAIN_BUDGET, 1 << 20), PLACE(train_budget_place),
     .hint = "10 trained networks are needed for a fit, and as many to correct it; without the key every trial "
             "is trained",
     .argument = "N", .help = "trainings by train: or command:, 20 at least; others are estimated"},
    {NULL, "device", 'd', .is_text = true, SPECIAL(read_device),
     .argument = "DEVICE", .help = "cpu, ssh:HOST, runner:COMMAND, replay:FILE#COLUMN"},
    {NULL, "devices", .is_rare = true, SPECIAL(read_devices),
     .argument = "LIST", .help = "several: '[cpu, {name: pi, device: ...}]'"},
    {NULL, "threads", 't', SETTING(threads),
     .argument = "N", .help = "of a measured network, or all; or {values: [1, 2]}"},
    {NULL, "batch", 'b', .is_rare = true, SETTING(batch),
     .argument = "N", .help = "inferences at once; or {values: [1, 8]}"},
    {NULL, "dtype", .is_rare = true, SETTING(dtype),
     .argument = "TYPE", .help = "f32, bf16, f16, s8, w8, w4, mixed; or {values: [f32, s8]}"},
    {NULL, "max-error", .is_rare = true, NUMBER(max_error, 0, 1e6, NAN), PLACE(max_error_place),
     .argument = "PERCENT", .help = "mixed: largest difference from f32, of the largest output (5)"},
    {NULL, "data", .is_rare = true, .is_text = true, SPECIAL(read_data), PLACE(data_place),
     .argument = "FILE", .help = "mixed: samples that choose, 'val.npz#scale=1/255'; random inputs"},
    {NULL, "max-loss", .is_rare = true, NUMBER(max_loss, 0, 1e6, NAN), PLACE(max_loss_place),
     .argument = "POINTS", .help = "mixed, of a trained model: accuracy that may be lost, by labels"},
    {NULL, "price", .is_rare = true, NUMBER(price, 0, 1e9, NAN),
     .argument = "X", .help = "of the device, an hour: for the metric cost"},
    {NULL, "objectives", .is_text = true, SPECIAL(hwnas_job_read_objectives),
     .argument = "LIST", .help = "'accuracy, latency.p50 on cpu'"},
    {NULL, "constraints", 'c', .is_text = true, SPECIAL(hwnas_job_read_constraints),
     .argument = "LIMITS", .help = "'latency.p50 <= 8 ms and params < 6 M'"},
    {NULL, "fronts", .is_rare = true, WORD(goals.is_front_per_device, 0, "together", "each"),
     .hint = "together: networks that are good on all devices; each: a front for each device",
     .argument = "HOW", .help = "of several devices: together, or each its own"},
    {NULL, "strategy", TEXT(strategy), PLACE(strategy_place), .preset_text = "auto",
     .argument = "NAME", .help = "auto, nsga2, bayesian, random, ..."},
    {"strategy", "name", .is_rare = true, TEXT(strategy), PLACE(strategy_place), .preset_text = "auto"},
    {"strategy", "population", .is_rare = true, INTEGER(population, 1, 100000), PLACE(strategy_place),
     .argument = "N", .help = "of an evolutionary strategy"},
    {"budget", "trials", 'n', INTEGER(max_trials, 1, 0x1p40), PLACE(budget_place),
     .argument = "N", .help = "end after N trials in all"},
    {"budget", "minutes", SPECIAL(read_minutes),
     .argument = "X", .help = "end after X minutes in all"},
    {"budget", "money", .is_rare = true, .type = HWNAS_KEY_POSITIVE, OF(money), PLACE(budget_place), .high = 1e12, .preset = NAN,
     .argument = "X", .help = "end when the devices' prices come to X"},
    {"budget", "improvement", .is_rare = true, .is_text = true, SPECIAL(read_improvement),
     .argument = "X", .help = "end when the front stands still to X: '0.1 %'"},
    {NULL, "until", .is_rare = true, .is_text = true, SPECIAL(hwnas_job_read_until),
     .argument = "LIMITS", .help = "end when a network meets these: 'accuracy >= 70'"},
    {NULL, "seed", .is_rare = true, INTEGER(seed, 0, 0x1p63),
     .argument = "N", .help = "same seed, same proposals"},
    {NULL, "warm-start", .is_rare = true, TEXT(warm_start),
     .argument = "STUDY", .help = "begin with the trials of another study"},
    {"measure", "interval", .is_rare = true, NUMBER(interval, 1e-4, 1, 0.01),
     .argument = "X", .help = "95 % interval of a latency, relative"},
    {"measure", "seconds", .is_rare = true, NUMBER(max_seconds, 1e-3, 1e5, 1),
     .argument = "X", .help = "of a measurement, at most"},
    {"measure", "ties", .is_rare = true, NUMBER(ties, 0, 1000, 0.1),
     .argument = "X", .help = "time for near ties on the front, as a part of the search's (0.1)"},
    {"measure", "confirm", .is_rare = true, NUMBER(confirm, 0, 1000, 0.1),
     .argument = "X", .help = "time for confirming the front's end, as a part of the search's (0.1)"},
    {"measure", "estimate", .is_rare = true, WORD(estimate, HWNAS_ESTIMATE_AUTO, "off", "auto", "aggressive"),
     .hint = "auto spares measurements that a table of latencies makes useless; aggressive those, too, that "
             "are more likely useless than not",
     .argument = "HOW", .help = "auto: spares measurements where an estimate tells enough; aggressive; off"},
    {"measure", "early-stop", .is_rare = true, WORD(stops_early, true, "off", "auto"),
     .hint = "auto stops measuring a network when it is clear that another one beats it",
     .argument = "HOW", .help = "auto: stops measuring when a network is clearly beaten; off"},
    {"measure", "verify", .is_rare = true, WORD(verifies, true, "none", "front"),
     .hint = "front compares the result of each network of the front with a reference",
     .argument = "WHAT", .help = "front: compares the results of the front's networks with a reference; none"},
    {"measure", "priority", .is_rare = true, .is_text = true, SPECIAL(read_priority),
     .argument = "HOW", .help = "realtime, normal; auto: realtime where the kernel allows it"},
    {"measure", "parallel", .is_rare = true, INTEGER(parallel, 1, 1024),
     .argument = "N", .help = "trials open at a time (2 for each board behind a link and on quick plans, else 1)"},
    {"measure", "timeout", .is_rare = true, NUMBER(timeout, 0.1, 1e6, 60),
     .argument = "X", .help = "seconds without a message before the runner counts as hung (runner timeout)"},
    {"measure", "memory", .is_rare = true, INTEGER(memory_limit, 64, 0x1p30), .unit = 1 << 20,
     .argument = "MIB", .help = "that a candidate may use"},
    {NULL, "study", 's', TEXT(study), PLACE(study_place),
     .argument = "FILE", .help = "where the study is kept (JOB.db)"},
    {"export", "onnx", .is_rare = true, TEXT(export_onnx), PLACE(onnx_place),
     .argument = "FILE", .help = "write the winner so"},
    {"export", "pytorch", .is_rare = true, TEXT(export_pytorch), PLACE(pytorch_place),
     .argument = "FILE", .help = "write the winner so"},
    {"export", "yaml", .is_rare = true, TEXT(export_yaml), PLACE(yaml_place),
     .argument = "FILE", .help = "write the winner so"},
    {0},
};
/* clang-format on */
