#include "study/write_network.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/ranges.h"
#include "export/exporter.h"
#include "graph/pack_weights.h"
#include "derive/derive.h"
#include "inherit/samples.h"
#include "onnx/onnx.h"
#include "profile/mix_data.h"
#include "study/evaluate.h"

hwnas_status hwnas_graph_write_folded(const char *path, const hwnas_graph *graph,
                                      const hwnas_exec_options *how)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_device_options with = {.threads = 1};
    const int bits = hwnas_precision_weight_bits(how->precision);
    hwnas_graph *folded = NULL, *quantized = NULL;
    hwnas_device *cpu = NULL;
    int *origin = NULL;
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    if (bits)
        TRY_OUT(hwnas_graph_pack_weights(&quantized, &origin, folded, bits));
    if (how->precision == HWNAS_S8) {
        TRY_OUT(hwnas_device_open(&cpu, "cpu", &with));
        TRY_OUT(hwnas_device_quantize(&quantized, &origin, cpu, folded, how, HWNAS_QUANTIZE_FILE));
    }
    status = hwnas_onnx_write_file(path, quantized ? quantized : folded);
out:
    free(origin);
    hwnas_device_close(cpu);
    hwnas_graph_free(quantized);
    hwnas_graph_free(folded);
    return status;
}

static hwnas_status write_folded(const char *path, const hwnas_arch *arch, int batch,
                                 hwnas_precision precision)
{
    const hwnas_exec_options how = {.precision = precision};
    hwnas_graph *graph;
    TRY(hwnas_graph_build_trained(&graph, arch, batch));
    const hwnas_status status = hwnas_graph_write_folded(path, graph, &how);
    hwnas_graph_free(graph);
    return status;
}

static bool is_onnx(const hwnas_network_file *file)
{
    return !strcmp(file->format, "onnx");
}

/* The precision of the file: one that it can be in, else f32. */
static hwnas_precision precision_of(const hwnas_network_file *file)
{
    return is_onnx(file) && hwnas_precision_has_form(file->precision) ? file->precision : HWNAS_F32;
}

/* As few quantizations as the device `cpu` needs, which is what was measured. */
static hwnas_status write_mixed(const hwnas_network_file *file, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_mix_options how = {.threads = 1};
    hwnas_graph *graph = NULL, *mixed = NULL;
    TRY_OUT(hwnas_graph_build_trained(&graph, arch, file->batch));
    TRY_OUT(file->data ? hwnas_mix_data_make(&mixed, file->data, graph, arch->space->name,
                                             file->batch, file->layers, &how)
                       : hwnas_mix_make(&mixed, graph, file->layers, &how));
    status = hwnas_onnx_write_file(file->path, mixed);
out:
    if (status == HWNAS_E_NOT_FOUND)
        hwnas_hint(status, "layers were chosen by these samples, and their ranges are of them: put "
                           "them where they were");
    hwnas_graph_free(mixed);
    hwnas_graph_free(graph);
    return status;
}

static char *mixed_note(const hwnas_network_file *file)
{
    int n_s8 = 0, n_bf16 = 0;
    for (const char *l = file->layers; *l; l++) {
        n_s8 += *l == 's';
        n_bf16 += *l == 'b';
    }
    const bool has_data = file->data && file->data->n;
    char bf16[64] = "";
    if (n_bf16)
        snprintf(bf16, sizeof bf16, ", in bf16 (casts) in %d", n_bf16);
    return hwnas_printf("is in s8 (QDQ) in %d of %zu layers%s, with ranges of %s%s", n_s8,
                        strlen(file->layers), bf16,
                        has_data ? "the samples that chose them"
                                 : "random inputs: calibrate it with data of your own",
                        file->precision == HWNAS_BF16
                            ? "; its floats were measured in bf16, which --dtype bf16 computes"
                            : "");
}

