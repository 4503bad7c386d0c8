/* partial_fold.c: sums and extremes of open genes, whose known terms become one number. */
#include <math.h>
#include <string.h>

#include "space/partial_priv.h"

typedef hwnas_bounds range;

/* ---- Sums of whole numbers: the known terms are one number, in whichever order they come ---- */

typedef struct sum {
    int64_t constant;
    double low, high, magnitude;
    size_t n_open;
    bool is_error;
} sum;

bool hwnas_partial_is_call(const hwnas_expr *expr, const char *name)
{
    return expr->kind == HWNAS_EXPR_CALL && !strcmp(hwnas_functions[expr->op].name, name);
}

bool hwnas_partial_is_sum(const hwnas_partial *p, const hwnas_expr *expr)
{
    if (expr->kind == HWNAS_EXPR_OPERATOR)
        return expr->op == HWNAS_OPERATOR_ADD || expr->op == HWNAS_OPERATOR_SUB ||
               expr->op == HWNAS_OPERATOR_NEGATE;
    return hwnas_partial_is_call(expr, "sum") && hwnas_partial_is_list(p, expr->args[0]);
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
    if (!hwnas_partial_is_sum(p, expr)) {
        hwnas_partial_put_tag(p, 't', sign);
        const range r = hwnas_partial_reduce(p, expr);
        return add_term(s, p, mark, r, sign);
    }
    if (expr->kind == HWNAS_EXPR_OPERATOR) {
        const int last = expr->op == HWNAS_OPERATOR_ADD ? sign : -sign;
        return (expr->n_args < 2 || add_terms(s, p, expr->args[0], sign)) &&
               add_terms(s, p, expr->args[expr->n_args - 1], last);
    }
    for (size_t i = 0; i < hwnas_partial_list_length(p, expr->args[0]); i++) {
        const size_t start = p->n_key;
        hwnas_partial_put_tag(p, 't', sign);
        const range r = hwnas_partial_reduce_item(p, expr->args[0], i);
        if (!add_term(s, p, start, r, sign))
            return false;
    }
    return true;
}

/* false: it is not a sum of whole numbers, or may be too large; then the key is as it was. */
bool hwnas_partial_reduce_sum(range *out, hwnas_partial *p, const hwnas_expr *expr)
{
    sum s = {0};
    const size_t mark = p->n_key;
    hwnas_partial_put_tag(p, 's', 0);
    hwnas_partial_put(p, &s.constant, sizeof s.constant); /* its room */
    if (!add_terms(&s, p, expr, 1)) {
        p->n_key = mark;
        return false;
    }
    if (s.is_error || !s.n_open) {
        *out = hwnas_partial_forget(
            p, mark, s.is_error ? hwnas_bounds_failure() : hwnas_bounds_int(s.constant));
        return true;
    }
    memcpy(p->key + mark + 2, &s.constant, sizeof s.constant);
    hwnas_partial_put_tag(p, '.', 0);
    *out = hwnas_bounds_between(s.low, s.high, true, false);
    return true;
}

/* The largest of whole numbers, or the smallest: the known ones are one number. */
bool hwnas_partial_reduce_extreme(range *out, hwnas_partial *p, const hwnas_expr *expr, bool is_max)
{
    const size_t mark = p->n_key;
    int64_t best = is_max ? INT64_MIN : INT64_MAX;
    double low = is_max ? -INFINITY : INFINITY, high = low;
    size_t n_open = 0;
    hwnas_partial_put_tag(p, 'm', is_max);
    hwnas_partial_put(p, &best, sizeof best); /* its room */
    for (size_t i = 0; i < expr->n_args; i++) {
        const range r = hwnas_partial_reduce(p, expr->args[i]);
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
        *out = hwnas_partial_forget(p, mark, hwnas_bounds_int((int64_t)low));
        return true;
    }
    memcpy(p->key + mark + 2, &best, sizeof best);
    hwnas_partial_put_tag(p, '.', 0);
    *out = hwnas_bounds_between(low, high, true, false);
    return true;
}

/* A sum in the order in which eval.c adds, for what is not whole. */
range hwnas_partial_reduce_ordered_sum(hwnas_partial *p, const hwnas_expr *expr)
{
    const hwnas_expr *list = expr->args[0];
    const size_t mark = p->n_key;
    range total = hwnas_bounds_int(0);
    hwnas_partial_put_tag(p, 'S', 0);
    for (size_t i = 0; i < hwnas_partial_list_length(p, list); i++) {
        const size_t here = p->n_key;
        const range r = hwnas_partial_reduce_item(p, list, i);
        hwnas_value value;
        if (r.is_error)
            return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
        if (total.is_known && r.is_known) {
            p->n_key = here;
            if (hwnas_operator_apply(&value, HWNAS_OPERATOR_ADD, &total.value, &r.value,
                                     &expr->place))
                return hwnas_partial_forget(p, mark, hwnas_bounds_failure());
            total = hwnas_bounds_known(value);
            continue;
        }
        if (total.is_known) /* a number and a rest cannot be mixed up: the rest begins otherwise */
            hwnas_partial_put_value(p, &total.value);
        hwnas_partial_part(p, r);
        total = hwnas_bounds_operator(HWNAS_OPERATOR_ADD, &total, &r);
    }
    if (total.is_known)
        return hwnas_partial_forget(p, mark, total);
    hwnas_partial_put_tag(p, '.', 0);
    return total;
}
