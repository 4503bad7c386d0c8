/* export: one network of a study or a space, in a format that others read. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/data_options.h"
#include "cli/sweep_lists.h"

static const hwnas_usage usage = {
    .synopsis = "export STUDY|MODEL.onnx|SPACE",
    .summary =
        "Writes the winner (or another trial) of a study, any network of a space, or an ONNX file.",
    .notes = "Formats: onnx, pytorch, yaml; of an ONNX file pytorch, with its weights beside it.\n"
             "hwnas export quickstart.db --format pytorch --out best.py\n"
             "hwnas export --space accel_nasbench --arch CODE --format onnx --out net.onnx\n"
             "hwnas export fashion_mnist --supernet net.py\n"
             "hwnas export net.onnx --format onnx --dtype mixed --data val.npz --out fast.onnx",
    .max_arguments = 1};

/* What ranges are found with, and how layers are chosen. */
typedef struct samples {
    hwnas_data_arguments data;
    long calibrate, threads;
    double max_error; /* percent; HWNAS_NO_MAX_ERROR: as the library says */
    double max_loss;  /* points; HWNAS_NO_MAX_LOSS: as the library says */
} samples;

static bool is_onnx(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && !strcmp(dot, ".onnx");
}

/* What was written, for other programs. `note`: NULL where there is nothing to be known of it. */
static hwnas_status print_json(const char *of, const char *path, const char *format,
                               const char *note)
{
    return hwnas_print_json(json_pack("{s:s, s:i, s:s, s:s, s:s, s:s?}", "format", "hwnas.export",
                                      "version", 1, "of", of, "file", path, "as", format, "note",
                                      note));
}

static hwnas_status write_file(char **note, const hwnas_network *network, const char *path,
                               const char *format, hwnas_export_options *how)
{
    how->note = note;
    TRY(hwnas_network_export(network, path, format, how));
    if (*note)
        hwnas_say(stderr, "hwnas: note: %s\n", *note);
    return HWNAS_OK;
}

/* A network in 8-bit integers, with ranges of the user's samples. */
static hwnas_status write_calibrated(const hwnas_network *network, const char *path,
                                     const samples *s)
{
    hwnas_dataset *data;
    TRY(hwnas_data_arguments_open(&data, network, &s->data, true));
    const hwnas_status status = hwnas_dataset_quantize(data, network, path, s->calibrate);
    hwnas_dataset_close(data);
    return status;
}

static void show_phase(void *context, const char *phase, size_t done, size_t of)
{
    char words[128];
    if (of)
        snprintf(words, sizeof words, "%s: %zu of %zu", phase, done, of);
    else
        snprintf(words, sizeof words, "%s", phase);
    hwnas_show_progress(context, words);
}

/* A network of which those layers are in 8-bit integers that are worth it. */
static hwnas_status write_mixed(const hwnas_network *network, hwnas_mixing mixing, const char *path,
                                const samples *s, bool as_json)
{
    hwnas_dataset *data = NULL;
    hwnas_report *report;
    hwnas_network_mix_options how = HWNAS_NETWORK_MIX_OPTIONS_INIT;
    TRY(hwnas_max_error_read(&how.max_error, s->max_error, true));
    TRY(hwnas_choice_read(&how.max_loss, s->max_loss, &s->data, true));
    how.mixing = mixing;
    how.calibrate = s->calibrate;
    how.threads = (int)s->threads;
    how.progress = show_phase;
    how.cancel = hwnas_stop_on_signals();
    if (s->data.files.n)
        TRY(hwnas_data_arguments_open(&data, network, &s->data, false));
    hwnas_status status = hwnas_network_mix(&report, network, data, path, &how);
    hwnas_show_progress(NULL, NULL);
    hwnas_dataset_close(data);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
    return status;
}

/* Somebody gives a network's name where a study is wanted: `hwnas export resnet50`. */
static hwnas_status fail_for_space(const char *study)
{
    hwnas_space *space;
    if (hwnas_space_open(&space, study) != HWNAS_OK) /* why does not matter */
        return HWNAS_OK;
    hwnas_space_close(space);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' is the name of a space, and no study", study),
        "hwnas export --space %s --format onnx --out net.onnx", study);
}

/* All networks of a space in one module. */
static hwnas_status write_supernet(const char *name, const char *path, bool as_json)
{
    hwnas_space *space;
    TRY(hwnas_space_open(&space, name));
    hwnas_status status = hwnas_space_write_supernet(space, path);
    hwnas_space_close(space);
    return status == HWNAS_OK && as_json ? print_json(name, path, "supernet", NULL) : status;
}

