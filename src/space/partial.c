#include "space/partial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "space/bounds.h"
#include "space/expr.h"

typedef hwnas_bounds range;

/* ---- The key ---- */

static void put(hwnas_partial *p, const void *bytes, size_t n)
{
    if (p->n_key + n > p->key_capacity) {
        p->key_capacity = 2 * (p->n_key + n);
        p->key = hwnas_realloc(p->key, p->key_capacity);
    }
    memcpy(p->key + p->n_key, bytes, n);
    p->n_key += n;
}

static void put_tag(hwnas_partial *p, char tag, int op)
{
    const char bytes[] = {tag, (char)op};
    put(p, bytes, sizeof bytes);
}

static void put_value(hwnas_partial *p, const hwnas_value *value)
{
    put_tag(p, 'k', (int)value->kind);
    if (value->kind == HWNAS_VALUE_SYMBOL) {
        put(p, value->s, strlen(value->s) + 1);
    } else if (value->kind == HWNAS_VALUE_LIST) {
        put(p, &value->list.n, sizeof value->list.n);
        for (size_t i = 0; i < value->list.n; i++)
            put_value(p, &value->list.items[i]);
    } else {
        put(p, &value->i, sizeof value->i);
    }
}

static range computed(hwnas_status status, const hwnas_value *value)
{
    return status == HWNAS_OK ? hwnas_bounds_known(*value) : hwnas_bounds_failure();
}

/* ---- Reduction ----
 *
 * Each function leaves the key as it was when what it returns is known, else with the rest of its
 * expression behind it. */

static range reduce(hwnas_partial *p, const hwnas_expr *expr);

static range forget_key(hwnas_partial *p, size_t mark, range r)
{
    p->n_key = mark;
    return r;
}

/* A part of a longer key: the value stands in it when it is known. */
static range part(hwnas_partial *p, range r)
{
    if (r.is_known && r.is_error)
        put_tag(p, 'e', 0);
    else if (r.is_known)
        put_value(p, &r.value);
    return r;
}

static range reduce_gene(hwnas_partial *p, size_t g)
{
    const hwnas_gene *gene = &p->space->genes[g];
    if (p->is_known[g] || gene->n_values == 1)
        return hwnas_bounds_known(gene->values[p->is_known[g] ? p->genes[g] : 0]);
    range all = hwnas_bounds_known(gene->values[0]);
    for (size_t v = 1; v < gene->n_values; v++) {
        const range one = hwnas_bounds_known(gene->values[v]);
        all.is_number &= one.is_number;
        all.is_whole &= one.is_whole;
        all.low = fmin(all.low, one.low);
        all.high = fmax(all.high, one.high);
    }
    all.is_known = false;
    if (p->is_seen)
        p->is_seen[g] = true;
    put_tag(p, 'g', 0);
    put(p, &g, sizeof g);
    p->work += gene->n_values / 8;
    return all;
}

/* A list is a choice of several positions, or is written as one. */
static bool is_list(const hwnas_partial *p, const hwnas_expr *expr)
{
    return expr->kind == HWNAS_EXPR_LIST ||
           (expr->kind == HWNAS_EXPR_CHOICE && p->space->choices[expr->slot].is_vector);
}

static size_t list_length(const hwnas_partial *p, const hwnas_expr *list)
{
    return list->kind == HWNAS_EXPR_LIST ? list->n_args : p->space->choices[list->slot].n_positions;
}

static range reduce_item(hwnas_partial *p, const hwnas_expr *list, size_t i)
{
    p->work++;
    return list->kind == HWNAS_EXPR_LIST
               ? reduce(p, list->args[i])
               : reduce_gene(p, p->space->choices[list->slot].first_gene + i);
}

