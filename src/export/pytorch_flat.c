/* pytorch_flat.c: a graph as one class. What has no better form comes out so: files of ONNX, and
 * networks of a space that its templates cannot say. Nodes are walked in their order; those whose
 * result is read once are written inside of what reads it, as far as that stays readable. */
#include "export/pytorch_flat.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/safetensors.h"
#include "graph/ops/recurrent.h"

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

/* ---- Nodes ---- */

/* "1, keepdim=True": the arguments of a reduction. */
static const char *reduced_axes(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    const char *list = hwnas_flat_list(f, axes->n, axes->ints);
    return TEXT(axes->n == 1 ? "%s%s" : "(%s)%s", list,
                hwnas_node_attr(node, "keep")->ints[0] ? ", keepdim=True" : "");
}

/* What stands for an attribute: its word in ONNX, or its value. */
static const char *attribute_text(hwnas_flat *f, const hwnas_node *node, const char *name)
{
    const hwnas_attr_row *row = node->op->attrs;
    while (strcmp(row->name, name))
        row++;
    const hwnas_attr *attr = &node->attrs[row - node->op->attrs];
    if (row->kind == HWNAS_ATTR_NUMBER)
        return hwnas_flat_number(f, attr->number);
    if (!strcmp(name, "fmod"))
        return attr->ints[0] ? "fmod" : "remainder";
    return row->onnx_words ? row->onnx_words[attr->ints[0]]
                           : hwnas_flat_list(f, attr->n ? attr->n : 1, attr->ints);
}

static const char *fill_in(hwnas_flat *f, const hwnas_node *node, const char *text)
{
    hwnas_str filled = {0};
    while (*text) {
        size_t n = strcspn(text, "{@");
        hwnas_str_addn(&filled, text, n);
        text += n;
        if (*text == '{') {
            n = strcspn(text, "}");
            hwnas_str_add(&filled, attribute_text(f, node, TEXT("%.*s", (int)n - 1, text + 1)));
            text += n + 1;
        } else if (*text == '@' && text[1] == ')') {
            hwnas_str_add(&filled, reduced_axes(f, node));
            text++;
        } else if (*text) {
            hwnas_str_addn(&filled, text++, 1);
        }
    }
    const char *copy = hwnas_arena_string(f->s.arena, filled.s, filled.n);
    hwnas_str_done(&filled);
    return copy;
}

/* The node's value by a module of its own; NULL: it has none. */
static const hwnas_wire *by_module(hwnas_flat *f, const hwnas_node *node, const hwnas_flat_row *row)
{
    const size_t n_weights = f->n_weights;
    const int at = hwnas_node_is(node, HWNAS_OP_GATHER) ? 1 : 0;
    const hwnas_torch_piece *none = NULL;
    const char *call = row->module(f, node, none);
    if (!call)
        return NULL;
    const char *before = row->before ? row->before(f, node) : "$0";
    const hwnas_wire *wire = hwnas_flat_operand(f, node, at, at ? "($1)" : before, row->takes);
    if (strcmp(before, "$0"))
        wire = hwnas_flat_form(f, before, true, 1, &wire);
    wire = hwnas_wire_as_variable(&f->s, wire);
    const hwnas_torch_piece *part = hwnas_flat_part(f, call, hwnas_flat_module_name(f, node));
    for (size_t i = n_weights; i < f->n_weights; i++)
        f->weights[i].part = part;
    wire = hwnas_wire_make(&f->s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part}, 1, &wire);
    return row->after ? hwnas_flat_form(f, row->after(f, node), true, 1, &wire) : wire;
}

