/* pytorch_translate.c: templates as classes, statements as steps.
 *
 * The one thing that the space's language knows and Python does not is the number of channels at
 * each place, `in`. It is followed symbolically, and where two ways meet that disagree about it, a
 * variable keeps it as hand-written models do. */
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"

static const char *const list_wishes[] = {"layers", "modules", "blocks", NULL};
static const char *const branch_wishes[] = {"body", "branch", "inner", NULL};
static const char *const channel_wishes[] = {"channels", "width", "features", NULL};
static const char *const hidden_wishes[] = {"hidden", "hidden_channels", "inner_channels", NULL};
static const char *const entry_wishes[] = {"entry_channels", "block_in", NULL};
static const char *const joined_wishes[] = {"joined", "joined_channels", NULL};
static const char *const table_wishes[] = {"stages", "settings", "rows", NULL};

/* What PyTorch calls them. */
static const struct {
    const char *space, *python;
} parameter_names[] = {
    {"out", "out_channels"},
    {"kernel", "kernel_size"},
    {"pad", "padding"},
};

/* ---- Names and steps ---- */

void *hwnas_torch_grown(hwnas_arena *arena, void *array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 8;
    void *larger = hwnas_arena_alloc(arena, *capacity * size);
    if (n)
        memcpy(larger, array, n * size);
    return larger;
}

static hwnas_py_name *new_name(hwnas_torch_scope *s, const char *const *wishes, bool is_own)
{
    hwnas_class *class = s->class;
    hwnas_py_name *name = hwnas_arena_alloc(s->arena, sizeof *name);
    *name = (hwnas_py_name){.wishes = wishes, .is_own = is_own};
    class->names = hwnas_torch_grown(s->arena, class->names, class->n_names, &class->name_capacity,
                                     sizeof name);
    class->names[class->n_names++] = name;
    return name;
}

/* A name that the space gave, perhaps with a spelling that is better in Python. */
static hwnas_py_name *given_name(hwnas_torch_scope *s, const char *better, const char *text)
{
    const char **wishes = hwnas_arena_alloc(s->arena, 3 * sizeof *wishes);
    size_t n = 0;
    if (better)
        wishes[n++] = better;
    wishes[n] = text;
    return new_name(s, wishes, false);
}

static void push(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_step step)
{
    to->steps = hwnas_torch_grown(s->arena, to->steps, to->n, &to->capacity, sizeof step);
    to->steps[to->n++] = step;
}

static void push_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                        const char *label)
{
    push(s, to, (hwnas_step){.kind = HWNAS_STEP_MODULE, .expr = module, .label = label});
}

static void assign(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_py_name *name,
                   const hwnas_py *value)
{
    push(s, to, (hwnas_step){.kind = HWNAS_STEP_ASSIGN, .name = name, .expr = value});
}

static hwnas_arm *new_arms(hwnas_torch_scope *s, size_t n, hwnas_py_name *list)
{
    hwnas_arm *arms = hwnas_arena_alloc(s->arena, n * sizeof *arms);
    for (size_t i = 0; i < n; i++)
        arms[i].sequence.list = list;
    return arms;
}

hwnas_part *hwnas_torch_part(hwnas_torch_scope *s, hwnas_part_kind kind, size_t n_branches)
{
    hwnas_class *class = s->class;
    hwnas_part *part = hwnas_arena_alloc(s->arena, sizeof *part);
    part->kind = kind;
    part->n_branches = n_branches;
    part->branches = hwnas_arena_alloc(s->arena, n_branches * sizeof *part->branches);
    part->attributes = hwnas_arena_alloc(s->arena, n_branches * sizeof *part->attributes);
    for (size_t i = 0; i < n_branches; i++)
        part->branches[i].list = s->list;
    class->parts = hwnas_torch_grown(s->arena, class->parts, class->n_parts, &class->part_capacity,
                                     sizeof part);
    class->parts[class->n_parts++] = part;
    return part;
}

/* Where the next layers go: `to`, or at the top of a template its last part without branches. */
static hwnas_sequence *target(hwnas_torch_scope *s, hwnas_sequence *to)
{
    hwnas_class *class = s->class;
    if (to)
        return to;
    if (class->has_lines)
        return hwnas_wire_target(s);
    if (!class->n_parts || class->parts[class->n_parts - 1]->kind != HWNAS_PART_PLAIN)
        return &hwnas_torch_part(s, HWNAS_PART_PLAIN, 1)->branches[0];
    return &class->parts[class->n_parts - 1]->branches[0];
}

static const hwnas_py **enter(hwnas_torch_scope *s)
{
    const hwnas_py **outer = s->slots;
    s->slots = hwnas_arena_copy(s->arena, outer, (s->class->template->n_slots + 1) * sizeof *outer);
    return outer;
}

/* ---- Channels ---- */

static bool is_running(const hwnas_torch_scope *s, const hwnas_py *expr)
{
    return expr->kind == HWNAS_PY_NAME && expr->name == s->channels;
}

