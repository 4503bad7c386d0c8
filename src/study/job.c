#include "study/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"

/* ---- Keys ---- */

typedef hwnas_status (*key_reader)(hwnas_job *job, const hwnas_yaml *node);

typedef struct key_row {
    const char *name;
    key_reader read;
} key_row;

static hwnas_status read_keys(hwnas_job *job, const hwnas_yaml *map, const char *what,
                              const key_row *rows)
{
    const char *names[24] = {0};
    for (int i = 0; rows[i].name; i++)
        names[i] = rows[i].name;
    TRY(hwnas_yaml_check_keys(map, what, names));
    for (int i = 0; rows[i].name; i++) {
        const hwnas_yaml *node = hwnas_yaml_get(map, rows[i].name);
        if (node)
            TRY(rows[i].read(job, node));
    }
    return HWNAS_OK;
}

/* Makes the path in "table:FILE#COLUMN", "replay:FILE#COLUMN" or FILE.yaml, seen from the directory
 * of `from`, absolute. What does not exist is left for its reader to complain of. */
static const char *resolve(hwnas_job *job, const char *from, const char *text)
{
    static const char *const prefixes[] = {"table:", "replay:", NULL};
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
    char *absolute = realpath(path, NULL);
    char *whole =
        hwnas_arena_printf(job->arena, "%.*s%s%s%s", (int)(rest - text), text,
                           absolute ? absolute : path, column ? "#" : "", column ? column : "");
    free(absolute);
    free(path);
    return whole;
}

static hwnas_status read_space(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_text(&job->space, node, "space"));
    job->space = resolve(job, job->path, job->space);
    job->space_place = node->place;
    return HWNAS_OK;
}

static hwnas_status read_accuracy(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_text(&job->predictor, node, "accuracy"));
    job->predictor = resolve(job, job->path, job->predictor);
    job->predictor_place = node->place;
    return HWNAS_OK;
}

static hwnas_status read_device(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_text(&job->device, node, "device"));
    job->device = resolve(job, job->path, job->device);
    job->device_place = node->place;
    return HWNAS_OK;
}

static hwnas_status read_int(int *out, const hwnas_yaml *node, const char *what, int64_t low,
                             int64_t high)
{
    int64_t value;
    TRY(hwnas_yaml_int(&value, node, what, low, high));
    *out = (int)value;
    return HWNAS_OK;
}

static hwnas_status read_threads(hwnas_job *job, const hwnas_yaml *node)
{
    return read_int(&job->threads, node, "threads", 1, 4096);
}

static hwnas_status read_batch(hwnas_job *job, const hwnas_yaml *node)
{
    return read_int(&job->batch, node, "batch", 1, 1 << 20);
}

static hwnas_status read_seed(hwnas_job *job, const hwnas_yaml *node)
{
    int64_t seed;
    TRY(hwnas_yaml_int(&seed, node, "seed", 0, INT64_MAX));
    job->seed = (uint64_t)seed;
    return HWNAS_OK;
}

static hwnas_status read_objectives(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "objectives"));
    if (node->n < 1 || node->n > HWNAS_MAX_OBJECTIVES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a search has 1 to %d objectives",
                          HWNAS_MAX_OBJECTIVES);
    for (size_t i = 0; i < node->n; i++) {
        const char *name;
        TRY(hwnas_yaml_text(&name, node->items[i], "an objective"));
        TRY(hwnas_metric_find(&job->objectives[i], name, &node->items[i]->place));
        for (size_t j = 0; j < i; j++)
            if (job->objectives[j] == job->objectives[i])
                return hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                  "'%s' is an objective twice", name);
    }
    job->n_objectives = (int)node->n;
    return HWNAS_OK;
}

static hwnas_status read_constraints(hwnas_job *job, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "constraints"));
    if (node->n > HWNAS_MAX_LIMITS)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "at most %d constraints", HWNAS_MAX_LIMITS);
    for (size_t i = 0; i < node->n; i++) {
        const char *text;
        TRY(hwnas_yaml_text(&text, node->items[i], "a constraint"));
        TRY(hwnas_limit_parse(&job->limits[i], text, &node->items[i]->place));
    }
    job->n_limits = (int)node->n;
    return HWNAS_OK;
}

