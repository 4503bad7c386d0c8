/* pytorch_write.c: a translated class as text. */
#include <stdlib.h>
#include <string.h>

#include "export/pytorch_priv.h"

enum { INDENT = 4 };

/* ---- Names: drop what nothing reads, then spell the rest ---- */

static void count_sequence(const hwnas_sequence *sequence);

static void count_for(const hwnas_step *step)
{
    size_t n_used = 0;
    count_sequence(&step->arms[0].sequence);
    for (size_t i = 0; i < step->n_targets; i++)
        if (step->targets[i]->uses || step->n_targets == 1) {
            hwnas_py_count(step->iterables[i]);
            n_used++;
        }
    if (step->table)
        step->table->uses += n_used > 1;
}

static void count_sequence(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind == HWNAS_STEP_FOR) {
            count_for(step);
            continue;
        }
        if (step->expr && !(step->name && hwnas_py_real(step->name)->is_dropped))
            hwnas_py_count(step->expr);
        for (size_t a = 0; a < step->n_arms; a++) {
            if (step->arms[a].condition)
                hwnas_py_count(step->arms[a].condition);
            count_sequence(&step->arms[a].sequence);
        }
    }
}

static void count_class(hwnas_class *class)
{
    for (size_t i = 0; i < class->n_names; i++)
        class->names[i]->uses = class->names[i]->truth_uses = 0;
    for (size_t p = 0; p < class->n_parts; p++) {
        const hwnas_part *part = class->parts[p];
        if (part->when)
            hwnas_py_count(part->when);
        for (size_t b = 0; b < part->n_branches; b++) {
            count_sequence(&part->branches[b]);
            part->branches[b].list->uses += !hwnas_sequence_is_straight(&part->branches[b]);
        }
    }
    if (class->out_variable)
        hwnas_py_count(class->out_variable);
}

/* Dropping a variable may leave another unread. */
static void drop_unread(hwnas_class *class)
{
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        count_class(class);
        for (size_t i = 0; i < class->n_names; i++) {
            hwnas_py_name *name = class->names[i];
            if (!name->uses && !name->is_dropped)
                name->is_dropped = has_changed = true;
        }
    }
}

static bool is_taken(const hwnas_class *class, const char *text)
{
    for (size_t i = 0; i < class->n_names; i++)
        if (class->names[i]->text && !strcmp(class->names[i]->text, text))
            return true;
    return !hwnas_py_is_free(text);
}

static void spell(hwnas_class *class, hwnas_py_name *name)
{
    hwnas_arena *arena = class->export->arena;
    for (const char *const *wish = name->wishes; *wish; wish++)
        if (name->is_own ? !is_taken(class, *wish) : hwnas_py_is_free(*wish)) {
            name->text = *wish;
            return;
        }
    if (!name->is_own)
        name->text = hwnas_arena_printf(arena, "%s_", name->wishes[0]);
    for (int n = 2; !name->text; n++) {
        const char *text = hwnas_arena_printf(arena, "%s%d", name->wishes[0], n);
        if (!is_taken(class, text))
            name->text = text;
    }
}

static void settle_names(hwnas_class *class)
{
    drop_unread(class);
    for (int is_own = 0; is_own < 2; is_own++)
        for (size_t i = 0; i < class->n_names; i++) {
            hwnas_py_name *name = class->names[i];
            if (name->is_own != is_own || name->is_dropped)
                continue;
            name->is_inlined = is_own && name->meaning && name->uses == 1;
            if (!name->is_inlined)
                spell(class, name);
        }
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

/* ---- Parts ---- */

/* Writes what must be said before and then PREFIX callee(modules). */
static void write_container(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
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

bool hwnas_sequence_is_single(const hwnas_sequence *sequence)
{
    size_t n = 0;
    for (size_t i = 0; i < sequence->n; i++)
        n += sequence->steps[i].kind == HWNAS_STEP_MODULE;
    return n == 1 && hwnas_sequence_is_straight(sequence);
}

static bool has_modules(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (sequence->steps[i].kind != HWNAS_STEP_ASSIGN && is_visible_step(&sequence->steps[i]))
            return true;
    return false;
}

/* An attribute's name that no part before has; numbered when there are several of its kind. */
static const char *new_attribute(const hwnas_class *class, const char *text)
{
    hwnas_arena *arena = class->export->arena;
    const char *name = text;
    size_t stem = strcspn(text, "1");
    for (int n = 2;; n++) {
        bool is_free = true;
        for (size_t p = 0; p < class->n_parts; p++)
            for (size_t b = 0; b < class->parts[p]->n_branches; b++) {
                const char *other = class->parts[p]->attributes[b];
                is_free = is_free && !(other && !strcmp(other, name));
            }
        if (is_free)
            return name;
        name = hwnas_arena_printf(arena, "%.*s%d", (int)stem, text, n);
    }
}

/* What nn.Module calls something else. */
static bool is_of_module(const char *name)
{
    static const char *const taken[] = {
        "add_module",
        "apply",
        "bfloat16",
        "buffers",
        "call_super_init",
        "children",
        "compile",
        "cpu",
        "cuda",
        "double",
        "dump_patches",
        "eval",
        "extra_repr",
        "float",
        "forward",
        "get_buffer",
        "get_extra_state",
        "get_parameter",
        "half",
        "modules",
        "parameters",
        "register_hook",
        "requires_grad_",
        "share_memory",
        "state_dict",
        "to",
        "to_empty",
        "train",
        "training",
        "type",
        "xpu",
        "zero_grad",
        "out_channels",
        "get_submodule",
        NULL,
    };
    for (const char *const *word = taken; *word; word++)
        if (!strcmp(*word, name))
            return true;
    return !hwnas_py_is_free(name);
}

/* The layer of a sequence that is just one. */
static const char *only_label(hwnas_arena *arena, const hwnas_sequence *sequence)
{
    const char *label = NULL;
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind == HWNAS_STEP_ASSIGN)
            continue;
        if (step->kind != HWNAS_STEP_MODULE || label)
            return NULL;
        label = step->label;
    }
    return label && is_of_module(label) ? hwnas_arena_printf(arena, "%s_", label) : label;
}