static void assign_channels(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *value)
{
    assign(s, to, s->channels, value);
    s->n_assigned++;
    s->in = hwnas_py_of(s->arena, s->channels);
}

/* Is the name read or assigned in the steps from `begin` on? */
static bool mentions(const hwnas_sequence *sequence, size_t begin, const hwnas_py_name *name)
{
    for (size_t i = begin; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->name == name || (step->expr && hwnas_py_mentions(step->expr, name)))
            return true;
        for (size_t t = 0; t < step->n_targets; t++)
            if (hwnas_py_mentions(step->iterables[t], name))
                return true;
        for (size_t a = 0; a < step->n_arms; a++)
            if ((step->arms[a].condition && hwnas_py_mentions(step->arms[a].condition, name)) ||
                mentions(&step->arms[a].sequence, 0, name))
                return true;
    }
    return false;
}

/* Makes a variable of ours that holds the channels at the end of an arm the running variable
 * itself: `channels = in_channels * 4` instead of `hidden = in_channels * 4; channels = hidden`. */
static bool rename_to_running(hwnas_torch_scope *s, hwnas_sequence *arm, hwnas_py_name *name)
{
    if (!name->is_own || !name->meaning || name->same)
        return false;
    size_t at = 0;
    while (at < arm->n &&
           !(arm->steps[at].kind == HWNAS_STEP_ASSIGN && arm->steps[at].name == name))
        at++;
    if (at == arm->n || mentions(arm, at, s->channels))
        return false;
    name->same = s->channels;
    s->n_assigned++;
    return true;
}

/* At the end of an arm or loop: puts the channels into the running variable. */
static void settle_channels(hwnas_torch_scope *s, hwnas_sequence *arm)
{
    if (is_running(s, s->in))
        return;
    if (s->in->kind == HWNAS_PY_NAME && rename_to_running(s, arm, s->in->name))
        s->in = hwnas_py_of(s->arena, s->channels);
    else
        assign_channels(s, arm, s->in);
}

/* Appends a module whose result has `out` channels. A formula for them is computed once. */
static void add_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                       const char *label, const hwnas_py *out)
{
    if (hwnas_py_equal(out, s->in) || hwnas_py_is_plain(out)) {
        push_module(s, to, module, label);
        s->in = out;
    } else if (hwnas_py_mentions(out, s->channels)) {
        push_module(s, to, module, label);
        assign_channels(s, to, out);
    } else {
        hwnas_py_name *hidden = new_name(s, hidden_wishes, true);
        hidden->meaning = out;
        s->in = hwnas_py_of(s->arena, hidden);
        assign(s, to, hidden, out);
        push_module(s, to, hwnas_torch_swap(s, module, out, s->in), label);
    }
}

/* ---- Layers ---- */

static const hwnas_py *truth(hwnas_torch_scope *s, const hwnas_py *expr)
{
    return hwnas_py_make(s->arena, HWNAS_PY_TRUTH, NULL, 1, &expr);
}

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
        value = a->is_truth ? truth(s, value) : value;
        args[n++] = a->keyword ? keyword(s, a->keyword, value) : value;
    }
    if (row->may_overwrite && s->is_fresh)
        args[n++] = keyword(s, "inplace", truth(s, hwnas_py_int(s->arena, 1)));
    if (row->looks_at == HWNAS_TORCH_RANK) /* "nn.BatchNorm%dd" */
        module = hwnas_arena_printf(s->arena, "%.*s%lld%s", (int)strcspn(module, "%"), module,
                                    (long long)(seen ? seen : 1), strchr(module, '%') + 2);
    if (row->looks_at == HWNAS_TORCH_RATIO && seen != 1)
        out = hwnas_torch_fold(
            s, hwnas_py_operator(s->arena, HWNAS_OP_MUL, 2,
                                 (const hwnas_py *const[]){s->in, hwnas_py_int(s->arena, seen)}));
    add_module(s, to, hwnas_py_make(s->arena, HWNAS_PY_CALL, module, n, args), stmt->name, out);
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
            const hwnas_py *value = hwnas_name_is_truth(names[p]) ? truth(s, values[p]) : values[p];
            by_keyword |= goes_by_keyword(class, p, values[p]);
            args[n++] = by_keyword ? keyword(s, names[p]->text, value) : value;
        }
    const hwnas_py *module = hwnas_py_make(s->arena, HWNAS_PY_CALL, class->name, n, args);
    s->is_fresh = class->is_fresh;
    if (class->out_channels) {
        add_module(s, to, module, stmt->name,
                   hwnas_torch_fold(s, hwnas_py_replace(s->arena, class->out_channels,
                                                        n_parameters + 1, names, values)));
        return;
    }
    /* Only the module itself knows: layers[-1].out_channels. */
    const hwnas_py *last[] = {hwnas_py_of(s->arena, to->list), hwnas_py_int(s->arena, -1)};
    const hwnas_py *item = hwnas_py_operator(s->arena, HWNAS_OP_INDEX, 2, last);
    push_module(s, to, module, stmt->name);
    assign_channels(s, to, hwnas_py_make(s->arena, HWNAS_PY_MEMBER, "out_channels", 1, &item));
}

