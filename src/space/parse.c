/* parse.c: YAML -> space. Two passes: first every name that may be used before it is written
 * (choices and the templates' signatures), then the bodies. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/parse.h"

hwnas_status hwnas_parse_expr(hwnas_expr **out, const hwnas_scope *scope, const hwnas_yaml *node,
                               const char *what)
{
    if (node->kind == HWNAS_YAML_SEQUENCE) {
        hwnas_arena *arena = scope->space->arena;
        hwnas_expr *list = hwnas_arena_alloc(arena, sizeof *list);
        *list = (hwnas_expr){
            .kind = HWNAS_EXPR_LIST, .place = node->place, .size = 1, .n_args = node->n};
        list->args = hwnas_arena_alloc(arena, node->n * sizeof *list->args);
        for (size_t i = 0; i < node->n; i++) {
            TRY(hwnas_parse_expr(&list->args[i], scope, node->items[i], what));
            list->size += list->args[i]->size;
        }
        *out = list;
        return HWNAS_OK;
    }
    const char *text;
    char name[HWNAS_MAX_NAME + 3];
    snprintf(name, sizeof name, "'%.*s'", HWNAS_MAX_NAME, what);
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
hwnas_status hwnas_parse_constant(hwnas_value *out, const hwnas_scope *empty,
                                   const hwnas_yaml *node, const char *what)
{
    hwnas_expr *expr;
    hwnas_scope_frame frame = {0};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SCALAR, what));
    TRY(hwnas_parse_expr(&expr, empty, node, what));
    const hwnas_expr *name = find_name(expr);
    if (name)
        return hwnas_fail(HWNAS_E_INPUT, &name->place, "%s must be constant, '%s' is %s", what,
                          name->name,
                          name->kind == HWNAS_EXPR_CHOICE ? "a choice" : "a fact of the tensor");
    return hwnas_expr_eval(out, expr, &frame, empty->space->arena);
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
    parameter->name = hwnas_trimmed(arena, text, equals ? (size_t)(equals - text) : n);
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
                             hwnas_trimmed(arena, value, (size_t)(text + n - value)), &from,
                             key->is_verbatim));
    }
    int slot;
    TRY(hwnas_scope_new_variable(&slot, scope, parameter->name, "a parameter", &place));
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
    t->parameters = hwnas_arena_alloc(space->arena, HWNAS_MAX_PARAMETERS * sizeof *t->parameters);
    for (const char *at = open + 1; at < close;) {
        size_t length = parameter_length(at, close);
        if (t->n_parameters == HWNAS_MAX_PARAMETERS)
            status = hwnas_fail(HWNAS_E_INPUT, &key->place, "a template has at most %d parameters",
                                HWNAS_MAX_PARAMETERS);
        else
            status = parse_parameter(t, &scope, key, at, length);
        if (status != HWNAS_OK)
            break;
        at += length + 1;
    }
    hwnas_scope_done(&scope);
    return status;
}

/* "conv_bn(out, kernel = 1)" */
static hwnas_status parse_signature(hwnas_template **out, hwnas_space *space, const hwnas_yaml *key)
{
    hwnas_template *t = hwnas_arena_alloc(space->arena, sizeof *t);
    t->place = key->place;
    const char *open = strchr(key->text, '(');
    size_t n = open ? (size_t)(open - key->text) : strlen(key->text);
    t->name = hwnas_trimmed(space->arena, key->text, n);
    TRY(hwnas_check_name(t->name, "a template", &key->place));
    if (hwnas_is_stmt_word(t->name))
        return hwnas_fail(HWNAS_E_INPUT, &key->place,
                          "'%s' is a word of the language, a template needs another name", t->name);
    const hwnas_template *other = hwnas_find_template(space, t->name);
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
        hwnas_scope_bind(&scope, t->parameters[i].name);
    hwnas_status status = hwnas_parse_body(&t->body, &scope, node, what);
    t->n_slots = scope.n;
    t->slot_names = hwnas_arena_copy(space->arena, scope.names, scope.n * sizeof *scope.names);
    t->n_tensors = scope.n_tensors;
    t->tensor_names =
        hwnas_arena_alloc(space->arena, (scope.n_tensors + 1) * sizeof *t->tensor_names);
    for (size_t i = 0; i < scope.n_tensors; i++)
        t->tensor_names[i] = scope.tensors[i].name;
    if (status == HWNAS_OK)
        status = hwnas_scope_check_tensors(&scope);
    hwnas_scope_done(&scope);
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
            return hwnas_fail(HWNAS_E_INPUT, &stmt->place,
                              "more than %d templates inside each other", HWNAS_MAX_CALL_DEPTH);
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
    if (node->n > HWNAS_MAX_TEMPLATES)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d templates",
                          HWNAS_MAX_TEMPLATES);
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

static hwnas_status parse_constraints(hwnas_space *space, const hwnas_yaml *node)
{
    hwnas_scope scope = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SEQUENCE, "constraints"));
    if (node->n > HWNAS_MAX_CONSTRAINTS)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d constraints",
                          HWNAS_MAX_CONSTRAINTS);
    space->constraints =
        hwnas_arena_alloc(space->arena, (node->n + 1) * sizeof *space->constraints);
    for (size_t i = 0; i < node->n; i++)
        TRY(hwnas_parse_expr(&space->constraints[i], &scope, node->items[i], "a constraint"));
    space->n_constraints = node->n;
    space->has_rules |= node->n > 0;
    return HWNAS_OK;
}

