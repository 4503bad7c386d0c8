/* pytorch.c: an architecture as PyTorch code, as a person would have written it: a class for each
 * template, loops where the space has loops, and no trace of what this architecture did not choose.
 * The graph is not unrolled: the space's own statements are translated (pytorch_priv.h). What
 * cannot be said so, and what is no architecture, is written from the graph (pytorch_flat.h). */
#include "export/pytorch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "export/pytorch_flat.h"

/* 5288548 is "5,288,548". */
static void add_count(hwnas_str *out, int64_t count)
{
    char digits[32];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)count);
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(out, "%s%c", i && (n - i) % 3 == 0 ? "," : "", digits[i]);
}

/* ---- Inputs: those of a graph in their order, or the graph's inputs of each name of a space ----
 */

typedef struct input_group {
    const char *name;
    bool is_list;
    size_t begin, end; /* graph->inputs[begin] to [end], excluded */
} input_group;

static size_t find_groups(input_group *out, const hwnas_export *export, const hwnas_class *network)
{
    const hwnas_graph *graph = export->graph;
    const hwnas_space *space = export->arch ? export->arch->space : NULL;
    const bool is_flat = !space || export->is_flat;
    size_t n = 0;
    for (size_t i = 0; is_flat && i < graph->n_inputs; i++)
        out[n++] = (input_group){network->arguments[i]->wish, false, i, i + 1};
    for (size_t i = 0; !is_flat && i < space->n_inputs; i++) {
        const char *name = space->inputs[i].name;
        input_group group = {name, space->inputs[i].each, 0, 0};
        while (group.begin < graph->n_inputs &&
               !hwnas_export_is_input(export, i, graph->inputs[group.begin]))
            group.begin++;
        group.end = group.begin;
        while (group.end < graph->n_inputs &&
               hwnas_export_is_input(export, i, graph->inputs[group.end]))
            group.end++;
        if (group.begin < group.end) /* else none of this architecture's */
            out[n++] = group;
    }
    return n;
}

static const hwnas_tensor *input_at(const hwnas_graph *graph, size_t i)
{
    return &graph->tensors[graph->inputs[i]];
}

static bool are_alike(const hwnas_graph *graph, const input_group *group)
{
    const hwnas_tensor *first = input_at(graph, group->begin);
    for (size_t i = group->begin; i < group->end; i++) {
        const hwnas_tensor *input = input_at(graph, i);
        if (input->rank != first->rank ||
            memcmp(input->dims, first->dims, (size_t)first->rank * sizeof *first->dims))
            return false;
    }
    return true;
}

/* "an input of 3 x 224 x 224", "tokens of 1, mask of 1 x 128, 12 past_key of 12 x 127 x 64" */
static void add_inputs(hwnas_str *out, const hwnas_graph *graph, const input_group *groups,
                       size_t n)
{
    for (size_t g = 0; g < n; g++) {
        const hwnas_tensor *input = input_at(graph, groups[g].begin);
        hwnas_str_add(out, g ? ", " : "");
        if (groups[g].is_list)
            hwnas_str_addf(out, "%zu ", groups[g].end - groups[g].begin);
        hwnas_str_add(out, graph->n_inputs > 1 ? groups[g].name : "an input");
        for (int i = 1; i < input->rank && are_alike(graph, &groups[g]); i++)
            hwnas_str_addf(out, "%s%lld", i > 1 ? " x " : " of ", (long long)input->dims[i]);
    }
}

/* An input to try the network with: "torch.randn(1, 3, 224, 224)". */
static const char *example_of(hwnas_arena *arena, const hwnas_graph *graph, size_t input)
{
    const hwnas_tensor *tensor = input_at(graph, input);
    const char *dims = tensor->rank ? "" : "()";
    for (int i = 0; i < tensor->rank; i++)
        dims =
            hwnas_arena_printf(arena, "%s%s%lld", dims, i ? ", " : "", (long long)tensor->dims[i]);
    if (!hwnas_dtype_is_whole(tensor->dtype))
        return hwnas_arena_printf(arena, "torch.randn(%s)", dims);
    const char *dtype =
        tensor->dtype == HWNAS_INT64
            ? ""
            : hwnas_arena_printf(arena, ", dtype=%s", hwnas_flat_dtype(tensor->dtype));
    return hwnas_arena_printf(arena, "torch.randint(%lld, (%s%s)%s)",
                              (long long)hwnas_graph_input_below(graph, graph->inputs[input]), dims,
                              tensor->rank == 1 ? "," : "", dtype);
}

