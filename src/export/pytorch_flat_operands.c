/* pytorch_flat_operands.c: what a line of forward() reads: results of other lines, weights as
 * attributes, numbers; in the type that the operator wants. */
#include "export/pytorch_flat.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

const hwnas_tensor *hwnas_flat_input(hwnas_flat *f, const hwnas_node *node, int i)
{
    return hwnas_node_input(f->graph, node, i);
}

/* ---- Names ---- */

/* "layer1.0.conv1.weight" -> "layer1_0_conv1_weight"; NULL when it says nothing to a reader. */
const char *hwnas_flat_name(hwnas_flat *f, const char *name, size_t n)
{
    enum { MAX = 48 };
    hwnas_str text = {0};
    if (hwnas_starts_with(name, "onnx::") || !isalpha((unsigned char)*name))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char c = isalnum((unsigned char)name[i]) ? name[i] : '_';
        if (c != '_' || (text.n && text.s[text.n - 1] != '_'))
            hwnas_str_addn(&text, &c, 1);
    }
    while (text.n && text.s[text.n - 1] == '_')
        text.s[--text.n] = '\0';
    const char *copy =
        text.n && text.n <= MAX ? hwnas_arena_string(f->s.arena, text.s, text.n) : NULL;
    hwnas_str_done(&text);
    return copy;
}

/* What a module is called: as the network where it was exported from calls it, if that says so. */
const char *hwnas_flat_module_name(hwnas_flat *f, const hwnas_node *node)
{
    const int at = hwnas_node_is(node, HWNAS_OP_GATHER) ? 0 : 1;
    const char *fallback = hwnas_node_is(node, HWNAS_OP_GATHER)      ? "embedding"
                           : hwnas_node_is(node, HWNAS_OP_LSTM_CORE) ? "lstm"
                           : hwnas_node_is(node, HWNAS_OP_GRU_CORE)  ? "gru"
                           : hwnas_node_is(node, HWNAS_OP_MATMUL)    ? "linear"
                                                                     : node->op->name;
    const char *weight = at < node->n_inputs ? hwnas_flat_input(f, node, at)->name : "";
    const char *dot = strrchr(weight, '.');
    const char *name =
        dot && dot > weight ? hwnas_flat_name(f, weight, (size_t)(dot - weight)) : NULL;
    return name ? name : fallback;
}

/* ---- Operands ---- */

/* "nn.Linear(3, 4)" as a call, which can be broken into lines. */
static const hwnas_py *parse_call(hwnas_arena *arena, const char *text)
{
    enum { MAX_ARGS = 16 };
    const char *at = strchr(text, '(') + 1;
    const char *callee = hwnas_arena_string(arena, text, (size_t)(at - 1 - text));
    const hwnas_py *args[MAX_ARGS];
    size_t n_args = 0;
    while (*at && at[1]) {
        size_t n = 0;
        for (int depth = 0; at[n + 1] && (depth || at[n] != ',' || n_args == MAX_ARGS - 1); n++)
            depth += (at[n] == '(' || at[n] == '[') - (at[n] == ')' || at[n] == ']');
        hwnas_py_name *name = hwnas_arena_alloc(arena, sizeof *name);
        name->text = hwnas_arena_string(arena, at, n);
        args[n_args++] = hwnas_py_of(arena, name);
        at += n + (at[n] == ',' ? 2 : 0);
    }
    return hwnas_py_make(arena, HWNAS_PY_CALL, callee, n_args, args);
}

hwnas_torch_piece *hwnas_flat_part(hwnas_flat *f, const char *call, const char *label)
{
    hwnas_arena *arena = f->s.arena;
    hwnas_torch_piece *part = hwnas_torch_part(&f->s, HWNAS_PART_PLAIN, 1);
    hwnas_torch_push_module(&f->s, &part->branches[0], parse_call(arena, call), label);
    part->stem = label;
    return part;
}