static range reduce_list(hwnas_partial *p, const hwnas_expr *list)
{
    const size_t n = list_length(p, list), mark = p->n_key;
    hwnas_value *items = hwnas_arena_alloc(p->arena, (n + 1) * sizeof *items);
    bool is_known = true, may_fail = false;
    put_tag(p, 'l', 0);
    put(p, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        const range r = part(p, reduce_item(p, list, i));
        if (r.is_error)
            return forget_key(p, mark, hwnas_bounds_failure());
        is_known &= r.is_known;
        may_fail |= r.may_fail;
        items[i] = r.value;
    }
    if (is_known)
        return forget_key(
            p, mark,
            hwnas_bounds_known((hwnas_value){.kind = HWNAS_VALUE_LIST, .list = {items, n}}));
    range out = hwnas_bounds_anything();
    out.may_fail = may_fail;
    return out;
}

/* ---- Sums of whole numbers: the known terms are one number, in whichever order they come ---- */

typedef struct sum {
    int64_t constant;
    double low, high, magnitude;
    size_t n_open;
    bool is_error;
} sum;

static bool is_call(const hwnas_expr *expr, const char *name)
{
    return expr->kind == HWNAS_EXPR_CALL && !strcmp(hwnas_functions[expr->op].name, name);
}

static bool is_sum(const hwnas_partial *p, const hwnas_expr *expr)
{
    if (expr->kind == HWNAS_EXPR_OPERATOR)
        return expr->op == HWNAS_OPERATOR_ADD || expr->op == HWNAS_OPERATOR_SUB ||
               expr->op == HWNAS_OPERATOR_NEGATE;
    return is_call(expr, "sum") && is_list(p, expr->args[0]);
}

/* Adds the term whose rest stands in the key behind `mark`; false where it is none of this kind. */
static bool add_term(sum *s, hwnas_partial *p, size_t mark, range r, int sign)
{
    s->is_error |= r.is_error;
    if (r.is_error)
        return true;
    if (!r.is_whole || r.may_fail || !isfinite(r.low))
        return false;
    s->low += sign > 0 ? r.low : -r.high;
    s->high += sign > 0 ? r.high : -r.low;
    s->magnitude += fmax(fabs(r.low), fabs(r.high));
    if (s->magnitude > HWNAS_BOUNDS_EXACT)
        return false;
    if (r.is_known) {
        s->constant += sign * r.value.i;
        p->n_key = mark;
    } else {
        s->n_open++;
    }
    return true;
}

static bool add_terms(sum *s, hwnas_partial *p, const hwnas_expr *expr, int sign)
{
    p->work++;
    const size_t mark = p->n_key;
    if (!is_sum(p, expr)) {
        put_tag(p, 't', sign);
        const range r = reduce(p, expr);
        return add_term(s, p, mark, r, sign);
    }
    if (expr->kind == HWNAS_EXPR_OPERATOR) {
        const int last = expr->op == HWNAS_OPERATOR_ADD ? sign : -sign;
        return (expr->n_args < 2 || add_terms(s, p, expr->args[0], sign)) &&
               add_terms(s, p, expr->args[expr->n_args - 1], last);
    }
    for (size_t i = 0; i < list_length(p, expr->args[0]); i++) {
        const size_t start = p->n_key;
        put_tag(p, 't', sign);
        const range r = reduce_item(p, expr->args[0], i);
        if (!add_term(s, p, start, r, sign))
            return false;
    }
    return true;
}

/* false: it is not a sum of whole numbers, or may be too large; then the key is as it was. */
static bool reduce_sum(range *out, hwnas_partial *p, const hwnas_expr *expr)
{
    sum s = {0};
    const size_t mark = p->n_key;
    put_tag(p, 's', 0);
    put(p, &s.constant, sizeof s.constant); /* its room */
    if (!add_terms(&s, p, expr, 1)) {
        p->n_key = mark;
        return false;
    }
    if (s.is_error || !s.n_open) {
        *out =
            forget_key(p, mark, s.is_error ? hwnas_bounds_failure() : hwnas_bounds_int(s.constant));
        return true;
    }
    memcpy(p->key + mark + 2, &s.constant, sizeof s.constant);
    put_tag(p, '.', 0);
    *out = hwnas_bounds_between(s.low, s.high, true, false);
    return true;
}

/* ---- Operators ---- */

