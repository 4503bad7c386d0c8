/* parse.c: YAML -> space. Two passes: first every name that may be used before it is written (choices
 * and the templates' signatures), then the bodies. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/scope.h"

enum { MAX_GENES = 4096, MAX_VALUES = 4096 };

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

/* A new name must be a word, and none that always means something else. */
static hwnas_status check_name(const char *name, const char *what, const hwnas_place *place)
{
    static const char *const taken[] = {"in", "height", "width", "true", "false", "yes",  "no",
                                        "or", "and",    "not",   NULL};
    if (!is_name(name))
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "'%.60s' cannot be the name of %s: letters, digits and _ only", name, what);
    for (const char *const *t = taken; *t; t++)
        if (!strcmp(*t, name))
            return hwnas_fail(HWNAS_E_INPUT, place, "'%s' has a meaning of its own, %s needs another name",
                              name, what);
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
}

/* ---- Expressions ---- */

static hwnas_status parse_expr(hwnas_expr **out, const hwnas_scope *scope, const hwnas_yaml *node,
                               const char *what)
{
    if (node->kind == HWNAS_YAML_SEQUENCE) {
        hwnas_arena *arena = scope->space->arena;
        hwnas_expr *list = hwnas_arena_alloc(arena, sizeof *list);
        *list = (hwnas_expr){.kind = HWNAS_EXPR_LIST, .place = node->place, .n_args = node->n};
        list->args = hwnas_arena_alloc(arena, node->n * sizeof *list->args);
        for (size_t i = 0; i < node->n; i++)
            TRY(parse_expr(&list->args[i], scope, node->items[i], what));
        *out = list;
        return HWNAS_OK;
    }
    const char *text;
    TRY(hwnas_yaml_text(&text, node, what));
    hwnas_place place = node->place;
    place.column += node->is_quoted; /* the text begins after the quote */
    return hwnas_expr_parse(out, scope, text, &place);
}

/* A value that uses no name: a number or a symbol. */
static hwnas_status parse_constant(hwnas_value *out, const hwnas_scope *empty,
                                   const hwnas_yaml *node, const char *what)
{
    hwnas_expr *expr;
    hwnas_frame frame = {0};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SCALAR, what));
    TRY(parse_expr(&expr, empty, node, what));
    if (expr->kind == HWNAS_EXPR_TENSOR)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be constant", what);
    return hwnas_expr_eval(out, expr, &frame, empty->space->arena);
}

/* ---- Choices ---- */

/* The values of one position: a non-empty list of different constants. */
static hwnas_status parse_domain(hwnas_gene *gene, const hwnas_scope *empty, const hwnas_yaml *node,
                                 const char *choice)
{
    hwnas_arena *arena = empty->space->arena;
    if (node->n == 0 || node->n > MAX_VALUES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs 1 to %d values", choice,
                          MAX_VALUES);
    hwnas_value *values = hwnas_arena_alloc(arena, node->n * sizeof *values);
    const char **labels = hwnas_arena_alloc(arena, node->n * sizeof *labels);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_constant(&values[i], empty, node->items[i], "a value of a choice"));
        labels[i] = node->items[i]->text;
        if (strpbrk(labels[i], ".,= ") && values[i].kind != HWNAS_VALUE_REAL)
            return hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                              "a value may not hold a blank, '.', ',' or '=': '%.60s'", labels[i]);
        for (size_t j = 0; j < i; j++)
            if (hwnas_value_equal(&values[i], &values[j]))
                return hwnas_fail(HWNAS_E_INPUT, &node->items[i]->place,
                                  "'%s' is twice among the values of '%s'", labels[i], choice);
    }
    gene->n_values = node->n;
    gene->values = values;
    gene->labels = labels;
    return HWNAS_OK;
}

static hwnas_status parse_choice(hwnas_space *space, size_t index, const hwnas_scope *empty,
                                 const hwnas_yaml *key, const hwnas_yaml *node)
{
    static const char *const keys[] = {"values", "each_of", NULL};
    hwnas_choice *choice = &space->choices[index];
    *choice = (hwnas_choice){
        .name = key->text, .place = key->place, .first_gene = space->n_genes, .n_positions = 1};
    TRY(check_name(choice->name, "a choice", &choice->place));
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
    if (space->n_genes + (size_t)n > MAX_GENES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d positions", MAX_GENES);
    choice->n_positions = (size_t)n;
    choice->short_labels = true;
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
        for (size_t v = 0; v < gene->n_values; v++)
            choice->short_labels &= strlen(gene->labels[v]) == 1;
    }
    space->n_genes += choice->n_positions;
    return HWNAS_OK;
}

