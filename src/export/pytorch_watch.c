/* pytorch_watch.c: executes the network beside its graph and notes what came of each condition. */
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"

static const hwnas_sight *note(hwnas_export *export, const void *of, int64_t value)
{
    hwnas_sight *sight = (hwnas_sight *)hwnas_export_saw(export, of);
    if (!sight->of) {
        HWNAS_GROW(export->sights, export->n_sights, export->sight_capacity);
        sight = &export->sights[export->n_sights++];
        *sight = (hwnas_sight){.of = of, .value = value};
    }
    sight->varies |= sight->value != value;
    if (value >= 0 && value < 64)
        sight->outcomes |= (uint64_t)1 << value;
    return sight;
}

static hwnas_status cannot_write(const hwnas_place *place, const char *what)
{
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, place, "%s cannot be written as PyTorch yet", what),
        "export to ONNX instead: --format onnx");
}

/* ---- The current tensor ---- */

static hwnas_shape shape_of(const hwnas_scope_frame *frame)
{
    hwnas_shape shape = {.n = frame->n_dims};
    memcpy(shape.dims, frame->dims, (size_t)shape.n * sizeof *shape.dims);
    return shape;
}

static void set_shape(hwnas_export *export, hwnas_scope_frame *frame, const hwnas_shape *shape)
{
    frame->dims = hwnas_arena_copy(export->arena, shape->dims, sizeof shape->dims);
    frame->n_dims = shape->n;
}

static int64_t channels_of(const hwnas_scope_frame *frame)
{
    const hwnas_shape shape = shape_of(frame);
    return hwnas_shape_channels(&shape);
}

static unsigned differences(const hwnas_shape *a, const hwnas_shape *b)
{
    unsigned differ = 0;
    for (int i = 0; i < a->n; i++)
        differ |= a->dims[i] != b->dims[i] ? 1u << i : 0;
    return a->n == b->n ? differ : ~0u;
}

static void note_layer(hwnas_export *export, const hwnas_stmt *stmt, const hwnas_shape *before,
                       const hwnas_shape *after, bool is_lopsided)
{
    const int64_t channels = hwnas_shape_channels(after);
    const hwnas_change change = hwnas_change_between(before, after);
    hwnas_torch_observed *seen = hwnas_export_seen(export, stmt);
    if (!seen) {
        HWNAS_GROW(export->seen, export->n_seen, export->seen_capacity);
        seen = &export->seen[export->n_seen++];
        *seen = (hwnas_torch_observed){.of = stmt,
                                       .before = *before,
                                       .after = *after,
                                       .change = change,
                                       .keeps = true,
                                       .gives_entry = true,
                                       .is_lopsided = is_lopsided};
    }
    seen->varies_before |= differences(before, &seen->before);
    seen->varies_after |= differences(after, &seen->after);
    if (change.kind != seen->change.kind || change.at != seen->change.at ||
        change.n != seen->change.n)
        seen->change = (hwnas_change){.kind = HWNAS_CHANGE_ANY};
    seen->keeps &= channels == hwnas_shape_channels(before);
    seen->gives_entry &= channels == export->entry_channels;
    seen->is_lopsided |= is_lopsided; /* then all calls pad in a layer of its own */
}

/* ---- Expressions ---- */

static hwnas_status watch_expr(hwnas_export *export, const hwnas_expr *expr,
                               const hwnas_scope_frame *frame);

static hwnas_status watch_truth(hwnas_export *export, bool *out, const hwnas_expr *expr,
                                const hwnas_scope_frame *frame)
{
    hwnas_value value;
    TRY(watch_expr(export, expr, frame));
    TRY(hwnas_expr_eval(&value, expr, frame, export->arena));
    *out = value.kind == HWNAS_VALUE_REAL ? value.r != 0 : value.i != 0;
    return HWNAS_OK;
}

