/* expr.c: text -> expression, by precedence climbing. The operators are those of Python,
 * and `?:`. */
#include "space/expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/scope.h"

/* Nobody writes more in one text. Keeps the recursion small, here and in every walk over a tree. */
enum { MAX_DEPTH = 64, MAX_SIZE = 1000 };

typedef struct parser {
    const hwnas_scope *scope;
    hwnas_arena *arena;
    const char *text, *at;
    hwnas_place place; /* of the text's first character */
    bool is_verbatim;
    int depth, size;
} parser;

static hwnas_place place_at(const parser *p, const char *at)
{
    hwnas_place place = p->place;
    if (p->is_verbatim)
        place.column += (int)(at - p->text);
    return place;
}

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Takes the token `text` when it stands next. */
static bool take(parser *p, const char *text)
{
    skip_space(p);
    size_t n = strlen(text);
    if (strncmp(p->at, text, n) || (is_word(text[0]) && is_word(p->at[n])))
        return false;
    p->at += n;
    return true;
}

static hwnas_status unexpected(const parser *p, const char *expected)
{
    hwnas_place place = place_at(p, p->at);
    if (!*p->at)
        return hwnas_fail(HWNAS_E_INPUT, &place, "%s was expected at the end of '%.80s'", expected,
                          p->text);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &place, "%s was expected instead of '%.20s'", expected, p->at);
    static const char *const foreign[][2] = {
        {"=", "=="},
        {"&&", "and"},
        {"||", "or"},
        {"!", "not"},
        {"else", "CONDITION ? A : B"},
        {"if", "CONDITION ? A : B"},
        {"\"", "the word without quotes"},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (!strncmp(p->at, foreign[i][0], strlen(foreign[i][0])))
            return hwnas_hint(status, "write %s", foreign[i][1]);
    return status;
}

static hwnas_status too_long(const parser *p)
{
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &p->place, "this expression is too long: '%.40s...'", p->text),
        "split it with let");
}

static hwnas_expr *new_expr(parser *p, hwnas_expr_kind kind, const char *at, size_t n_args)
{
    hwnas_expr *expr = hwnas_arena_alloc(p->arena, sizeof *expr);
    expr->kind = kind;
    expr->place = place_at(p, at);
    expr->size = 1;
    expr->n_args = n_args;
    expr->args = hwnas_arena_alloc(p->arena, n_args * sizeof *expr->args);
    p->size++;
    return expr;
}

static hwnas_expr *new_operator(parser *p, hwnas_operator op, const char *at, hwnas_expr *a,
                                hwnas_expr *b, hwnas_expr *c)
{
    hwnas_expr *expr = new_expr(p, HWNAS_EXPR_OPERATOR, at, c ? 3 : b ? 2 : 1);
    hwnas_expr *args[] = {a, b, c};
    expr->op = (int)op;
    memcpy(expr->args, args, expr->n_args * sizeof *args);
    for (size_t i = 0; i < expr->n_args; i++)
        expr->size += args[i]->size;
    return expr;
}

static hwnas_status parse(hwnas_expr **out, parser *p, int least);

static hwnas_status parse_number(hwnas_expr **out, parser *p)
{
    const char *start = p->at;
    char *end;
    hwnas_expr *expr = new_expr(p, HWNAS_EXPR_LITERAL, start, 0);
    errno = 0;
    long long i = strtoll(start, &end, 10);
    if (*end == '.' || *end == 'e' || *end == 'E') {
        double r = strtod(start, &end);
        if (!isfinite(r))
            return hwnas_fail(HWNAS_E_INPUT, &expr->place, "this number is too large");
        expr->value = (hwnas_value){.kind = HWNAS_VALUE_REAL, .r = r};
    } else if (errno) {
        return hwnas_fail(HWNAS_E_INPUT, &expr->place, "this number does not fit into 64 bits");
    } else {
        expr->value = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = i};
    }
    p->at = end;
    if (is_word(*end) || *end == '.')
        return unexpected(p, "an operator");
    *out = expr;
    return HWNAS_OK;
}