/* ---- Statements ---- */

static void translate_layer(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (stmt->call)
        translate_call(s, stmt, target(s, to));
    else
        translate_operator(s, stmt, target(s, to));
}

/* The modules of a sequence as arguments: in place when they just follow each other, else as a list
 * that is made before. */
static const hwnas_py *gather(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_sequence *from,
                              const char *callee)
{
    const hwnas_py **args = hwnas_arena_alloc(s->arena, (from->n + 1) * sizeof *args);
    size_t n = 0;
    if (hwnas_sequence_is_straight(from)) {
        for (size_t i = 0; i < from->n; i++)
            if (from->steps[i].kind == HWNAS_STEP_ASSIGN)
                push(s, to, from->steps[i]);
            else
                args[n++] = from->steps[i].expr;
        if (n == 1 && !strcmp(callee, "nn.Sequential"))
            return args[0];
    } else {
        hwnas_arm *arm = new_arms(s, 1, from->list);
        const hwnas_py *list = hwnas_py_of(s->arena, from->list);
        arm->sequence = *from;
        push(s, to,
             (hwnas_step){.kind = HWNAS_STEP_LIST, .name = from->list, .n_arms = 1, .arms = arm});
        args[n++] = hwnas_py_make(s->arena, HWNAS_PY_SPREAD, NULL, 1, &list);
    }
    if (!n && !strcmp(callee, "nn.Sequential"))
        callee = "nn.Identity";
    hwnas_py *call = hwnas_py_make(s->arena, HWNAS_PY_CALL, callee, n, args);
    call->is_tall = n > 1;
    return call;
}

static void translate_branch(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to)
{
    s->is_fresh = false; /* the other branches need it too */
    hwnas_torch_body(s, body, to);
}

static void nest_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_py *when,
                          hwnas_sequence *to)
{
    hwnas_sequence body = {.list = new_name(s, branch_wishes, true)};
    translate_branch(s, &stmt->bodies[0], &body);
    const hwnas_py *residual = gather(s, to, &body, "Residual"), *module = residual;
    hwnas_torch_need(s->export, "Residual");
    if (when) {
        hwnas_py *plain = hwnas_arena_copy(s->arena, residual, sizeof *residual);
        plain->text = "nn.Sequential";
        const hwnas_py *args[] = {when, residual, plain};
        module = hwnas_py_operator(s->arena, HWNAS_OP_IF, 3, args);
    }
    push_module(s, to, module, "residual");
    s->is_fresh = s->is_fresh || !when;
}

static void translate_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *when = outcomes == 3 ? hwnas_torch_convert(s, stmt->expr) : NULL;
    if (when && hwnas_py_is_value(when)) {
        outcomes = hwnas_py_is_true(when) ? 2 : 1;
        when = NULL;
    }
    if (when)
        when = truth(s, when);
    if (outcomes == 1) {
        hwnas_torch_body(s, &stmt->bodies[0], to);
        return;
    }
    if (!to && s->class->has_lines) {
        s->export->needs_values |= when && hwnas_names_tensors(&stmt->bodies[0]);
        if (when)
            nest_residual(s, stmt, when, target(s, to));
        else
            hwnas_wire_residual(s, stmt);
        return;
    }
    if (to) {
        nest_residual(s, stmt, when, to);
        return;
    }
    hwnas_part *part = hwnas_torch_part(s, HWNAS_PART_RESIDUAL, 1);
    part->when = when;
    translate_branch(s, &stmt->bodies[0], &part->branches[0]);
    s->is_fresh = s->is_fresh || !when;
}

/* The channels of branches that follow each other. */
static const hwnas_py *sum_of(hwnas_torch_scope *s, size_t n, const hwnas_py *const *terms)
{
    const hwnas_py *sum = terms[0];
    bool are_equal = true;
    for (size_t i = 1; i < n; i++)
        are_equal = are_equal && /* in meaning */
                    hwnas_py_equal(hwnas_py_replace(s->arena, terms[i], 0, NULL, NULL),
                                   hwnas_py_replace(s->arena, terms[0], 0, NULL, NULL));
    for (size_t i = are_equal ? n - 1 : 1; i < n; i++) {
        const hwnas_py *sides[] = {sum, are_equal ? hwnas_py_int(s->arena, (int64_t)n) : terms[i]};
        sum = hwnas_torch_fold(
            s, hwnas_py_operator(s->arena, are_equal ? HWNAS_OP_MUL : HWNAS_OP_ADD, 2, sides));
    }
    return sum;
}

