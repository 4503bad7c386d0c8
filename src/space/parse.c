/* parse.c: YAML -> space. Two passes: first every name that may be used before it is written (choices
 * and the templates' signatures), then the bodies. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/scope.h"

/* More than anybody writes by hand; they bound the time that searching by name takes. */
enum {
    MAX_GENES = 4096,
    MAX_VALUES = 4096,
    MAX_TEMPLATES = 1000,
    MAX_PARAMETERS = 64,
    MAX_SLOTS = 1000,
    MAX_TENSORS = 256,
    MAX_CONSTRAINTS = 256,
    MAX_NAME = 64
};

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static char *trimmed(hwnas_arena *arena, const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return hwnas_arena_string(arena, text, n);
}

/* A new name must be a word, and none that always means something else. */
static hwnas_status check_name(const char *name, const char *what, const hwnas_place *place)
{
    static const char *const taken[] = {"in", "true", "false", "yes", "no", "or", "and", "not", NULL};
    if (!is_name(name))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, place, "'%.60s' cannot be the name of %s", name, what),
            "a name has letters, digits and _, and does not begin with a digit");
    if (strlen(name) > MAX_NAME)
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "the name of %s is longer than %d letters: '%.40s...'", what, MAX_NAME,
                          name);
    for (const char *const *t = taken; *t; t++)
        if (!strcmp(*t, name))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, place,
                           "'%s' has a meaning of its own, %s needs another name", name, what),
                t == taken ? "in is the number of channels of the current tensor" : "");
    return HWNAS_OK;
}

/* ---- Scope ---- */

static int scope_bind(hwnas_scope *scope, const char *name)
{
    if (scope->n == scope->capacity) {
        scope->capacity = scope->capacity ? 2 * scope->capacity : 16;
        scope->names = hwnas_realloc(scope->names, scope->capacity * sizeof *scope->names);
        scope->is_visible =
            hwnas_realloc(scope->is_visible, scope->capacity * sizeof *scope->is_visible);
    }
    scope->names[scope->n] = name;
    scope->is_visible[scope->n] = true;
    return (int)scope->n++;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_symbol(const hwnas_space *space, const char *name)
{
    return space->n_symbols &&
           bsearch(&name, space->symbols, space->n_symbols, sizeof name, compare_text);
}

/* A new variable; a value of a choice would be hidden by it without a word. */
static hwnas_status bind_variable(int *out, hwnas_scope *scope, const char *name, const char *what,
                                  const hwnas_place *place)
{
    TRY(check_name(name, what, place));
    if (is_symbol(scope->space, name))
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "'%s' is a value of a choice, %s needs another name", name, what);
    if (scope->n == MAX_SLOTS)
        return hwnas_fail(HWNAS_E_INPUT, place, "more than %d variables in one template",
                          MAX_SLOTS);
    *out = scope_bind(scope, name);
    return HWNAS_OK;
}

/* Ends the life of the names bound since the scope had `n`. */
static void scope_leave(hwnas_scope *scope, size_t n)
{
    for (size_t i = n; i < scope->n; i++)
        scope->is_visible[i] = false;
}

static void scope_done(hwnas_scope *scope)
{
    free(scope->names);
    free(scope->is_visible);
    free(scope->tensors);
}

/* ---- Expressions ---- */

static hwnas_status parse_expr(hwnas_expr **out, const hwnas_scope *scope, const hwnas_yaml *node,
                               const char *what)
{
    if (node->kind == HWNAS_YAML_SEQUENCE) {
        hwnas_arena *arena = scope->space->arena;
        hwnas_expr *list = hwnas_arena_alloc(arena, sizeof *list);
        *list = (hwnas_expr){
            .kind = HWNAS_EXPR_LIST, .place = node->place, .size = 1, .n_args = node->n};
        list->args = hwnas_arena_alloc(arena, node->n * sizeof *list->args);
        for (size_t i = 0; i < node->n; i++) {
            TRY(parse_expr(&list->args[i], scope, node->items[i], what));
            list->size += list->args[i]->size;
        }
        *out = list;
        return HWNAS_OK;
    }
    const char *text;
    char name[MAX_NAME + 3];
    snprintf(name, sizeof name, "'%.*s'", MAX_NAME, what);
    TRY(hwnas_yaml_text(&text, node, name));
    hwnas_place place = node->place;
    place.column += node->is_quoted && node->is_verbatim; /* the text begins after the quote */
    return hwnas_expr_parse(out, scope, text, &place, node->is_verbatim);
}

/* The first name in an expression, or NULL. */
static const hwnas_expr *find_name(const hwnas_expr *expr)
{
    const hwnas_expr *found = NULL;
    if (expr->kind == HWNAS_EXPR_VARIABLE || expr->kind == HWNAS_EXPR_CHOICE ||
        expr->kind == HWNAS_EXPR_TENSOR)
        return expr;
    for (size_t i = 0; i < expr->n_args && !found; i++)
        found = find_name(expr->args[i]);
    return found;
}