/* Arguments up to `close`, into expr->args. */
static hwnas_status parse_list(hwnas_expr *expr, parser *p, const char *close)
{
    hwnas_expr *args[64];
    size_t n = 0;
    if (!take(p, close)) {
        do {
            if (n == sizeof args / sizeof *args)
                return too_long(p);
            TRY(parse(&args[n], p, 0));
            expr->size += args[n++]->size;
        } while (take(p, ","));
        if (!take(p, close))
            return unexpected(p, *close == ')' ? "')'" : "']'");
    }
    expr->n_args = n;
    expr->args = hwnas_arena_copy(p->arena, args, n * sizeof *args);
    return HWNAS_OK;
}

static int find(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static hwnas_status parse_call(hwnas_expr **out, parser *p, const char *name, const char *start)
{
    const char *names[16] = {0};
    for (int i = 0; hwnas_functions[i].name; i++)
        names[i] = hwnas_functions[i].name;
    hwnas_expr *expr = new_expr(p, HWNAS_EXPR_CALL, start, 0);
    expr->name = name;
    expr->op = find(names, name);
    if (expr->op < 0) {
        const char *near = hwnas_nearest(name, names);
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &expr->place, "there is no function '%.60s'", name),
            near ? "did you mean '%s'?" : "there are max, min, round, make_divisible%s",
            near ? near : "");
    }
    TRY(parse_list(expr, p, ")"));
    const hwnas_function_row *row = &hwnas_functions[expr->op];
    if ((int)expr->n_args < row->min_args ||
        (row->max_args >= 0 && (int)expr->n_args > row->max_args))
        return hwnas_fail(HWNAS_E_INPUT, &expr->place, "'%s' takes %d%s, not %zu", name,
                          row->min_args,
                          row->max_args < 0    ? " or more values"
                          : row->min_args == 1 ? " value"
                                               : " values",
                          expr->n_args);
    *out = expr;
    return HWNAS_OK;
}

/* A name: variable of the template, choice, setting, fact of the tensor, truth value, or else a
 * symbol. */
static void resolve(hwnas_expr *expr, const hwnas_scope *scope, const char *name)
{
    static const char *const truths[] = {"false", "true", "no", "yes", NULL};
    int found;
    expr->name = name;
    for (size_t i = scope->n; i-- > 0;)
        if (scope->is_visible[i] && !strcmp(scope->names[i], name)) {
            expr->kind = HWNAS_EXPR_VARIABLE;
            expr->slot = (int)i;
            return;
        }
    for (size_t c = 0; c < scope->space->n_choices; c++)
        if (!strcmp(scope->space->choices[c].name, name)) {
            expr->kind = HWNAS_EXPR_CHOICE;
            expr->slot = (int)c;
            return;
        }
    const hwnas_setting *setting = hwnas_space_setting(scope->space, name, strlen(name));
    expr->kind = HWNAS_EXPR_LITERAL;
    if (setting) {
        expr->value = setting->value;
        return;
    }
    if ((found = find(hwnas_tensor_names, name)) >= 0) {
        expr->kind = HWNAS_EXPR_TENSOR;
        expr->slot = found;
        return;
    }
    if ((found = find(truths, name)) >= 0)
        expr->value = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = found % 2};
    else
        expr->value = (hwnas_value){.kind = HWNAS_VALUE_SYMBOL, .s = name};
}

static hwnas_status parse_primary(hwnas_expr **out, parser *p)
{
    skip_space(p);
    const char *start = p->at;
    if (isdigit((unsigned char)*start) || (*start == '.' && isdigit((unsigned char)start[1])))
        return parse_number(out, p);
    if (take(p, "(")) {
        TRY(parse(out, p, 0));
        return take(p, ")") ? HWNAS_OK : unexpected(p, "')'");
    }
    if (take(p, "[")) {
        *out = new_expr(p, HWNAS_EXPR_LIST, start, 0);
        return parse_list(*out, p, "]");
    }
    if (take(p, "not") || take(p, "-")) {
        hwnas_operator op = *start == '-' ? HWNAS_OPERATOR_NEGATE : HWNAS_OPERATOR_NOT;
        hwnas_expr *operand;
        TRY(parse(&operand, p, hwnas_operator_rows[op].precedence));
        *out = new_operator(p, op, start, operand, NULL, NULL);
        return HWNAS_OK;
    }
    if (!is_word(*start))
        return unexpected(p, "a number or a name");
    while (is_word(*p->at))
        p->at++;
    const char *name = hwnas_arena_string(p->arena, start, (size_t)(p->at - start));
    if (take(p, "("))
        return parse_call(out, p, name, start);
    *out = new_expr(p, HWNAS_EXPR_LITERAL, start, 0);
    resolve(*out, p->scope, name);
    return HWNAS_OK;
}