/* The weights by which the network was judged. */
static hwnas_status write_recovered(const hwnas_network_file *file, const hwnas_arch *arch)
{
    hwnas_exec_options how = {.precision = precision_of(file)};
    hwnas_graph *graph;
    if (file->precision == HWNAS_S8)
        TRY(hwnas_samples_calibrate(&how, file->samples, file->batch));
    TRY(hwnas_samples_build(&graph, file->samples, arch, file->batch));
    const hwnas_status status = is_onnx(file) ? hwnas_graph_write_folded(file->path, graph, &how)
                                              : hwnas_export_graph(file->path, NULL, graph);
    hwnas_graph_free(graph);
    return status;
}

hwnas_status hwnas_network_write(const hwnas_network_file *file, const hwnas_arch *arch)
{
    const hwnas_precision precision = precision_of(file);
    if (file->layers && is_onnx(file))
        return write_mixed(file, arch);
    if (file->samples && strcmp(file->format, "yaml"))
        return write_recovered(file, arch);
    if (is_onnx(file) && (file->is_folded || precision != HWNAS_F32))
        return write_folded(file->path, arch, file->batch, precision);
    return hwnas_export(file->path, file->format, arch, file->batch);
}

char *hwnas_network_file_note(const hwnas_network_file *file)
{
    static const char *const as_f32[] = {
        [HWNAS_F32] = "",
        [HWNAS_BF16] = "is in f32, where the network was measured in bf16",
        [HWNAS_F16] = "is in f32, where the network was measured in f16",
        [HWNAS_S8] = "is in f32, where the network was measured in s8: to be quantized",
        [HWNAS_W8] = "is in f32, where the network was measured in w8",
        [HWNAS_W4] = "is in f32, where the network was measured in w4"};
    const int bits = hwnas_precision_weight_bits(precision_of(file));
    if (file->layers)
        return is_onnx(file)
                   ? mixed_note(file)
                   : hwnas_strdup(
                         "is in f32, where some layers of the network were measured in s8");
    if (bits)
        return hwnas_printf("has the weights of its linear layers in %d bits (MatMulNBits, an "
                            "operator of ONNX Runtime's)",
                            bits);
    if (is_onnx(file) && file->precision == HWNAS_S8 && file->samples) {
        const int64_t n = hwnas_samples_calibrated(file->samples, file->batch);
        return hwnas_printf("is in s8 (QDQ), with ranges of %lld sample%s", (long long)n,
                            n == 1 ? "" : "s");
    }
    return hwnas_strdup(
        is_onnx(file) && file->precision == HWNAS_S8
            ? "is in s8 (QDQ), with ranges of random inputs: calibrate it with data of your own"
            : as_f32[file->precision]);
}

static int dtype_of(const hwnas_job *job, hwnas_settings settings, int device)
{
    const hwnas_job_devices *devices = &job->goals.devices;
    for (int i = 0; i < devices->n; i++)
        if ((device < 0 || i == device) && devices->rows[i].dtype)
            return devices->rows[i].dtype;
    return settings.dtype ? settings.dtype : 1 + HWNAS_F32;
}

hwnas_precision hwnas_trial_precision(const hwnas_job *job, hwnas_settings settings, int device)
{
    return hwnas_dtype_precision(dtype_of(job, settings, device));
}

hwnas_mixing hwnas_trial_mixing(const hwnas_job *job, hwnas_settings settings, int device)
{
    return hwnas_dtype_mixing(dtype_of(job, settings, device));
}

char *hwnas_trial_layers(hwnas_precision *floats, const hwnas_trial *trial, const hwnas_job *job,
                         int device, const char *phase)
{
    json_t *mixes = hwnas_mixes_of(trial);
    char *layers = NULL;
    for (int i = 0; i < job->goals.devices.n && !layers; i++) {
        const json_t *mix = json_object_get(mixes, hwnas_job_row_name(&job->goals.devices, i).text);
        const char *word = json_string_value(json_object_get(mix, "layers"));
        const char *rest = json_string_value(json_object_get(mix, "floats"));
        if (!word || !rest || (device >= 0 && i != device) ||
            strcmp(job->goals.devices.rows[i].phase, phase ? phase : "") != 0)
            continue;
        layers = hwnas_strdup(word);
        *floats = strcmp(rest, hwnas_precision_name(HWNAS_BF16)) ? HWNAS_F32 : HWNAS_BF16;
    }
    json_decref(mixes);
    return layers;
}
