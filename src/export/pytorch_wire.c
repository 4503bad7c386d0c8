/* pytorch_wire.c: forward() of a template that names tensors, as lines with variables.
 *
 * Layers that follow each other are a part, which becomes a submodule; `as`, `from` and joins say
 * what the parts are applied to. Loops and conditions around names are written out. */
#include <string.h>

#include "export/pytorch_priv.h"

enum { INDENT = 4, WIDTH = 88 };

hwnas_named *hwnas_named_find(hwnas_named *list, int slot, int64_t index)
{
    while (list && (list->slot != slot || list->index != index))
        list = list->next;
    return list;
}

bool hwnas_names_tensors(const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        if (stmt->kind == HWNAS_STMT_AS || stmt->kind == HWNAS_STMT_FROM)
            return true;
        for (size_t b = 0; b < stmt->n_bodies; b++)
            if (hwnas_names_tensors(&stmt->bodies[b]))
                return true;
    }
    return false;
}

/* ---- Translating ---- */

static const hwnas_wire *wire_of(hwnas_torch_scope *s, hwnas_variable *variable)
{
    hwnas_wire *wire = hwnas_arena_alloc(s->arena, sizeof *wire);
    *wire = (hwnas_wire){.kind = HWNAS_WIRE_VARIABLE, .variable = variable};
    return wire;
}

static const hwnas_wire *make_wire(hwnas_torch_scope *s, hwnas_wire wire, size_t n_args,
                                   const hwnas_wire *const *args)
{
    wire.n_args = n_args;
    wire.args = hwnas_arena_copy(s->arena, args, n_args * sizeof *args);
    return hwnas_arena_copy(s->arena, &wire, sizeof wire);
}

static void add_line(hwnas_torch_scope *s, hwnas_variable *variable, const hwnas_wire *wire)
{
    hwnas_class *class = s->class;
    class->lines = hwnas_torch_grown(s->arena, class->lines, class->n_lines, &class->line_capacity,
                                     sizeof *class->lines);
    class->lines[class->n_lines++] = (hwnas_line){.variable = variable, .wire = wire};
}

/* The same tensor as a new variable. */
static const hwnas_wire *bind(hwnas_torch_scope *s, const hwnas_wire *wire, const char *wish)
{
    hwnas_variable *variable = hwnas_arena_alloc(s->arena, sizeof *variable);
    variable->wish = wish;
    add_line(s, variable, wire);
    return wire_of(s, variable);
}

static const hwnas_wire *as_variable(hwnas_torch_scope *s, const hwnas_wire *wire)
{
    return wire->kind == HWNAS_WIRE_VARIABLE ? wire : bind(s, wire, NULL);
}

hwnas_sequence *hwnas_wire_target(hwnas_torch_scope *s)
{
    if (!s->open) {
        s->open = hwnas_torch_part(s, HWNAS_PART_PLAIN, 1);
        s->open->stem = "layers";
    }
    return &s->open->branches[0];
}

/* No layer is added to the open part any more. */
static const hwnas_wire *close_part(hwnas_torch_scope *s, const char *stem)
{
    hwnas_part *part = s->open;
    bool has_layers = false;
    s->open = NULL;
    for (size_t i = 0; part && i < part->branches[0].n; i++)
        has_layers |= part->branches[0].steps[i].kind != HWNAS_STEP_ASSIGN;
    if (has_layers) {
        const hwnas_wire *argument = as_variable(s, s->wire);
        part->stem = stem ? stem : part->stem;
        s->wire = make_wire(s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part}, 1, &argument);
    }
    return s->wire;
}

void hwnas_wire_begin(hwnas_torch_scope *s)
{
    s->class->input = hwnas_arena_alloc(s->arena, sizeof *s->class->input);
    s->wire = wire_of(s, s->class->input);
}

void hwnas_wire_end(hwnas_torch_scope *s)
{
    add_line(s, NULL, close_part(s, "head"));
}

/* Translates a branch that starts from `entry` and gives what a join may be given. */
static const hwnas_wire *branch(hwnas_torch_scope *s, const hwnas_body *body,
                                const hwnas_wire *entry, const hwnas_py *in, const char *stem)
{
    s->wire = entry;
    s->in = in;
    s->is_fresh = false; /* the other branches need it too */
    hwnas_torch_body(s, body, NULL);
    hwnas_torch_pin_channels(s);
    const hwnas_wire *wire = close_part(s, stem);
    return wire->kind == HWNAS_WIRE_JOIN ? as_variable(s, wire) : wire;
}

