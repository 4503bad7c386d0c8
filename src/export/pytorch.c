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
#include "export/pytorch_flat.h"

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

/* The inputs of one name: graph->inputs[*begin] to [*end], excluded. */
static void find_inputs(size_t *begin, size_t *end, const hwnas_export *export, size_t input)
{
    const hwnas_graph *graph = export->graph;
    *begin = 0;
    while (*begin < graph->n_inputs && !hwnas_export_is_input(export, input, graph->inputs[*begin]))
        ++*begin;
    *end = *begin;
    while (*end < graph->n_inputs && hwnas_export_is_input(export, input, graph->inputs[*end]))
        ++*end;
}

static bool are_alike(const hwnas_graph *graph, size_t begin, size_t end)
{
    const hwnas_tensor *first = &graph->tensors[graph->inputs[begin]];
    for (size_t i = begin; i < end; i++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[i]];
        if (input->rank != first->rank ||
            memcmp(input->dims, first->dims, (size_t)first->rank * sizeof *first->dims))
            return false;
    }
    return true;
}

/* "an input of 3 x 224 x 224", "tokens of 1, mask of 1 x 128, 12 past_key of 12 x 127 x 64" */
static void add_inputs(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_graph *graph = export->graph;
    size_t begin, end, n_before = 0;
    for (size_t n = 0; export->is_flat && n < graph->n_inputs; n++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[n]];
        hwnas_str_addf(out, "%s%s of %s", n ? ", " : "",
                       graph->n_inputs > 1 ? network->ports[n].name : "an input",
                       hwnas_tensor_shape(input).s);
    }
    if (export->is_flat)
        return;
    const hwnas_space *space = export->arch->space;
    for (size_t n = 0; n < space->n_inputs; n++) {
        find_inputs(&begin, &end, export, n);
        if (begin == end) /* none of this architecture's */
            continue;
        const hwnas_tensor *input = &graph->tensors[graph->inputs[begin]];
        hwnas_str_add(out, n_before++ ? ", " : "");
        if (space->inputs[n].each)
            hwnas_str_addf(out, "%zu ", end - begin);
        hwnas_str_add(out, graph->n_inputs > 1 ? space->inputs[n].name : "an input");
        for (int i = 1; i < input->rank && are_alike(graph, begin, end); i++)
            hwnas_str_addf(out, "%s%lld", i > 1 ? " x " : " of ", (long long)input->dims[i]);
    }
}

static void add_head(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_space *space = export->arch ? export->arch->space : NULL;
    hwnas_str facts = {0};
    hwnas_costs costs;
    char *code = export->arch ? hwnas_arch_code(export->arch) : hwnas_strdup("");
    hwnas_graph_costs(&costs, export->graph);
    add_count(&facts, costs.params);
    hwnas_str_add(&facts, " parameters, ");
    add_count(&facts, costs.macs);
    hwnas_str_add(&facts, " multiply-accumulates for ");
    add_inputs(&facts, export, network);
    hwnas_str_add(out, "\"\"\"");
    add_prosef(out, "%s%s%s", space ? space->name : export->graph->name, *code ? " " : "", code);
    if (space && space->about) {
        hwnas_str_add(out, "\n");
        add_prosef(out, "%s.", space->about);
    }
    hwnas_str_add(out, "\n");
    add_prosef(out, "%s.", facts.s);
    add_prosef(out, "Written by hwnas %s.", hwnas_version());
    hwnas_str_add(out, "\"\"\"\n\n");
    hwnas_str_add(out, export->weights ? "import json\nimport pathlib\n\n" : "");
    hwnas_str_add(out, strstr(export->text.s, "math.") ? "import math\n\n" : "");
    hwnas_str_add(out, "import torch\n");
    hwnas_str_add(out, strstr(export->text.s, "F.") ? "import torch.nn.functional as F\n" : "");
    hwnas_str_add(out, "from torch import nn\n");
    hwnas_str_done(&facts);
    free(code);
}

