/* torch_names.c: what the variables and attributes of a class are called. What nothing reads is
 * dropped, the rest is spelled; an attribute is called after what is in it. */
#include "export/torch_tree.h"

#include <string.h>

#include "export/torch_helpers.h"

/* ---- Variables ---- */

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
        const hwnas_torch_piece *part = class->parts[p];
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
    hwnas_arena *arena = class->module->arena;
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

/* ---- Attributes ---- */

/* An attribute's name that no part before has; numbered when there are several of its kind. */
static const char *new_attribute(const hwnas_class *class, const char *text)
{
    hwnas_arena *arena = class->module->arena;
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
    const hwnas_torch_piece *part = class->parts[p];
    const char *only = only_label(class->module->arena, &part->branches[0]);
    if (part->kind == HWNAS_PART_RESIDUAL)
        return "body";
    if (part->kind == HWNAS_PART_JOIN)
        return n_full > 1 ? "branch1" : part->join->branch;
    return only ? only : p + 1 < class->n_parts ? "stem" : "head";
}

static void name_attributes(hwnas_class *class)
{
    for (size_t p = 0; p < class->n_parts; p++) {
        hwnas_torch_piece *part = class->parts[p];
        size_t n_full = 0;
        for (size_t b = 0; b < part->n_branches; b++)
            n_full += hwnas_sequence_has_modules(&part->branches[b]);
        for (size_t b = 0; b < part->n_branches; b++)
            if (hwnas_sequence_has_modules(&part->branches[b]))
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
    hwnas_arena *arena = class->module->arena;
    const char **stems = hwnas_arena_alloc(arena, (class->n_parts + 1) * sizeof *stems);
    for (size_t p = 0; p < class->n_parts; p++) {
        const hwnas_sequence *layers = &class->parts[p]->branches[0];
        const char *only = only_label(arena, layers);
        if (hwnas_sequence_has_modules(layers))
            stems[p] = only ? only : class->parts[p]->stem;
        if (stems[p] && !strcmp(stems[p], "layers") && !p)
            stems[p] = "stem";
    }
    for (size_t p = 0; p < class->n_parts; p++) {
        if (!stems[p] || !is_shared_stem(class, stems, p))
            continue;
        bool ends_in_digit = strchr("0123456789", stems[p][strlen(stems[p]) - 1]) != NULL;
        int first = 1;
        for (size_t i = 0; i < p; i++)
            first += stems[i] && !strcmp(stems[i], stems[p]);
        for (int n = first; !class->parts[p]->attributes[0]; n++) {
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

static void settle_attributes(hwnas_class *class)
{
    if (class->has_lines)
        name_line_parts(class);
    else
        name_attributes(class);
}

/* ---- Lines of forward() ---- */

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
static void drop_lines(hwnas_class *class)
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
static bool is_free_at(const hwnas_class *class, size_t at, const char *text)
{
    if (class->input && class->input->uses && is_called(class->input, at, text))
        return false;
    for (size_t i = 0; i < class->n_arguments; i++) {
        const hwnas_variable *variable = class->arguments[i];
        const bool is_item = class->is_network && variable->wish && variable->text &&
                             strcmp(variable->wish, variable->text);
        if (is_item && !strcmp(variable->wish, text))
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

static const char *spell_variable(const hwnas_class *class, size_t at, const char *wish)
{
    static const char *const texts[] = {"x", "y", "z", "u", "v", "w", NULL};
    for (const char *const *text = texts; *text && !wish; text++)
        if (is_free_at(class, at, *text))
            return *text;
    const char *name = wish ? wish : "x2";
    for (int n = 2; !is_free_at(class, at, name); n++)
        name = hwnas_arena_printf(class->module->arena, "%s_%d", wish ? wish : "x", n);
    return name;
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

/* Arguments, of which several may have one name, and what the lines make. */
static void settle_lines(hwnas_class *class)
{
    drop_lines(class);
    merge_last(class);
    if (class->input)
        class->input->text = "x";
    for (size_t i = 0; i < class->n_arguments; i++) {
        hwnas_variable *variable = class->arguments[i];
        if (!variable->text)
            variable->text = spell_variable(class, 0, variable->wish);
    }
    for (size_t i = 0; i < class->n_lines; i++)
        for (size_t v = 0; v < class->lines[i].n_variables && !class->lines[i].is_dropped; v++) {
            hwnas_variable *variable = class->lines[i].variables[v];
            variable->text = variable->uses ? spell_variable(class, i, variable->wish) : "_";
        }
}

/* ---- The output layer of a language model that shares the embedding's table ---- */

/* The module of a sequence is an attribute itself, no container of one. */
static bool is_single(const hwnas_sequence *sequence)
{
    size_t n = 0;
    for (size_t i = 0; i < sequence->n; i++)
        n += sequence->steps[i].kind == HWNAS_STEP_MODULE;
    return n == 1 && hwnas_sequence_is_straight(sequence);
}

/* Where the class of a module has what is looked for. */
static const char *inside(const hwnas_class *class, const hwnas_py *module, bool is_tied)
{
    const hwnas_torch_file *file = class->module;
    for (size_t i = 0; module->name && i < file->n_classes; i++)
        if (file->classes[i]->callee == module->name)
            return is_tied ? file->classes[i]->tied : file->classes[i]->table;
    return NULL;
}

/* In one sequence: "" for its only module, "[2]", "[-1]" behind a loop. The table is looked for
 * from the beginning, the layer that shares it from the end. */
static const char *find_in(const hwnas_class *class, const hwnas_sequence *sequence,
                           bool is_attribute, bool is_tied)
{
    hwnas_arena *arena = class->module->arena;
    int at = is_tied ? -1 : 0, n_modules = 0;
    for (size_t i = 0; i < sequence->n; i++)
        n_modules += sequence->steps[i].kind != HWNAS_STEP_ASSIGN;
    const bool is_straight = hwnas_sequence_is_straight(sequence);
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[is_tied ? sequence->n - 1 - i : i];
        if (step->kind == HWNAS_STEP_ASSIGN)
            continue;
        if (step->kind != HWNAS_STEP_MODULE)
            return NULL;
        const char *path = !strcmp(step->label, is_tied ? "tied_linear" : "embedding")
                               ? ""
                               : inside(class, step->expr, is_tied);
        if (path && is_attribute && is_single(sequence))
            return path;
        if (path)
            return hwnas_arena_printf(arena, "[%d]%s", is_straight && at < 0 ? at + n_modules : at,
                                      path);
        at += is_tied ? -1 : 1;
    }
    return NULL;
}

static const char *find(const hwnas_class *class, bool is_tied)
{
    for (size_t n = 0; n < class->n_parts; n++) {
        const hwnas_torch_piece *part = class->parts[is_tied ? class->n_parts - 1 - n : n];
        for (size_t b = 0; b < part->n_branches; b++) {
            const char *name = part->attributes[b];
            const char *path = find_in(class, &part->branches[b], name != NULL, is_tied);
            if (path)
                return name ? hwnas_arena_printf(class->module->arena, ".%s%s", name, path) : path;
        }
    }
    return NULL;
}

static void find_table(hwnas_class *class)
{
    class->table = find(class, false);
    class->tied = find(class, true);
}

void hwnas_class_settle(hwnas_class *class)
{
    settle_names(class);
    settle_attributes(class);
    if (hwnas_class_is_plain(class)) /* its modules are no attributes */
        class->parts[0]->attributes[0] = NULL;
    find_table(class);
    if (class->has_lines)
        settle_lines(class);
}