static hwnas_status parse_choices(hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "choices"));
    space->choices = hwnas_arena_alloc(space->arena, node->n * sizeof *space->choices);
    space->genes = hwnas_arena_alloc(space->arena, MAX_GENES * sizeof *space->genes);
    for (size_t i = 0; i < node->n; i++)
        TRY(parse_choice(space, i, &empty, node->keys[i], node->items[i]));
    space->n_choices = node->n;
    return HWNAS_OK;
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

static hwnas_status parse_args(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    stmt->n_args = node->n;
    stmt->args = hwnas_arena_alloc(scope->space->arena, node->n * sizeof *stmt->args);
    for (size_t i = 0; i < node->n; i++) {
        hwnas_arg *arg = &stmt->args[i];
        arg->name = node->keys[i]->text;
        arg->place = node->keys[i]->place;
        TRY(parse_expr(&arg->value, scope, node->items[i], arg->name));
    }
    return HWNAS_OK;
}

/* Gives each argument of a template's call its parameter. */
static hwnas_status match_parameters(hwnas_stmt *stmt)
{
    const hwnas_template *call = stmt->call;
    for (size_t i = 0; i < stmt->n_args; i++) {
        const char *names[65] = {0};
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
        return near ? hwnas_hint(status, "did you mean '%s'?", near) : status;
    }
    for (size_t p = 0; p < call->n_parameters; p++) {
        bool given = call->parameters[p].fallback;
        for (size_t i = 0; i < stmt->n_args; i++)
            given |= stmt->args[i].slot == (int)p;
        if (!given)
            return hwnas_fail(HWNAS_E_INPUT, &stmt->place, "'%s' needs '%s'", call->name,
                              call->parameters[p].name);
    }
    return HWNAS_OK;
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
        for (size_t i = 0; i < args->n; i++)
            TRY(parse_body(&stmt->bodies[i], scope, args->items[i], "a branch"));
        return HWNAS_OK;
    }
    if (args && args->kind == HWNAS_YAML_MAPPING)
        TRY(parse_args(stmt, scope, args));
    else if (args && *args->text)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &args->place,
                                     "'%.60s' takes 'name: value', not '%.60s'", stmt->name,
                                     args->text),
                          "write %.60s: {NAME: %.60s}", stmt->name, args->text);
    return stmt->call ? match_parameters(stmt) : HWNAS_OK;
}

static hwnas_status need(const hwnas_yaml **out, const hwnas_yaml *node, const char *key)
{
    *out = hwnas_yaml_get(node, key);
    if (*out)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs '%s:' beside it",
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
    TRY(parse_args(stmt, scope, node->items[0]));
    for (size_t i = 0; i < stmt->n_args; i++) {
        TRY(check_name(stmt->args[i].name, "a variable", &stmt->args[i].place));
        stmt->args[i].slot = scope_bind(scope, stmt->args[i].name);
    }
    return HWNAS_OK;
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
        return hwnas_fail(HWNAS_E_INPUT, &node->items[0]->place, "'for' needs a list to walk over");
    TRY(parse_args(stmt, scope, node->items[0]));
    for (size_t i = 0; i < stmt->n_args; i++) {
        TRY(check_name(stmt->args[i].name, "a variable", &stmt->args[i].place));
        stmt->args[i].slot = scope_bind(scope, stmt->args[i].name);
    }
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
    if (index) {
        TRY(hwnas_yaml_text(&stmt->name, index, "index"));
        TRY(check_name(stmt->name, "a variable", &index->place));
    }
    stmt->slot = scope_bind(scope, stmt->name);
    TRY(need(&body, node, "do"));
    TRY(parse_body(new_bodies(stmt, scope, 1), scope, body, "do"));
    scope_leave(scope, outside);
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
};

static const struct keyword *find_keyword(const char *word)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (!strcmp(keywords[i].keys[0], word))
            return &keywords[i];
    return NULL;
}

static hwnas_status parse_stmt(hwnas_stmt **out, hwnas_scope *scope, const hwnas_yaml *node)
{
    hwnas_stmt *stmt = hwnas_arena_alloc(scope->space->arena, sizeof *stmt);
    stmt->place = node->place;
    if (node->kind == HWNAS_YAML_SEQUENCE || (node->kind == HWNAS_YAML_MAPPING && node->n == 0))
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a layer was expected: - NAME or - NAME: {...}");
    const struct keyword *keyword =
        find_keyword(node->kind == HWNAS_YAML_MAPPING ? node->keys[0]->text : node->text);
    if (keyword && node->kind != HWNAS_YAML_MAPPING)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' needs something behind it", node->text);
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

static char *trimmed(hwnas_arena *arena, const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return hwnas_arena_string(arena, text, n);
}

static hwnas_status bad_signature(const hwnas_yaml *key)
{
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &key->place, "'%.80s' is no template", key->text),
                      "write NAME(a, b = 1): and the list of its layers below");
}

