/* pytorch_translate.c: statements as steps. */
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"
#include "space/expr.h"

static const char *const branch_wishes[] = {"body", "branch", "inner", NULL};
static const char *const hidden_wishes[] = {"hidden", "hidden_channels", "inner_channels", NULL};

/* The modules of a sequence as arguments: in place when they just follow each other, else as a list
 * that is made before. */
static const hwnas_py *gather(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_sequence *from,
                              const char *callee)
{
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (from->n + 1) * sizeof *args);
    size_t n = 0;
    if (hwnas_sequence_is_straight(from)) {
        for (size_t i = 0; i < from->n; i++)
            if (from->steps[i].kind == HWNAS_STEP_ASSIGN)
                hwnas_torch_push(s, to, from->steps[i]);
            else
                args[n++] = from->steps[i].expr;
        if (n == 1 && !strcmp(callee, "nn.Sequential"))
            return args[0];
    } else {
        hwnas_arm *arm = hwnas_torch_arms(s, 1, from->list);
        const hwnas_py *list = hwnas_py_of(s->arena, from->list);
        arm->sequence = *from;
        hwnas_torch_push(
            s, to,
            (hwnas_step){.kind = HWNAS_STEP_LIST, .name = from->list, .n_arms = 1, .arms = arm});
        args[n++] = hwnas_py_make(s->arena, HWNAS_PY_SPREAD, NULL, 1, &list);
    }
    if (!n && !strcmp(callee, "nn.Sequential"))
        callee = "nn.Identity";
    hwnas_py *call = hwnas_py_make(s->arena, HWNAS_PY_CALL, callee, n, args);
    call->is_tall = n > 1;
    return call;
}

static void translate_branch(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to)
{
    s->is_fresh = false; /* the other branches need it too */
    hwnas_torch_body(s, body, to);
}

static void nest_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_py *when,
                          hwnas_sequence *to)
{
    hwnas_sequence body = {.list = hwnas_torch_name(s, branch_wishes, true)};
    translate_branch(s, &stmt->bodies[0], &body);
    const hwnas_py *residual = gather(s, to, &body, "Residual"), *module = residual;
    (void)hwnas_torch_seen(s, stmt, "add");
    hwnas_torch_file_need(&s->export->module, "Residual");
    if (when) {
        hwnas_py *plain = hwnas_arena_copy(s->arena, residual, sizeof *residual);
        plain->text = "nn.Sequential";
        const hwnas_py *args[] = {when, residual, plain};
        module = hwnas_py_operator(s->arena, HWNAS_OPERATOR_IF, 3, args);
    }
    hwnas_torch_push_module(s, to, module, "residual");
    s->is_fresh = s->is_fresh || !when;
}

static void translate_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *when = outcomes == 3 ? hwnas_torch_convert(s, stmt->expr) : NULL;
    if (when && hwnas_py_is_value(when)) {
        outcomes = hwnas_py_is_true(when) ? 2 : 1;
        when = NULL;
    }
    if (when)
        when = hwnas_torch_truth(s, when);
    if (outcomes == 1) {
        hwnas_torch_body(s, &stmt->bodies[0], to);
        return;
    }
    if (!to && s->class->has_lines) {
        s->export->needs_values |= when && hwnas_names_tensors(&stmt->bodies[0]);
        if (when)
            nest_residual(s, stmt, when, hwnas_torch_target(s, to));
        else
            hwnas_wire_residual(s, stmt);
        return;
    }
    if (to) {
        nest_residual(s, stmt, when, to);
        return;
    }
    hwnas_torch_piece *part = hwnas_torch_part(s, HWNAS_PART_RESIDUAL, 1);
    part->when = when;
    translate_branch(s, &stmt->bodies[0], &part->branches[0]);
    (void)hwnas_torch_seen(s, stmt, "add");
    s->is_fresh = s->is_fresh || !when;
}

