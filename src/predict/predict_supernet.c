/* predict_supernet.c: the kind `supernet`: "supernet:RECIPE[#KEY=VALUE,...]". All networks of a
 * space are trained once, as slices of one set of weights, by training/train.py; then each network
 * is judged with its slices, by this engine. docs/training.md. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/home.h"
#include "base/log.h"
#include "base/str.h"
#include "inherit/slices.h"
#include "predict/predict_priv.h"
#include "predict/recipe_run.h"
#include "predict/spelled_options.h"

typedef struct supernet_predictor {
    hwnas_predictor base;
    char *recipe, *files; /* what the names of its files begin with */
    hwnas_samples_options options;
    hwnas_shared *shared;
    hwnas_supernet *net; /* NULL: not trained yet, or not read */
    bool is_checked;
    hwnas_fork_server server; /* until it is trained */
    hwnas_error failure; /* HWNAS_OK: none yet */
} supernet_predictor;

/* ---- "RECIPE#KEY=VALUE,..." ---- */

static hwnas_status set_samples(int64_t *out, const char *name, const char *value)
{
    char *end;
    const long long n = strtoll(value, &end, 10);
    if (!(n > 0 && n < 1 << 30) || *end)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'%s' of a supernet is how many samples, not '%.40s'", name, value);
    *out = n;
    return HWNAS_OK;
}

static hwnas_status set_count(void *to, const char *name, const char *value)
{
    return set_samples(&((supernet_predictor *)to)->options.n_search, name, value);
}

static hwnas_status set_statistics(void *to, const char *name, const char *value)
{
    return set_samples(&((supernet_predictor *)to)->options.n_recover, name, value);
}

static hwnas_status set_weights(void *to, const char *name, const char *value)
{
    supernet_predictor *p = to;
    if (!*value)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of a supernet is empty", name);
    free(p->files);
    p->files = hwnas_strdup(value);
    return HWNAS_OK;
}

static const hwnas_spelled_option supernet_options[] = {
    {"count", set_count}, {"statistics", set_statistics}, {"weights", set_weights}, {0}};

/* recipe.yaml of the space NAME: recipe.NAME.supernet, where the search is started. */
static char *files_of(const char *recipe, const hwnas_space *space)
{
    const char *slash = strrchr(recipe, '/'), *name = slash ? slash + 1 : recipe;
    const char *dot = strrchr(name, '.');
    return hwnas_printf("%.*s.%s.supernet", dot ? (int)(dot - name) : (int)strlen(name), name,
                        space->name);
}

static hwnas_status open_supernet(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = hwnas_file_name_length(rest);
    char *options = rest[n] ? hwnas_strdup(rest + n + 1) : NULL;
    supernet_predictor *p = hwnas_alloc(sizeof *p);
    p->base = (hwnas_predictor){.ops = &hwnas_predictor_supernet,
                                .kind = "supernet",
                                .space = space,
                                .target = hwnas_strdup("accuracy_pct"),
                                .unit = hwnas_strdup("%")};
    p->recipe = hwnas_printf("%.*s", (int)n, rest);
    p->files = files_of(p->recipe, space);
    const hwnas_place place = {.file = p->recipe};
    if (options)
        TRY_OUT(hwnas_spelled_options_set(p, options, supernet_options, "a supernet",
                                          "supernet:recipe.yaml#count=2000"));
    if (!hwnas_file_exists(p->recipe)) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, *p->recipe ? &place : NULL,
                                       "there is no such recipe of a training"),
                            "write accuracy: supernet:RECIPE.yaml; docs/training.md has one to "
                            "begin with");
        goto out;
    }
    TRY_OUT(hwnas_shared_new(&p->shared, space));
    *out = &p->base;
    p = NULL;
out:
    free(options);
    hwnas_predictor_free((hwnas_predictor *)p);
    return status;
}

/* ---- Training ---- */

static void say(void *context, const char *line)
{
    (void)context;
    if (hwnas_starts_with(line, "epoch "))
        hwnas_log(HWNAS_LOG_NOTE, "supernet: %s", line);
}

