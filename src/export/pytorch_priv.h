/* pytorch_priv.h: how an architecture becomes PyTorch code, in three steps.
 *
 * 1. Watch (pytorch_watch.c): the network is executed once as the graph was built, and what each
 *    condition, count and dimension came to is noted. A condition that came out one way only will
 *    not be written. Everything that PyTorch cannot say is refused here, so the rest cannot fail.
 * 2. Translate (pytorch_translate.c, pytorch_expr.c): each template becomes a class whose __init__
 *    is a list of steps. Choices and constants are filled in; parameters stay parameters. One that
 *    names tensors gets a forward() with variables (pytorch_wire.c).
 * 3. Write (pytorch_write.c): unused names go, the rest are spelled, and the steps are laid out. */
#ifndef HWNAS_EXPORT_PYTORCH_PRIV_H
#define HWNAS_EXPORT_PYTORCH_PRIV_H

#include "graph/graph.h"
#include "export/python.h"
#include "space/arch.h"

/* ---- the tables: operators, joins and helpers ---- */

/* What happens to an activation that the operator is given or gives. */
typedef enum hwnas_torch_result {
    HWNAS_TORCH_KEPT,   /* needed for the gradient: the next module must not overwrite it */
    HWNAS_TORCH_FRESH,  /* may be overwritten */
    HWNAS_TORCH_PASSED, /* the input itself, or a view of it */
} hwnas_torch_result;

/* What the spelling depends on beside the attributes. */
typedef enum hwnas_torch_look {
    HWNAS_TORCH_NOTHING,
    HWNAS_TORCH_RANK,   /* dimensions after the channels: nn.BatchNorm1d, 2d, 3d */
    HWNAS_TORCH_RATIO,  /* channels after by channels before: flatten */
    HWNAS_TORCH_WINDOW, /* PyTorch pads pools by at most half the kernel */
} hwnas_torch_look;

typedef struct hwnas_torch_argument {
    const char *attr;
    const char *keyword; /* NULL: by position */
    double fallback;     /* PyTorch's default, which is not written; NAN: none */
    bool is_truth;
} hwnas_torch_argument;

typedef struct hwnas_torch_row {
    const char *op;
    const char *module; /* with %d: the rank */
    bool takes_channels;
    const char *literal; /* an argument that is always the same */
    hwnas_torch_argument arguments[8];
    const char *sets_channels; /* the attribute that says how many come out */
    bool may_overwrite;        /* knows inplace=True */
    hwnas_torch_result result;
    hwnas_torch_look looks_at;
    const char *general;   /* for arguments that are not `module`'s defaults, which it cannot be
                              given: the helper or module to use instead */
    bool general_has_none; /* which has no such defaults, so that it is given all arguments */
} hwnas_torch_row;
const hwnas_torch_row *hwnas_torch_row_of(const char *op); /* NULL: none */

typedef struct hwnas_torch_join {
    const char *op;
    const char *infix;  /* between the branches in forward(); NULL: concatenation */
    const char *helper; /* the class for a join inside a sequence */
    const char *branch; /* what the only branch with layers is called */
} hwnas_torch_join;
const hwnas_torch_join *hwnas_torch_join_of(const char *op);

typedef struct hwnas_torch_helper {
    const char *name, *text;
} hwnas_torch_helper;
enum { HWNAS_TORCH_MAX_HELPERS = 16 };
extern const hwnas_torch_helper hwnas_torch_helpers[]; /* ends with a NULL name */

/* ---- 1. watch ---- */

/* What one condition, count or dimension came to, in all places where it was met. */
typedef struct hwnas_sight {
    const void *of;    /* statement or expression */
    uint64_t outcomes; /* bit i: it was i, for i < 64 */
    bool varies;
    int64_t value; /* the first */
} hwnas_sight;

typedef struct hwnas_export {
    hwnas_arena *arena;
    const hwnas_arch *arch;
    const hwnas_graph *graph;
    const hwnas_value *choices;
    size_t next_node;          /* while watching: the node that the next layer made */
    struct hwnas_named *named; /* while watching: the tensors that this call has named */
    bool is_concrete;          /* a class for each set of arguments, loops written out */
    bool needs_values;         /* what forward() does depends on the arguments: start again so */
    size_t n_sights, sight_capacity;
    hwnas_sight *sights;
    size_t n_classes, class_capacity;
    struct hwnas_class **classes;
    bool needs[HWNAS_TORCH_MAX_HELPERS];
    hwnas_str text; /* the classes written so far; a class comes after those that it uses */
} hwnas_export;