/* A value that uses no name: a number or a symbol. */
static hwnas_status parse_constant(hwnas_value *out, const hwnas_scope *empty,
                                   const hwnas_yaml *node, const char *what)
{
    hwnas_expr *expr;
    hwnas_frame frame = {0};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SCALAR, what));
    TRY(parse_expr(&expr, empty, node, what));
    const hwnas_expr *name = find_name(expr);
    if (name)
        return hwnas_fail(HWNAS_E_INPUT, &name->place, "%s must be constant, '%s' is %s", what,
                          name->name,
                          name->kind == HWNAS_EXPR_CHOICE ? "a choice" : "a fact of the tensor");
    return hwnas_expr_eval(out, expr, &frame, empty->space->arena);
}

/* ---- Choices ---- */

/* The values of one position: a non-empty list of different constants. */
static hwnas_status parse_domain(hwnas_gene *gene, const hwnas_scope *empty, const hwnas_yaml *node,
                                 const char *choice)
{
    hwnas_arena *arena = empty->space->arena;
    if (node->n == 0 || node->n > MAX_VALUES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs 1 to %d values, not %zu", choice,
                          MAX_VALUES, node->n);
    hwnas_value *values = hwnas_arena_alloc(arena, node->n * sizeof *values);
    const char **labels = hwnas_arena_alloc(arena, node->n * sizeof *labels);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_constant(&values[i], empty, node->items[i], "a value of a choice"));
        labels[i] = node->items[i]->text;
        if (strpbrk(labels[i], ":,= \n\t"))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                         "a value may not hold a blank, ':', ',' or '=': '%.60s'",
                                         labels[i]),
                              "these characters join the values of an architecture's code");
        for (size_t j = 0; j < i; j++)
            if (hwnas_value_equal(&values[i], &values[j]))
                return hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                  "'%s' has this value twice: '%.60s' and '%.60s'", choice,
                                  labels[j], labels[i]);
    }
    gene->n_values = node->n;
    gene->values = values;
    gene->labels = labels;
    return HWNAS_OK;
}

/* The condition of a choice sees the choices above it and `i`, the position. */
static hwnas_status parse_when(hwnas_choice *choice, hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope scope = {.space = space};
    scope_bind(&scope, "i");
    hwnas_status status = parse_expr(&choice->when, &scope, node, "when");
    scope_done(&scope);
    space->has_rules = true;
    return status;
}

static hwnas_status parse_choice(hwnas_space *space, size_t index, const hwnas_scope *empty,
                                 const hwnas_yaml *key, const hwnas_yaml *node)
{
    static const char *const keys[] = {"values", "each_of", "when", NULL};
    hwnas_choice *choice = &space->choices[index];
    *choice = (hwnas_choice){
        .name = key->text, .place = key->place, .first_gene = space->n_genes, .n_positions = 1};
    TRY(check_name(choice->name, "a choice", &choice->place));
    if (node->kind != HWNAS_YAML_MAPPING)
        return hwnas_hint(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "a choice"),
                          "write %s: {values: [1, 2, 3]}", choice->name);
    TRY(hwnas_yaml_check_keys(node, "a choice", keys));
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    const hwnas_yaml *each_of = hwnas_yaml_get(node, "each_of");
    if (!values)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' has no values", choice->name),
                          "write %s: {values: [1, 2, 3]}", choice->name);
    TRY(hwnas_yaml_expect(values, HWNAS_YAML_SEQUENCE, "values"));
    bool nested = values->n > 0 && values->items[0]->kind == HWNAS_YAML_SEQUENCE;
    choice->is_vector = nested || each_of;
    if (nested && each_of)
        return hwnas_fail(HWNAS_E_INPUT, &each_of->place,
                          "'%s' has a list of values for each position already", choice->name);
    int64_t n = nested ? (int64_t)values->n : 1;
    if (each_of)
        TRY(hwnas_yaml_int(&n, each_of, "each_of", 1, MAX_GENES));
    if (space->n_genes + (size_t)n > MAX_GENES) /* before any is stored */
        return hwnas_fail(HWNAS_E_INPUT, &node->place,
                          "a space has at most %d positions to choose for", MAX_GENES);
    choice->n_positions = (size_t)n;
    choice->short_labels = true;
    choice->separator = '.';
    for (size_t p = 0; p < choice->n_positions; p++) {
        hwnas_gene *gene = &space->genes[space->n_genes + p];
        const hwnas_yaml *domain = nested ? values->items[p] : values;
        TRY(hwnas_yaml_expect(domain, HWNAS_YAML_SEQUENCE, "the values of a position"));
        if (p > 0 && !nested)
            *gene = gene[-1];
        else
            TRY(parse_domain(gene, empty, domain, choice->name));
        gene->choice = index;
        gene->position = p;
        for (size_t v = 0; v < gene->n_values; v++) {
            choice->short_labels &= strlen(gene->labels[v]) == 1;
            if (strchr(gene->labels[v], '.'))
                choice->separator = ':';
        }
    }
    space->n_genes += choice->n_positions;
    const hwnas_yaml *when = hwnas_yaml_get(node, "when");
    return when ? parse_when(choice, space, when) : HWNAS_OK;
}

