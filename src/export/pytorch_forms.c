/* pytorch_forms.c: layers that need more than a row of pytorch_ops.c. Those that are no module of
 * PyTorch's, such as a transposition, are said in forward() where it is written line by line, and
 * are a helper's module elsewhere. */
#include <math.h>
#include <stdlib.h>

#include "export/pytorch_forms.h"

static const hwnas_py *call(hwnas_torch_scope *s, const char *text, size_t n,
                            const hwnas_py *const *args)
{
    return hwnas_py_make(s->arena, HWNAS_PY_CALL, text, n, args);
}

static const hwnas_py *integer(hwnas_torch_scope *s, int64_t value)
{
    return hwnas_py_int(s->arena, value);
}

static const hwnas_py *yes(hwnas_torch_scope *s, const hwnas_py *truth)
{
    return hwnas_torch_truth(s, truth);
}

static const hwnas_py *word(hwnas_torch_scope *s, const char *text)
{
    return hwnas_py_value(s->arena, (hwnas_value){.kind = HWNAS_VALUE_SYMBOL, .s = text});
}

static bool are_values(size_t n, const hwnas_py *const *items)
{
    for (size_t i = 0; i < n; i++)
        if (!hwnas_py_is_value(items[i]))
            return false;
    return true;
}

/* "1, 2, 3" */
static const char *list_of(hwnas_torch_scope *s, size_t n, const int64_t *values)
{
    const char *text = "";
    for (size_t i = 0; i < n; i++)
        text = hwnas_arena_printf(s->arena, "%s%s%lld", text, i ? ", " : "", (long long)values[i]);
    return text;
}

/* An axis counted from the beginning, with the batch as 0. */
static int64_t axis_of(const hwnas_torch_observed *seen, int64_t axis)
{
    return axis < 0 ? axis + seen->before.n + 1 : axis;
}

/* ---- Shapes ---- */

const hwnas_py *hwnas_torch_spell_reshape(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                          const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    const size_t n = hwnas_torch_items(items, s, stmt, "shape");
    const hwnas_change c = seen->change;
    if (c.kind == HWNAS_CHANGE_FLATTEN) {
        const hwnas_py *at = integer(s, c.at);
        return call(s, "nn.Flatten", c.at > 1, &at);
    }
    if (c.kind == HWNAS_CHANGE_UNFLATTEN) {
        const hwnas_py *args[] = {integer(s, c.at), hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL,
                                                                  (size_t)c.n, items + c.at - 1)};
        return call(s, "nn.Unflatten", 2, args);
    }
    return call(s, "Reshape", n, items);
}

hwnas_torch_form hwnas_torch_form_reshape(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                          const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    const hwnas_change c = seen->change;
    const int64_t *dims = seen->after.dims;
    hwnas_torch_form form = {.is_primary = true};
    if (c.kind == HWNAS_CHANGE_FLATTEN)
        form.text = hwnas_arena_printf(s->arena, "$0.flatten(%d)", c.at);
    else if (!are_values(hwnas_torch_items(items, s, stmt, "shape"), items) || seen->varies_after)
        return form;
    else if (c.kind == HWNAS_CHANGE_UNFLATTEN)
        form.text = hwnas_arena_printf(s->arena, "$0.unflatten(%d, (%s))", c.at,
                                       list_of(s, (size_t)c.n, dims + c.at - 1));
    else
        form.text = hwnas_arena_printf(s->arena, "$0.reshape(-1, %s)",
                                       list_of(s, (size_t)seen->after.n, dims));
    return form;
}

/* The numbers of a list, with the number of those that are none. */
static size_t numbers(int64_t *out, hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    const size_t n = hwnas_torch_items(items, s, stmt, name);
    for (size_t i = 0; i < n; i++) {
        out[i] = hwnas_py_is_value(items[i]) ? items[i]->value.i : 0;
        if (!hwnas_py_is_value(items[i]))
            (void)hwnas_torch_known(s, stmt, name);
    }
    return n;
}

