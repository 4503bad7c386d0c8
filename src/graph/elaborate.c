/* elaborate.c: the meaning of the space language. A tensor is carried from statement to statement;
 * each layer takes it and puts its own output in its place. */
#include "graph/elaborate.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate_priv.h"

/* Limits that no real network meets, so that a slip such as `repeat: 1000000000` ends at once. A
 * step is a statement, a turn of a loop, a part of an expression, a variable or some characters of
 * a name: each takes a bounded time and a few bytes. */
enum { MAX_NODES = 100000, MAX_STEPS = 2000000, CHARACTERS_OF_A_STEP = 16, MAX_ATTRS = 16 };

typedef hwnas_elaboration builder;
typedef hwnas_call call;
typedef hwnas_name_count name_count;

hwnas_status hwnas_elaborate_steps(builder *b, long n, const hwnas_place *place)
{
    b->steps += n;
    if (b->steps <= MAX_STEPS)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place,
                                 "the network takes more than %d steps to build", MAX_STEPS),
                      "look at the loops, and at templates that use others more than once");
}

/* ---- Names ---- */

static const char *layer_path(builder *b, call *c, const char *name)
{
    name_count *count = c->names;
    while (count && count->name != name) /* an operator's or a template's own: one pointer each */
        count = count->next;
    if (!count) {
        count = hwnas_arena_alloc(b->scratch, sizeof *count);
        *count = (name_count){.name = name, .next = c->names};
        c->names = count;
    }
    char number[16], *text = number + sizeof number - 1; /* "_12", or "" for the first */
    *text = '\0';
    for (int n = count->n; n; n /= 10)
        *--text = (char)('0' + n % 10);
    if (count->n++)
        *--text = '_';
    return hwnas_arena_join(b->scratch, c->path, name, text);
}

/* ---- Statements ---- */

static hwnas_status run_body(builder *b, call *c, const hwnas_body *body, int *tensor);

/* Shows the current tensor to expressions. */
static void look_at(builder *b, call *c, int tensor)
{
    const hwnas_tensor *t = &b->graph->tensors[tensor];
    c->frame.dims = t->dims + 1;
    c->frame.n_dims = t->rank - 1;
}

static hwnas_status show_expr(const builder *b, const call *c, const hwnas_expr *expr)
{
    if (b->watcher)
        b->watcher->expr(b->watcher->context, expr, &c->frame);
    return HWNAS_OK;
}

static hwnas_status eval(builder *b, call *c, int tensor, const hwnas_expr *expr, hwnas_value *out)
{
    TRY(hwnas_elaborate_steps(b, expr->size, &expr->place));
    if (expr->kind == HWNAS_EXPR_LITERAL) {
        *out = expr->value;
        return HWNAS_OK;
    }
    look_at(b, c, tensor);
    TRY(hwnas_expr_eval(out, expr, &c->frame, b->scratch));
    return show_expr(b, c, expr);
}

static hwnas_status eval_truth(builder *b, call *c, int tensor, const hwnas_expr *expr, bool *out)
{
    look_at(b, c, tensor);
    TRY(hwnas_elaborate_steps(b, expr->size, &expr->place));
    TRY(hwnas_expr_eval_truth(out, expr, &c->frame, b->scratch));
    return show_expr(b, c, expr);
}

hwnas_status hwnas_elaborate_int(builder *b, call *c, int tensor, const hwnas_expr *expr,
                                 int64_t *out)
{
    look_at(b, c, tensor);
    TRY(hwnas_elaborate_steps(b, expr->size, &expr->place));
    TRY(hwnas_expr_eval_int(out, expr, &c->frame, b->scratch));
    return show_expr(b, c, expr);
}

static hwnas_status add_node(builder *b, call *c, const hwnas_stmt *stmt, const hwnas_op *op,
                             const hwnas_attr *attrs, int n_inputs, const int *inputs, int *tensor)
{
    if (b->graph->n_nodes >= MAX_NODES)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "the network has more than %d layers",
                          MAX_NODES);
    for (int i = 0; i < n_inputs && !op->takes_integers; i++)
        if (hwnas_dtype_is_whole(b->graph->tensors[inputs[i]].dtype))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                                         "'%s' cannot compute with '%s', which holds whole numbers",
                                         op->name, b->graph->tensors[inputs[i]].name),
                              "put 'embedding' before it");
    hwnas_status status = hwnas_graph_add_node(tensor, b->graph, op, layer_path(b, c, op->name),
                                               attrs, n_inputs, inputs, true);
    return status == HWNAS_OK ? status : hwnas_fail_at(status, &stmt->place);
}

/* What a statement says of its operator's attributes; `attrs` is all zeros before. */
static hwnas_status read_attrs(hwnas_attr *attrs, builder *b, call *c, const hwnas_stmt *stmt,
                               int tensor)
{
    const hwnas_op *op = stmt->op;
    for (size_t i = 0; i < stmt->n_args; i++) {
        hwnas_value value;
        const int row = stmt->args[i].slot;
        TRY(eval(b, c, tensor, stmt->args[i].value, &value));
        TRY(hwnas_elaborate_attr(&attrs[row], &op->attrs[row], op, &value,
                                 &stmt->args[i].value->place));
    }
    return HWNAS_OK;
}