/* Looks only where evaluation goes, so a guarded division is not stumbled over. */
static hwnas_status watch_operator(hwnas_export *export, const hwnas_expr *expr,
                                   const hwnas_scope_frame *frame)
{
    bool truth;
    hwnas_value value;
    switch ((hwnas_operator)expr->op) {
    case HWNAS_OPERATOR_IF:
        TRY(watch_truth(export, &truth, expr->args[0], frame));
        note(export, expr, truth);
        return watch_expr(export, expr->args[truth ? 1 : 2], frame);
    case HWNAS_OPERATOR_AND:
    case HWNAS_OPERATOR_OR:
        TRY(watch_truth(export, &truth, expr->args[0], frame));
        if (truth == (expr->op == HWNAS_OPERATOR_AND))
            TRY(watch_expr(export, expr->args[1], frame));
        return HWNAS_OK;
    case HWNAS_OPERATOR_DIV: /* whole numbers stay whole, which takes another operator in Python */
        TRY(hwnas_expr_eval(&value, expr, frame, export->arena));
        note(export, expr, value.kind == HWNAS_VALUE_REAL);
        break;
    default:
        break;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        TRY(watch_expr(export, expr->args[i], frame));
    return HWNAS_OK;
}

static hwnas_status watch_expr(hwnas_export *export, const hwnas_expr *expr,
                               const hwnas_scope_frame *frame)
{
    if (expr->kind == HWNAS_EXPR_OPERATOR)
        return watch_operator(export, expr, frame);
    if (expr->kind == HWNAS_EXPR_TENSOR) {
        const hwnas_shape shape = shape_of(frame);
        bool varies = note(export, expr, hwnas_shape_fact(&shape, expr->slot))->varies;
        varies = varies && expr->slot > 0; /* the channels are followed anyhow */
        export->needs_values |= note(export, &expr->slot, frame->n_dims)->varies || varies;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        TRY(watch_expr(export, expr->args[i], frame));
    return HWNAS_OK;
}

static hwnas_status watch_value(hwnas_export *export, hwnas_value *out, const hwnas_expr *expr,
                                const hwnas_scope_frame *frame)
{
    TRY(watch_expr(export, expr, frame));
    return hwnas_expr_eval(out, expr, frame, export->arena);
}

/* ---- Statements ---- */

static hwnas_status watch_body(hwnas_export *export, const hwnas_body *body,
                               hwnas_scope_frame *frame);

static hwnas_status watch_args(hwnas_export *export, const hwnas_stmt *stmt,
                               const hwnas_scope_frame *frame)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_expr(export, stmt->args[i].value, frame));
    return HWNAS_OK;
}

/* Of a learned tensor there is no node, only a weight. */
static hwnas_status watch_weight(hwnas_export *export, const hwnas_stmt *stmt,
                                 hwnas_scope_frame *frame)
{
    const hwnas_shape before = shape_of(frame);
    hwnas_shape after = {0};
    hwnas_value value = {0};
    for (size_t i = 0; i < stmt->n_args; i++)
        if (!strcmp(stmt->args[i].name, "shape"))
            TRY(watch_value(export, &value, stmt->args[i].value, frame));
    const hwnas_value *items = value.kind == HWNAS_VALUE_LIST ? value.list.items : &value;
    after.n = value.kind == HWNAS_VALUE_LIST ? (int)value.list.n : 1;
    for (int i = 0; i < after.n; i++)
        after.dims[i] = items[i].i;
    note_layer(export, stmt, &before, &after, false);
    set_shape(export, frame, &after);
    return HWNAS_OK;
}

static hwnas_status watch_operator_layer(hwnas_export *export, const hwnas_stmt *stmt,
                                         hwnas_scope_frame *frame)
{
    const hwnas_torch_row *row = hwnas_torch_row_of(stmt->name);
    const hwnas_shape before = shape_of(frame);
    const hwnas_node *node;
    hwnas_shape after;
    char what[96];
    if (!row) {
        snprintf(what, sizeof what, "the operator '%s'", stmt->name);
        return cannot_write(&stmt->place, what);
    }
    TRY(watch_args(export, stmt, frame));
    if (!strcmp(stmt->name, "weight"))
        return watch_weight(export, stmt, frame);
    TRY(hwnas_export_take(export, &node, &after, stmt, stmt->name));
    bool is_lopsided = hwnas_export_is_lopsided(node, row->looks_at == HWNAS_TORCH_WINDOW);
    if (!strcmp(stmt->name, "avg_pool") && !hwnas_node_attr(node, "count_pad")->ints[0]) {
        if (is_lopsided)
            return cannot_write(&stmt->place,
                                "'avg_pool' without its padding, which differs between opposite "
                                "sides or is more than half the kernel,");
        export->needs_values |=
            hwnas_export_seen(export, stmt) && hwnas_export_seen(export, stmt)->is_lopsided;
    }
    if (row->looks_at == HWNAS_TORCH_RATIO) {
        if (hwnas_node_attr(node, "axis")->ints[0] != 1)
            return cannot_write(&stmt->place, "'flatten' from another axis than 1");
        export->needs_values |=
            note(export, stmt, after.dims[0] / hwnas_shape_channels(&before))->varies;
    }
    note_layer(export, stmt, &before, &after, is_lopsided);
    set_shape(export, frame, &after);
    return HWNAS_OK;
}