/* Goes on with so many channels: a formula gets a name, since what follows may need it often. */
static void set_channels(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *channels)
{
    s->in = channels;
    if (hwnas_py_is_plain(channels))
        return;
    if (hwnas_py_mentions(channels, s->channels)) {
        assign_channels(s, target(s, to), channels);
        return;
    }
    hwnas_py_name *name = new_name(s, joined_wishes, true);
    name->meaning = channels;
    assign(s, target(s, to), name, channels);
    s->in = hwnas_py_of(s->arena, name);
}

static void pin_channels(hwnas_torch_scope *s, hwnas_sequence *to)
{
    if (!is_running(s, s->in))
        return;
    hwnas_py_name *entry = new_name(s, entry_wishes, true);
    assign(s, target(s, to), entry, s->in);
    s->in = hwnas_py_of(s->arena, entry);
}

void hwnas_torch_pin_channels(hwnas_torch_scope *s)
{
    pin_channels(s, NULL);
}

/* The widest of branches that are added: others are repeated. Where they are not known, the one
 * that was the widest in the graph. */
static const hwnas_py *widest_of(const hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                 const hwnas_py *const *exits)
{
    const hwnas_py *widest = exits[0];
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        if (!hwnas_py_is_value(exits[i]))
            return exits[hwnas_export_saw(s->export, stmt)->value];
        if (exits[i]->value.i > widest->value.i)
            widest = exits[i];
    }
    return widest;
}

void hwnas_torch_join_channels(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                               const hwnas_py *const *exits, hwnas_sequence *to)
{
    set_channels(s, to,
                 hwnas_torch_join_of(stmt->name)->infix ? widest_of(s, stmt, exits)
                                                        : sum_of(s, stmt->n_bodies, exits));
}

static void translate_join(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_torch_join *join = hwnas_torch_join_of(stmt->name);
    hwnas_sequence *branches;
    size_t n_full = 0;
    if (!to && s->class->has_lines) {
        hwnas_wire_join(s, stmt);
        return;
    }
    for (size_t i = 0; i < stmt->n_bodies; i++)
        n_full += stmt->bodies[i].n > 0;
    if (n_full > 1) /* one branch may change the variable before the next reads it */
        pin_channels(s, to);
    if (to) {
        branches = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *branches);
        for (size_t i = 0; i < stmt->n_bodies; i++)
            branches[i].list = new_name(s, branch_wishes, true);
    } else {
        hwnas_part *part = hwnas_torch_part(s, HWNAS_PART_JOIN, stmt->n_bodies);
        part->join = join;
        branches = part->branches;
    }
    const hwnas_py *entry = s->in;
    const hwnas_py **exits = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *exits);
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        s->in = entry;
        translate_branch(s, &stmt->bodies[i], &branches[i]);
        if (!join->infix && i + 1 < stmt->n_bodies && hwnas_py_mentions(s->in, s->channels)) {
            /* the next branch may change the variable before the sum is made */
            hwnas_py_name *name = new_name(s, hidden_wishes, true);
            assign(s, &branches[i], name, s->in);
            s->in = hwnas_py_of(s->arena, name);
        }
        exits[i] = s->in;
    }
    s->is_fresh = true;
    if (!to) {
        hwnas_torch_join_channels(s, stmt, exits, NULL);
        return;
    }
    const hwnas_py **args = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *args);
    for (size_t i = 0; i < stmt->n_bodies; i++)
        args[i] = gather(s, to, &branches[i], "nn.Sequential");
    hwnas_torch_need(s->export, join->helper);
    push_module(s, to, hwnas_py_make(s->arena, HWNAS_PY_CALL, join->helper, stmt->n_bodies, args),
                join->op);
    hwnas_torch_join_channels(s, stmt, exits, to);
}

static void translate_let(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    for (size_t i = 0; i < stmt->n_args; i++) {
        const hwnas_py *value = hwnas_torch_convert(s, stmt->args[i].value);
        bool is_running_out = hwnas_py_mentions(value, s->channels);
        if (!hwnas_py_is_plain(value) || is_running_out) {
            hwnas_py_name *name = given_name(s, NULL, stmt->args[i].name);
            name->meaning = is_running_out ? NULL : value;
            assign(s, target(s, to), name, value);
            value = hwnas_py_of(s->arena, name);
        }
        s->slots[stmt->args[i].slot] = value;
    }
}

/* Translates one arm from the state at the fork; leaves what it ends with in `s`. */
static void translate_arm(hwnas_torch_scope *s, hwnas_arm *arm, const hwnas_body *body,
                          const hwnas_py *entry, bool is_fresh)
{
    const hwnas_py **outer = enter(s);
    s->in = entry;
    s->is_fresh = is_fresh;
    if (body)
        hwnas_torch_body(s, body, &arm->sequence);
    s->slots = outer;
}

/* An if with `n` arms; the last condition may be NULL: else. bodies[i] may be NULL: nothing.
 * forward() has none, so the arms may not name tensors. */