/* The binary operator that stands next and binds at least as tightly as `least`; or -1. */
static int take_operator(parser *p, int least)
{
    static const hwnas_operator longest_first[] = {
        HWNAS_OPERATOR_FLOOR_DIV, HWNAS_OPERATOR_EQ,  HWNAS_OPERATOR_NE,    HWNAS_OPERATOR_LE,
        HWNAS_OPERATOR_GE,        HWNAS_OPERATOR_OR,  HWNAS_OPERATOR_AND,   HWNAS_OPERATOR_LT,
        HWNAS_OPERATOR_GT,        HWNAS_OPERATOR_ADD, HWNAS_OPERATOR_SUB,   HWNAS_OPERATOR_MUL,
        HWNAS_OPERATOR_DIV,       HWNAS_OPERATOR_MOD, HWNAS_OPERATOR_INDEX, HWNAS_OPERATOR_IF,
    };
    for (size_t i = 0; i < sizeof longest_first / sizeof *longest_first; i++) {
        const char *before = p->at;
        const hwnas_operator_row *row = &hwnas_operator_rows[longest_first[i]];
        if (!take(p, row->text))
            continue;
        if (row->precedence >= least)
            return (int)longest_first[i];
        p->at = before;
        return -1;
    }
    return -1;
}

static hwnas_status parse(hwnas_expr **out, parser *p, int least)
{
    hwnas_expr *left, *right = NULL, *third = NULL;
    bool is_compared = false; /* a comparison stands here, without brackets */
    if (++p->depth > MAX_DEPTH)
        return too_long(p);
    skip_space(p);
    const char *start = p->at;
    TRY(parse_primary(&left, p));
    for (int op; (op = take_operator(p, least)) >= 0; third = NULL) {
        int precedence = hwnas_operator_rows[op].precedence;
        if (p->size > MAX_SIZE)
            return too_long(p);
        if (precedence == hwnas_operator_rows[HWNAS_OPERATOR_EQ].precedence) {
            if (is_compared)
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &left->place,
                                             "comparisons do not chain: '%.40s'", start),
                                  "write a < b and b < c");
            is_compared = true;
        } else if (precedence < hwnas_operator_rows[HWNAS_OPERATOR_EQ].precedence) {
            is_compared = false;
        }
        if (op == HWNAS_OPERATOR_IF) {
            TRY(parse(&right, p, precedence));
            if (!take(p, ":"))
                return unexpected(p, "':'");
            TRY(parse(&third, p, precedence));
        } else if (op == HWNAS_OPERATOR_INDEX) {
            TRY(parse(&right, p, 0));
            if (!take(p, "]"))
                return unexpected(p, "']'");
        } else {
            TRY(parse(&right, p, precedence + 1));
        }
        left = new_operator(p, (hwnas_operator)op, start, left, right, third);
    }
    p->depth--;
    *out = left;
    return HWNAS_OK;
}

hwnas_status hwnas_expr_parse(hwnas_expr **out, const hwnas_scope *scope, const char *text,
                              const hwnas_place *place, bool is_verbatim)
{
    parser p = {.scope = scope,
                .is_verbatim = is_verbatim,
                .arena = scope->space->arena,
                .text = hwnas_arena_string(scope->space->arena, text, strlen(text)),
                .place = *place};
    p.at = p.text;
    hwnas_expr *expr;
    TRY(parse(&expr, &p, 0));
    skip_space(&p);
    if (*p.at)
        return unexpected(&p, "an operator");
    if (p.size > MAX_SIZE)
        return too_long(&p);
    *out = expr;
    return HWNAS_OK;
}
