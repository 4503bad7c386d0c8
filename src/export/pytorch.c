/* pytorch.c: an architecture as PyTorch code, as a person would have written it: a class for each
 * template, loops where the space has loops, and no trace of what this architecture did not choose.
 * The graph is not unrolled: the space's own statements are translated. pytorch_priv.h tells how.
 */
#include "export/pytorch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "export/pytorch_priv.h"

/* Text for the inside of a docstring, broken at blanks and commas. */
static void add_prose(hwnas_str *out, const char *text)
{
    enum { WIDTH = 79 };
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ,\n");
        n += text[n] == ',';
        if (column && column + n > WIDTH) {
            while (out->n && out->s[out->n - 1] == ' ')
                out->s[--out->n] = '\0';
            hwnas_str_add(out, "\n");
            column = 0;
        }
        for (size_t i = 0; i < n; i++) {
            hwnas_str_add(out,
                          text[i] == '\\' || (text[i] == '"' && text[i + 1] == '"') ? "\\" : "");
            hwnas_str_addn(out, text + i, 1);
        }
        column += n;
        text += n;
        if (*text == ' ' || *text == '\n') {
            hwnas_str_add(out, column ? " " : "");
            column++;
            text++;
        }
    }
    hwnas_str_add(out, "\n");
}

static void add_prosef(hwnas_str *out, const char *format, ...) HWNAS_PRINTF(2, 3);
static void add_prosef(hwnas_str *out, const char *format, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        abort(); /* only a bad format or no memory for a few lines */
    va_end(ap);
    add_prose(out, text);
    free(text);
}

/* 5288548 is "5,288,548". */
static void add_count(hwnas_str *out, int64_t count)
{
    char digits[32];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)count);
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(out, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

static void add_head(hwnas_str *out, const hwnas_export *export)
{
    const hwnas_space *space = export->arch->space;
    hwnas_str facts = {0};
    hwnas_costs costs;
    char *code = hwnas_arch_code(export->arch);
    hwnas_graph_costs(&costs, export->graph);
    add_count(&facts, costs.params);
    hwnas_str_add(&facts, " parameters, ");
    add_count(&facts, costs.macs);
    hwnas_str_add(&facts, " multiply-accumulates for an input of ");
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    for (int i = 1; i < input->rank; i++)
        hwnas_str_addf(&facts, "%s%lld", i > 1 ? " x " : "", (long long)input->dims[i]);
    hwnas_str_add(out, "\"\"\"");
    add_prosef(out, "%s%s%s", space->name, *code ? " " : "", code);
    if (space->about) {
        hwnas_str_add(out, "\n");
        add_prosef(out, "%s.", space->about);
    }
    hwnas_str_add(out, "\n");
    add_prosef(out, "%s.", facts.s);
    add_prosef(out, "Written by hwnas %s.", hwnas_version());
    hwnas_str_add(out, "\"\"\"\n\nimport torch\nfrom torch import nn\n");
    hwnas_str_done(&facts);
    free(code);
}

static void add_tail(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    hwnas_str shape = {0};
    for (int i = 1; i < input->rank; i++)
        hwnas_str_addf(&shape, ", %lld", (long long)input->dims[i]);
    if (network->n_outputs) {
        char *value = hwnas_py_text(network->n_outputs_value);
        const char *name = network->n_outputs->text;
        hwnas_str_addf(out, "\n\ndef build(%s=%s):\n", name, value);
        hwnas_str_add(out, "    \"\"\"The network with fresh weights.\"\"\"\n");
        hwnas_str_addf(out, "    return %s(%s)\n", network->name, name);
        free(value);
    } else {
        hwnas_str_add(out, "\n\ndef build():\n    \"\"\"The network with fresh weights.\"\"\"\n");
        hwnas_str_addf(out, "    return %s()\n", network->name);
    }
    hwnas_str_addf(out,
                   "\n\n"
                   "if __name__ == \"__main__\":\n"
                   "    model = build().eval()\n"
                   "    with torch.no_grad():\n"
                   "        output = model(torch.randn(1%s))\n"
                   "    parameters = sum(p.numel() for p in model.parameters())\n"
                   "    print(f\"output {tuple(output.shape)}, {parameters:,} parameters\")\n",
                   shape.s);
    hwnas_str_done(&shape);
}

static void export_done(hwnas_export *export)
{
    free(export->classes);
    free(export->sights);
    hwnas_str_done(&export->text);
    hwnas_arena_free(export->arena);
}

hwnas_status hwnas_pytorch_write(hwnas_str *out, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_export export = {.arch = arch, .arena = hwnas_arena_new()};
    TRY_OUT(hwnas_graph_build(&graph, arch, 1));
    export.graph = graph;
    export.choices = hwnas_arch_values(arch, export.arena);
    TRY_OUT(hwnas_export_watch(&export));
    const hwnas_class *network = hwnas_class_of(&export, arch->space->network, NULL, NULL);
    if (export.needs_values) {
        export.is_concrete = true;
        export.needs_values = false;
        export.n_classes = export.text.n = 0;
        memset(export.needs, 0, sizeof export.needs);
        network = hwnas_class_of(&export, arch->space->network, NULL, NULL);
    }
    if (export.needs_values) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &arch->space->network->place,
                                       "the named tensors cannot be written as PyTorch yet"),
                            "export to ONNX instead: --format onnx");
        goto out;
    }
    add_head(out, &export);
    for (size_t i = 0; hwnas_torch_helpers[i].name; i++)
        if (export.needs[i])
            hwnas_str_addf(out, "\n\n%s", hwnas_torch_helpers[i].text);
    hwnas_str_add(out, export.text.s);
    add_tail(out, &export, network);
out:
    export_done(&export);
    hwnas_graph_free(graph);
    return status;
}
