#include "space/partial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "space/partial_priv.h"

typedef hwnas_bounds range;

/* ---- The key ---- */

void hwnas_partial_put(hwnas_partial *p, const void *bytes, size_t n)
{
    if (p->n_key + n > p->key_capacity) {
        p->key_capacity = 2 * (p->n_key + n);
        p->key = hwnas_realloc(p->key, p->key_capacity);
    }
    memcpy(p->key + p->n_key, bytes, n);
    p->n_key += n;
}

void hwnas_partial_put_tag(hwnas_partial *p, char tag, int op)
{
    const char bytes[] = {tag, (char)op};
    hwnas_partial_put(p, bytes, sizeof bytes);
}

void hwnas_partial_put_value(hwnas_partial *p, const hwnas_value *value)
{
    hwnas_partial_put_tag(p, 'k', (int)value->kind);
    if (value->kind == HWNAS_VALUE_SYMBOL) {
        hwnas_partial_put(p, value->s, strlen(value->s) + 1);
    } else if (value->kind == HWNAS_VALUE_LIST) {
        hwnas_partial_put(p, &value->list.n, sizeof value->list.n);
        for (size_t i = 0; i < value->list.n; i++)
            hwnas_partial_put_value(p, &value->list.items[i]);
    } else {
        hwnas_partial_put(p, &value->i, sizeof value->i);
    }
}

static range computed(hwnas_status status, const hwnas_value *value)
{
    return status == HWNAS_OK ? hwnas_bounds_known(*value) : hwnas_bounds_failure();
}

/* ---- Reduction ---- */

range hwnas_partial_forget(hwnas_partial *p, size_t mark, range r)
{
    p->n_key = mark;
    return r;
}

/* A part of a longer key: the value stands in it when it is known. */
range hwnas_partial_part(hwnas_partial *p, range r)
{
    if (r.is_known && r.is_error)
        hwnas_partial_put_tag(p, 'e', 0);
    else if (r.is_known)
        hwnas_partial_put_value(p, &r.value);
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
    hwnas_partial_put_tag(p, 'g', 0);
    hwnas_partial_put(p, &g, sizeof g);
    p->work += gene->n_values / 8;
    return all;
}

/* A list is a choice of several positions, or is written as one. */
bool hwnas_partial_is_list(const hwnas_partial *p, const hwnas_expr *expr)
{
    return expr->kind == HWNAS_EXPR_LIST ||
           (expr->kind == HWNAS_EXPR_CHOICE && p->space->choices[expr->slot].is_vector);
}

size_t hwnas_partial_list_length(const hwnas_partial *p, const hwnas_expr *list)
{
    return list->kind == HWNAS_EXPR_LIST ? list->n_args : p->space->choices[list->slot].n_positions;
}

range hwnas_partial_reduce_item(hwnas_partial *p, const hwnas_expr *list, size_t i)
{
    p->work++;
    return list->kind == HWNAS_EXPR_LIST
               ? hwnas_partial_reduce(p, list->args[i])
               : reduce_gene(p, p->space->choices[list->slot].first_gene + i);
}

static range reduce_list(hwnas_partial *p, const hwnas_expr *list)
{
    const size_t n = hwnas_partial_list_length(p, list), mark = p->n_key;
    hwnas_value *items = hwnas_arena_alloc(p->arena, (n + 1) * sizeof *items);
    bool is_known = true, may_fail = false;
    hwnas_partial_put_tag(p, 'l', 0);
    hwnas_partial_put(p, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        const range r = hwnas_partial_part(p, hwnas_partial_reduce_item(p, list, i));
        if (r.is_error)
            return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
        is_known &= r.is_known;
        may_fail |= r.may_fail;
        items[i] = r.value;
    }
    if (is_known)
        return hwnas_partial_forget(
            p, mark,
            hwnas_bounds_known((hwnas_value){.kind = HWNAS_VALUE_LIST, .list = {items, n}}));
    range out = hwnas_bounds_anything();
    out.may_fail = may_fail;
    return out;
}

/* ---- Operators ---- */

/* What the bounds decide is known, unless it may fail. */
static range settled(hwnas_partial *p, size_t mark, range r)
{
    if (!r.is_known && r.is_whole && !r.may_fail && r.low == r.high)
        return hwnas_partial_forget(p, mark, hwnas_bounds_int((int64_t)r.low));
    return r;
}

static range reduce_and_or(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_truth deciding = expr->op == HWNAS_OPERATOR_OR ? HWNAS_TRUE : HWNAS_FALSE;
    const size_t mark = p->n_key;
    hwnas_partial_put_tag(p, 'o', expr->op);
    const range a = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[0]));
    const hwnas_truth first = hwnas_bounds_decide(&a);
    if (a.is_known && first == HWNAS_OPEN)
        return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
    if (first == deciding)
        return hwnas_partial_forget(p, mark, hwnas_bounds_int(deciding));
    if (first != HWNAS_OPEN) { /* the other decides */
        p->n_key = mark;
        hwnas_partial_put_tag(p, 'b', 0);
    }
    const range b = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[1]));
    const hwnas_truth second = hwnas_bounds_decide(&b);
    const bool may_fail = a.may_fail || !a.is_number || b.may_fail || !b.is_number;
    if (first != HWNAS_OPEN) {
        if (b.is_known && second == HWNAS_OPEN)
            return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
        return second == HWNAS_OPEN ? hwnas_bounds_truth(b.may_fail || !b.is_number)
                                    : hwnas_partial_forget(p, mark, hwnas_bounds_int(second));
    }
    if (second == deciding && !a.may_fail && a.is_number)
        return hwnas_partial_forget(p, mark, hwnas_bounds_int(deciding));
    return hwnas_bounds_truth(may_fail);
}

