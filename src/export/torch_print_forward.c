/* torch_print_forward.c: forward() as text: a class's lines, or its parts one after the other. */
#include <string.h>

#include "export/torch_print.h"

enum { INDENT = HWNAS_TORCH_INDENT, WIDTH = 88 };

static const char *wire_text(const hwnas_class *class, const hwnas_wire *wire);

static const char *form_text(const hwnas_class *class, const hwnas_wire *wire)
{
    hwnas_str text = {0};
    for (const char *at = wire->form.text; *at; at++) {
        if (*at != '$') {
            hwnas_str_addn(&text, at, 1);
            continue;
        }
        const char *argument = wire_text(class, wire->args[*++at - '0']);
        const bool has_brackets = text.n && text.s[text.n - 1] == '(' && at[1] == ')';
        const size_t n = strlen(argument);
        if (has_brackets && wire->args[0]->kind == HWNAS_WIRE_JOIN) /* which has its own */
            hwnas_str_addn(&text, argument + 1, n - 2);
        else
            hwnas_str_addn(&text, argument, n);
    }
    const char *copy = hwnas_arena_string(class->module->arena, text.s, text.n);
    hwnas_str_done(&text);
    return copy;
}

static const char *wire_text(const hwnas_class *class, const hwnas_wire *wire)
{
    hwnas_arena *arena = class->module->arena;
    if (wire->kind == HWNAS_WIRE_VARIABLE)
        return wire->variable->text;
    if (wire->kind == HWNAS_WIRE_FORM)
        return form_text(class, wire);
    if (wire->kind == HWNAS_WIRE_JOIN) /* of two, in a form */
        return hwnas_arena_printf(arena, "(%s%s%s)", wire_text(class, wire->args[0]),
                                  wire->join->infix, wire_text(class, wire->args[1]));
    const char *name = wire->part->attributes[0], *args = "";
    for (size_t i = 0; i < wire->n_args; i++)
        args =
            hwnas_arena_printf(arena, "%s%s%s", args, i ? ", " : "", wire->args[i]->variable->text);
    if (!name)
        return args;
    return wire->n_args || wire->is_call ? hwnas_arena_printf(arena, "self.%s(%s)", name, args)
                                         : hwnas_arena_printf(arena, "self.%s", name);
}

/* a + b + c, broken before the operators when they are too long for a line. */
static void layout_infix(hwnas_str *out, int indent, const char *prefix, const char *infix,
                         size_t n, const char *const *texts)
{
    size_t width = (size_t)indent + strlen(prefix);
    for (size_t i = 0; i < n; i++)
        width += strlen(texts[i]) + (i ? strlen(infix) : 0);
    if (width <= WIDTH || n == 1) {
        hwnas_str line = {0};
        for (size_t i = 0; i < n; i++)
            hwnas_str_addf(&line, "%s%s", i ? infix : "", texts[i]);
        hwnas_py_line(out, indent, "%s%s", prefix, line.s);
        hwnas_str_done(&line);
        return;
    }
    hwnas_py_line(out, indent, "%s(", prefix);
    for (size_t i = 0; i < n; i++)
        hwnas_py_line(out, indent + INDENT, "%s%s", i ? infix + 1 : "", texts[i]);
    hwnas_py_line(out, indent, ")");
}

static hwnas_py *list_of(hwnas_arena *arena, hwnas_py_kind kind, size_t n, const char *const *texts)
{
    const hwnas_py **items = hwnas_arena_alloc(arena, (n + 1) * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        hwnas_py_name *name = hwnas_arena_alloc(arena, sizeof *name);
        name->text = texts[i];
        items[i] = hwnas_py_of(arena, name);
    }
    return hwnas_py_make(arena, kind, NULL, n, items);
}

static void layout_join(hwnas_str *out, hwnas_arena *arena, int indent, const char *prefix,
                        const hwnas_torch_join *join, int64_t axis, size_t n,
                        const char *const *texts)
{
    if (join->infix || n == 1) {
        layout_infix(out, indent, prefix, join->infix ? join->infix : "", n, texts);
    } else if (join->call) {
        const hwnas_py *dim = hwnas_py_int(arena, axis);
        const hwnas_py *args[] = {list_of(arena, HWNAS_PY_LIST, n, texts),
                                  hwnas_py_make(arena, HWNAS_PY_KEYWORD, "dim", 1, &dim)};
        hwnas_py_layout(out, indent, prefix,
                        hwnas_py_make(arena, HWNAS_PY_CALL, join->call, 2, args), "");
    } else { /* table[:, index] */
        const char *before = "";
        for (int64_t i = 0; i < axis; i++)
            before = hwnas_arena_printf(arena, "%s:, ", before);
        hwnas_py_line(out, indent, "%s%s[%s%s]", prefix, texts[0], before, texts[1]);
    }
}

