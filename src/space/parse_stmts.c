/* parse_stmts.c: the statements of a template. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/parse.h"

hwnas_template *hwnas_find_template(const hwnas_space *space, const char *name)
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
        TRY(hwnas_parse_expr(&arg->value, scope, node->items[i], arg->name));
        if (binds)
            TRY(hwnas_scope_new_variable(&arg->slot, scope, arg->name, "a variable", &arg->place));
    }
    return HWNAS_OK;
}

/* Gives each argument of a template's call its parameter. */
static hwnas_status match_parameters(hwnas_stmt *stmt)
{
    const hwnas_template *call = stmt->call;
    for (size_t i = 0; i < stmt->n_args; i++) {
        const char *names[HWNAS_MAX_PARAMETERS + 1] = {0};
        hwnas_arg *arg = &stmt->args[i];
        arg->slot = -1;
        for (size_t p = 0; p < call->n_parameters; p++) {
            names[p] = call->parameters[p].name;
            if (!strcmp(names[p], arg->name))
                arg->slot = (int)p;
        }
        if (arg->slot >= 0)
            continue;
        hwnas_status status = hwnas_fail(HWNAS_E_INPUT, &arg->place,
                                         "'%s' has no parameter '%.60s'", call->name, arg->name);
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

/* Reads the arguments that stand beside a list of branches: axis: 2 */
static hwnas_status parse_args_beside(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    stmt->n_args = node->n - 1;
    stmt->args = hwnas_arena_alloc(scope->space->arena, node->n * sizeof *stmt->args);
    for (size_t i = 0; i < stmt->n_args; i++) {
        const hwnas_yaml *key = node->keys[i + 1];
        stmt->args[i] = (hwnas_arg){.name = key->text, .place = key->place};
        TRY(hwnas_parse_expr(&stmt->args[i].value, scope, node->items[i + 1], key->text));
    }
    return HWNAS_OK;
}

/* - NAME, - NAME: {args} or - NAME: [[..], [..]] */
static hwnas_status parse_layer(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *args = NULL;
    if (node->kind == HWNAS_YAML_MAPPING) {
        if (node->n != 1 && node->items[0]->kind != HWNAS_YAML_SEQUENCE)
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
    stmt->call = hwnas_find_template(scope->space, stmt->name);
    if (args && args->kind == HWNAS_YAML_SEQUENCE) {
        stmt->kind = HWNAS_STMT_JOIN;
        stmt->n_bodies = args->n;
        stmt->bodies = hwnas_arena_alloc(scope->space->arena, args->n * sizeof *stmt->bodies);
        if (stmt->call)
            return hwnas_fail(HWNAS_E_INPUT, &args->place,
                              "a template takes 'name: value', no list");
        for (size_t i = 0; i < args->n; i++) {
            TRY(check_branch(stmt, args->items[i]));
            TRY(hwnas_parse_body(&stmt->bodies[i], scope, args->items[i], "a branch"));
        }
        return parse_args_beside(stmt, scope, node);
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
        TRY(hwnas_parse_expr(&stmt->expr, scope, when, "when"));
    return hwnas_parse_body(new_bodies(stmt, scope, 1), scope, node->items[0], "residual");
}

static hwnas_status parse_let(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node->items[0], HWNAS_YAML_MAPPING, "let"));
    return parse_args(stmt, scope, node->items[0], true);
}

static hwnas_status parse_if(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *then, *otherwise = hwnas_yaml_get(node, "else");
    TRY(hwnas_parse_expr(&stmt->expr, scope, node->items[0], "if"));
    TRY(need(&then, node, "then"));
    new_bodies(stmt, scope, otherwise ? 2 : 1);
    TRY(hwnas_parse_body(&stmt->bodies[0], scope, then, "then"));
    if (otherwise)
        TRY(hwnas_parse_body(&stmt->bodies[1], scope, otherwise, "else"));
    return HWNAS_OK;
}

static hwnas_status parse_switch(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = scope->space};
    const hwnas_yaml *cases;
    TRY(hwnas_parse_expr(&stmt->expr, scope, node->items[0], "switch"));
    TRY(need(&cases, node, "cases"));
    TRY(hwnas_yaml_expect(cases, HWNAS_YAML_MAPPING, "cases"));
    new_bodies(stmt, scope, cases->n);
    stmt->labels = hwnas_arena_alloc(scope->space->arena, cases->n * sizeof *stmt->labels);
    for (size_t i = 0; i < cases->n; i++) {
        TRY(hwnas_parse_constant(&stmt->labels[i], &empty, cases->keys[i], "a case"));
        for (size_t j = 0; j < i && j < HWNAS_MAX_VALUES; j++)
            if (hwnas_value_equal(&stmt->labels[i], &stmt->labels[j]))
                return hwnas_fail(HWNAS_E_INPUT, &cases->keys[i]->place,
                                  "the cases '%.60s' and '%.60s' have the same value",
                                  cases->keys[j]->text, cases->keys[i]->text);
        TRY(hwnas_parse_body(&stmt->bodies[i], scope, cases->items[i], "a case"));
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
        TRY(hwnas_scope_new_variable(&stmt->args[i].slot, scope, stmt->args[i].name, "a variable",
                          &stmt->args[i].place));
    TRY(need(&body, node, "do"));
    TRY(hwnas_parse_body(new_bodies(stmt, scope, 1), scope, body, "do"));
    hwnas_scope_leave(scope, outside);
    return HWNAS_OK;
}

static hwnas_status parse_repeat(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    const hwnas_yaml *body, *index = hwnas_yaml_get(node, "index");
    size_t outside = scope->n;
    TRY(hwnas_parse_expr(&stmt->expr, scope, node->items[0], "repeat"));
    stmt->name = "i";
    if (index)
        TRY(hwnas_yaml_text(&stmt->name, index, "index"));
    TRY(hwnas_scope_new_variable(&stmt->slot, scope, stmt->name, "a variable",
                      index ? &index->place : &node->place));
    TRY(need(&body, node, "do"));
    TRY(hwnas_parse_body(new_bodies(stmt, scope, 1), scope, body, "do"));
    hwnas_scope_leave(scope, outside);
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
    stmt->name = hwnas_trimmed(scope->space->arena, text, n);
    TRY(hwnas_check_name(stmt->name, "a tensor", &place));
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
    if (hwnas_space_input(scope->space, stmt->name))
        return hwnas_fail(HWNAS_E_INPUT, &node->items[0]->place,
                          "'%s' is an input of the network, the tensor needs another name",
                          stmt->name);
    TRY(hwnas_scope_find_tensor(&stmt->slot, scope, stmt->name, &node->items[0]->place));
    scope->tensors[stmt->slot].is_given = true;
    return HWNAS_OK;
}

static hwnas_status parse_from(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    TRY(parse_tensor(stmt, scope, node->items[0]));
    const hwnas_input *input = hwnas_space_input(scope->space, stmt->name);
    if (!input)
        return hwnas_scope_find_tensor(&stmt->slot, scope, stmt->name, &node->items[0]->place);
    stmt->is_input = true;
    stmt->slot = (int)(input - scope->space->inputs);
    if (!input->each != !stmt->expr)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->items[0]->place,
                                     input->each ? "there are several '%s'" : "there is one '%s'",
                                     stmt->name),
                          input->each ? "write %s[INDEX]" : "write %s", stmt->name);
    return HWNAS_OK;
}

static hwnas_status parse_output(hwnas_stmt *stmt, hwnas_scope *scope, const hwnas_yaml *node)
{
    return parse_tensor(stmt, scope, node->items[0]);
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
    {HWNAS_STMT_OUTPUT, {"output", NULL}, parse_output},
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

bool hwnas_is_stmt_word(const char *name)
{
    return find_keyword(name);
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
        return hwnas_fail(HWNAS_E_INPUT, &node->place,
                          "a layer was expected: - NAME or - NAME: {...}");
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

hwnas_status hwnas_parse_body(hwnas_body *out, hwnas_scope *scope, const hwnas_yaml *node,
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
    hwnas_scope_leave(scope, outside);
    return HWNAS_OK;
}

