/* eval.c: what an expression is worth. Whole numbers are 64 bits and never wrap. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "space/expr.h"

const hwnas_operator_row hwnas_operator_rows[HWNAS_N_OPERATORS] = {
    [HWNAS_OPERATOR_IF] = {"?", 1},         [HWNAS_OPERATOR_OR] = {"or", 2},
    [HWNAS_OPERATOR_AND] = {"and", 3},      [HWNAS_OPERATOR_NOT] = {"not", 4},
    [HWNAS_OPERATOR_EQ] = {"==", 5},        [HWNAS_OPERATOR_NE] = {"!=", 5},
    [HWNAS_OPERATOR_LT] = {"<", 5},         [HWNAS_OPERATOR_LE] = {"<=", 5},
    [HWNAS_OPERATOR_GT] = {">", 5},         [HWNAS_OPERATOR_GE] = {">=", 5},
    [HWNAS_OPERATOR_ADD] = {"+", 6},        [HWNAS_OPERATOR_SUB] = {"-", 6},
    [HWNAS_OPERATOR_MUL] = {"*", 7},        [HWNAS_OPERATOR_DIV] = {"/", 7},
    [HWNAS_OPERATOR_FLOOR_DIV] = {"//", 7}, [HWNAS_OPERATOR_MOD] = {"%", 7},
    [HWNAS_OPERATOR_NEGATE] = {"-", 8},     [HWNAS_OPERATOR_INDEX] = {"[", 9},
};

enum { IN, HEIGHT, WIDTH, LENGTH };
const char *const hwnas_tensor_names[] = {"in", "height", "width", "length", NULL};

int hwnas_tensor_dimension(int slot, int n_dims)
{
    const bool is_sequence = n_dims == 2; /* length x features */
    switch (slot) {
    case IN:
        return is_sequence ? 1 : n_dims - 1 < 0 ? -1 : 0;
    case LENGTH:
        return n_dims == 1 || is_sequence ? 0 : -1;
    default:
        return n_dims > slot && !is_sequence ? slot : -1;
    }
}

static bool is_number(const hwnas_value *v)
{
    return v->kind == HWNAS_VALUE_INT || v->kind == HWNAS_VALUE_REAL;
}

static double as_real(const hwnas_value *v)
{
    return v->kind == HWNAS_VALUE_INT ? (double)v->i : v->r;
}

static hwnas_value int_value(int64_t i)
{
    return (hwnas_value){.kind = HWNAS_VALUE_INT, .i = i};
}

static hwnas_value real_value(double r)
{
    return (hwnas_value){.kind = HWNAS_VALUE_REAL, .r = r};
}

static hwnas_status overflow(const hwnas_place *place)
{
    return hwnas_fail(HWNAS_E_INPUT, place, "the result does not fit into 64 bits");
}

static hwnas_status need_number(const hwnas_value *v, const hwnas_place *place)
{
    if (is_number(v))
        return HWNAS_OK;
    char *text = hwnas_value_text(v);
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, place, "a number was expected, not %s '%.60s'",
                                     hwnas_value_kind_name(v->kind), text);
    free(text);
    return status;
}

/* -1, 0 or 1; whole numbers exactly. */
static int order(const hwnas_value *a, const hwnas_value *b)
{
    if (a->kind == HWNAS_VALUE_INT && b->kind == HWNAS_VALUE_INT)
        return (a->i > b->i) - (a->i < b->i);
    return (as_real(a) > as_real(b)) - (as_real(a) < as_real(b));
}