/* What the bounds decide is known, unless it may fail. */
static range settled(hwnas_partial *p, size_t mark, range r)
{
    if (!r.is_known && r.is_whole && !r.may_fail && r.low == r.high)
        return forget_key(p, mark, hwnas_bounds_int((int64_t)r.low));
    return r;
}

static range reduce_and_or(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_truth deciding = expr->op == HWNAS_OPERATOR_OR ? HWNAS_TRUE : HWNAS_FALSE;
    const size_t mark = p->n_key;
    put_tag(p, 'o', expr->op);
    const range a = part(p, reduce(p, expr->args[0]));
    const hwnas_truth first = hwnas_bounds_decide(&a);
    if (a.is_known && first == HWNAS_OPEN)
        return forget_key(p, mark, hwnas_bounds_failure());
    if (first == deciding)
        return forget_key(p, mark, hwnas_bounds_int(deciding));
    if (first != HWNAS_OPEN) { /* the other decides */
        p->n_key = mark;
        put_tag(p, 'b', 0);
    }
    const range b = part(p, reduce(p, expr->args[1]));
    const hwnas_truth second = hwnas_bounds_decide(&b);
    const bool may_fail = a.may_fail || !a.is_number || b.may_fail || !b.is_number;
    if (first != HWNAS_OPEN) {
        if (b.is_known && second == HWNAS_OPEN)
            return forget_key(p, mark, hwnas_bounds_failure());
        return second == HWNAS_OPEN ? hwnas_bounds_truth(b.may_fail || !b.is_number)
                                    : forget_key(p, mark, hwnas_bounds_int(second));
    }
    if (second == deciding && !a.may_fail && a.is_number)
        return forget_key(p, mark, hwnas_bounds_int(deciding));
    return hwnas_bounds_truth(may_fail);
}

static range reduce_not(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    put_tag(p, 'o', expr->op);
    const range a = part(p, reduce(p, expr->args[0]));
    const hwnas_truth truth = hwnas_bounds_decide(&a);
    if (truth != HWNAS_OPEN)
        return forget_key(p, mark, hwnas_bounds_int(truth == HWNAS_FALSE));
    return a.is_known ? forget_key(p, mark, hwnas_bounds_failure())
                      : hwnas_bounds_truth(a.may_fail || !a.is_number);
}

static range reduce_if(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    put_tag(p, 'o', expr->op);
    const range condition = part(p, reduce(p, expr->args[0]));
    const hwnas_truth truth = hwnas_bounds_decide(&condition);
    if (truth != HWNAS_OPEN) {
        p->n_key = mark;
        return reduce(p, expr->args[truth == HWNAS_TRUE ? 1 : 2]);
    }
    if (condition.is_known)
        return forget_key(p, mark, hwnas_bounds_failure());
    const range a = part(p, reduce(p, expr->args[1])), b = part(p, reduce(p, expr->args[2]));
    const bool may_fail = condition.may_fail || !condition.is_number || a.may_fail || b.may_fail;
    if (!a.is_number || !b.is_number) {
        range out = hwnas_bounds_anything();
        out.may_fail = may_fail;
        return out;
    }
    return hwnas_bounds_between(fmin(a.low, b.low), fmax(a.high, b.high), a.is_whole && b.is_whole,
                                may_fail);
}

/* An item of a list at a place that is open. */
static range reduce_open_index(hwnas_partial *p, const hwnas_expr *list, const range *index)
{
    const size_t n = list_length(p, list);
    range all = {0};
    bool may_fail =
        !index->is_whole || index->may_fail || index->low < 0 || index->high > (double)n - 1;
    for (size_t i = 0; i < n; i++) {
        const range r = part(p, reduce_item(p, list, i));
        if (i == 0)
            all = r;
        all.is_number &= r.is_number;
        all.is_whole &= r.is_whole;
        all.low = fmin(all.low, r.low);
        all.high = fmax(all.high, r.high);
        may_fail |= r.may_fail;
    }
    if (n && all.is_number)
        return hwnas_bounds_between(all.low, all.high, all.is_whole, may_fail);
    all = hwnas_bounds_anything();
    all.may_fail = may_fail;
    return all;
}