/* "torch.zeros(3, 4)": what a tensor has before weights are loaded. */
static const char *fresh(hwnas_flat *f, const hwnas_tensor *tensor)
{
    const char *dims = hwnas_flat_list(f, tensor->rank, tensor->dims);
    const char *type = hwnas_flat_dtype(tensor->dtype);
    const char *dtype = strcmp(type, "torch.float32") ? TEXT(", dtype=%s", type) : "";
    const bool is_one = tensor->init == HWNAS_INIT_ONE || tensor->init == HWNAS_INIT_NEAR_ONE;
    if (!tensor->rank)
        dims = "()";
    if (hwnas_tensor_is_given(tensor) && !f->has_file) {
        const int64_t n = hwnas_tensor_count(tensor);
        float *given = hwnas_alloc((size_t)(n + 1) * sizeof *given);
        hwnas_str values = {0};
        hwnas_tensor_fill(tensor, given);
        for (int64_t i = 0; i < n; i++)
            hwnas_str_addf(&values, "%s%s", i ? ", " : "", hwnas_flat_number(f, given[i]));
        free(given);
        const char *text = TEXT("torch.tensor([%s]%s).reshape(%s)", values.s, dtype, dims);
        hwnas_str_done(&values);
        return text;
    }
    if (tensor->is_parameter && tensor->rank > 1 && !f->has_file)
        return TEXT("torch.randn(%s) * 0.02", dims);
    return TEXT("torch.%s(%s%s)", is_one ? "ones" : "zeros", dims, dtype);
}

/* A weight as an attribute: a parameter, or a buffer that nothing learns. */
const hwnas_wire *hwnas_flat_attribute(hwnas_flat *f, int index)
{
    const hwnas_tensor *tensor = &f->graph->tensors[index];
    const char *name = hwnas_flat_name(f, tensor->name, strlen(tensor->name));
    if (!f->wires[index]) {
        const char *values = fresh(f, tensor);
        hwnas_torch_piece *part = hwnas_flat_part(
            f, tensor->is_parameter ? TEXT("nn.Parameter(%s)", values) : TEXT("(%s)", values),
            name                   ? name
            : tensor->is_parameter ? "weight"
                                   : "constant");
        part->is_buffer = !tensor->is_parameter;
        hwnas_flat_add_weight(f, part, "", index);
        f->wires[index] =
            hwnas_wire_make(&f->s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part}, 0, NULL);
    }
    return f->wires[index];
}

/* A constant that reads best as a number; beside a tensor of `rank` dimensions it is the same. */
static bool is_number(const hwnas_tensor *tensor, int rank)
{
    return tensor->kind == HWNAS_TENSOR_WEIGHT && tensor->data && !tensor->is_parameter &&
           hwnas_tensor_count(tensor) == 1 && tensor->rank <= rank;
}

const hwnas_wire *hwnas_flat_form(hwnas_flat *f, const char *text, bool is_primary, size_t n,
                                  const hwnas_wire *const *args)
{
    return hwnas_wire_make(&f->s, (hwnas_wire){.kind = HWNAS_WIRE_FORM, .form = {text, is_primary}},
                           n, args);
}

/* Is it one operand of Python's, without brackets around it? */
bool hwnas_flat_is_one_operand(const char *text)
{
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        if (*at == ' ' && !depth)
            return false;
    }
    return *text != '-' && *text != '~' && !isdigit((unsigned char)*text);
}

/* About as many characters as the text has. */
static size_t length_of(const hwnas_wire *wire)
{
    size_t length = wire->kind == HWNAS_WIRE_FORM ? strlen(wire->form.text) : 4;
    for (size_t i = 0; i < wire->n_args; i++)
        length += length_of(wire->args[i]);
    return length + (wire->kind == HWNAS_WIRE_APPLY ? strlen(wire->part->stem) : 0);
}

const char *hwnas_flat_type(const hwnas_tensor *tensor)
{
    return hwnas_flat_dtype(tensor->dtype);
}

/* The type that an operator has its input `i` in, or gives; NULL: whatever it is. */
const char *hwnas_flat_wanted_type(const hwnas_tensor *out, hwnas_flat_kind kind)
{
    switch (kind) {
    case 'f':
        return "torch.float32";
    case 'l':
        return "torch.int64";
    case 'b':
        return "torch.bool";
    case '+':
        return hwnas_dtype_is_whole(out->dtype) ? "torch.int64" : "torch.float32";
    case 's':
        return hwnas_flat_type(out);
    }
    return NULL;
}

