/* pytorch_layers.c: operators and calls of templates as modules. */
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"
#include "space/expr.h"

static const hwnas_py *bare(hwnas_torch_scope *s, const char *text)
{
    hwnas_py_name *name = hwnas_arena_alloc(s->arena, sizeof *name);
    name->text = text;
    return hwnas_py_of(s->arena, name);
}

/* Of a reshaping, as it says itself. */
static const hwnas_py *channels_of_shape(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                         const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    const int n = (int)hwnas_torch_items(items, s, stmt, "shape");
    const int dimension = hwnas_tensor_dimension(0, seen->after.n);
    if (n != seen->after.n || hwnas_py_is_number(items[dimension], -1))
        return hwnas_torch_unknown(s);
    return items[dimension];
}

/* Channels after a layer. */
static const hwnas_py *channels_after(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                      const hwnas_torch_row *row, const hwnas_torch_observed *seen)
{
    if (row->sets_channels && hwnas_torch_dimension(&seen->after, row->takes) ==
                                  hwnas_tensor_dimension(0, seen->after.n)) {
        const hwnas_py *out = hwnas_torch_attribute(s, stmt, row->sets_channels);
        if (!row->doubles_channels || !hwnas_torch_known(s, stmt, row->doubles_channels))
            return out;
        const hwnas_py *factors[] = {out, hwnas_py_int(s->arena, 2)};
        return hwnas_torch_fold(s, hwnas_py_operator(s->arena, HWNAS_OPERATOR_MUL, 2, factors));
    }
    if (row->looks_at != HWNAS_TORCH_RATIO || s->export->is_concrete) {
        const hwnas_py *channels = hwnas_torch_channels(s, seen);
        return hwnas_torch_is_unknown(s, channels) && !strcmp(stmt->name, "reshape")
                   ? channels_of_shape(s, stmt, seen)
                   : channels;
    }
    int64_t ratio = hwnas_export_saw(s->export, stmt)->value;
    const hwnas_py *factors[] = {s->in, hwnas_py_int(s->arena, ratio)};
    return ratio == 1
               ? s->in
               : hwnas_torch_fold(s, hwnas_py_operator(s->arena, HWNAS_OPERATOR_MUL, 2, factors));
}

/* A layer that pads left, right, top and bottom, where the next cannot. */
static void push_padding(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_torch_row *row,
                         hwnas_sequence *to)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    size_t n = hwnas_torch_items(items, s, stmt, "pad"); /* top, left, bottom, right */
    const hwnas_py *sides[] = {items[1 % n], items[3 % n], items[0], items[2 % n]};
    const hwnas_py *args[] = {hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL, 4, sides), NULL};
    size_t n_args = 1;
    if (n == 1)
        args[0] = items[0];
    if (row->pads_with)
        args[n_args++] = bare(s, row->pads_with);
    const char *module = row->pads_with ? "nn.ConstantPad2d" : "nn.ZeroPad2d";
    hwnas_torch_push_module(s, to, hwnas_py_make(s->arena, HWNAS_PY_CALL, module, n_args, args),
                            "pad");
}

static const hwnas_py *spell(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                             const hwnas_torch_row *row, const hwnas_torch_observed *seen)
{
    const hwnas_py *args[16];
    const char *module = row->module;
    bool is_general = false;
    size_t n = 0;
    for (const hwnas_torch_argument *a = row->arguments; row->general && a->attr; a++)
        is_general |= !hwnas_py_is_number(hwnas_torch_attribute(s, stmt, a->attr), a->fallback);
    if (is_general)
        module = row->general;
    /* Of a sequence batch_norm normalises the features, PyTorch's the dimension behind the batch.
     */
    const bool is_by_rank = row->looks_at == HWNAS_TORCH_RANK;
    const bool is_sequence = is_by_rank && seen->after.n == 2;
    if (row->takes)
        args[n++] = hwnas_torch_length(s, seen, is_sequence ? HWNAS_TORCH_FEATURES : row->takes);
    if (row->literal)
        args[n++] = bare(s, row->literal);
    for (const hwnas_torch_argument *a = row->arguments; a->attr; a++) {
        const hwnas_py *value = hwnas_torch_attribute(s, stmt, a->attr);
        if (seen->is_lopsided && !strcmp(a->attr, "pad"))
            continue;
        if (hwnas_py_is_number(value, a->fallback) && !(is_general && row->general_has_none))
            continue;
        value = a->is_truth ? hwnas_torch_truth(s, value) : value;
        args[n++] = a->keyword ? hwnas_torch_keyword(s, a->keyword, value) : value;
    }
    if (row->may_overwrite && s->is_fresh)
        args[n++] =
            hwnas_torch_keyword(s, "inplace", hwnas_torch_truth(s, hwnas_py_int(s->arena, 1)));
    if (is_sequence)
        module = "BatchNorm1d";
    else if (is_by_rank) /* "nn.BatchNorm%dd" */
        module =
            hwnas_arena_printf(s->arena, "%.*s%d%s", (int)strcspn(module, "%"), module,
                               seen->after.n > 2 ? seen->after.n - 1 : 1, strchr(module, '%') + 2);
    return hwnas_py_make(s->arena, HWNAS_PY_CALL, module, n, args);
}

