/* lang.h: the space language as data: values, expressions, statements, templates.
 *
 * A space's network is a list of statements. space/ reads it from YAML and knows its grammar;
 * graph/ gives it meaning by walking it with an architecture's choices; export/ writes it down
 * again as PyTorch code. Everything here lives in the arena of its space. */
#ifndef HWNAS_SPACE_LANG_H
#define HWNAS_SPACE_LANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum hwnas_value_kind {
    HWNAS_VALUE_NONE, /* a parameter without default, a binding not yet made */
    HWNAS_VALUE_INT,
    HWNAS_VALUE_REAL,
    HWNAS_VALUE_SYMBOL,
    HWNAS_VALUE_LIST,
} hwnas_value_kind;

typedef struct hwnas_value {
    hwnas_value_kind kind;
    union {
        int64_t i;
        double r;
        const char *s;
        struct {
            const struct hwnas_value *items;
            size_t n;
        } list;
    };
} hwnas_value;

bool hwnas_value_equal(const hwnas_value *a, const hwnas_value *b);
/* "3", "0.25", "relu", "[1, 2]"; yours to free(). */
char *hwnas_value_text(const hwnas_value *value);
/* "an integer", "a list", ...: for messages. */
const char *hwnas_value_kind_name(hwnas_value_kind kind);

typedef enum hwnas_expr_kind {
    HWNAS_EXPR_LITERAL,  /* value */
    HWNAS_EXPR_VARIABLE, /* slot of the frame: parameter, let or loop variable */
    HWNAS_EXPR_CHOICE,   /* slot = index of a named choice of the space */
    HWNAS_EXPR_TENSOR,   /* a fact of the current tensor: slot = row of hwnas_tensor_names */
    HWNAS_EXPR_LIST,     /* [a, b, ...] */
    HWNAS_EXPR_OPERATOR, /* op = a row of the operator table */
    HWNAS_EXPR_CALL,     /* op = a row of the function table: min, max, ... */
} hwnas_expr_kind;

typedef struct hwnas_expr {
    hwnas_expr_kind kind;
    hwnas_place place;
    const char *name; /* variable, choice, setting or function as written */
    int slot, op;
    long size; /* expressions in this one, itself included: what an evaluation costs */
    hwnas_value value;
    size_t n_args;
    struct hwnas_expr **args;
} hwnas_expr;

/* Operators, by precedence from loose to tight. */
typedef enum hwnas_operator {
    HWNAS_OPERATOR_IF, /* c ? a : b */
    HWNAS_OPERATOR_OR,
    HWNAS_OPERATOR_AND,
    HWNAS_OPERATOR_NOT,
    HWNAS_OPERATOR_EQ,
    HWNAS_OPERATOR_NE,
    HWNAS_OPERATOR_LT,
    HWNAS_OPERATOR_LE,
    HWNAS_OPERATOR_GT,
    HWNAS_OPERATOR_GE,
    HWNAS_OPERATOR_ADD,
    HWNAS_OPERATOR_SUB,
    HWNAS_OPERATOR_MUL,
    HWNAS_OPERATOR_DIV,       /* exact: 7 / 2 is 3.5, 6 / 2 is 3 */
    HWNAS_OPERATOR_FLOOR_DIV, /* // */
    HWNAS_OPERATOR_MOD,       /* % */
    HWNAS_OPERATOR_NEGATE,
    HWNAS_OPERATOR_INDEX, /* a[i] */
    HWNAS_N_OPERATORS
} hwnas_operator;

typedef struct hwnas_body {
    size_t n;
    struct hwnas_stmt **stmts;
} hwnas_body;

