/* torch_print_init.c: __init__ as text: the modules of a sequence, and the loops,
 * cases and tables that make them. */
#include <stdlib.h>

#include "export/torch_print.h"

enum { INDENT = HWNAS_TORCH_INDENT };

/* ---- Steps ---- */

/* A Python list in the making. Modules wait until something else must be written, so that as many
 * as possible are added at once. */
typedef struct writer {
    hwnas_str *out;
    hwnas_arena *arena;
    const char *list;
    bool is_started;
    size_t n_waiting, capacity;
    const hwnas_py **waiting;
} writer;

static void flush(writer *w, int indent)
{
    enum { MAX_IN_LINE = 3 };
    hwnas_str prefix = {0};
    size_t n = w->n_waiting;
    bool is_append = w->is_started && n == 1;
    if (!n)
        return;
    if (is_append)
        hwnas_str_addf(&prefix, "%s.append", w->list);
    else
        hwnas_str_addf(&prefix, "%s %s= ", w->list, w->is_started ? "+" : "");
    hwnas_py *items =
        hwnas_py_make(w->arena, is_append ? HWNAS_PY_CALL : HWNAS_PY_LIST, NULL, n, w->waiting);
    items->is_tall = n > MAX_IN_LINE;
    hwnas_py_layout(w->out, indent, prefix.s, items, "");
    hwnas_str_done(&prefix);
    w->is_started = true;
    w->n_waiting = 0;
}

/* Before a statement with an indented block. */
static void begin_block(writer *w, int indent)
{
    flush(w, indent);
    if (!w->is_started)
        hwnas_py_line(w->out, indent, "%s = []", w->list);
    w->is_started = true;
}

static void write_sequence(writer *w, const hwnas_sequence *sequence, int indent);

static void write_block(writer *w, const hwnas_sequence *sequence, int indent)
{
    if (hwnas_sequence_is_visible(sequence))
        write_sequence(w, sequence, indent);
    else
        hwnas_py_line(w->out, indent, "pass");
    flush(w, indent);
}

static void write_module(writer *w, const hwnas_step *step, int indent)
{
    (void)indent;
    HWNAS_GROW(w->waiting, w->n_waiting, w->capacity);
    w->waiting[w->n_waiting++] = step->expr;
}

static void write_assign(writer *w, const hwnas_step *step, int indent)
{
    const hwnas_py_name *name = hwnas_py_real(step->name);
    hwnas_str prefix = {0};
    if (!name->meaning) /* it changes, and those that wait may read it */
        flush(w, indent);
    hwnas_str_addf(&prefix, "%s = ", name->text);
    hwnas_py_layout(w->out, indent, prefix.s, step->expr, "");
    hwnas_str_done(&prefix);
}

static void write_if(writer *w, const hwnas_step *step, int indent)
{
    begin_block(w, indent);
    for (size_t i = 0; i < step->n_arms; i++) {
        const hwnas_arm *arm = &step->arms[i];
        if (arm->condition)
            hwnas_py_layout(w->out, indent, i ? "elif " : "if ", arm->condition, ":");
        else
            hwnas_py_line(w->out, indent, "else:");
        write_block(w, &arm->sequence, indent + INDENT);
    }
}

/* The targets that are read; a loop that reads none still needs one. */
static size_t used_targets(const hwnas_step *step, size_t *used)
{
    size_t n = 0;
    for (size_t i = 0; i < step->n_targets; i++)
        if (!step->targets[i]->is_dropped)
            used[n++] = i;
    if (!n)
        used[n++] = 0;
    return n;
}

static const hwnas_py *column_value(hwnas_arena *arena, const hwnas_step *step, size_t column,
                                    const hwnas_py *value)
{
    return hwnas_name_is_truth(step->targets[column])
               ? hwnas_py_make(arena, HWNAS_PY_TRUTH, NULL, 1, &value)
               : value;
}

static const hwnas_py *iterable(writer *w, const hwnas_step *step, const size_t *used, size_t n)
{
    const hwnas_py **lists = hwnas_arena_alloc(w->arena, n * sizeof *lists);
    for (size_t i = 0; i < n; i++)
        lists[i] = column_value(w->arena, step, used[i], step->iterables[used[i]]);
    return n == 1 ? lists[0] : hwnas_py_make(w->arena, HWNAS_PY_CALL, "zip", n, lists);
}