static range reduce_index(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_expr *list = expr->args[0];
    const size_t mark = p->n_key;
    put_tag(p, 'o', expr->op);
    if (list->kind == HWNAS_EXPR_CHOICE && is_list(p, list)) {
        const range index = part(p, reduce(p, expr->args[1]));
        if (!index.is_known)
            return reduce_open_index(p, list, &index);
        p->n_key = mark;
        if (index.is_error || !index.is_whole || index.value.i < 0 ||
            (uint64_t)index.value.i >= list_length(p, list))
            return hwnas_bounds_failure();
        return reduce_item(p, list, (size_t)index.value.i);
    }
    hwnas_value value;
    const range base = part(p, reduce(p, list)), index = part(p, reduce(p, expr->args[1]));
    if (base.is_error || index.is_error)
        return forget_key(p, mark, hwnas_bounds_failure());
    if (base.is_known && index.is_known)
        return forget_key(p, mark,
                          computed(hwnas_operator_apply(&value, HWNAS_OPERATOR_INDEX, &base.value,
                                                        &index.value, &expr->place),
                                   &value));
    return hwnas_bounds_anything();
}

static range reduce_operator(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_operator op = (hwnas_operator)expr->op;
    range out;
    switch (op) {
    case HWNAS_OPERATOR_IF:
        return reduce_if(p, expr);
    case HWNAS_OPERATOR_OR:
    case HWNAS_OPERATOR_AND:
        return reduce_and_or(p, expr);
    case HWNAS_OPERATOR_NOT:
        return reduce_not(p, expr);
    case HWNAS_OPERATOR_INDEX:
        return reduce_index(p, expr);
    default:
        break;
    }
    if (is_sum(p, expr) && reduce_sum(&out, p, expr))
        return out;
    const size_t mark = p->n_key;
    put_tag(p, 'o', op);
    const bool is_negation = op == HWNAS_OPERATOR_NEGATE;
    const range a = is_negation ? hwnas_bounds_int(0) : part(p, reduce(p, expr->args[0]));
    const range b = part(p, reduce(p, expr->args[is_negation ? 0 : 1]));
    const hwnas_operator binary = is_negation ? HWNAS_OPERATOR_SUB : op;
    hwnas_value value;
    if (a.is_error || b.is_error)
        return forget_key(p, mark, hwnas_bounds_failure());
    if (a.is_known && b.is_known)
        return forget_key(
            p, mark,
            computed(hwnas_operator_apply(&value, binary, &a.value, &b.value, &expr->place),
                     &value));
    return settled(p, mark, hwnas_bounds_operator(binary, &a, &b));
}

/* ---- Functions ---- */

/* The largest of whole numbers, or the smallest: the known ones are one number. */
static bool reduce_extreme(range *out, hwnas_partial *p, const hwnas_expr *expr, bool is_max)
{
    const size_t mark = p->n_key;
    int64_t best = is_max ? INT64_MIN : INT64_MAX;
    double low = is_max ? -INFINITY : INFINITY, high = low;
    size_t n_open = 0;
    put_tag(p, 'm', is_max);
    put(p, &best, sizeof best); /* its room */
    for (size_t i = 0; i < expr->n_args; i++) {
        const range r = reduce(p, expr->args[i]);
        if (!r.is_whole || r.may_fail || !isfinite(r.low)) {
            p->n_key = mark;
            return false;
        }
        if (r.is_known)
            best = (r.value.i > best) == is_max ? r.value.i : best;
        n_open += !r.is_known;
        low = is_max ? fmax(low, r.low) : fmin(low, r.low);
        high = is_max ? fmax(high, r.high) : fmin(high, r.high);
    }
    if (n_open == 0 || low == high) {
        *out = forget_key(p, mark, hwnas_bounds_int((int64_t)low));
        return true;
    }
    memcpy(p->key + mark + 2, &best, sizeof best);
    put_tag(p, '.', 0);
    *out = hwnas_bounds_between(low, high, true, false);
    return true;
}

