/* predict.c: the kinds of predictors, finding one by name, and the header of a fitted file. */
#include "predict/predict.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/registry.h"
#include "base/str.h"
#include "inherit/samples.h"
#include "predict/predict_priv.h"

/* A fitted predictor that ships is below 5 MB; a larger file is something else. */
#define MAX_BYTES ((size_t)256 << 20)
/* In the record of its fitting. */
#define MOST_ROWS 1e9
#define MOST_DEVIATION 1e15

static const hwnas_predictor_ops *kinds[HWNAS_MAX_ROWS] = {
    &hwnas_predictor_table,        &hwnas_predictor_fitted,   &hwnas_predictor_proxy,
    &hwnas_predictor_onnx,         &hwnas_predictor_command,  &hwnas_predictor_samples,
    &hwnas_predictor_train_recipe, &hwnas_predictor_supernet,
};

hwnas_status hwnas_register_predictor(const hwnas_predictor_ops *kind)
{
    HWNAS_REGISTER("kind of predictor", HWNAS_PREDICTOR_ABI, kinds, kind);
    return HWNAS_OK;
}

static const struct {
    const char *suffix, *unit;
} units[] = {
    {"_pct", "%"},   {"_ms", "ms"},          {"_s", "s"}, {"_fps", "1/s"}, {"_mj", "mJ"},
    {"_mib", "MiB"}, {"_ppl", "perplexity"},
};

/* What a column counts stands last, or before the name of a statistic: acc_top1_pct_mean. */
static const char *const statistics[] = {"", "_mean", "_median", "_run1", "_run2", "_run3"};

const char *hwnas_column_unit(const char *column)
{
    for (size_t s = 0; s < sizeof statistics / sizeof *statistics; s++) {
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            char *end = hwnas_printf("%s%s", units[u].suffix, statistics[s]);
            bool matches = hwnas_ends_with(column, end);
            free(end);
            if (matches)
                return units[u].unit;
        }
    }
    return "";
}

/* The column without the name of a statistic, and without "_pct". */
static size_t length_of_name(const char *column)
{
    size_t n = strlen(column);
    for (size_t s = 0; s < sizeof statistics / sizeof *statistics; s++)
        if (*statistics[s] && hwnas_ends_with(column, statistics[s])) {
            n -= strlen(statistics[s]);
            break;
        }
    return n >= 4 && !strncmp(column + n - 4, "_pct", 4) ? n - 4 : n;
}

bool hwnas_column_is_minimised(const char *column)
{
    static const char *const words[] = {"error",      "err",  "loss", "ppl",
                                        "perplexity", "rmse", "mse",  "mae"};
    const size_t n = length_of_name(column);
    if (hwnas_starts_with(column, "neg_") || hwnas_starts_with(column, "negative_") ||
        strstr(column, "_neg_") || strstr(column, "_negative_"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if (n >= length && !strncasecmp(column + n - length, words[i], length) &&
            (n == length || !isalnum((unsigned char)column[n - length - 1])))
            return true;
    }
    return false;
}

static hwnas_status check_version(const json_t *file, const char *path)
{
    hwnas_place place = {.file = path};
    const char *format = json_string_value(json_object_get(file, "format"));
    if (!format || strcmp(format, HWNAS_PREDICTOR_FORMAT))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not a predictor of hwnas"),
                          "'hwnas predictor fit' writes one");
    json_int_t version = json_integer_value(json_object_get(file, "version"));
    if (version != HWNAS_PREDICTOR_VERSION)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "the file has format version %lld, this hwnas reads %d",
                                     (long long)version, HWNAS_PREDICTOR_VERSION),
                          "%s",
                          version > HWNAS_PREDICTOR_VERSION ? "use a newer hwnas"
                                                            : "fit the predictor again");
    return HWNAS_OK;
}

static hwnas_status check_header(json_t *file, const char *path, const hwnas_space *space)
{
    hwnas_place place = {.file = path};
    const char *kind, *name, *digest;
    json_error_t error;
    if (json_unpack_ex(file, &error, 0, "{s:s, s:{s:s, s:s}}", "kind", &kind, "space", "name",
                       &name, "digest", &digest))
        return hwnas_fail(HWNAS_E_INPUT, &place, "the predictor's header is damaged: %s",
                          error.text);
    char *own = hwnas_space_digest(space);
    bool same_space = !strcmp(own, digest) || !strcmp(digest, HWNAS_ANY_SPACE);
    free(own);
    if (!same_space)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place,
                       "the predictor was fitted on %s '%s', not on the space '%s'",
                       strcmp(name, space->name) ? "the space" : "other choices of a space", name,
                       space->name),
            "fit one for this space with 'hwnas predictor fit'");
    if (hwnas_model_kind_named(kind))
        return HWNAS_OK;
    hwnas_str list = {0};
    for (size_t i = 0; hwnas_model_kinds[i]; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", hwnas_model_kinds[i]->name);
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &place, "there is no kind of predictor called '%s'", kind),
        "the kinds are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

