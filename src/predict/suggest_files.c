#include "predict/suggest_files.h"

#include <stdlib.h>

#include "base/file.h"
#include "export/exporter.h"
#include "graph/elaborate.h"
#include "predict/scratch.h"

static const struct {
    const char *format, *suffix;
} files[] = {{"onnx", "onnx"}, {"pytorch", "py"}, {"yaml", "yaml"}};
enum { N_FILES = sizeof files / sizeof *files };

static char *path_of(const char *folder, size_t i, const char *suffix)
{
    return hwnas_printf("%s/net%03zu.%s", folder, i + 1, suffix);
}

hwnas_status hwnas_suggest_table(hwnas_str *out, const char *space, hwnas_arch *const *archs,
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

static hwnas_status write_files(hwnas_str *missing, const char *folder, hwnas_arch *const *archs,
                                size_t n, const hwnas_str *table)
{
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < N_FILES; f++) {
            char *path = path_of(folder, i, files[f].suffix);
            const hwnas_status status = hwnas_export(path, files[f].format, archs[i], 1);
            free(path);
            if (status == HWNAS_E_UNSUPPORTED && f)
                hwnas_str_addf(missing, "net%03zu has no %s: %s\n", i + 1, files[f].format,
                               hwnas_last_error()->message);
            else
                TRY(status);
        }
    char *csv = hwnas_printf("%s/results.csv", folder);
    const hwnas_status status = hwnas_file_write(csv, table->s, table->n);
    free(csv);
    return status;
}

/* It is made beside its place. */
hwnas_status hwnas_suggest_write(hwnas_str *missing, const char *folder, hwnas_arch *const *archs,
                                 size_t n, const hwnas_str *table)
{
    hwnas_scratch scratch = {0};
    char *where = hwnas_file_beside(folder, ".");
    hwnas_scratch_sweep(where);
    hwnas_status status = hwnas_scratch_open(&scratch, where);
    if (status == HWNAS_OK)
        status = write_files(missing, scratch.folder, archs, n, table);
    if (status == HWNAS_OK)
        status = hwnas_scratch_keep(&scratch, folder);
    hwnas_scratch_close(&scratch);
    free(where);
    return status;
}