/* A sum in the order in which eval.c adds, for what is not whole. */
static range reduce_ordered_sum(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_expr *list = expr->args[0];
    const size_t mark = p->n_key;
    range total = hwnas_bounds_int(0);
    put_tag(p, 'S', 0);
    for (size_t i = 0; i < list_length(p, list); i++) {
        const size_t here = p->n_key;
        const range r = reduce_item(p, list, i);
        hwnas_value value;
        if (r.is_error)
            return forget_key(p, mark, hwnas_bounds_failure());
        if (total.is_known && r.is_known) {
            p->n_key = here;
            if (hwnas_operator_apply(&value, HWNAS_OPERATOR_ADD, &total.value, &r.value,
                                     &expr->place))
                return forget_key(p, mark, hwnas_bounds_failure());
            total = hwnas_bounds_known(value);
            continue;
        }
        if (total.is_known) /* a number and a rest cannot be mixed up: the rest begins otherwise */
            put_value(p, &total.value);
        part(p, r);
        total = hwnas_bounds_operator(HWNAS_OPERATOR_ADD, &total, &r);
    }
    if (total.is_known)
        return forget_key(p, mark, total);
    put_tag(p, '.', 0);
    return total;
}

static range reduce_call(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    const bool is_max = is_call(expr, "max");
    range out = {0};
    bool is_known = true;
    if (is_sum(p, expr))
        return reduce_sum(&out, p, expr) ? out : reduce_ordered_sum(p, expr);
    if ((is_max || is_call(expr, "min")) && reduce_extreme(&out, p, expr, is_max))
        return out;
    hwnas_value *values = hwnas_arena_alloc(p->arena, (expr->n_args + 1) * sizeof *values), value;
    put_tag(p, 'c', expr->op);
    put(p, &expr->n_args, sizeof expr->n_args);
    for (size_t i = 0; i < expr->n_args; i++) {
        const range r = part(p, reduce(p, expr->args[i]));
        if (r.is_error)
            return forget_key(p, mark, hwnas_bounds_failure());
        is_known &= r.is_known;
        values[i] = r.value;
        out = r;
    }
    if (is_known)
        return forget_key(
            p, mark,
            computed(hwnas_functions[expr->op].apply(&value, values, expr->n_args, &expr->place),
                     &value));
    if (is_call(expr, "len") && is_list(p, expr->args[0]) && !out.may_fail)
        return forget_key(p, mark, hwnas_bounds_int((int64_t)list_length(p, expr->args[0])));
    return expr->n_args == 1 ? settled(p, mark, hwnas_bounds_call(expr->name, &out))
                             : hwnas_bounds_anything();
}

static range reduce(hwnas_partial *p, const hwnas_expr *expr)
{
    p->work++;
    if (is_list(p, expr))
        return reduce_list(p, expr);
    switch (expr->kind) {
    case HWNAS_EXPR_LITERAL:
        return hwnas_bounds_known(expr->value);
    case HWNAS_EXPR_VARIABLE:
        return hwnas_bounds_known(p->position);
    case HWNAS_EXPR_CHOICE:
        return reduce_gene(p, p->space->choices[expr->slot].first_gene);
    case HWNAS_EXPR_OPERATOR:
        return reduce_operator(p, expr);
    case HWNAS_EXPR_CALL:
        return reduce_call(p, expr);
    case HWNAS_EXPR_LIST:
    case HWNAS_EXPR_TENSOR: /* there is no tensor yet */
        break;
    }
    return hwnas_bounds_failure();
}

hwnas_truth hwnas_partial_truth(hwnas_partial *p, const hwnas_expr *expr, size_t position)
{
    p->position = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = (int64_t)position};
    p->n_key = 0;
    const range r = reduce(p, expr);
    const hwnas_truth truth = hwnas_bounds_decide(&r);
    if (truth != HWNAS_OPEN)
        return truth;
    /* What fails is as good as false. */
    return r.is_known || (r.is_number && r.low == 0 && r.high == 0) ? HWNAS_FALSE : HWNAS_OPEN;
}

void hwnas_partial_done(hwnas_partial *p)
{
    free(p->key);
}
