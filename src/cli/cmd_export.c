/* export: one network of a study or a space, in a format that others read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/data_options.h"
#include "export/exporter.h"
#include "onnx/onnx.h"
#include "profile/model_load.h"
#include "study/summary.h"
#include "study/write_network.h"

static const hwnas_usage usage = {
    .synopsis = "export STUDY|MODEL.onnx",
    .summary =
        "Writes the winner (or another trial) of a study, any network of a space, or an ONNX file.",
    .notes = "Formats: onnx, pytorch, yaml; of an ONNX file pytorch, with its weights beside it.\n"
             "hwnas export quickstart.db --format pytorch --out best.py\n"
             "hwnas export --space accel_nasbench --arch CODE --format onnx --out net.onnx\n"
             "hwnas export net.onnx --format pytorch --out net.py\n"
             "hwnas export net.onnx --format onnx --dtype s8 --data val.npz --out small.onnx",
    .max_arguments = 1};

/* Of a study, or of a space. */
typedef struct picked {
    char *space, *code;
    hwnas_network_file file;
} picked;

/* What ranges are found with. */
typedef struct samples {
    hwnas_data_arguments data;
    long calibrate;
} samples;

/* The space and the architecture of a study's trial, and how it was measured. */
static hwnas_status pick(picked *out, const char *study, long number)
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
        if (number < 0)
            TRY_OUT(hwnas_evidence_check(&summary->evidence));
        status = number < 0 ? hwnas_fail(HWNAS_E_INFEASIBLE, &place,
                                         "no trial of the study meets the constraints")
                            : hwnas_fail(HWNAS_E_NOT_FOUND, &place,
                                         "the study has %zu trials, none is %ld", summary->n_trials,
                                         number);
        goto out;
    }
    out->space = hwnas_strdup(json_string_value(json_object_get(summary->identity, "space")));
    out->code = hwnas_strdup(summary->trials[number].code);
    hwnas_settings settings = hwnas_settings_cut(out->code, &summary->job);
    if (!out->file.batch)
        out->file.batch = settings.batch;
    out->file.precision = hwnas_trial_precision(&summary->job, settings, -1);
out:
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}

static hwnas_status write_picked(picked *p, const char *dtype)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    const bool is_onnx = !strcmp(p->file.format, "onnx");
    if (dtype)
        TRY(hwnas_precision_find(&p->file.precision, dtype));
    if (dtype && p->file.precision != HWNAS_F32 && (p->file.precision != HWNAS_S8 || !is_onnx))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--dtype is f32, or s8 with --format onnx");
    if (p->file.is_folded && !is_onnx)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--fold goes with --format onnx");
    TRY(hwnas_model_pick(&space, &arch, p->space, p->code));
    p->file.batch = p->file.batch ? p->file.batch : 1;
    hwnas_status status = hwnas_network_write(&p->file, arch);
    const char *note = hwnas_network_file_note(&p->file);
    if (status == HWNAS_OK && *note)
        hwnas_say(stderr, "hwnas: note: %s%s\n", p->file.path, note);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

/* An ONNX file as PyTorch. */
static hwnas_status write_model(const char *model, const char *format, const char *path)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    char *weights = NULL;
    if (strcmp(format, "pytorch"))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "an ONNX file is written as pytorch, not as %s",
                          format);
    if (!hwnas_ends_with(path, ".py"))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' does not end in .py", path),
                          "the weights go beside it, with .safetensors in the place of .py");
    TRY_OUT(hwnas_onnx_load(&graph, model, NULL));
    TRY_OUT(hwnas_export_graph(path, &weights, graph));
    hwnas_say(stderr, "hwnas: note: the weights are in %s\n", weights);
out:
    free(weights);
    hwnas_graph_free(graph);
    return status;
}

/* A network in 8-bit integers, with ranges of the user's samples. */
static hwnas_status write_calibrated(const char *model, const char *code, int batch,
                                     const char *path, const samples *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_network *network = NULL;
    hwnas_dataset *data = NULL;
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    options.batch = batch;
    options.takes_own_batch = !batch;
    TRY_OUT(hwnas_network_open(&network, model, code, &options));
    TRY_OUT(hwnas_data_arguments_open(&data, network, &s->data, true));
    TRY_OUT(hwnas_dataset_quantize(data, network, path, s->calibrate));
out:
    hwnas_dataset_close(data);
    hwnas_network_close(network);
    return status;
}

hwnas_status hwnas_cmd_export(int argc, char **argv)
{
    const char *study = NULL, *space = NULL, *code = NULL, *format = NULL, *path = NULL,
               *dtype = NULL;
    long trial = -1, batch = 0;
    bool best = false, is_folded = false, done;
    int n;
    samples s = {0};
    const hwnas_option options[] = {
        {"best", 0, HWNAS_OPTION_FLAG, &best, NULL, "the winner (the default)"},
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial of the study"},
        {"space", 0, HWNAS_OPTION_TEXT, &space, "SPACE",
         "a network of this space instead of a study"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which one"},
        {"format", 'f', HWNAS_OPTION_TEXT, &format, "NAME", "onnx, pytorch or yaml"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "NAME",
         "f32; s8: ONNX in int8 (QDQ), by --data or random inputs; of a study: as measured"},
        {"data", 0, HWNAS_OPTION_LIST, &s.data.files, "FILE",
         "s8: samples that ranges of activations are found with (docs/evaluate.md)"},
        {"calibrate", 0, HWNAS_OPTION_INT, &s.calibrate, "N", "the first N of them (64)"},
        {"x", 0, HWNAS_OPTION_TEXT, &s.data.x, "NAME", NULL},
        HWNAS_RANGE_OPTIONS(s.data),
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
    TRY(hwnas_file_check_output(path, study ? study : space));
    for (int i = 0; i < s.data.files.n; i++)
        TRY(hwnas_file_check_output(path, s.data.files.texts[i]));
    if (s.data.files.n && (!dtype || strcmp(dtype, "s8") || strcmp(format, "onnx") || is_folded))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--data goes with --format onnx --dtype s8");
    if (s.data.files.n && study && hwnas_ends_with(study, ".onnx") && !best && trial < 0)
        return write_calibrated(study, NULL, (int)batch, path, &s);
    if (study && hwnas_ends_with(study, ".onnx")) {
        if (best || trial >= 0 || batch || dtype || is_folded)
            return hwnas_fail(HWNAS_E_USAGE, NULL,
                              "of an ONNX file --format pytorch and --out have a meaning, and "
                              "--format onnx --dtype s8 with --data");
        return write_model(study, format, path);
    }
    picked p = {.file = {.path = path,
                         .format = format,
                         .precision = HWNAS_F32,
                         .batch = (int)batch,
                         .is_folded = is_folded}};
    hwnas_status status = HWNAS_OK;
    if (space) {
        p.space = hwnas_strdup(space);
        p.code = code ? hwnas_strdup(code) : NULL;
    } else {
        status = pick(&p, study, trial);
    }
    if (status == HWNAS_OK && s.data.files.n)
        status = write_calibrated(p.space, p.code, p.file.batch ? p.file.batch : 1, path, &s);
    else if (status == HWNAS_OK)
        status = write_picked(&p, dtype);
    free(p.space);
    free(p.code);
    return status;
}