HWNAS_CHECKED hwnas_status hwnas_export_watch(hwnas_export *export);
/* Never NULL; zero for what was not reached. */
const hwnas_sight *hwnas_export_saw(const hwnas_export *export, const void *of);
/* Did as many channels always come out as went in? Of a template, or an `if`'s or `switch`'s
 * bodies. */
static inline bool hwnas_export_keeps(const hwnas_export *export, const void *of)
{
    return hwnas_export_saw(export, of)->outcomes == 2;
}

/* ---- 2. translate ---- */

typedef enum hwnas_step_kind {
    HWNAS_STEP_MODULE, /* the next module of the sequence is `expr` */
    HWNAS_STEP_ASSIGN, /* name = expr */
    HWNAS_STEP_IF,     /* arms; the condition of the last may be NULL: else */
    HWNAS_STEP_FOR,    /* targets walk the iterables together; arms[0] */
    HWNAS_STEP_LIST,   /* name = [the modules of arms[0]] */
} hwnas_step_kind;

typedef struct hwnas_sequence {
    hwnas_py_name *list; /* the Python list that collects the modules */
    size_t n, capacity;
    struct hwnas_step *steps;
} hwnas_sequence;

typedef struct hwnas_arm {
    const hwnas_py *condition;
    hwnas_sequence sequence;
} hwnas_arm;

typedef struct hwnas_step {
    hwnas_step_kind kind;
    const hwnas_py *expr;
    hwnas_py_name *name;
    const char *label; /* MODULE: the operator or template */
    size_t n_arms;
    hwnas_arm *arms;
    size_t n_targets;
    hwnas_py_name **targets;
    const hwnas_py **iterables;
    hwnas_py_name *table; /* FOR: what the table of constant rows is called */
} hwnas_step;

/* A class is a chain of parts: forward() applies one after the other. When its template names
 * tensors, all parts are PLAIN and `lines` say what forward() does. */
typedef enum hwnas_part_kind {
    HWNAS_PART_PLAIN,
    HWNAS_PART_RESIDUAL, /* x + branches[0](x), when */
    HWNAS_PART_JOIN,
} hwnas_part_kind;

typedef struct hwnas_part {
    hwnas_part_kind kind;
    const hwnas_py *when;         /* RESIDUAL; NULL: always */
    const hwnas_torch_join *join; /* JOIN */
    size_t n_branches;
    hwnas_sequence *branches;
    const char **attributes; /* while writing: what each branch is called; NULL: it has no layers */
    const char *stem;        /* of a class with lines: how to call it when it is several layers */
} hwnas_part;

/* A variable of forward(). */
typedef struct hwnas_variable {
    const char *wish;      /* NULL: x, y, ... */
    const char *text;      /* once settled */
    size_t uses, last_use; /* the line */
} hwnas_variable;

typedef enum hwnas_wire_kind {
    HWNAS_WIRE_VARIABLE,
    HWNAS_WIRE_APPLY, /* self.PART(args[0]) */
    HWNAS_WIRE_JOIN,  /* args[0] + args[1] ... */
} hwnas_wire_kind;

/* A tensor in forward(). What a join or a part is given is a variable or a part of one. */
typedef struct hwnas_wire {
    hwnas_wire_kind kind;
    hwnas_variable *variable;
    const hwnas_part *part;
    const hwnas_torch_join *join;
    size_t n_args;
    const struct hwnas_wire **args;
} hwnas_wire;

typedef struct hwnas_line {
    hwnas_variable *variable; /* NULL: return */
    const hwnas_wire *wire;
    bool is_dropped; /* nobody reads the variable */
} hwnas_line;

typedef struct hwnas_class {
    hwnas_export *export;
    const hwnas_template *template;
    const char *name;
    hwnas_py_name *in_channels; /* NULL: the network's, which are known */
    hwnas_py_name **parameters; /* one for each of the template */
    const hwnas_py **fallbacks; /* their defaults; NULL: must be given */
    hwnas_py_name *n_outputs;   /* the network's: outputs of its last layer, or NULL */
    const hwnas_py *n_outputs_value;
    const hwnas_py *out_channels; /* in terms of the parameters; NULL: the module knows */
    const hwnas_py *out_variable; /* then: the variable that tells it to the module */
    bool is_fresh;                /* its result may be overwritten */
    bool is_empty;                /* no layers: it is neither written nor used */
    const hwnas_py *concrete_in;  /* is_concrete: what the class was made for */
    const hwnas_py **concrete;
    size_t n_parts, part_capacity;
    hwnas_part **parts;
    bool has_lines;
    hwnas_variable *input; /* of forward() */
    size_t n_lines, line_capacity;
    hwnas_line *lines;
    size_t n_names, name_capacity;
    hwnas_py_name **names; /* all of __init__ */
} hwnas_class;

