/* pytorch_class.c: templates as classes. */
#include <string.h>

#include "graph/op.h"
#include "export/pytorch_priv.h"

static const char *const list_wishes[] = {"layers", "modules", "blocks", NULL};
static const char *const channel_wishes[] = {"channels", "width", "features", NULL};
static const char *const feature_wishes[] = {"features", "width", "channels", NULL};

/* What PyTorch calls them. */
static const struct {
    const char *space, *python;
} parameter_names[] = {
    {"out", "out_channels"},
    {"kernel", "kernel_size"},
    {"pad", "padding"},
};

static bool is_mentioned(const hwnas_expr *expr, int slot)
{
    if (expr && expr->kind == HWNAS_EXPR_VARIABLE && expr->slot == slot)
        return true;
    for (size_t i = 0; expr && i < expr->n_args; i++)
        if (is_mentioned(expr->args[i], slot))
            return true;
    return false;
}

/* Does a class look at the parameter? Not when only its callers do, who hand it the input or the
 * output of that number. */
static bool matters(const hwnas_body *body, int slot)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        bool is_port =
            stmt->kind == HWNAS_STMT_OUTPUT || (stmt->kind == HWNAS_STMT_FROM && stmt->is_input);
        if (!is_port && is_mentioned(stmt->expr, slot))
            return true;
        for (size_t a = 0; a < stmt->n_args; a++)
            if (is_mentioned(stmt->args[a].value, slot) &&
                (!stmt->call || stmt->args[a].value->n_args ||
                 matters(&stmt->call->body, stmt->args[a].slot)))
                return true;
        for (size_t b = 0; b < stmt->n_bodies; b++)
            if (matters(&stmt->bodies[b], slot))
                return true;
    }
    return false;
}

