/* torch_tree.c: the tree's nodes. */
#include "export/torch_tree.h"

#include <string.h>

#include "export/torch_helpers.h"

void *hwnas_torch_grown(hwnas_arena *arena, void *array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 8;
    void *larger = hwnas_arena_alloc(arena, *capacity * size);
    if (n)
        memcpy(larger, array, n * size);
    return larger;
}

hwnas_py_name *hwnas_class_name(hwnas_class *class, const char *const *wishes, bool is_own)
{
    hwnas_arena *arena = class->module->arena;
    hwnas_py_name *name = hwnas_arena_alloc(arena, sizeof *name);
    *name = (hwnas_py_name){.wishes = wishes, .is_own = is_own};
    class->names =
        hwnas_torch_grown(arena, class->names, class->n_names, &class->name_capacity, sizeof name);
    class->names[class->n_names++] = name;
    return name;
}

hwnas_torch_piece *hwnas_class_part(hwnas_class *class, hwnas_torch_piece_kind kind,
                                    size_t n_branches, hwnas_py_name *list)
{
    hwnas_arena *arena = class->module->arena;
    hwnas_torch_piece *part = hwnas_arena_alloc(arena, sizeof *part);
    part->kind = kind;
    part->n_branches = n_branches;
    part->branches = hwnas_arena_alloc(arena, n_branches * sizeof *part->branches);
    part->attributes = hwnas_arena_alloc(arena, n_branches * sizeof *part->attributes);
    for (size_t i = 0; i < n_branches; i++)
        part->branches[i].list = list;
    class->parts =
        hwnas_torch_grown(arena, class->parts, class->n_parts, &class->part_capacity, sizeof part);
    class->parts[class->n_parts++] = part;
    return part;
}

void hwnas_class_push(hwnas_class *class, hwnas_sequence *to, hwnas_step step)
{
    to->steps =
        hwnas_torch_grown(class->module->arena, to->steps, to->n, &to->capacity, sizeof step);
    to->steps[to->n++] = step;
}

void hwnas_class_add_line(hwnas_class *class, size_t n, hwnas_variable *const *variables,
                          const hwnas_wire *wire)
{
    hwnas_arena *arena = class->module->arena;
    class->lines = hwnas_torch_grown(arena, class->lines, class->n_lines, &class->line_capacity,
                                     sizeof *class->lines);
    class->lines[class->n_lines++] =
        (hwnas_line){.n_variables = n,
                     .variables = hwnas_arena_copy(arena, variables, n * sizeof *variables),
                     .wire = wire};
}

bool hwnas_sequence_is_straight(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind != HWNAS_STEP_MODULE &&
            !(step->kind == HWNAS_STEP_ASSIGN && step->name->meaning && !step->name->same))
            return false;
    }
    return true;
}

bool hwnas_step_is_visible(const hwnas_step *step)
{
    if (step->kind == HWNAS_STEP_MODULE || step->kind == HWNAS_STEP_LIST)
        return true;
    if (step->kind == HWNAS_STEP_ASSIGN) {
        const hwnas_py_name *name = hwnas_py_real(step->name);
        return !name->is_dropped && !name->is_inlined;
    }
    for (size_t i = 0; i < step->n_arms; i++)
        if (hwnas_sequence_is_visible(&step->arms[i].sequence))
            return true;
    return false;
}

bool hwnas_sequence_is_visible(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (hwnas_step_is_visible(&sequence->steps[i]))
            return true;
    return false;
}

bool hwnas_sequence_has_modules(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++)
        if (sequence->steps[i].kind != HWNAS_STEP_ASSIGN &&
            hwnas_step_is_visible(&sequence->steps[i]))
            return true;
    return false;
}

bool hwnas_class_is_plain(const hwnas_class *class)
{
    return class->n_parts == 1 && class->parts[0]->kind == HWNAS_PART_PLAIN && !class->has_lines;
}

bool hwnas_name_is_truth(const hwnas_py_name *name)
{
    return name->uses && name->uses == name->truth_uses;
}

void hwnas_torch_file_need(hwnas_torch_file *module, const char *name)
{
    for (size_t i = 0; name && hwnas_torch_helpers[i].name; i++)
        if (!strcmp(hwnas_torch_helpers[i].name, name))
            module->needs[i] = true;
}