static void write_for(writer *w, const hwnas_step *step, int indent)
{
    hwnas_str prefix = {0};
    size_t *used = hwnas_arena_alloc(w->arena, step->n_targets * sizeof *used);
    size_t n = used_targets(step, used);
    begin_block(w, indent);
    hwnas_str_add(&prefix, "for ");
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(&prefix, "%s%s", i ? ", " : "",
                       step->targets[used[i]]->is_dropped ? "_" : step->targets[used[i]]->text);
    hwnas_str_add(&prefix, " in ");
    if (step->table && step->table->text)
        hwnas_py_line(w->out, indent, "%s%s:", prefix.s, step->table->text);
    else
        hwnas_py_layout(w->out, indent, prefix.s, iterable(w, step, used, n), ":");
    write_block(w, &step->arms[0].sequence, indent + INDENT);
    hwnas_str_done(&prefix);
}

static void write_list(writer *w, const hwnas_step *step, int indent)
{
    writer inner = {.out = w->out, .arena = w->arena, .list = hwnas_py_real(step->name)->text};
    write_sequence(&inner, &step->arms[0].sequence, indent);
    flush(&inner, indent);
    if (!inner.is_started)
        hwnas_py_line(w->out, indent, "%s = []", inner.list);
    free(inner.waiting);
}

static void (*const step_writers[])(writer *, const hwnas_step *, int) = {
    [HWNAS_STEP_MODULE] = write_module, [HWNAS_STEP_ASSIGN] = write_assign,
    [HWNAS_STEP_IF] = write_if,         [HWNAS_STEP_FOR] = write_for,
    [HWNAS_STEP_LIST] = write_list,
};

static void write_sequence(writer *w, const hwnas_sequence *sequence, int indent)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (hwnas_step_is_visible(&sequence->steps[i]))
            step_writers[sequence->steps[i].kind](w, &sequence->steps[i], indent);
}

/* ---- Tables: the constant rows that loops walk ---- */

static void write_table(hwnas_str *out, hwnas_arena *arena, const hwnas_step *step, int indent)
{
    hwnas_str heading = {0};
    size_t *used = hwnas_arena_alloc(arena, step->n_targets * sizeof *used);
    size_t n = used_targets(step, used);
    const hwnas_py **row = hwnas_arena_alloc(arena, n * sizeof *row);
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(&heading, "%s%s", i ? ", " : "", step->targets[used[i]]->text);
    hwnas_py_line(out, indent, "%s = [", step->table->text);
    hwnas_py_line(out, indent + INDENT, "# %s", heading.s);
    for (size_t r = 0; r < step->iterables[0]->value.list.n; r++) {
        for (size_t i = 0; i < n; i++)
            row[i] =
                column_value(arena, step, used[i],
                             hwnas_py_value(arena, step->iterables[used[i]]->value.list.items[r]));
        hwnas_py_layout(out, indent + INDENT, "",
                        hwnas_py_make(arena, HWNAS_PY_TUPLE, NULL, n, row), ",");
    }
    hwnas_py_line(out, indent, "]");
    hwnas_str_done(&heading);
}

static void write_tables(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                         int indent)
{
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind == HWNAS_STEP_FOR && step->table && step->table->text)
            write_table(out, arena, step, indent);
        for (size_t a = 0; a < step->n_arms; a++)
            write_tables(out, arena, &step->arms[a].sequence, indent);
    }
}

/* ---- The whole ---- */

static void write_modules(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                          int indent, const char *prefix, const char *callee)
{
    writer w = {.out = out, .arena = arena, .list = sequence->list->text};
    bool is_single = false;
    write_sequence(&w, sequence, indent);
    if (!hwnas_sequence_is_straight(sequence)) {
        flush(&w, indent);
        hwnas_py_line(out, indent, "%s%s(*%s)", prefix, callee, w.list);
    } else {
        is_single = w.n_waiting == 1 && *prefix;
        hwnas_py *call = hwnas_py_make(arena, HWNAS_PY_CALL, callee, w.n_waiting, w.waiting);
        call->is_tall = w.n_waiting > 1;
        hwnas_py_layout(out, indent, prefix, is_single ? w.waiting[0] : call, "");
    }
    free(w.waiting);
}

static void write_steps(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                        int indent)
{
    writer w = {.out = out, .arena = arena};
    write_sequence(&w, sequence, indent);
}