/* Floor division and its remainder, as in Python. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static hwnas_status divide(hwnas_value *out, hwnas_operator op, const hwnas_value *a,
                           const hwnas_value *b, const hwnas_place *place)
{
    if (as_real(b) == 0)
        return hwnas_fail(HWNAS_E_INPUT, place, "division by zero");
    if (a->kind != HWNAS_VALUE_INT || b->kind != HWNAS_VALUE_INT) {
        double q = as_real(a) / as_real(b);
        *out = op == HWNAS_OPERATOR_DIV         ? real_value(q)
               : op == HWNAS_OPERATOR_FLOOR_DIV ? real_value(floor(q))
                                                : real_value(as_real(a) - floor(q) * as_real(b));
        return isfinite(out->r) ? HWNAS_OK : overflow(place);
    }
    if (b->i == -1 && a->i == INT64_MIN)
        return overflow(place);
    if (op == HWNAS_OPERATOR_DIV)
        *out = a->i % b->i ? real_value((double)a->i / (double)b->i) : int_value(a->i / b->i);
    else if (op == HWNAS_OPERATOR_FLOOR_DIV)
        *out = int_value(floor_div(a->i, b->i));
    else
        *out = int_value(a->i - floor_div(a->i, b->i) * b->i);
    return HWNAS_OK;
}

static hwnas_status arithmetic(hwnas_value *out, hwnas_operator op, const hwnas_value *a,
                               const hwnas_value *b, const hwnas_place *place)
{
    TRY(need_number(a, place));
    TRY(need_number(b, place));
    if (op == HWNAS_OPERATOR_DIV || op == HWNAS_OPERATOR_FLOOR_DIV || op == HWNAS_OPERATOR_MOD)
        return divide(out, op, a, b, place);
    if (a->kind == HWNAS_VALUE_INT && b->kind == HWNAS_VALUE_INT) {
        int64_t i;
        bool wraps = op == HWNAS_OPERATOR_ADD   ? __builtin_add_overflow(a->i, b->i, &i)
                     : op == HWNAS_OPERATOR_SUB ? __builtin_sub_overflow(a->i, b->i, &i)
                                                : __builtin_mul_overflow(a->i, b->i, &i);
        *out = int_value(i);
        return wraps ? overflow(place) : HWNAS_OK;
    }
    double x = as_real(a), y = as_real(b);
    *out = real_value(op == HWNAS_OPERATOR_ADD ? x + y : op == HWNAS_OPERATOR_SUB ? x - y : x * y);
    return isfinite(out->r) ? HWNAS_OK : overflow(place);
}

static hwnas_status compare(hwnas_value *out, hwnas_operator op, const hwnas_value *a,
                            const hwnas_value *b, const hwnas_place *place)
{
    if (op == HWNAS_OPERATOR_EQ || op == HWNAS_OPERATOR_NE) {
        *out = int_value(hwnas_value_equal(a, b) == (op == HWNAS_OPERATOR_EQ));
        return HWNAS_OK;
    }
    TRY(need_number(a, place));
    TRY(need_number(b, place));
    int sign = order(a, b);
    *out = int_value(op == HWNAS_OPERATOR_LT   ? sign < 0
                     : op == HWNAS_OPERATOR_LE ? sign <= 0
                     : op == HWNAS_OPERATOR_GT ? sign > 0
                                               : sign >= 0);
    return HWNAS_OK;
}

hwnas_status hwnas_operator_apply(hwnas_value *out, hwnas_operator op, const hwnas_value *a,
                                  const hwnas_value *b, const hwnas_place *place)
{
    if (op != HWNAS_OPERATOR_INDEX)
        return op <= HWNAS_OPERATOR_GE ? compare(out, op, a, b, place)
                                       : arithmetic(out, op, a, b, place);
    if (a->kind != HWNAS_VALUE_LIST || b->kind != HWNAS_VALUE_INT)
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "%s has no positions: '[ ]' needs a list and a whole number",
                          hwnas_value_kind_name(a->kind));
    if (b->i < 0 || (uint64_t)b->i >= a->list.n)
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "there is no position %lld in a list of %zu, they count from 0",
                          (long long)b->i, a->list.n);
    *out = a->list.items[b->i];
    return HWNAS_OK;
}

hwnas_status hwnas_expr_eval_truth(bool *out, const hwnas_expr *expr, const hwnas_scope_frame *frame,
                                   hwnas_arena *scratch)
{
    hwnas_value value;
    TRY(hwnas_expr_eval(&value, expr, frame, scratch));
    if (!is_number(&value)) {
        char *text = hwnas_value_text(&value);
        hwnas_status status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &expr->place,
                                                    "a condition is true or false, not %s '%.60s'",
                                                    hwnas_value_kind_name(value.kind), text),
                                         "compare it, as in a == b");
        free(text);
        return status;
    }
    *out = as_real(&value) != 0;
    return HWNAS_OK;
}

static hwnas_status eval_operator(hwnas_value *out, const hwnas_expr *expr,
                                  const hwnas_scope_frame *frame, hwnas_arena *scratch)
{
    hwnas_operator op = (hwnas_operator)expr->op;
    bool truth;
    switch (op) {
    case HWNAS_OPERATOR_IF:
        TRY(hwnas_expr_eval_truth(&truth, expr->args[0], frame, scratch));
        return hwnas_expr_eval(out, expr->args[truth ? 1 : 2], frame, scratch);
    case HWNAS_OPERATOR_OR:
    case HWNAS_OPERATOR_AND:
        TRY(hwnas_expr_eval_truth(&truth, expr->args[0], frame, scratch));
        if (truth == (op == HWNAS_OPERATOR_AND))
            TRY(hwnas_expr_eval_truth(&truth, expr->args[1], frame, scratch));
        *out = int_value(truth);
        return HWNAS_OK;
    case HWNAS_OPERATOR_NOT:
        TRY(hwnas_expr_eval_truth(&truth, expr->args[0], frame, scratch));
        *out = int_value(!truth);
        return HWNAS_OK;
    default:
        break;
    }
    hwnas_value a, b = int_value(0);
    TRY(hwnas_expr_eval(&a, expr->args[0], frame, scratch));
    if (op == HWNAS_OPERATOR_NEGATE) {
        hwnas_value zero = int_value(0);
        return arithmetic(out, HWNAS_OPERATOR_SUB, &zero, &a, &expr->place);
    }
    TRY(hwnas_expr_eval(&b, expr->args[1], frame, scratch));
    return hwnas_operator_apply(out, op, &a, &b, &expr->place);
}

/* min and max: the argument that wins, so whole numbers stay whole. */
static hwnas_status extreme(hwnas_value *out, const hwnas_value *args, size_t n, int sign,
                            const hwnas_place *place)
{
    const hwnas_value *best = &args[0];
    for (size_t i = 0; i < n; i++) {
        TRY(need_number(&args[i], place));
        if (order(&args[i], best) == sign)
            best = &args[i];
    }
    *out = *best;
    return HWNAS_OK;
}