typedef enum hwnas_stmt_kind {
    HWNAS_STMT_LAYER,    /* - NAME: {args}          an operator of graph/, or a template */
    HWNAS_STMT_JOIN,     /* - NAME: [[..], [..]]    branches from one tensor, joined by an operator,
                                                    whose arguments may stand beside */
    HWNAS_STMT_RESIDUAL, /* - residual: [..]        with when: adds the input to the result */
    HWNAS_STMT_LET,      /* - let: {name: expr} */
    HWNAS_STMT_IF,       /* - if: expr              then: [..]  else: [..] */
    HWNAS_STMT_SWITCH,   /* - switch: expr          cases: {value: [..]} */
    HWNAS_STMT_FOR,      /* - for: {name: list}     do: [..]    lists are walked together */
    HWNAS_STMT_REPEAT,   /* - repeat: expr          do: [..]    index: i */
    HWNAS_STMT_AS,       /* - as: NAME or NAME[expr]      names the current tensor */
    HWNAS_STMT_FROM,     /* - from: NAME or NAME[expr]    goes on with a named tensor or an input */
    HWNAS_STMT_OUTPUT,   /* - output: NAME or NAME[expr]  makes the current tensor an output */
} hwnas_stmt_kind;

/* The words that begin statements other than layers, one by one; NULL after the last. */
const char *hwnas_stmt_word(size_t i);

typedef struct hwnas_arg {
    const char *name;
    int slot; /* LET, FOR: where the value goes; LAYER of a template: the parameter; LAYER, JOIN of
                 an operator: the row of its attributes, found by graph/ */
    hwnas_expr *value;
    hwnas_place place;
} hwnas_arg;

typedef struct hwnas_stmt {
    hwnas_stmt_kind kind;
    hwnas_place place;
    const char *name; /* LAYER, JOIN: operator or template; REPEAT: its index; AS, FROM, OUTPUT */
    int slot;         /* REPEAT: index variable; AS, FROM: the name's of the template's tensors */
    bool is_input;    /* FROM: `slot` is an input of the network instead */
    size_t n_args;
    hwnas_arg *args;
    hwnas_expr *expr; /* IF, SWITCH, REPEAT; RESIDUAL: when, AS, FROM, OUTPUT: index, or NULL */
    size_t n_bodies;
    hwnas_body *bodies;          /* IF: then and else; SWITCH: one a case; JOIN: one a branch */
    hwnas_value *labels;         /* SWITCH: one a case */
    struct hwnas_template *call; /* LAYER of a template; NULL otherwise */
    const void *op;              /* LAYER, JOIN of an operator: resolved by graph/ */
} hwnas_stmt;

typedef struct hwnas_parameter {
    const char *name;
    hwnas_expr *fallback; /* the default; NULL: must be given */
} hwnas_parameter;

/* Templates may stand inside each other this deep. */
enum { HWNAS_MAX_CALL_DEPTH = 32 };

typedef struct hwnas_template {
    const char *name;
    hwnas_place place;
    size_t n_parameters; /* they take the first slots of the frame */
    hwnas_parameter *parameters;
    size_t n_slots;
    const char **slot_names; /* n_slots of them */
    size_t n_tensors;        /* names given by `as` */
    const char **tensor_names;
    hwnas_body body;
    bool is_checked; /* known not to contain itself */
} hwnas_template;

/* What an expression can see while it is evaluated. */
typedef struct hwnas_scope_frame {
    const hwnas_template *scope; /* names the slots in messages */
    hwnas_value *slots;
    const hwnas_value *choices; /* one per named choice of the space */
    const int64_t *dims;        /* of the current tensor, without the batch */
    int n_dims;
} hwnas_scope_frame;

/* Evaluates with exact 64-bit integers; overflow, division by zero, an index out of range, a name
 * that is none and a wrong kind are HWNAS_E_INPUT at the expression's place. List results live in
 * the space's arena or in `scratch`. */
struct hwnas_arena;
HWNAS_CHECKED hwnas_status hwnas_expr_eval(hwnas_value *out, const hwnas_expr *expr,
                                           const hwnas_scope_frame *frame, struct hwnas_arena *scratch);
HWNAS_CHECKED hwnas_status hwnas_expr_eval_int(int64_t *out, const hwnas_expr *expr,
                                               const hwnas_scope_frame *frame,
                                               struct hwnas_arena *scratch);
/* A number other than 0. */
HWNAS_CHECKED hwnas_status hwnas_expr_eval_truth(bool *out, const hwnas_expr *expr,
                                                 const hwnas_scope_frame *frame,
                                                 struct hwnas_arena *scratch);

#endif
