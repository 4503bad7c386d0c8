#include "export/exporter.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "derive/derive.h"
#include "graph/pack_weights.h"
#include "onnx/onnx.h"
#include "export/arch_yaml.h"
#include "export/pytorch.h"

static hwnas_status write_onnx(hwnas_str *out, const hwnas_arch *arch, int batch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    void *bytes = NULL;
    size_t length;
    TRY_OUT(hwnas_graph_build_trained(&graph, arch, batch));
    TRY_OUT(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES));
    hwnas_str_addn(out, bytes, length);
out:
    free(bytes);
    hwnas_graph_free(graph);
    return status;
}

static hwnas_status write_pytorch(hwnas_str *out, const hwnas_arch *arch, int batch)
{
    (void)batch; /* a module takes any */
    return hwnas_pytorch_write(out, arch);
}

static hwnas_status write_yaml(hwnas_str *out, const hwnas_arch *arch, int batch)
{
    (void)batch;
    return hwnas_arch_yaml_write(out, arch);
}

static const struct {
    const char *name;
    /* Appends the file's bytes. */
    hwnas_status (*write)(hwnas_str *out, const hwnas_arch *arch, int batch);
} exporters[] = {{"onnx", write_onnx}, {"pytorch", write_pytorch}, {"yaml", write_yaml}, {0}};

/* A module has no statements to be written from: it is the graph, and its weights lie beside it. */
static hwnas_status export_derived_module(const char *path, const hwnas_arch *arch, int batch)
{
    hwnas_graph *graph;
    TRY(hwnas_graph_build_trained(&graph, arch, batch));
    const hwnas_status status = hwnas_export_graph(path, NULL, graph);
    hwnas_graph_free(graph);
    return status;
}

hwnas_status hwnas_export(const char *path, const char *format, const hwnas_arch *arch, int batch)
{
    if (arch->space->builder && !strcmp(format, "pytorch"))
        return export_derived_module(path, arch, batch);
    const char *names[8] = {0};
    for (int i = 0; exporters[i].name; i++) {
        names[i] = exporters[i].name;
        if (strcmp(names[i], format))
            continue;
        hwnas_str text = {0};
        hwnas_status status = exporters[i].write(&text, arch, batch);
        if (status == HWNAS_OK)
            status = hwnas_file_write(path, text.s, text.n);
        hwnas_str_done(&text);
        return status;
    }
    const char *near = hwnas_nearest(format, names);
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there is no format '%.60s'", format),
                      near ? "did you mean '%s'?" : "there are onnx, pytorch, yaml%s",
                      near ? near : "");
}

hwnas_status hwnas_export_graph(const char *path, char **weights_path, const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *unpacked = NULL;
    hwnas_str text = {0}, weights = {0};
    if (!hwnas_ends_with(path, ".py"))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' does not end in .py", path),
                          "the weights go beside it, with .safetensors in the place of .py");
    char *beside = hwnas_printf("%.*s.safetensors", (int)strlen(path) - 3, path);
    const char *slash = strrchr(beside, '/');
    if (hwnas_graph_has_packed(graph)) {
        TRY_OUT(hwnas_graph_unpack_weights(&unpacked, NULL, NULL, graph));
        graph = unpacked;
    }
    TRY_OUT(hwnas_pytorch_write_graph(&text, &weights, slash ? slash + 1 : beside, graph));
    TRY_OUT(hwnas_file_write(beside, weights.s, weights.n));
    TRY_OUT(hwnas_file_write(path, text.s, text.n));
    if (weights_path) {
        *weights_path = beside;
        beside = NULL;
    }
out:
    hwnas_graph_free(unpacked);
    free(beside);
    hwnas_str_done(&weights);
    hwnas_str_done(&text);
    return status;
}
