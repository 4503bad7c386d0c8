/* train: a network of a space is trained to the end by a recipe. */
#include <hwnas/training.h>

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verbosity.h"

static const hwnas_usage usage = {
    .synopsis = "train MODEL",
    .summary = "Trains a network by a recipe (docs/training.md), and tells how good the ONNX\n"
               "file is that it writes. What was killed goes on where it was.",
    .notes = "hwnas train best.yaml --recipe recipe.yaml\n"
             "hwnas train nas_bench_201 --arch 421211 --recipe recipe.yaml --out cell",
    .min_arguments = 1,
    .max_arguments = 1};

typedef struct arguments {
    const char *model, *code, *recipe, *out;
    bool overwrite, as_json;
} arguments;

static void show_line(void *context, const char *line)
{
    (void)context;
    if (!strncmp(line, "epoch ", 6))
        hwnas_say(stderr, "%s\n", line);
}

/* best.yaml: best-trained. */
static void default_out(char *out, size_t size, const char *model)
{
    const size_t n = strlen(model);
    const int end = n > 5 && !strcmp(model + n - 5, ".yaml") ? (int)n - 5 : (int)n;
    snprintf(out, size, "%.*s-trained", end, model);
}

static hwnas_status train(const arguments *a)
{
    char name[4096];
    hwnas_status status = HWNAS_OK;
    hwnas_network *network = NULL;
    hwnas_report *report;
    hwnas_network_training_options options = HWNAS_NETWORK_TRAINING_OPTIONS_INIT;
    default_out(name, sizeof name, a->model);
    options.recipe = a->recipe;
    options.out = a->out ? a->out : name;
    options.overwrite = a->overwrite;
    options.cancel = hwnas_stop_on_signals();
    options.says = hwnas_log_is_quiet() ? NULL : show_line;
    TRY_OUT(hwnas_network_open(&network, a->model, a->code, NULL));
    TRY_OUT(hwnas_network_train(&report, network, &options));
    status = hwnas_print_report(report, a->as_json ? HWNAS_JSON : HWNAS_TEXT);
out:
    hwnas_network_close(network);
    return status;
}

hwnas_status hwnas_cmd_train(int argc, char **argv)
{
    arguments a = {0};
    bool done;
    int n;
    const hwnas_option options[] = {
        {"recipe", 0, HWNAS_OPTION_TEXT, &a.recipe, "FILE", "how it is trained"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &a.code, "CODE", "which network of a space"},
        {"out", 'o', HWNAS_OPTION_TEXT, &a.out, "PREFIX", "what files begin with (MODEL-trained)"},
        {"overwrite", 0, HWNAS_OPTION_FLAG, &a.overwrite, NULL, "begin anew"},
        {"json", 0, HWNAS_OPTION_FLAG, &a.as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &a.model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!a.recipe)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--recipe is missing"),
                          "hwnas train best.yaml --recipe recipe.yaml; docs/training.md has one");
    return train(&a);
}
