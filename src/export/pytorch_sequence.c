/* pytorch_sequence.c: the steps of __init__ as text: the modules of a sequence, and the loops,
 * cases and tables that make them. */
#include <stdlib.h>

#include "export/pytorch_priv.h"

enum { INDENT = HWNAS_TORCH_INDENT };

bool hwnas_sequence_is_single(const hwnas_sequence *sequence)
{
    size_t n = 0;
    for (size_t i = 0; i < sequence->n; i++)
        n += sequence->steps[i].kind == HWNAS_STEP_MODULE;
    return n == 1 && hwnas_sequence_is_straight(sequence);
}

/* ---- Steps ---- */

static bool is_visible(const hwnas_sequence *sequence);

static bool is_visible_step(const hwnas_step *step)
{
    if (step->kind == HWNAS_STEP_MODULE || step->kind == HWNAS_STEP_LIST)
        return true;
    if (step->kind == HWNAS_STEP_ASSIGN) {
        const hwnas_py_name *name = hwnas_py_real(step->name);
        return !name->is_dropped && !name->is_inlined;
    }
    for (size_t i = 0; i < step->n_arms; i++)
        if (is_visible(&step->arms[i].sequence))
            return true;
    return false;
}

static bool is_visible(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (is_visible_step(&sequence->steps[i]))
            return true;
    return false;
}

bool hwnas_sequence_has_modules(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (sequence->steps[i].kind != HWNAS_STEP_ASSIGN && is_visible_step(&sequence->steps[i]))
            return true;
    return false;
}

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
    if (is_visible(sequence))
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
        if (is_visible_step(&sequence->steps[i]))
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

void hwnas_sequence_write_tables(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                                 int indent)
{
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind == HWNAS_STEP_FOR && step->table && step->table->text)
            write_table(out, arena, step, indent);
        for (size_t a = 0; a < step->n_arms; a++)
            hwnas_sequence_write_tables(out, arena, &step->arms[a].sequence, indent);
    }
}

/* ---- The whole ---- */

void hwnas_sequence_write_modules(hwnas_str *out, hwnas_arena *arena,
                                  const hwnas_sequence *sequence, int indent, const char *prefix,
                                  const char *callee)
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

void hwnas_sequence_write(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                          int indent)
{
    writer w = {.out = out, .arena = arena};
    write_sequence(&w, sequence, indent);
}
