/* pytorch_layers.c: operators and calls of templates as modules. */
#include <string.h>

#include "graph/op.h"
#include "report/pytorch_priv.h"

static const hwnas_py *keyword(hwnas_torch_scope *s, const char *name, const hwnas_py *expr)
{
    return hwnas_py_make(s->arena, HWNAS_PY_KEYWORD, name, 1, &expr);
}

static const hwnas_py *bare(hwnas_torch_scope *s, const char *text)
{
    hwnas_py_name *name = hwnas_arena_alloc(s->arena, sizeof *name);
    name->text = text;
    return hwnas_py_of(s->arena, name);
}

/* [3, 3] is 3 and [1, 3] is (1, 3). */
static const hwnas_py *tuple_of(hwnas_torch_scope *s, const hwnas_py *list)
{
    size_t n = 0;
    const hwnas_py *items[HWNAS_MAX_RANK];
    if (list->kind == HWNAS_PY_LIST)
        for (; n < list->n_args && n < 2; n++)
            items[n] = list->args[n];
    else if (hwnas_py_is_value(list) && list->value.kind == HWNAS_VALUE_LIST)
        for (; n < list->value.list.n && n < 2; n++)
            items[n] = hwnas_py_value(s->arena, list->value.list.items[n]);
    else
        return list;
    return n == 1 || hwnas_py_equal(items[0], items[1])
               ? items[0]
               : hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL, n, items);
}

/* The value of an attribute: as the space gives it, or the operator's default. */
static const hwnas_py *attribute(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        if (!strcmp(stmt->args[i].name, name))
            return tuple_of(s, hwnas_torch_convert(s, stmt->args[i].value));
    const hwnas_attr_row *row = hwnas_op_by_name(stmt->name)->attrs;
    while (strcmp(row->name, name))
        row++;
    if (row->kind != HWNAS_ATTR_NUMBER || row->fallback == (double)(int64_t)row->fallback)
        return hwnas_py_int(s->arena, (int64_t)row->fallback);
    return hwnas_py_value(s->arena, (hwnas_value){.kind = HWNAS_VALUE_REAL, .r = row->fallback});
}

static void translate_operator(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_torch_row *row = hwnas_torch_row_of(stmt->name);
    const hwnas_py *args[16], *out = s->in;
    const char *module = row->module;
    int64_t seen = hwnas_export_saw(s->export, stmt)->value;
    bool is_general = false;
    size_t n = 0;
    for (const hwnas_torch_argument *a = row->arguments; row->general && a->attr; a++)
        is_general |= !hwnas_py_is_number(attribute(s, stmt, a->attr), a->fallback);
    if (is_general)
        module = row->general;
    hwnas_torch_need(s->export, module);
    if (row->takes_channels)
        args[n++] = s->in;
    if (row->literal)
        args[n++] = bare(s, row->literal);
    for (const hwnas_torch_argument *a = row->arguments; a->attr; a++) {
        const hwnas_py *value = attribute(s, stmt, a->attr);
        if (row->sets_channels && !strcmp(row->sets_channels, a->attr))
            out = value;
        if (hwnas_py_is_number(value, a->fallback) && !(is_general && row->general_has_none))
            continue;
        value = a->is_truth ? hwnas_torch_truth(s, value) : value;
        args[n++] = a->keyword ? keyword(s, a->keyword, value) : value;
    }
    if (row->may_overwrite && s->is_fresh)
        args[n++] = keyword(s, "inplace", hwnas_torch_truth(s, hwnas_py_int(s->arena, 1)));
    if (row->looks_at == HWNAS_TORCH_RANK) /* "nn.BatchNorm%dd" */
        module = hwnas_arena_printf(s->arena, "%.*s%lld%s", (int)strcspn(module, "%"), module,
                                    (long long)(seen ? seen : 1), strchr(module, '%') + 2);
    if (row->looks_at == HWNAS_TORCH_RATIO && seen != 1)
        out = hwnas_torch_fold(
            s, hwnas_py_operator(s->arena, HWNAS_OP_MUL, 2,
                                 (const hwnas_py *const[]){s->in, hwnas_py_int(s->arena, seen)}));
    hwnas_torch_add_module(s, to, hwnas_py_make(s->arena, HWNAS_PY_CALL, module, n, args),
                           stmt->name, out);
    if (row->result != HWNAS_TORCH_PASSED)
        s->is_fresh = row->result == HWNAS_TORCH_FRESH;
}