static void set_freshness(hwnas_torch_scope *s, const hwnas_torch_row *row)
{
    if (row->result != HWNAS_TORCH_PASSED)
        s->is_fresh = row->result == HWNAS_TORCH_FRESH;
}

static void translate_operator(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_torch_row *row = hwnas_torch_row_of(stmt->name);
    const hwnas_shape before = s->shape;
    const hwnas_torch_observed seen = hwnas_torch_seen(s, stmt, stmt->name);
    const hwnas_shape after = s->shape;
    s->shape = before; /* which the arguments may look at */
    const hwnas_py *out = channels_after(s, stmt, row, &seen);
    if (!to && s->class->has_lines && row->form) {
        const hwnas_torch_form form = row->form(s, stmt, &seen);
        if (form.text) {
            if (!strcmp(stmt->name, "weight"))
                hwnas_wire_weight(s, row->spell(s, stmt, &seen), form);
            else
                hwnas_wire_form(s, form);
            s->in = out;
            s->shape = after;
            set_freshness(s, row);
            return;
        }
    }
    to = hwnas_torch_target(s, to);
    if (seen.is_lopsided)
        push_padding(s, stmt, row, to);
    const hwnas_py *module = row->spell ? row->spell(s, stmt, &seen) : spell(s, stmt, row, &seen);
    s->shape = after;
    hwnas_torch_file_need(&s->export->module, module->text);
    hwnas_torch_add_module(s, to, module, stmt->name, out);
    set_freshness(s, row);
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
    hwnas_origin origin = {.export = s->export, .template = template};
    hwnas_class class = {.origin = &origin, .module = &s->export->module};
    hwnas_torch_scope inner = {
        .export = s->export, .class = &class, .arena = s->arena, .in = s->in, .shape = s->shape};
    inner.slots = hwnas_arena_alloc(s->arena, (template->n_slots + 1) * sizeof *inner.slots);
    for (size_t p = 0; p < template->n_parameters; p++) {
        if (!values[p])
            values[p] = hwnas_torch_convert(&inner, template->parameters[p].fallback);
        inner.slots[p] = values[p];
    }
}

/* The rest of a call whose forward() takes or gives more than x: only forward() can call it. */
static void call_in_forward(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_class *class,
                            hwnas_py_name *const *names, const hwnas_py *const *values,
                            bool is_nested)
{
    if (!class->origin->n_ports && !class->origin->n_results)
        return;
    if (is_nested || !s->class->has_lines)
        hwnas_torch_need_values(s, stmt);
    else
        hwnas_wire_call(s, class, names, values);
}

static void translate_call(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    bool is_nested = to != NULL;
    size_t n_parameters = stmt->call->n_parameters, n = 0;
    hwnas_py_name **names = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *names);
    const hwnas_py **values = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *values);
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (n_parameters + 1) * sizeof *args);
    for (size_t i = 0; i < stmt->n_args; i++)
        values[stmt->args[i].slot] = hwnas_torch_convert(s, stmt->args[i].value);
    if (s->export->is_concrete)
        fill_in_defaults(s, stmt->call, values);
    hwnas_class *class = s->export->call(s->export, stmt->call, s->in, &s->shape, values);
    s->shape = class->origin->shape;
    if (class->is_empty)
        return;
    if (!to && s->class->has_lines && (class->origin->n_ports || class->origin->n_results))
        hwnas_wire_close(s);
    to = hwnas_torch_target(s, to);
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
            args[n++] = by_keyword ? hwnas_torch_keyword(s, names[p]->text, value) : value;
        }
    hwnas_py *module = hwnas_py_make(s->arena, HWNAS_PY_CALL, NULL, n, args);
    module->name = class->callee;
    s->is_fresh = class->origin->is_fresh;
    if (class->origin->gives_unknown) {
        hwnas_torch_push_module(s, to, module, stmt->name);
        s->in = hwnas_torch_unknown(s);
        call_in_forward(s, stmt, class, names, values, is_nested);
        return;
    }
    if (class->origin->out_channels) {
        hwnas_torch_add_module(
            s, to, module, stmt->name,
            hwnas_torch_fold(s, hwnas_py_replace(s->arena, class->origin->out_channels,
                                                 n_parameters + 1, names, values)));
        call_in_forward(s, stmt, class, names, values, is_nested);
        return;
    }
    /* Only the module itself knows: layers[-1].out_channels. */
    const hwnas_py *last[] = {hwnas_py_of(s->arena, to->list), hwnas_py_int(s->arena, -1)};
    const hwnas_py *item = hwnas_py_operator(s->arena, HWNAS_OPERATOR_INDEX, 2, last);
    hwnas_torch_push_module(s, to, module, stmt->name);
    hwnas_torch_assign_channels(s, to,
                                hwnas_py_make(s->arena, HWNAS_PY_MEMBER, "out_channels", 1, &item));
    call_in_forward(s, stmt, class, names, values, is_nested);
}

void hwnas_torch_layer(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (stmt->call)
        translate_call(s, stmt, to);
    else
        translate_operator(s, stmt, to);
}
