/* job_keys.c: the keys of a job, in the order in which they are read: devices come before what
 * names them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "predict/active.h"
#include "study/job.h"
#include "study/settings.h"

/* Makes the path in "table:FILE#COLUMN", "replay:FILE#COLUMN" or FILE.yaml, seen from the directory
 * of the job, or of the user where a flag says it, absolute. What does not exist is left for its
 * reader to complain of. */
static const char *resolve(hwnas_job *job, const hwnas_yaml *node, const char *text)
{
    static const char *const prefixes[] = {"table:", "replay:", "onnx:", NULL};
    const char *from = job->path && !strcmp(node->place.file, job->path) ? job->path : "";
    const char *rest = text;
    for (const char *const *p = prefixes; *p; p++)
        if (hwnas_starts_with(text, *p))
            rest = text + strlen(*p);
    bool is_file = rest != text || strchr(text, '/') || hwnas_ends_with(text, ".yaml") ||
                   hwnas_ends_with(text, ".json");
    if (!is_file)
        return text;
    char *path = hwnas_file_beside(from, rest);
    char *column = rest != text ? strrchr(path, '#') : NULL;
    if (column)
        *column++ = '\0';
    char *absolute = hwnas_file_real(path);
    char *whole =
        hwnas_arena_printf(job->arena, "%.*s%s%s%s", (int)(rest - text), text,
                           absolute ? absolute : path, column ? "#" : "", column ? column : "");
    free(absolute);
    free(path);
    return whole;
}

static hwnas_status read_int(int *out, const hwnas_yaml *node, const char *what, int64_t low,
                             int64_t high)
{
    int64_t value;
    TRY(hwnas_yaml_int(&value, node, what, low, high));
    *out = (int)value;
    return HWNAS_OK;
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

static hwnas_status read_space(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_text(&job->space, node, "space"));
    job->space = resolve(job, node, job->space);
    job->space_place = node->place;
    return HWNAS_OK;
}

static hwnas_status read_accuracy(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_text(&job->predictor, node, "accuracy"));
    job->predictor = resolve(job, node, job->predictor);
    job->predictor_place = node->place;
    return HWNAS_OK;
}

static hwnas_status read_train_budget(hwnas_job *job, const hwnas_yaml *node)
{
    job->train_budget_place = node->place;
    hwnas_status status =
        hwnas_yaml_int(&job->train_budget, node, "train-budget", HWNAS_MIN_TRAIN_BUDGET, 1 << 20);
    return status == HWNAS_OK
               ? HWNAS_OK
               : hwnas_hint(status, "10 trained networks are needed for a fit, and as many to "
                                    "correct it; without the key every trial is trained");
}

/* ---- Devices and how they measure ---- */

static hwnas_status check_name(const hwnas_job *job, const char *name, const hwnas_place *place)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (name[strspn(name, letters)] || strlen(name) > 31)
        return hwnas_fail(
            HWNAS_E_INPUT, place,
            "'%.60s' is not a name of a device: up to 31 letters, digits, '-', '_', '.'", name);
    for (int i = 0; i < job->goals.devices.n; i++)
        if (!strcmp(job->goals.devices.rows[i].name, name))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "two devices are called '%s'", name),
                              "write {name: ..., device: ...}");
    return HWNAS_OK;
}

/* One value of a setting. */
static hwnas_status read_value(int *out, const hwnas_yaml *node, const hwnas_setting_kind *setting)
{
    const char *text;
    hwnas_precision precision;
    if (!setting->word)
        return read_int(out, node, setting->name, 1, setting->most);
    TRY(hwnas_yaml_text(&text, node, setting->name));
    hwnas_status status = hwnas_precision_find(&precision, text);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &node->place);
    *out = 1 + (int)precision;
    return HWNAS_OK;
}

/* One device: its spelling, or a mapping with more. */
static hwnas_status read_one_device(hwnas_job *job, const hwnas_yaml *node)
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
                TRY(read_value((int *)((char *)&device + s->own), own, s));
        }
        if (price)
            TRY(read_positive(&device.price, price, "price", 1e9));
    }
    if (job->goals.devices.n == HWNAS_MAX_DEVICES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "at most %d devices", HWNAS_MAX_DEVICES);
    TRY(hwnas_yaml_text(&device.spelling, spelling, "device"));
    device.place = spelling->place;
    if (!device.name)
        device.name =
            hwnas_arena_string(job->arena, device.spelling, strcspn(device.spelling, ":"));
    TRY(check_name(job, device.name, &device.place));
    device.spelling = resolve(job, node, device.spelling);
    job->goals.devices.rows[job->goals.devices.n++] = device;
    return HWNAS_OK;
}