static const char *attribute_stem(const hwnas_class *class, size_t p, size_t n_full)
{
    const hwnas_part *part = class->parts[p];
    const char *only = only_label(class->export->arena, &part->branches[0]);
    if (part->kind == HWNAS_PART_RESIDUAL)
        return "body";
    if (part->kind == HWNAS_PART_JOIN)
        return n_full > 1 ? "branch1" : part->join->branch;
    return only ? only : p + 1 < class->n_parts ? "stem" : "head";
}

static void name_attributes(hwnas_class *class)
{
    for (size_t p = 0; p < class->n_parts; p++) {
        hwnas_part *part = class->parts[p];
        size_t n_full = 0;
        for (size_t b = 0; b < part->n_branches; b++)
            n_full += has_modules(&part->branches[b]);
        for (size_t b = 0; b < part->n_branches; b++)
            if (has_modules(&part->branches[b]))
                part->attributes[b] = new_attribute(class, attribute_stem(class, p, n_full));
    }
}

/* Do other parts have the same stem? */
static bool is_shared_stem(const hwnas_class *class, const char *const *stems, size_t p)
{
    for (size_t i = 0; i < class->n_parts; i++)
        if (i != p && stems[i] && !strcmp(stems[i], stems[p]))
            return true;
    return false;
}

static bool is_attribute_taken(const hwnas_class *class, const char *const *stems, const char *name)
{
    for (size_t i = 0; i < class->n_parts; i++) {
        const char *other = class->parts[i]->attributes[0];
        if (other ? !strcmp(other, name) : stems[i] && !strcmp(stems[i], name))
            return true;
    }
    return false;
}

/* self.stem, self.edge1, self.edge2, self.conv3x3_1, ... */
static void name_line_parts(hwnas_class *class)
{
    hwnas_arena *arena = class->export->arena;
    const char **stems = hwnas_arena_alloc(arena, (class->n_parts + 1) * sizeof *stems);
    for (size_t p = 0; p < class->n_parts; p++) {
        const hwnas_sequence *layers = &class->parts[p]->branches[0];
        const char *only = only_label(arena, layers);
        if (has_modules(layers))
            stems[p] = only ? only : class->parts[p]->stem;
        if (stems[p] && !strcmp(stems[p], "layers") && !p)
            stems[p] = "stem";
    }
    for (size_t p = 0; p < class->n_parts; p++) {
        if (!stems[p] || !is_shared_stem(class, stems, p))
            continue;
        bool ends_in_digit = strchr("0123456789", stems[p][strlen(stems[p]) - 1]) != NULL;
        for (int n = 1; !class->parts[p]->attributes[0]; n++) {
            const char *name =
                hwnas_arena_printf(arena, "%s%s%d", stems[p], ends_in_digit ? "_" : "", n);
            if (!is_attribute_taken(class, stems, name))
                class->parts[p]->attributes[0] = name;
        }
    }
    for (size_t p = 0; p < class->n_parts; p++)
        if (stems[p] && !class->parts[p]->attributes[0])
            class->parts[p]->attributes[0] = stems[p];
}

static const char *switch_name(const hwnas_class *class, const hwnas_part *part)
{
    size_t n = 1;
    for (size_t p = 0; class->parts[p] != part; p++)
        n += class->parts[p]->when != NULL;
    return n == 1 ? "use_residual" : hwnas_arena_printf(class->export->arena, "use_residual%zu", n);
}