/* "$0.float()" */
const char *hwnas_flat_conversion(hwnas_flat *f, const char *text, const char *type)
{
    static const struct {
        const char *type, *method;
    } short_ones[] = {{"torch.float32", "float"}, {"torch.int64", "long"}, {"torch.bool", "bool"}};
    for (size_t i = 0; i < sizeof short_ones / sizeof *short_ones; i++)
        if (!strcmp(short_ones[i].type, type))
            return TEXT("%s.%s()", text, short_ones[i].method);
    return TEXT("%s.to(%s)", text, type);
}

static char kind_of(const char *takes, int i)
{
    const int n = (int)strlen(takes);
    return takes[i < n ? i : n - 1];
}

/* A number where the text has it beside an operator, else a tensor. */
static const hwnas_wire *number(hwnas_flat *f, const hwnas_tensor *tensor, const char *type)
{
    const double value = tensor->data[0];
    const bool is_float = !type || !strcmp(type, "torch.float32");
    const char *text = type && !strcmp(type, "torch.bool") ? (value ? "True" : "False")
                       : is_float && !hwnas_dtype_is_whole(tensor->dtype)
                           ? hwnas_flat_number(f, value)
                           : TEXT("%.0f", value);
    return hwnas_flat_form(f, *text == '-' ? TEXT("(%s)", text) : text, true, 0, NULL);
}

/* How often the text has "$i", and whether each time alone between commas and brackets. */
static int count_in(const char *text, int i, bool *is_alone)
{
    int n = 0;
    *is_alone = true;
    for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
        if (at[1] - '0' != i)
            continue;
        n++;
        *is_alone = *is_alone && at > text && strchr("([ ", at[-1]) && strchr("),]", at[2]) &&
                    (at[-1] != ' ' || at[-2] == ',') && at[2];
    }
    return n;
}

const hwnas_wire *hwnas_flat_operand(hwnas_flat *f, const hwnas_node *node, int i, const char *text,
                                     const char *takes)
{
    enum { MAX_DEPTH = 2, MAX_LENGTH = 48 };
    const hwnas_tensor *tensor = hwnas_flat_input(f, node, i),
                       *out = hwnas_node_output(f->graph, node);
    const char *type = hwnas_flat_wanted_type(out, kind_of(takes, i));
    bool is_alone;
    const int n = count_in(text, i, &is_alone);
    const bool is_infix = strlen(text) > 4 && text[2] == ' ' && strchr("+-*/<>=&|^", text[3]);
    const bool is_scale = node->op->class == HWNAS_CLASS_QUANTIZATION && i > 0;
    if ((is_infix || is_scale) &&
        is_number(tensor, hwnas_flat_input(f, node, is_scale ? 0 : !i)->rank) &&
        hwnas_flat_input(f, node, is_scale ? 0 : !i)->kind != HWNAS_TENSOR_WEIGHT)
        return number(f, tensor, type);
    const hwnas_wire *wire = tensor->kind == HWNAS_TENSOR_WEIGHT
                                 ? hwnas_flat_attribute(f, node->inputs[i])
                                 : f->wires[node->inputs[i]];
    const bool is_converted = type && strcmp(type, hwnas_flat_type(tensor));
    const bool is_short = hwnas_wire_depth(wire) <= MAX_DEPTH && length_of(wire) <= MAX_LENGTH;
    const bool stays = tensor->kind == HWNAS_TENSOR_WEIGHT ||
                       (n <= 1 && is_short && wire->kind != HWNAS_WIRE_JOIN &&
                        (hwnas_wire_is_primary(wire) || (is_alone && !is_converted)));
    if (!stays) {
        wire = hwnas_wire_as_variable(&f->s, wire);
        f->wires[node->inputs[i]] = wire;
    }
    return is_converted ? hwnas_flat_form(f, hwnas_flat_conversion(f, "$0", type), true, 1, &wire)
                        : wire;
}