hwnas_status hwnas_cmd_export(int argc, char **argv)
{
    const char *study = NULL, *space = NULL, *code = NULL, *format = NULL, *path = NULL,
               *dtype = NULL, *supernet = NULL;
    long trial = -1, batch = 0;
    hwnas_export_options how = HWNAS_EXPORT_OPTIONS_INIT;
    hwnas_network_options open = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_network *network;
    char *note = NULL;
    bool best = false, as_json = false, done;
    int n;
    samples s = {.threads = 1, .max_error = HWNAS_NO_MAX_ERROR, .max_loss = HWNAS_NO_MAX_LOSS};
    const hwnas_option options[] = {
        {"best", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &best, NULL, "the winner (the default)"},
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial of the study"},
        {"space", 0, HWNAS_OPTION_TEXT, &space, "SPACE",
         "a network of this space instead of a study"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &code, "CODE", "which one"},
        {"format", 'f', HWNAS_OPTION_TEXT, &format, "NAME", "onnx, pytorch or yaml"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "NAME",
         "f32; ONNX: s8, w8, w4, mixed, mixed-bf16; of a study: as measured"},
        {"data", 0, HWNAS_OPTION_LIST, &s.data.files, "FILE",
         "s8, mixed: samples that give ranges (docs/evaluate.md); random inputs"},
        HWNAS_CHOICE_OPTIONS(s.data, s.max_loss),
        {"max-error", 0, HWNAS_OPTION_NUMBER, &s.max_error, "PERCENT",
         "mixed: largest difference from f32, of the largest output (5)"},
        {"threads", 't', HWNAS_OPTION_ALL | HWNAS_OPTION_RARE, &s.threads, "N",
         "mixed: threads that layers are timed with, or all (1)"},
        {"calibrate", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &s.calibrate, "N",
         "s8: ranges come from the first N samples (64)"},
        HWNAS_SAMPLE_OPTIONS(s.data),
        {"fold", 0, HWNAS_OPTION_FLAG, &how.is_folded, NULL,
         "an ONNX file with BatchNorm in the layers before and no dead branches"},
        {"supernet", 0, HWNAS_OPTION_TEXT, &supernet, "FILE",
         "all networks of a space as one PyTorch module with shared weights"},
        {"out", 'o', HWNAS_OPTION_TEXT, &path, "FILE", "file to write"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "batch size of an ONNX file"},
        {"shape", 0, HWNAS_OPTION_TEXT, &open.shape, "SHAPES",
         "open dimensions of an ONNX file: ids=1x128,mask=1x128; by name n=128"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object about the file"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &study, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!study == !space)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "give a study or --space, one of them"),
                          "hwnas export quickstart.db --format pytorch --out best.py");
    if (supernet && (code || best || trial >= 0 || format || path || dtype || batch ||
                     s.data.files.n || how.is_folded))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "--supernet goes with a space, and with --json alone"),
            "hwnas export fashion_mnist --supernet net.py");
    if (supernet)
        return write_supernet(study ? study : space, supernet, as_json);
    if (study && access(study, F_OK) != 0 && !strchr(study, ':'))
        TRY(fail_for_space(study));
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
    const bool is_file = study && is_onnx(study), writes_onnx = !strcmp(format, "onnx");
    const hwnas_mixing mixing = dtype ? hwnas_mixing_find(dtype) : HWNAS_UNMIXED;
    const bool is_mixed = mixing != HWNAS_UNMIXED, has_data = s.data.files.n > 0;
    const bool makes_bytes = is_mixed || has_data;
    if (makes_bytes &&
        (!dtype || (!is_mixed && strcmp(dtype, "s8")) || !writes_onnx || how.is_folded))
        return hwnas_fail(
            HWNAS_E_USAGE, NULL,
            "--data goes with --format onnx --dtype s8 or mixed, and mixed with --format onnx");
    double limit;
    TRY(hwnas_max_error_read(&limit, s.max_error, is_mixed));
    TRY(hwnas_choice_read(&limit, s.max_loss, &s.data, is_mixed));
    if (dtype && !is_mixed)
        TRY(hwnas_precision_find(&how.precision, dtype));
    const bool packs = how.precision == HWNAS_W8 || how.precision == HWNAS_W4;
    if (is_file && (best || trial >= 0))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--best and --trial go with a study");
    if (is_file && !makes_bytes && (batch || how.is_folded))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "%s goes with a network of a study or a space, not with an ONNX file",
                          batch ? "--batch" : "--fold");
    if (is_file && !makes_bytes && !packs &&
        (how.precision != HWNAS_F32 || strcmp(format, "pytorch")))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "an ONNX file is written as pytorch, not as %s%s%s",
                       format, dtype ? " in " : "", dtype ? dtype : ""),
            "or as onnx: with --dtype mixed, w8 or w4, or with --dtype s8 and --data");
    if (how.precision != HWNAS_F32 && !(writes_onnx && (how.precision == HWNAS_S8 || packs)))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--dtype is f32, or s8, w8 or w4 with --format onnx");
    if (how.is_folded && !writes_onnx)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--fold goes with --format onnx");
    how.as_measured = !dtype;
    open.batch = (int)batch;
    open.takes_own_batch = !batch;
    if (study && !is_file)
        TRY(hwnas_network_open_trial(&network, study, trial, &open));
    else
        TRY(hwnas_network_open(&network, is_file ? study : space, code, &open));
    hwnas_status status = is_mixed   ? write_mixed(network, mixing, path, &s, as_json)
                          : has_data ? write_calibrated(network, path, &s)
                                     : write_file(&note, network, path, format, &how);
    hwnas_network_close(network);
    if (status == HWNAS_OK && as_json && !is_mixed)
        status = print_json(study ? study : space, path, format, note);
    hwnas_free(note);
    return status;
}
