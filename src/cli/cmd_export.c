/* export: one network of a study or a space, in a format that others read. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "export/exporter.h"
#include "cli/model.h"
#include "study/settings.h"
#include "study/summary.h"

static const hwnas_usage usage = {
    .synopsis = "export STUDY",
    .summary = "Writes the winner (or another trial) of a study, or any network of a space.",
    .notes = "Formats: onnx, pytorch, yaml.\n"
             "hwnas export quickstart.db --format pytorch --out best.py\n"
             "hwnas export --space accel_nasbench --arch CODE --format onnx --out net.onnx",
    .max_arguments = 1};

/* The space and the architecture of a study's trial. */
static hwnas_status pick(char **space, char **code, int *batch, const char *study, long number)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = study};
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    TRY_OUT(hwnas_store_open(&store, study, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, study));
    if (number < 0)
        number = hwnas_summary_winner(summary);
    if (number < 0 || (size_t)number >= summary->n_trials) {
        status = number < 0 ? hwnas_fail(HWNAS_E_INFEASIBLE, &place,
                                         "no trial of the study meets the constraints")
                            : hwnas_fail(HWNAS_E_NOT_FOUND, &place,
                                         "the study has %zu trials, none is %ld", summary->n_trials,
                                         number);
        goto out;
    }
    *space = hwnas_strdup(json_string_value(json_object_get(summary->identity, "space")));
    *code = hwnas_strdup(summary->trials[number].code);
    hwnas_settings settings = hwnas_settings_cut(*code, &summary->goals);
    if (!*batch)
        *batch = settings.batch;
out:
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}

static hwnas_status write_network(const char *space_name, const char *code, int batch,
                                  const char *format, const char *path)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    TRY(hwnas_model_pick(&space, &arch, space_name, code));
    hwnas_status status = hwnas_export(path, format, arch, batch ? batch : 1);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_cmd_export(int argc, char **argv)
{
    const char *study = NULL, *space = NULL, *code = NULL, *format = NULL, *path = NULL;
    long trial = -1, batch = 0;
    bool best = false, done;
    int n;
    const hwnas_option options[] = {
        {"best", 0, HWNAS_OPTION_FLAG, &best, NULL, "the winner (the default)"},
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial of the study"},
        {"space", 0, HWNAS_OPTION_TEXT, &space, "SPACE",
         "a network of this space instead of a study"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which one"},
        {"format", 'f', HWNAS_OPTION_TEXT, &format, "NAME", "onnx, pytorch or yaml"},
        {"out", 'o', HWNAS_OPTION_TEXT, &path, "FILE", "file to write"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "batch size of an ONNX file"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &study, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!study == !space)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "give a study or --space, one of them"),
                          "hwnas export quickstart.db --format pytorch --out best.py");
    if (!format || !path)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "%s is missing", format ? "--out" : "--format"),
            "hwnas export quickstart.db --format pytorch --out best.py");
    if ((study && code) || (space && (best || trial >= 0)))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--arch goes with --space, --trial and --best with a study");
    if (best && trial >= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--best and --trial exclude each other");
    if (batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--batch must be at most %d", 1 << 20);
    if (space)
        return write_network(space, code, (int)batch, format, path);
    char *picked_space = NULL, *picked_code = NULL;
    int picked_batch = (int)batch;
    hwnas_status status = pick(&picked_space, &picked_code, &picked_batch, study, trial);
    if (status == HWNAS_OK)
        status = write_network(picked_space, picked_code, picked_batch, format, path);
    free(picked_space);
    free(picked_code);
    return status;
}
