/* predictor suggest: networks to train, as files to train from and a table to fill in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cli.h"
#include "export/exporter.h"
#include "graph/elaborate.h"
#include "predict/scratch.h"
#include "predict/suggest.h"
#include "space/table.h"

static const struct {
    const char *format, *suffix;
} files[] = {{"onnx", "onnx"}, {"pytorch", "py"}, {"yaml", "yaml"}};
enum { N_FILES = sizeof files / sizeof *files };

static char *path_of(const char *folder, size_t i, const char *suffix)
{
    return hwnas_printf("%s/net%03zu.%s", folder, i + 1, suffix);
}

/* The table: what a row is, and an empty cell for its result. */
static hwnas_status make_table(hwnas_str *out, const char *space, hwnas_arch *const *archs,
                               size_t n, const char *target, bool has_files)
{
    hwnas_str_addf(out, "space,code,%smacs_count,params_count,%s\n", has_files ? "network," : "",
                   target);
    for (size_t i = 0; i < n; i++) {
        hwnas_graph *graph;
        hwnas_costs costs;
        TRY(hwnas_graph_build(&graph, archs[i], 1));
        hwnas_graph_costs(&costs, graph);
        hwnas_graph_free(graph);
        char *code = hwnas_arch_code(archs[i]);
        hwnas_str_addf(out, "\"%s\",\"%s\",", space, code);
        free(code);
        if (has_files)
            hwnas_str_addf(out, "net%03zu,", i + 1);
        hwnas_str_addf(out, "%lld,%lld,\n", (long long)costs.macs, (long long)costs.params);
    }
    return HWNAS_OK;
}

static hwnas_status write_files(const char *folder, hwnas_arch *const *archs, size_t n,
                                const hwnas_str *table)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < N_FILES; f++) {
            char *path = path_of(folder, i, files[f].suffix);
            const hwnas_status status = hwnas_export(path, files[f].format, archs[i], 1);
            free(path);
            if (status == HWNAS_E_UNSUPPORTED && f)
                hwnas_say(stderr, "net%03zu has no %s: %s\n", i + 1, files[f].format,
                          hwnas_last_error()->message);
            else
                TRY(status);
        }
    char *csv = hwnas_printf("%s/results.csv", folder);
    const hwnas_status status = hwnas_file_write(csv, table->s, table->n);
    free(csv);
    return status;
}

/* All of the directory or nothing: it is made beside its place. */
static hwnas_status write_folder(const char *folder, hwnas_arch *const *archs, size_t n,
                                 const hwnas_str *table)
{
    hwnas_scratch scratch = {0};
    char *where = hwnas_file_beside(folder, ".");
    hwnas_scratch_sweep(where);
    hwnas_status status = hwnas_scratch_open(&scratch, where);
    if (status == HWNAS_OK)
        status = write_files(scratch.folder, archs, n, table);
    if (status == HWNAS_OK)
        status = hwnas_scratch_keep(&scratch, folder);
    hwnas_scratch_close(&scratch);
    free(where);
    return status;
}

/* The name that `predictor import` will find the space by, from wherever it is called. */
static char *lasting_name(const char *space)
{
    char *absolute = hwnas_file_exists(space) ? hwnas_file_real(space) : NULL;
    return absolute ? absolute : hwnas_strdup(space);
}

static hwnas_status suggest(const char *space_name, hwnas_suggest_options *options,
                            const char *data, const char *folder, const char *target)
{
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_table *known = NULL;
    hwnas_str table = {0};
    hwnas_arch **archs = hwnas_alloc(options->n * sizeof *archs);
    char *name = lasting_name(space_name);
    TRY_OUT(hwnas_graph_load_space(&space, space_name));
    if (data) {
        TRY_OUT(hwnas_table_load(&known, space, data));
        options->known = (const hwnas_arch *const *)known->archs;
        options->n_known = known->n;
    }
    TRY_OUT(hwnas_suggest(archs, space, options));
    TRY_OUT(make_table(&table, name, archs, options->n, target, folder != NULL));
    if (folder) {
        TRY_OUT(write_folder(folder, archs, options->n, &table));
        hwnas_say(stdout,
                  "wrote %zu networks to %s\nTrain each as you would train the winner, fill their "
                  "results into %s/results.csv,\nthen: hwnas predictor import %s/results.csv\n",
                  options->n, folder, folder, folder);
    } else {
        TRY_OUT(hwnas_print_text(&table));
    }
out:
    for (size_t i = 0; i < options->n; i++)
        hwnas_arch_free(archs[i]);
    free(archs);
    free(name);
    hwnas_str_done(&table);
    hwnas_table_free(known);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_cmd_predictor_suggest(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor suggest SPACE",
        .summary =
            "Picks the networks of a space whose training would teach most about the others,\n"
            "and writes them as ONNX, PyTorch and YAML with a table to fill in; without\n"
            "--out it prints the table.",
        .notes = "hwnas predictor suggest nas_bench_201 -n 20 --out first\n"
                 "hwnas predictor import first/results.csv",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *space, *folder = NULL, *data = NULL, *target = "accuracy_pct";
    long n = 20, seed = 0, pool = 0;
    bool done;
    int n_arguments;
    hwnas_suggest_options suggest_options = {0};
    const hwnas_option options[] = {
        {"number", 'n', HWNAS_OPTION_INT, &n, "N", "how many networks (20)"},
        {"out", 'o', HWNAS_OPTION_TEXT, &folder, "DIR", "directory to make"},
        {"data", 0, HWNAS_OPTION_TEXT, &data, "FILE.csv", "networks with results already"},
        {"target", 't', HWNAS_OPTION_TEXT, &target, "COLUMN", "the result's column (accuracy_pct)"},
        {"proxy", 0, HWNAS_OPTION_TEXT, &suggest_options.proxy, "NAME",
         "spread over this proxy as well"},
        {"pool", 0, HWNAS_OPTION_INT, &pool, "N", "networks to pick from (500)"},
        {"seed", 0, HWNAS_OPTION_INT, &seed, "N", "of the networks to pick from (0)"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &space, &n_arguments, &done));
    if (done)
        return HWNAS_OK;
    if (n < 1 || n > 1000)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "-n must be between 1 and 1000");
    if (pool > 5000)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--pool must be at most 5000");
    hwnas_place place = {.file = folder};
    if (folder && !access(folder, F_OK))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "there is such a file already"),
                          "name a directory that is not there yet; results filled in before stay "
                          "where they are");
    suggest_options.n = (size_t)n;
    suggest_options.pool = (size_t)pool;
    suggest_options.seed = (uint64_t)seed;
    return suggest(space, &suggest_options, data, folder, target);
}
