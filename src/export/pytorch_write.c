/* pytorch_write.c: a translated class as text: its parts in __init__, and what forward() does with
 * them. */
#include <string.h>

#include "export/pytorch_priv.h"

enum { INDENT = HWNAS_TORCH_INDENT };

/* ---- Parts ---- */

static const char *switch_name(const hwnas_class *class, const hwnas_torch_piece *part)
{
    size_t n = 1;
    for (size_t p = 0; class->parts[p] != part; p++)
        n += class->parts[p]->when != NULL;
    return n == 1 ? "use_residual" : hwnas_arena_printf(class->export->arena, "use_residual%zu", n);
}

/* A tensor that nothing learns. */
static bool is_buffer(const hwnas_torch_piece *part)
{
    const hwnas_step *step = part->branches[0].steps;
    return part->branches[0].n == 1 && step->expr && step->expr->text &&
           !strcmp(step->expr->text, "buffer");
}

static void write_part(hwnas_str *out, const hwnas_class *class, const hwnas_torch_piece *part)
{
    hwnas_arena *arena = class->export->arena;
    if (part->when) {
        const char *prefix = hwnas_arena_printf(arena, "self.%s = ", switch_name(class, part));
        hwnas_py_layout(out, 2 * INDENT, prefix, part->when, "");
    }
    for (size_t b = 0; b < part->n_branches; b++) {
        if (part->attributes[b] && is_buffer(part)) {
            const hwnas_value name = {.kind = HWNAS_VALUE_SYMBOL, .s = part->attributes[b]};
            const hwnas_py *args[] = {hwnas_py_value(arena, name),
                                      part->branches[b].steps[0].expr->args[0]};
            hwnas_py_layout(out, 2 * INDENT, "",
                            hwnas_py_make(arena, HWNAS_PY_CALL, "self.register_buffer", 2, args),
                            "");
        } else if (part->attributes[b]) {
            hwnas_sequence_write_modules(
                out, arena, &part->branches[b], 2 * INDENT,
                hwnas_arena_printf(arena, "self.%s = ", part->attributes[b]), "nn.Sequential");
        } else {
            hwnas_sequence_write(out, arena, &part->branches[b], 2 * INDENT);
        }
    }
}

/* What a part makes of x: "self.gate(x)", "x * self.gate(x)", "torch.cat([...], dim=1)". */
static void write_result(hwnas_str *out, const hwnas_class *class, const hwnas_torch_piece *part,
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
        const hwnas_torch_piece *part = class->parts[p];
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
    hwnas_class_settle_names(class);
    hwnas_class_name_attributes(class);
    hwnas_str_addf(out, "(nn.%s):\n", is_plain ? "Sequential" : "Module");
    bool has_init = class->n_parts || class->out_variable;
    if (has_init)
        write_signature(out, class);
    if (has_init && !is_plain)
        hwnas_py_line(out, 2 * INDENT, "super().__init__()");
    for (size_t p = 0; p < class->n_parts; p++)
        for (size_t b = 0; b < class->parts[p]->n_branches; b++)
            hwnas_sequence_write_tables(out, arena, &class->parts[p]->branches[b], 2 * INDENT);
    if (is_plain)
        hwnas_sequence_write_modules(out, arena, &class->parts[0]->branches[0], 2 * INDENT, "",
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