static void translate_fork(hwnas_torch_scope *s, const hwnas_stmt *stmt, size_t n,
                           const hwnas_py *const *conditions, const hwnas_body *const *bodies,
                           hwnas_sequence *to)
{
    bool is_switch = conditions[n - 1] != NULL;
    const hwnas_py *entry = s->in;
    const hwnas_py **exits = hwnas_arena_alloc(s->arena, n * sizeof *exits);
    hwnas_arm *arms = new_arms(s, n, to->list);
    bool was_fresh = s->is_fresh, is_fresh = true, agree = true;
    for (size_t i = 0; i < n; i++) {
        arms[i].condition = conditions[i];
        s->export->needs_values |= bodies[i] && hwnas_names_tensors(bodies[i]);
        translate_arm(s, &arms[i], bodies[i], entry, was_fresh);
        exits[i] = s->in;
        agree = agree && hwnas_py_equal(exits[i], exits[0]);
        is_fresh = is_fresh && s->is_fresh;
    }
    if (!agree && hwnas_export_keeps(s->export, stmt->bodies)) { /* said in another way */
        agree = true;
        exits[0] = entry;
    }
    if (!agree && !is_running(s, entry))
        assign_channels(s, to, entry);
    for (size_t i = 0; i < n && !agree; i++) {
        s->in = exits[i];
        if (!hwnas_py_equal(exits[i], entry) || mentions(&arms[i].sequence, 0, s->channels))
            settle_channels(s, &arms[i].sequence);
    }
    s->in = agree ? exits[0] : hwnas_py_of(s->arena, s->channels);
    s->is_fresh = is_fresh;
    size_t n_full = 0;
    for (size_t i = 0; i < n; i++) /* of cases that exclude each other, the empty need no words */
        if (arms[i].sequence.n || (!is_switch && arms[i].condition))
            arms[n_full++] = arms[i];
    n = n_full;
    if (!n)
        return;
    push(s, to, (hwnas_step){.kind = HWNAS_STEP_IF, .n_arms = n, .arms = arms});
}

static void translate_if(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *condition = hwnas_torch_convert(s, stmt->expr);
    if (hwnas_py_is_value(condition))
        outcomes = hwnas_py_is_true(condition) ? 2 : 1;
    size_t only = outcomes == 2 ? 0 : 1;
    if (outcomes == 3) {
        const hwnas_py *conditions[] = {truth(s, condition), NULL};
        const hwnas_body *bodies[] = {&stmt->bodies[0],
                                      stmt->n_bodies > 1 ? &stmt->bodies[1] : NULL};
        translate_fork(s, stmt, 2, conditions, bodies, target(s, to));
    } else if (only < stmt->n_bodies) {
        hwnas_torch_body(s, &stmt->bodies[only], to);
    }
}

static void translate_switch(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    uint64_t outcomes = hwnas_export_saw(s->export, stmt)->outcomes;
    const hwnas_py *value = hwnas_torch_convert(s, stmt->expr);
    const hwnas_py **conditions =
        hwnas_arena_alloc(s->arena, (stmt->n_bodies + 1) * sizeof *conditions);
    const hwnas_body **bodies = hwnas_arena_alloc(s->arena, (stmt->n_bodies + 1) * sizeof *bodies);
    size_t n = 0;
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        const hwnas_py *label = hwnas_py_value(s->arena, stmt->labels[i]);
        const hwnas_py *sides[] = {value, label};
        if (hwnas_py_is_value(value) ? !hwnas_py_equal(value, label)
                                     : !(outcomes >> (i < 63 ? i : 63) & 1))
            continue;
        conditions[n] = hwnas_py_operator(s->arena, HWNAS_OP_EQ, 2, sides);
        bodies[n++] = &stmt->bodies[i];
    }
    if (n == 1)
        hwnas_torch_body(s, bodies[0], to);
    else if (n)
        translate_fork(s, stmt, n, conditions, bodies, target(s, to));
}

/* ---- Loops ---- */

/* Does a statement go more than one way, so that each round of a loop looks different? */
static bool is_varied(const hwnas_export *export, const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        if ((stmt->kind == HWNAS_STMT_IF || stmt->kind == HWNAS_STMT_SWITCH ||
             stmt->kind == HWNAS_STMT_RESIDUAL) &&
            hwnas_export_saw(export, stmt)->varies)
            return true;
        for (size_t b = 0; b < stmt->n_bodies; b++)
            if (is_varied(export, &stmt->bodies[b]))
                return true;
    }
    return false;
}

/* Translates a loop's body from the channels before it. When it ends with others, they differ from
 * round to round, and the body is translated again with the running variable. */
