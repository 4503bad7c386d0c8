/* python.c: Python expressions as text. Layout follows Black (and so PEP 8): 88 columns, and what
 * does not fit is broken after the opening bracket, then one argument a line. */
#include "export/python.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 88, STEP = 4 };

static hwnas_py *new_py(hwnas_arena *arena, hwnas_py_kind kind)
{
    hwnas_py *py = hwnas_arena_alloc(arena, sizeof *py);
    py->kind = kind;
    return py;
}

hwnas_py *hwnas_py_value(hwnas_arena *arena, hwnas_value value)
{
    hwnas_py *py = new_py(arena, HWNAS_PY_VALUE);
    py->value = value;
    return py;
}

hwnas_py *hwnas_py_int(hwnas_arena *arena, int64_t value)
{
    return hwnas_py_value(arena, (hwnas_value){.kind = HWNAS_VALUE_INT, .i = value});
}

hwnas_py *hwnas_py_of(hwnas_arena *arena, hwnas_py_name *name)
{
    hwnas_py *py = new_py(arena, HWNAS_PY_NAME);
    py->name = name;
    return py;
}

hwnas_py *hwnas_py_make(hwnas_arena *arena, hwnas_py_kind kind, const char *text, size_t n_args,
                        const hwnas_py *const *args)
{
    hwnas_py *py = new_py(arena, kind);
    py->text = text;
    py->n_args = n_args;
    py->args = hwnas_arena_copy(arena, args, n_args * sizeof *args);
    return py;
}

hwnas_py *hwnas_py_operator(hwnas_arena *arena, hwnas_operator op, size_t n_args,
                            const hwnas_py *const *args)
{
    hwnas_py *py = hwnas_py_make(arena, HWNAS_PY_OPERATOR, NULL, n_args, args);
    py->op = op;
    return py;
}

hwnas_py_name *hwnas_py_real(hwnas_py_name *name)
{
    while (name->same)
        name = name->same;
    return name;
}

bool hwnas_py_equal(const hwnas_py *a, const hwnas_py *b)
{
    if (a->kind != b->kind || a->n_args != b->n_args || a->op != b->op)
        return false;
    if (a->kind == HWNAS_PY_VALUE)
        return hwnas_value_equal(&a->value, &b->value);
    if (a->kind == HWNAS_PY_NAME)
        return hwnas_py_real(a->name) == hwnas_py_real(b->name);
    if (a->name != b->name || !a->text != !b->text || (a->text && strcmp(a->text, b->text)))
        return false;
    for (size_t i = 0; i < a->n_args; i++)
        if (!hwnas_py_equal(a->args[i], b->args[i]))
            return false;
    return true;
}

bool hwnas_py_is_value(const hwnas_py *expr)
{
    return expr->kind == HWNAS_PY_VALUE;
}

bool hwnas_py_is_true(const hwnas_py *value)
{
    return value->value.kind == HWNAS_VALUE_REAL ? value->value.r != 0 : value->value.i != 0;
}

bool hwnas_py_is_number(const hwnas_py *expr, double number)
{
    const hwnas_value *v = &expr->value;
    return hwnas_py_is_value(expr) && ((v->kind == HWNAS_VALUE_INT && (double)v->i == number) ||
                                       (v->kind == HWNAS_VALUE_REAL && v->r == number));
}

bool hwnas_py_is_plain(const hwnas_py *expr)
{
    return hwnas_py_is_value(expr) || expr->kind == HWNAS_PY_NAME;
}

bool hwnas_py_mentions(const hwnas_py *expr, const hwnas_py_name *name)
{
    if (expr->kind == HWNAS_PY_NAME)
        return hwnas_py_real(expr->name) == hwnas_py_real((hwnas_py_name *)name) ||
               (expr->name->meaning && hwnas_py_mentions(expr->name->meaning, name));
    for (size_t i = 0; i < expr->n_args; i++)
        if (hwnas_py_mentions(expr->args[i], name))
            return true;
    return false;
}

const hwnas_py *hwnas_py_replace(hwnas_arena *arena, const hwnas_py *expr, size_t n,
                                 hwnas_py_name *const *names, const hwnas_py *const *by)
{
    if (expr->kind == HWNAS_PY_NAME) {
        for (size_t i = 0; i < n; i++)
            if (expr->name == names[i])
                return by[i];
        return expr->name->meaning ? hwnas_py_replace(arena, expr->name->meaning, n, names, by)
                                   : expr;
    }
    if (!expr->n_args)
        return expr;
    hwnas_py *copy = hwnas_arena_copy(arena, expr, sizeof *expr);
    copy->args = hwnas_arena_copy(arena, expr->args, expr->n_args * sizeof *expr->args);
    for (size_t i = 0; i < expr->n_args; i++)
        copy->args[i] = hwnas_py_replace(arena, expr->args[i], n, names, by);
    return copy;
}

