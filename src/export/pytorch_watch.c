/* pytorch_watch.c: looks on while the graph is built, and notes what came of each condition. */
#include "graph/elaborate.h"
#include "graph/op.h"
#include "export/pytorch_priv.h"

typedef struct watch {
    hwnas_export *export;
    int depth; /* of calls, the network's own among them */
    int64_t entry_channels[HWNAS_MAX_CALL_DEPTH + 2];
    bool is_beyond; /* templates cannot say it */
} watch;

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

/* ---- Layers ---- */

static int64_t channels_of(const hwnas_scope_frame *frame)
{
    return frame->n_dims ? frame->dims[hwnas_tensor_dimension(0, frame->n_dims)] : -1;
}

static unsigned differences(const hwnas_shape *a, const hwnas_shape *b)
{
    unsigned differ = 0;
    for (int i = 0; i < a->n; i++)
        differ |= a->dims[i] != b->dims[i] ? 1u << i : 0;
    return a->n == b->n ? differ : ~0u;
}

static void note_layer(watch *w, const hwnas_stmt *stmt, const hwnas_shape *before,
                       const hwnas_shape *after, bool is_lopsided)
{
    hwnas_export *export = w->export;
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
    seen->gives_entry &= channels == w->entry_channels[w->depth - 1];
    seen->is_lopsided |= is_lopsided; /* then all calls pad in a layer of its own */
}

/* ---- Expressions ---- */

/* It was evaluated before, so it can be. */
static hwnas_value value_of(const watch *w, const hwnas_expr *expr, const hwnas_scope_frame *frame)
{
    hwnas_value value = {0};
    if (hwnas_expr_eval(&value, expr, frame, w->export->arena))
        hwnas_error_clear();
    return value;
}

static bool truth_of(const watch *w, const hwnas_expr *expr, const hwnas_scope_frame *frame)
{
    const hwnas_value value = value_of(w, expr, frame);
    return value.kind == HWNAS_VALUE_REAL ? value.r != 0 : value.i != 0;
}

static void watch_expr(void *context, const hwnas_expr *expr, const hwnas_scope_frame *frame);