static const hwnas_wire *by_text(hwnas_flat *f, const hwnas_node *node, const hwnas_flat_row *row)
{
    const char *text = row->write ? row->write(f, node) : fill_in(f, node, row->text);
    const hwnas_wire *args[HWNAS_MAX_NODE_INPUTS];
    const bool is_concat = hwnas_node_is(node, HWNAS_OP_CONCAT);
    if (hwnas_node_is(node, HWNAS_OP_LINEAR) && node->n_inputs < 3)
        text = "F.linear($0, $1)";
    if (row->text && strchr(row->text, '@') && !strchr(row->text, ' ') &&
        !hwnas_node_attr(node, "axes")->n)
        text = TEXT("$0.reshape(1)%s", fill_in(f, node, row->text) + 2); /* of a single value */
    for (int i = 0; i < node->n_inputs; i++) {
        args[i] = hwnas_flat_operand(f, node, i, is_concat ? "" : text, row->takes);
        if (is_concat && args[i]->kind == HWNAS_WIRE_FORM)
            args[i] = hwnas_wire_as_variable(&f->s, args[i]);
    }
    if (is_concat) {
        const int64_t given = hwnas_node_attr(node, "axis")->ints[0];
        const int64_t axis = given < 0 ? given + hwnas_flat_input(f, node, 0)->rank : given;
        if (axis > 0)
            hwnas_flat_give_batch(f, node, args);
        return hwnas_wire_make(&f->s,
                               (hwnas_wire){.kind = HWNAS_WIRE_JOIN,
                                            .join = hwnas_torch_join_of("concat"),
                                            .axis = axis},
                               (size_t)node->n_inputs, args);
    }
    return !strcmp(text, "$0") ? args[0]
                               : hwnas_flat_form(f, text, hwnas_flat_is_one_operand(text),
                                                 (size_t)node->n_inputs, args);
}

/* A product with weights and a sum with biases, as exporters write a linear layer. The node that
 * adds; NULL: there is none. */
static const hwnas_node *find_sum(hwnas_flat *f, const hwnas_node *product)
{
    const hwnas_tensor *out = hwnas_node_output(f->graph, product);
    const hwnas_node *sum = product + 1, *end = f->graph->nodes + f->graph->n_nodes;
    if (f->uses[product->output] != 1)
        return NULL;
    while (sum < end && sum->inputs[0] != product->output &&
           !(sum->n_inputs > 1 && sum->inputs[1] == product->output))
        sum++;
    if (sum == end || !hwnas_node_is(sum, HWNAS_OP_ADD))
        return NULL;
    const int bias = sum->inputs[sum->inputs[0] == product->output];
    const hwnas_tensor *tensor = &f->graph->tensors[bias];
    return tensor->kind == HWNAS_TENSOR_WEIGHT && f->uses[bias] == 1 && tensor->rank == 1 &&
                   tensor->is_parameter && tensor->dims[0] == out->dims[out->rank - 1]
               ? sum
               : NULL;
}

/* nn.Linear of a product from the right; its sum, if there is one, is then done. NULL: it is none.
 */
static const hwnas_wire *by_linear(hwnas_flat *f, const hwnas_node *node)
{
    const int kernel = node->inputs[1];
    const hwnas_tensor *tensor = &f->graph->tensors[kernel];
    if (tensor->kind != HWNAS_TENSOR_WEIGHT || !tensor->is_parameter || tensor->rank != 2 ||
        f->uses[kernel] > 1)
        return NULL;
    const hwnas_node *sum = find_sum(f, node);
    const hwnas_wire *x =
        hwnas_wire_as_variable(&f->s, hwnas_flat_operand(f, node, 0, "($0)", "f"));
    const hwnas_torch_piece *part =
        hwnas_flat_part(f,
                        TEXT("nn.Linear(%lld, %lld%s)", (long long)tensor->dims[0],
                             (long long)tensor->dims[1], sum ? "" : ", bias=False"),
                        hwnas_flat_module_name(f, node));
    hwnas_flat_weight *weight = hwnas_flat_add_weight(f, part, ".weight", kernel);
    weight->is_transposed = true;
    weight->dims[0] = tensor->dims[1];
    weight->dims[1] = tensor->dims[0];
    if (sum)
        hwnas_flat_add_weight(f, part, ".bias", sum->inputs[sum->inputs[0] == node->output]);
    const hwnas_wire *wire =
        hwnas_wire_make(&f->s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part}, 1, &x);
    if (sum)
        f->wires[sum->output] =
            f->uses[sum->output] > 1 ? hwnas_wire_as_variable(&f->s, wire) : wire;
    return wire;
}

