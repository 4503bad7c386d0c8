#include "study/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/device.h"
#include "predict/predict.h"
#include "store/study_url.h"

enum { MAX_KEYS = 48 };

/* ---- Reading ---- */

/* Keys of the job itself (`group` NULL), with the groups; or of one of its groups. */
static void list_keys(const char *out[MAX_KEYS + 1], const char *group)
{
    int n = 0;
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++) {
        bool is_inside = !group || (k->group && !strcmp(k->group, group));
        const char *name = group || !k->group ? k->name : k->group;
        for (int i = 0; i < n; i++)
            is_inside &= strcmp(out[i], name) != 0;
        if (is_inside)
            out[n++] = name;
    }
    out[n] = NULL;
}

static bool is_group(const char *name)
{
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        if (k->group && !strcmp(k->group, name))
            return true;
    return false;
}

/* "strategy: nsga2" in the place of "strategy: {name: nsga2}". */
static bool is_short_form(const hwnas_yaml *node, const char *group)
{
    bool has_one = false;
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        has_one |= !k->group && !strcmp(k->name, group);
    return has_one && node->kind == HWNAS_YAML_SCALAR;
}

/* Groups and keys of a file that nobody knows. */
static hwnas_status check_keys(const hwnas_yaml *root)
{
    const char *names[MAX_KEYS + 1];
    list_keys(names, NULL);
    TRY(hwnas_yaml_check_keys(root, "a job", names));
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++) {
        const hwnas_yaml *node = k->group ? hwnas_yaml_get(root, k->group) : NULL;
        if (!node || is_short_form(node, k->group))
            continue;
        list_keys(names, k->group);
        TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, k->group));
        TRY(hwnas_yaml_check_keys(node, k->group, names));
    }
    return HWNAS_OK;
}

/* What the file says of a key; NULL: nothing. */
static const hwnas_yaml *find_key(const hwnas_yaml *root, const hwnas_job_key *key)
{
    const hwnas_yaml *node =
        root ? hwnas_yaml_get(root, key->group ? key->group : key->name) : NULL;
    if (!node)
        return NULL;
    if (key->group)
        return hwnas_yaml_get(node, key->name);
    return node->kind == HWNAS_YAML_MAPPING && is_group(key->name) ? NULL : node;
}

static hwnas_status read_flag(hwnas_job *job, const hwnas_job_key *key, const char *value)
{
    const char *name = hwnas_arena_printf(job->arena, "--%s", key->name);
    hwnas_yaml text = {.kind = HWNAS_YAML_SCALAR,
                       .place = {.file = name, .line = 1, .column = 1},
                       .text = hwnas_arena_string(job->arena, value, strlen(value)),
                       .is_verbatim = true};
    hwnas_yaml *node = &text;
    if (!key->is_text)
        TRY(hwnas_yaml_parse(&node, job->arena, name, value, strlen(value)));
    return hwnas_job_key_read(job, key, node);
}

static const char *find_flag(const hwnas_job_flag *flags, const char *name)
{
    for (; flags && flags->name; flags++)
        if (!strcmp(flags->name, name))
            return flags->value;
    return NULL;
}

/* A flag says what this key would say: the same key, the same in short, or the other of the two
 * that name devices. */
static bool is_overruled(const hwnas_job_key *key, const hwnas_job_flag *flags)
{
    static const char *const names[] = {"device", "devices"};
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        if (hwnas_job_key_is_same(k, key) && find_flag(flags, k->name))
            return true;
    for (int i = 0; i < 2; i++)
        if (!strcmp(key->name, names[i]) && find_flag(flags, names[1 - i]))
            return true;
    return false;
}

/* Key by key in the order of the table, from the flags or else from the file. */
static hwnas_status read_keys(hwnas_job *job, const hwnas_yaml *root, const hwnas_job_flag *flags)
{
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++) {
        const char *flag = k->argument ? find_flag(flags, k->name) : NULL;
        const hwnas_yaml *node = find_key(root, k);
        if (flag)
            TRY(read_flag(job, k, flag));
        else if (node && !is_overruled(k, flags))
            TRY(hwnas_job_key_read(job, k, node));
    }
    return HWNAS_OK;
}

/* ---- Checks ---- */

/* Who tells what a device measured may tell accuracies, too. */
static bool is_told(const hwnas_job *job)
{
    for (int i = 0; i < job->goals.devices.n; i++)
        if (hwnas_device_is_told(job->goals.devices.rows[i].spelling))
            return true;
    return false;
}

static hwnas_status check_given(const hwnas_job *job, const hwnas_metric *metric)
{
    hwnas_place place = {.file = job->path};
    if (metric->source == HWNAS_FROM_PREDICTOR && !job->predictor && !is_told(job))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%s' needs a predictor", metric->name),
                          "add accuracy: NAME (on the command line --accuracy NAME), a fitted "
                          "predictor or table:FILE#COLUMN");
    if (metric->source == HWNAS_FROM_DEVICE && !job->goals.devices.n)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%s' needs a device", metric->name),
                          "add device: cpu, on the command line --device cpu");
    return HWNAS_OK;
}