/* Python's operators, by precedence from loose to tight. */
enum { ANY, CONDITIONAL, OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, PRIMARY };

static const struct {
    const char *text;
    int level;
} operators[HWNAS_N_OPERATORS] = {
    [HWNAS_OPERATOR_IF] = {" if ", CONDITIONAL},
    [HWNAS_OPERATOR_OR] = {" or ", OR},
    [HWNAS_OPERATOR_AND] = {" and ", AND},
    [HWNAS_OPERATOR_NOT] = {"not ", NOT},
    [HWNAS_OPERATOR_EQ] = {" == ", COMPARE},
    [HWNAS_OPERATOR_NE] = {" != ", COMPARE},
    [HWNAS_OPERATOR_LT] = {" < ", COMPARE},
    [HWNAS_OPERATOR_LE] = {" <= ", COMPARE},
    [HWNAS_OPERATOR_GT] = {" > ", COMPARE},
    [HWNAS_OPERATOR_GE] = {" >= ", COMPARE},
    [HWNAS_OPERATOR_ADD] = {" + ", SUM},
    [HWNAS_OPERATOR_SUB] = {" - ", SUM},
    [HWNAS_OPERATOR_MUL] = {" * ", PRODUCT},
    [HWNAS_OPERATOR_DIV] = {" / ", PRODUCT},
    [HWNAS_OPERATOR_FLOOR_DIV] = {" // ", PRODUCT},
    [HWNAS_OPERATOR_MOD] = {" % ", PRODUCT},
    [HWNAS_OPERATOR_NEGATE] = {"-", SIGN},
    [HWNAS_OPERATOR_INDEX] = {"[", PRIMARY},
};

static bool is_logic(hwnas_operator op)
{
    return op == HWNAS_OPERATOR_AND || op == HWNAS_OPERATOR_OR || op == HWNAS_OPERATOR_NOT;
}

/* Is argument `i` of the operator only asked whether it is true? */
static bool asks_truth(const hwnas_py *expr, size_t i, bool truth)
{
    if (expr->kind == HWNAS_PY_TRUTH)
        return true;
    if (expr->kind == HWNAS_PY_KEYWORD)
        return truth;
    if (expr->kind != HWNAS_PY_OPERATOR)
        return false;
    return is_logic(expr->op) || (expr->op == HWNAS_OPERATOR_IF && (i == 0 || truth));
}

static void count(const hwnas_py *expr, bool truth)
{
    if (expr->kind == HWNAS_PY_NAME) {
        hwnas_py_name *name = hwnas_py_real(expr->name);
        name->uses++;
        name->truth_uses += truth;
    }
    for (size_t i = 0; i < expr->n_args; i++)
        count(expr->args[i], asks_truth(expr, i, truth));
}

void hwnas_py_count(const hwnas_py *expr)
{
    count(expr, false);
}

static void write_expr(hwnas_str *out, const hwnas_py *expr, int level, bool truth);

static void write_real(hwnas_str *out, double number)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    hwnas_str_add(out, text);
    if (!strpbrk(text, ".en"))
        hwnas_str_add(out, ".0");
}

static void write_value(hwnas_str *out, const hwnas_value *value, bool truth)
{
    switch (value->kind) {
    case HWNAS_VALUE_NONE:
        hwnas_str_add(out, "None");
        break;
    case HWNAS_VALUE_INT:
        if (truth)
            hwnas_str_add(out, value->i ? "True" : "False");
        else
            hwnas_str_addf(out, "%lld", (long long)value->i);
        break;
    case HWNAS_VALUE_REAL:
        write_real(out, value->r);
        break;
    case HWNAS_VALUE_SYMBOL:
        hwnas_str_addf(out, "\"%s\"", value->s);
        break;
    case HWNAS_VALUE_LIST:
        hwnas_str_add(out, "[");
        for (size_t i = 0; i < value->list.n; i++) {
            hwnas_str_add(out, i ? ", " : "");
            write_value(out, &value->list.items[i], truth);
        }
        hwnas_str_add(out, "]");
        break;
    }
}

