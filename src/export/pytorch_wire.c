/* pytorch_wire.c: forward() of a template that names tensors, as lines with variables.
 *
 * Layers that follow each other are a part, which becomes a submodule; `as`, `from` and joins say
 * what the parts are applied to. Loops and conditions around names are written out. */
#include <string.h>

#include "export/pytorch_priv.h"

static bool any_stmt(const hwnas_body *body, bool (*is_it)(const hwnas_stmt *))
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        if (is_it(stmt))
            return true;
        for (size_t b = 0; b < stmt->n_bodies; b++)
            if (any_stmt(&stmt->bodies[b], is_it))
                return true;
    }
    return false;
}

/* Has it the network's inputs or outputs, itself or in what it calls? */
static bool has_ports(const hwnas_stmt *stmt)
{
    return stmt->kind == HWNAS_STMT_OUTPUT || (stmt->kind == HWNAS_STMT_FROM && stmt->is_input) ||
           (stmt->call && any_stmt(&stmt->call->body, has_ports));
}

static bool names_tensors(const hwnas_stmt *stmt)
{
    return stmt->kind == HWNAS_STMT_AS || stmt->kind == HWNAS_STMT_FROM || has_ports(stmt);
}

bool hwnas_names_tensors(const hwnas_body *body)
{
    return any_stmt(body, names_tensors);
}

/* Is it said in forward() by those who write it by hand? What is in loops becomes modules. */
static bool wants_lines(const hwnas_body *body)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        const hwnas_torch_row *row =
            stmt->kind == HWNAS_STMT_LAYER && !stmt->call ? hwnas_torch_row_of(stmt->name) : NULL;
        if ((row && row->wants_lines) ||
            (stmt->kind == HWNAS_STMT_JOIN && !hwnas_torch_join_of(stmt->name)->infix &&
             !hwnas_torch_join_of(stmt->name)->call))
            return true;
        bool is_loop = stmt->kind == HWNAS_STMT_FOR || stmt->kind == HWNAS_STMT_REPEAT;
        for (size_t b = 0; b < stmt->n_bodies && !is_loop; b++)
            if (wants_lines(&stmt->bodies[b]))
                return true;
    }
    return false;
}

bool hwnas_has_lines(const hwnas_template *template)
{
    return template->n_tensors > 0 || hwnas_names_tensors(&template->body) ||
           wants_lines(&template->body);
}

/* ---- Translating ---- */

const hwnas_wire *hwnas_wire_of(hwnas_torch_scope *s, hwnas_variable *variable)
{
    hwnas_wire *wire = hwnas_arena_alloc(s->arena, sizeof *wire);
    *wire = (hwnas_wire){.kind = HWNAS_WIRE_VARIABLE, .variable = variable};
    return wire;
}

const hwnas_wire *hwnas_wire_make(hwnas_torch_scope *s, hwnas_wire wire, size_t n_args,
                                  const hwnas_wire *const *args)
{
    wire.n_args = n_args;
    wire.args = hwnas_arena_copy(s->arena, args, n_args * sizeof *args);
    return hwnas_arena_copy(s->arena, &wire, sizeof wire);
}

void hwnas_wire_add_line(hwnas_torch_scope *s, size_t n, hwnas_variable *const *variables,
                         const hwnas_wire *wire)
{
    hwnas_class_add_line(s->class, n, variables, wire);
}

hwnas_variable *hwnas_wire_new_variable(hwnas_torch_scope *s, const char *wish)
{
    hwnas_variable *variable = hwnas_arena_alloc(s->arena, sizeof *variable);
    variable->wish = wish;
    return variable;
}

/* The same tensor as a new variable. */
static const hwnas_wire *bind(hwnas_torch_scope *s, const hwnas_wire *wire, const char *wish)
{
    hwnas_variable *variable = hwnas_wire_new_variable(s, wish);
    hwnas_wire_add_line(s, 1, &variable, wire);
    return hwnas_wire_of(s, variable);
}

bool hwnas_wire_is_primary(const hwnas_wire *wire)
{
    return wire->kind == HWNAS_WIRE_VARIABLE || wire->kind == HWNAS_WIRE_APPLY ||
           (wire->kind == HWNAS_WIRE_FORM && wire->form.is_primary);
}