static hwnas_status read_device(hwnas_job *job, const hwnas_yaml *node)
{
    job->goals.devices.n = 0;
    return read_one_device(job, node);
}

static hwnas_status read_devices(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "devices"));
    if (job->goals.devices.n && !strcmp(job->goals.devices.rows[0].place.file, node->place.file))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "both device and devices"),
                          "put all of them into devices");
    if (!node->n)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "the list of devices is empty");
    job->goals.devices.n = 0;
    for (size_t i = 0; i < node->n; i++)
        TRY(read_one_device(job, node->items[i]));
    return HWNAS_OK;
}

/* A number, or {values: [...]}: then it is a choice of the search. */
static hwnas_status read_setting(hwnas_setting_values *out, const hwnas_yaml *node,
                                 const hwnas_setting_kind *kind)
{
    const char *what = kind->name;
    static const char *const keys[] = {"values", NULL};
    hwnas_setting_values setting = {.place = node->place, .n = 1};
    if (node->kind != HWNAS_YAML_MAPPING) {
        TRY(read_value(&setting.values[0], node, kind));
        *out = setting;
        return HWNAS_OK;
    }
    TRY(hwnas_yaml_check_keys(node, what, keys));
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    if (!values || values->kind != HWNAS_YAML_SEQUENCE || values->n < 1 ||
        values->n > HWNAS_MAX_SETTING_VALUES)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "%s needs 1 to %d values", what,
                                     HWNAS_MAX_SETTING_VALUES),
                          "write %s: {values: [%s]}", what, kind->word ? "f32, s8" : "1, 2");
    setting.n = (int)values->n;
    for (int i = 0; i < setting.n; i++) {
        TRY(read_value(&setting.values[i], values->items[i], kind));
        for (int j = 0; j < i; j++)
            if (setting.values[j] == setting.values[i])
                return hwnas_fail(HWNAS_E_INPUT, &values->items[i]->place, "%s has %s twice", what,
                                  values->items[i]->text);
    }
    *out = setting;
    return HWNAS_OK;
}

static hwnas_status read_threads(hwnas_job *job, const hwnas_yaml *node)
{
    return read_setting(&job->threads, node, &hwnas_setting_table[HWNAS_THREADS]);
}

static hwnas_status read_batch(hwnas_job *job, const hwnas_yaml *node)
{
    return read_setting(&job->batch, node, &hwnas_setting_table[HWNAS_BATCH]);
}

static hwnas_status read_dtype(hwnas_job *job, const hwnas_yaml *node)
{
    return read_setting(&job->dtype, node, &hwnas_setting_table[HWNAS_DTYPE]);
}

static hwnas_status read_price(hwnas_job *job, const hwnas_yaml *node)
{
    return read_positive(&job->price, node, "price", 1e9);
}

/* ---- Goals ---- */

static hwnas_place text_place(const hwnas_yaml *node)
{
    hwnas_place place = node->place;
    place.column += node->is_quoted && node->is_verbatim; /* the text begins after the quote */
    return place;
}

static hwnas_status read_objective(hwnas_job *job, const char *text, const hwnas_place *place,
                                   bool is_verbatim)
{
    return hwnas_goals_parse(job->goals.objectives, &job->goals.n_objectives, HWNAS_MAX_OBJECTIVES,
                             text, place, is_verbatim, &job->goals.devices);
}

/* A list, or the same on one line: "accuracy, latency.p50". */
static hwnas_status read_objectives(hwnas_job *job, const hwnas_yaml *node)
{
    job->goals.n_objectives = 0;
    if (node->kind == HWNAS_YAML_SCALAR) {
        const char *text;
        TRY(hwnas_yaml_text(&text, node, "objectives"));
        hwnas_place place = text_place(node);
        for (const char *at = text;; at++) {
            size_t n = strcspn(at, ",");
            hwnas_place here = place;
            here.column += (int)(at - text);
            TRY(read_objective(job, hwnas_arena_string(job->arena, at, n), &here,
                               node->is_verbatim));
            at += n;
            if (!*at)
                return HWNAS_OK;
        }
    }
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "objectives"));
    if (node->n < 1)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a search has 1 to %d objectives",
                          HWNAS_MAX_OBJECTIVES);
    for (size_t i = 0; i < node->n; i++) {
        const char *text;
        TRY(hwnas_yaml_text(&text, node->items[i], "an objective"));
        hwnas_place place = text_place(node->items[i]);
        TRY(read_objective(job, text, &place, node->items[i]->is_verbatim));
    }
    return HWNAS_OK;
}