static void write_operator(hwnas_str *out, const hwnas_py *expr, bool truth)
{
    int level = operators[expr->op].level;
    const char *text = operators[expr->op].text;
    switch (level) {
    case CONDITIONAL: /* the language's order is: condition, then, else */
        write_expr(out, expr->args[1], OR, truth);
        hwnas_str_add(out, text);
        write_expr(out, expr->args[0], OR, true);
        hwnas_str_add(out, " else ");
        write_expr(out, expr->args[2], CONDITIONAL, truth);
        break;
    case NOT:
    case SIGN:
        hwnas_str_add(out, text);
        write_expr(out, expr->args[0], level, level == NOT);
        break;
    case PRIMARY:
        write_expr(out, expr->args[0], PRIMARY, false);
        hwnas_str_add(out, text);
        write_expr(out, expr->args[1], ANY, false);
        hwnas_str_add(out, "]");
        break;
    default: /* from the left; but a == b == c would be a chain of comparisons */
        write_expr(out, expr->args[0], level == COMPARE ? level + 1 : level, is_logic(expr->op));
        for (size_t i = 1; i < expr->n_args; i++) {
            hwnas_str_add(out, text);
            write_expr(out, expr->args[i], level + 1, is_logic(expr->op));
        }
    }
}

static const struct {
    const char *open, *close;
} brackets[] = {
    [HWNAS_PY_CALL] = {"(", ")"},
    [HWNAS_PY_LIST] = {"[", "]"},
    [HWNAS_PY_TUPLE] = {"(", ")"},
};

static bool has_brackets(const hwnas_py *expr)
{
    return expr->kind == HWNAS_PY_CALL || expr->kind == HWNAS_PY_LIST ||
           expr->kind == HWNAS_PY_TUPLE;
}

/* What stands before the bracket. */
static const char *callee(const hwnas_py *expr)
{
    return expr->name ? expr->name->text : expr->text ? expr->text : "";
}

static void write_args(hwnas_str *out, const hwnas_py *expr)
{
    for (size_t i = 0; i < expr->n_args; i++) {
        hwnas_str_add(out, i ? ", " : "");
        write_expr(out, expr->args[i], ANY, false);
    }
}

static void write_expr(hwnas_str *out, const hwnas_py *expr, int level, bool truth)
{
    switch (expr->kind) {
    case HWNAS_PY_VALUE: {
        bool is_negative = expr->value.kind == HWNAS_VALUE_INT && expr->value.i < 0;
        hwnas_str_add(out, is_negative && level > SIGN ? "(" : "");
        write_value(out, &expr->value, truth);
        hwnas_str_add(out, is_negative && level > SIGN ? ")" : "");
        break;
    }
    case HWNAS_PY_NAME: {
        const hwnas_py_name *name = hwnas_py_real(expr->name);
        if (name->is_inlined)
            write_expr(out, name->meaning, level, truth);
        else
            hwnas_str_add(out, name->text);
        break;
    }
    case HWNAS_PY_OPERATOR: {
        bool is_wrapped = operators[expr->op].level < level;
        hwnas_str_add(out, is_wrapped ? "(" : "");
        write_operator(out, expr, truth);
        hwnas_str_add(out, is_wrapped ? ")" : "");
        break;
    }
    case HWNAS_PY_CALL:
    case HWNAS_PY_LIST:
    case HWNAS_PY_TUPLE:
        hwnas_str_add(out, callee(expr));
        hwnas_str_add(out, brackets[expr->kind].open);
        write_args(out, expr);
        hwnas_str_add(out, expr->kind == HWNAS_PY_TUPLE && expr->n_args == 1 ? "," : "");
        hwnas_str_add(out, brackets[expr->kind].close);
        break;
    case HWNAS_PY_KEYWORD:
        hwnas_str_addf(out, "%s=", expr->text);
        write_expr(out, expr->args[0], ANY, truth);
        break;
    case HWNAS_PY_SPREAD:
        hwnas_str_add(out, "*");
        write_expr(out, expr->args[0], OR, false);
        break;
    case HWNAS_PY_MEMBER:
        write_expr(out, expr->args[0], PRIMARY, false);
        hwnas_str_addf(out, ".%s", expr->text);
        break;
    case HWNAS_PY_TRUTH:
        write_expr(out, expr->args[0], level, true);
        break;
    }
}

char *hwnas_py_text(const hwnas_py *expr)
{
    hwnas_str text = {0};
    write_expr(&text, expr, ANY, false);
    return text.s;
}

void hwnas_py_line(hwnas_str *out, int indent, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *text = hwnas_vprintf(format, ap);
    va_end(ap);
    hwnas_str_addf(out, "%*s%s\n", indent, "", text);
    free(text);
}

static bool is_tall(const hwnas_py *expr)
{
    if (expr->is_tall)
        return true;
    for (size_t i = 0; i < expr->n_args; i++)
        if (is_tall(expr->args[i]))
            return true;
    return false;
}

