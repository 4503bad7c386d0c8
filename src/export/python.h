/* python.h: Python source as data: expressions, names and how they are laid out on the page.
 *
 * A name gets its spelling last, when it is known which names are used at all and which wishes
 * collide. Everything lives in the arena that it is made in. */
#ifndef HWNAS_EXPORT_PYTHON_H
#define HWNAS_EXPORT_PYTHON_H

#include "base/mem.h"
#include "base/str.h"
#include "space/lang.h"

typedef struct hwnas_py_name {
    const char *text;               /* the spelling, once settled */
    const char *const *wishes;      /* NULL-terminated; the first that is free becomes the text */
    const struct hwnas_py *meaning; /* what it stands for; NULL when that changes or is not known */
    struct hwnas_py_name *same;     /* it turned out to be another name */
    bool is_own;                    /* ours, not the space's: spelled last, and written as its
                                       meaning when that is used once */
    bool is_inlined;                /* written as its meaning */
    bool is_dropped;                /* nothing reads it */
    unsigned uses, truth_uses;      /* reads, and those that ask only whether it is true */
} hwnas_py_name;

typedef enum hwnas_py_kind {
    HWNAS_PY_VALUE,    /* value */
    HWNAS_PY_NAME,     /* name */
    HWNAS_PY_OPERATOR, /* op with args */
    HWNAS_PY_CALL,     /* text(args), or name(args) */
    HWNAS_PY_LIST,     /* [args] */
    HWNAS_PY_TUPLE,    /* (args) */
    HWNAS_PY_KEYWORD,  /* text=args[0] */
    HWNAS_PY_SPREAD,   /* *args[0] */
    HWNAS_PY_MEMBER,   /* args[0].text */
    HWNAS_PY_TRUTH,    /* args[0], of which only the truth matters: 1 is written True */
} hwnas_py_kind;

typedef struct hwnas_py {
    hwnas_py_kind kind;
    hwnas_operator op;
    hwnas_value value;
    hwnas_py_name *name;
    const char *text;
    bool is_tall; /* CALL, LIST: one argument a line, even when there is room */
    size_t n_args;
    const struct hwnas_py **args;
} hwnas_py;

/* The name that it turned out to be. */
hwnas_py_name *hwnas_py_real(hwnas_py_name *name);

hwnas_py *hwnas_py_value(hwnas_arena *arena, hwnas_value value);
hwnas_py *hwnas_py_int(hwnas_arena *arena, int64_t value);
hwnas_py *hwnas_py_of(hwnas_arena *arena, hwnas_py_name *name);
/* Any other kind; the arguments are copied. */
hwnas_py *hwnas_py_make(hwnas_arena *arena, hwnas_py_kind kind, const char *text, size_t n_args,
                        const hwnas_py *const *args);
hwnas_py *hwnas_py_operator(hwnas_arena *arena, hwnas_operator op, size_t n_args,
                            const hwnas_py *const *args);

bool hwnas_py_equal(const hwnas_py *a, const hwnas_py *b);
bool hwnas_py_is_value(const hwnas_py *expr);
bool hwnas_py_is_true(const hwnas_py *value); /* of a value */
bool hwnas_py_is_number(const hwnas_py *expr, double number);
/* A value or a name: short enough to be written twice. */
bool hwnas_py_is_plain(const hwnas_py *expr);
bool hwnas_py_mentions(const hwnas_py *expr, const hwnas_py_name *name);
/* `expr` with each of the names replaced; a name that has a meaning and is not listed is replaced
 * by its meaning. */
const hwnas_py *hwnas_py_replace(hwnas_arena *arena, const hwnas_py *expr, size_t n,
                                 hwnas_py_name *const *names, const hwnas_py *const *by);

/* Counts the uses of the names in `expr`. */
void hwnas_py_count(const hwnas_py *expr);

/* Writes PREFIX expr SUFFIX, indented, on one line when there is room, else as Black does. */
void hwnas_py_layout(hwnas_str *out, int indent, const char *prefix, const hwnas_py *expr,
                     const char *suffix);
/* One line, indented. */
void hwnas_py_line(hwnas_str *out, int indent, const char *format, ...) HWNAS_PRINTF(3, 4);
/* In one line; yours to free(). */
char *hwnas_py_text(const hwnas_py *expr);

/* May a variable be called so? Not when it is a keyword, or a builtin that the code may need. */
bool hwnas_py_is_free(const char *text);
/* "squeeze_excite" -> "SqueezeExcite", "mbconv" -> "MBConv". */
char *hwnas_py_class_name(hwnas_arena *arena, const char *name);

#endif
