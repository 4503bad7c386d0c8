/* export: one network of a study or a space, in a format that others read. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "device/calibrate.h"
#include "graph/elaborate.h"
#include "onnx/onnx.h"
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

/* The network as a device gets it: folded, and of bytes if that is asked for, with ranges of random
 * inputs. */
static hwnas_status write_folded(const char *path, const hwnas_arch *arch, int batch,
                                 hwnas_precision precision)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_device_options with = {.threads = 1};
    const hwnas_exec_options options = {.precision = precision};
    hwnas_graph *graph = NULL, *folded = NULL, *quantized = NULL;
    hwnas_device *cpu = NULL;
    int *origin = NULL;
    void *bytes = NULL;
    size_t length;
    TRY_OUT(hwnas_graph_build(&graph, arch, batch));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    if (precision == HWNAS_S8) {
        TRY_OUT(hwnas_device_open(&cpu, "cpu", &with));
        TRY_OUT(hwnas_device_quantize(&quantized, &origin, cpu, folded, &options,
                                      HWNAS_QUANTIZE_FILE));
    }
    TRY_OUT(hwnas_onnx_write(&bytes, &length, quantized ? quantized : folded, HWNAS_ONNX_VALUES));
    TRY_OUT(hwnas_file_write(path, bytes, length));
out:
    free(bytes);
    free(origin);
    hwnas_device_close(cpu);
    hwnas_graph_free(quantized);
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
    return status;
}

static hwnas_status write_network(const char *space_name, const char *code, int batch,
                                  const char *format, const char *dtype, bool is_folded,
                                  const char *path)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    hwnas_precision precision;
    TRY(hwnas_precision_find(&precision, dtype));
    if (precision != HWNAS_F32 && (precision != HWNAS_S8 || strcmp(format, "onnx")))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--dtype is f32, or s8 with --format onnx");
    if (is_folded && strcmp(format, "onnx"))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--fold goes with --format onnx");
    TRY(hwnas_model_pick(&space, &arch, space_name, code));
    batch = batch ? batch : 1;
    hwnas_status status = is_folded || precision == HWNAS_S8
                              ? write_folded(path, arch, batch, precision)
                              : hwnas_export(path, format, arch, batch);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_cmd_export(int argc, char **argv)
{
    const char *study = NULL, *space = NULL, *code = NULL, *format = NULL, *path = NULL,
               *dtype = "f32";
    long trial = -1, batch = 0;
    bool best = false, is_folded = false, done;
    int n;
    const hwnas_option options[] = {
        {"best", 0, HWNAS_OPTION_FLAG, &best, NULL, "the winner (the default)"},
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial of the study"},
        {"space", 0, HWNAS_OPTION_TEXT, &space, "SPACE",
         "a network of this space instead of a study"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which one"},
        {"format", 'f', HWNAS_OPTION_TEXT, &format, "NAME", "onnx, pytorch or yaml"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "NAME",
         "f32, or s8: an ONNX file of bytes (QDQ), ranges of random inputs"},
        {"fold", 0, HWNAS_OPTION_FLAG, &is_folded, NULL,
         "an ONNX file with BatchNorm in its convolutions and no dead branches"},
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
        return write_network(space, code, (int)batch, format, dtype, is_folded, path);
    char *picked_space = NULL, *picked_code = NULL;
    int picked_batch = (int)batch;
    hwnas_status status = pick(&picked_space, &picked_code, &picked_batch, study, trial);
    if (status == HWNAS_OK)
        status =
            write_network(picked_space, picked_code, picked_batch, format, dtype, is_folded, path);
    free(picked_space);
    free(picked_code);
    return status;
}