static void write_line(hwnas_str *out, const hwnas_class *class, const char *prefix,
                       const hwnas_wire *wire)
{
    bool is_several = wire->kind == HWNAS_WIRE_JOIN || wire->kind == HWNAS_WIRE_TUPLE;
    size_t n = is_several ? wire->n_args : 1, width = 2 * INDENT + strlen(prefix);
    hwnas_arena *arena = class->module->arena;
    const char **texts = hwnas_arena_alloc(arena, n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        texts[i] = wire_text(class, is_several ? wire->args[i] : wire);
        width += strlen(texts[i]) + 2 * (i > 0);
    }
    if (wire->kind == HWNAS_WIRE_JOIN)
        layout_join(out, arena, 2 * INDENT, prefix, wire->join, wire->axis, n, texts);
    else if (wire->kind == HWNAS_WIRE_TUPLE && width > WIDTH)
        hwnas_py_layout(out, 2 * INDENT, prefix, list_of(arena, HWNAS_PY_TUPLE, n, texts), "");
    else
        layout_infix(out, 2 * INDENT, prefix, ", ", n, texts);
}

/* def forward(self, x, past): */
static void write_signature(hwnas_str *out, const hwnas_class *class)
{
    hwnas_arena *arena = class->module->arena;
    const char **texts = hwnas_arena_alloc(arena, (class->n_arguments + 2) * sizeof *texts);
    size_t n = 0;
    texts[n++] = "self";
    if (class->input && (class->input->uses || class->is_network))
        texts[n++] = "x";
    for (size_t i = 0; i < class->n_arguments; i++) {
        const hwnas_variable *variable = class->arguments[i];
        const char *name = class->is_network ? variable->wish : variable->text;
        if (variable != class->input && strcmp(texts[n - 1], name))
            texts[n++] = name;
    }
    hwnas_py *call = list_of(arena, HWNAS_PY_CALL, n, texts);
    call->text = "forward";
    hwnas_py_layout(out, INDENT, "def ", call, ":");
}

static void write_lines(hwnas_str *out, const hwnas_class *class)
{
    hwnas_arena *arena = class->module->arena;
    write_signature(out, class);
    for (size_t i = 0; i < class->n_lines; i++) {
        const hwnas_line *line = &class->lines[i];
        const char *prefix = line->n_variables ? "" : "return ";
        if (line->is_dropped)
            continue;
        for (size_t v = 0; v < line->n_variables; v++)
            prefix = hwnas_arena_printf(arena, "%s%s%s", prefix, v ? ", " : "",
                                        line->variables[v]->text);
        if (line->n_variables == 1 && line->wire->kind == HWNAS_WIRE_VARIABLE &&
            !strcmp(line->wire->variable->text, line->variables[0]->text))
            continue; /* x = x */
        if (line->n_variables)
            prefix = hwnas_arena_printf(arena, "%s = ", prefix);
        write_line(out, class, prefix, line->wire);
    }
}

/* What a part makes of x: "self.gate(x)", "x * self.gate(x)", "torch.cat([...], dim=1)". */
static void write_result(hwnas_str *out, const hwnas_class *class, const hwnas_torch_piece *part,
                         const char *prefix)
{
    hwnas_arena *arena = class->module->arena;
    static const hwnas_torch_join sum = {.infix = " + "};
    const char **texts = hwnas_arena_alloc(arena, (part->n_branches + 1) * sizeof *texts);
    size_t n = 0;
    if (part->kind == HWNAS_PART_RESIDUAL)
        texts[n++] = "x";
    for (size_t b = 0; b < part->n_branches; b++)
        texts[n++] = part->attributes[b]
                         ? hwnas_arena_printf(arena, "self.%s(x)", part->attributes[b])
                         : "x";
    layout_join(out, arena, 2 * INDENT, prefix, part->kind == HWNAS_PART_JOIN ? part->join : &sum,
                part->axis, n, texts);
}

static void write_parts(hwnas_str *out, const hwnas_class *class)
{
    size_t last = class->n_parts - 1;
    while (last && class->parts[last]->kind == HWNAS_PART_PLAIN &&
           !class->parts[last]->attributes[0])
        last--;
    hwnas_py_line(out, INDENT, "def forward(self, x):");
    for (size_t p = 0; p <= last; p++) {
        const hwnas_torch_piece *part = class->parts[p];
        const char *begin = p == last ? "return " : "x = ";
        if (part->kind == HWNAS_PART_PLAIN && !part->attributes[0])
            continue;
        if (part->when) {
            hwnas_py_line(out, 2 * INDENT, "y = self.%s(x)", part->attributes[0]);
            hwnas_py_line(out, 2 * INDENT, "%sx + y if self.%s else y", begin,
                          hwnas_class_switch(class, part));
        } else {
            write_result(out, class, part, begin);
        }
    }
}

void hwnas_class_print_forward(hwnas_str *out, const hwnas_class *class)
{
    if (class->has_lines)
        write_lines(out, class);
    else
        write_parts(out, class);
}