/* An expression, or a list of them. */
static hwnas_status read_limits(hwnas_limit *limits, int *n, const hwnas_job *job,
                                const hwnas_yaml *node, const char *what)
{
    const hwnas_yaml *const alone[] = {node};
    bool is_list = node->kind == HWNAS_YAML_SEQUENCE;
    const hwnas_yaml *const *items = is_list ? (const hwnas_yaml *const *)node->items : alone;
    *n = 0;
    for (size_t i = 0; i < (is_list ? node->n : 1); i++) {
        const char *text;
        TRY(hwnas_yaml_text(&text, items[i], what));
        hwnas_place place = text_place(items[i]);
        TRY(hwnas_limits_parse(limits, n, HWNAS_MAX_LIMITS, text, &place, items[i]->is_verbatim,
                               &job->goals.devices));
    }
    return HWNAS_OK;
}

static hwnas_status read_constraints(hwnas_job *job, const hwnas_yaml *node)
{
    return read_limits(job->goals.limits, &job->goals.n_limits, job, node, "a constraint");
}

static hwnas_status read_until(hwnas_job *job, const hwnas_yaml *node)
{
    return read_limits(job->goals.targets, &job->goals.n_targets, job, node, "until");
}

static hwnas_status read_fronts(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "fronts"));
    job->goals.is_front_per_device = !strcmp(text, "each");
    if (strcmp(text, "each") && strcmp(text, "together"))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &node->place, "fronts cannot be '%.40s'", text),
            "together: networks that are good on all devices; each: a front for each device");
    return HWNAS_OK;
}

/* ---- How to search, and how long ---- */

static hwnas_status read_strategy(hwnas_job *job, const hwnas_yaml *node)
{
    job->strategy_place = node->place;
    return hwnas_yaml_text(&job->strategy, node, "the strategy's name");
}

static hwnas_status read_population(hwnas_job *job, const hwnas_yaml *node)
{
    job->strategy_place = node->place;
    return read_int(&job->population, node, "population", 1, 100000);
}

static hwnas_status read_trials(hwnas_job *job, const hwnas_yaml *node)
{
    job->budget_place = node->place;
    return hwnas_yaml_int(&job->max_trials, node, "trials", 1, INT64_C(1) << 40);
}

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

static hwnas_status read_seed(hwnas_job *job, const hwnas_yaml *node)
{
    int64_t seed;
    TRY(hwnas_yaml_int(&seed, node, "seed", 0, INT64_MAX));
    job->seed = (uint64_t)seed;
    return HWNAS_OK;
}

static hwnas_status read_warm_start(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->warm_start, node, "warm-start");
}

static hwnas_status read_interval(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->interval, node, "interval", 1e-4, 1);
}

static hwnas_status read_max_seconds(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->max_seconds, node, "seconds", 1e-3, 1e5);
}

static hwnas_status read_ties(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->ties, node, "ties", 0, 1000);
}

/* "auto" or "off". */
static hwnas_status read_auto(bool *out, const hwnas_yaml *node, const char *name, const char *hint)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, name));
    *out = !strcmp(text, "auto");
    if (*out || !strcmp(text, "off"))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &node->place, "%s is auto or off, not '%.30s'", name, text), "%s",
        hint);
}

static hwnas_status read_estimate(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "estimate"));
    job->goals.is_aggressive = !strcmp(text, "aggressive");
    job->estimates = job->goals.is_aggressive || !strcmp(text, "auto");
    if (job->estimates || !strcmp(text, "off"))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place,
                                 "estimate is auto, aggressive or off, not '%.30s'", text),
                      "auto spares measurements that a table of latencies makes useless; "
                      "aggressive those, too, that "
                      "are more likely useless than not");
}

static hwnas_status read_early_stop(hwnas_job *job, const hwnas_yaml *node)
{
    return read_auto(&job->stops_early, node, "early-stop",
                     "auto stops measuring a network when it is clear that another one beats it");
}

static hwnas_status read_verify(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "verify"));
    job->verifies = !strcmp(text, "front");
    if (job->verifies || !strcmp(text, "none"))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &node->place, "verify is front or none, not '%.30s'", text),
        "front compares the result of each network of the front with a reference");
}

static hwnas_status read_priority(hwnas_job *job, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "priority"));
    hwnas_status status = hwnas_priority_find(&job->priority, text);
    return status == HWNAS_OK ? HWNAS_OK : hwnas_fail_at(status, &node->place);
}

static hwnas_status read_timeout(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->timeout, node, "timeout", 0.1, 1e6);
}