/* An input to try the network with: "torch.randn(1, 3, 224, 224)". */
static void add_example(hwnas_str *out, const hwnas_graph *graph, int tensor)
{
    const hwnas_tensor *input = &graph->tensors[tensor];
    hwnas_str dims = {0};
    for (int i = 0; i < input->rank; i++)
        hwnas_str_addf(&dims, "%s%lld", i ? ", " : "", (long long)input->dims[i]);
    if (!input->rank)
        hwnas_str_add(&dims, "()");
    if (input->dtype == HWNAS_INT64)
        hwnas_str_addf(out, "torch.randint(%lld, (%s%s))",
                       (long long)hwnas_graph_input_below(graph, tensor), dims.s,
                       input->rank == 1 ? "," : "");
    else if (hwnas_dtype_is_whole(input->dtype))
        hwnas_str_addf(out, "torch.randint(%lld, (%s%s), dtype=%s)",
                       (long long)hwnas_graph_input_below(graph, tensor), dims.s,
                       input->rank == 1 ? "," : "", hwnas_flat_dtype(input->dtype));
    else
        hwnas_str_addf(out, "torch.randn(%s)", dims.s);
    hwnas_str_done(&dims);
}

/* The arguments of forward(); several inputs of one name are a list. */
static void add_examples(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_graph *graph = export->graph;
    size_t begin, end;
    for (size_t n = 0; export->is_flat && n < graph->n_inputs; n++) {
        hwnas_str_addf(out, "        %s=", network->ports[n].name);
        add_example(out, graph, graph->inputs[n]);
        hwnas_str_add(out, ",\n");
    }
    if (export->is_flat)
        return;
    const hwnas_space *space = export->arch->space;
    for (size_t n = 0; n < space->n_inputs; n++) {
        const hwnas_input *input = &space->inputs[n];
        find_inputs(&begin, &end, export, n);
        if (begin == end)
            continue;
        hwnas_str_addf(out, "        %s%s=", input->name, hwnas_py_is_free(input->name) ? "" : "_");
        if (!input->each) {
            add_example(out, graph, graph->inputs[begin]);
        } else if (are_alike(graph, begin, end)) {
            hwnas_str_add(out, "[");
            add_example(out, graph, graph->inputs[begin]);
            hwnas_str_addf(out, " for _ in range(%zu)]", end - begin);
        } else {
            hwnas_str_add(out, "[\n");
            for (size_t i = begin; i < end; i++) {
                hwnas_str_add(out, "            ");
                add_example(out, graph, graph->inputs[i]);
                hwnas_str_add(out, ",\n");
            }
            hwnas_str_add(out, "        ]");
        }
        hwnas_str_add(out, ",\n");
    }
}