void hwnas_py_layout(hwnas_str *out, int indent, const char *prefix, const hwnas_py *expr,
                     const char *suffix)
{
    hwnas_str text = {0}, prefixed = {0};
    write_expr(&text, expr, ANY, false);
    size_t width = (size_t)indent + strlen(prefix) + text.n + strlen(suffix);
    if (expr->kind == HWNAS_PY_KEYWORD && has_brackets(expr->args[0])) {
        hwnas_str_addf(&prefixed, "%s%s=", prefix, expr->text);
        hwnas_py_layout(out, indent, prefixed.s, expr->args[0], suffix);
    } else if (!has_brackets(expr) || !expr->n_args || (width <= WIDTH && !is_tall(expr))) {
        hwnas_py_line(out, indent, "%s%s%s", prefix, text.s, suffix);
    } else {
        hwnas_py_line(out, indent, "%s%s%s", prefix, callee(expr), brackets[expr->kind].open);
        hwnas_str inside = {0};
        write_args(&inside, expr);
        if (expr->kind == HWNAS_PY_CALL && (size_t)indent + STEP + inside.n <= WIDTH &&
            !is_tall(expr))
            hwnas_py_line(out, indent + STEP, "%s", inside.s);
        else
            for (size_t i = 0; i < expr->n_args; i++)
                hwnas_py_layout(out, indent + STEP, "", expr->args[i],
                                expr->n_args == 1 && expr->kind == HWNAS_PY_CALL ? "" : ",");
        hwnas_str_done(&inside);
        hwnas_py_line(out, indent, "%s%s", brackets[expr->kind].close, suffix);
    }
    hwnas_str_done(&prefixed);
    hwnas_str_done(&text);
}

bool hwnas_py_is_free(const char *text)
{
    static const char *const taken[] = {
        "False",  "None",  "True",   "and",   "as",    "assert", "async",    "await",    "break",
        "class",  "def",   "del",    "elif",  "else",  "except", "finally",  "for",      "from",
        "global", "if",    "import", "in",    "is",    "lambda", "nonlocal", "not",      "or",
        "pass",   "raise", "return", "try",   "while", "with",   "yield",    "continue", "self",
        "super",  "torch", "nn",     "range", "zip",   "max",    "min",      "sum",      "abs",
        "len",    "round", "int",    "print", NULL,
    };
    for (const char *const *word = taken; *word; word++)
        if (!strcmp(*word, text))
            return false;
    return true;
}

/* Words that are not spelled with one capital. */
static const struct {
    const char *word, *spelled;
} capitals[] = {
    {"bert", "BERT"},
    {"bn", "BN"},
    {"cnn", "CNN"},
    {"darts", "DARTS"},
    {"deit", "DeiT"},
    {"efficientnet", "EfficientNet"},
    {"ffn", "FFN"},
    {"fpn", "FPN"},
    {"gelu", "GELU"},
    {"gpt", "GPT"},
    {"gpt2", "GPT2"},
    {"gru", "GRU"},
    {"imagenet", "ImageNet"},
    {"lstm", "LSTM"},
    {"mb", "MB"},
    {"mbconv", "MBConv"},
    {"mlp", "MLP"},
    {"mnasnet", "MnasNet"},
    {"mnist", "MNIST"},
    {"mobilenet", "MobileNet"},
    {"nas", "NAS"},
    {"nasbench", "NASBench"},
    {"nasnet", "NASNet"},
    {"ofa", "OFA"},
    {"relu", "ReLU"},
    {"resnet", "ResNet"},
    {"se", "SE"},
    {"ssd", "SSD"},
    {"vgg", "VGG"},
    {"vgg16", "VGG16"},
    {"vit", "ViT"},
    {"yolo", "YOLO"},
};

static const char *spell(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
        if (strlen(capitals[i].word) == n && !strncmp(capitals[i].word, word, n))
            return capitals[i].spelled;
    return NULL;
}

char *hwnas_py_class_name(hwnas_arena *arena, const char *name)
{
    hwnas_str text = {0};
    if (isdigit((unsigned char)*name))
        hwnas_str_add(&text, "Net");
    while (*name) {
        size_t n = 0;
        while (isalnum((unsigned char)name[n]))
            n++;
        const char *spelled = spell(name, n);
        if (spelled) {
            hwnas_str_add(&text, spelled);
        } else if (n) {
            hwnas_str_addf(&text, "%c", toupper((unsigned char)*name));
            hwnas_str_addn(&text, name + 1, n - 1);
        }
        name += n ? n : 1;
    }
    char *result = hwnas_arena_string(arena, text.n ? text.s : "Net", text.n ? text.n : 3);
    hwnas_str_done(&text);
    return result;
}