static hwnas_status f_max(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place)
{
    return extreme(out, args, n, 1, place);
}

static hwnas_status f_min(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place)
{
    return extreme(out, args, n, -1, place);
}

/* The multiple of `divisor` nearest to `value`, at least one, and not more than 10 % below it: the
 * channel rounding of the MobileNet papers' reference code. */
static hwnas_status f_make_divisible(hwnas_value *out, const hwnas_value *args, size_t n,
                                     const hwnas_place *place)
{
    (void)n;
    TRY(need_number(&args[0], place));
    TRY(need_number(&args[1], place));
    double value = as_real(&args[0]), divisor = as_real(&args[1]);
    if (divisor < 1 || divisor != floor(divisor) || divisor > 9e15 || fabs(value) > 9e15)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "make_divisible(%g, %g) has no answer",
                                     value, divisor),
                          "the second is a whole number from 1 on");
    double rounded = fmax(divisor, floor((value + divisor / 2) / divisor) * divisor);
    if (rounded < 0.9 * value)
        rounded += divisor;
    *out = int_value((int64_t)rounded);
    return HWNAS_OK;
}

static hwnas_status f_sqrt(hwnas_value *out, const hwnas_value *args, size_t n,
                           const hwnas_place *place)
{
    (void)n;
    TRY(need_number(&args[0], place));
    const double value = as_real(&args[0]);
    if (value < 0)
        return hwnas_fail(HWNAS_E_INPUT, place, "%g has no square root", value);
    *out = real_value(sqrt(value));
    if (args[0].kind == HWNAS_VALUE_INT && value < 9e15 && out->r == floor(out->r))
        *out = int_value((int64_t)out->r); /* the root of 64 is a whole number */
    return HWNAS_OK;
}

static hwnas_status whole(hwnas_value *out, const hwnas_value *arg, double (*function)(double),
                          const hwnas_place *place)
{
    TRY(need_number(arg, place));
    if (arg->kind == HWNAS_VALUE_REAL && fabs(arg->r) > 9e15)
        return overflow(place);
    *out = arg->kind == HWNAS_VALUE_INT ? *arg : int_value((int64_t)function(arg->r));
    return HWNAS_OK;
}

static hwnas_status f_round(hwnas_value *out, const hwnas_value *args, size_t n,
                            const hwnas_place *place)
{
    (void)n;
    return whole(out, args, rint, place);
}

