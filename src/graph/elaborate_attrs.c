/* elaborate_attrs.c: the value of an attribute, as a space gives it, against its operator's row. */
#include <stdlib.h>

#include "graph/elaborate_priv.h"

static hwnas_status check_range(const hwnas_attr_row *row, double value, const hwnas_op *op,
                                const hwnas_place *place)
{
    if (value >= row->low && value <= row->high)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place,
                                 "'%s' of '%s' must be between %.15g and %.15g, not %.15g",
                                 row->name, op->name, row->low, row->high, value),
                      "%s: %s", row->name, row->help);
}

static hwnas_status wrong_kind(const hwnas_attr_row *row, const hwnas_op *op,
                               const hwnas_value *value, const hwnas_place *place)
{
    char *text = hwnas_value_text(value);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, place, "'%s' of '%s' must be %s, not '%s'", row->name, op->name,
                   row->kind == HWNAS_ATTR_NUMBER ? "a number"
                   : row->kind == HWNAS_ATTR_BOOL ? "true or false"
                   : row->kind == HWNAS_ATTR_INTS ? "a whole number or a list of them"
                                                  : "a whole number",
                   text);
    if (value->kind == HWNAS_VALUE_REAL && row->kind != HWNAS_ATTR_BOOL)
        hwnas_hint(status,
                   "%s: %s; a fraction becomes whole by round(), floor() or ceil(), or where "
                   "// divides",
                   row->name, row->help);
    else
        hwnas_hint(status, "%s: %s", row->name, row->help);
    free(text);
    return status;
}

/* INTS: one value stands for all; half of them are mirrored ([h, w] is top, left, bottom, right).
 */
static hwnas_status set_ints(hwnas_attr *attr, const hwnas_attr_row *row, const hwnas_op *op,
                             const hwnas_value *value, const hwnas_place *place)
{
    const hwnas_value *items = value;
    int n = 1;
    if (value->kind == HWNAS_VALUE_LIST) {
        items = value->list.items;
        n = value->list.n > HWNAS_MAX_RANK ? 0 : (int)value->list.n;
    }
    if (row->count == 0 && n == 0)
        return hwnas_fail(HWNAS_E_INPUT, place, "'%s' of '%s' takes 1 to %d values", row->name,
                          op->name, HWNAS_MAX_RANK);
    if (row->count && n != 1 && n != row->count && 2 * n != row->count)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place, "'%s' of '%s' takes %s values, not %zu",
                                     row->name, op->name, row->count == 4   ? "1, 2 or 4"
                                     : row->count == 3 ? "1 or 3"
                                                       : "1 or 2",
                                     value->list.n),
                          "%s: %s", row->name, row->help);
    attr->n = row->count ? row->count : n;
    for (int i = 0; i < attr->n; i++) {
        const hwnas_value *item = &items[i % n];
        if (item->kind != HWNAS_VALUE_INT)
            return wrong_kind(row, op, item, place);
        attr->ints[i] = item->i;
        TRY(check_range(row, (double)item->i, op, place));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_elaborate_attr(hwnas_attr *attr, const hwnas_attr_row *row, const hwnas_op *op,
                                  const hwnas_value *value, const hwnas_place *place)
{
    attr->is_set = true;
    if (row->kind == HWNAS_ATTR_INTS)
        return set_ints(attr, row, op, value, place);
    if (row->kind == HWNAS_ATTR_BOOL && value->kind == HWNAS_VALUE_INT &&
        value->i != (value->i == 1))
        return wrong_kind(row, op, value, place);
    if (value->kind != HWNAS_VALUE_INT &&
        !(value->kind == HWNAS_VALUE_REAL && row->kind == HWNAS_ATTR_NUMBER))
        return wrong_kind(row, op, value, place);
    attr->n = row->kind != HWNAS_ATTR_NUMBER;
    attr->number = value->kind == HWNAS_VALUE_INT ? (double)value->i : value->r;
    attr->ints[0] = value->kind == HWNAS_VALUE_INT ? value->i : 0;
    return check_range(row, attr->number, op, place);
}
