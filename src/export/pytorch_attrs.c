/* pytorch_attrs.c: attributes of a layer, and what became of it. */
#include <string.h>

#include "export/pytorch_priv.h"
#include "space/expr.h"

const hwnas_py *hwnas_torch_keyword(hwnas_torch_scope *s, const char *name, const hwnas_py *expr)
{
    return hwnas_py_make(s->arena, HWNAS_PY_KEYWORD, name, 1, &expr);
}

static const hwnas_py *given(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        if (!strcmp(stmt->args[i].name, name))
            return hwnas_torch_convert(s, stmt->args[i].value);
    return NULL;
}

/* The items of a list, or the one value. */
static size_t items_of(const hwnas_py **items, hwnas_torch_scope *s, const hwnas_py *list)
{
    size_t n = 0;
    if (list->kind == HWNAS_PY_LIST)
        for (; n < list->n_args && n < HWNAS_MAX_RANK; n++)
            items[n] = list->args[n];
    else if (hwnas_py_is_value(list) && list->value.kind == HWNAS_VALUE_LIST)
        for (; n < list->value.list.n && n < HWNAS_MAX_RANK; n++)
            items[n] = hwnas_py_value(s->arena, list->value.list.items[n]);
    else
        items[n++] = list;
    return n;
}

size_t hwnas_torch_items(const hwnas_py **items, hwnas_torch_scope *s, const hwnas_stmt *stmt,
                         const char *name)
{
    const hwnas_py *list = given(s, stmt, name);
    return list ? items_of(items, s, list) : 0;
}

const hwnas_py *hwnas_torch_attribute(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                      const char *name)
{
    const hwnas_py *items[HWNAS_MAX_RANK], *list = given(s, stmt, name);
    if (list) { /* [3, 3] is 3 and [1, 3] is (1, 3); of four, the last two mirror the first */
        const size_t n = items_of(items, s, list), n_said = n == 4 ? 2 : n;
        size_t n_alike = 1;
        while (n_alike < n_said && hwnas_py_equal(items[0], items[n_alike]))
            n_alike++;
        return n_alike == n_said ? items[0]
                                 : hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL, n_said, items);
    }
    const hwnas_attr_row *row = hwnas_op_by_name(stmt->name)->attrs;
    while (strcmp(row->name, name))
        row++;
    if (row->kind != HWNAS_ATTR_NUMBER || row->fallback == (double)(int64_t)row->fallback)
        return hwnas_py_int(s->arena, (int64_t)row->fallback);
    return hwnas_py_value(s->arena, (hwnas_value){.kind = HWNAS_VALUE_REAL, .r = row->fallback});
}

/* Starts again with everything filled in. */
void hwnas_torch_need_values(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    s->export->needs_values = true;
    s->export->trouble = stmt;
}

int64_t hwnas_torch_known(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name)
{
    const hwnas_py *value = hwnas_torch_attribute(s, stmt, name);
    if (hwnas_py_is_value(value) && value->value.kind == HWNAS_VALUE_INT)
        return value->value.i;
    hwnas_torch_need_values(s, stmt);
    return 0;
}

hwnas_torch_observed hwnas_torch_seen(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *op)
{
    const hwnas_torch_observed *all = hwnas_export_seen(s->export, stmt);
    hwnas_torch_observed seen = all ? *all : (hwnas_torch_observed){.of = stmt};
    const hwnas_node *node = NULL;
    const hwnas_py *items[HWNAS_MAX_RANK];
    if (!s->export->is_concrete)
        return seen;
    seen = (hwnas_torch_observed){.of = stmt, .before = s->shape};
    if (!strcmp(op, "weight")) {
        seen.after.n = (int)hwnas_torch_items(items, s, stmt, "shape");
        for (int i = 0; i < seen.after.n; i++)
            seen.after.dims[i] = hwnas_py_is_value(items[i]) ? items[i]->value.i : 1;
    } else if (stmt->kind == HWNAS_STMT_JOIN
                   ? hwnas_export_take_join(s->export, &node, &seen.after, stmt)
                   : hwnas_export_take(s->export, &node, &seen.after, stmt, op)) {
        hwnas_error_clear(); /* as it was watched, it can only be ours */
        hwnas_torch_need_values(s, stmt);
    }
    if (node)
        seen.is_lopsided = hwnas_export_is_lopsided(node, node->op->class == HWNAS_CLASS_POOL);
    seen.change = hwnas_change_between(&seen.before, &seen.after);
    seen.keeps = hwnas_shape_channels(&seen.before) == hwnas_shape_channels(&seen.after);
    s->shape = seen.after;
    return seen;
}

int hwnas_torch_dimension(const hwnas_shape *shape, hwnas_torch_side side)
{
    return side == HWNAS_TORCH_CHANNELS ? 0 : shape->n - 1;
}

const hwnas_py *hwnas_torch_length(hwnas_torch_scope *s, const hwnas_torch_observed *seen,
                                   hwnas_torch_side side)
{
    int dimension = hwnas_torch_dimension(&seen->before, side);
    if (dimension == hwnas_tensor_dimension(0, seen->before.n))
        return s->in;
    if (seen->varies_before >> dimension & 1)
        hwnas_torch_need_values(s, seen->of);
    return hwnas_py_int(s->arena, seen->before.dims[dimension]);
}

/* Channels that differ from call to call: whoever reads them must be translated with values. */
const hwnas_py *hwnas_torch_unknown(hwnas_torch_scope *s)
{
    static const char *const wishes[] = {"unknown", NULL};
    if (!s->class->origin->unknown)
        s->class->origin->unknown = hwnas_torch_name(s, wishes, false);
    return hwnas_py_of(s->arena, s->class->origin->unknown);
}

bool hwnas_torch_is_unknown(const hwnas_torch_scope *s, const hwnas_py *channels)
{
    return channels->kind == HWNAS_PY_NAME && s->class->origin->unknown &&
           channels->name == s->class->origin->unknown;
}

const hwnas_py *hwnas_torch_channels(hwnas_torch_scope *s, const hwnas_torch_observed *seen)
{
    int dimension = hwnas_tensor_dimension(0, seen->after.n);
    if (seen->keeps)
        return s->in;
    if (seen->gives_entry && s->class->in_channels && !s->export->is_concrete)
        return hwnas_py_of(s->arena, s->class->in_channels);
    if (dimension < 0)
        return hwnas_py_int(s->arena, 1);
    if (seen->varies_after >> dimension & 1)
        return hwnas_torch_unknown(s);
    return hwnas_py_int(s->arena, seen->after.dims[dimension]);
}