static void translate_loop(hwnas_torch_scope *s, hwnas_step *loop, const hwnas_stmt *stmt,
                           hwnas_sequence *to)
{
    const hwnas_py *entry = s->in;
    bool was_fresh = s->is_fresh;
    unsigned n_assigned = s->n_assigned;
    loop->n_arms = 1;
    loop->arms = new_arms(s, 1, to->list);
    hwnas_sequence *body = &loop->arms[0].sequence;
    translate_arm(s, loop->arms, &stmt->bodies[0], entry, false);
    if (!hwnas_py_equal(s->in, entry) || (is_running(s, entry) && s->n_assigned != n_assigned)) {
        *body = (hwnas_sequence){.list = to->list};
        translate_arm(s, loop->arms, &stmt->bodies[0], hwnas_py_of(s->arena, s->channels), false);
        settle_channels(s, body);
        if (!is_running(s, entry))
            assign_channels(s, to, entry);
        s->in = hwnas_py_of(s->arena, s->channels);
    }
    s->is_fresh = s->is_fresh && was_fresh;
    push(s, to, *loop);
}

/* Round after round with everything filled in, as far as `lists` are known. */
static void unroll(hwnas_torch_scope *s, const hwnas_stmt *stmt, const hwnas_py *const *lists,
                   hwnas_sequence *to)
{
    for (size_t n = 0; n < lists[0]->value.list.n; n++) {
        for (size_t i = 0; i < stmt->n_args; i++)
            s->slots[stmt->args[i].slot] = hwnas_py_value(s->arena, lists[i]->value.list.items[n]);
        hwnas_torch_body(s, &stmt->bodies[0], to);
    }
}

static void translate_for(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    enum { MAX_ROUNDS = 40 };
    const hwnas_py **lists = hwnas_arena_alloc(s->arena, stmt->n_args * sizeof *lists);
    bool is_constant = true;
    for (size_t i = 0; i < stmt->n_args; i++) {
        lists[i] = hwnas_torch_convert(s, stmt->args[i].value);
        is_constant = is_constant && hwnas_py_is_value(lists[i]);
    }
    size_t n_rounds = is_constant ? lists[0]->value.list.n : SIZE_MAX;
    bool is_written_out = s->export->is_concrete || hwnas_names_tensors(&stmt->bodies[0]);
    if (is_constant && (n_rounds <= 1 || is_written_out ||
                        (n_rounds <= MAX_ROUNDS && is_varied(s->export, &stmt->bodies[0])))) {
        unroll(s, stmt, lists, to);
        return;
    }
    s->export->needs_values |= is_written_out;
    const hwnas_py **outer = enter(s);
    hwnas_step loop = {.kind = HWNAS_STEP_FOR,
                       .n_targets = stmt->n_args,
                       .iterables = lists,
                       .table = is_constant ? new_name(s, table_wishes, true) : NULL};
    loop.targets = hwnas_arena_alloc(s->arena, stmt->n_args * sizeof *loop.targets);
    for (size_t i = 0; i < stmt->n_args; i++) {
        loop.targets[i] = given_name(s, NULL, stmt->args[i].name);
        s->slots[stmt->args[i].slot] = hwnas_py_of(s->arena, loop.targets[i]);
    }
    translate_loop(s, &loop, stmt, target(s, to));
    s->slots = outer;
}

static void translate_repeat(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    const hwnas_sight *sight = hwnas_export_saw(s->export, stmt);
    const hwnas_py *times = hwnas_torch_convert(s, stmt->expr);
    bool is_written_out = s->export->is_concrete || hwnas_names_tensors(&stmt->bodies[0]);
    if (is_written_out && hwnas_py_is_value(times)) {
        for (int64_t i = 0; i < times->value.i; i++) {
            s->slots[stmt->slot] = hwnas_py_int(s->arena, i);
            hwnas_torch_body(s, &stmt->bodies[0], to);
        }
        return;
    }
    s->export->needs_values |= is_written_out;
    if (sight->varies ? hwnas_py_is_number(times, 1) : sight->value == 1) {
        s->slots[stmt->slot] = hwnas_py_int(s->arena, 0);
        hwnas_torch_body(s, &stmt->bodies[0], to);
        return;
    }
    if (sight->varies ? hwnas_py_is_number(times, 0) : sight->value == 0)
        return;
    const hwnas_py **outer = enter(s);
    const hwnas_py *range = hwnas_py_make(s->arena, HWNAS_PY_CALL, "range", 1, &times);
    hwnas_py_name *index = given_name(s, NULL, stmt->name);
    hwnas_step loop = {.kind = HWNAS_STEP_FOR, .n_targets = 1};
    loop.targets = hwnas_arena_copy(s->arena, &index, sizeof index);
    loop.iterables = hwnas_arena_copy(s->arena, &range, sizeof range);
    s->slots[stmt->slot] = hwnas_py_of(s->arena, index);
    translate_loop(s, &loop, stmt, target(s, to));
    s->slots = outer;
}

/* Inside of a condition or a loop that could not be written out, the file is not used. */
static void translate_as(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (!to)
        hwnas_wire_as(s, stmt);
}

static void translate_from(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to)
{
    if (!to)
        hwnas_wire_from(s, stmt);
}