static hwnas_status watch_layer(hwnas_export *export, const hwnas_stmt *stmt,
                                hwnas_scope_frame *frame)
{
    const hwnas_template *t = stmt->call;
    if (!t)
        return watch_operator_layer(export, stmt, frame);
    hwnas_scope_frame inner = *frame;
    inner.scope = t;
    inner.slots = hwnas_arena_alloc(export->arena, (t->n_slots + 1) * sizeof *inner.slots);
    hwnas_named *named = export->named;
    const int64_t entry = export->entry_channels, channels = channels_of(frame);
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_value(export, &inner.slots[stmt->args[i].slot], stmt->args[i].value, frame));
    for (size_t p = 0; p < t->n_parameters; p++)
        if (inner.slots[p].kind == HWNAS_VALUE_NONE)
            TRY(watch_value(export, &inner.slots[p], t->parameters[p].fallback, &inner));
    export->named = NULL;
    export->entry_channels = channels;
    export->needs_values |= note(export, &t->n_slots, frame->n_dims)->varies;
    TRY(watch_body(export, &t->body, &inner));
    export->named = named;
    export->entry_channels = entry;
    note(export, t, channels_of(&inner) == channels);
    frame->dims = inner.dims;
    frame->n_dims = inner.n_dims;
    return HWNAS_OK;
}

/* Notes which branch has the most channels: that is how many the result has. */
static hwnas_status watch_join(hwnas_export *export, const hwnas_stmt *stmt,
                               hwnas_scope_frame *frame)
{
    const hwnas_scope_frame entry = *frame;
    const hwnas_shape before = shape_of(frame);
    hwnas_shape after;
    const hwnas_node *node;
    int64_t widest = 0, most = 0;
    char what[96];
    if (!hwnas_torch_join_of(stmt->name)) {
        snprintf(what, sizeof what, "branches joined by '%s'", stmt->name);
        return cannot_write(&stmt->place, what);
    }
    TRY(watch_args(export, stmt, frame));
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        frame->dims = entry.dims;
        frame->n_dims = entry.n_dims;
        TRY(watch_body(export, &stmt->bodies[i], frame));
        if (channels_of(frame) > most) {
            most = channels_of(frame);
            widest = (int64_t)i;
        }
    }
    note(export, stmt, widest);
    TRY(hwnas_export_take_join(export, &node, &after, stmt));
    note_layer(export, stmt, &before, &after, false);
    set_shape(export, frame, &after);
    return HWNAS_OK;
}

static hwnas_status watch_residual(hwnas_export *export, const hwnas_stmt *stmt,
                                   hwnas_scope_frame *frame)
{
    bool when = true;
    const hwnas_node *node;
    hwnas_shape sum;
    if (stmt->expr)
        TRY(watch_truth(export, &when, stmt->expr, frame));
    note(export, stmt, when);
    TRY(watch_body(export, &stmt->bodies[0], frame));
    if (!when)
        return HWNAS_OK;
    TRY(hwnas_export_take(export, &node, &sum, stmt, "add"));
    set_shape(export, frame, &sum);
    return HWNAS_OK;
}

static hwnas_status watch_let(hwnas_export *export, const hwnas_stmt *stmt,
                              hwnas_scope_frame *frame)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_value(export, &frame->slots[stmt->args[i].slot], stmt->args[i].value, frame));
    return HWNAS_OK;
}

static hwnas_status watch_if(hwnas_export *export, const hwnas_stmt *stmt, hwnas_scope_frame *frame)
{
    bool truth;
    TRY(watch_truth(export, &truth, stmt->expr, frame));
    note(export, stmt, truth);
    size_t body = truth ? 0 : 1;
    int64_t channels = channels_of(frame);
    if (body < stmt->n_bodies)
        TRY(watch_body(export, &stmt->bodies[body], frame));
    note(export, stmt->bodies, channels_of(frame) == channels);
    return HWNAS_OK;
}

static hwnas_status watch_switch(hwnas_export *export, const hwnas_stmt *stmt,
                                 hwnas_scope_frame *frame)
{
    hwnas_value value;
    TRY(watch_value(export, &value, stmt->expr, frame));
    for (size_t i = 0; i < stmt->n_bodies; i++)
        if (hwnas_value_equal(&value, &stmt->labels[i])) {
            int64_t channels = channels_of(frame);
            note(export, stmt, (int64_t)(i < 63 ? i : 63));
            TRY(watch_body(export, &stmt->bodies[i], frame));
            note(export, stmt->bodies, channels_of(frame) == channels);
            return HWNAS_OK;
        }
    return hwnas_fail(HWNAS_E_INPUT, &stmt->expr->place, "there is no case for this value");
}