static hwnas_status run_operator(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    hwnas_attr attrs[MAX_ATTRS] = {0};
    TRY(read_attrs(attrs, b, c, stmt, *tensor));
    return add_node(b, c, stmt, stmt->op, attrs, 1, tensor, tensor);
}

static hwnas_status run_template(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    const hwnas_template *t = stmt->call;
    TRY(hwnas_elaborate_steps(b, (long)t->n_slots, &stmt->place));
    if (b->depth == HWNAS_MAX_CALL_DEPTH)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "more than %d templates inside each other",
                          HWNAS_MAX_CALL_DEPTH);
    call inner = {.frame = {.scope = t, .choices = b->choices}};
    const char *name = layer_path(b, c, t->name);
    inner.frame.slots = hwnas_arena_alloc(b->scratch, (t->n_slots + 1) * sizeof(hwnas_value));
    inner.tensors = hwnas_arena_alloc(b->scratch, (t->n_tensors + 1) * sizeof *inner.tensors);
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(eval(b, c, *tensor, stmt->args[i].value, &inner.frame.slots[stmt->args[i].slot]));
    inner.path = hwnas_arena_join(b->scratch, name, "/", "");
    TRY(hwnas_elaborate_steps(b, (long)strlen(name) / CHARACTERS_OF_A_STEP, &stmt->place));
    b->depth++;
    hwnas_status status = HWNAS_OK;
    for (size_t p = 0; p < t->n_parameters && status == HWNAS_OK; p++)
        if (inner.frame.slots[p].kind == HWNAS_VALUE_NONE)
            status = eval(b, &inner, *tensor, t->parameters[p].fallback, &inner.frame.slots[p]);
    if (status == HWNAS_OK)
        status = run_body(b, &inner, &t->body, tensor);
    b->depth--;
    if (status != HWNAS_OK && !b->where)
        b->where = name;
    return status;
}

static hwnas_status run_layer(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    return stmt->call ? run_template(b, c, stmt, tensor) : run_operator(b, c, stmt, tensor);
}

/* Joins branches by an operator; one that takes two and commutes is applied again and again. */
static hwnas_status run_join(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    const hwnas_op *op = stmt->op;
    hwnas_attr attrs[MAX_ATTRS] = {0};
    int branches[HWNAS_MAX_NODE_INPUTS], n = (int)stmt->n_bodies;
    TRY(read_attrs(attrs, b, c, stmt, *tensor));
    for (int i = 0; i < n; i++) {
        branches[i] = *tensor;
        TRY(run_body(b, c, &stmt->bodies[i], &branches[i]));
    }
    if (n <= op->max_inputs)
        return add_node(b, c, stmt, op, attrs, n, branches, tensor);
    for (int i = 1; i < n; i++) {
        int pair[] = {branches[0], branches[i]};
        TRY(add_node(b, c, stmt, op, attrs, 2, pair, &branches[0]));
    }
    *tensor = branches[0];
    return HWNAS_OK;
}

static hwnas_status run_residual(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    bool when = true;
    int sides[] = {*tensor, *tensor};
    if (stmt->expr)
        TRY(eval_truth(b, c, *tensor, stmt->expr, &when));
    TRY(run_body(b, c, &stmt->bodies[0], &sides[0]));
    *tensor = sides[0];
    if (!when)
        return HWNAS_OK;
    hwnas_status status = add_node(b, c, stmt, hwnas_ops[HWNAS_OP_ADD], NULL, 2, sides, tensor);
    return status == HWNAS_OK
               ? status
               : hwnas_hint(status,
                            "residual adds its input to its result: make their shapes equal, or "
                            "say when they are, as in when: stride == 1 and in == out");
}

static hwnas_status run_let(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(eval(b, c, *tensor, stmt->args[i].value, &c->frame.slots[stmt->args[i].slot]));
    return HWNAS_OK;
}

static hwnas_status run_if(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    bool truth;
    TRY(eval_truth(b, c, *tensor, stmt->expr, &truth));
    size_t body = truth ? 0 : 1;
    return body < stmt->n_bodies ? run_body(b, c, &stmt->bodies[body], tensor) : HWNAS_OK;
}

static hwnas_status run_switch(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    hwnas_value value;
    TRY(eval(b, c, *tensor, stmt->expr, &value));
    for (size_t i = 0; i < stmt->n_bodies; i++)
        if (hwnas_value_equal(&value, &stmt->labels[i]))
            return run_body(b, c, &stmt->bodies[i], tensor);
    char *text = hwnas_value_text(&value);
    hwnas_str cases = {0};
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        char *label = hwnas_value_text(&stmt->labels[i]);
        hwnas_str_addf(&cases, "%s%s", i ? ", " : "", label);
        free(label);
    }
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &stmt->expr->place, "there is no case for '%.60s'", text),
        "the cases are %.400s; 'VALUE: []' does nothing", cases.s ? cases.s : "none");
    hwnas_str_done(&cases);
    free(text);
    return status;
}