/* Looks only where evaluation goes, so a guarded division is not stumbled over. */
static void watch_operator(watch *w, const hwnas_expr *expr, const hwnas_scope_frame *frame)
{
    bool truth;
    switch ((hwnas_operator)expr->op) {
    case HWNAS_OPERATOR_IF:
        watch_expr(w, expr->args[0], frame);
        truth = truth_of(w, expr->args[0], frame);
        note(w->export, expr, truth);
        watch_expr(w, expr->args[truth ? 1 : 2], frame);
        return;
    case HWNAS_OPERATOR_AND:
    case HWNAS_OPERATOR_OR:
        watch_expr(w, expr->args[0], frame);
        if (truth_of(w, expr->args[0], frame) == (expr->op == HWNAS_OPERATOR_AND))
            watch_expr(w, expr->args[1], frame);
        return;
    case HWNAS_OPERATOR_DIV: /* whole numbers stay whole, which takes another operator in Python */
        note(w->export, expr, value_of(w, expr, frame).kind == HWNAS_VALUE_REAL);
        break;
    default:
        break;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        watch_expr(w, expr->args[i], frame);
}

static void watch_expr(void *context, const hwnas_expr *expr, const hwnas_scope_frame *frame)
{
    watch *w = context;
    hwnas_export *export = w->export;
    if (expr->kind == HWNAS_EXPR_OPERATOR) {
        watch_operator(w, expr, frame);
        return;
    }
    if (expr->kind == HWNAS_EXPR_TENSOR) {
        const int dimension = hwnas_tensor_dimension(expr->slot, frame->n_dims);
        bool varies = note(export, expr, dimension < 0 ? -1 : frame->dims[dimension])->varies;
        varies = varies && expr->slot > 0; /* the channels are followed anyhow */
        export->needs_values |= note(export, &expr->slot, frame->n_dims)->varies || varies;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        watch_expr(w, expr->args[i], frame);
}

/* ---- Statements ---- */

/* Which case a switch takes, counted from 0. */
static size_t case_of(const hwnas_stmt *stmt, const hwnas_value *value)
{
    size_t i = 0;
    while (i < stmt->n_bodies && !hwnas_value_equal(value, &stmt->labels[i]))
        i++;
    return i < 63 ? i : 63;
}

/* What conditions and counts came to; what a template is called with. */
static void enter(void *context, const hwnas_stmt *stmt, const hwnas_scope_frame *frame)
{
    watch *w = context;
    hwnas_export *export = w->export;
    if (!w->depth)
        w->entry_channels[w->depth++] = channels_of(frame);
    const hwnas_value value = stmt->expr ? value_of(w, stmt->expr, frame) : (hwnas_value){0};
    if (stmt->kind == HWNAS_STMT_IF || stmt->kind == HWNAS_STMT_RESIDUAL)
        note(export, stmt, !stmt->expr || truth_of(w, stmt->expr, frame));
    else if (stmt->kind == HWNAS_STMT_SWITCH)
        note(export, stmt, (int64_t)case_of(stmt, &value));
    else if (stmt->kind == HWNAS_STMT_REPEAT)
        note(export, stmt, value.i);
    if (!stmt->call)
        return;
    export->needs_values |= note(export, &stmt->call->n_slots, frame->n_dims)->varies;
    w->entry_channels[w->depth++] = channels_of(frame);
}

/* The node that an operator became: the last, where several did. Of a learned tensor there is
 * none. */
static void leave_operator(watch *w, const hwnas_stmt *stmt, const hwnas_graph *graph,
                           const hwnas_shape *before, const hwnas_shape *after)
{
    hwnas_export *export = w->export;
    const hwnas_torch_row *row = hwnas_torch_row_of(stmt->name);
    const hwnas_op *op = stmt->op;
    const hwnas_node *node = op->id == HWNAS_OP_WEIGHT ? NULL : &graph->nodes[graph->n_nodes - 1];
    const bool is_lopsided =
        row && node && hwnas_export_is_lopsided(node, row->looks_at == HWNAS_TORCH_WINDOW);
    w->is_beyond |= !row;
    if (op->id == HWNAS_OP_AVG_POOL && !hwnas_node_attr(node, "count_pad")->ints[0]) {
        w->is_beyond |= is_lopsided;
        const hwnas_torch_observed *seen = hwnas_export_seen(export, stmt);
        export->needs_values |= seen && seen->is_lopsided;
    }
    if (row && row->looks_at == HWNAS_TORCH_RATIO) {
        const int64_t ratio = after->dims[0] / hwnas_shape_channels(before);
        w->is_beyond |= hwnas_node_attr(node, "axis")->ints[0] != 1;
        export->needs_values |= note(export, stmt, ratio)->varies;
    }
    note_layer(w, stmt, before, after, is_lopsided);
}

/* Notes which branch has the most channels: that is how many the result has. A join of more
 * branches than its operator takes is several nodes. */
static void leave_join(watch *w, const hwnas_stmt *stmt, const hwnas_graph *graph)
{
    const size_t n = stmt->n_bodies;
    const bool is_one = n <= (size_t)((const hwnas_op *)stmt->op)->max_inputs;
    const hwnas_node *first = &graph->nodes[graph->n_nodes - (is_one ? 1 : n - 1)];
    int64_t widest = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        const int tensor = is_one || i < 2 ? first->inputs[i] : first[i - 1].inputs[1];
        const hwnas_shape shape = hwnas_shape_of(&graph->tensors[tensor]);
        if (hwnas_shape_channels(&shape) > most) {
            most = hwnas_shape_channels(&shape);
            widest = (int64_t)i;
        }
    }
    w->is_beyond |= !hwnas_torch_join_of(stmt->name);
    note(w->export, stmt, widest);
}

static void leave(void *context, const hwnas_stmt *stmt, const hwnas_graph *graph, int from, int to)
{
    watch *w = context;
    const hwnas_shape before = hwnas_shape_of(&graph->tensors[from]),
                      after = hwnas_shape_of(&graph->tensors[to]);
    const bool keeps = hwnas_shape_channels(&before) == hwnas_shape_channels(&after);
    if (stmt->kind == HWNAS_STMT_IF || stmt->kind == HWNAS_STMT_SWITCH)
        note(w->export, stmt->bodies, keeps);
    if (stmt->call) {
        note(w->export, stmt->call, keeps);
        w->depth--;
    } else if (stmt->kind == HWNAS_STMT_LAYER) {
        leave_operator(w, stmt, graph, &before, &after);
    } else if (stmt->kind == HWNAS_STMT_JOIN) {
        leave_join(w, stmt, graph);
        note_layer(w, stmt, &before, &after, false);
    }
}

hwnas_status hwnas_export_watch(hwnas_graph **out, hwnas_export *export)
{
    watch w = {.export = export};
    const hwnas_elaborate_watcher watcher = {&w, watch_expr, enter, leave};
    TRY(hwnas_graph_build_watched(out, export->arch, 1, &watcher));
    export->is_flat = w.is_beyond;
    return HWNAS_OK;
}