/* An argument goes by position when it says itself what it is: the channels, an expression for a
 * parameter that must be given, and a variable that is called as the parameter. */
static bool goes_by_keyword(const hwnas_class *class, size_t parameter, const hwnas_py *value)
{
    if (value->kind == HWNAS_PY_NAME &&
        !strcmp(value->name->wishes[0], class->parameters[parameter]->text))
        return false;
    return class->fallbacks[parameter] || (parameter > 0 && hwnas_py_is_value(value));
}

/* The defaults of a call whose arguments are known. */
static void fill_in_defaults(hwnas_torch_scope *s, const hwnas_template *template,
                             const hwnas_py **values)
{
    hwnas_class class = {.export = s->export, .template = template};
    hwnas_torch_scope inner = {
        .export = s->export, .class = &class, .arena = s->arena, .in = s->in};
    inner.slots = hwnas_arena_alloc(s->arena, (template->n_slots + 1) * sizeof *inner.slots);
    for (size_t p = 0; p < template->n_parameters; p++) {
        if (!values[p])
            values[p] = hwnas_torch_convert(&inner, template->parameters[p].fallback);
        inner.slots[p] = values[p];
    }
}

static void translate_call(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    size_t n_parameters = stmt->call->n_parameters, n = 0;
    hwnas_py_name **names = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *names);
    const hwnas_py **values = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *values);
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *args);
    for (size_t i = 0; i < stmt->n_args; i++)
        values[stmt->args[i].slot] = hwnas_torch_convert(s, stmt->args[i].value);
    if (s->export->is_concrete)
        fill_in_defaults(s, stmt->call, values);
    hwnas_class *class = hwnas_class_of(s->export, stmt->call, s->in, values);
    if (class->is_empty)
        return;
    names[n_parameters] = class->in_channels;
    values[n_parameters] = s->in;
    memcpy(names, class->parameters, n_parameters * sizeof *names);
    for (size_t p = 0; p < n_parameters; p++) /* a default may use the parameters before it */
        if (!values[p])
            values[p] = hwnas_torch_fold(s, hwnas_py_replace(s->arena, class->fallbacks[p],
                                                             n_parameters + 1, names, values));
    if (class->in_channels->uses)
        args[n++] = s->in;
    bool by_keyword = false;
    for (int optional = 0; optional < 2; optional++)
        for (size_t p = 0; p < n_parameters; p++) {
            const hwnas_py *fallback = class->fallbacks[p];
            bool is_optional = fallback && hwnas_py_is_value(fallback);
            if (!names[p]->uses || is_optional != optional)
                continue;
            if (is_optional && hwnas_py_equal(values[p], fallback)) {
                by_keyword = true;
                continue;
            }
            const hwnas_py *value =
                hwnas_name_is_truth(names[p]) ? hwnas_torch_truth(s, values[p]) : values[p];
            by_keyword |= goes_by_keyword(class, p, values[p]);
            args[n++] = by_keyword ? keyword(s, names[p]->text, value) : value;
        }
    const hwnas_py *module = hwnas_py_make(s->arena, HWNAS_PY_CALL, class->name, n, args);
    s->is_fresh = class->is_fresh;
    if (class->out_channels) {
        hwnas_torch_add_module(
            s, to, module, stmt->name,
            hwnas_torch_fold(s, hwnas_py_replace(s->arena, class->out_channels, n_parameters + 1,
                                                 names, values)));
        return;
    }
    /* Only the module itself knows: layers[-1].out_channels. */
    const hwnas_py *last[] = {hwnas_py_of(s->arena, to->list), hwnas_py_int(s->arena, -1)};
    const hwnas_py *item = hwnas_py_operator(s->arena, HWNAS_OP_INDEX, 2, last);
    hwnas_torch_push_module(s, to, module, stmt->name);
    hwnas_torch_assign_channels(s, to,
                                hwnas_py_make(s->arena, HWNAS_PY_MEMBER, "out_channels", 1, &item));
}

void hwnas_torch_layer(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (stmt->call)
        translate_call(s, stmt, hwnas_torch_target(s, to));
    else
        translate_operator(s, stmt, hwnas_torch_target(s, to));
}