void hwnas_wire_join(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_torch_join *join = hwnas_torch_join_of(stmt->name);
    const hwnas_wire **args = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *args);
    const hwnas_py **ins = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *ins);
    size_t n_full = 0;
    for (size_t i = 0; i < stmt->n_bodies; i++)
        n_full += stmt->bodies[i].n > 0;
    hwnas_torch_pin_channels(s);
    const hwnas_wire *entry = as_variable(s, close_part(s, NULL));
    const hwnas_py *in = s->in;
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        args[i] = branch(s, &stmt->bodies[i], entry, in, n_full > 1 ? "branch" : join->branch);
        ins[i] = s->in;
    }
    s->wire = entry;
    hwnas_torch_join_channels(s, stmt, ins, NULL);
    close_part(s, NULL); /* assignments alone, if any */
    s->wire =
        make_wire(s, (hwnas_wire){.kind = HWNAS_WIRE_JOIN, .join = join}, stmt->n_bodies, args);
    s->is_fresh = true;
}

void hwnas_wire_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_wire *args[2];
    hwnas_torch_pin_channels(s);
    args[0] = as_variable(s, close_part(s, NULL));
    args[1] = branch(s, &stmt->bodies[0], args[0], s->in, "body");
    s->wire = make_wire(
        s, (hwnas_wire){.kind = HWNAS_WIRE_JOIN, .join = hwnas_torch_join_of("add")}, 2, args);
    s->is_fresh = true;
}

static int64_t index_of(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    if (!stmt->expr)
        return 0;
    const hwnas_py *index = hwnas_torch_convert(s, stmt->expr);
    if (hwnas_py_is_value(index))
        return index->value.i;
    s->export->needs_values = true;
    return 0;
}

/* node[0] is node0, s1[0] is s1_0. */
static const char *variable_name(hwnas_torch_scope *s, const hwnas_stmt *stmt, int64_t index)
{
    const char *name = stmt->name;
    if (stmt->expr) {
        bool ends_in_digit = strchr("0123456789", name[strlen(name) - 1]) != NULL;
        name = hwnas_arena_printf(s->arena, "%s%s%lld", name, ends_in_digit ? "_" : "",
                                  (long long)index);
    }
    return hwnas_py_is_free(name) ? name : hwnas_arena_printf(s->arena, "%s_", name);
}

void hwnas_wire_as(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    int64_t index = index_of(s, stmt);
    hwnas_torch_pin_channels(s);
    s->wire = bind(s, close_part(s, NULL), variable_name(s, stmt, index));
    s->is_fresh = false;
    hwnas_named *named = hwnas_arena_alloc(s->arena, sizeof *named);
    *named = (hwnas_named){
        .slot = stmt->slot, .index = index, .wire = s->wire, .in = s->in, .next = s->named};
    s->named = named;
}

void hwnas_wire_from(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_named *named = hwnas_named_find(s->named, stmt->slot, index_of(s, stmt));
    close_part(s, NULL);
    s->is_fresh = false;
    if (named) {
        s->wire = named->wire;
        s->in = named->in;
    } else {
        s->export->needs_values = true;
    }
}

/* ---- Writing ---- */

static void count_uses(const hwnas_wire *wire, size_t line)
{
    if (wire->kind == HWNAS_WIRE_VARIABLE) {
        wire->variable->last_use = wire->variable->uses++ ? wire->variable->last_use : line;
        return;
    }
    for (size_t i = 0; i < wire->n_args; i++)
        count_uses(wire->args[i], line);
}

/* From the last to the first, so that what only unread lines read is not read either. */
static void drop_unread(hwnas_class *class)
{
    for (size_t i = class->n_lines; i-- > 0;) {
        hwnas_line *line = &class->lines[i];
        line->is_dropped = line->variable && !line->variable->uses;
        if (!line->is_dropped)
            count_uses(line->wire, i);
    }
}