static hwnas_status watch_for(hwnas_export *export, const hwnas_stmt *stmt,
                              hwnas_scope_frame *frame)
{
    hwnas_value *lists = hwnas_arena_alloc(export->arena, stmt->n_args * sizeof *lists);
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_value(export, &lists[i], stmt->args[i].value, frame));
    for (size_t n = 0; n < lists[0].list.n; n++) {
        for (size_t i = 0; i < stmt->n_args; i++)
            frame->slots[stmt->args[i].slot] = lists[i].list.items[n];
        TRY(watch_body(export, &stmt->bodies[0], frame));
    }
    return HWNAS_OK;
}

static hwnas_status watch_repeat(hwnas_export *export, const hwnas_stmt *stmt,
                                 hwnas_scope_frame *frame)
{
    hwnas_value times;
    TRY(watch_value(export, &times, stmt->expr, frame));
    note(export, stmt, times.i);
    for (int64_t i = 0; i < times.i; i++) {
        frame->slots[stmt->slot] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = i};
        TRY(watch_body(export, &stmt->bodies[0], frame));
    }
    return HWNAS_OK;
}

static hwnas_status watch_index(hwnas_export *export, int64_t *out, const hwnas_stmt *stmt,
                                hwnas_scope_frame *frame)
{
    hwnas_value index = {.kind = HWNAS_VALUE_INT};
    if (stmt->expr)
        TRY(watch_value(export, &index, stmt->expr, frame));
    *out = index.i;
    return HWNAS_OK;
}

static hwnas_status watch_as(hwnas_export *export, const hwnas_stmt *stmt, hwnas_scope_frame *frame)
{
    int64_t index;
    TRY(watch_index(export, &index, stmt, frame));
    hwnas_named *named = hwnas_arena_alloc(export->arena, sizeof *named);
    *named = (hwnas_named){
        .slot = stmt->slot, .index = index, .shape = shape_of(frame), .next = export->named};
    export->named = named;
    return HWNAS_OK;
}

static hwnas_status watch_from(hwnas_export *export, const hwnas_stmt *stmt,
                               hwnas_scope_frame *frame)
{
    int64_t index;
    TRY(watch_index(export, &index, stmt, frame));
    if (stmt->is_input) {
        const hwnas_shape shape = hwnas_shape_of(hwnas_export_input(export, stmt->slot, index));
        set_shape(export, frame, &shape);
        return HWNAS_OK;
    }
    const hwnas_named *named = hwnas_named_find(export->named, stmt->slot, index);
    if (!named)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' names no tensor yet", stmt->name);
    set_shape(export, frame, &named->shape);
    return HWNAS_OK;
}

static hwnas_status watch_output(hwnas_export *export, const hwnas_stmt *stmt,
                                 hwnas_scope_frame *frame)
{
    int64_t index;
    return watch_index(export, &index, stmt, frame);
}

static hwnas_status (*const watchers[])(hwnas_export *, const hwnas_stmt *, hwnas_scope_frame *) = {
    [HWNAS_STMT_LAYER] = watch_layer,
    [HWNAS_STMT_JOIN] = watch_join,
    [HWNAS_STMT_RESIDUAL] = watch_residual,
    [HWNAS_STMT_LET] = watch_let,
    [HWNAS_STMT_IF] = watch_if,
    [HWNAS_STMT_SWITCH] = watch_switch,
    [HWNAS_STMT_FOR] = watch_for,
    [HWNAS_STMT_REPEAT] = watch_repeat,
    [HWNAS_STMT_AS] = watch_as,
    [HWNAS_STMT_FROM] = watch_from,
    [HWNAS_STMT_OUTPUT] = watch_output,
};

static hwnas_status watch_body(hwnas_export *export, const hwnas_body *body,
                               hwnas_scope_frame *frame)
{
    for (size_t i = 0; i < body->n; i++)
        TRY(watchers[body->stmts[i]->kind](export, body->stmts[i], frame));
    return HWNAS_OK;
}

hwnas_status hwnas_export_watch(hwnas_export *export)
{
    const hwnas_space *space = export->arch->space;
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    hwnas_scope_frame frame = {.scope = space->network,
                               .choices = export->choices,
                               .dims = input->dims + 1,
                               .n_dims = input->rank - 1};
    export->entry_channels = channels_of(&frame);
    frame.slots =
        hwnas_arena_alloc(export->arena, (space->network->n_slots + 1) * sizeof *frame.slots);
    return watch_body(export, &space->network->body, &frame);
}
