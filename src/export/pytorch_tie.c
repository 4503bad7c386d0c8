/* pytorch_tie.c: the output layer of a language model that shares the embedding's table. */
#include <string.h>

#include "export/pytorch_priv.h"

/* Where the class of a module has what is looked for. */
static const char *inside(const hwnas_class *class, const hwnas_py *module, bool is_tied)
{
    const hwnas_export *export = class->export;
    if (module->kind != HWNAS_PY_CALL || !module->text)
        return NULL;
    for (size_t i = 0; i < export->n_classes; i++)
        if (export->classes[i]->name && !strcmp(export->classes[i]->name, module->text))
            return is_tied ? export->classes[i]->tied : export->classes[i]->table;
    return NULL;
}

/* In one sequence: "" for its only module, "[2]", "[-1]" behind a loop. The table is looked for
 * from the beginning, the layer that shares it from the end. */
static const char *find_in(const hwnas_class *class, const hwnas_sequence *sequence,
                           bool is_attribute, bool is_tied)
{
    hwnas_arena *arena = class->export->arena;
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
        if (path && is_attribute && hwnas_sequence_is_single(sequence))
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
                return name ? hwnas_arena_printf(class->export->arena, ".%s%s", name, path) : path;
        }
    }
    return NULL;
}

void hwnas_class_find_table(hwnas_class *class)
{
    class->table = find(class, false);
    class->tied = find(class, true);
}

void hwnas_class_write_tie(hwnas_str *out, hwnas_class *class)
{
    if (!class->tied || !class->table)
        return;
    hwnas_py_line(out, 8, "self%s.weight = self%s.weight", class->tied, class->table);
    class->export->tied = NULL;
}
