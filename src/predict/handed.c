#include "predict/handed.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "export/exporter.h"
#include "graph/elaborate.h"

extern char **environ;

static const struct {
    const char *format, *file, *variable;
} formats[HWNAS_N_HANDED] = {
    [HWNAS_HANDED_ONNX] = {"onnx", "net.onnx", "HWNAS_ONNX"},
    [HWNAS_HANDED_PYTORCH] = {"pytorch", "net.py", "HWNAS_PYTORCH"},
    [HWNAS_HANDED_YAML] = {"yaml", "net.yaml", "HWNAS_YAML"},
};

/* "3x32x32": of one sample of the first input. */
static char *shape_text(const hwnas_tensor *x)
{
    hwnas_str text = {0};
    for (int d = 1; d < x->rank; d++)
        hwnas_str_addf(&text, "%s%lld", d > 1 ? "x" : "", (long long)x->dims[d]);
    return text.s ? text.s : hwnas_strdup("1");
}

static bool are_same_variable(const char *a, const char *b)
{
    const size_t n = strcspn(b, "=") + 1;
    return !strncmp(a, b, n);
}

/* The variables of this process, but for those that `settings` has, and these. */
static char **with_settings(char *const *settings, size_t n_settings)
{
    size_t n = 0, used = n_settings;
    while (environ[n])
        n++;
    char **list = hwnas_alloc((n + n_settings + 1) * sizeof *list);
    memcpy(list, settings, n_settings * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        bool is_set_here = false;
        for (size_t j = 0; j < n_settings; j++)
            is_set_here |= are_same_variable(environ[i], settings[j]);
        if (!is_set_here)
            list[used++] = hwnas_strdup(environ[i]);
    }
    return list;
}

static char **make_environment(const hwnas_handed *handed, const hwnas_arch *arch,
                               const hwnas_graph *graph, int rung)
{
    const hwnas_tensor *x = &graph->tensors[graph->inputs[0]];
    char *code = hwnas_arch_code(arch), *shape = shape_text(x);
    char *const settings[] = {
        hwnas_printf("HWNAS_CODE=%s", code),
        hwnas_printf("HWNAS_SPACE=%s", arch->space->path),
        hwnas_printf("HWNAS_DIGEST=%s", hwnas_graph_digest(graph).hex),
        hwnas_printf("HWNAS_RUNG=%d", rung),
        hwnas_printf("HWNAS_INPUT_SHAPE=%s", shape),
        hwnas_printf("HWNAS_INPUT_TYPE=%s", hwnas_dtype_name(x->dtype)),
        hwnas_printf("%s=%s", formats[0].variable, handed->paths[0]),
        hwnas_printf("%s=%s", formats[1].variable, handed->paths[1]),
        hwnas_printf("%s=%s", formats[2].variable, handed->paths[2]),
    };
    free(code);
    free(shape);
    return with_settings(settings, sizeof settings / sizeof *settings);
}

static hwnas_status write_files(hwnas_handed *to, const hwnas_arch *arch)
{
    for (int i = 0; i < HWNAS_N_HANDED; i++) {
        to->paths[i] = hwnas_printf("%s/%s", to->scratch.folder, formats[i].file);
        hwnas_status status = hwnas_export(to->paths[i], formats[i].format, arch, 1);
        if (status != HWNAS_OK && (i == HWNAS_HANDED_ONNX || status != HWNAS_E_UNSUPPORTED))
            return status;
        if (status != HWNAS_OK)
            *to->paths[i] = '\0';
    }
    return HWNAS_OK;
}

hwnas_status hwnas_handed_make(hwnas_handed *out, const hwnas_arch *arch, int rung)
{
    hwnas_status status = HWNAS_OK;
    hwnas_handed made = {0};
    hwnas_graph *graph = NULL;
    TRY_OUT(hwnas_graph_build(&graph, arch, 1));
    TRY_OUT(hwnas_scratch_open(&made.scratch, NULL));
    TRY_OUT(write_files(&made, arch));
    made.environment = make_environment(&made, arch, graph, rung);
    *out = made;
    made = (hwnas_handed){0};
out:
    hwnas_graph_free(graph);
    hwnas_handed_done(&made);
    return status;
}

void hwnas_handed_set(hwnas_handed *handed, const char *name, const char *value)
{
    size_t n = 0;
    char **list = handed->environment, *setting = hwnas_printf("%s=%s", name, value);
    while (list[n] && !are_same_variable(list[n], setting))
        n++;
    if (list[n]) {
        free(list[n]);
    } else {
        handed->environment = list = hwnas_realloc(list, (n + 2) * sizeof *list);
        list[n + 1] = NULL;
    }
    list[n] = setting;
}

void hwnas_handed_done(hwnas_handed *handed)
{
    hwnas_scratch_close(&handed->scratch);
    for (int i = 0; i < HWNAS_N_HANDED; i++)
        free(handed->paths[i]);
    for (size_t i = 0; handed->environment && handed->environment[i]; i++)
        free(handed->environment[i]);
    free(handed->environment);
    *handed = (hwnas_handed){0};
}
