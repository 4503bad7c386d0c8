/* pytorch_flow.c: conditions and loops as steps. */
#include "export/pytorch_priv.h"

static const char *const table_wishes[] = {"stages", "settings", "rows", NULL};

/* ---- Conditions ---- */

/* Translates one arm from the state at the fork; leaves what it ends with in `s`. */
static void translate_arm(hwnas_torch_scope *s, hwnas_arm *arm, const hwnas_body *body,
                          const hwnas_py *entry, bool is_fresh)
{
    const hwnas_py **outer = hwnas_torch_enter(s);
    s->in = entry;
    s->is_fresh = is_fresh;
    if (body)
        hwnas_torch_body(s, body, &arm->sequence);
    s->slots = outer;
}

/* An if with `n` arms; the last condition may be NULL: else. bodies[i] may be NULL: nothing.
 * forward() has none, so the arms may not name tensors. */
static void translate_fork(hwnas_torch_scope *s, const hwnas_stmt *stmt, size_t n,
                           const hwnas_py *const *conditions, const hwnas_body *const *bodies,
                           hwnas_sequence *to)
{
    bool is_switch = conditions[n - 1] != NULL;
    const hwnas_py *entry = s->in;
    const hwnas_py **exits = hwnas_arena_alloc(s->arena, n * sizeof *exits);
    hwnas_arm *arms = hwnas_torch_arms(s, n, to->list);
    bool was_fresh = s->is_fresh, is_fresh = true, agree = true;
    for (size_t i = 0; i < n; i++) {
        arms[i].condition = conditions[i];
        s->export->needs_values |= bodies[i] && hwnas_names_tensors(bodies[i]);
        translate_arm(s, &arms[i], bodies[i], entry, was_fresh);
        exits[i] = s->in;
        agree = agree && hwnas_py_equal(exits[i], exits[0]);
        is_fresh = is_fresh && s->is_fresh;
    }
    if (!agree && hwnas_export_keeps(s->export, stmt->bodies)) { /* said in another way */
        agree = true;
        exits[0] = entry;
    }
    if (!agree && !hwnas_torch_is_running(s, entry))
        hwnas_torch_assign_channels(s, to, entry);
    for (size_t i = 0; i < n && !agree; i++) {
        s->in = exits[i];
        if (!hwnas_py_equal(exits[i], entry) ||
            hwnas_torch_mentions(&arms[i].sequence, 0, s->channels))
            hwnas_torch_settle_channels(s, &arms[i].sequence);
    }
    s->in = agree ? exits[0] : hwnas_py_of(s->arena, s->channels);
    s->is_fresh = is_fresh;
    size_t n_full = 0;
    for (size_t i = 0; i < n; i++) /* of cases that exclude each other, the empty need no words */
        if (arms[i].sequence.n || (!is_switch && arms[i].condition))
            arms[n_full++] = arms[i];
    n = n_full;
    if (!n)
        return;
    hwnas_torch_push(s, to, (hwnas_step){.kind = HWNAS_STEP_IF, .n_arms = n, .arms = arms});
}

void hwnas_torch_if(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *condition = hwnas_torch_convert(s, stmt->expr);
    if (hwnas_py_is_value(condition))
        outcomes = hwnas_py_is_true(condition) ? 2 : 1;
    size_t only = outcomes == 2 ? 0 : 1;
    if (outcomes == 3) {
        const hwnas_py *conditions[] = {hwnas_torch_truth(s, condition), NULL};
        const hwnas_body *bodies[] = {&stmt->bodies[0],
                                      stmt->n_bodies > 1 ? &stmt->bodies[1] : NULL};
        translate_fork(s, stmt, 2, conditions, bodies, hwnas_torch_target(s, to));
    } else if (only < stmt->n_bodies) {
        hwnas_torch_body(s, &stmt->bodies[only], to);
    }
}

void hwnas_torch_switch(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *value = hwnas_torch_convert(s, stmt->expr);
    const hwnas_py **conditions =
        hwnas_arena_alloc(s->arena, (stmt->n_bodies + 1) * sizeof *conditions);
    const hwnas_body **bodies = hwnas_arena_alloc(s->arena, (stmt->n_bodies + 1) * sizeof *bodies);
    size_t n = 0;
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        const hwnas_py *label = hwnas_py_value(s->arena, stmt->labels[i]);
        const hwnas_py *sides[] = {value, label};
        if (hwnas_py_is_value(value) ? !hwnas_py_equal(value, label)
                                     : !(outcomes >> (i < 63 ? i : 63) & 1))
            continue;
        conditions[n] = hwnas_py_operator(s->arena, HWNAS_OPERATOR_EQ, 2, sides);
        bodies[n++] = &stmt->bodies[i];
    }
    if (n == 1)
        hwnas_torch_body(s, bodies[0], to);
    else if (n)
        translate_fork(s, stmt, n, conditions, bodies, hwnas_torch_target(s, to));
}

/* ---- Loops ---- */

/* Does a statement go more than one way, so that each round of a loop looks different? */
static bool is_varied(const hwnas_export *export, const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        if ((stmt->kind == HWNAS_STMT_IF || stmt->kind == HWNAS_STMT_SWITCH ||
             stmt->kind == HWNAS_STMT_RESIDUAL) &&
            hwnas_export_saw(export, stmt)->varies)
            return true;
        for (size_t b = 0; b < stmt->n_bodies; b++)
            if (is_varied(export, &stmt->bodies[b]))
                return true;
    }
    return false;
}