/* The words among the values, sorted; none may be the name of a choice too. */
static hwnas_status collect_symbols(hwnas_space *space)
{
    size_t room = 1;
    for (size_t g = 0; g < space->n_genes; g++)
        room += g == 0 || space->genes[g].values != space->genes[g - 1].values
                    ? space->genes[g].n_values
                    : 0;
    space->symbols = hwnas_arena_alloc(space->arena, room * sizeof *space->symbols);
    for (size_t g = 0; g < space->n_genes; g++)
        for (size_t v = 0; v < space->genes[g].n_values; v++)
            if ((g == 0 || space->genes[g].values != space->genes[g - 1].values) &&
                space->genes[g].values[v].kind == HWNAS_VALUE_SYMBOL)
                space->symbols[space->n_symbols++] = space->genes[g].values[v].s;
    if (space->n_symbols)
        qsort(space->symbols, space->n_symbols, sizeof *space->symbols, compare_text);
    for (size_t c = 0; c < space->n_choices; c++)
        if (is_symbol(space, space->choices[c].name))
            return hwnas_fail(HWNAS_E_INPUT, &space->choices[c].place,
                              "'%s' is the name of a choice and a value of one",
                              space->choices[c].name);
    return HWNAS_OK;
}

static hwnas_status parse_choices(hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "choices"));
    if (node->n > MAX_GENES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d choices", MAX_GENES);
    space->choices = hwnas_arena_alloc(space->arena, node->n * sizeof *space->choices);
    space->genes = hwnas_arena_alloc(space->arena, MAX_GENES * sizeof *space->genes);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_choice(space, i, &empty, node->keys[i], node->items[i]));
        space->n_choices++; /* those below see it */
    }
    return collect_symbols(space);
}

/* ---- Statements ---- */

static hwnas_status parse_body(hwnas_body *out, hwnas_scope *scope, const hwnas_yaml *node,
                               const char *what);

static hwnas_template *find_template(const hwnas_space *space, const char *name)
{
    for (size_t i = 0; i < space->n_templates; i++)
        if (!strcmp(space->templates[i]->name, name))
            return space->templates[i];
    return NULL;
}

/* With `binds`, each name is a variable that those below it can use. */
static hwnas_status parse_args(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node,
                               bool binds)
{
    stmt->n_args = node->n;
    stmt->args = hwnas_arena_alloc(scope->space->arena, node->n * sizeof *stmt->args);
    for (size_t i = 0; i < node->n; i++) {
        hwnas_arg *arg = &stmt->args[i];
        arg->name = node->keys[i]->text;
        arg->place = node->keys[i]->place;
        TRY(parse_expr(&arg->value, scope, node->items[i], arg->name));
        if (binds)
            TRY(bind_variable(&arg->slot, scope, arg->name, "a variable", &arg->place));
    }
    return HWNAS_OK;
}

/* Gives each argument of a template's call its parameter. */
static hwnas_status match_parameters(hwnas_stmt *stmt)
{
    const hwnas_template *call = stmt->call;
    for (size_t i = 0; i < stmt->n_args; i++) {
        const char *names[MAX_PARAMETERS + 1] = {0};
        hwnas_arg *arg = &stmt->args[i];
        arg->slot = -1;
        for (size_t p = 0; p < call->n_parameters; p++) {
            names[p] = call->parameters[p].name;
            if (!strcmp(names[p], arg->name))
                arg->slot = (int)p;
        }
        if (arg->slot >= 0)
            continue;
        hwnas_status status = hwnas_fail(HWNAS_E_INPUT, &arg->place, "'%s' has no parameter '%.60s'",
                                         call->name, arg->name);
        const char *near = hwnas_nearest(arg->name, names);
        if (near)
            return hwnas_hint(status, "did you mean '%s'?", near);
        hwnas_str list = {0};
        for (size_t p = 0; p < call->n_parameters; p++)
            hwnas_str_addf(&list, "%s%s", p ? ", " : "", names[p]);
        hwnas_hint(status, "its parameters: %.400s", list.s ? list.s : "none");
        hwnas_str_done(&list);
        return status;
    }
    for (size_t p = 0; p < call->n_parameters; p++) {
        bool given = call->parameters[p].fallback;
        for (size_t i = 0; i < stmt->n_args; i++)
            given |= stmt->args[i].slot == (int)p;
        if (!given)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' needs '%s'", call->name,
                                         call->parameters[p].name),
                              "write %s: {%s: ...}, or give the parameter a default: %s = ...",
                              call->name, call->parameters[p].name, call->parameters[p].name);
    }
    return HWNAS_OK;
}

/* A word that takes layers, not branches, may be meant: "resdual: [relu]". */
static hwnas_status check_branch(const hwnas_stmt *stmt, const hwnas_yaml *node)
{
    static const char *const words[] = {"residual", "then", "else", "do", NULL};
    if (node->kind == HWNAS_YAML_SEQUENCE || (node->kind == HWNAS_YAML_SCALAR && !*node->text))
        return HWNAS_OK;
    const char *near = hwnas_nearest(stmt->name, words);
    hwnas_status status = hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "a branch");
    return near ? hwnas_hint(status, "did you mean '%s'?", near)
                : hwnas_hint(status, "write %.60s: [[...], [...]]", stmt->name);
}