static void (*const translators[])(hwnas_torch_scope *, const hwnas_stmt *, hwnas_sequence *) = {
    [HWNAS_STMT_LAYER] = translate_layer,
    [HWNAS_STMT_JOIN] = translate_join,
    [HWNAS_STMT_RESIDUAL] = translate_residual,
    [HWNAS_STMT_LET] = translate_let,
    [HWNAS_STMT_IF] = translate_if,
    [HWNAS_STMT_SWITCH] = translate_switch,
    [HWNAS_STMT_FOR] = translate_for,
    [HWNAS_STMT_REPEAT] = translate_repeat,
    [HWNAS_STMT_AS] = translate_as,
    [HWNAS_STMT_FROM] = translate_from,
};

void hwnas_torch_body(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to)
{
    for (size_t i = 0; i < body->n; i++)
        translators[body->stmts[i]->kind](s, body->stmts[i], to);
}

/* ---- Classes ---- */

/* Can a caller compute it from the arguments? */
static bool is_in_terms_of_parameters(const hwnas_class *class, const hwnas_py *expr)
{
    bool is_parameter = expr->kind != HWNAS_PY_NAME || expr->name == class->in_channels;
    for (size_t p = 0; !is_parameter && p < class->template->n_parameters; p++)
        is_parameter = expr->name == class->parameters[p];
    for (size_t i = 0; i < expr->n_args; i++)
        is_parameter = is_parameter && is_in_terms_of_parameters(class, expr->args[i]);
    return is_parameter;
}

static const char *better_name(const hwnas_template *template, const char *name)
{
    for (size_t i = 0; i < sizeof parameter_names / sizeof *parameter_names; i++) {
        if (strcmp(parameter_names[i].space, name))
            continue;
        for (size_t slot = 0; slot < template->n_slots; slot++)
            if (!strcmp(template->slot_names[slot], parameter_names[i].python))
                return NULL;
        return parameter_names[i].python;
    }
    return NULL;
}

static void translate_parameters(hwnas_torch_scope *s, const hwnas_py *const *values)
{
    static const char *const in_wishes[] = {"in_channels", "channels_in", NULL};
    hwnas_class *class = s->class;
    const hwnas_template *t = class->template;
    class->in_channels = new_name(s, in_wishes, false);
    s->in = hwnas_py_of(s->arena, class->in_channels);
    for (size_t p = 0; p < t->n_parameters; p++) {
        const char *name = t->parameters[p].name;
        class->parameters[p] = given_name(s, better_name(t, name), name);
        if (t->parameters[p].fallback)
            class->fallbacks[p] = hwnas_torch_convert(s, t->parameters[p].fallback);
        s->slots[p] = values ? values[p] : hwnas_py_of(s->arena, class->parameters[p]);
    }
}

/* Lets the one who builds the network say how many classes there are, for another data set. */
static void free_n_outputs(hwnas_torch_scope *s)
{
    static const char *const wishes[] = {"num_classes", "num_outputs", NULL};
    hwnas_class *class = s->class;
    hwnas_part *last = class->n_parts ? class->parts[class->n_parts - 1] : NULL;
    if (!last || last->kind != HWNAS_PART_PLAIN || !last->branches[0].n)
        return;
    hwnas_step *step = &last->branches[0].steps[last->branches[0].n - 1];
    if (step->kind != HWNAS_STEP_MODULE || strcmp(step->expr->text, "nn.Linear") ||
        !hwnas_py_is_value(step->expr->args[1]))
        return;
    if (class->has_lines) {
        const hwnas_wire *result = class->lines[class->n_lines - 1].wire;
        if (result->kind != HWNAS_WIRE_APPLY || result->part != last)
            return;
    }
    class->n_outputs = new_name(s, wishes, false);
    class->n_outputs_value = step->expr->args[1];
    hwnas_py *linear = hwnas_arena_copy(s->arena, step->expr, sizeof *linear);
    linear->args = hwnas_arena_copy(s->arena, linear->args, linear->n_args * sizeof *linear->args);
    linear->args[1] = hwnas_py_of(s->arena, class->n_outputs);
    step->expr = linear;
}