/* Translates a loop's body from the channels before it. When it ends with others, they differ from
 * round to round, and the body is translated again with the running variable. */
static void translate_loop(hwnas_torch_scope *s, hwnas_step *loop, const hwnas_stmt *stmt,
                           hwnas_sequence *to)
{
    const hwnas_py *entry = s->in;
    bool was_fresh = s->is_fresh;
    unsigned n_assigned = s->n_assigned;
    loop->n_arms = 1;
    loop->arms = hwnas_torch_arms(s, 1, to->list);
    hwnas_sequence *body = &loop->arms[0].sequence;
    translate_arm(s, loop->arms, &stmt->bodies[0], entry, false);
    if (!hwnas_py_equal(s->in, entry) ||
        (hwnas_torch_is_running(s, entry) && s->n_assigned != n_assigned)) {
        *body = (hwnas_sequence){.list = to->list};
        translate_arm(s, loop->arms, &stmt->bodies[0], hwnas_py_of(s->arena, s->channels), false);
        hwnas_torch_settle_channels(s, body);
        if (!hwnas_torch_is_running(s, entry))
            hwnas_torch_assign_channels(s, to, entry);
        s->in = hwnas_py_of(s->arena, s->channels);
    }
    s->is_fresh = s->is_fresh && was_fresh;
    hwnas_torch_push(s, to, *loop);
}

/* Round after round with everything filled in, as far as `lists` are known. */
static void unroll(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_py *const *lists,
                   hwnas_sequence *to)
{
    for (size_t n = 0; n < lists[0]->value.list.n; n++) {
        for (size_t i = 0; i < stmt->n_args; i++)
            s->slots[stmt->args[i].slot] = hwnas_py_value(s->arena, lists[i]->value.list.items[n]);
        hwnas_torch_body(s, &stmt->bodies[0], to);
    }
}

void hwnas_torch_for(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    enum { MAX_ROUNDS = 40 };
    const hwnas_py **lists = hwnas_arena_alloc(s->arena, stmt->n_args * sizeof *lists);
    bool is_constant = true;
    for (size_t i = 0; i < stmt->n_args; i++) {
        lists[i] = hwnas_torch_convert(s, stmt->args[i].value);
        is_constant = is_constant && hwnas_py_is_value(lists[i]);
    }
    size_t n_rounds = is_constant ? lists[0]->value.list.n : SIZE_MAX;
    bool is_written_out = s->export->is_concrete || hwnas_names_tensors(&stmt->bodies[0]);
    if (is_constant && (n_rounds <= 1 || is_written_out ||
                        (n_rounds <= MAX_ROUNDS && is_varied(s->export, &stmt->bodies[0])))) {
        unroll(s, stmt, lists, to);
        return;
    }
    s->export->needs_values |= is_written_out;
    const hwnas_py **outer = hwnas_torch_enter(s);
    hwnas_step loop = {.kind = HWNAS_STEP_FOR,
                       .n_targets = stmt->n_args,
                       .iterables = lists,
                       .table = is_constant ? hwnas_torch_name(s, table_wishes, true) : NULL};
    loop.targets = hwnas_arena_alloc(s->arena, stmt->n_args * sizeof *loop.targets);
    for (size_t i = 0; i < stmt->n_args; i++) {
        loop.targets[i] = hwnas_torch_given_name(s, NULL, stmt->args[i].name);
        s->slots[stmt->args[i].slot] = hwnas_py_of(s->arena, loop.targets[i]);
    }
    translate_loop(s, &loop, stmt, hwnas_torch_target(s, to));
    s->slots = outer;
}

void hwnas_torch_repeat(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_sight *sight = hwnas_export_saw(s->export, stmt);
    const hwnas_py *times = hwnas_torch_convert(s, stmt->expr);
    bool is_written_out = s->export->is_concrete || hwnas_names_tensors(&stmt->bodies[0]);
    if (is_written_out && hwnas_py_is_value(times)) {
        for (int64_t i = 0; i < times->value.i; i++) {
            s->slots[stmt->slot] = hwnas_py_int(s->arena, i);
            hwnas_torch_body(s, &stmt->bodies[0], to);
        }
        return;
    }
    s->export->needs_values |= is_written_out;
    if (sight->varies ? hwnas_py_is_number(times, 1) : sight->value == 1) {
        s->slots[stmt->slot] = hwnas_py_int(s->arena, 0);
        hwnas_torch_body(s, &stmt->bodies[0], to);
        return;
    }
    if (sight->varies ? hwnas_py_is_number(times, 0) : sight->value == 0)
        return;
    const hwnas_py **outer = hwnas_torch_enter(s);
    const hwnas_py *range = hwnas_py_make(s->arena, HWNAS_PY_CALL, "range", 1, &times);
    hwnas_py_name *index = hwnas_torch_given_name(s, NULL, stmt->name);
    hwnas_step loop = {.kind = HWNAS_STEP_FOR, .n_targets = 1};
    loop.targets = hwnas_arena_copy(s->arena, &index, sizeof index);
    loop.iterables = hwnas_arena_copy(s->arena, &range, sizeof range);
    s->slots[stmt->slot] = hwnas_py_of(s->arena, index);
    translate_loop(s, &loop, stmt, hwnas_torch_target(s, to));
    s->slots = outer;
}