/* "conv: 3", or a misspelt word that does take a single value: "form: x". */
static hwnas_status single_value(const hwnas_stmt *stmt, const hwnas_yaml *value)
{
    const char *words[16] = {0};
    for (size_t i = 0; hwnas_stmt_word(i) && i < 15; i++)
        words[i] = hwnas_stmt_word(i);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &value->place, "'%.60s' takes 'name: value', not '%.60s'",
                   stmt->name, value->text);
    const char *near = stmt->call ? NULL : hwnas_nearest(stmt->name, words);
    return near ? hwnas_hint(status, "did you mean '%s'?", near)
                : hwnas_hint(status, "write %.60s: {NAME: %.60s}", stmt->name, value->text);
}

/* - NAME, - NAME: {args} or - NAME: [[..], [..]] */
static hwnas_status parse_layer(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *args = NULL;
    if (node->kind == HWNAS_YAML_MAPPING) {
        if (node->n != 1)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->keys[1]->place,
                                         "the layer '%.60s' does not know '%.60s'",
                                         node->keys[0]->text, node->keys[1]->text),
                              "indent the arguments of a layer below its name");
        stmt->name = node->keys[0]->text;
        args = node->items[0];
    } else {
        TRY(hwnas_yaml_text(&stmt->name, node, "a layer"));
    }
    stmt->kind = HWNAS_STMT_LAYER;
    stmt->call = find_template(scope->space, stmt->name);
    if (args && args->kind == HWNAS_YAML_SEQUENCE) {
        stmt->kind = HWNAS_STMT_JOIN;
        stmt->n_bodies = args->n;
        stmt->bodies = hwnas_arena_alloc(scope->space->arena, args->n * sizeof *stmt->bodies);
        if (stmt->call)
            return hwnas_fail(HWNAS_E_INPUT, &args->place, "a template takes 'name: value', no list");
        for (size_t i = 0; i < args->n; i++) {
            TRY(check_branch(stmt, args->items[i]));
            TRY(parse_body(&stmt->bodies[i], scope, args->items[i], "a branch"));
        }
        return HWNAS_OK;
    }
    if (args && args->kind == HWNAS_YAML_MAPPING)
        TRY(parse_args(stmt, scope, args, false));
    else if (args && *args->text)
        return single_value(stmt, args);
    return stmt->call ? match_parameters(stmt) : HWNAS_OK;
}

static hwnas_status need(const hwnas_yaml **out, const hwnas_yaml *node, const char *key)
{
    *out = hwnas_yaml_get(node, key);
    if (*out)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs '%s:' below it, in the same column",
                      node->keys[0]->text, key);
}

static hwnas_body *new_bodies(hwnas_stmt *stmt, hwnas_scope *scope, size_t n)
{
    stmt->n_bodies = n;
    return stmt->bodies = hwnas_arena_alloc(scope->space->arena, n * sizeof *stmt->bodies);
}

static hwnas_status parse_residual(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *when = hwnas_yaml_get(node, "when");
    if (when)
        TRY(parse_expr(&stmt->expr, scope, when, "when"));
    return parse_body(new_bodies(stmt, scope, 1), scope, node->items[0], "residual");
}

static hwnas_status parse_let(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node->items[0], HWNAS_YAML_MAPPING, "let"));
    return parse_args(stmt, scope, node->items[0], true);
}

static hwnas_status parse_if(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *then, *otherwise = hwnas_yaml_get(node, "else");
    TRY(parse_expr(&stmt->expr, scope, node->items[0], "if"));
    TRY(need(&then, node, "then"));
    new_bodies(stmt, scope, otherwise ? 2 : 1);
    TRY(parse_body(&stmt->bodies[0], scope, then, "then"));
    if (otherwise)
        TRY(parse_body(&stmt->bodies[1], scope, otherwise, "else"));
    return HWNAS_OK;
}

static hwnas_status parse_switch(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = scope->space};
    const hwnas_yaml *cases;
    TRY(parse_expr(&stmt->expr, scope, node->items[0], "switch"));
    TRY(need(&cases, node, "cases"));
    TRY(hwnas_yaml_expect(cases, HWNAS_YAML_MAPPING, "cases"));
    new_bodies(stmt, scope, cases->n);
    stmt->labels = hwnas_arena_alloc(scope->space->arena, cases->n * sizeof *stmt->labels);
    for (size_t i = 0; i < cases->n; i++) {
        TRY(parse_constant(&stmt->labels[i], &empty, cases->keys[i], "a case"));
        for (size_t j = 0; j < i && j < MAX_VALUES; j++)
            if (hwnas_value_equal(&stmt->labels[i], &stmt->labels[j]))
                return hwnas_fail(HWNAS_E_INPUT, &cases->keys[i]->place,
                                  "the cases '%.60s' and '%.60s' have the same value",
                                  cases->keys[j]->text, cases->keys[i]->text);
        TRY(parse_body(&stmt->bodies[i], scope, cases->items[i], "a case"));
    }
    return HWNAS_OK;
}

