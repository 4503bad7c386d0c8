/* predict_samples.c: the kind `samples`: "samples:FILE[#KEY=VALUE,...]", of spaces that were
 * derived from a trained model: a network inherits the model's weights, and is run on samples of
 * the user's. docs/optimize.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "inherit/samples.h"
#include "predict/predict_priv.h"

typedef struct samples_predictor {
    hwnas_predictor base;
    hwnas_samples *samples;
    hwnas_precision precision;
    size_t n_scored;
    double seconds;
} samples_predictor;

/* ---- "FILE#KEY=VALUE,..." ---- */

typedef struct settings {
    hwnas_samples_options options;
    double mean[64], std[64];
} settings;

static hwnas_status bad_value(const char *key, const char *value, const char *wanted)
{
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of samples cannot be '%.60s'", key, value), "%s",
        wanted);
}

/* "0.5", "1/255". */
static bool read_number(double *out, const char *text, char **end)
{
    double value = strtod(text, end);
    bool is_good = *end != text;
    if (is_good && **end == '/') {
        const char *below = *end + 1;
        value /= strtod(below, end);
        is_good = *end != below;
    }
    *out = value;
    return is_good && isfinite(value);
}

/* "0.485:0.456:0.406" */
static bool read_list(double *out, size_t *n, const char *text)
{
    char *end = NULL;
    for (*n = 0; *n < 64; text = end + 1) {
        if (!read_number(&out[(*n)++], text, &end) || (*end && *end != ':'))
            return false;
        if (!*end)
            return true;
    }
    return false;
}

static hwnas_status set_option(settings *s, const char *key, const char *value)
{
    static const char *const names[] = {"count",   "importance", "labels", "layout",
                                        "mean",    "recover",    "scale",  "std",
                                        "weights", "x",          "y",      NULL};
    hwnas_dataset_options *data = &s->options.data;
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"labels", &data->labels},
                 {"layout", &data->layout},
                 {"x", &s->options.array},
                 {"y", &data->label_array}};
    const struct {
        const char *name;
        int64_t *to;
    } counts[] = {{"count", &s->options.n_search}, {"recover", &s->options.n_recover}};
    char *end;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(key, texts[i].name)) {
            *texts[i].to = value;
            return HWNAS_OK;
        }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!strcmp(key, counts[i].name)) {
            const long long n = strtoll(value, &end, 10);
            *counts[i].to = n;
            return n > 0 && n < 1 << 30 && !*end ? HWNAS_OK
                                                 : bad_value(key, value, "how many samples");
        }
    if (!strcmp(key, "scale"))
        return read_number(&data->scale, value, &end) && !*end && data->scale != 0
                   ? HWNAS_OK
                   : bad_value(key, value, "a number, such as 1/255");
    if (!strcmp(key, "mean") || !strcmp(key, "std")) {
        const bool is_mean = *key == 'm';
        return read_list(is_mean ? s->mean : s->std, is_mean ? &data->n_mean : &data->n_std, value)
                   ? HWNAS_OK
                   : bad_value(key, value, "a number, or one for each channel: 0.485:0.456:0.406");
    }
    if (!strcmp(key, "importance")) {
        static const struct {
            const char *name;
            hwnas_samples_importance importance;
        } rows[] = {{"removal", HWNAS_IMPORTANCE_BY_REMOVAL},
                    {"activations", HWNAS_IMPORTANCE_OF_ACTIVATIONS},
                    {"weights", HWNAS_IMPORTANCE_OF_WEIGHTS}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (!strcmp(value, rows[i].name)) {
                s->options.importance = rows[i].importance;
                return HWNAS_OK;
            }
        return bad_value(key, value, "removal, activations or weights");
    }
    if (!strcmp(key, "weights")) {
        s->options.keeps_weights = !strcmp(value, "inherited");
        return s->options.keeps_weights || !strcmp(value, "recovered")
                   ? HWNAS_OK
                   : bad_value(key, value, "recovered (the default) or inherited");
    }
    const char *near = hwnas_nearest(key, names);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "samples have no option '%.40s'", key),
        near ? "did you mean '%s'?"
             : "the options are count, importance, labels, layout, mean, recover, scale, std, "
               "weights, x, y%s",
        near ? near : "");
}

