/* pytorch_steps.c: names and steps, of which __init__ is made, and the number of channels.
 *
 * The one thing that the space's language knows and Python does not is the number of channels at
 * each place, `in`. It is followed symbolically, and where two ways meet that disagree about it, a
 * variable keeps it as hand-written models do. */
#include <string.h>

#include "export/pytorch_priv.h"

static const char *const hidden_wishes[] = {"hidden", "hidden_channels", "inner_channels", NULL};

/* ---- Names and steps ---- */

hwnas_py_name *hwnas_torch_name(hwnas_torch_scope *s, const char *const *wishes, bool is_own)
{
    return hwnas_class_name(s->class, wishes, is_own);
}

hwnas_py_name *hwnas_torch_given_name(hwnas_torch_scope *s, const char *better, const char *text)
{
    const char **wishes = hwnas_arena_alloc(s->arena, 3 * sizeof *wishes);
    size_t n = 0;
    if (better)
        wishes[n++] = better;
    wishes[n] = text;
    return hwnas_torch_name(s, wishes, false);
}

void hwnas_torch_push(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_step step)
{
    hwnas_class_push(s->class, to, step);
}

void hwnas_torch_push_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                             const char *label)
{
    hwnas_torch_push(s, to,
                     (hwnas_step){.kind = HWNAS_STEP_MODULE, .expr = module, .label = label});
}

void hwnas_torch_assign(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_py_name *name,
                        const hwnas_py *value)
{
    hwnas_torch_push(s, to, (hwnas_step){.kind = HWNAS_STEP_ASSIGN, .name = name, .expr = value});
}

hwnas_arm *hwnas_torch_arms(hwnas_torch_scope *s, size_t n, hwnas_py_name *list)
{
    hwnas_arm *arms = hwnas_arena_alloc(s->arena, n * sizeof *arms);
    for (size_t i = 0; i < n; i++)
        arms[i].sequence.list = list;
    return arms;
}

hwnas_torch_piece *hwnas_torch_part(hwnas_torch_scope *s, hwnas_torch_piece_kind kind,
                                    size_t n_branches)
{
    return hwnas_class_part(s->class, kind, n_branches, s->list);
}

hwnas_sequence *hwnas_wire_target(hwnas_torch_scope *s)
{
    if (!s->open) {
        s->open = hwnas_torch_part(s, HWNAS_PART_PLAIN, 1);
        s->open->stem = "layers";
    }
    return &s->open->branches[0];
}

hwnas_sequence *hwnas_torch_target(hwnas_torch_scope *s, hwnas_sequence *to)
{
    hwnas_class *class = s->class;
    if (to)
        return to;
    if (class->has_lines)
        return hwnas_wire_target(s);
    if (!class->n_parts || class->parts[class->n_parts - 1]->kind != HWNAS_PART_PLAIN)
        return &hwnas_torch_part(s, HWNAS_PART_PLAIN, 1)->branches[0];
    return &class->parts[class->n_parts - 1]->branches[0];
}

const hwnas_py **hwnas_torch_enter(hwnas_torch_scope *s)
{
    const hwnas_py **outer = s->slots;
    s->slots = hwnas_arena_copy(s->arena, outer,
                                (s->class->origin->template->n_slots + 1) * sizeof *outer);
    return outer;
}

/* ---- Channels ---- */

bool hwnas_torch_is_running(const hwnas_torch_scope *s, const hwnas_py *expr)
{
    return expr->kind == HWNAS_PY_NAME && expr->name == s->channels;
}

void hwnas_torch_assign_channels(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *value)
{
    hwnas_torch_assign(s, to, s->channels, value);
    s->n_assigned++;
    s->in = hwnas_py_of(s->arena, s->channels);
}

bool hwnas_torch_mentions(const hwnas_sequence *sequence, size_t begin, const hwnas_py_name *name)
{
    for (size_t i = begin; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->name == name || (step->expr && hwnas_py_mentions(step->expr, name)))
            return true;
        for (size_t t = 0; t < step->n_targets; t++)
            if (hwnas_py_mentions(step->iterables[t], name))
                return true;
        for (size_t a = 0; a < step->n_arms; a++)
            if ((step->arms[a].condition && hwnas_py_mentions(step->arms[a].condition, name)) ||
                hwnas_torch_mentions(&step->arms[a].sequence, 0, name))
                return true;
    }
    return false;
}

/* Makes a variable of ours that holds the channels at the end of an arm the running variable
 * itself: `channels = in_channels * 4` instead of `hidden = in_channels * 4; channels = hidden`. */
static bool rename_to_running(hwnas_torch_scope *s, hwnas_sequence *arm, hwnas_py_name *name)
{
    if (!name->is_own || !name->meaning || name->same)
        return false;
    size_t at = 0;
    while (at < arm->n &&
           !(arm->steps[at].kind == HWNAS_STEP_ASSIGN && arm->steps[at].name == name))
        at++;
    if (at == arm->n || hwnas_torch_mentions(arm, at, s->channels))
        return false;
    name->same = s->channels;
    s->n_assigned++;
    return true;
}

void hwnas_torch_settle_channels(hwnas_torch_scope *s, hwnas_sequence *arm)
{
    if (hwnas_torch_is_running(s, s->in))
        return;
    if (s->in->kind == HWNAS_PY_NAME && rename_to_running(s, arm, s->in->name))
        s->in = hwnas_py_of(s->arena, s->channels);
    else
        hwnas_torch_assign_channels(s, arm, s->in);
}

void hwnas_torch_add_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                            const char *label, const hwnas_py *out)
{
    if (hwnas_py_equal(out, s->in) || hwnas_py_is_plain(out)) {
        hwnas_torch_push_module(s, to, module, label);
        s->in = out;
    } else if (hwnas_py_mentions(out, s->channels)) {
        hwnas_torch_push_module(s, to, module, label);
        hwnas_torch_assign_channels(s, to, out);
    } else {
        hwnas_py_name *hidden = hwnas_torch_name(s, hidden_wishes, true);
        hidden->meaning = out;
        s->in = hwnas_py_of(s->arena, hidden);
        hwnas_torch_assign(s, to, hidden, out);
        hwnas_torch_push_module(s, to, hwnas_torch_swap(s, module, out, s->in), label);
    }
}