static hwnas_status parse_for(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *body;
    size_t outside = scope->n;
    TRY(hwnas_yaml_expect(node->items[0], HWNAS_YAML_MAPPING, "for"));
    if (node->items[0]->n == 0)
        return hwnas_fail(HWNAS_E_INPUT, &node->items[0]->place,
                          "'for' needs a list to walk over: {NAME: LIST}");
    TRY(parse_args(stmt, scope, node->items[0], false));
    for (size_t i = 0; i < stmt->n_args; i++)
        TRY(bind_variable(&stmt->args[i].slot, scope, stmt->args[i].name, "a variable",
                          &stmt->args[i].place));
    TRY(need(&body, node, "do"));
    TRY(parse_body(new_bodies(stmt, scope, 1), scope, body, "do"));
    scope_leave(scope, outside);
    return HWNAS_OK;
}

static hwnas_status parse_repeat(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *body, *index = hwnas_yaml_get(node, "index");
    size_t outside = scope->n;
    TRY(parse_expr(&stmt->expr, scope, node->items[0], "repeat"));
    stmt->name = "i";
    if (index)
        TRY(hwnas_yaml_text(&stmt->name, index, "index"));
    TRY(bind_variable(&stmt->slot, scope, stmt->name, "a variable",
                      index ? &index->place : &node->place));
    TRY(need(&body, node, "do"));
    TRY(parse_body(new_bodies(stmt, scope, 1), scope, body, "do"));
    scope_leave(scope, outside);
    return HWNAS_OK;
}

/* The slot of a tensor's name; a new one for a name that was not met yet. */
static hwnas_status find_tensor(int *out, hwnas_scope *scope, const char *name,
                                const hwnas_place *place)
{
    for (size_t i = 0; i < scope->n_tensors; i++)
        if (!strcmp(scope->tensors[i].name, name)) {
            *out = (int)i;
            return HWNAS_OK;
        }
    TRY(check_name(name, "a tensor", place));
    if (scope->n_tensors == MAX_TENSORS)
        return hwnas_fail(HWNAS_E_INPUT, place, "more than %d names of tensors in one template",
                          MAX_TENSORS);
    scope->tensors =
        hwnas_realloc(scope->tensors, (scope->n_tensors + 1) * sizeof *scope->tensors);
    scope->tensors[scope->n_tensors] = (hwnas_tensor_name){.name = name, .place = *place};
    *out = (int)scope->n_tensors++;
    return HWNAS_OK;
}

/* NAME or NAME[INDEX] */
static hwnas_status parse_tensor(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const char *text;
    TRY(hwnas_yaml_text(&text, node, "the name of a tensor"));
    hwnas_place place = node->place;
    place.column += node->is_quoted && node->is_verbatim;
    const char *open = strchr(text, '[');
    size_t n = open ? (size_t)(open - text) : strlen(text);
    stmt->name = trimmed(scope->space->arena, text, n);
    TRY(find_tensor(&stmt->slot, scope, stmt->name, &place));
    if (!open)
        return HWNAS_OK;
    size_t length = strlen(open);
    if (open[length - 1] != ']')
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "'%.60s' does not end with ']'", text),
                          "write NAME or NAME[INDEX]");
    hwnas_place from = place;
    from.column += node->is_verbatim ? (int)n + 1 : 0;
    return hwnas_expr_parse(&stmt->expr, scope,
                            hwnas_arena_string(scope->space->arena, open + 1, length - 2), &from,
                            node->is_verbatim);
}

static hwnas_status parse_as(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    TRY(parse_tensor(stmt, scope, node->items[0]));
    scope->tensors[stmt->slot].is_given = true;
    return HWNAS_OK;
}

static hwnas_status parse_from(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    return parse_tensor(stmt, scope, node->items[0]);
}

/* Every name that a `from` asks for is given by some `as` of the template, before or in a loop. */
static hwnas_status check_tensors(const hwnas_scope *scope)
{
    const char *given[MAX_TENSORS + 1] = {0};
    size_t n = 0;
    for (size_t i = 0; i < scope->n_tensors; i++)
        if (scope->tensors[i].is_given)
            given[n++] = scope->tensors[i].name;
    for (size_t i = 0; i < scope->n_tensors; i++) {
        const hwnas_tensor_name *t = &scope->tensors[i];
        if (t->is_given)
            continue;
        const char *near = hwnas_nearest(t->name, given);
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &t->place, "no 'as' gives a tensor the name '%.60s'", t->name),
            near ? "did you mean '%s'?" : "write - as: %s where the tensor is the current one",
            near ? near : t->name);
    }
    return HWNAS_OK;
}