static hwnas_status f_ceil(hwnas_value *out, const hwnas_value *args, size_t n,
                           const hwnas_place *place)
{
    (void)n;
    return whole(out, args, ceil, place);
}

static hwnas_status f_floor(hwnas_value *out, const hwnas_value *args, size_t n,
                            const hwnas_place *place)
{
    (void)n;
    return whole(out, args, floor, place);
}

static hwnas_status need_list(const hwnas_value *v, const hwnas_place *place)
{
    if (v->kind == HWNAS_VALUE_LIST)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, place, "a list was expected, not %s",
                      hwnas_value_kind_name(v->kind));
}

static hwnas_status f_len(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place)
{
    (void)n;
    TRY(need_list(&args[0], place));
    *out = int_value((int64_t)args[0].list.n);
    return HWNAS_OK;
}

static hwnas_status f_sum(hwnas_value *out, const hwnas_value *args, size_t n,
                          const hwnas_place *place)
{
    (void)n;
    TRY(need_list(&args[0], place));
    hwnas_value sum = int_value(0);
    for (size_t i = 0; i < args[0].list.n; i++)
        TRY(arithmetic(&sum, HWNAS_OPERATOR_ADD, &sum, &args[0].list.items[i], place));
    *out = sum;
    return HWNAS_OK;
}

const hwnas_function_row hwnas_functions[] = {
    {"ceil", 1, 1, f_ceil},
    {"floor", 1, 1, f_floor},
    {"len", 1, 1, f_len},
    {"max", 1, -1, f_max},
    {"min", 1, -1, f_min},
    {"round", 1, 1, f_round},
    {"sqrt", 1, 1, f_sqrt},
    {"sum", 1, 1, f_sum},
    {"make_divisible", 2, 2, f_make_divisible},
    {0},
};

hwnas_status hwnas_expr_eval(hwnas_value *out, const hwnas_expr *expr, const hwnas_scope_frame *frame,
                             hwnas_arena *scratch)
{
    int dimension;
    switch (expr->kind) {
    case HWNAS_EXPR_LITERAL:
        *out = expr->value;
        return HWNAS_OK;
    case HWNAS_EXPR_VARIABLE:
        *out = frame->slots[expr->slot];
        if (out->kind == HWNAS_VALUE_NONE)
            return hwnas_fail(HWNAS_E_INPUT, &expr->place, "'%s' has no value yet", expr->name);
        return HWNAS_OK;
    case HWNAS_EXPR_CHOICE:
        *out = frame->choices[expr->slot];
        return HWNAS_OK;
    case HWNAS_EXPR_TENSOR:
        dimension = hwnas_tensor_dimension(expr->slot, frame->n_dims);
        if (dimension < 0)
            return hwnas_fail(
                HWNAS_E_INPUT, &expr->place,
                "the current tensor has no '%s': it has %d dimension%s beside the batch",
                expr->name, frame->n_dims, frame->n_dims == 1 ? "" : "s");
        *out = int_value(frame->dims[dimension]);
        return HWNAS_OK;
    case HWNAS_EXPR_OPERATOR:
        return eval_operator(out, expr, frame, scratch);
    case HWNAS_EXPR_LIST:
    case HWNAS_EXPR_CALL:
        break;
    }
    hwnas_value *args = hwnas_arena_alloc(scratch, expr->n_args * sizeof *args);
    for (size_t i = 0; i < expr->n_args; i++)
        TRY(hwnas_expr_eval(&args[i], expr->args[i], frame, scratch));
    if (expr->kind == HWNAS_EXPR_CALL)
        return hwnas_functions[expr->op].apply(out, args, expr->n_args, &expr->place);
    *out = (hwnas_value){.kind = HWNAS_VALUE_LIST, .list = {args, expr->n_args}};
    return HWNAS_OK;
}

hwnas_status hwnas_expr_eval_int(int64_t *out, const hwnas_expr *expr, const hwnas_scope_frame *frame,
                                 hwnas_arena *scratch)
{
    hwnas_value value;
    TRY(hwnas_expr_eval(&value, expr, frame, scratch));
    TRY(need_number(&value, &expr->place));
    if (value.kind != HWNAS_VALUE_INT)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &expr->place,
                                     "a whole number was expected, not %.15g", value.r),
                          "divide with // or use round()");
    *out = value.i;
    return HWNAS_OK;
}
