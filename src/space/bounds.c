/* bounds.c: arithmetic of intervals, in doubles. */
#include "space/bounds.h"

#include <math.h>
#include <string.h>

hwnas_bounds hwnas_bounds_known(hwnas_value value)
{
    hwnas_bounds r = {.is_known = true, .value = value};
    r.is_whole = value.kind == HWNAS_VALUE_INT;
    r.is_number = r.is_whole || value.kind == HWNAS_VALUE_REAL;
    r.low = r.high = r.is_whole ? (double)value.i : value.r;
    if (r.is_whole && fabs(r.low) > HWNAS_BOUNDS_EXACT) {
        r.low = -INFINITY;
        r.high = INFINITY;
    }
    return r;
}

hwnas_bounds hwnas_bounds_int(int64_t i)
{
    return hwnas_bounds_known((hwnas_value){.kind = HWNAS_VALUE_INT, .i = i});
}

hwnas_bounds hwnas_bounds_failure(void)
{
    return (hwnas_bounds){.is_known = true, .is_error = true, .may_fail = true};
}

hwnas_bounds hwnas_bounds_anything(void)
{
    return (hwnas_bounds){.may_fail = true, .low = -INFINITY, .high = INFINITY};
}

hwnas_bounds hwnas_bounds_between(double low, double high, bool is_whole, bool may_fail)
{
    hwnas_bounds r = {.is_number = true, .is_whole = is_whole, .may_fail = may_fail};
    if (!(low >= -HWNAS_BOUNDS_EXACT &&
          high <= HWNAS_BOUNDS_EXACT)) { /* it may overflow, or is not a number */
        low = -INFINITY;
        high = INFINITY;
        r.may_fail = true;
    }
    r.low = low;
    r.high = high;
    return r;
}

hwnas_bounds hwnas_bounds_truth(bool may_fail)
{
    return hwnas_bounds_between(0, 1, true, may_fail);
}

hwnas_truth hwnas_bounds_decide(const hwnas_bounds *r)
{
    if (!r->is_number || r->may_fail)
        return HWNAS_OPEN;
    if (r->is_known)
        return r->low != 0 || r->high != 0 ? HWNAS_TRUE : HWNAS_FALSE;
    if (r->low > 0 || r->high < 0)
        return HWNAS_TRUE;
    return r->low == 0 && r->high == 0 ? HWNAS_FALSE : HWNAS_OPEN;
}

