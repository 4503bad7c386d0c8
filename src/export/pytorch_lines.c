/* pytorch_lines.c: the lines of a forward() as text: which are read at all, what variables are
 * called, and where a line is broken. */
#include <string.h>

#include "export/pytorch_priv.h"

enum { INDENT = HWNAS_TORCH_INDENT, WIDTH = 88 };

static void count_uses(const hwnas_wire *wire, size_t line)
{
    if (wire->kind == HWNAS_WIRE_VARIABLE) {
        wire->variable->last_use = wire->variable->uses++ ? wire->variable->last_use : line;
        return;
    }
    for (size_t i = 0; i < wire->n_args; i++)
        count_uses(wire->args[i], line);
}

static bool is_read(const hwnas_line *line)
{
    for (size_t i = 0; i < line->n_variables; i++)
        if (line->variables[i]->uses)
            return true;
    return line->n_variables == 0;
}

/* From the last to the first, so that what only unread lines read is not read either. */
static void drop_unread(hwnas_class *class)
{
    for (size_t i = class->n_lines; i-- > 0;) {
        hwnas_line *line = &class->lines[i];
        line->is_dropped = !is_read(line);
        if (!line->is_dropped)
            count_uses(line->wire, i);
    }
}

static bool is_called(const hwnas_variable *variable, size_t at, const char *text)
{
    return variable->text && variable->last_use > at && !strcmp(variable->text, text);
}

/* May a variable of line `at` be called so: has nobody the name who is read after it? */
static bool is_free(const hwnas_class *class, size_t at, const char *text)
{
    if (class->input && class->input->uses && is_called(class->input, at, text))
        return false;
    for (size_t i = 0; i < class->n_ports; i++) {
        const hwnas_variable *variable = class->ports[i].wire->variable;
        if (!class->in_channels && class->ports[i].index && !strcmp(variable->wish, text))
            return false; /* a list of inputs */
        if (variable->uses && is_called(variable, at, text))
            return false;
    }
    for (size_t i = 0; i <= at && i < class->n_lines; i++)
        for (size_t v = 0; v < class->lines[i].n_variables && !class->lines[i].is_dropped; v++)
            if (is_called(class->lines[i].variables[v], at, text))
                return false;
    return true;
}

static const char *spell(const hwnas_class *class, size_t at, const char *wish)
{
    static const char *const texts[] = {"x", "y", "z", "u", "v", "w", NULL};
    for (const char *const *text = texts; *text && !wish; text++)
        if (is_free(class, at, *text))
            return *text;
    const char *name = wish ? wish : "x2";
    for (int n = 2; !is_free(class, at, name); n++)
        name = hwnas_arena_printf(class->export->arena, "%s_%d", wish ? wish : "x", n);
    return name;
}

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
    const char *copy = hwnas_arena_string(class->export->arena, text.s, text.n);
    hwnas_str_done(&text);
    return copy;
}

static const char *wire_text(const hwnas_class *class, const hwnas_wire *wire)
{
    hwnas_arena *arena = class->export->arena;
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

void hwnas_wire_layout(hwnas_str *out, hwnas_arena *arena, int indent, const char *prefix,
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
    hwnas_arena *arena = class->export->arena;
    const char **texts = hwnas_arena_alloc(arena, n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        texts[i] = wire_text(class, is_several ? wire->args[i] : wire);
        width += strlen(texts[i]) + 2 * (i > 0);
    }
    if (wire->kind == HWNAS_WIRE_JOIN)
        hwnas_wire_layout(out, arena, 2 * INDENT, prefix, wire->join, wire->axis, n, texts);
    else if (wire->kind == HWNAS_WIRE_TUPLE && width > WIDTH)
        hwnas_py_layout(out, 2 * INDENT, prefix, list_of(arena, HWNAS_PY_TUPLE, n, texts), "");
    else
        layout_infix(out, 2 * INDENT, prefix, ", ", n, texts);
}

/* `x = a + b; return x` is `return a + b`. */
static void merge_last(hwnas_class *class)
{
    hwnas_line *result = &class->lines[class->n_lines - 1];
    for (size_t i = class->n_lines - 1; i-- > 0;) {
        hwnas_line *line = &class->lines[i];
        if (line->is_dropped)
            continue;
        if (result->wire->kind == HWNAS_WIRE_VARIABLE && line->n_variables == 1 &&
            result->wire->variable == line->variables[0] && line->variables[0]->uses == 1) {
            result->wire = line->wire;
            line->is_dropped = true;
            count_uses(line->wire, class->n_lines - 1);
        }
        return;
    }
}

/* def forward(self, x, past): */
static void write_signature(hwnas_str *out, hwnas_class *class)
{
    hwnas_arena *arena = class->export->arena;
    const char **texts = hwnas_arena_alloc(arena, (class->n_ports + 2) * sizeof *texts);
    size_t n = 0;
    texts[n++] = "self";
    if (class->input) {
        class->input->text = "x";
        if (class->input->uses || !class->in_channels)
            texts[n++] = "x";
    }
    for (size_t i = 0; i < class->n_ports; i++) {
        hwnas_variable *variable = class->ports[i].wire->variable;
        if (variable == class->input)
            continue;
        if (!variable->text) /* of a template's: several may have one name */
            variable->text = spell(class, 0, variable->wish);
        const char *name = class->in_channels ? variable->text : variable->wish;
        if (strcmp(texts[n - 1], name))
            texts[n++] = name;
    }
    hwnas_py *call = list_of(arena, HWNAS_PY_CALL, n, texts);
    call->text = "forward";
    hwnas_py_layout(out, INDENT, "def ", call, ":");
}

void hwnas_wire_write(hwnas_str *out, hwnas_class *class, bool is_after_init)
{
    drop_unread(class);
    merge_last(class);
    hwnas_str_add(out, is_after_init ? "\n" : "");
    write_signature(out, class);
    for (size_t i = 0; i < class->n_lines; i++) {
        hwnas_line *line = &class->lines[i];
        if (line->is_dropped)
            continue;
        const char *prefix = line->n_variables ? "" : "return ";
        for (size_t v = 0; v < line->n_variables; v++) {
            hwnas_variable *variable = line->variables[v];
            variable->text = variable->uses ? spell(class, i, variable->wish) : "_";
            prefix = hwnas_arena_printf(class->export->arena, "%s%s%s", prefix, v ? ", " : "",
                                        variable->text);
        }
        if (line->n_variables == 1 && line->wire->kind == HWNAS_WIRE_VARIABLE &&
            !strcmp(line->wire->variable->text, line->variables[0]->text))
            continue; /* x = x */
        if (line->n_variables)
            prefix = hwnas_arena_printf(class->export->arena, "%s = ", prefix);
        write_line(out, class, prefix, line->wire);
    }
}
