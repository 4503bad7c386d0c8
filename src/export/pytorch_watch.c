/* pytorch_watch.c: executes the network beside its graph and notes what came of each condition. */
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"

const hwnas_sight *hwnas_export_saw(const hwnas_export *export, const void *of)
{
    static const hwnas_sight nothing;
    for (size_t i = 0; i < export->n_sights; i++)
        if (export->sights[i].of == of)
            return &export->sights[i];
    return &nothing;
}

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

/* ---- Expressions ---- */

static hwnas_status watch_expr(hwnas_export *export, const hwnas_expr *expr,
                               const hwnas_frame *frame);

static hwnas_status watch_truth(hwnas_export *export, bool *out, const hwnas_expr *expr,
                                const hwnas_frame *frame)
{
    hwnas_value value;
    TRY(watch_expr(export, expr, frame));
    TRY(hwnas_expr_eval(&value, expr, frame, export->arena));
    *out = value.kind == HWNAS_VALUE_REAL ? value.r != 0 : value.i != 0;
    return HWNAS_OK;
}

/* Looks only where evaluation goes, so a guarded division is not stumbled over. */
static hwnas_status watch_operator(hwnas_export *export, const hwnas_expr *expr,
                                   const hwnas_frame *frame)
{
    bool truth;
    hwnas_value value;
    switch ((hwnas_operator)expr->op) {
    case HWNAS_OP_IF:
        TRY(watch_truth(export, &truth, expr->args[0], frame));
        note(export, expr, truth);
        return watch_expr(export, expr->args[truth ? 1 : 2], frame);
    case HWNAS_OP_AND:
    case HWNAS_OP_OR:
        TRY(watch_truth(export, &truth, expr->args[0], frame));
        if (truth == (expr->op == HWNAS_OP_AND))
            TRY(watch_expr(export, expr->args[1], frame));
        return HWNAS_OK;
    case HWNAS_OP_DIV: /* whole numbers stay whole, which takes another operator in Python */
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
                               const hwnas_frame *frame)
{
    if (expr->kind == HWNAS_EXPR_OPERATOR)
        return watch_operator(export, expr, frame);
    if (expr->kind == HWNAS_EXPR_TENSOR && expr->slot > 0 && expr->slot < frame->n_dims &&
        note(export, expr, frame->dims[expr->slot])->varies)
        return cannot_write(&expr->place, "a size of the image that differs from call to call");
    for (size_t i = 0; i < expr->n_args; i++)
        TRY(watch_expr(export, expr->args[i], frame));
    return HWNAS_OK;
}

static hwnas_status watch_value(hwnas_export *export, hwnas_value *out, const hwnas_expr *expr,
                                const hwnas_frame *frame)
{
    TRY(watch_expr(export, expr, frame));
    return hwnas_expr_eval(out, expr, frame, export->arena);
}

/* ---- Statements ---- */

static hwnas_status watch_body(hwnas_export *export, const hwnas_body *body, hwnas_frame *frame);

/* The node that the graph's builder made here. It makes one for each layer, join and residual that
 * is added, in the order of execution. */
static hwnas_status take_node(hwnas_export *export, const hwnas_node **out, const hwnas_stmt *stmt,
                              const char *op, hwnas_frame *frame)
{
    const hwnas_graph *graph = export->graph;
    const hwnas_node *node = &graph->nodes[export->next_node];
    if (export->next_node >= graph->n_nodes || strcmp(node->op->name, op))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, &stmt->place,
                          "the graph has no '%s' where the space has one", op);
    const hwnas_tensor *output = hwnas_node_output(graph, node);
    frame->dims = output->dims + 1;
    frame->n_dims = output->rank - 1;
    export->next_node++;
    *out = node;
    return HWNAS_OK;
}

static bool is_asymmetric(const hwnas_node *node)
{
    for (int i = 0; node->op->attrs[i].name; i++) {
        const hwnas_attr *attr = &node->attrs[i];
        if (attr->n == 4 && (attr->ints[0] != attr->ints[2] || attr->ints[1] != attr->ints[3]))
            return true;
    }
    return false;
}

static bool is_padded_far(const hwnas_node *node)
{
    const int64_t *kernel = hwnas_node_attr(node, "kernel")->ints;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    return 2 * pad[0] > kernel[0] || 2 * pad[1] > kernel[1];
}

static hwnas_status watch_operator_layer(hwnas_export *export, const hwnas_stmt *stmt,
                                         hwnas_frame *frame)
{
    const hwnas_torch_row *row = hwnas_torch_row_of(stmt->name);
    const hwnas_node *node;
    int64_t channels = frame->dims[0];
    char what[96];
    if (!row) {
        snprintf(what, sizeof what, "the operator '%s'", stmt->name);
        return cannot_write(&stmt->place, what);
    }
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_expr(export, stmt->args[i].value, frame));
    TRY(take_node(export, &node, stmt, stmt->name, frame));
    if (is_asymmetric(node))
        return cannot_write(&stmt->place, "a padding that differs between opposite sides");
    if (row->looks_at == HWNAS_TORCH_WINDOW && is_padded_far(node))
        return cannot_write(&stmt->place, "a pool with a padding of more than half its kernel");
    if (row->looks_at == HWNAS_TORCH_RANK)
        note(export, stmt, frame->n_dims - 1);
    if (row->looks_at == HWNAS_TORCH_RATIO && hwnas_node_attr(node, "axis")->ints[0] != 1)
        return cannot_write(&stmt->place, "'flatten' from another axis than 1");
    if (row->looks_at == HWNAS_TORCH_RATIO && note(export, stmt, frame->dims[0] / channels)->varies)
        return cannot_write(&stmt->place, "'flatten' of images of different sizes");
    return HWNAS_OK;
}