static inline bool hwnas_sequence_is_straight(const hwnas_sequence *sequence)
{
    for (size_t i = 0; i < sequence->n; i++) {
        const hwnas_step *step = &sequence->steps[i];
        if (step->kind != HWNAS_STEP_MODULE &&
            !(step->kind == HWNAS_STEP_ASSIGN && step->name->meaning && !step->name->same))
            return false;
    }
    return true;
}

/* The __init__ that is being translated. */
typedef struct hwnas_torch_scope {
    hwnas_export *export;
    hwnas_class *class;
    hwnas_arena *arena;
    const hwnas_py **slots;  /* what each slot of the frame stands for */
    const hwnas_py *in;      /* channels of the current tensor */
    hwnas_py_name *list;     /* collects the modules of one part after the other */
    hwnas_py_name *channels; /* the variable that keeps them where they are not known */
    unsigned n_assigned;     /* how often it was assigned */
    bool is_fresh;           /* the next module may overwrite what it is given */
    const hwnas_wire *wire;  /* of a class with lines: what `open` is applied to */
    hwnas_part *open;        /* collects layers; NULL: none yet */
    struct hwnas_named *named;
} hwnas_torch_scope;

/* The class of a template: translated and written when it is met first. Only a concrete one looks
 * at the channels and the arguments. */
hwnas_class *hwnas_class_of(hwnas_export *export, const hwnas_template *template,
                            const hwnas_py *in, const hwnas_py *const *values);
/* `to` is NULL at the top of a template, where parts may begin. */
void hwnas_torch_body(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to);
hwnas_part *hwnas_torch_part(hwnas_torch_scope *s, hwnas_part_kind kind, size_t n_branches);
/* Room for one more element of an array in the arena. */
void *hwnas_torch_grown(hwnas_arena *arena, void *array, size_t n, size_t *capacity, size_t size);
/* Channels that the next statements may not change: a name of their own where a variable has them.
 */
void hwnas_torch_pin_channels(hwnas_torch_scope *s);
/* The channels of a join from those of its branches. */
void hwnas_torch_join_channels(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                               const hwnas_py *const *exits, hwnas_sequence *to);

/* ---- Templates that name tensors, pytorch_wire.c ---- */

/* A tensor that was named, while it is watched or translated. */
typedef struct hwnas_named {
    int slot;
    int64_t index;
    const int64_t *dims;
    int n_dims;
    const hwnas_wire *wire;
    const hwnas_py *in;
    struct hwnas_named *next;
} hwnas_named;
hwnas_named *hwnas_named_find(hwnas_named *list, int slot, int64_t index);

/* Is there an `as` or a `from` in it? */
bool hwnas_names_tensors(const hwnas_body *body);
void hwnas_wire_begin(hwnas_torch_scope *s);
void hwnas_wire_end(hwnas_torch_scope *s);
/* The sequence that the next layer belongs to. */
hwnas_sequence *hwnas_wire_target(hwnas_torch_scope *s);
void hwnas_wire_join(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_as(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_from(hwnas_torch_scope *s, const hwnas_stmt *stmt);
/* forward(), when the attributes of the parts have their names. */
void hwnas_wire_write(hwnas_str *out, hwnas_class *class, bool is_after_init);
/* "PREFIX a + b": `n` texts joined, in brackets when they do not fit on a line. */
void hwnas_wire_layout(hwnas_str *out, hwnas_arena *arena, int indent, const char *prefix,
                       const char *infix, size_t n, const char *const *texts);

/* A value when everything that the expression refers to is known. */
const hwnas_py *hwnas_torch_convert(hwnas_torch_scope *s, const hwnas_expr *expr);
/* The same for a formula whose names were replaced by values. */
const hwnas_py *hwnas_torch_fold(hwnas_torch_scope *s, const hwnas_py *expr);
/* `expr` with `to` wherever `from` stood. */
const hwnas_py *hwnas_torch_swap(hwnas_torch_scope *s, const hwnas_py *expr, const hwnas_py *from,
                                 const hwnas_py *to);
/* The file will have this helper. */
void hwnas_torch_need(hwnas_export *export, const char *name);

/* ---- 3. write ---- */

/* Settles the names; then callers can tell which parameters the class takes. */
void hwnas_class_write(hwnas_str *out, hwnas_class *class);
static inline bool hwnas_name_is_truth(const hwnas_py_name *name)
{
    return name->uses && name->uses == name->truth_uses;
}

#endif