static hwnas_status check_version(const hwnas_yaml *root)
{
    const hwnas_yaml *written = hwnas_yaml_get(root, "hwnas");
    int64_t version;
    if (!written)
        return HWNAS_OK;
    TRY(hwnas_yaml_int(&version, written, "'hwnas'", INT64_MIN, INT64_MAX));
    return version == 1 ? HWNAS_OK
                        : hwnas_fail(HWNAS_E_INPUT, &written->place,
                                     "this hwnas reads version 1 of the language, not %lld",
                                     (long long)version);
}

static hwnas_status parse_file(hwnas_space *space, const hwnas_yaml *root, const char *settings)
{
    static const char *const keys[] = {"hwnas",     "name",    "about",   "settings",
                                       "phases",    "input",   "choices", "constraints",
                                       "templates", "network", NULL};
    static const char *const derived_keys[] = {"hwnas",   "name",        "about",   "model",
                                               "choices", "constraints", "changes", NULL};
    static const char *const required[] = {"hwnas", "name", "input", "network", NULL};
    static const char *const derived_required[] = {"hwnas", "name", "model", "changes", NULL};
    const hwnas_yaml *model = hwnas_yaml_get(root, "model");
    TRY(hwnas_yaml_check_keys(root, model ? "a space with a model" : "a space",
                              model ? derived_keys : keys));
    for (const char *const *key = model ? derived_required : required; *key; key++)
        if (!hwnas_yaml_get(root, *key))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &root->place, "a space needs '%s:'", *key),
                              !strcmp(*key, "hwnas") ? "write hwnas: 1, the version of the language"
                              : model ? "'hwnas space derive MODEL.onnx' writes a whole one"
                                      : "docs/search-spaces.md shows a whole one");
    const hwnas_yaml *name = hwnas_yaml_get(root, "name");
    TRY(hwnas_yaml_text(&space->name, name, "name"));
    TRY(hwnas_check_name(space->name, "a space", &name->place));
    if (hwnas_yaml_get(root, "about"))
        TRY(hwnas_yaml_text(&space->about, hwnas_yaml_get(root, "about"), "about"));
    TRY(hwnas_parse_settings(space, hwnas_yaml_get(root, "settings"), settings));
    if (hwnas_yaml_get(root, "phases"))
        TRY(hwnas_parse_phases(space, hwnas_yaml_get(root, "phases")));
    if (hwnas_yaml_get(root, "choices"))
        TRY(hwnas_parse_choices(space, hwnas_yaml_get(root, "choices")));
    space->network = hwnas_arena_alloc(space->arena, sizeof *space->network);
    space->network->name = "network";
    if (!model)
        TRY(hwnas_parse_inputs(space, hwnas_yaml_get(root, "input")));
    if (hwnas_yaml_get(root, "constraints"))
        TRY(parse_constraints(space, hwnas_yaml_get(root, "constraints")));
    if (hwnas_yaml_get(root, "templates"))
        TRY(parse_templates(space, hwnas_yaml_get(root, "templates")));
    if (model) {
        TRY(hwnas_parse_changes(space, model, hwnas_yaml_get(root, "changes")));
    } else {
        space->network->place = hwnas_yaml_get(root, "network")->place;
        TRY(parse_template_body(space, space->network, hwnas_yaml_get(root, "network"), "network"));
    }
    return hwnas_symbols_check(space);
}

static hwnas_status parse_whole(hwnas_space **out, hwnas_arena *arena, const char *path,
                                const hwnas_yaml *root, const char *settings)
{
    hwnas_space *space = hwnas_arena_alloc(arena, sizeof *space);
    space->arena = arena;
    space->path = space->text_path = hwnas_arena_string(arena, path, strlen(path));
    TRY(parse_file(space, root, settings));
    hwnas_space_prepare(space);
    *out = space;
    return HWNAS_OK;
}

/* `is_base`: another space is narrowed from it. */
static hwnas_status parse(hwnas_space **out, const char *path, const char *text, size_t length,
                          const char *settings, bool is_base)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_yaml *root;
    hwnas_status status = hwnas_yaml_parse(&root, arena, path, text, length);
    if (status == HWNAS_OK)
        status = hwnas_yaml_expect(root, HWNAS_YAML_MAPPING, "a space");
    if (status == HWNAS_OK)
        status = check_version(root); /* before what it may have changed */
    const hwnas_yaml *base = status == HWNAS_OK ? hwnas_yaml_get(root, "base") : NULL;
    if (base)
        status = hwnas_yaml_expect(base, HWNAS_YAML_SCALAR, "'base'");
    if (base && is_base && status == HWNAS_OK)
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &base->place,
                                       "a space with a base cannot be the base of another"),
                            "name '%.80s' there, and give the values that are left", base->text);
    else if (base && status == HWNAS_OK)
        status = hwnas_parse_narrow(out, path, root, settings);
    else if (status == HWNAS_OK)
        status = parse_whole(out, arena, path, root, settings);
    if (base || status != HWNAS_OK)
        hwnas_arena_free(arena);
    return status;
}

hwnas_status hwnas_space_parse(hwnas_space **out, const char *path, const char *text, size_t length,
                               const char *settings)
{
    return parse(out, path, text, length, settings, false);
}

hwnas_status hwnas_space_parse_base(hwnas_space **out, const char *path, const char *text,
                                    size_t length, const char *settings)
{
    return parse(out, path, text, length, settings, true);
}
