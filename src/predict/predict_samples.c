/* predict_samples.c: the kind `samples`: "samples:FILE[#KEY=VALUE,...]", of spaces that were
 * derived from a trained model: a network inherits the model's weights, and is run on samples of
 * the user's. docs/optimize.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "data/data_spelling.h"
#include "inherit/samples.h"
#include "predict/predict_priv.h"

typedef struct samples_predictor {
    hwnas_predictor base;
    hwnas_samples *samples;
    hwnas_precision precision;
    size_t n_scored;
    double seconds;
} samples_predictor;

/* ---- What its name may say besides what samples of any kind do ---- */

static hwnas_status read_count(void *context, const char *key, const char *value)
{
    hwnas_samples_options *options = context;
    return hwnas_data_key_count(*key == 'c' ? &options->n_search : &options->n_recover, key, value);
}

static hwnas_status read_importance(void *context, const char *key, const char *value)
{
    hwnas_samples_options *options = context;
    static const struct {
        const char *name;
        hwnas_samples_importance importance;
    } rows[] = {{"removal", HWNAS_IMPORTANCE_BY_REMOVAL},
                {"activations", HWNAS_IMPORTANCE_OF_ACTIVATIONS},
                {"weights", HWNAS_IMPORTANCE_OF_WEIGHTS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(value, rows[i].name)) {
            options->importance = rows[i].importance;
            return HWNAS_OK;
        }
    return hwnas_data_key_fail(key, value, "removal, activations or weights");
}

static hwnas_status read_weights(void *context, const char *key, const char *value)
{
    hwnas_samples_options *options = context;
    options->keeps_weights = !strcmp(value, "inherited");
    return options->keeps_weights || !strcmp(value, "recovered")
               ? HWNAS_OK
               : hwnas_data_key_fail(key, value, "recovered (the default) or inherited");
}

static const hwnas_data_key own_keys[] = {{"count", read_count},
                                          {"importance", read_importance},
                                          {"recover", read_count},
                                          {"weights", read_weights},
                                          {0}};

/* ---- The predictor ---- */

static hwnas_status open_samples(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    hwnas_samples_options options = {0};
    hwnas_data_spelling *spelling = hwnas_alloc(sizeof *spelling);
    samples_predictor *p = hwnas_alloc(sizeof *p);
    p->base = (hwnas_predictor){.ops = &hwnas_predictor_samples,
                                .kind = "samples",
                                .space = space,
                                .target = hwnas_strdup("accuracy_pct"),
                                .unit = hwnas_strdup("%")};
    TRY_OUT(hwnas_data_spelling_read(spelling, rest, own_keys, &options));
    options.data = spelling->options;
    options.array = spelling->array;
    TRY_OUT(hwnas_samples_open(&p->samples, space, spelling->path, &options));
    *out = &p->base;
    p = NULL;
out:
    hwnas_data_spelling_done(spelling);
    free(spelling);
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