static range reduce_not(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    hwnas_partial_put_tag(p, 'o', expr->op);
    const range a = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[0]));
    const hwnas_truth truth = hwnas_bounds_decide(&a);
    if (truth != HWNAS_OPEN)
        return hwnas_partial_forget(p, mark, hwnas_bounds_int(truth == HWNAS_FALSE));
    return a.is_known ? hwnas_partial_forget(p, mark, hwnas_bounds_failure())
                      : hwnas_bounds_truth(a.may_fail || !a.is_number);
}

static range reduce_if(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    hwnas_partial_put_tag(p, 'o', expr->op);
    const range condition = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[0]));
    const hwnas_truth truth = hwnas_bounds_decide(&condition);
    if (truth != HWNAS_OPEN) {
        p->n_key = mark;
        return hwnas_partial_reduce(p, expr->args[truth == HWNAS_TRUE ? 1 : 2]);
    }
    if (condition.is_known)
        return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
    const range a = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[1])),
                b = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[2]));
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
    const size_t n = hwnas_partial_list_length(p, list);
    range all = {0};
    bool may_fail =
        !index->is_whole || index->may_fail || index->low < 0 || index->high > (double)n - 1;
    for (size_t i = 0; i < n; i++) {
        const range r = hwnas_partial_part(p, hwnas_partial_reduce_item(p, list, i));
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
    hwnas_partial_put_tag(p, 'o', expr->op);
    if (list->kind == HWNAS_EXPR_CHOICE && hwnas_partial_is_list(p, list)) {
        const range index = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[1]));
        if (!index.is_known)
            return reduce_open_index(p, list, &index);
        p->n_key = mark;
        if (index.is_error || !index.is_whole || index.value.i < 0 ||
            (uint64_t)index.value.i >= hwnas_partial_list_length(p, list))
            return hwnas_bounds_failure();
        return hwnas_partial_reduce_item(p, list, (size_t)index.value.i);
    }
    hwnas_value value;
    const range base = hwnas_partial_part(p, hwnas_partial_reduce(p, list)),
                index = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[1]));
    if (base.is_error || index.is_error)
        return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
    if (base.is_known && index.is_known)
        return hwnas_partial_forget(
            p, mark,
            computed(hwnas_operator_apply(&value, HWNAS_OPERATOR_INDEX, &base.value, &index.value,
                                          &expr->place),
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
    if (hwnas_partial_is_sum(p, expr) && hwnas_partial_reduce_sum(&out, p, expr))
        return out;
    const size_t mark = p->n_key;
    hwnas_partial_put_tag(p, 'o', op);
    const bool is_negation = op == HWNAS_OPERATOR_NEGATE;
    const range a = is_negation ? hwnas_bounds_int(0)
                                : hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[0]));
    const range b = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[is_negation ? 0 : 1]));
    const hwnas_operator binary = is_negation ? HWNAS_OPERATOR_SUB : op;
    hwnas_value value;
    if (a.is_error || b.is_error)
        return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
    if (a.is_known && b.is_known)
        return hwnas_partial_forget(
            p, mark,
            computed(hwnas_operator_apply(&value, binary, &a.value, &b.value, &expr->place),
                     &value));
    return settled(p, mark, hwnas_bounds_operator(binary, &a, &b));
}

/* ---- Functions ---- */

static range reduce_call(hwnas_partial *p, const hwnas_expr *expr)
{
    const size_t mark = p->n_key;
    const bool is_max = hwnas_partial_is_call(expr, "max");
    range out = {0};
    bool is_known = true;
    if (hwnas_partial_is_sum(p, expr))
        return hwnas_partial_reduce_sum(&out, p, expr) ? out
                                                       : hwnas_partial_reduce_ordered_sum(p, expr);
    if ((is_max || hwnas_partial_is_call(expr, "min")) &&
        hwnas_partial_reduce_extreme(&out, p, expr, is_max))
        return out;
    hwnas_value *values = hwnas_arena_alloc(p->arena, (expr->n_args + 1) * sizeof *values), value;
    hwnas_partial_put_tag(p, 'c', expr->op);
    hwnas_partial_put(p, &expr->n_args, sizeof expr->n_args);
    for (size_t i = 0; i < expr->n_args; i++) {
        const range r = hwnas_partial_part(p, hwnas_partial_reduce(p, expr->args[i]));
        if (r.is_error)
            return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
        is_known &= r.is_known;
        values[i] = r.value;
        out = r;
    }
    if (is_known)
        return hwnas_partial_forget(
            p, mark,
            computed(hwnas_functions[expr->op].apply(&value, values, expr->n_args, &expr->place),
                     &value));
    if (hwnas_partial_is_call(expr, "len") && hwnas_partial_is_list(p, expr->args[0]) &&
        !out.may_fail)
        return hwnas_partial_forget(
            p, mark, hwnas_bounds_int((int64_t)hwnas_partial_list_length(p, expr->args[0])));
    return expr->n_args == 1 ? settled(p, mark, hwnas_bounds_call(expr->name, &out))
                             : hwnas_bounds_anything();
}

range hwnas_partial_reduce(hwnas_partial *p, const hwnas_expr *expr)
{
    p->work++;
    if (hwnas_partial_is_list(p, expr))
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
    const range r = hwnas_partial_reduce(p, expr);
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