const hwnas_py *hwnas_torch_spell_transpose(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                            const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    (void)seen;
    return call(s, "Permute", hwnas_torch_items(items, s, stmt, "order"), items);
}

hwnas_torch_form hwnas_torch_form_transpose(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                            const hwnas_torch_observed *seen)
{
    int64_t order[HWNAS_MAX_RANK], moved[HWNAS_MAX_RANK];
    size_t n = numbers(order, s, stmt, "order"), n_moved = 0;
    (void)seen;
    for (size_t i = 0; i < n; i++)
        if (order[i] != (int64_t)i)
            moved[n_moved++] = (int64_t)i;
    return (hwnas_torch_form){
        .text = n_moved == 2
                    ? hwnas_arena_printf(s->arena, "$0.transpose(%s)", list_of(s, 2, moved))
                    : hwnas_arena_printf(s->arena, "$0.permute(%s)", list_of(s, n, order)),
        .is_primary = true};
}

static bool is_to_the_end(const hwnas_torch_observed *seen, int64_t axis, const hwnas_py *end)
{
    return hwnas_py_is_value(end) && !seen->varies_before && axis > 0 &&
           end->value.i >= seen->before.dims[axis - 1];
}

const hwnas_py *hwnas_torch_spell_slice(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                        const hwnas_torch_observed *seen)
{
    const int64_t axis = axis_of(seen, hwnas_torch_known(s, stmt, "axis"));
    const hwnas_py *begin = hwnas_torch_attribute(s, stmt, "begin"), *args[4];
    const hwnas_py *end = hwnas_torch_attribute(s, stmt, "end");
    const hwnas_py *step = hwnas_torch_attribute(s, stmt, "step");
    size_t n = 0;
    args[n++] = integer(s, axis);
    if (!hwnas_py_is_number(begin, 0))
        args[n++] = hwnas_torch_keyword(s, "begin", begin);
    if (!is_to_the_end(seen, axis, end))
        args[n++] = hwnas_torch_keyword(s, "end", end);
    if (!hwnas_py_is_number(step, 1))
        args[n++] = hwnas_torch_keyword(s, "step", step);
    return call(s, "Slice", n, args);
}

/* x[:, 2:5] */
hwnas_torch_form hwnas_torch_form_slice(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                        const hwnas_torch_observed *seen)
{
    const hwnas_py *begin = hwnas_torch_attribute(s, stmt, "begin");
    const hwnas_py *end = hwnas_torch_attribute(s, stmt, "end");
    const hwnas_py *step = hwnas_torch_attribute(s, stmt, "step");
    const hwnas_py *all[] = {begin, end, step};
    const int64_t axis = axis_of(seen, hwnas_torch_known(s, stmt, "axis"));
    if (!are_values(3, all))
        return (hwnas_torch_form){0};
    if (!begin->value.i && is_to_the_end(seen, axis, end) && step->value.i == 1)
        return (hwnas_torch_form){"$0", true};
    const char *text = "$0[";
    for (int64_t i = 0; i < axis; i++)
        text = hwnas_arena_printf(s->arena, "%s:, ", text);
    if (begin->value.i)
        text = hwnas_arena_printf(s->arena, "%s%lld", text, (long long)begin->value.i);
    text = hwnas_arena_printf(s->arena, "%s:", text);
    if (!is_to_the_end(seen, axis, end))
        text = hwnas_arena_printf(s->arena, "%s%lld", text, (long long)end->value.i);
    if (step->value.i != 1)
        text = hwnas_arena_printf(s->arena, "%s:%lld", text, (long long)step->value.i);
    return (hwnas_torch_form){hwnas_arena_printf(s->arena, "%s]", text), true};
}