/* The type that PyTorch gives the result of mixed operands. */
static const char *given_type(hwnas_flat *f, const hwnas_node *node, const hwnas_flat_row *row)
{
    const hwnas_tensor *out = hwnas_node_output(f->graph, node);
    if (hwnas_node_is(node, HWNAS_OP_TOP_K))
        return hwnas_node_attr(node, "places")->ints[0]
                   ? "torch.int64"
                   : hwnas_flat_type(hwnas_flat_input(f, node, 0));
    return hwnas_flat_wanted_type(out, row->gives);
}

static hwnas_status add_node(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_flat_row *row = &hwnas_flat_rows[node->op->id];
    const hwnas_tensor *out = hwnas_node_output(f->graph, node);
    const hwnas_wire *wire = row->module                            ? by_module(f, node, row)
                             : hwnas_node_is(node, HWNAS_OP_MATMUL) ? by_linear(f, node)
                                                                    : NULL;
    if (!wire && !row->text && !row->write)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%s': '%s' of computed weights cannot be "
                          "written as PyTorch",
                          node->name, node->op->name);
    wire = wire ? wire : by_text(f, node, row);
    const char *type = given_type(f, node, row);
    if (type && strcmp(type, hwnas_flat_type(out))) {
        if (!hwnas_wire_is_primary(wire))
            wire = hwnas_wire_as_variable(&f->s, wire);
        wire = hwnas_flat_form(f, hwnas_flat_conversion(f, "$0", hwnas_flat_type(out)), true, 1,
                               &wire);
    }
    if (f->uses[node->output] > 1)
        wire = hwnas_wire_as_variable(&f->s, wire);
    f->wires[node->output] = wire;
    return HWNAS_OK;
}

/* ---- The network ---- */

/* Counts who reads a tensor, from the outputs on: what no output needs is not written. The biases
 * of a recurrent layer belong to its module, even where they are two tensors. */
static void count_uses(hwnas_flat *f)
{
    const hwnas_graph *graph = f->graph;
    for (size_t i = 0; i < graph->n_outputs; i++)
        f->uses[graph->outputs[i]]++;
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        const bool is_rnn =
            hwnas_node_is(node, HWNAS_OP_LSTM_CORE) || hwnas_node_is(node, HWNAS_OP_GRU_CORE);
        for (int i = 0; f->uses[node->output] && i < node->n_inputs; i++)
            if (!is_rnn || i != HWNAS_RNN_B ||
                graph->tensors[node->inputs[i]].kind == HWNAS_TENSOR_WEIGHT)
                f->uses[node->inputs[i]]++;
    }
}

static bool is_named_before(const hwnas_class *class, const char *name)
{
    for (size_t i = 0; i < class->n_arguments; i++)
        if (!strcmp(class->arguments[i]->wish, name))
            return true;
    return false;
}

static void add_inputs(hwnas_flat *f)
{
    hwnas_class *class = f->s.class;
    class->arguments =
        hwnas_arena_alloc(f->s.arena, (f->graph->n_inputs + 1) * sizeof *class->arguments);
    for (size_t i = 0; i < f->graph->n_inputs; i++) {
        const hwnas_tensor *tensor = &f->graph->tensors[f->graph->inputs[i]];
        const char *name = hwnas_flat_name(f, tensor->name, strlen(tensor->name)), *stem;
        name = stem = name ? name : "x";
        if (!hwnas_py_is_free(name))
            name = TEXT("%s_", stem);
        for (int n = 2; is_named_before(class, name); n++)
            name = TEXT("%s%d", stem, n);
        hwnas_variable *variable = hwnas_wire_new_variable(&f->s, name);
        variable->text = name;
        class->arguments[class->n_arguments++] = variable;
        f->wires[f->graph->inputs[i]] = hwnas_wire_of(&f->s, variable);
    }
}