/* Several inputs of one name are a list. */
static const char *examples_of(hwnas_arena *arena, const hwnas_graph *graph,
                               const input_group *group)
{
    const char *first = example_of(arena, graph, group->begin), *text = "[\n";
    if (!group->is_list)
        return first;
    if (are_alike(graph, group))
        return hwnas_arena_printf(arena, "[%s for _ in range(%zu)]", first,
                                  group->end - group->begin);
    for (size_t i = group->begin; i < group->end; i++)
        text = hwnas_arena_printf(arena, "%s            %s,\n", text, example_of(arena, graph, i));
    return hwnas_arena_printf(arena, "%s        ]", text);
}

/* ---- The file ---- */

/* What is said of the network, and how it is tried. */
static void describe(hwnas_export *export, const hwnas_class *network)
{
    hwnas_arena *arena = export->arena;
    hwnas_torch_file *module = &export->module;
    const hwnas_graph *graph = export->graph;
    const hwnas_space *space = export->arch ? export->arch->space : NULL;
    input_group *groups = hwnas_arena_alloc(arena, (graph->n_inputs + 1) * sizeof *groups);
    const size_t n = find_groups(groups, export, network);
    hwnas_str facts = {0};
    hwnas_costs costs;
    char *code = space ? hwnas_arch_code(export->arch) : hwnas_strdup("");
    hwnas_graph_costs(&costs, graph);
    add_count(&facts, costs.params);
    hwnas_str_add(&facts, " parameters, ");
    add_count(&facts, costs.macs);
    hwnas_str_add(&facts, " multiply-accumulates for ");
    add_inputs(&facts, graph, groups, n);
    module->title = hwnas_arena_printf(arena, "%s%s%s", space ? space->name : graph->name,
                                       *code ? " " : "", code);
    module->about = space ? space->about : NULL;
    module->facts = hwnas_arena_string(arena, facts.s, facts.n);
    module->has_many_outputs = graph->n_outputs > 1;
    module->is_by_name = graph->n_inputs != 1;
    module->examples = hwnas_arena_alloc(arena, (n + 1) * sizeof *module->examples);
    for (size_t i = 0; i < n; i++)
        module->examples[module->n_examples++] =
            (hwnas_example){.name = hwnas_py_is_free(groups[i].name)
                                        ? groups[i].name
                                        : hwnas_arena_printf(arena, "%s_", groups[i].name),
                            .text = examples_of(arena, graph, &groups[i])};
    hwnas_str_done(&facts);
    free(code);
}

static void export_done(hwnas_export *export)
{
    free(export->sights);
    free(export->seen);
    hwnas_arena_free(export->arena);
}

static void begin_module(hwnas_export *export)
{
    export->module = (hwnas_torch_file){.arena = export->arena, .weights = export->module.weights};
}

static const hwnas_class *translate_once(hwnas_export *export, bool is_concrete)
{
    const hwnas_shape shape = hwnas_shape_of(input_at(export->graph, 0));
    begin_module(export);
    export->is_concrete = is_concrete;
    export->needs_values = false;
    export->tied = NULL;
    export->next_node = 0;
    export->walk = hwnas_torch_translate;
    export->call = hwnas_class_of;
    return hwnas_class_of(export, export->arch->space->network,
                          hwnas_py_int(export->arena, hwnas_shape_channels(&shape)), &shape, NULL);
}

/* With the templates' parameters, else with everything filled in. */
static const hwnas_class *translate(hwnas_export *export)
{
    const hwnas_class *network = export->needs_values ? NULL : translate_once(export, false);
    return export->needs_values ? translate_once(export, true) : network;
}

/* The graph itself, without the templates that it was built of. */
static hwnas_status write_flat(hwnas_str *out, hwnas_str *weights, hwnas_export *export)
{
    hwnas_flat flat;
    begin_module(export);
    export->is_flat = true;
    TRY(hwnas_flat_translate(&flat, export, weights != NULL));
    if (weights) {
        hwnas_torch_file_need(&export->module, "load_weights");
        hwnas_flat_write_weights(weights, &flat);
    }
    describe(export, flat.s.class);
    hwnas_torch_file_print(out, &export->module);
    return HWNAS_OK;
}

hwnas_status hwnas_pytorch_write(hwnas_str *out, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_export export = {.arch = arch, .arena = hwnas_arena_new()};
    TRY_OUT(hwnas_export_watch(&graph, &export));
    export.graph = graph;
    export.choices = hwnas_arch_values(arch, export.arena);
    if (!export.is_flat) {
        const hwnas_class *network = translate(&export);
        if (!export.needs_values && !export.tied) {
            describe(&export, network);
            hwnas_torch_file_print(out, &export.module);
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
    hwnas_export export = {
        .graph = graph, .module.weights = weights_name, .arena = hwnas_arena_new()};
    const hwnas_status status = write_flat(out, weights, &export);
    export_done(&export);
    return status;
}