/* PyTorch is loaded once, for the check and for what follows it. */
static hwnas_status run(json_t **told, supernet_predictor *p, bool is_check)
{
    hwnas_fork_server_start(&p->server, hwnas_torch_python());
    const hwnas_recipe_call call = {
        .recipe = p->recipe,
        .options = {"--supernet", p->files, is_check ? "--check" : NULL},
        .arch = p->shared->largest,
        .shared = p->shared,
        .server = &p->server,
        .stop = p->base.stop,
        .says = say};
    return hwnas_recipe_run(told, &call);
}

hwnas_status hwnas_supernet_check(hwnas_predictor *base)
{
    supernet_predictor *p = (supernet_predictor *)base;
    json_t *told;
    if (p->is_checked)
        return HWNAS_OK;
    TRY(run(&told, p, true));
    const json_t *samples = json_object_get(told, "samples");
    const hwnas_status status = hwnas_supernet_check_samples(
        json_integer_value(json_object_get(samples, "validation")), &p->options, p->recipe);
    json_decref(told);
    p->is_checked = status == HWNAS_OK;
    return status;
}

static char *weights_of(const supernet_predictor *p)
{
    return hwnas_printf("%s.npz", p->files);
}

static char *samples_of(const supernet_predictor *p)
{
    return hwnas_printf("%s-samples.npz", p->files);
}

void hwnas_supernet_weights(char **file, char **hash, const hwnas_predictor *base)
{
    const supernet_predictor *p = (const supernet_predictor *)base;
    char *samples = samples_of(p);
    *file = weights_of(p);
    char *of_weights = hwnas_file_hash(*file), *of_samples = hwnas_file_hash(samples);
    *hash = of_weights && of_samples ? hwnas_printf("%s %s", of_weights, of_samples) : NULL;
    free(of_weights);
    free(of_samples);
    free(samples);
}

static hwnas_status train(supernet_predictor *p)
{
    json_t *told;
    TRY(hwnas_supernet_check(&p->base));
    const hwnas_status trained = run(&told, p, false);
    hwnas_fork_server_stop(&p->server); /* of all that it has loaded nothing is needed any more */
    TRY(trained);
    json_decref(told);
    char *weights = weights_of(p);
    char *samples = samples_of(p);
    const hwnas_status status =
        hwnas_supernet_open(&p->net, p->shared, weights, samples, &p->options);
    free(weights);
    free(samples);
    return status;
}

/* Trains what is not trained yet, and reads it. What went wrong once with this recipe is told again
 * for the next network, and is not tried again. */
static hwnas_status prepare(supernet_predictor *p)
{
    if (p->net)
        return HWNAS_OK;
    if (p->failure.status == HWNAS_OK) {
        if (train(p) == HWNAS_OK)
            return HWNAS_OK;
        const hwnas_error *error = hwnas_last_error();
        if (error->status == HWNAS_E_INPUT)
            p->failure = *error;
        return error->status;
    }
    const hwnas_error *e = &p->failure;
    const hwnas_place place = {.file = e->file, .line = e->line, .column = e->column};
    return hwnas_hint(hwnas_fail(e->status, *e->file ? &place : NULL, "%s", e->message), "%s",
                      e->hint);
}

/* ---- Networks ---- */

static hwnas_status score(hwnas_estimate *out, hwnas_predictor *base,
                          const hwnas_arch *const *archs, size_t n)
{
    supernet_predictor *p = (supernet_predictor *)base;
    TRY(prepare(p));
    for (size_t i = 0; i < n; i++) {
        hwnas_estimate_95 top1;
        if (base->stop && *base->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted");
        TRY(hwnas_supernet_score(&top1, p->net, archs[i]));
        out[i] = (hwnas_estimate){.mean = top1.value, .sd = (top1.high - top1.low) / (2 * 1.96)};
    }
    return HWNAS_OK;
}

static void free_supernet(hwnas_predictor *base)
{
    supernet_predictor *p = (supernet_predictor *)base;
    hwnas_fork_server_stop(&p->server);
    hwnas_supernet_close(p->net);
    hwnas_shared_free(p->shared);
    free(p->recipe);
    free(p->files);
    free(p);
}

const hwnas_predictor_ops hwnas_predictor_supernet = {.abi = HWNAS_PREDICTOR_ABI,
                                                      .name = "supernet",
                                                      .heeds_stop = true,
                                                      .open = open_supernet,
                                                      .score = score,
                                                      .free = free_supernet};