/* One parameter, "name" or "name = default", at text[0..n). */
static hwnas_status parse_parameter(hwnas_template *t, hwnas_scope *empty, const hwnas_yaml *key,
                                    const char *text, size_t n)
{
    hwnas_arena *arena = empty->space->arena;
    hwnas_parameter *parameter = &t->parameters[t->n_parameters];
    const char *equals = memchr(text, '=', n);
    parameter->name = trimmed(arena, text, equals ? (size_t)(equals - text) : n);
    TRY(check_name(parameter->name, "a parameter", &key->place));
    for (size_t i = 0; i < t->n_parameters; i++)
        if (!strcmp(t->parameters[i].name, parameter->name))
            return hwnas_fail(HWNAS_E_INPUT, &key->place, "the parameter '%s' stands twice",
                              parameter->name);
    if (equals) {
        size_t from = (size_t)(equals + 1 - text);
        hwnas_place place = key->place;
        place.column += (int)(equals + 1 - key->text);
        TRY(hwnas_expr_parse(&parameter->fallback, empty, trimmed(arena, equals + 1, n - from),
                             &place));
    }
    t->n_parameters++;
    return HWNAS_OK;
}

/* "conv_bn(out, kernel = 1)" */
static hwnas_status parse_signature(hwnas_template **out, hwnas_space *space, const hwnas_yaml *key)
{
    hwnas_scope empty = {.space = space};
    hwnas_template *t = hwnas_arena_alloc(space->arena, sizeof *t);
    enum { MAX_PARAMETERS = 64 };
    t->place = key->place;
    t->parameters = hwnas_arena_alloc(space->arena, MAX_PARAMETERS * sizeof *t->parameters);
    const char *open = strchr(key->text, '(');
    size_t n = open ? (size_t)(open - key->text) : strlen(key->text);
    t->name = trimmed(space->arena, key->text, n);
    TRY(check_name(t->name, "a template", &key->place));
    if (find_keyword(t->name))
        return hwnas_fail(HWNAS_E_INPUT, &key->place, "'%s' is a word of the language", t->name);
    if (find_template(space, t->name))
        return hwnas_fail(HWNAS_E_INPUT, &key->place, "there are two templates '%s'", t->name);
    if (open) {
        const char *close = strchr(open, ')');
        if (!close || close[1])
            return bad_signature(key);
        for (const char *at = open + 1; at < close;) {
            size_t length = strcspn(at, ",)");
            if (t->n_parameters == MAX_PARAMETERS)
                return bad_signature(key);
            TRY(parse_parameter(t, &empty, key, at, length));
            at += length + 1;
        }
    }
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
    space->n_dims = (int)dims->n;
    for (size_t i = 0; i < dims->n; i++)
        TRY(hwnas_yaml_int(&space->dims[i], dims->items[i], "a dimension of the input", 1, 1 << 30));
    return HWNAS_OK;
}

static hwnas_status parse_file(hwnas_space *space, const hwnas_yaml *root)
{
    static const char *const keys[] = {"hwnas",   "name",      "about",   "input",
                                       "choices", "templates", "network", NULL};
    static const char *const required[] = {"hwnas", "name", "input", "network", NULL};
    int64_t version;
    TRY(hwnas_yaml_check_keys(root, "a space", keys));
    for (const char *const *key = required; *key; key++)
        if (!hwnas_yaml_get(root, *key))
            return hwnas_fail(HWNAS_E_INPUT, &root->place, "a space needs '%s:'", *key);
    TRY(hwnas_yaml_int(&version, hwnas_yaml_get(root, "hwnas"), "the version of the language", 1, 1));
    const hwnas_yaml *name = hwnas_yaml_get(root, "name");
    TRY(hwnas_yaml_text(&space->name, name, "name"));
    TRY(check_name(space->name, "a space", &name->place));
    if (hwnas_yaml_get(root, "about"))
        TRY(hwnas_yaml_text(&space->about, hwnas_yaml_get(root, "about"), "about"));
    TRY(parse_input(space, hwnas_yaml_get(root, "input")));
    if (hwnas_yaml_get(root, "choices"))
        TRY(parse_choices(space, hwnas_yaml_get(root, "choices")));
    if (hwnas_yaml_get(root, "templates"))
        TRY(parse_templates(space, hwnas_yaml_get(root, "templates")));
    space->network = hwnas_arena_alloc(space->arena, sizeof *space->network);
    space->network->name = "network";
    space->network->place = hwnas_yaml_get(root, "network")->place;
    return parse_template_body(space, space->network, hwnas_yaml_get(root, "network"), "network");
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