static void add_outputs(hwnas_flat *f)
{
    const size_t n = f->graph->n_outputs;
    const hwnas_wire **args = hwnas_arena_alloc(f->s.arena, n * sizeof *args);
    for (size_t i = 0; i < n; i++) {
        const int index = f->graph->outputs[i];
        args[i] = f->graph->tensors[index].kind == HWNAS_TENSOR_WEIGHT
                      ? hwnas_flat_attribute(f, index)
                      : f->wires[index];
        if (n > 1 && args[i]->kind != HWNAS_WIRE_VARIABLE)
            args[i] = f->wires[index] = hwnas_wire_as_variable(&f->s, args[i]);
    }
    hwnas_wire_add_line(
        &f->s, 0, NULL,
        n == 1 ? args[0] : hwnas_wire_make(&f->s, (hwnas_wire){.kind = HWNAS_WIRE_TUPLE}, n, args));
}

hwnas_status hwnas_flat_translate(hwnas_flat *f, hwnas_export *export, bool has_file)
{
    static const char *const list_wishes[] = {"layers", NULL};
    hwnas_arena *arena = export->arena;
    const hwnas_graph *graph = export->graph;
    hwnas_torch_file *module = &export->module;
    hwnas_class *class = hwnas_arena_alloc(arena, sizeof *class);
    class->module = module;
    class->callee = hwnas_arena_alloc(arena, sizeof *class->callee);
    class->label = export->arch ? export->arch->space->name : graph->name;
    class->is_network = true;
    class->has_lines = true;
    *f = (hwnas_flat){.graph = graph,
                      .has_file = has_file,
                      .s = {.export = export, .class = class, .arena = arena}};
    f->wires = hwnas_arena_alloc(arena, graph->n_tensors * sizeof *f->wires);
    f->uses = hwnas_arena_alloc(arena, graph->n_tensors * sizeof *f->uses);
    f->s.list = hwnas_torch_name(&f->s, list_wishes, true);
    count_uses(f);
    hwnas_flat_find_batch(f);
    add_inputs(f);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (f->uses[graph->nodes[i].output] && !f->wires[graph->nodes[i].output])
            TRY(add_node(f, &graph->nodes[i]));
    add_outputs(f);
    hwnas_class_settle(class);
    module->classes = hwnas_torch_grown(arena, module->classes, module->n_classes,
                                        &module->class_capacity, sizeof class);
    module->classes[module->n_classes++] = class;
    return HWNAS_OK;
}

/* ---- Weights ---- */

/* The values of a module's tensor in PyTorch's order; yours to free(). */
static float *values_of(const hwnas_flat *f, const hwnas_flat_weight *weight, int64_t n)
{
    float *values = hwnas_alloc((size_t)(n ? n : 1) * sizeof *values);
    if (weight->tensor < 0)
        return values;
    const hwnas_tensor *tensor = &f->graph->tensors[weight->tensor];
    float *all = hwnas_alloc((size_t)hwnas_tensor_count(tensor) * sizeof *all);
    hwnas_tensor_fill(tensor, all);
    const int n_gates = weight->n_gates ? weight->n_gates : 1;
    const int64_t block = n / n_gates;
    for (int g = 0; g < n_gates; g++)
        memcpy(values + g * block,
               all + weight->begin + (weight->gates ? weight->gates[g] : g) * block,
               (size_t)block * sizeof *values);
    for (int64_t i = 0; weight->is_transposed && i < n; i++)
        values[i] = all[i % weight->dims[1] * weight->dims[0] + i / weight->dims[1]];
    free(all);
    return values;
}

void hwnas_flat_write_weights(hwnas_str *out, const hwnas_flat *f)
{
    hwnas_safetensors file = {0};
    for (size_t i = 0; i < f->n_weights; i++) {
        const hwnas_flat_weight *weight = &f->weights[i];
        int64_t n = 1;
        for (int d = 0; d < weight->n_dims; d++)
            n *= weight->dims[d];
        char *name = hwnas_printf("%s%s", weight->part->attributes[0], weight->suffix);
        float *values = values_of(f, weight, n);
        const hwnas_dtype dtype =
            weight->tensor < 0 ? HWNAS_INT64 : f->graph->tensors[weight->tensor].dtype;
        hwnas_safetensors_add(&file, name, dtype, weight->n_dims, weight->dims, values);
        free(values);
        free(name);
    }
    hwnas_safetensors_write(out, &file);
}