static void translate_join(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_torch_join *join = hwnas_torch_join_of(stmt->name);
    hwnas_sequence *branches;
    size_t n_full = 0;
    if (!to && s->class->has_lines) {
        hwnas_wire_join(s, stmt);
        return;
    }
    for (size_t i = 0; i < stmt->n_bodies; i++)
        n_full += stmt->bodies[i].n > 0;
    if (n_full > 1) /* one branch may change the variable before the next reads it */
        hwnas_torch_pin_channels(s, to);
    if (to) {
        branches = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *branches);
        for (size_t i = 0; i < stmt->n_bodies; i++)
            branches[i].list = hwnas_torch_name(s, branch_wishes, true);
    } else {
        hwnas_torch_piece *part = hwnas_torch_part(s, HWNAS_PART_JOIN, stmt->n_bodies);
        part->join = join;
        part->axis = hwnas_torch_join_axis(s, stmt);
        branches = part->branches;
    }
    const hwnas_py *entry = s->in;
    const hwnas_shape shape = s->shape;
    const int64_t axis = hwnas_torch_join_axis(s, stmt);
    const hwnas_py **exits = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *exits);
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        s->in = entry;
        s->shape = shape;
        translate_branch(s, &stmt->bodies[i], &branches[i]);
        if (!join->infix && i + 1 < stmt->n_bodies && hwnas_py_mentions(s->in, s->channels)) {
            /* the next branch may change the variable before the sum is made */
            hwnas_py_name *name = hwnas_torch_name(s, hidden_wishes, true);
            hwnas_torch_assign(s, &branches[i], name, s->in);
            s->in = hwnas_py_of(s->arena, name);
        }
        exits[i] = s->in;
    }
    s->is_fresh = true;
    s->in = entry;
    s->shape = shape;
    if (!to) {
        hwnas_torch_join_channels(s, stmt, axis, exits, NULL);
        return;
    }
    size_t n = stmt->n_bodies;
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (n + 1) * sizeof *args);
    for (size_t i = 0; i < n; i++)
        args[i] = gather(s, to, &branches[i], "nn.Sequential");
    if (!join->infix && axis != (join->call ? 1 : 0))
        args[n++] = hwnas_torch_keyword(s, "dim", hwnas_py_int(s->arena, axis));
    hwnas_torch_file_need(&s->export->module, join->helper);
    hwnas_torch_push_module(s, to, hwnas_py_make(s->arena, HWNAS_PY_CALL, join->helper, n, args),
                            stmt->name);
    hwnas_torch_join_channels(s, stmt, axis, exits, to);
}

static void translate_let(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    for (size_t i = 0; i < stmt->n_args; i++) {
        const hwnas_py *value = hwnas_torch_convert(s, stmt->args[i].value);
        bool is_running_out = hwnas_py_mentions(value, s->channels);
        if (!hwnas_py_is_plain(value) || is_running_out) {
            hwnas_py_name *name = hwnas_torch_given_name(s, NULL, stmt->args[i].name);
            name->meaning = is_running_out ? NULL : value;
            hwnas_torch_assign(s, hwnas_torch_target(s, to), name, value);
            value = hwnas_py_of(s->arena, name);
        }
        s->slots[stmt->args[i].slot] = value;
    }
}

/* Inside of a condition or a loop that could not be written out, the file is not used. */
static void translate_as(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (!to)
        hwnas_wire_as(s, stmt);
}

static void translate_from(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (!to)
        hwnas_wire_from(s, stmt);
}

static void translate_output(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (!to)
        hwnas_wire_output(s, stmt);
}

static void (*const translators[])(hwnas_torch_scope *, const hwnas_stmt *, hwnas_sequence *) = {
    [HWNAS_STMT_LAYER] = hwnas_torch_layer,
    [HWNAS_STMT_JOIN] = translate_join,
    [HWNAS_STMT_RESIDUAL] = translate_residual,
    [HWNAS_STMT_LET] = translate_let,
    [HWNAS_STMT_IF] = hwnas_torch_if,
    [HWNAS_STMT_SWITCH] = hwnas_torch_switch,
    [HWNAS_STMT_FOR] = hwnas_torch_for,
    [HWNAS_STMT_REPEAT] = hwnas_torch_repeat,
    [HWNAS_STMT_AS] = translate_as,
    [HWNAS_STMT_FROM] = translate_from,
    [HWNAS_STMT_OUTPUT] = translate_output,
};

void hwnas_torch_translate(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to)
{
    for (size_t i = 0; i < body->n; i++)
        translators[body->stmts[i]->kind](s, body->stmts[i], to);
}
