/* predict_train.c: the kind `train`: "train:RECIPE[#KEY=VALUE,...]", the program that ships as
 * training/train.py with a recipe (docs/training.md). It is a command like others, but its recipe
 * and its data are checked before the first training. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/home.h"
#include "base/str.h"
#include "predict/command.h"
#include "predict/program.h"

/* Reading and decoding all samples takes its time. */
#define CHECK_SECONDS 3600.0

/* The words of a command line, in one block. */
static void set_words(hwnas_command *p, char *const *words, size_t n)
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
static void make_command_line(hwnas_command *p, const char *recipe)
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

/* One line of JSON: what is wrong, or how many samples there are. */
static hwnas_status read_check(void *context, const char *line)
{
    const hwnas_command *p = context;
    hwnas_status status = HWNAS_OK;
    const char *wrong = NULL, *file = NULL, *hint = NULL;
    int row = 0, column = 0;
    json_t *told = json_loads(line, 0, NULL);
    if (!json_is_object(told))
        status =
            hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' could not be checked: '%.200s'", p->name, line);
    else
        json_unpack(told, "{s?s, s?s, s?i, s?i, s?s}", "wrong", &wrong, "file", &file, "line", &row,
                    "column", &column, "hint", &hint);
    if (wrong) {
        const hwnas_place place = {.file = file, .line = row, .column = column};
        status = hwnas_fail(HWNAS_E_INPUT, file ? &place : NULL, "%s", wrong);
        if (hint)
            hwnas_hint(status, "%s", hint);
    }
    json_decref(told);
    return status;
}

static hwnas_status is_ready(void *context, hwnas_run *run)
{
    (void)context;
    run->state = HWNAS_RUN_READY;
    return HWNAS_OK;
}

static hwnas_status is_done(void *context, hwnas_run *run)
{
    (void)context;
    (void)run;
    return HWNAS_OK;
}

/* With a network of the space: does it take these samples, and are its classes theirs? */
static hwnas_status check(hwnas_command *p)
{
    hwnas_status status = HWNAS_OK;
    hwnas_handed handed = {0};
    char *arguments[HWNAS_MAX_ARGUMENTS], option[] = "--check";
    hwnas_rng rng = hwnas_rng_new(0, 0x636865636b); /* the stream "check" */
    hwnas_arch *arch = hwnas_arch_new(p->base.space);
    hwnas_arch_sample(arch, &rng);
    TRY_OUT(hwnas_handed_make(&handed, arch));
    hwnas_command_arguments(arguments, p, &handed);
    arguments[p->n_words + 2] = option;
    arguments[p->n_words + 3] = NULL;
    hwnas_run run = {.arguments = arguments, .name = p->name, .environment = handed.environment};
    const hwnas_programs programs = {.jobs = 1,
                                     .timeout = CHECK_SECONDS,
                                     .stop = p->base.stop,
                                     .begin = is_ready,
                                     .done = is_done,
                                     .read = read_check,
                                     .context = p};
    TRY_OUT(hwnas_programs_run(&programs, &run, 1));
out:
    hwnas_handed_done(&handed);
    hwnas_arch_free(arch);
    return status;
}

/* ---- "RECIPE#KEY=VALUE,..." ---- */

/* recipe.yaml of the space NAME: recipe.NAME.csv, where the search is started. */
static char *results_file(const char *recipe, const hwnas_space *space)
{
    const char *slash = strrchr(recipe, '/'), *name = slash ? slash + 1 : recipe;
    const char *dot = strrchr(name, '.');
    return hwnas_printf("%.*s.%s.csv", dot ? (int)(dot - name) : (int)strlen(name), name,
                        space->name);
}

static hwnas_status open_train(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = hwnas_file_name_length(rest);
    hwnas_command *p = hwnas_command_new("train", space);
    char *recipe = hwnas_printf("%.*s", (int)n, rest), *options = NULL;
    const hwnas_place place = {.file = recipe};
    p->check = check;
    if (rest[n] == '#') {
        options = hwnas_strdup(rest + n + 1);
        TRY_OUT(hwnas_command_set_options(p, options));
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
    make_command_line(p, recipe);
    TRY_OUT(hwnas_command_check_program(p->arguments[0]));
    TRY_OUT(hwnas_command_open_results(p));
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
