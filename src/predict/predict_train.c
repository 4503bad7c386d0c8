/* predict_train.c: the kind `train`: "train:RECIPE[#KEY=VALUE,...]", the program that ships as
 * training/train.py with a recipe (docs/training.md). It is a command like others, but its recipe
 * and its data are checked before the first training. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/home.h"
#include "base/str.h"
#include "base/yaml.h"
#include "predict/training_program.h"
#include "predict/recipe_run.h"

/* Of the command line. */
enum { RECIPE = 3, WORK = 5 };

/* The words of a command line, in one block. */
static void set_words(hwnas_training_program *p, char *const *words, size_t n)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += strlen(words[i]) + 1;
    char *at = p->words = hwnas_alloc(length);
    for (size_t i = 0; i < n; i++) {
        p->arguments[p->n_words++] = at;
        at = stpcpy(at, words[i]) + 1;
    }
}

/* recipe.yaml, results RESULTS.csv: checkpoints are in RESULTS.trainings. */
static void make_command_line(hwnas_training_program *p, const char *recipe)
{
    const int n = (int)strlen(p->cache) - (hwnas_ends_with(p->cache, ".csv") ? 4 : 0);
    char *words[] = {hwnas_strdup(hwnas_torch_python()),
                     hwnas_printf("%s/training/train.py", hwnas_data_root()),
                     hwnas_strdup("--recipe"),
                     hwnas_strdup(recipe),
                     hwnas_strdup("--work"),
                     hwnas_printf("%.*s.trainings", n, p->cache),
                     hwnas_printf("--jobs=%.0f", p->jobs)};
    const size_t n_words = sizeof words / sizeof *words;
    set_words(p, words, n_words);
    for (size_t i = 0; i < n_words; i++)
        free(words[i]);
}

/* ---- Before the first training ---- */

/* With a network of the space: does it take these samples, and are its classes theirs? */
static hwnas_status check(hwnas_training_program *p)
{
    json_t *told;
    hwnas_rng rng = hwnas_rng_new(0, 0x636865636b); /* the stream "check" */
    hwnas_arch *arch = hwnas_arch_new(p->base.space);
    hwnas_arch_sample(arch, &rng);
    hwnas_fork_server_start(&p->server, p->arguments[0]);
    const hwnas_recipe_call call = {.recipe = p->arguments[RECIPE],
                                    .options = {"--work", p->arguments[WORK], "--check"},
                                    .arch = arch,
                                    .server = &p->server,
                                    .stop = p->base.stop};
    const hwnas_status status = hwnas_recipe_run(&told, &call);
    hwnas_arch_free(arch);
    TRY(status);
    json_decref(told);
    return HWNAS_OK;
}

/* The checkpoint of a whole training, and one that was being written. It may be as large as the
 * network, and its training would only go on if another search asked less of it. */
static void forget(const hwnas_training_program *p, hwnas_digest digest)
{
    static const char *const ends[] = {"pt", "pt.part"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *path = hwnas_printf("%s/%s.%s", p->arguments[WORK], digest.hex, ends[i]);
        unlink(path);
        free(path);
    }
}

/* ---- "RECIPE#KEY=VALUE,..." ---- */

/* A whole training, and as many cheaper ones as the recipe has. What is wrong in it is told by the
 * trainer, with the rest. */
static double count_rungs(const char *recipe)
{
    enum { MAX_BYTES = 1 << 20 };
    char *text = NULL;
    size_t length, n = 0;
    hwnas_yaml *root;
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_status status = hwnas_file_read_text(&text, &length, recipe, MAX_BYTES);
    if (status == HWNAS_OK)
        status = hwnas_yaml_parse(&root, arena, recipe, text, length);
    const hwnas_yaml *rungs = status == HWNAS_OK ? hwnas_yaml_get(root, "rungs") : NULL;
    if (rungs && rungs->kind == HWNAS_YAML_SEQUENCE)
        n = rungs->n < HWNAS_MAX_RUNGS ? rungs->n : HWNAS_MAX_RUNGS - 1;
    if (status != HWNAS_OK)
        hwnas_error_clear();
    hwnas_arena_free(arena);
    free(text);
    return (double)n + 1;
}

/* recipe.yaml of the space NAME: recipe.NAME.csv, where the search is started. */
static char *results_file(const char *recipe, const hwnas_space *space)
{
    const char *slash = strrchr(recipe, '/'), *name = slash ? slash + 1 : recipe;
    const char *dot = strrchr(name, '.');
    return hwnas_printf("%.*s.%s.csv", dot ? (int)(dot - name) : (int)strlen(name), name,
                        space->name);
}

/* Each epoch is one more look: on real curves (docs/training.md) one in twenty trainings that were
 * worth it is lost so. Programs of others are ended only where the user says so: what they print
 * may be meant otherwise. */
static const double GIVE_UP = 0.02;

static hwnas_status open_train(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = hwnas_file_name_length(rest);
    hwnas_training_program *p = hwnas_training_program_new("train", space);
    char *recipe = hwnas_printf("%.*s", (int)n, rest), *options = NULL;
    const hwnas_place place = {.file = recipe};
    p->check = check;
    p->forget = forget;
    p->give_up = GIVE_UP;
    if (rest[n] == '#') {
        options = hwnas_strdup(rest + n + 1);
        TRY_OUT(hwnas_training_program_set_options(p, options));
        if (p->n_rungs > 1) {
            status =
                hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'rungs' is of a program of your own"),
                           "a recipe has its cheaper trainings itself, as rungs: [...]");
            goto out;
        }
    }
    if (!hwnas_file_exists(recipe)) {
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_NOT_FOUND, *recipe ? &place : NULL,
                                  "there is no such recipe of a training"),
                       "write accuracy: train:RECIPE.yaml; docs/training.md has one to begin with");
        goto out;
    }
    const char *slash = strrchr(recipe, '/');
    p->name = hwnas_printf("train:%s", slash ? slash + 1 : recipe);
    p->cache = p->cache ? p->cache : results_file(recipe, space);
    p->n_rungs = count_rungs(recipe);
    make_command_line(p, recipe);
    TRY_OUT(hwnas_training_program_check_program(p->arguments[0]));
    TRY_OUT(hwnas_training_program_open_results(p));
    *out = &p->base;
    p = NULL;
out:
    free(options);
    free(recipe);
    hwnas_predictor_free((hwnas_predictor *)p);
    return status;
}

const hwnas_predictor_ops hwnas_predictor_train_recipe = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "train",
    .heeds_stop = true,
    .open = open_train,
};
