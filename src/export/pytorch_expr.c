/* pytorch_expr.c: expressions of the space as Python, evaluated as far as they are known. */
#include <string.h>

#include "export/pytorch_priv.h"
#include "space/expr.h"

const hwnas_py *hwnas_torch_truth(hwnas_torch_scope *s, const hwnas_py *expr)
{
    return hwnas_py_make(s->arena, HWNAS_PY_TRUTH, NULL, 1, &expr);
}

/* Is everything that the expression refers to known? Sets the facts of the current tensor. */
static bool is_known(const hwnas_torch_scope *s, const hwnas_expr *expr, hwnas_shape *shape)
{
    if (expr->kind == HWNAS_EXPR_VARIABLE)
        return s->slots[expr->slot] && hwnas_py_is_value(s->slots[expr->slot]);
    if (expr->kind == HWNAS_EXPR_TENSOR && !s->export->is_concrete) {
        int64_t fact = hwnas_export_saw(s->export, expr)->value;
        shape->n = (int)hwnas_export_saw(s->export, &expr->slot)->value;
        if (expr->slot == 0 && hwnas_py_is_value(s->in))
            fact = s->in->value.i;
        else if (expr->slot == 0)
            return false;
        int dimension = hwnas_tensor_dimension(expr->slot, shape->n);
        if (dimension >= 0)
            shape->dims[dimension] = fact;
        return dimension >= 0;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        if (!is_known(s, expr->args[i], shape))
            return false;
    return true;
}

static const hwnas_py *evaluate(hwnas_torch_scope *s, const hwnas_expr *expr)
{
    const hwnas_template *t = s->class->origin->template;
    hwnas_shape shape = s->shape;
    hwnas_value value;
    if (!is_known(s, expr, &shape))
        return NULL;
    hwnas_scope_frame frame = {
        .scope = t, .choices = s->export->choices, .dims = shape.dims, .n_dims = shape.n};
    frame.slots = hwnas_arena_alloc(s->arena, (t->n_slots + 1) * sizeof *frame.slots);
    for (size_t i = 0; i < t->n_slots; i++)
        if (s->slots[i] && hwnas_py_is_value(s->slots[i]))
            frame.slots[i] = s->slots[i]->value;
    if (hwnas_expr_eval(&value, expr, &frame, s->arena) != HWNAS_OK) {
        hwnas_error_clear(); /* a branch that is never taken may say anything */
        return NULL;
    }
    return hwnas_py_value(s->arena, value);
}

static const hwnas_py *convert_operator(hwnas_torch_scope *s, const hwnas_expr *expr)
{
    hwnas_operator op = (hwnas_operator)expr->op;
    const hwnas_sight *sight = hwnas_export_saw(s->export, expr);
    const hwnas_py *args[3];
    if (op == HWNAS_OPERATOR_IF && (sight->outcomes == 1 || sight->outcomes == 2))
        return hwnas_torch_convert(s, expr->args[sight->outcomes == 2 ? 1 : 2]);
    for (size_t i = 0; i < expr->n_args; i++)
        args[i] = hwnas_torch_convert(s, expr->args[i]);
    if (op == HWNAS_OPERATOR_IF && hwnas_py_is_value(args[0]))
        return args[hwnas_py_is_true(args[0]) ? 1 : 2];
    if (op == HWNAS_OPERATOR_AND || op == HWNAS_OPERATOR_OR)
        for (size_t i = 0; i < 2; i++)
            if (hwnas_py_is_value(args[i]))
                return hwnas_py_is_true(args[i]) == (op == HWNAS_OPERATOR_AND) ? args[1 - i]
                                                                               : args[i];
    if (op == HWNAS_OPERATOR_DIV && sight->outcomes == 1)
        op = HWNAS_OPERATOR_FLOOR_DIV;
    return hwnas_py_operator(s->arena, op, expr->n_args, args);
}

/* Those that are not built into Python. */
static const char *python_function(const char *name)
{
    static const struct {
        const char *name, *python;
    } rows[] = {{"ceil", "math.ceil"}, {"floor", "math.floor"}, {"sqrt", "math.sqrt"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return rows[i].python;
    return name;
}

const hwnas_py *hwnas_torch_convert(hwnas_torch_scope *s, const hwnas_expr *expr)
{
    const hwnas_py *value = evaluate(s, expr);
    if (value)
        return value;
    if (expr->kind == HWNAS_EXPR_VARIABLE)
        return s->slots[expr->slot];
    if (expr->kind == HWNAS_EXPR_TENSOR)
        return s->in;
    if (expr->kind == HWNAS_EXPR_OPERATOR)
        return convert_operator(s, expr);
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (expr->n_args + 1) * sizeof *args);
    for (size_t i = 0; i < expr->n_args; i++)
        args[i] = hwnas_torch_convert(s, expr->args[i]);
    if (expr->kind == HWNAS_EXPR_LIST)
        return hwnas_py_make(s->arena, HWNAS_PY_LIST, NULL, expr->n_args, args);
    hwnas_torch_file_need(&s->export->module, expr->name);
    return hwnas_py_make(s->arena, HWNAS_PY_CALL, python_function(expr->name), expr->n_args, args);
}

/* What became known by putting arguments into another class's formula, as one value. */
const hwnas_py *hwnas_torch_fold(hwnas_torch_scope *s, const hwnas_py *expr)
{
    bool is_call = expr->kind == HWNAS_PY_CALL;
    hwnas_expr formula = {.kind = is_call ? HWNAS_EXPR_CALL : HWNAS_EXPR_OPERATOR,
                          .op = (int)expr->op,
                          .n_args = expr->n_args};
    hwnas_scope_frame frame = {.scope = s->class->origin->template};
    hwnas_value value;
    bool is_known_all = is_call || expr->kind == HWNAS_PY_OPERATOR;
    if (!expr->n_args)
        return expr;
    hwnas_py *copy = hwnas_py_make(s->arena, expr->kind, expr->text, expr->n_args, expr->args);
    copy->op = expr->op;
    formula.args = hwnas_arena_alloc(s->arena, expr->n_args * sizeof *formula.args);
    for (size_t i = 0; i < expr->n_args; i++) {
        hwnas_expr *literal = hwnas_arena_alloc(s->arena, sizeof *literal);
        copy->args[i] = hwnas_torch_fold(s, expr->args[i]);
        *literal = (hwnas_expr){.kind = HWNAS_EXPR_LITERAL, .value = copy->args[i]->value};
        formula.args[i] = literal;
        is_known_all = is_known_all && hwnas_py_is_value(copy->args[i]);
    }
    while (is_call && hwnas_functions[formula.op].name &&
           strcmp(python_function(hwnas_functions[formula.op].name), expr->text))
        formula.op++;
    if (!is_known_all || (is_call && !hwnas_functions[formula.op].name))
        return copy;
    if (hwnas_expr_eval(&value, &formula, &frame, s->arena) == HWNAS_OK)
        return hwnas_py_value(s->arena, value);
    hwnas_error_clear();
    return copy;
}

const hwnas_py *hwnas_torch_swap(hwnas_torch_scope *s, const hwnas_py *expr, const hwnas_py *from,
                                 const hwnas_py *to)
{
    if (hwnas_py_equal(expr, from))
        return to;
    if (!expr->n_args)
        return expr;
    hwnas_py *copy = hwnas_arena_copy(s->arena, expr, sizeof *expr);
    copy->args = hwnas_arena_copy(s->arena, expr->args, expr->n_args * sizeof *expr->args);
    for (size_t i = 0; i < expr->n_args; i++)
        copy->args[i] = hwnas_torch_swap(s, expr->args[i], from, to);
    return copy;
}