const hwnas_py *hwnas_torch_spell_mean(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                       const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK], *args[2];
    const hwnas_py *keep = hwnas_torch_attribute(s, stmt, "keep");
    const size_t n = hwnas_torch_items(items, s, stmt, "axes");
    (void)seen;
    args[0] = n == 1 ? items[0] : hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL, n, items);
    args[1] = hwnas_torch_keyword(s, "keepdim", yes(s, keep));
    return call(s, "Mean", hwnas_py_is_number(keep, 0) ? 1 : 2, args);
}

hwnas_torch_form hwnas_torch_form_mean(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                       const hwnas_torch_observed *seen)
{
    int64_t axes[HWNAS_MAX_RANK];
    const size_t n = numbers(axes, s, stmt, "axes");
    const char *keep = hwnas_torch_known(s, stmt, "keep") ? ", keepdim=True" : "";
    (void)seen;
    return (hwnas_torch_form){hwnas_arena_printf(s->arena,
                                                 n == 1 ? "$0.mean(%s%s)" : "$0.mean((%s)%s)",
                                                 list_of(s, n, axes), keep),
                              true};
}

/* PyTorch wants -1 for what stays; a shape of 1 leaves what is there. */
hwnas_torch_form hwnas_torch_form_expand(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                         const hwnas_torch_observed *seen)
{
    int64_t shape[HWNAS_MAX_RANK], dims[HWNAS_MAX_RANK];
    const size_t n = numbers(shape, s, stmt, "shape"), rank = (size_t)seen->before.n + 1;
    const size_t n_all = n > rank ? n : rank;
    for (size_t i = 0; i < n_all; i++) {
        const int64_t to = i + n < n_all ? 1 : shape[i - (n_all - n)];
        dims[i] = to == 1 && i + rank >= n_all ? -1 : to;
    }
    return (hwnas_torch_form){
        hwnas_arena_printf(s->arena, "$0.expand(%s)", list_of(s, n_all, dims)), true};
}

const hwnas_py *hwnas_torch_spell_expand(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                         const hwnas_torch_observed *seen)
{
    const hwnas_py *items[HWNAS_MAX_RANK];
    size_t n = hwnas_torch_items(items, s, stmt, "shape");
    for (size_t i = 0; i < n; i++)
        if (hwnas_py_is_number(items[i], 1) && i + (size_t)seen->before.n + 1 >= n)
            items[i] = integer(s, -1);
    return call(s, "Expand", n, items);
}

/* ---- Numbers ---- */

/* Factors are often 1 / sqrt(n), and then read better so. */
hwnas_torch_form hwnas_torch_form_scale(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                        const hwnas_torch_observed *seen)
{
    const hwnas_py *by = hwnas_torch_attribute(s, stmt, "by");
    (void)seen;
    if (!hwnas_py_is_value(by))
        return (hwnas_torch_form){0};
    const double factor = by->value.kind == HWNAS_VALUE_INT ? (double)by->value.i : by->value.r;
    const double n = round(1 / (factor * factor)), m = round(factor * factor);
    if (factor != round(factor) && n > 1 && n < 1e9 && 1 / sqrt(n) == factor)
        return (hwnas_torch_form){sqrt(n) == round(sqrt(n))
                                      ? hwnas_arena_printf(s->arena, "$0 / %.0f", sqrt(n))
                                      : hwnas_arena_printf(s->arena, "$0 / %.0f**0.5", n),
                                  false};
    if (factor != round(factor) && m > 1 && m < 1e9 && sqrt(m) == factor)
        return (hwnas_torch_form){hwnas_arena_printf(s->arena, "$0 * %.0f**0.5", m), false};
    char *text = hwnas_py_text(by);
    const hwnas_torch_form form = {hwnas_arena_printf(s->arena, "$0 * %s", text), false};
    free(text);
    return form;
}