static hwnas_status check(hwnas_job *job)
{
    hwnas_place place = {.file = job->path};
    const char *const studies[] = {job->study, job->warm_start};
    for (size_t i = 0; i < sizeof studies / sizeof *studies; i++)
        if (studies[i])
            TRY(hwnas_study_url_check(studies[i])); /* before a message has it */
    if (!job->space)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the job names no space"),
                          "add space: NAME, or --space NAME");
    if (!job->goals.n_objectives)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the job has no objectives"),
                          "add objectives: [accuracy, latency.p50]");
    for (int i = 0; i < job->goals.n_objectives; i++)
        TRY(check_given(job, job->goals.objectives[i].metric));
    for (int i = 0; i < job->goals.n_limits; i++)
        TRY(check_given(job, job->goals.limits[i].goal.metric));
    for (int i = 0; i < job->goals.n_targets; i++)
        TRY(check_given(job, job->goals.targets[i].goal.metric));
    if (job->predictor && hwnas_predictor_name_ranks(job->predictor)) {
        hwnas_goals_of_scores(job->goals.objectives, job->goals.n_objectives);
        hwnas_limits_of_scores(job->goals.limits, job->goals.n_limits);
        hwnas_limits_of_scores(job->goals.targets, job->goals.n_targets);
    }
    hwnas_goals_drop_idle(&job->goals);
    for (int i = 0; i < job->goals.devices.n && job->goals.is_front_per_device; i++)
        if (*job->goals.devices.rows[i].phase)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->goals.devices.rows[i].place,
                                         "fronts: each does not go with phases"),
                              "leave it out: one front for all");
    TRY(hwnas_limits_check(job->goals.limits, job->goals.n_limits));
    return hwnas_limits_check(job->goals.targets, job->goals.n_targets);
}

/* A device is paid for as long as the search has it, which is from its beginning to its end. */
static hwnas_status count_money(hwnas_job *job)
{
    const hwnas_job_devices *devices = &job->goals.devices;
    double hourly = 0;
    job->hourly = NAN;
    if (isnan(job->money))
        return HWNAS_OK;
    for (int i = 0; i < devices->n; i++) {
        int k = 0; /* its phases have rows of the same name */
        while (strcmp(devices->rows[k].name, devices->rows[i].name))
            k++;
        if (k == i)
            hourly += devices->rows[i].price;
        if (isnan(devices->rows[i].price))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->budget_place,
                                         "a budget of money needs the price of '%.60s'",
                                         devices->rows[i].name),
                              "add price: X, what it costs an hour; 0 where it is free");
    }
    if (!(hourly > 0))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &job->budget_place,
                                     "a budget of money needs a device that costs something"),
                          "add device: cpu and price: X, what it costs an hour");
    const double minutes = 60 * job->money / hourly;
    if (job->max_minutes > 0 && job->max_minutes <= minutes)
        return HWNAS_OK;
    job->max_minutes = minutes;
    job->hourly = hourly;
    return HWNAS_OK;
}

static void set_defaults(hwnas_job *job)
{
    /* A search that nobody bounds ends when its front stands still. */
    if (!job->max_trials && job->max_minutes <= 0 && isnan(job->money) && job->improvement <= 0)
        job->improvement = 0.001;
    job->goals.is_aggressive = job->estimate == HWNAS_ESTIMATE_AGGRESSIVE;
    for (int i = 0; i < job->goals.devices.n; i++)
        if (isnan(job->goals.devices.rows[i].price))
            job->goals.devices.rows[i].price = job->price;
}

/* NAME.db in the current directory, after the job, or after the space. */
static const char *default_study(const hwnas_job *job)
{
    const char *path = job->path ? job->path : job->space;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    const char *dot = strrchr(name, '.');
    if (dot && dot > name)
        length = (size_t)(dot - name);
    return hwnas_arena_printf(job->arena, "%.*s.db", (int)length, name);
}

bool hwnas_setting_is_open(const hwnas_setting_values *setting)
{
    return setting->n > 1;
}

static hwnas_status read_all(hwnas_job *job)
{
    hwnas_yaml *root = NULL;
    if (job->text) {
        TRY(hwnas_yaml_parse(&root, job->arena, job->path, job->text, strlen(job->text)));
        TRY(check_keys(root));
    }
    TRY(read_keys(job, root, job->flags));
    return check(job);
}

static const char *keep(hwnas_job *job, const char *text)
{
    return text ? hwnas_arena_string(job->arena, text, strlen(text)) : NULL;
}

static const hwnas_job_flag *keep_flags(hwnas_job *job, const hwnas_job_flag *flags)
{
    size_t n = 0;
    while (flags && flags[n].name)
        n++;
    hwnas_job_flag *kept = hwnas_arena_alloc(job->arena, (n + 1) * sizeof *kept);
    for (size_t i = 0; i < n; i++)
        kept[i] = (hwnas_job_flag){keep(job, flags[i].name), keep(job, flags[i].value)};
    kept[n] = (hwnas_job_flag){0};
    return kept;
}

hwnas_status hwnas_job_load(hwnas_job **out, const char *path, const hwnas_job_flag *flags)
{
    char *text = NULL;
    size_t length;
    if (path)
        TRY(hwnas_file_read_text(&text, &length, path, (size_t)1 << 20));
    const hwnas_status status = hwnas_job_load_text(out, path, text, NULL, flags);
    free(text);
    return status;
}

hwnas_status hwnas_job_load_text(hwnas_job **out, const char *path, const char *text,
                                 const char *directory, const hwnas_job_flag *flags)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_job *job = hwnas_arena_alloc(arena, sizeof *job);
    *job = (hwnas_job){.arena = arena, .trains = true};
    job->goals.devices.adds_phases = true;
    job->path = keep(job, path);
    job->text = keep(job, text);
    job->directory = keep(job, directory);
    job->flags = keep_flags(job, flags);
    hwnas_job_preset(job);
    hwnas_status status = read_all(job);
    if (status == HWNAS_OK) {
        set_defaults(job);
        status = count_money(job);
    }
    if (status != HWNAS_OK) {
        hwnas_arena_free(arena);
        return status;
    }
    if (!job->study)
        job->study = default_study(job);
    *out = job;
    return HWNAS_OK;
}

void hwnas_job_free(hwnas_job *job)
{
    if (job)
        hwnas_arena_free(job->arena);
}