/* A fitted file, of the right format and version. Path and object are the caller's, also of a
 * failure. */
static hwnas_status read_file(json_t **out, char **out_path, const char *name)
{
    hwnas_status status = HWNAS_OK;
    char *path = NULL, *text = NULL;
    json_t *file = NULL;
    size_t length;
    TRY_OUT(hwnas_file_find(&path, name, "predictors", ".json"));
    TRY_OUT(hwnas_file_read_text(&text, &length, path, MAX_BYTES));
    json_error_t error;
    file = json_loadb(text, length, 0, &error);
    if (!file) {
        hwnas_place place = {.file = path, .line = error.line, .column = error.column};
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not JSON: %s", error.text),
                            "a predictor is a file that 'hwnas predictor fit' wrote; is this one "
                            "complete?");
        goto out;
    }
    TRY_OUT(check_version(file, path));
out:
    *out = file;
    *out_path = path;
    free(text);
    return status;
}

static hwnas_status load_file(hwnas_predictor **out, const char *name, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    char *path = NULL;
    json_t *file = NULL;
    TRY_OUT(read_file(&file, &path, name));
    TRY_OUT(check_header(file, path, space));
    TRY_OUT(hwnas_fitted_read(out, file, path, space));
out:
    json_decref(file);
    free(path);
    return status;
}

/* The kind of "KIND:REST"; NULL: the name is a file's. */
static const hwnas_predictor_ops *find_kind(const char *name)
{
    const char *colon = strchr(name, ':');
    for (size_t i = 0; colon && kinds[i]; i++)
        if (kinds[i]->open && strlen(kinds[i]->name) == (size_t)(colon - name) &&
            hwnas_starts_with(name, kinds[i]->name))
            return kinds[i];
    return NULL;
}

hwnas_status hwnas_predictor_load(hwnas_predictor **out, const char *name, const hwnas_space *space)
{
    const hwnas_predictor_ops *kind = find_kind(name);
    return kind ? kind->open(out, strchr(name, ':') + 1, space) : load_file(out, name, space);
}

static bool is_between(const json_t *value, double low, double high)
{
    return json_is_number(value) && json_number_value(value) >= low &&
           json_number_value(value) <= high;
}

/* How a fitting went; what was not known then is missing or null. */
static hwnas_status check_scores(const json_t *scores, const hwnas_place *place)
{
    static const struct {
        const char *name;
        double low, high;
    } bounds[] = {{"kendall_tau", -1, 1},
                  {"top_tenth_tau", -1, 1},
                  {"coverage_90", 0, 1},
                  {"rmse", 0, MOST_DEVIATION},
                  {"mean_absolute_error", 0, MOST_DEVIATION}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const json_t *value = json_object_get(scores, bounds[i].name);
        if (value && !json_is_null(value) && !is_between(value, bounds[i].low, bounds[i].high))
            return hwnas_fail(HWNAS_E_INPUT, place, "the predictor's '%s' is damaged",
                              bounds[i].name);
    }
    return HWNAS_OK;
}