/* The next of "KEY=VALUE,..." in place, or NULL; "\\," in it is a comma of a file's name. */
static char *next_item(char **text)
{
    char *item = *text, *to = item;
    if (!item)
        return NULL;
    for (const char *at = item;; at++) {
        if (!*at || *at == ',') {
            *text = *at ? (char *)at + 1 : NULL;
            *to = '\0';
            return item;
        }
        at += *at == '\\' && (at[1] == ',' || at[1] == '\\');
        *to++ = *at;
    }
}

static hwnas_status set_options(settings *s, char *text)
{
    for (char *item; (item = next_item(&text));) {
        char *equals = strchr(item, '=');
        if (!equals)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "'%.60s' after '#' is not an option of samples", item),
                              "write samples:val.npz#scale=1/255,mean=0.286");
        *equals = '\0';
        TRY(set_option(s, item, equals + 1));
    }
    s->options.data.mean = s->mean;
    s->options.data.std = s->std;
    return HWNAS_OK;
}

/* ---- The predictor ---- */

static hwnas_status open_samples(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = hwnas_file_name_length(rest);
    char *path = hwnas_printf("%.*s", (int)n, rest);
    char *text = rest[n] ? hwnas_strdup(rest + n + 1) : NULL;
    char *labels = NULL; /* beside the samples */
    settings *s = hwnas_alloc(sizeof *s);
    samples_predictor *p = hwnas_alloc(sizeof *p);
    p->base = (hwnas_predictor){.ops = &hwnas_predictor_samples,
                                .kind = "samples",
                                .space = space,
                                .target = hwnas_strdup("accuracy_pct"),
                                .unit = hwnas_strdup("%")};
    if (text)
        TRY_OUT(set_options(s, text));
    if (s->options.data.labels && access(s->options.data.labels, F_OK))
        s->options.data.labels = labels = hwnas_file_beside(path, s->options.data.labels);
    TRY_OUT(hwnas_samples_open(&p->samples, space, path, &s->options));
    *out = &p->base;
    p = NULL;
out:
    free(s);
    free(labels);
    free(text);
    free(path);
    hwnas_predictor_free((hwnas_predictor *)p);
    return status;
}

static hwnas_status score(hwnas_estimate *out, hwnas_predictor *base,
                          const hwnas_arch *const *archs, size_t n)
{
    samples_predictor *p = (samples_predictor *)base;
    for (size_t i = 0; i < n; i++) {
        hwnas_estimate_95 top1;
        const double start = hwnas_now();
        if (base->stop && *base->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted");
        TRY(hwnas_samples_score(&top1, p->samples, archs[i], p->precision, HWNAS_SAMPLES_SEARCH));
        out[i] = (hwnas_estimate){
            .mean = top1.value, .sd = (top1.high - top1.low) / (2 * 1.96), .is_trained = true};
        p->seconds += hwnas_now() - start;
        p->n_scored++;
    }
    return HWNAS_OK;
}

static void trainings(hwnas_trainings *out, const hwnas_predictor *base)
{
    const samples_predictor *p = (const samples_predictor *)base;
    *out = (hwnas_trainings){.n_known = p->n_scored,
                             .n_jobs = 1,
                             .seconds = p->n_scored ? p->seconds / (double)p->n_scored : NAN};
}

static void free_samples(hwnas_predictor *base)
{
    samples_predictor *p = (samples_predictor *)base;
    hwnas_samples_close(p->samples);
    free(p);
}

const hwnas_predictor_ops hwnas_predictor_samples = {.abi = HWNAS_PREDICTOR_ABI,
                                                     .name = "samples",
                                                     .heeds_stop = true,
                                                     .open = open_samples,
                                                     .score = score,
                                                     .trainings = trainings,
                                                     .free = free_samples};

hwnas_samples *hwnas_predictor_samples_of(const hwnas_predictor *predictor)
{
    return predictor->ops == &hwnas_predictor_samples
               ? ((const samples_predictor *)predictor)->samples
               : NULL;
}

void hwnas_predictor_use_precision(hwnas_predictor *predictor, hwnas_precision precision)
{
    if (predictor->ops == &hwnas_predictor_samples)
        ((samples_predictor *)predictor)->precision = precision;
}

void hwnas_predictor_stop_below(hwnas_predictor *predictor, double floor)
{
    if (predictor->ops == &hwnas_predictor_samples)
        hwnas_samples_stop_below(((samples_predictor *)predictor)->samples, floor);
}