static hwnas_class *translate_class(hwnas_export *export, const hwnas_template *template,
                                    const hwnas_py *in, const hwnas_py *const *values)
{
    enum { MAX_PARTS = 4 };
    const hwnas_tensor *input = &export->graph->tensors[export->graph->inputs[0]];
    hwnas_arena *arena = export->arena;
    bool is_network = template == export->arch->space->network;
    hwnas_class *class = hwnas_arena_alloc(arena, sizeof *class);
    hwnas_torch_scope s = {.export = export, .class = class, .arena = arena};
    class->export = export;
    class->template = template;
    class->has_lines = template->n_tensors > 0;
    class->parameters =
        hwnas_arena_alloc(arena, (template->n_parameters + 1) * sizeof *class->parameters);
    class->fallbacks =
        hwnas_arena_alloc(arena, (template->n_parameters + 1) * sizeof *class->fallbacks);
    s.slots = hwnas_arena_alloc(arena, (template->n_slots + 1) * sizeof *s.slots);
    s.channels = new_name(&s, channel_wishes, true);
    s.list = new_name(&s, list_wishes, true);
    if (!is_network)
        translate_parameters(&s, export->is_concrete ? values : NULL);
    hwnas_torch_scope begin = s;
    if (is_network)
        s.in = hwnas_py_int(arena, input->dims[1]);
    else if (export->is_concrete)
        s.in = in;
    begin.in = s.in;
    if (class->has_lines)
        hwnas_wire_begin(&s);
    hwnas_torch_body(&s, &template->body, NULL);
    if (class->has_lines)
        hwnas_wire_end(&s);
    else if (class->n_parts >
             MAX_PARTS) { /* too long a forward(): residuals and joins as modules */
        s = begin;
        class->n_parts = 0;
        memset(s.slots + template->n_parameters, 0,
               (template->n_slots - template->n_parameters) * sizeof *s.slots);
        hwnas_torch_body(&s, &template->body,
                         &hwnas_torch_part(&s, HWNAS_PART_PLAIN, 1)->branches[0]);
    }
    class->is_fresh = s.is_fresh;
    if (is_network) {
        free_n_outputs(&s);
        return class;
    }
    class->out_channels =
        hwnas_py_replace(arena, s.in, 1, &class->in_channels,
                         (const hwnas_py *const[]){hwnas_py_of(arena, class->in_channels)});
    if (hwnas_export_keeps(export, template) &&
        (!is_in_terms_of_parameters(class, class->out_channels) ||
         !hwnas_py_is_plain(class->out_channels)))
        class->out_channels = begin.in;
    if (!is_in_terms_of_parameters(class, class->out_channels)) {
        class->out_variable = s.in;
        class->out_channels = NULL;
    }
    return class;
}

static bool is_class_name_taken(const hwnas_export *export, const char *name)
{
    for (size_t i = 0; i < export->n_classes; i++)
        if (!strcmp(export->classes[i]->name, name))
            return true;
    for (size_t i = 0; hwnas_torch_helpers[i].name; i++)
        if (!strcmp(hwnas_torch_helpers[i].name, name))
            return true;
    return false;
}

/* The network is named after the space, others after their templates. */
static const char *class_name(const hwnas_export *export, const hwnas_template *template)
{
    const hwnas_space *space = export->arch->space;
    bool is_network = template == space->network;
    const char *name =
        hwnas_py_class_name(export->arena, is_network ? space->name : template->name);
    size_t n_same = 0;
    for (size_t i = 0; i < export->n_classes; i++)
        n_same += export->classes[i]->template == template;
    if (n_same)
        name = hwnas_arena_printf(export->arena,
                                  strchr("0123456789", name[strlen(name) - 1]) ? "%s_%zu" : "%s%zu",
                                  name, n_same + 1);
    while (is_class_name_taken(export, name))
        name = hwnas_arena_printf(export->arena, "%s%s", name, is_network ? "Net" : "Block");
    return name;
}

/* Was the concrete class made for these? */
static bool is_made_for(const hwnas_class *class, const hwnas_py *in, const hwnas_py *const *values)
{
    bool is_same = hwnas_py_equal(class->concrete_in, in);
    for (size_t p = 0; p < class->template->n_parameters && is_same; p++)
        is_same = hwnas_py_equal(class->concrete[p], values[p]);
    return is_same;
}

/* Has this architecture chosen nothing in it? */
static bool is_empty(const hwnas_class *class)
{
    for (size_t p = 0; p < class->n_parts; p++) {
        const hwnas_sequence *layers = &class->parts[p]->branches[0];
        if (class->parts[p]->kind != HWNAS_PART_PLAIN)
            return false;
        for (size_t i = 0; i < layers->n; i++)
            if (layers->steps[i].kind != HWNAS_STEP_ASSIGN)
                return false;
    }
    return !class->has_lines;
}

hwnas_class *hwnas_class_of(hwnas_export *export, const hwnas_template *template,
                            const hwnas_py *in, const hwnas_py *const *values)
{
    for (size_t i = 0; i < export->n_classes; i++)
        if (export->classes[i]->template == template &&
            (!export->is_concrete || is_made_for(export->classes[i], in, values)))
            return export->classes[i];
    hwnas_class *class = translate_class(export, template, in, values);
    class->concrete_in = in;
    if (values)
        class->concrete = hwnas_arena_copy(export->arena, values,
                                           (template->n_parameters + 1) * sizeof *class->concrete);
    class->name = class_name(export, template);
    class->is_empty = is_empty(class);
    if (!class->is_empty)
        hwnas_class_write(&export->text, class);
    HWNAS_GROW(export->classes, export->n_classes, export->class_capacity);
    export->classes[export->n_classes++] = class;
    return class;
}