/* What no estimate needs, so that nobody has looked at it yet. */
static hwnas_status check_record(const json_t *file, const char *path)
{
    const hwnas_place place = {.file = path};
    const json_t *rows = json_object_get(file, "rows"), *range;
    size_t i;
    if (!json_is_integer(rows) || !is_between(rows, 1, MOST_ROWS))
        return hwnas_fail(
            HWNAS_E_INPUT, &place,
            "the predictor's 'rows', the networks that it was fitted to, are damaged");
    TRY(check_scores(json_object_get(file, "cross_validation"), &place));
    json_array_foreach(json_object_get(file, "fact_ranges"), i, range)
    {
        const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
        if (!json_is_number(low) || !json_is_number(high) ||
            json_number_value(low) > json_number_value(high))
            return hwnas_fail(HWNAS_E_INPUT, &place,
                              "number %zu of the ranges of the predictor's facts is damaged",
                              i + 1);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_predictor_read(json_t **out, const char *name)
{
    char *path = NULL;
    const hwnas_predictor_ops *kind = find_kind(name);
    *out = NULL;
    if (kind)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' was not fitted by hwnas", name),
                          "only a predictor that 'hwnas predictor fit' wrote says what it has "
                          "learned from; 'hwnas predictor eval' judges any");
    hwnas_status status = read_file(out, &path, name);
    if (status == HWNAS_OK)
        status = check_record(*out, path);
    free(path);
    if (status == HWNAS_OK)
        return HWNAS_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

bool hwnas_predictor_name_ranks(const char *name)
{
    const hwnas_predictor_ops *kind = find_kind(name);
    return kind && kind->ranks_only;
}

void hwnas_predictor_free(hwnas_predictor *predictor)
{
    if (!predictor)
        return;
    free(predictor->target);
    free(predictor->unit);
    predictor->ops->free(predictor);
}

const char *hwnas_predictor_kind(const hwnas_predictor *predictor)
{
    return predictor->kind;
}

const hwnas_space *hwnas_predictor_space(const hwnas_predictor *predictor)
{
    return predictor->space;
}

const char *hwnas_predictor_target(const hwnas_predictor *predictor)
{
    return predictor->target;
}

const char *hwnas_predictor_unit(const hwnas_predictor *predictor)
{
    return predictor->unit;
}

bool hwnas_predictor_heeds_stop(const hwnas_predictor *predictor)
{
    return predictor->ops->heeds_stop;
}

void hwnas_predictor_stop_on(hwnas_predictor *predictor, const volatile sig_atomic_t *stop)
{
    predictor->stop = stop;
}

void hwnas_predictor_advance(hwnas_predictor *predictor, uint64_t n_asked)
{
    predictor->n_asked = n_asked;
}

bool hwnas_predictor_trainings(hwnas_trainings *out, const hwnas_predictor *predictor)
{
    if (!predictor || !predictor->ops->trainings)
        return false;
    *out = (hwnas_trainings){.seconds = NAN, .spent = predictor->spent, .n_jobs = 1};
    predictor->ops->trainings(out, predictor);
    return true;
}

void hwnas_predictor_watch(hwnas_predictor *predictor, const hwnas_training_watch *watch)
{
    predictor->watch = *watch;
}

hwnas_status hwnas_predictor_check(hwnas_predictor *predictor)
{
    return predictor->ops == &hwnas_predictor_command    ? hwnas_command_check(predictor)
           : predictor->ops == &hwnas_predictor_supernet ? hwnas_supernet_check(predictor)
                                                         : HWNAS_OK;
}

bool hwnas_predictor_weights(char **file, char **hash, const hwnas_predictor *predictor)
{
    if (!predictor || predictor->ops != &hwnas_predictor_supernet)
        return false;
    hwnas_supernet_weights(file, hash, predictor);
    return true;
}

void hwnas_predictor_train_mode(hwnas_predictor *predictor, hwnas_training_mode mode)
{
    predictor->train_mode = mode;
}

bool hwnas_predictor_was_stopped(int64_t *n, int64_t *n_all, const hwnas_predictor *predictor)
{
    const hwnas_samples *samples = hwnas_predictor_samples_of(predictor);
    if (!samples)
        return predictor->ops == &hwnas_predictor_command &&
               hwnas_command_was_stopped(n, n_all, predictor);
    *n = hwnas_samples_run(n_all, samples);
    return *n < *n_all;
}

bool hwnas_predictor_is_of_floats(const hwnas_predictor *predictor)
{
    static const hwnas_predictor_ops *const of_floats[] = {
        &hwnas_predictor_table, &hwnas_predictor_fitted, &hwnas_predictor_onnx};
    for (size_t i = 0; i < sizeof of_floats / sizeof *of_floats; i++)
        if (predictor->ops == of_floats[i])
            return true;
    return false;
}

bool hwnas_predictor_ranks_only(const hwnas_predictor *predictor)
{
    return predictor->ops->ranks_only;
}

hwnas_status hwnas_predictor_score(hwnas_estimate *out, hwnas_predictor *predictor,
                                   const hwnas_arch *const *archs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert(archs[i]->space == predictor->space);
    for (size_t i = 0; i < n; i++)
        out[i] = (hwnas_estimate){0}; /* a kind sets what it knows of */
    return n ? predictor->ops->score(out, predictor, archs, n) : HWNAS_OK;
}