/* How many forms one after the other. */
int hwnas_wire_depth(const hwnas_wire *wire)
{
    int depth = 0;
    for (size_t i = 0; i < wire->n_args && wire->kind != HWNAS_WIRE_APPLY; i++)
        depth += hwnas_wire_depth(wire->args[i]);
    return depth + (wire->kind == HWNAS_WIRE_FORM);
}

const hwnas_wire *hwnas_wire_as_variable(hwnas_torch_scope *s, const hwnas_wire *wire)
{
    return wire->kind == HWNAS_WIRE_VARIABLE ? wire : bind(s, wire, NULL);
}

/* No layer is added to the open part any more. */
static const hwnas_wire *close_part(hwnas_torch_scope *s, const char *stem)
{
    hwnas_torch_piece *part = s->open;
    bool has_layers = false;
    s->open = NULL;
    for (size_t i = 0; part && i < part->branches[0].n; i++)
        has_layers |= part->branches[0].steps[i].kind != HWNAS_STEP_ASSIGN;
    if (has_layers) {
        const hwnas_wire *argument = hwnas_wire_as_variable(s, s->wire);
        part->stem = stem ? stem : part->stem;
        s->wire =
            hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part}, 1, &argument);
    }
    return s->wire;
}

void hwnas_wire_close(hwnas_torch_scope *s)
{
    (void)close_part(s, NULL);
}

/* ---- Inputs and outputs of the network ---- */

static hwnas_port *add_port(hwnas_torch_scope *s, hwnas_port **ports, size_t *n, size_t *capacity,
                            hwnas_port port)
{
    *ports = hwnas_torch_grown(s->arena, *ports, *n, capacity, sizeof port);
    (*ports)[*n] = port;
    return &(*ports)[(*n)++];
}

static bool is_port(const hwnas_port *port, const char *name, const hwnas_py *index)
{
    return !strcmp(port->name, name) && !port->index == !index &&
           (!index || hwnas_py_equal(port->index, index));
}

/* A name that forward() may have. */
static const char *free_name(hwnas_torch_scope *s, const char *name)
{
    return hwnas_py_is_free(name) ? name : hwnas_arena_printf(s->arena, "%s_", name);
}

/* The input as this forward() knows it: as an argument, which a template gets when it reads it
 * first. */
static const hwnas_port *input_port(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name,
                                    const hwnas_py *index, const hwnas_shape *shape)
{
    hwnas_class *class = s->class;
    for (size_t i = 0; i < class->origin->n_ports; i++)
        if (is_port(&class->origin->ports[i], name, index))
            return &class->origin->ports[i];
    if (!class->in_channels) { /* the network has all that there are: the index is not known */
        s->export->needs_values = true;
        s->export->trouble = stmt;
        return &class->origin->ports[0];
    }
    return add_port(
        s, &class->origin->ports, &class->origin->n_ports, &class->origin->port_capacity,
        (hwnas_port){.stmt = stmt,
                     .name = name,
                     .index = index,
                     .wire = hwnas_wire_of(s, hwnas_wire_new_variable(s, free_name(s, name))),
                     .in = hwnas_py_int(s->arena, hwnas_shape_channels(shape)),
                     .shape = *shape});
}

/* forward(self, tokens, past): all inputs; of several of a name, a list. */
static void add_network_ports(hwnas_torch_scope *s)
{
    const hwnas_space *space = s->export->arch->space;
    const hwnas_graph *graph = s->export->graph;
    hwnas_class *class = s->class;
    size_t at = 0;
    for (size_t n = 0; n < space->n_inputs; n++) {
        const hwnas_input *input = &space->inputs[n];
        const char *name = free_name(s, input->name);
        for (int64_t i = 0; at < graph->n_inputs; i++, at++) {
            const hwnas_tensor *tensor = &graph->tensors[graph->inputs[at]];
            if (!hwnas_export_is_input(s->export, n, graph->inputs[at]))
                break;
            hwnas_variable *variable = hwnas_wire_new_variable(s, name);
            variable->text =
                input->each ? hwnas_arena_printf(s->arena, "%s[%lld]", name, (long long)i) : name;
            const hwnas_shape shape = hwnas_shape_of(tensor);
            add_port(s, &class->origin->ports, &class->origin->n_ports,
                     &class->origin->port_capacity,
                     (hwnas_port){.name = input->name,
                                  .index = input->each ? hwnas_py_int(s->arena, i) : NULL,
                                  .wire = hwnas_wire_of(s, variable),
                                  .in = hwnas_py_int(s->arena, hwnas_shape_channels(&shape)),
                                  .shape = shape});
        }
    }
}