static void write_part(hwnas_str *out, const hwnas_class *class, const hwnas_part *part)
{
    hwnas_arena *arena = class->export->arena;
    if (part->when) {
        const char *prefix = hwnas_arena_printf(arena, "self.%s = ", switch_name(class, part));
        hwnas_py_layout(out, 2 * INDENT, prefix, part->when, "");
    }
    for (size_t b = 0; b < part->n_branches; b++) {
        if (part->attributes[b]) {
            write_container(out, arena, &part->branches[b], 2 * INDENT,
                            hwnas_arena_printf(arena, "self.%s = ", part->attributes[b]),
                            "nn.Sequential");
        } else {
            writer w = {.out = out, .arena = arena};
            write_sequence(&w, &part->branches[b], 2 * INDENT);
        }
    }
}

/* What a part makes of x: "self.gate(x)", "x * self.gate(x)", "torch.cat([...], dim=1)". */
static void write_result(hwnas_str *out, const hwnas_class *class, const hwnas_part *part,
                         const char *prefix)
{
    hwnas_arena *arena = class->export->arena;
    const char **texts = hwnas_arena_alloc(arena, (part->n_branches + 1) * sizeof *texts);
    size_t n = 0;
    if (part->kind == HWNAS_PART_RESIDUAL)
        texts[n++] = "x";
    for (size_t b = 0; b < part->n_branches; b++)
        texts[n++] = part->attributes[b]
                         ? hwnas_arena_printf(arena, "self.%s(x)", part->attributes[b])
                         : "x";
    hwnas_wire_layout(out, arena, 2 * INDENT, prefix,
                      part->kind == HWNAS_PART_JOIN ? part->join : hwnas_torch_join_of("add"),
                      part->axis, n, texts);
}

static void write_forward(hwnas_str *out, const hwnas_class *class)
{
    size_t last = class->n_parts - 1;
    while (last && class->parts[last]->kind == HWNAS_PART_PLAIN &&
           !class->parts[last]->attributes[0])
        last--;
    hwnas_str_add(out, "\n");
    hwnas_py_line(out, INDENT, "def forward(self, x):");
    for (size_t p = 0; p <= last; p++) {
        const hwnas_part *part = class->parts[p];
        const char *begin = p == last ? "return " : "x = ";
        if (part->kind == HWNAS_PART_PLAIN && !part->attributes[0])
            continue;
        if (part->when) {
            hwnas_py_line(out, 2 * INDENT, "y = self.%s(x)", part->attributes[0]);
            hwnas_py_line(out, 2 * INDENT, "%sx + y if self.%s else y", begin,
                          switch_name(class, part));
        } else {
            write_result(out, class, part, begin);
        }
    }
}

/* ---- Classes ---- */

static void write_signature(hwnas_str *out, const hwnas_class *class)
{
    hwnas_arena *arena = class->export->arena;
    const hwnas_py *args[80];
    hwnas_py_name self = {.text = "self"};
    size_t n = 0;
    args[n++] = hwnas_py_of(arena, &self);
    if (class->in_channels && class->in_channels->uses)
        args[n++] = hwnas_py_of(arena, class->in_channels);
    for (int is_optional = 0; is_optional < 2; is_optional++)
        for (size_t p = 0; p < class->template->n_parameters; p++) {
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

void hwnas_class_write(hwnas_str *out, hwnas_class *class)
{
    hwnas_arena *arena = class->export->arena;
    bool is_plain =
        class->n_parts == 1 && class->parts[0]->kind == HWNAS_PART_PLAIN && !class->has_lines;
    settle_names(class);
    if (class->has_lines)
        name_line_parts(class);
    else
        name_attributes(class);
    hwnas_str_addf(out, "(nn.%s):\n", is_plain ? "Sequential" : "Module");
    bool has_init = class->n_parts || class->out_variable;
    if (has_init)
        write_signature(out, class);
    if (has_init && !is_plain)
        hwnas_py_line(out, 2 * INDENT, "super().__init__()");
    for (size_t p = 0; p < class->n_parts; p++)
        for (size_t b = 0; b < class->parts[p]->n_branches; b++)
            write_tables(out, arena, &class->parts[p]->branches[b], 2 * INDENT);
    if (is_plain)
        write_container(out, arena, &class->parts[0]->branches[0], 2 * INDENT, "",
                        "super().__init__");
    else
        for (size_t p = 0; p < class->n_parts; p++)
            write_part(out, class, class->parts[p]);
    if (class->out_variable)
        hwnas_py_layout(out, 2 * INDENT, "self.out_channels = ", class->out_variable, "");
    if (is_plain) /* then the modules are no attributes */
        class->parts[0]->attributes[0] = NULL;
    hwnas_class_find_table(class);
    if (!class->in_channels)
        hwnas_class_write_tie(out, class);
    if (class->has_lines)
        hwnas_wire_write(out, class, has_init);
    else if (!is_plain)
        write_forward(out, class);
}