/* Statements that are not layers: the word that begins them and the keys that may stand beside. */
static const struct keyword {
    hwnas_stmt_kind kind;
    const char *keys[4];
    hwnas_status (*parse)(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node);
} keywords[] = {
    {HWNAS_STMT_RESIDUAL, {"residual", "when", NULL}, parse_residual},
    {HWNAS_STMT_LET, {"let", NULL}, parse_let},
    {HWNAS_STMT_IF, {"if", "then", "else", NULL}, parse_if},
    {HWNAS_STMT_SWITCH, {"switch", "cases", NULL}, parse_switch},
    {HWNAS_STMT_FOR, {"for", "do", NULL}, parse_for},
    {HWNAS_STMT_REPEAT, {"repeat", "index", "do", NULL}, parse_repeat},
    {HWNAS_STMT_AS, {"as", NULL}, parse_as},
    {HWNAS_STMT_FROM, {"from", NULL}, parse_from},
};

const char *hwnas_stmt_word(size_t i)
{
    return i < sizeof keywords / sizeof *keywords ? keywords[i].keys[0] : NULL;
}

static const struct keyword *find_keyword(const char *word)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (!strcmp(keywords[i].keys[0], word))
            return &keywords[i];
    return NULL;
}

/* The statement that a mapping is, by any of its keys; its word is moved to the front. */
static const struct keyword *find_statement(const hwnas_yaml *node)
{
    const struct keyword *keyword = NULL;
    for (size_t i = 0; i < node->n && !keyword; i++) {
        keyword = find_keyword(node->keys[i]->text);
        if (keyword && i > 0) {
            hwnas_yaml *key = node->keys[0], *item = node->items[0];
            node->keys[0] = node->keys[i], node->items[0] = node->items[i];
            node->keys[i] = key, node->items[i] = item;
        }
    }
    return keyword;
}

static hwnas_status parse_stmt(hwnas_stmt **out, hwnas_scope *scope, const hwnas_yaml *node)
{
    hwnas_stmt *stmt = hwnas_arena_alloc(scope->space->arena, sizeof *stmt);
    stmt->place = node->place;
    if (node->kind == HWNAS_YAML_SEQUENCE || (node->kind == HWNAS_YAML_MAPPING && node->n == 0))
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a layer was expected: - NAME or - NAME: {...}");
    const struct keyword *keyword =
        node->kind == HWNAS_YAML_MAPPING ? find_statement(node) : find_keyword(node->text);
    if (keyword && node->kind != HWNAS_YAML_MAPPING)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' stands alone", node->text),
                          "write - %s: ...", node->text);
    if (keyword) {
        stmt->kind = keyword->kind;
        TRY(hwnas_yaml_check_keys(node, keyword->keys[0], keyword->keys));
        TRY(keyword->parse(stmt, scope, node));
    } else {
        TRY(parse_layer(stmt, scope, node));
    }
    *out = stmt;
    return HWNAS_OK;
}

static hwnas_status parse_body(hwnas_body *out, hwnas_scope *scope, const hwnas_yaml *node,
                               const char *what)
{
    size_t outside = scope->n;
    *out = (hwnas_body){0};
    if (node->kind == HWNAS_YAML_SCALAR && !*node->text)
        return HWNAS_OK; /* "then:" with nothing below */
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, what));
    out->stmts = hwnas_arena_alloc(scope->space->arena, node->n * sizeof *out->stmts);
    for (; out->n < node->n; out->n++)
        TRY(parse_stmt(&out->stmts[out->n], scope, node->items[out->n]));
    scope_leave(scope, outside);
    return HWNAS_OK;
}

/* ---- Templates ---- */

static hwnas_status bad_signature(const hwnas_yaml *key)
{
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &key->place,
                                 "the parameters of '%.80s' do not end with ')'", key->text),
                      "write NAME(a, b = 1): and the list of its layers below");
}

/* One parameter, "name" or "name = default", at text[0..n); the default sees those before it. */
static hwnas_status parse_parameter(hwnas_template *t, hwnas_scope *scope, const hwnas_yaml *key,
                                    const char *text, size_t n)
{
    hwnas_arena *arena = scope->space->arena;
    hwnas_parameter *parameter = &t->parameters[t->n_parameters];
    const char *equals = memchr(text, '=', n);
    hwnas_place place = key->place;
    size_t blanks = strspn(text, " ");
    place.column += key->is_verbatim ? (int)(text - key->text) + (int)(blanks < n ? blanks : 0) : 0;
    parameter->name = trimmed(arena, text, equals ? (size_t)(equals - text) : n);
    for (size_t i = 0; i < t->n_parameters; i++)
        if (!strcmp(t->parameters[i].name, parameter->name))
            return hwnas_fail(HWNAS_E_INPUT, &place, "the parameter '%s' stands twice",
                              parameter->name);
    if (equals) {
        const char *value = equals + 1;
        while (value < text + n && isspace((unsigned char)*value))
            value++;
        hwnas_place from = key->place;
        from.column += key->is_verbatim ? (int)(value - key->text) : 0;
        TRY(hwnas_expr_parse(&parameter->fallback, scope,
                             trimmed(arena, value, (size_t)(text + n - value)), &from,
                             key->is_verbatim));
    }
    int slot;
    TRY(bind_variable(&slot, scope, parameter->name, "a parameter", &place));
    t->n_parameters++;
    return HWNAS_OK;
}