void hwnas_wire_begin(hwnas_torch_scope *s)
{
    if (s->class->in_channels || s->export->graph->n_inputs == 1) {
        s->class->input = hwnas_wire_new_variable(s, NULL);
        s->wire = hwnas_wire_of(s, s->class->input);
    }
    if (s->class->in_channels)
        return;
    add_network_ports(s);
    if (s->export->graph->n_inputs == 1) /* it is x */
        s->class->origin->ports[0].wire = s->wire;
    else
        s->wire = s->class->origin->ports[0].wire;
}

/* What forward() returns: the current tensor, those that are the network's outputs, or both. */
void hwnas_wire_end(hwnas_torch_scope *s)
{
    hwnas_class *class = s->class;
    const bool is_network = !class->in_channels;
    size_t n = 0;
    class->arguments =
        hwnas_arena_alloc(s->arena, (class->origin->n_ports + 1) * sizeof *class->arguments);
    for (size_t i = 0; i < class->origin->n_ports; i++)
        class->arguments[class->n_arguments++] = class->origin->ports[i].wire->variable;
    if (!class->origin->n_results) {
        class->origin->gives_current = true;
        hwnas_wire_add_line(s, 0, NULL, close_part(s, "head"));
        return;
    }
    const hwnas_wire *last = close_part(s, NULL);
    const hwnas_wire **args =
        hwnas_arena_alloc(s->arena, (class->origin->n_results + 1) * sizeof *args);
    class->origin->gives_current = !is_network;
    for (size_t i = 0; i < class->origin->n_results; i++)
        if (last->kind == HWNAS_WIRE_VARIABLE &&
            last->variable == class->origin->results[i].wire->variable)
            class->origin->gives_current = false;
    if (class->origin->gives_current)
        args[n++] = hwnas_wire_as_variable(s, last);
    for (size_t i = 0; i < class->origin->n_results; i++) {
        if (class->origin->results[i].wire->variable == last->variable)
            class->origin->results[i].is_current = true;
        args[n++] = class->origin->results[i].wire;
    }
    hwnas_wire_add_line(
        s, 0, NULL,
        n == 1 ? args[0] : hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_TUPLE}, n, args));
}

/* Translates a branch that starts from `entry` and gives what a join may be given. */
static const hwnas_wire *branch(hwnas_torch_scope *s, const hwnas_body *body,
                                const hwnas_wire *entry, const hwnas_py *in,
                                const hwnas_shape *shape, const char *stem)
{
    s->wire = entry;
    s->in = in;
    s->shape = *shape;
    s->is_fresh = false; /* the other branches need it too */
    hwnas_torch_body(s, body, NULL);
    hwnas_torch_pin_channels(s, NULL);
    const hwnas_wire *wire = close_part(s, stem);
    return hwnas_wire_is_primary(wire) ? wire : hwnas_wire_as_variable(s, wire);
}

void hwnas_wire_join(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_torch_join *join = hwnas_torch_join_of(stmt->name);
    const hwnas_wire **args = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *args);
    const hwnas_py **ins = hwnas_arena_alloc(s->arena, stmt->n_bodies * sizeof *ins);
    size_t n_full = 0;
    for (size_t i = 0; i < stmt->n_bodies; i++)
        n_full += stmt->bodies[i].n > 0;
    hwnas_torch_pin_channels(s, NULL);
    const hwnas_wire *entry = hwnas_wire_as_variable(s, close_part(s, NULL));
    const hwnas_py *in = s->in;
    const hwnas_shape shape = s->shape;
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        args[i] =
            branch(s, &stmt->bodies[i], entry, in, &shape, n_full > 1 ? "branch" : join->branch);
        ins[i] = s->in;
    }
    s->wire = entry;
    s->in = in;
    s->shape = shape;
    const int64_t axis = hwnas_torch_join_axis(s, stmt);
    hwnas_torch_join_channels(s, stmt, axis, ins, NULL);
    close_part(s, NULL); /* assignments alone, if any */
    s->wire = hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_JOIN, .join = join, .axis = axis},
                              stmt->n_bodies, args);
    s->is_fresh = true;
}