static hwnas_status read_strategy_name(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_text(&job->strategy, node, "the strategy's name");
}

static hwnas_status read_population(hwnas_job *job, const hwnas_yaml *node)
{
    return read_int(&job->population, node, "population", 1, 100000);
}

static hwnas_status read_strategy(hwnas_job *job, const hwnas_yaml *node)
{
    static const key_row rows[] = {
        {"name", read_strategy_name}, {"population", read_population}, {0}};
    job->strategy_place = node->place;
    return node->kind == HWNAS_YAML_SCALAR ? read_strategy_name(job, node)
                                           : read_keys(job, node, "strategy", rows);
}

static hwnas_status read_trials(hwnas_job *job, const hwnas_yaml *node)
{
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

static hwnas_status read_budget(hwnas_job *job, const hwnas_yaml *node)
{
    static const key_row rows[] = {{"trials", read_trials}, {"minutes", read_minutes}, {0}};
    return read_keys(job, node, "budget", rows);
}

static hwnas_status read_interval(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->interval, node, "interval", 1e-4, 1);
}

static hwnas_status read_max_seconds(hwnas_job *job, const hwnas_yaml *node)
{
    return hwnas_yaml_number(&job->max_seconds, node, "seconds", 1e-3, 1e5);
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

static hwnas_status read_measure(hwnas_job *job, const hwnas_yaml *node)
{
    static const key_row rows[] = {{"interval", read_interval},
                                   {"seconds", read_max_seconds},
                                   {"timeout", read_timeout},
                                   {"memory", read_memory},
                                   {0}};
    return read_keys(job, node, "measure", rows);
}

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

static hwnas_status read_export(hwnas_job *job, const hwnas_yaml *node)
{
    static const key_row rows[] = {
        {"onnx", read_onnx}, {"pytorch", read_pytorch}, {"yaml", read_yaml}, {0}};
    return read_keys(job, node, "export", rows);
}

static const key_row job_keys[] = {
    {"space", read_space},
    {"accuracy", read_accuracy},
    {"device", read_device},
    {"threads", read_threads},
    {"batch", read_batch},
    {"objectives", read_objectives},
    {"constraints", read_constraints},
    {"strategy", read_strategy},
    {"budget", read_budget},
    {"seed", read_seed},
    {"measure", read_measure},
    {"study", read_study},
    {"export", read_export},
    {0},
};

/* ---- Checks ---- */

static hwnas_status check_given(const hwnas_job *job, const hwnas_metric *metric)
{
    hwnas_place place = {.file = job->path};
    if (metric->source == HWNAS_FROM_PREDICTOR && !job->predictor)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%s' needs a predictor", metric->name),
                          "add accuracy: NAME, a fitted predictor or table:FILE#COLUMN");
    if (metric->source == HWNAS_FROM_DEVICE && !job->device)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%s' needs a device", metric->name),
                          "add device: cpu");
    return HWNAS_OK;
}

static hwnas_status check(const hwnas_job *job)
{
    hwnas_place place = {.file = job->path};
    if (!job->space)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the job names no space");
    if (!job->n_objectives)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the job has no objectives"),
                          "add objectives: [accuracy, latency.p50]");
    for (int i = 0; i < job->n_objectives; i++)
        TRY(check_given(job, job->objectives[i]));
    for (int i = 0; i < job->n_limits; i++)
        TRY(check_given(job, job->limits[i].metric));
    if (!job->max_trials && job->max_minutes <= 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the search has no budget"),
                          "add budget: {trials: 200}, or minutes, or both");
    return HWNAS_OK;
}