/* Length of a parameter: up to a comma that stands in no brackets, or the end. */
static size_t parameter_length(const char *text, const char *end)
{
    int depth = 0;
    const char *at = text;
    for (; at < end && (depth > 0 || *at != ','); at++)
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    return (size_t)(at - text);
}

/* "(out, kernel = 1)" */
static hwnas_status parse_parameters(hwnas_template *t, hwnas_space *space, const hwnas_yaml *key,
                                     const char *open)
{
    hwnas_status status = HWNAS_OK;
    hwnas_scope scope = {.space = space};
    const char *close = open + strlen(open) - 1;
    if (*close != ')')
        return bad_signature(key);
    t->parameters = hwnas_arena_alloc(space->arena, MAX_PARAMETERS * sizeof *t->parameters);
    for (const char *at = open + 1; at < close;) {
        size_t length = parameter_length(at, close);
        if (t->n_parameters == MAX_PARAMETERS)
            status = hwnas_fail(HWNAS_E_INPUT, &key->place, "a template has at most %d parameters",
                                MAX_PARAMETERS);
        else
            status = parse_parameter(t, &scope, key, at, length);
        if (status != HWNAS_OK)
            break;
        at += length + 1;
    }
    scope_done(&scope);
    return status;
}

/* "conv_bn(out, kernel = 1)" */
static hwnas_status parse_signature(hwnas_template **out, hwnas_space *space, const hwnas_yaml *key)
{
    hwnas_template *t = hwnas_arena_alloc(space->arena, sizeof *t);
    t->place = key->place;
    const char *open = strchr(key->text, '(');
    size_t n = open ? (size_t)(open - key->text) : strlen(key->text);
    t->name = trimmed(space->arena, key->text, n);
    TRY(check_name(t->name, "a template", &key->place));
    if (find_keyword(t->name))
        return hwnas_fail(HWNAS_E_INPUT, &key->place,
                          "'%s' is a word of the language, a template needs another name", t->name);
    const hwnas_template *other = find_template(space, t->name);
    if (other)
        return hwnas_fail(HWNAS_E_INPUT, &key->place, "the template '%s' is already on line %d",
                          t->name, other->place.line);
    if (open)
        TRY(parse_parameters(t, space, key, open));
    *out = t;
    return HWNAS_OK;
}

static hwnas_status parse_template_body(hwnas_space *space, hwnas_template *t,
                                        const hwnas_yaml *node, const char *what)
{
    hwnas_scope scope = {.space = space};
    for (size_t i = 0; i < t->n_parameters; i++)
        scope_bind(&scope, t->parameters[i].name);
    hwnas_status status = parse_body(&t->body, &scope, node, what);
    t->n_slots = scope.n;
    t->slot_names = hwnas_arena_copy(space->arena, scope.names, scope.n * sizeof *scope.names);
    t->n_tensors = scope.n_tensors;
    t->tensor_names = hwnas_arena_alloc(space->arena, (scope.n_tensors + 1) * sizeof *t->tensor_names);
    for (size_t i = 0; i < scope.n_tensors; i++)
        t->tensor_names[i] = scope.tensors[i].name;
    if (status == HWNAS_OK)
        status = check_tensors(&scope);
    scope_done(&scope);
    return status;
}

/* The templates that are being entered, outermost first. */
typedef struct call_path {
    const hwnas_template *templates[HWNAS_MAX_CALL_DEPTH];
    size_t depth;
} call_path;

static hwnas_status check_template(hwnas_template *t, call_path *path);

static hwnas_status check_calls(const hwnas_body *body, call_path *path)
{
    for (size_t i = 0; i < body->n; i++) {
        const hwnas_stmt *stmt = body->stmts[i];
        for (size_t b = 0; b < stmt->n_bodies; b++)
            TRY(check_calls(&stmt->bodies[b], path));
        if (!stmt->call)
            continue;
        for (size_t d = 0; d < path->depth; d++)
            if (path->templates[d] == stmt->call)
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                                             "the template '%s' contains itself", stmt->call->name),
                                  path->depth - d > 1 ? "it gets here through '%s'"
                                                      : "use repeat inside of '%s' instead",
                                  path->templates[path->depth - 1]->name);
        if (path->depth == HWNAS_MAX_CALL_DEPTH)
            return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "more than %d templates inside each other",
                              HWNAS_MAX_CALL_DEPTH);
        TRY(check_template(stmt->call, path));
    }
    return HWNAS_OK;
}

/* Depth-first; each template is entered once, however often it is called. */
static hwnas_status check_template(hwnas_template *t, call_path *path)
{
    if (t->is_checked)
        return HWNAS_OK;
    path->templates[path->depth++] = t;
    TRY(check_calls(&t->body, path));
    path->depth--;
    t->is_checked = true;
    return HWNAS_OK;
}

static hwnas_status check_recursion(hwnas_space *space)
{
    for (size_t i = 0; i < space->n_templates; i++) {
        call_path path = {.depth = 0};
        TRY(check_template(space->templates[i], &path));
    }
    return HWNAS_OK;
}

