/* pytorch_names.c: what the variables and attributes of a class are called. What nothing reads is
 * dropped, the rest is spelled; an attribute is called after what is in it. */
#include <string.h>

#include "export/pytorch_priv.h"

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

void hwnas_class_settle_names(hwnas_class *class)
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
    const hwnas_torch_piece *part = class->parts[p];
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
    hwnas_arena *arena = class->export->arena;
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

void hwnas_class_name_attributes(hwnas_class *class)
{
    if (class->has_lines)
        name_line_parts(class);
    else
        name_attributes(class);
}