static hwnas_bounds multiply(const hwnas_bounds *a, const hwnas_bounds *b, bool may_fail)
{
    const double ends[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
    double low = ends[0], high = ends[0];
    for (int i = 0; i < 4; i++) {
        if (isnan(ends[i]))
            return hwnas_bounds_between(-INFINITY, INFINITY, a->is_whole && b->is_whole, true);
        low = fmin(low, ends[i]);
        high = fmax(high, ends[i]);
    }
    return hwnas_bounds_between(low, high, a->is_whole && b->is_whole, may_fail);
}

static hwnas_bounds divide(hwnas_operator op, const hwnas_bounds *a, const hwnas_bounds *b,
                           bool may_fail)
{
    const bool is_whole = a->is_whole && b->is_whole;
    if (!(b->low > 0 || b->high < 0) || !isfinite(b->low + b->high + a->low + a->high))
        return hwnas_bounds_between(-INFINITY, INFINITY, is_whole && op != HWNAS_OPERATOR_DIV,
                                    true);
    if (op == HWNAS_OPERATOR_MOD) {
        const double most = fmax(fabs(b->low), fabs(b->high));
        if (!is_whole) /* rounding may leave a little more than the divisor */
            return hwnas_bounds_between(-2 * most, 2 * most, false, may_fail);
        if (b->low > 0 && a->low >= 0 && a->high < b->low)
            return hwnas_bounds_between(a->low, a->high, true, may_fail);
        return b->low > 0 ? hwnas_bounds_between(0, most - 1, true, may_fail)
                          : hwnas_bounds_between(1 - most, 0, true, may_fail);
    }
    const double ends[] = {a->low / b->low, a->low / b->high, a->high / b->low, a->high / b->high};
    const double low = fmin(fmin(ends[0], ends[1]), fmin(ends[2], ends[3]));
    const double high = fmax(fmax(ends[0], ends[1]), fmax(ends[2], ends[3]));
    return op == HWNAS_OPERATOR_DIV
               ? hwnas_bounds_between(low, high, false, may_fail)
               : hwnas_bounds_between(floor(low), floor(high), is_whole, may_fail);
}

static hwnas_bounds compare(hwnas_operator op, const hwnas_bounds *a, const hwnas_bounds *b,
                            bool may_fail)
{
    const bool below = a->high<b->low, above = a->low> b->high;
    const bool not_above = a->high <= b->low, not_below = a->low >= b->high;
    bool yes = false, no = false;
    switch (op) {
    case HWNAS_OPERATOR_LT:
        yes = below;
        no = not_below;
        break;
    case HWNAS_OPERATOR_LE:
        yes = not_above;
        no = above;
        break;
    case HWNAS_OPERATOR_GT:
        yes = above;
        no = not_above;
        break;
    case HWNAS_OPERATOR_GE:
        yes = not_below;
        no = below;
        break;
    default: /* == and != */
        yes = op == HWNAS_OPERATOR_EQ ? not_above && not_below : below || above;
        no = op == HWNAS_OPERATOR_EQ ? below || above : not_above && not_below;
        break;
    }
    return hwnas_bounds_between(yes, !no, true, may_fail);
}

hwnas_bounds hwnas_bounds_operator(hwnas_operator op, const hwnas_bounds *a, const hwnas_bounds *b)
{
    const bool are_numbers = a->is_number && b->is_number;
    const bool may_fail = a->may_fail || b->may_fail;
    if (op == HWNAS_OPERATOR_EQ || op == HWNAS_OPERATOR_NE)
        return are_numbers ? compare(op, a, b, may_fail) : hwnas_bounds_truth(may_fail);
    if (!are_numbers)
        return op <= HWNAS_OPERATOR_GE ? hwnas_bounds_truth(true)
                                       : hwnas_bounds_between(-INFINITY, INFINITY, false, true);
    switch (op) {
    case HWNAS_OPERATOR_ADD:
        return hwnas_bounds_between(a->low + b->low, a->high + b->high, a->is_whole && b->is_whole,
                                    may_fail);
    case HWNAS_OPERATOR_SUB:
        return hwnas_bounds_between(a->low - b->high, a->high - b->low, a->is_whole && b->is_whole,
                                    may_fail);
    case HWNAS_OPERATOR_MUL:
        return multiply(a, b, may_fail);
    case HWNAS_OPERATOR_DIV:
    case HWNAS_OPERATOR_FLOOR_DIV:
    case HWNAS_OPERATOR_MOD:
        return divide(op, a, b, may_fail);
    default:
        return compare(op, a, b, may_fail);
    }
}

hwnas_bounds hwnas_bounds_call(const char *function, const hwnas_bounds *arg)
{
    if (!arg->is_number || arg->may_fail || !isfinite(arg->low))
        return hwnas_bounds_anything();
    if (!strcmp(function, "ceil"))
        return hwnas_bounds_between(ceil(arg->low), ceil(arg->high), true, false);
    if (!strcmp(function, "floor"))
        return hwnas_bounds_between(floor(arg->low), floor(arg->high), true, false);
    if (!strcmp(function, "round"))
        return hwnas_bounds_between(rint(arg->low), rint(arg->high), true, false);
    if (!strcmp(function, "sqrt") && arg->low >= 0)
        return hwnas_bounds_between(sqrt(arg->low), sqrt(arg->high), false, false);
    return hwnas_bounds_anything();
}