/* Can a caller compute it from the arguments? */
static bool is_in_terms_of_parameters(const hwnas_class *class, const hwnas_py *expr)
{
    bool is_parameter = expr->kind != HWNAS_PY_NAME || expr->name == class->in_channels;
    for (size_t p = 0; !is_parameter && p < class->origin->template->n_parameters; p++)
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

/* Does it take sequences or vectors, and no images? */
static bool is_of_features(const hwnas_export *export, const hwnas_template *template)
{
    const hwnas_sight *rank = hwnas_export_saw(export, &template->n_slots);
    return rank->of && rank->value < 3 && !rank->varies;
}

static void translate_parameters(hwnas_torch_scope *s, const hwnas_py *const *values)
{
    static const char *const in_wishes[] = {"in_channels", "channels_in", NULL};
    static const char *const features_wishes[] = {"in_features", "features_in", NULL};
    hwnas_class *class = s->class;
    const hwnas_template *t = class->origin->template;
    class->in_channels =
        hwnas_torch_name(s, is_of_features(s->export, t) ? features_wishes : in_wishes, false);
    s->in = hwnas_py_of(s->arena, class->in_channels);
    for (size_t p = 0; p < t->n_parameters; p++) {
        const char *name = t->parameters[p].name;
        class->parameters[p] = hwnas_torch_given_name(s, better_name(t, name), name);
        if (t->parameters[p].fallback)
            class->fallbacks[p] = hwnas_torch_convert(s, t->parameters[p].fallback);
        s->slots[p] = values && matters(&t->body, (int)p)
                          ? values[p]
                          : hwnas_py_of(s->arena, class->parameters[p]);
    }
}

/* Lets the one who builds the network say how many classes there are, for another data set. */
static void free_n_outputs(hwnas_torch_scope *s)
{
    static const char *const wishes[] = {"num_classes", "num_outputs", NULL};
    hwnas_class *class = s->class;
    hwnas_torch_piece *last = class->n_parts ? class->parts[class->n_parts - 1] : NULL;
    if (!last || last->kind != HWNAS_PART_PLAIN || !last->branches[0].n)
        return;
    hwnas_step *step = &last->branches[0].steps[last->branches[0].n - 1];
    if (step->kind != HWNAS_STEP_MODULE || strcmp(step->label, "linear") ||
        !hwnas_py_is_value(step->expr->args[1]))
        return;
    if (class->has_lines) {
        const hwnas_wire *result = class->lines[class->n_lines - 1].wire;
        if (result->kind != HWNAS_WIRE_APPLY || result->part != last)
            return;
    }
    class->n_outputs = hwnas_torch_name(s, wishes, false);
    class->n_outputs_value = step->expr->args[1];
    hwnas_py *linear = hwnas_arena_copy(s->arena, step->expr, sizeof *linear);
    linear->args = hwnas_arena_copy(s->arena, linear->args, linear->n_args * sizeof *linear->args);
    linear->args[1] = hwnas_py_of(s->arena, class->n_outputs);
    step->expr = linear;
}

static hwnas_class *translate_class(hwnas_export *export, const hwnas_template *template,
                                    const hwnas_py *in, const hwnas_shape *shape,
                                    const hwnas_py *const *values)
{
    enum { MAX_PARTS = 4 };
    hwnas_arena *arena = export->arena;
    bool is_network = template == export->arch->space->network;
    hwnas_class *class = hwnas_arena_alloc(arena, sizeof *class);
    class->origin = hwnas_arena_alloc(arena, sizeof *class->origin);
    class->module = &export->module;
    class->callee = hwnas_arena_alloc(arena, sizeof *class->callee);
    class->is_network = is_network;
    class->label = is_network ? export->arch->space->name : template->name;
    class->n_parameters = is_network ? 0 : template->n_parameters;
    hwnas_torch_scope s = {.export = export, .class = class, .arena = arena};
    class->origin->export = export;
    class->origin->template = template;
    class->has_lines = hwnas_has_lines(template) || (is_network && export->graph->n_inputs > 1);
    class->origin->first_node = export->next_node;
    if (export->is_concrete)
        s.shape = *shape;
    class->parameters =
        hwnas_arena_alloc(arena, (template->n_parameters + 1) * sizeof *class->parameters);
    class->fallbacks =
        hwnas_arena_alloc(arena, (template->n_parameters + 1) * sizeof *class->fallbacks);
    s.slots = hwnas_arena_alloc(arena, (template->n_slots + 1) * sizeof *s.slots);
    s.channels = hwnas_torch_name(
        &s, is_of_features(export, template) ? feature_wishes : channel_wishes, true);
    s.list = hwnas_torch_name(&s, list_wishes, true);
    if (values && export->is_concrete)
        class->origin->concrete =
            hwnas_arena_copy(arena, values, template->n_parameters * sizeof *values);
    if (!is_network)
        translate_parameters(&s, class->origin->concrete);
    hwnas_torch_scope begin = s;
    if (is_network || export->is_concrete)
        s.in = in;
    begin.in = s.in;
    if (class->has_lines)
        hwnas_wire_begin(&s);
    hwnas_torch_translate(&s, &template->body, NULL);
    if (class->has_lines)
        hwnas_wire_end(&s);
    else if (class->n_parts >
             MAX_PARTS) { /* too long a forward(): residuals and joins as modules */
        s = begin;
        class->n_parts = 0;
        export->next_node = class->origin->first_node;
        memset(s.slots + template->n_parameters, 0,
               (template->n_slots - template->n_parameters) * sizeof *s.slots);
        hwnas_torch_translate(&s, &template->body,
                              &hwnas_torch_part(&s, HWNAS_PART_PLAIN, 1)->branches[0]);
    }
    class->origin->is_fresh = s.is_fresh;
    class->origin->shape = s.shape;
    class->origin->n_nodes = export->next_node - class->origin->first_node;
    if (is_network) {
        free_n_outputs(&s);
        return class;
    }
    class->origin->out_channels =
        hwnas_py_replace(arena, s.in, 1, &class->in_channels,
                         (const hwnas_py *const[]){hwnas_py_of(arena, class->in_channels)});
    if (hwnas_export_keeps(export, template) &&
        (!is_in_terms_of_parameters(class, class->origin->out_channels) ||
         !hwnas_py_is_plain(class->origin->out_channels)))
        class->origin->out_channels = begin.in;
    class->origin->gives_unknown =
        class->origin->unknown &&
        hwnas_py_mentions(class->origin->out_channels, class->origin->unknown);
    if (!class->origin->gives_unknown &&
        !is_in_terms_of_parameters(class, class->origin->out_channels)) {
        class->out_variable = s.in;
        class->origin->out_channels = NULL;
    }
    return class;
}

/* Are the nodes from `begin` on those of the class, shape by shape? */
static bool has_nodes(const hwnas_class *class, const hwnas_graph *graph, size_t begin)
{
    if (begin + class->origin->n_nodes > graph->n_nodes)
        return false;
    for (size_t i = 0; i < class->origin->n_nodes; i++) {
        const hwnas_node *a = &graph->nodes[class->origin->first_node + i],
                         *b = &graph->nodes[begin + i];
        const hwnas_tensor *x = hwnas_node_output(graph, a), *y = hwnas_node_output(graph, b);
        if (a->op != b->op || x->rank != y->rank ||
            memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims))
            return false;
    }
    return true;
}

/* Was the concrete class made for these? */
static bool is_made_for(const hwnas_class *class, const hwnas_shape *shape,
                        const hwnas_py *const *values)
{
    const hwnas_template *t = class->origin->template;
    bool is_same =
        class->origin->entry.n == shape->n &&
        !memcmp(class->origin->entry.dims, shape->dims, (size_t)shape->n * sizeof *shape->dims) &&
        has_nodes(class, class->origin->export->graph, class->origin->export->next_node);
    for (size_t p = 0; p < t->n_parameters && is_same; p++)
        is_same =
            hwnas_py_equal(class->origin->concrete[p], values[p]) || !matters(&t->body, (int)p);
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
                            const hwnas_py *in, const hwnas_shape *shape,
                            const hwnas_py *const *values)
{
    for (size_t i = 0; i < export->module.n_classes; i++) {
        hwnas_class *class = export->module.classes[i];
        if (class->origin->template == template && !export->is_concrete)
            return class;
        if (class->origin->template == template && is_made_for(class, shape, values)) {
            export->next_node += class->origin->n_nodes;
            return class;
        }
    }
    hwnas_class *class = translate_class(export, template, in, shape, values);
    class->origin->entry = *shape;
    class->is_empty = is_empty(class);
    if (!class->is_empty) {
        hwnas_class_settle(class);
        export->needs_values |= class->origin->unknown && class->origin->unknown->uses;
        if (class->is_network && class->tied && class->table)
            export->tied = NULL;
    }
    hwnas_torch_file *module = &export->module;
    module->classes = hwnas_torch_grown(export->arena, module->classes, module->n_classes,
                                        &module->class_capacity, sizeof class);
    module->classes[module->n_classes++] = class;
    return class;
}