void hwnas_wire_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_wire *args[2];
    hwnas_torch_pin_channels(s, NULL);
    args[0] = hwnas_wire_as_variable(s, close_part(s, NULL));
    const hwnas_shape shape = s->shape;
    args[1] = branch(s, &stmt->bodies[0], args[0], s->in, &shape, "body");
    (void)hwnas_torch_seen(s, stmt, "add");
    s->wire = hwnas_wire_make(
        s, (hwnas_wire){.kind = HWNAS_WIRE_JOIN, .join = hwnas_torch_join_of("add")}, 2, args);
    s->is_fresh = true;
}

/* ---- Layers in forward() ---- */

void hwnas_wire_form(hwnas_torch_scope *s, hwnas_torch_form form)
{
    if (!strcmp(form.text, "$0")) /* nothing is done */
        return;
    hwnas_torch_pin_channels(s, NULL);
    const hwnas_wire *argument = close_part(s, NULL);
    const bool is_short = argument->kind == HWNAS_WIRE_JOIN && argument->join->infix &&
                          argument->n_args == 2 && hwnas_wire_depth(argument) < 2;
    if (!is_short && (!hwnas_wire_is_primary(argument) || hwnas_wire_depth(argument) > 2))
        argument = hwnas_wire_as_variable(s, argument);
    s->wire = hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_FORM, .form = form}, 1, &argument);
}

void hwnas_wire_weight(hwnas_torch_scope *s, const hwnas_py *module, hwnas_torch_form form)
{
    hwnas_torch_pin_channels(s, NULL);
    const hwnas_wire *args[] = {NULL, hwnas_wire_as_variable(s, close_part(s, NULL))};
    hwnas_torch_push_module(s, hwnas_wire_target(s), hwnas_torch_parameter(s, module), "weight");
    args[0] = hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = s->open}, 0, NULL);
    s->open = NULL;
    s->wire = strstr(form.text, "$1")
                  ? hwnas_wire_make(s, (hwnas_wire){.kind = HWNAS_WIRE_FORM, .form = form}, 2, args)
                  : args[0];
}

/* The index as the caller says it. */
static const hwnas_py *index_for_caller(hwnas_torch_scope *s, const hwnas_class *class,
                                        const hwnas_py *index, hwnas_py_name *const *names,
                                        const hwnas_py *const *values)
{
    return index ? hwnas_torch_fold(s, hwnas_py_replace(s->arena, index,
                                                        class->origin->template->n_parameters + 1,
                                                        names, values))
                 : NULL;
}

static void add_result(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name,
                       const hwnas_py *index, const hwnas_wire *wire)
{
    add_port(s, &s->class->origin->results, &s->class->origin->n_results,
             &s->class->origin->result_capacity,
             (hwnas_port){.stmt = stmt, .name = name, .index = index, .wire = wire});
}

/* "key", "key3" */
static const char *numbered(hwnas_torch_scope *s, const char *name, const hwnas_py *index)
{
    if (index && hwnas_py_is_value(index) && index->value.kind == HWNAS_VALUE_INT) {
        bool ends_in_digit = strchr("0123456789", name[strlen(name) - 1]) != NULL;
        name = hwnas_arena_printf(s->arena, "%s%s%lld", name, ends_in_digit ? "_" : "",
                                  (long long)index->value.i);
    }
    return free_name(s, name);
}