static void add_tail(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_graph *graph = export->graph;
    if (export->weights) {
        hwnas_str_addf(out,
                       "\n\ndef build(weights=\"%s\"):\n"
                       "    \"\"\"The network, with the weights of a file beside this one.\"\"\"\n"
                       "    model = %s()\n"
                       "    if weights:\n"
                       "        path = pathlib.Path(__file__).parent / weights\n"
                       "        model.load_state_dict(load_weights(path))\n"
                       "    return model\n",
                       export->weights, network->name);
    } else if (network->n_outputs) {
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
    hwnas_str_add(out, "\n\n"
                       "if __name__ == \"__main__\":\n"
                       "    model = build().eval()\n");
    if (graph->n_inputs == 1) {
        hwnas_str_add(out, "    with torch.no_grad():\n        output = model(");
        add_example(out, graph, graph->inputs[0]);
        hwnas_str_add(out, ")\n");
    } else {
        hwnas_str_add(out, "    inputs = dict(\n");
        add_examples(out, export, network);
        hwnas_str_add(out, "    )\n"
                           "    with torch.no_grad():\n"
                           "        output = model(**inputs)\n");
    }
    const bool has_constants = strstr(export->text.s, "biases=") != NULL;
    hwnas_str_addf(out, "    parameters = sum(p.numel() for p in model.parameters()%s)\n",
                   has_constants ? " if p.requires_grad" : "");
    hwnas_str_add(out,
                  graph->n_outputs == 1
                      ? "    print(f\"output {tuple(output.shape)}, {parameters:,} parameters\")\n"
                      : "    shapes = \", \".join(str(tuple(y.shape)) for y in output)\n"
                        "    print(f\"outputs {shapes}, {parameters:,} parameters\")\n");
}

static void export_done(hwnas_export *export)
{
    free(export->classes);
    free(export->sights);
    free(export->seen);
    hwnas_str_done(&export->text);
    hwnas_arena_free(export->arena);
}

static const hwnas_class *translate_once(hwnas_export *export, bool is_concrete)
{
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    const hwnas_shape shape = hwnas_shape_of(input);
    export->is_concrete = is_concrete;
    export->needs_values = false;
    export->tied = NULL;
    export->n_classes = export->text.n = export->next_node = 0;
    memset(export->needs, 0, sizeof export->needs);
    return hwnas_class_of(export, export->arch->space->network,
                          hwnas_py_int(export->arena, hwnas_shape_channels(&shape)), &shape, NULL);
}

/* With the templates' parameters, else with everything filled in. */
static const hwnas_class *translate(hwnas_export *export)
{
    const hwnas_class *network = export->needs_values ? NULL : translate_once(export, false);
    return export->needs_values ? translate_once(export, true) : network;
}

static void write_file(hwnas_str *out, const hwnas_export *export, const hwnas_class *network)
{
    add_head(out, export, network);
    for (size_t i = 0; hwnas_torch_helpers[i].name; i++)
        if (export->needs[i])
            hwnas_str_addf(out, "\n\n%s", hwnas_torch_helpers[i].text);
    hwnas_str_add(out, export->text.s);
    add_tail(out, export, network);
}

/* The graph itself, without the templates that it was built of. */
static hwnas_status write_flat(hwnas_str *out, hwnas_str *weights, hwnas_export *export)
{
    const char *name = export->arch ? export->arch->space->name : export->graph->name;
    hwnas_flat flat;
    export->is_flat = true;
    export->n_classes = export->text.n = 0;
    memset(export->needs, 0, sizeof export->needs);
    TRY(hwnas_flat_translate(&flat, export, weights != NULL));
    hwnas_class *class = flat.s.class;
    class->name = hwnas_py_class_name(export->arena, name);
    hwnas_str_addf(&export->text, "\n\nclass %s", class->name);
    hwnas_class_write(&export->text, class);
    if (weights) {
        hwnas_torch_need(export, "load_weights");
        hwnas_flat_write_weights(weights, &flat);
    }
    write_file(out, export, class);
    return HWNAS_OK;
}

hwnas_status hwnas_pytorch_write(hwnas_str *out, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_export export = {.arch = arch, .arena = hwnas_arena_new()};
    TRY_OUT(hwnas_graph_build(&graph, arch, 1));
    export.graph = graph;
    export.choices = hwnas_arch_values(arch, export.arena);
    if (hwnas_export_watch(&export) == HWNAS_OK) {
        const hwnas_class *network = translate(&export);
        if (!export.needs_values && !export.tied) {
            write_file(out, &export, network);
            goto out;
        }
    }
    hwnas_error_clear();
    status = write_flat(out, NULL, &export);
out:
    export_done(&export);
    hwnas_graph_free(graph);
    return status;
}

hwnas_status hwnas_pytorch_write_graph(hwnas_str *out, hwnas_str *weights, const char *weights_name,
                                       const hwnas_graph *graph)
{
    hwnas_export export = {.graph = graph, .weights = weights_name, .arena = hwnas_arena_new()};
    const hwnas_status status = write_flat(out, weights, &export);
    export_done(&export);
    return status;
}