/* ---- Parts ---- */

const char *hwnas_class_switch(const hwnas_class *class, const hwnas_torch_piece *part)
{
    size_t n = 1;
    for (size_t p = 0; class->parts[p] != part; p++)
        n += class->parts[p]->when != NULL;
    return n == 1 ? "use_residual" : hwnas_arena_printf(class->module->arena, "use_residual%zu", n);
}

static void write_part(hwnas_str *out, const hwnas_class *class, const hwnas_torch_piece *part)
{
    hwnas_arena *arena = class->module->arena;
    if (part->when) {
        const char *prefix =
            hwnas_arena_printf(arena, "self.%s = ", hwnas_class_switch(class, part));
        hwnas_py_layout(out, 2 * INDENT, prefix, part->when, "");
    }
    for (size_t b = 0; b < part->n_branches; b++) {
        if (part->attributes[b] && part->is_buffer) {
            const hwnas_value name = {.kind = HWNAS_VALUE_SYMBOL, .s = part->attributes[b]};
            const hwnas_py *args[] = {hwnas_py_value(arena, name),
                                      part->branches[b].steps[0].expr->args[0]};
            hwnas_py_layout(out, 2 * INDENT, "",
                            hwnas_py_make(arena, HWNAS_PY_CALL, "self.register_buffer", 2, args),
                            "");
        } else if (part->attributes[b]) {
            write_modules(out, arena, &part->branches[b], 2 * INDENT,
                          hwnas_arena_printf(arena, "self.%s = ", part->attributes[b]),
                          "nn.Sequential");
        } else {
            write_steps(out, arena, &part->branches[b], 2 * INDENT);
        }
    }
}

static void write_signature(hwnas_str *out, const hwnas_class *class)
{
    hwnas_arena *arena = class->module->arena;
    const hwnas_py *args[80];
    hwnas_py_name self = {.text = "self"};
    size_t n = 0;
    args[n++] = hwnas_py_of(arena, &self);
    if (class->in_channels && class->in_channels->uses)
        args[n++] = hwnas_py_of(arena, class->in_channels);
    for (int is_optional = 0; is_optional < 2; is_optional++)
        for (size_t p = 0; p < class->n_parameters; p++) {
            hwnas_py_name *name = class->parameters[p];
            const hwnas_py *fallback = class->fallbacks[p];
            bool has_default = fallback && fallback->kind == HWNAS_PY_VALUE;
            if (!name->uses || has_default != is_optional)
                continue;
            if (has_default && hwnas_name_is_truth(name))
                fallback = hwnas_py_make(arena, HWNAS_PY_TRUTH, NULL, 1, &fallback);
            args[n++] = has_default
                            ? hwnas_py_make(arena, HWNAS_PY_KEYWORD, name->text, 1, &fallback)
                            : hwnas_py_of(arena, name);
        }
    if (class->n_outputs)
        args[n++] = hwnas_py_make(arena, HWNAS_PY_KEYWORD, class->n_outputs->text, 1,
                                  &class->n_outputs_value);
    hwnas_py_layout(out, INDENT, "def ", hwnas_py_make(arena, HWNAS_PY_CALL, "__init__", n, args),
                    ":");
}

void hwnas_class_print_init(hwnas_str *out, const hwnas_class *class)
{
    hwnas_arena *arena = class->module->arena;
    const bool is_plain = hwnas_class_is_plain(class);
    write_signature(out, class);
    if (!is_plain)
        hwnas_py_line(out, 2 * INDENT, "super().__init__()");
    for (size_t p = 0; p < class->n_parts; p++)
        for (size_t b = 0; b < class->parts[p]->n_branches; b++)
            write_tables(out, arena, &class->parts[p]->branches[b], 2 * INDENT);
    for (size_t p = 0; p < class->n_parts && !is_plain; p++)
        write_part(out, class, class->parts[p]);
    if (is_plain)
        write_modules(out, arena, &class->parts[0]->branches[0], 2 * INDENT, "",
                      "super().__init__");
    if (class->out_variable)
        hwnas_py_layout(out, 2 * INDENT, "self.out_channels = ", class->out_variable, "");
    if (class->is_network && class->tied && class->table)
        hwnas_py_line(out, 2 * INDENT, "self%s.weight = self%s.weight", class->tied, class->table);
}