static hwnas_status read_memory(hwnas_job *job, const hwnas_yaml *node)
{
    int64_t mebibytes;
    TRY(hwnas_yaml_int(&mebibytes, node, "memory", 64, INT64_C(1) << 30));
    job->memory_limit = mebibytes << 20;
    return HWNAS_OK;
}

/* ---- Files ---- */

static hwnas_status read_study(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->study, node, "study");
}

static hwnas_status read_onnx(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->export_onnx, node, "onnx");
}

static hwnas_status read_pytorch(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->export_pytorch, node, "pytorch");
}

static hwnas_status read_yaml(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->export_yaml, node, "yaml");
}

const hwnas_job_key hwnas_job_keys[] = {
    {NULL, "space", 0, true, true, read_space, "SPACE", "a YAML file, or a space that ships"},
    {NULL, "accuracy", 0, true, true, read_accuracy, "NAME",
     "a fitted predictor, table:, proxy:, onnx:, command:"},
    {NULL, "train-budget", 0, false, false, read_train_budget, "N",
     "trainings by command:PROGRAM, 20 at least; others are estimated"},
    {NULL, "device", 'd', false, true, read_device, "DEVICE", "cpu, ref, null, replay:FILE#COLUMN"},
    {NULL, "devices", 0, true, false, read_devices, "LIST",
     "several: '[cpu, {name: pi, device: ...}]'"},
    {NULL, "threads", 't', false, false, read_threads, "N",
     "of a measured network; or {values: [1, 2]}"},
    {NULL, "batch", 'b', true, false, read_batch, "N", "inferences at once; or {values: [1, 8]}"},
    {NULL, "dtype", 0, true, false, read_dtype, "TYPE",
     "f32, bf16, f16, s8; or {values: [f32, s8]}"},
    {NULL, "price", 0, true, false, read_price, "X", "of the device, an hour: for the metric cost"},
    {NULL, "objectives", 0, false, true, read_objectives, "LIST", "'accuracy, latency.p50 on cpu'"},
    {NULL, "constraints", 'c', false, true, read_constraints, "LIMITS",
     "'latency.p50 <= 8 ms and params < 6 M'"},
    {NULL, "fronts", 0, true, true, read_fronts, "HOW",
     "of several devices: together, or each its own"},
    {NULL, "strategy", 0, false, true, read_strategy, "NAME", "auto, nsga2, bayesian, random, ..."},
    {"strategy", "name", 0, true, true, read_strategy, NULL, NULL},
    {"strategy", "population", 0, true, false, read_population, "N", "of an evolutionary strategy"},
    {"budget", "trials", 'n', false, false, read_trials, "N", "end after N trials in all"},
    {"budget", "minutes", 0, false, false, read_minutes, "X", "end after X minutes in all"},
    {"budget", "improvement", 0, true, true, read_improvement, "X",
     "end when the front stands still to X: '0.1 %'"},
    {NULL, "until", 0, true, true, read_until, "LIMITS",
     "end when a network meets these: 'accuracy >= 70'"},
    {NULL, "seed", 0, true, false, read_seed, "N", "same seed, same proposals"},
    {NULL, "warm-start", 0, true, true, read_warm_start, "STUDY",
     "begin with the trials of another study"},
    {"measure", "interval", 0, true, false, read_interval, "X",
     "95 % interval of a latency, relative"},
    {"measure", "seconds", 0, true, false, read_max_seconds, "X", "of a measurement, at most"},
    {"measure", "ties", 0, true, false, read_ties, "X",
     "time for near ties on the front, as a part of the search's (0.1)"},
    {"measure", "estimate", 0, true, true, read_estimate, "HOW",
     "auto: spares measurements where an estimate tells enough; aggressive; off"},
    {"measure", "early-stop", 0, true, true, read_early_stop, "HOW",
     "auto: stops measuring when a network is clearly beaten; off"},
    {"measure", "verify", 0, true, true, read_verify, "WHAT",
     "front: compares the results of the front's networks with a reference; none"},
    {"measure", "priority", 0, true, true, read_priority, "HOW",
     "realtime, normal; auto: realtime where the kernel allows it"},
    {"measure", "timeout", 0, true, false, read_timeout, "X",
     "seconds without a message before the runner counts as hung (runner timeout)"},
    {"measure", "memory", 0, true, false, read_memory, "MIB", "that a candidate may use"},
    {NULL, "study", 's', false, true, read_study, "FILE", "where the study is kept (JOB.db)"},
    {"export", "onnx", 0, true, true, read_onnx, "FILE", "write the winner so"},
    {"export", "pytorch", 0, true, true, read_pytorch, "FILE", "write the winner so"},
    {"export", "yaml", 0, true, true, read_yaml, "FILE", "write the winner so"},
    {0},
};