static hwnas_status apply_flags(hwnas_job *job, const hwnas_job_flags *flags)
{
    if (flags->trials == 0 || flags->minutes == 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a budget of 0 leaves nothing to do");
    if (flags->study)
        job->study = flags->study;
    if (flags->device) {
        job->device = resolve(job, "", flags->device);
        job->device_place = (hwnas_place){0};
    }
    if (flags->strategy) {
        job->strategy = flags->strategy;
        job->strategy_place = (hwnas_place){0};
    }
    if (flags->threads > 0)
        job->threads = (int)flags->threads;
    if (flags->trials > 0)
        job->max_trials = flags->trials;
    if (flags->seed >= 0)
        job->seed = (uint64_t)flags->seed;
    if (flags->minutes > 0)
        job->max_minutes = flags->minutes;
    return HWNAS_OK;
}

/* "examples/quickstart.yaml" -> "quickstart.db" in the current directory. */
static const char *default_study(hwnas_job *job)
{
    const char *name = strrchr(job->path, '/') ? strrchr(job->path, '/') + 1 : job->path;
    const char *dot = strrchr(name, '.');
    return hwnas_arena_printf(job->arena, "%.*s.db", dot ? (int)(dot - name) : (int)strlen(name),
                              name);
}

hwnas_status hwnas_job_load(hwnas_job **out, const char *path, const hwnas_job_flags *flags)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_job *job = hwnas_arena_alloc(arena, sizeof *job);
    hwnas_yaml *root;
    char *text = NULL;
    size_t length;
    *job = (hwnas_job){.arena = arena,
                       .path = hwnas_arena_string(arena, path, strlen(path)),
                       .batch = 1,
                       .strategy = "nsga2",
                       .interval = 0.01,
                       .max_seconds = 1,
                       .timeout = 60};
    TRY_OUT(hwnas_file_read(&text, &length, path, (size_t)1 << 20));
    TRY_OUT(hwnas_yaml_parse(&root, arena, path, text, length));
    TRY_OUT(read_keys(job, root, "a job", job_keys));
    TRY_OUT(apply_flags(job, flags));
    TRY_OUT(check(job));
    if (!job->study)
        job->study = default_study(job);
    *out = job;
    job = NULL;
out:
    free(text);
    if (job)
        hwnas_arena_free(arena);
    return status;
}

void hwnas_job_free(hwnas_job *job)
{
    if (job)
        hwnas_arena_free(job->arena);
}

/* ---- JSON ---- */

json_t *hwnas_job_identity(const hwnas_job *job)
{
    json_t *objectives = json_array(), *constraints = json_array();
    for (int i = 0; i < job->n_objectives; i++)
        json_array_append_new(objectives, json_string(job->objectives[i]->name));
    for (int i = 0; i < job->n_limits; i++)
        json_array_append_new(constraints, json_string(job->limits[i].text));
    return json_pack("{s:s, s:s?, s:s?, s:i, s:i, s:s, s:i, s:I, s:o, s:o}", "space", job->space,
                     "accuracy", job->predictor, "device", job->device, "threads", job->threads,
                     "batch", job->batch, "strategy", job->strategy, "population", job->population,
                     "seed", (json_int_t)job->seed, "objectives", objectives, "constraints",
                     constraints);
}

hwnas_status hwnas_job_goals(hwnas_job *out, const json_t *identity)
{
    const json_t *objectives = json_object_get(identity, "objectives");
    const json_t *constraints = json_object_get(identity, "constraints");
    size_t n = json_array_size(objectives), m = json_array_size(constraints);
    if (n < 1 || n > HWNAS_MAX_OBJECTIVES || m > HWNAS_MAX_LIMITS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the study does not say what it searched for");
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(objectives, i));
        TRY(hwnas_metric_find(&out->objectives[i], name ? name : "", NULL));
    }
    for (size_t i = 0; i < m; i++) {
        const char *text = json_string_value(json_array_get(constraints, i));
        TRY(hwnas_limit_parse(&out->limits[i], text ? text : "", NULL));
    }
    out->n_objectives = (int)n;
    out->n_limits = (int)m;
    return HWNAS_OK;
}