static hwnas_status run_for(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    hwnas_value *lists = hwnas_arena_alloc(b->scratch, stmt->n_args * sizeof *lists);
    for (size_t i = 0; i < stmt->n_args; i++) {
        const hwnas_expr *expr = stmt->args[i].value;
        TRY(eval(b, c, *tensor, expr, &lists[i]));
        if (lists[i].kind != HWNAS_VALUE_LIST)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &expr->place,
                                         "'%s' must walk over a list, this is %s",
                                         stmt->args[i].name, hwnas_value_kind_name(lists[i].kind)),
                              "a choice is a list when it has each_of; 'repeat' counts");
        if (lists[i].list.n != lists[0].list.n)
            return hwnas_fail(
                HWNAS_E_INPUT, &expr->place,
                "lists that are walked together are equally long: '%s' has %zu, '%s' %zu",
                stmt->args[0].name, lists[0].list.n, stmt->args[i].name, lists[i].list.n);
    }
    for (size_t n = 0; n < lists[0].list.n; n++) {
        TRY(hwnas_elaborate_steps(b, (long)stmt->n_args, &stmt->place));
        for (size_t i = 0; i < stmt->n_args; i++)
            c->frame.slots[stmt->args[i].slot] = lists[i].list.items[n];
        TRY(run_body(b, c, &stmt->bodies[0], tensor));
    }
    return HWNAS_OK;
}

static hwnas_status run_repeat(builder *b, call *c, const hwnas_stmt *stmt, int *tensor)
{
    int64_t times;
    TRY(hwnas_elaborate_int(b, c, *tensor, stmt->expr, &times));
    if (times < 0 || times > MAX_NODES)
        return hwnas_fail(HWNAS_E_INPUT, &stmt->expr->place,
                          "cannot repeat %lld times, only 0 to %d", (long long)times, MAX_NODES);
    for (int64_t i = 0; i < times; i++) {
        TRY(hwnas_elaborate_steps(b, 1, &stmt->place));
        c->frame.slots[stmt->slot] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = i};
        TRY(run_body(b, c, &stmt->bodies[0], tensor));
    }
    return HWNAS_OK;
}

static hwnas_elaborate_run *const runners[] = {
    [HWNAS_STMT_LAYER] = run_layer,
    [HWNAS_STMT_JOIN] = run_join,
    [HWNAS_STMT_RESIDUAL] = run_residual,
    [HWNAS_STMT_LET] = run_let,
    [HWNAS_STMT_IF] = run_if,
    [HWNAS_STMT_SWITCH] = run_switch,
    [HWNAS_STMT_FOR] = run_for,
    [HWNAS_STMT_REPEAT] = run_repeat,
    [HWNAS_STMT_AS] = hwnas_elaborate_as,
    [HWNAS_STMT_FROM] = hwnas_elaborate_from,
    [HWNAS_STMT_OUTPUT] = hwnas_elaborate_output,
};

static hwnas_status run_body(builder *b, call *c, const hwnas_body *body, int *tensor)
{
    const hwnas_elaborate_watcher *watcher = b->watcher;
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        const int before = *tensor;
        TRY(hwnas_elaborate_steps(b, 1, &stmt->place));
        if (watcher) {
            look_at(b, c, before);
            watcher->enter(watcher->context, stmt, &c->frame);
        }
        TRY(runners[stmt->kind](b, c, stmt, tensor));
        if (watcher)
            watcher->leave(watcher->context, stmt, b->graph, before, *tensor);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_graph_build(hwnas_graph **out, const hwnas_arch *arch, int batch)
{
    if (arch->space->builder)
        return arch->space->builder->build(out, arch, batch, false);
    return hwnas_graph_build_watched(out, arch, batch, NULL);
}

hwnas_status hwnas_graph_build_watched(hwnas_graph **out, const hwnas_arch *arch, int batch,
                                       const hwnas_elaborate_watcher *watcher)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_space *space = arch->space;
    if (space->model_path)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, &space->model_place,
                          "the space has a model in the place of statements");
    builder b = {.graph = hwnas_graph_new(space->name, 0),
                 .arch = arch,
                 .scratch = hwnas_arena_new(),
                 .watcher = watcher};
    int tensor;
    b.choices = hwnas_arch_values(arch, b.scratch);
    call network = {.frame = {.scope = space->network, .choices = b.choices}, .path = ""};
    network.frame.slots =
        hwnas_arena_alloc(b.scratch, (space->network->n_slots + 1) * sizeof(hwnas_value));
    network.tensors =
        hwnas_arena_alloc(b.scratch, (space->network->n_tensors + 1) * sizeof *network.tensors);
    TRY_OUT(hwnas_elaborate_inputs(&tensor, &b, space, batch));
    TRY_OUT(run_body(&b, &network, &space->network->body, &tensor));
    TRY_OUT(hwnas_elaborate_finish(&b, space, tensor));
    *out = b.graph;
    b.graph = NULL;
out:
    if (b.where)
        hwnas_context(status, "in %.200s", b.where);
    hwnas_graph_free(b.graph);
    hwnas_arena_free(b.scratch);
    return status;
}