static hwnas_status parse_templates(hwnas_space *space, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "templates"));
    if (node->n > MAX_TEMPLATES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d templates",
                          MAX_TEMPLATES);
    space->templates = hwnas_arena_alloc(space->arena, node->n * sizeof *space->templates);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_signature(&space->templates[i], space, node->keys[i]));
        space->n_templates++;
    }
    for (size_t i = 0; i < node->n; i++)
        TRY(parse_template_body(space, space->templates[i], node->items[i], "a template"));
    return check_recursion(space);
}

/* ---- The file ---- */

static hwnas_status parse_input(hwnas_space *space, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "input"));
    if (node->n != 1)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "a network has one input"),
                          "write input: {image: [3, 224, 224]}");
    const hwnas_yaml *dims = node->items[0];
    TRY(hwnas_yaml_expect(dims, HWNAS_YAML_SEQUENCE, "the shape of the input"));
    if (dims->n < 1 || dims->n > 7)
        return hwnas_fail(HWNAS_E_INPUT, &dims->place, "an input has 1 to 7 dimensions beside the batch");
    space->input_name = node->keys[0]->text;
    TRY(check_name(space->input_name, "an input", &node->keys[0]->place));
    space->input_place = dims->place;
    space->n_dims = (int)dims->n;
    hwnas_scope scope = {.space = space}; /* choices only */
    for (size_t i = 0; i < dims->n; i++)
        TRY(parse_expr(&space->dims[i], &scope, dims->items[i], "a dimension of the input"));
    return HWNAS_OK;
}

static hwnas_status parse_constraints(hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope scope = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "constraints"));
    if (node->n > MAX_CONSTRAINTS)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d constraints",
                          MAX_CONSTRAINTS);
    space->constraints = hwnas_arena_alloc(space->arena, (node->n + 1) * sizeof *space->constraints);
    for (size_t i = 0; i < node->n; i++)
        TRY(parse_expr(&space->constraints[i], &scope, node->items[i], "a constraint"));
    space->n_constraints = node->n;
    space->has_rules |= node->n > 0;
    return HWNAS_OK;
}

static hwnas_status parse_file(hwnas_space *space, const hwnas_yaml *root)
{
    static const char *const keys[] = {"hwnas",       "name",      "about",   "input", "choices",
                                       "constraints", "templates", "network", NULL};
    static const char *const required[] = {"hwnas", "name", "input", "network", NULL};
    int64_t version;
    TRY(hwnas_yaml_expect(root, HWNAS_YAML_MAPPING, "a space"));
    const hwnas_yaml *written = hwnas_yaml_get(root, "hwnas"); /* before what it may have changed */
    if (written) {
        TRY(hwnas_yaml_int(&version, written, "'hwnas'", INT64_MIN, INT64_MAX));
        if (version != 1)
            return hwnas_fail(HWNAS_E_INPUT, &written->place,
                              "this hwnas reads version 1 of the language, not %lld",
                              (long long)version);
    }
    TRY(hwnas_yaml_check_keys(root, "a space", keys));
    for (const char *const *key = required; *key; key++)
        if (!hwnas_yaml_get(root, *key))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &root->place, "a space needs '%s:'", *key),
                              !strcmp(*key, "hwnas") ? "write hwnas: 1, the version of the language"
                                                     : "docs/search-spaces.md shows a whole one");
    const hwnas_yaml *name = hwnas_yaml_get(root, "name");
    TRY(hwnas_yaml_text(&space->name, name, "name"));
    TRY(check_name(space->name, "a space", &name->place));
    if (hwnas_yaml_get(root, "about"))
        TRY(hwnas_yaml_text(&space->about, hwnas_yaml_get(root, "about"), "about"));
    if (hwnas_yaml_get(root, "choices"))
        TRY(parse_choices(space, hwnas_yaml_get(root, "choices")));
    TRY(parse_input(space, hwnas_yaml_get(root, "input")));
    if (hwnas_yaml_get(root, "constraints"))
        TRY(parse_constraints(space, hwnas_yaml_get(root, "constraints")));
    if (hwnas_yaml_get(root, "templates"))
        TRY(parse_templates(space, hwnas_yaml_get(root, "templates")));
    space->network = hwnas_arena_alloc(space->arena, sizeof *space->network);
    space->network->name = "network";
    space->network->place = hwnas_yaml_get(root, "network")->place;
    TRY(parse_template_body(space, space->network, hwnas_yaml_get(root, "network"), "network"));
    return hwnas_symbols_check(space);
}

hwnas_status hwnas_space_parse(hwnas_space **out, const char *path, const char *text, size_t length)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_space *space = hwnas_arena_alloc(arena, sizeof *space);
    hwnas_yaml *root;
    space->arena = arena;
    space->path = hwnas_arena_string(arena, path, strlen(path));
    hwnas_status status = hwnas_yaml_parse(&root, arena, path, text, length);
    if (status == HWNAS_OK)
        status = parse_file(space, root);
    if (status == HWNAS_OK)
        *out = space;
    else
        hwnas_space_free(space);
    return status;
}