hwnas_torch_form hwnas_torch_form_softmax(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                          const hwnas_torch_observed *seen)
{
    const int64_t axis = hwnas_torch_known(s, stmt, "axis");
    (void)seen;
    return (hwnas_torch_form){hwnas_arena_printf(s->arena, "$0.softmax(dim=%lld)", (long long)axis),
                              true};
}

hwnas_torch_form hwnas_torch_form_erf(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                      const hwnas_torch_observed *seen)
{
    (void)s, (void)stmt, (void)seen;
    return (hwnas_torch_form){"torch.erf($0)", true};
}

const hwnas_py *hwnas_torch_spell_gelu(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                       const hwnas_torch_observed *seen)
{
    const hwnas_py *tanh = hwnas_torch_keyword(s, "approximate", word(s, "tanh"));
    (void)seen;
    return call(s, "nn.GELU", hwnas_torch_known(s, stmt, "tanh") != 0, &tanh);
}

const hwnas_py *hwnas_torch_spell_group_norm(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                             const hwnas_torch_observed *seen)
{
    const hwnas_py *epsilon = hwnas_torch_attribute(s, stmt, "epsilon");
    const hwnas_py *affine = hwnas_torch_attribute(s, stmt, "affine"), *args[4];
    size_t n = 2;
    args[0] = hwnas_torch_attribute(s, stmt, "groups");
    args[1] = hwnas_torch_length(s, seen, HWNAS_TORCH_CHANNELS);
    if (!hwnas_py_is_number(epsilon, 1e-5))
        args[n++] = hwnas_torch_keyword(s, "eps", epsilon);
    if (!hwnas_py_is_number(affine, 1))
        args[n++] = hwnas_torch_keyword(s, "affine", yes(s, affine));
    return call(s, "nn.GroupNorm", n, args);
}

/* Over the last dimension, or those from `axis` on. Without a shift it is a helper's: PyTorch has
 * that only since 2.1, and RMSNorm since 2.4. */
const hwnas_py *hwnas_torch_spell_layer_norm(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                             const hwnas_torch_observed *seen)
{
    const hwnas_py *epsilon = hwnas_torch_attribute(s, stmt, "epsilon"), *args[3];
    const int64_t axis = axis_of(seen, hwnas_torch_known(s, stmt, "axis"));
    const bool is_rms = stmt->op == hwnas_ops[HWNAS_OP_RMS_NORM];
    const bool has_bias = !is_rms && hwnas_torch_known(s, stmt, "bias") != 0;
    size_t n = 1;
    args[0] = hwnas_torch_length(s, seen, HWNAS_TORCH_FEATURES);
    if (axis < seen->before.n) {
        const hwnas_py *dims[HWNAS_MAX_RANK];
        size_t n_dims = 0;
        for (int64_t i = axis; i <= seen->before.n; i++)
            dims[n_dims++] = integer(s, seen->before.dims[i - 1]);
        s->export->needs_values |= seen->varies_before != 0;
        args[0] = hwnas_py_make(s->arena, HWNAS_PY_TUPLE, NULL, n_dims, dims);
    }
    if (!hwnas_py_is_number(epsilon, 1e-5))
        args[n++] = hwnas_torch_keyword(s, "eps", epsilon);
    return call(s, is_rms ? "RMSNorm" : has_bias ? "nn.LayerNorm" : "LayerNorm", n, args);
}

const hwnas_py *hwnas_torch_spell_upsample(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                           const hwnas_torch_observed *seen)
{
    const hwnas_py *args[2];
    (void)seen;
    args[0] = hwnas_torch_keyword(s, "scale_factor", hwnas_torch_attribute(s, stmt, "by"));
    args[1] = hwnas_torch_keyword(s, "mode", word(s, "bilinear"));
    return call(s, "nn.Upsample", hwnas_torch_known(s, stmt, "linear") ? 2 : 1, args);
}

/* ---- Weights ---- */