void hwnas_wire_call(hwnas_torch_scope *s, const hwnas_class *class, hwnas_py_name *const *names,
                     const hwnas_py *const *values)
{
    const hwnas_wire **args =
        hwnas_arena_alloc(s->arena, (class->origin->n_ports + 1) * sizeof *args);
    hwnas_variable **variables =
        hwnas_arena_alloc(s->arena, (class->origin->n_results + 1) * sizeof *variables);
    size_t n_args = 0, n = 0;
    const hwnas_torch_piece *part = s->open;
    s->open = NULL;
    if (class->input->uses)
        args[n_args++] = hwnas_wire_as_variable(s, s->wire);
    for (size_t i = 0; i < class->origin->n_ports; i++) {
        const hwnas_port *port = &class->origin->ports[i];
        const hwnas_py *index = index_for_caller(s, class, port->index, names, values);
        args[n_args++] = input_port(s, port->stmt, port->name, index, &port->shape)->wire;
    }
    const hwnas_wire *result = hwnas_wire_make(
        s, (hwnas_wire){.kind = HWNAS_WIRE_APPLY, .part = part, .is_call = true}, n_args, args);
    s->wire = result;
    if (!class->origin->n_results)
        return;
    if (class->origin->gives_current)
        s->wire = hwnas_wire_of(s, variables[n++] = hwnas_wire_new_variable(s, NULL));
    for (size_t i = 0; i < class->origin->n_results; i++) {
        const hwnas_port *port = &class->origin->results[i];
        const hwnas_py *index = index_for_caller(s, class, port->index, names, values);
        variables[n] = hwnas_wire_new_variable(s, numbered(s, port->name, index));
        add_result(s, port->stmt, port->name, index, hwnas_wire_of(s, variables[n]));
        if (port->is_current)
            s->wire = hwnas_wire_of(s, variables[n]);
        n++;
    }
    hwnas_wire_add_line(s, n, variables, result);
    s->is_fresh = false;
}

/* ---- Names ---- */

static int64_t index_of(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    if (!stmt->expr)
        return 0;
    const hwnas_py *index = hwnas_torch_convert(s, stmt->expr);
    if (hwnas_py_is_value(index))
        return index->value.i;
    s->export->needs_values = true;
    s->export->trouble = stmt;
    return 0;
}

static const hwnas_py *py_index(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    return stmt->expr ? hwnas_torch_convert(s, stmt->expr) : NULL;
}

/* Of a call that is being translated with its arguments, the index that it has there. */
static int64_t actual_index(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_py *index = py_index(s, stmt);
    if (index && s->class->origin->concrete)
        index = hwnas_torch_fold(
            s, hwnas_py_replace(s->arena, index, s->class->origin->template->n_parameters,
                                s->class->parameters, s->class->origin->concrete));
    return index && hwnas_py_is_value(index) ? index->value.i : 0;
}

void hwnas_wire_as(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    int64_t index = index_of(s, stmt);
    hwnas_torch_pin_channels(s, NULL);
    s->wire = bind(s, close_part(s, NULL), numbered(s, stmt->name, py_index(s, stmt)));
    s->is_fresh = false;
    hwnas_named *named = hwnas_arena_alloc(s->arena, sizeof *named);
    *named = (hwnas_named){.slot = stmt->slot,
                           .index = index,
                           .wire = s->wire,
                           .in = s->in,
                           .shape = s->shape,
                           .next = s->named};
    s->named = named;
}

void hwnas_wire_from(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    close_part(s, NULL);
    s->is_fresh = false;
    if (stmt->is_input) {
        const hwnas_shape shape =
            hwnas_shape_of(hwnas_export_input(s->export, stmt->slot, actual_index(s, stmt)));
        const hwnas_port *port = input_port(s, stmt, stmt->name, py_index(s, stmt), &shape);
        s->wire = port->wire;
        s->in = port->in;
        s->shape = port->shape;
        return;
    }
    const hwnas_named *named = hwnas_named_find(s->named, stmt->slot, index_of(s, stmt));
    if (named) {
        s->wire = named->wire;
        s->in = named->in;
        s->shape = named->shape;
    } else {
        s->export->needs_values = true;
        s->export->trouble = stmt;
    }
}

/* The tensor goes on, and what comes next leaves it as it is. */
void hwnas_wire_output(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_py *index = py_index(s, stmt);
    hwnas_torch_pin_channels(s, NULL);
    s->wire =
        bind(s, close_part(s, NULL),
             s->class->in_channels ? free_name(s, stmt->name) : numbered(s, stmt->name, index));
    s->is_fresh = false;
    add_result(s, stmt, stmt->name, index, s->wire);
}