static hwnas_status watch_layer(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    const hwnas_template *t = stmt->call;
    if (!t)
        return watch_operator_layer(export, stmt, frame);
    hwnas_frame inner = *frame;
    inner.scope = t;
    inner.slots = hwnas_arena_alloc(export->arena, (t->n_slots + 1) * sizeof *inner.slots);
    hwnas_named *named = export->named;
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_value(export, &inner.slots[stmt->args[i].slot], stmt->args[i].value, frame));
    for (size_t p = 0; p < t->n_parameters; p++)
        if (inner.slots[p].kind == HWNAS_VALUE_NONE)
            TRY(watch_value(export, &inner.slots[p], t->parameters[p].fallback, &inner));
    export->named = NULL;
    TRY(watch_body(export, &t->body, &inner));
    export->named = named;
    note(export, t, inner.dims[0] == frame->dims[0]);
    frame->dims = inner.dims;
    frame->n_dims = inner.n_dims;
    return HWNAS_OK;
}

/* Notes which branch has the most channels: that is how many the result has. */
static hwnas_status watch_join(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    const hwnas_frame entry = *frame;
    const hwnas_node *node;
    int64_t widest = 0, most = 0;
    char what[96];
    if (!hwnas_torch_join_of(stmt->name)) {
        snprintf(what, sizeof what, "branches joined by '%s'", stmt->name);
        return cannot_write(&stmt->place, what);
    }
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        frame->dims = entry.dims;
        frame->n_dims = entry.n_dims;
        TRY(watch_body(export, &stmt->bodies[i], frame));
        if (frame->dims[0] > most) {
            most = frame->dims[0];
            widest = (int64_t)i;
        }
    }
    note(export, stmt, widest);
    TRY(take_node(export, &node, stmt, stmt->name, frame));
    for (size_t n = (size_t)node->n_data_inputs; n < stmt->n_bodies; n++) /* a + b + c: two nodes */
        TRY(take_node(export, &node, stmt, stmt->name, frame));
    return HWNAS_OK;
}

static hwnas_status watch_residual(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    bool when = true;
    const hwnas_node *node;
    if (stmt->expr)
        TRY(watch_truth(export, &when, stmt->expr, frame));
    note(export, stmt, when);
    TRY(watch_body(export, &stmt->bodies[0], frame));
    return when ? take_node(export, &node, stmt, "add", frame) : HWNAS_OK;
}

static hwnas_status watch_let(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(watch_value(export, &frame->slots[stmt->args[i].slot], stmt->args[i].value, frame));
    return HWNAS_OK;
}

static hwnas_status watch_if(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    bool truth;
    TRY(watch_truth(export, &truth, stmt->expr, frame));
    note(export, stmt, truth);
    size_t body = truth ? 0 : 1;
    int64_t channels = frame->dims[0];
    if (body < stmt->n_bodies)
        TRY(watch_body(export, &stmt->bodies[body], frame));
    note(export, stmt->bodies, frame->dims[0] == channels);
    return HWNAS_OK;
}

static hwnas_status watch_switch(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    hwnas_value value;
    TRY(watch_value(export, &value, stmt->expr, frame));
    for (size_t i = 0; i < stmt->n_bodies; i++)
        if (hwnas_value_equal(&value, &stmt->labels[i])) {
            int64_t channels = frame->dims[0];
            note(export, stmt, (int64_t)(i < 63 ? i : 63));
            TRY(watch_body(export, &stmt->bodies[i], frame));
            note(export, stmt->bodies, frame->dims[0] == channels);
            return HWNAS_OK;
        }
    return hwnas_fail(HWNAS_E_INPUT, &stmt->expr->place, "there is no case for this value");
}

static hwnas_status watch_for(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
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

static hwnas_status watch_repeat(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
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
                                hwnas_frame *frame)
{
    hwnas_value index = {.kind = HWNAS_VALUE_INT};
    if (stmt->expr)
        TRY(watch_value(export, &index, stmt->expr, frame));
    *out = index.i;
    return HWNAS_OK;
}

static hwnas_status watch_as(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    int64_t index;
    TRY(watch_index(export, &index, stmt, frame));
    hwnas_named *named = hwnas_arena_alloc(export->arena, sizeof *named);
    *named = (hwnas_named){.slot = stmt->slot,
                           .index = index,
                           .dims = frame->dims,
                           .n_dims = frame->n_dims,
                           .next = export->named};
    export->named = named;
    return HWNAS_OK;
}

static hwnas_status watch_from(hwnas_export *export, const hwnas_stmt *stmt, hwnas_frame *frame)
{
    int64_t index;
    TRY(watch_index(export, &index, stmt, frame));
    const hwnas_named *named = hwnas_named_find(export->named, stmt->slot, index);
    if (!named)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' names no tensor yet", stmt->name);
    frame->dims = named->dims;
    frame->n_dims = named->n_dims;
    return HWNAS_OK;
}

static hwnas_status (*const watchers[])(hwnas_export *, const hwnas_stmt *, hwnas_frame *) = {
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
};

static hwnas_status watch_body(hwnas_export *export, const hwnas_body *body, hwnas_frame *frame)
{
    for (size_t i = 0; i < body->n; i++)
        TRY(watchers[body->stmts[i]->kind](export, body->stmts[i], frame));
    return HWNAS_OK;
}

hwnas_status hwnas_export_watch(hwnas_export *export)
{
    const hwnas_space *space = export->arch->space;
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    hwnas_frame frame = {.scope = space->network,
                         .choices = export->choices,
                         .dims = input->dims + 1,
                         .n_dims = input->rank - 1};
    frame.slots =
        hwnas_arena_alloc(export->arena, (space->network->n_slots + 1) * sizeof *frame.slots);
    return watch_body(export, &space->network->body, &frame);
}