const hwnas_py *hwnas_torch_spell_tied_linear(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                              const hwnas_torch_observed *seen)
{
    const hwnas_py *args[] = {
        hwnas_torch_length(s, seen, HWNAS_TORCH_FEATURES),
        integer(s, seen->after.dims[seen->after.n - 1]),
        hwnas_torch_keyword(s, "bias", yes(s, integer(s, 0))),
    };
    s->export->tied = stmt;
    return call(s, "nn.Linear", 3, args);
}

/* A module where it must be one; hwnas_torch_form_weight() makes it a parameter. */
const hwnas_py *hwnas_torch_spell_weight(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                         const hwnas_torch_observed *seen)
{
    const hwnas_py *args[HWNAS_MAX_RANK + 1];
    size_t n = hwnas_torch_items(args, s, stmt, "shape");
    const hwnas_py *expand = hwnas_torch_attribute(s, stmt, "expand");
    (void)seen;
    if (!hwnas_py_is_number(expand, 0))
        args[n++] = hwnas_torch_keyword(s, "expand", yes(s, expand));
    return call(s, "Weight", n, args);
}

const hwnas_py *hwnas_torch_parameter(hwnas_torch_scope *s, const hwnas_py *module)
{
    const hwnas_py *dims[HWNAS_MAX_RANK + 1] = {integer(s, 1)};
    size_t n = 1;
    for (size_t i = 0; i < module->n_args; i++)
        if (module->args[i]->kind != HWNAS_PY_KEYWORD)
            dims[n++] = module->args[i];
    const hwnas_value small = {.kind = HWNAS_VALUE_REAL, .r = 0.02};
    const hwnas_py *factors[] = {call(s, "torch.randn", n, dims), hwnas_py_value(s->arena, small)};
    const hwnas_py *values = hwnas_py_operator(s->arena, HWNAS_OPERATOR_MUL, 2, factors);
    return call(s, "nn.Parameter", 1, &values);
}

/* $0 is the parameter, $1 the current tensor. */
hwnas_torch_form hwnas_torch_form_weight(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                         const hwnas_torch_observed *seen)
{
    const char *stays = "";
    for (int i = 0; i < seen->after.n; i++)
        stays = hwnas_arena_printf(s->arena, "%s, -1", stays);
    return (hwnas_torch_form){hwnas_torch_known(s, stmt, "expand")
                                  ? hwnas_arena_printf(s->arena, "$0.expand($1.shape[0]%s)", stays)
                                  : "$0",
                              true};
}

/* LSTM(in, out, bidirectional=True, last=True, biases=1): helpers around PyTorch's. */
static const hwnas_py *spell_recurrent(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                       const hwnas_torch_observed *seen, const char *module)
{
    const hwnas_py *both = hwnas_torch_attribute(s, stmt, "bidirectional"), *args[5];
    const hwnas_py *last = hwnas_torch_attribute(s, stmt, "last");
    const hwnas_py *biases = hwnas_torch_attribute(s, stmt, "biases");
    size_t n = 0;
    args[n++] = hwnas_torch_length(s, seen, HWNAS_TORCH_FEATURES);
    args[n++] = hwnas_torch_attribute(s, stmt, "out");
    if (!hwnas_py_is_number(both, 0))
        args[n++] = hwnas_torch_keyword(s, "bidirectional", yes(s, both));
    if (!hwnas_py_is_number(last, 0))
        args[n++] = hwnas_torch_keyword(s, "last", yes(s, last));
    if (!hwnas_py_is_number(biases, 2))
        args[n++] = hwnas_torch_keyword(s, "biases", biases);
    return call(s, module, n, args);
}

const hwnas_py *hwnas_torch_spell_lstm(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                       const hwnas_torch_observed *seen)
{
    return spell_recurrent(s, stmt, seen, "LSTM");
}

const hwnas_py *hwnas_torch_spell_gru(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                      const hwnas_torch_observed *seen)
{
    return spell_recurrent(s, stmt, seen, "GRU");
}
