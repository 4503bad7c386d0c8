/* elaborate_check.c: what can be said of a space before a network of it is wanted: that its layers
 * and their arguments exist, and that a handful of its networks can be built. */
#include "graph/elaborate.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/op.h"

static hwnas_status unknown_layer(const hwnas_space *space, const hwnas_stmt *stmt)
{
    const char *names[256] = {0};
    size_t n = 0;
    for (; hwnas_stmt_word(n); n++)
        names[n] = hwnas_stmt_word(n);
    size_t n_words = n;
    for (const hwnas_op *const *op = hwnas_ops; *op && n < 128; op++)
        if (!(*op)->is_internal)
            names[n++] = (*op)->name;
    for (size_t i = 0; i < space->n_templates && n < 255; i++)
        names[n++] = space->templates[i]->name;
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &stmt->place, "there is no layer '%.60s'", stmt->name);
    const char *near = hwnas_nearest(stmt->name, names);
    if (near)
        return hwnas_hint(status, "did you mean '%s'?", near);
    hwnas_str list = {0};
    for (size_t i = n_words; i < n; i++)
        hwnas_str_addf(&list, "%s%s", i > n_words ? ", " : "", names[i]);
    hwnas_hint(status, "there are %.400s", list.s);
    hwnas_str_done(&list);
    return status;
}

static int find_attr(const hwnas_op *op, const char *name)
{
    for (int i = 0; op->attrs[i].name; i++)
        if (!strcmp(op->attrs[i].name, name))
            return i;
    return -1;
}

/* Finds the attributes that the arguments are. */
static hwnas_status check_args(const hwnas_op *op, hwnas_stmt *stmt)
{
    const char *names[17] = {0};
    for (int i = 0; op->attrs[i].name && i < 16; i++)
        names[i] = op->attrs[i].name;
    for (size_t i = 0; i < stmt->n_args; i++) {
        hwnas_arg *arg = &stmt->args[i];
        arg->slot = find_attr(op, arg->name);
        if (arg->slot >= 0)
            continue;
        hwnas_status status = hwnas_fail(HWNAS_E_INPUT, &arg->place, "'%s' has no argument '%.60s'",
                                         op->name, arg->name);
        const char *near = hwnas_nearest(arg->name, names);
        if (near)
            return hwnas_hint(status, "did you mean '%s'?", near);
        hwnas_str list = {0};
        for (int n = 0; names[n]; n++)
            hwnas_str_addf(&list, "%s%s", n ? ", " : "", names[n]);
        hwnas_hint(status, list.n ? "it has %s" : "it has none%s", list.n ? list.s : "");
        hwnas_str_done(&list);
        return status;
    }
    for (int row = 0; op->attrs[row].name; row++) {
        bool given = !op->attrs[row].is_required;
        for (size_t i = 0; i < stmt->n_args && !given; i++)
            given = !strcmp(stmt->args[i].name, op->attrs[row].name);
        if (!given)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' needs '%s': %s",
                                         op->name, op->attrs[row].name, op->attrs[row].help),
                              "write %s: {%s: ...}", op->name, op->attrs[row].name);
    }
    return HWNAS_OK;
}

static hwnas_status check_body(const hwnas_space *space, const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        hwnas_stmt *stmt = body->stmts[i];
        for (size_t n = 0; n < stmt->n_bodies; n++)
            TRY(check_body(space, &stmt->bodies[n]));
        bool is_layer = stmt->kind == HWNAS_STMT_LAYER || stmt->kind == HWNAS_STMT_JOIN;
        if (!is_layer || stmt->call)
            continue;
        const hwnas_op *op = hwnas_op_by_name(stmt->name);
        if (!op || op->is_internal)
            return unknown_layer(space, stmt);
        if (stmt->kind == HWNAS_STMT_JOIN && !op->joins)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' does not join branches", op->name),
                "its arguments are 'name: value', no list");
        if (stmt->kind == HWNAS_STMT_LAYER && op->min_inputs > 1)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' needs branches", op->name),
                "write %s: [[...], [...]]; [] is the tensor itself", op->name);
        bool is_applied_again = op->commutes && op->max_inputs == 2; /* a + b + c */
        size_t most = is_applied_again ? HWNAS_MAX_NODE_INPUTS : (size_t)op->max_inputs;
        if (stmt->n_bodies > most ||
            (stmt->kind == HWNAS_STMT_JOIN && stmt->n_bodies < (size_t)op->min_inputs))
            return op->min_inputs == (int)most
                       ? hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' joins %d branches, not %zu",
                                    op->name, op->min_inputs, stmt->n_bodies)
                       : hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                                    "'%s' joins %d to %d branches, not %zu", op->name,
                                    op->min_inputs, (int)most, stmt->n_bodies);
        TRY(check_args(op, stmt));
        stmt->op = op;
    }
    return HWNAS_OK;
}

static hwnas_status try_build(const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_graph_build(&graph, arch, 1);
    hwnas_graph_free(graph);
    if (status == HWNAS_OK || arch->space->n_genes == 0)
        return status;
    char *code = hwnas_arch_code(arch);
    hwnas_context(status, "architecture %s", code);
    free(code);
    return status;
}

hwnas_status hwnas_graph_check(hwnas_space *space)
{
    enum { N_RANDOM = 16 };
    for (size_t i = 0; i < space->n_templates; i++) {
        const hwnas_template *t = space->templates[i];
        if (hwnas_op_by_name(t->name))
            return hwnas_fail(HWNAS_E_INPUT, &t->place,
                              "'%s' is an operator, the template needs another name", t->name);
        TRY(check_body(space, &t->body));
    }
    TRY(check_body(space, &space->network->body));
    TRY(hwnas_space_check_rules(space));
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(0, 0);
    hwnas_status status = hwnas_arch_settle(arch) ? try_build(arch) : HWNAS_OK;
    for (size_t i = 0; i < space->n_genes; i++)
        arch->genes[i] = (uint16_t)(space->genes[i].n_values - 1);
    if (status == HWNAS_OK && hwnas_arch_settle(arch))
        status = try_build(arch);
    for (int n = 0; n < N_RANDOM && space->n_genes && status == HWNAS_OK; n++) {
        status = hwnas_arch_sample(arch, &rng) ? try_build(arch) : hwnas_space_none_found(space);
    }
    hwnas_arch_free(arch);
    return status;
}

hwnas_status hwnas_graph_load_space(hwnas_space **out, const char *name)
{
    hwnas_space *space;
    TRY(hwnas_space_load(&space, name));
    hwnas_status status = hwnas_graph_check(space);
    if (status == HWNAS_OK)
        *out = space;
    else
        hwnas_space_free(space);
    return status;
}