/* May the variable of line `at` be called so: has nobody the name who is read after it? */
static bool is_free(const hwnas_class *class, size_t at, const char *text)
{
    if (class->input->uses && class->input->last_use > at && !strcmp(class->input->text, text))
        return false;
    for (size_t i = 0; i < class->n_lines; i++) {
        const hwnas_line *line = &class->lines[i];
        if (i == at || line->is_dropped || !line->variable)
            continue;
        if (i < at && line->variable->last_use > at && !strcmp(line->variable->text, text))
            return false;
    }
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

static const char *wire_text(const hwnas_class *class, const hwnas_wire *wire)
{
    if (wire->kind == HWNAS_WIRE_VARIABLE)
        return wire->variable->text;
    const char *argument = wire->args[0]->variable->text, *name = wire->part->attributes[0];
    return name ? hwnas_arena_printf(class->export->arena, "self.%s(%s)", name, argument)
                : argument;
}

void hwnas_wire_layout(hwnas_str *out, hwnas_arena *arena, int indent, const char *prefix,
                       const char *infix, size_t n, const char *const *texts)
{
    hwnas_py list = {.kind = HWNAS_PY_LIST, .n_args = n}, *item;
    hwnas_str line = {0};
    list.args = hwnas_arena_alloc(arena, (n + 1) * sizeof *list.args);
    for (size_t i = 0; i < n; i++) {
        hwnas_py_name *name = hwnas_arena_alloc(arena, sizeof *name);
        name->text = texts[i];
        list.args[i] = item = hwnas_py_of(arena, name);
        hwnas_str_addf(&line, "%s%s", i && infix ? infix : "", texts[i]);
    }
    if (!infix) {
        const hwnas_py *dim = hwnas_py_int(arena, 1);
        const hwnas_py *args[] = {&list, hwnas_py_make(arena, HWNAS_PY_KEYWORD, "dim", 1, &dim)};
        hwnas_py_layout(out, indent, prefix,
                        hwnas_py_make(arena, HWNAS_PY_CALL, "torch.cat", 2, args), "");
    } else if ((size_t)indent + strlen(prefix) + line.n <= WIDTH || n == 1) {
        hwnas_py_line(out, indent, "%s%s", prefix, line.s);
    } else {
        hwnas_py_line(out, indent, "%s(", prefix);
        for (size_t i = 0; i < n; i++)
            hwnas_py_line(out, indent + INDENT, "%s%s", i ? infix + 1 : "", texts[i]);
        hwnas_py_line(out, indent, ")");
    }
    hwnas_str_done(&line);
}

static void write_line(hwnas_str *out, const hwnas_class *class, const char *prefix,
                       const hwnas_wire *wire)
{
    bool is_join = wire->kind == HWNAS_WIRE_JOIN;
    size_t n = is_join ? wire->n_args : 1;
    hwnas_arena *arena = class->export->arena;
    const char **texts = hwnas_arena_alloc(arena, n * sizeof *texts);
    for (size_t i = 0; i < n; i++)
        texts[i] = wire_text(class, is_join ? wire->args[i] : wire);
    hwnas_wire_layout(out, arena, 2 * INDENT, prefix, is_join ? wire->join->infix : "", n, texts);
}

/* `x = a + b; return x` is `return a + b`. */
static void merge_last(hwnas_class *class)
{
    hwnas_line *result = &class->lines[class->n_lines - 1];
    for (size_t i = class->n_lines - 1; i-- > 0;) {
        hwnas_line *line = &class->lines[i];
        if (line->is_dropped)
            continue;
        if (result->wire->kind == HWNAS_WIRE_VARIABLE && result->wire->variable == line->variable &&
            line->variable->uses == 1) {
            result->wire = line->wire;
            line->is_dropped = true;
            count_uses(line->wire, class->n_lines - 1);
        }
        return;
    }
}

void hwnas_wire_write(hwnas_str *out, hwnas_class *class, bool is_after_init)
{
    class->input->text = "x";
    drop_unread(class);
    merge_last(class);
    hwnas_str_add(out, is_after_init ? "\n" : "");
    hwnas_py_line(out, INDENT, "def forward(self, x):");
    for (size_t i = 0; i < class->n_lines; i++) {
        hwnas_line *line = &class->lines[i];
        if (line->is_dropped)
            continue;
        if (line->variable)
            line->variable->text = spell(class, i, line->variable->wish);
        write_line(out, class,
                   line->variable
                       ? hwnas_arena_printf(class->export->arena, "%s = ", line->variable->text)
                       : "return ",
                   line->wire);
    }
}
