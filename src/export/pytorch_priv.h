/* pytorch_priv.h: how an architecture becomes PyTorch code, in three steps.
 *
 * 1. Watch (pytorch_watch.c): the network is executed once as the graph was built, and what each
 *    condition, count and dimension came to is noted. A condition that came out one way only will
 *    not be written. Everything that PyTorch cannot say is refused here, so the rest cannot fail.
 * 2. Translate (pytorch_class.c, pytorch_translate.c, ...): each template becomes a class whose
 *    __init__ is a list of steps. Choices and constants are filled in; parameters stay parameters.
 *    One that names tensors, or has layers that are no modules, gets a forward() with variables
 *    (pytorch_wire.c). Where that depends on the arguments, all is translated again with each
 *    call's arguments and sizes filled in, and equal classes are one.
 * 3. Write (pytorch_write.c): unused names go and the rest are spelled (pytorch_names.c), and the
 *    steps are laid out (pytorch_sequence.c). */
#ifndef HWNAS_EXPORT_PYTORCH_PRIV_H
#define HWNAS_EXPORT_PYTORCH_PRIV_H

#include "graph/op.h"
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
    HWNAS_TORCH_WINDOW, /* PyTorch pads alike on opposite sides, and pools by at most half the
                           kernel */
} hwnas_torch_look;

/* Which dimension a layer works on, and is told the length of. */
typedef enum hwnas_torch_side {
    HWNAS_TORCH_NO_SIDE,
    HWNAS_TORCH_CHANNELS, /* the first behind the batch */
    HWNAS_TORCH_FEATURES, /* the last */
} hwnas_torch_side;

/* A tensor's dimensions without the batch. */
typedef struct hwnas_shape {
    int n;
    int64_t dims[HWNAS_MAX_RANK];
} hwnas_shape;

/* Reshaping as PyTorch's users know it: the dimensions from `at` on become one, or `at` becomes
 * `n`, and the others stay; 0 is the batch. */
typedef struct hwnas_change {
    enum { HWNAS_CHANGE_ANY, HWNAS_CHANGE_FLATTEN, HWNAS_CHANGE_UNFLATTEN } kind;
    int at, n;
} hwnas_change;
hwnas_change hwnas_change_between(const hwnas_shape *before, const hwnas_shape *after);

/* What an operator was given and gave, in all places where it was met. */
typedef struct hwnas_torch_observed {
    const hwnas_stmt *of;
    hwnas_shape before, after;            /* of the first */
    unsigned varies_before, varies_after; /* bit i: dimension i did; all bits: their number did */
    hwnas_change change;                  /* always */
    bool keeps;                           /* always as many channels after as before */
    bool gives_entry;                     /* always as many as went into the template */
    bool is_lopsided;                     /* its padding is not as PyTorch has it */
} hwnas_torch_observed;

typedef struct hwnas_torch_scope hwnas_torch_scope;

/* What a layer is in forward(), where it is not a module: "$0.transpose(1, 2)"; $0 is what it is
 * applied to. */
typedef struct hwnas_torch_form {
    const char *text; /* NULL: it cannot be said so here, a module can */
    bool is_primary;  /* may be followed by a dot or a bracket */
} hwnas_torch_form;

typedef struct hwnas_torch_argument {
    const char *attr;
    const char *keyword; /* NULL: by position */
    double fallback;     /* PyTorch's default, which is not written; NAN: none */
    bool is_truth;
} hwnas_torch_argument;

typedef struct hwnas_torch_row {
    hwnas_op_id op;
    const char *module; /* with %d: the rank */
    hwnas_torch_side takes;
    const char *literal; /* an argument that is always the same */
    hwnas_torch_argument arguments[8];
    const char *sets_channels;    /* the attribute that says how many come out, */
    const char *doubles_channels; /* (optional) and the one that doubles them */
    bool may_overwrite;           /* knows inplace=True */
    hwnas_torch_result result;
    hwnas_torch_look looks_at;
    const char *general;   /* for arguments that are not `module`'s defaults, which it cannot be
                              given: the helper or module to use instead */
    bool general_has_none; /* which has no such defaults, so that it is given all arguments */
    const char *pads_with; /* what is around the image */
    /* (optional) Instead of the above: the module, a call. */
    const hwnas_py *(*spell)(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                             const hwnas_torch_observed *seen);
    /* (optional) The layer in forward(). */
    hwnas_torch_form (*form)(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                             const hwnas_torch_observed *seen);
    bool wants_lines; /* people write it in forward(), no module of PyTorch's does it */
} hwnas_torch_row;
const hwnas_torch_row *hwnas_torch_row_of(const char *name); /* NULL: none */

typedef struct hwnas_torch_join {
    hwnas_op_id op;
    const char *infix;  /* between the branches in forward(); NULL: a function of all */
    const char *call;   /* of them: "torch.cat" takes a list and `dim`; NULL: indexing, $0[$1] */
    const char *helper; /* the class for a join inside a sequence */
    const char *branch; /* what the only branch with layers is called */
} hwnas_torch_join;
const hwnas_torch_join *hwnas_torch_join_of(const char *name);

typedef struct hwnas_torch_helper {
    const char *name, *text;
} hwnas_torch_helper;
enum { HWNAS_TORCH_MAX_HELPERS = 40 };
extern const hwnas_torch_helper hwnas_torch_helpers[]; /* ends with a NULL name */

enum { HWNAS_TORCH_INDENT = 4 }; /* spaces */

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
    int64_t entry_channels;    /* while watching: as many went into this call */
    bool is_flat;              /* the graph's nodes are written, no templates */
    const char *weights;       /* the file that has them, beside this one; NULL: there is none */
    bool is_concrete;          /* a class for each set of arguments, loops written out; the graph's
                                  nodes are followed as while watching */
    bool needs_values;         /* what forward() does depends on the arguments: start again so */
    const hwnas_stmt *trouble; /* (optional) where that was found */
    const hwnas_stmt *tied;    /* a layer that shares the first embedding's table, until it does */
    size_t n_seen, seen_capacity;
    hwnas_torch_observed *seen;
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

/* ---- The graph beside the statements, pytorch_nodes.c ---- */

/* A dimension of the graph's own tensor; `fact` is a row of hwnas_tensor_names. -1: it has none. */
int64_t hwnas_shape_fact(const hwnas_shape *shape, int fact);
static inline int64_t hwnas_shape_channels(const hwnas_shape *shape)
{
    return hwnas_shape_fact(shape, 0);
}
hwnas_shape hwnas_shape_of(const hwnas_tensor *tensor);
/* The nodes that the graph's builder made of a layer or join, which it made in the order of
 * execution; gives the last and the shape of its output. */
HWNAS_CHECKED hwnas_status hwnas_export_take(hwnas_export *export, const hwnas_node **out,
                                             hwnas_shape *shape, const hwnas_stmt *stmt,
                                             const char *op);
HWNAS_CHECKED hwnas_status hwnas_export_take_join(hwnas_export *export, const hwnas_node **out,
                                                  hwnas_shape *shape, const hwnas_stmt *stmt);
/* The tensor of an input of the space's. */
const hwnas_tensor *hwnas_export_input(const hwnas_export *export, int input, int64_t index);
bool hwnas_export_is_input(const hwnas_export *export, size_t input, int tensor);
/* Is the padding another than what a layer of PyTorch's can do by itself? */
bool hwnas_export_is_lopsided(const hwnas_node *node, bool is_window);
hwnas_torch_observed *hwnas_export_seen(hwnas_export *export,
                                        const hwnas_stmt *stmt); /* NULL: never */

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
typedef enum hwnas_torch_piece_kind {
    HWNAS_PART_PLAIN,
    HWNAS_PART_RESIDUAL, /* x + branches[0](x), when */
    HWNAS_PART_JOIN,
} hwnas_torch_piece_kind;

typedef struct hwnas_torch_piece {
    hwnas_torch_piece_kind kind;
    const hwnas_py *when;         /* RESIDUAL; NULL: always */
    const hwnas_torch_join *join; /* JOIN */
    int64_t axis;
    size_t n_branches;
    hwnas_sequence *branches;
    const char **attributes; /* while writing: what each branch is called; NULL: it has no layers */
    const char *stem;        /* of a class with lines: how to call it when it is several layers */
} hwnas_torch_piece;

/* A variable of forward(). */
typedef struct hwnas_variable {
    const char *wish;      /* NULL: x, y, ... */
    const char *text;      /* once settled */
    size_t uses, last_use; /* the line */
} hwnas_variable;

typedef enum hwnas_wire_kind {
    HWNAS_WIRE_VARIABLE,
    HWNAS_WIRE_APPLY, /* self.PART(args); without arguments, the part itself */
    HWNAS_WIRE_FORM,  /* args[0].transpose(1, 2) */
    HWNAS_WIRE_JOIN,  /* args[0] + args[1] ... */
    HWNAS_WIRE_TUPLE, /* args[0], args[1], ... */
} hwnas_wire_kind;

/* A tensor in forward(). What a part is given is a variable; what a join is given is not a join. */
typedef struct hwnas_wire {
    hwnas_wire_kind kind;
    hwnas_variable *variable;
    const hwnas_torch_piece *part;
    hwnas_torch_form form;
    const hwnas_torch_join *join;
    int64_t axis; /* JOIN */
    bool is_call; /* APPLY: even without arguments */
    size_t n_args;
    const struct hwnas_wire **args;
} hwnas_wire;

typedef struct hwnas_line {
    size_t n_variables; /* 0: return */
    hwnas_variable **variables;
    const hwnas_wire *wire;
    bool is_dropped; /* nobody reads the variables */
} hwnas_line;

/* A tensor that forward() is given or gives beside x: an input or an output of the network. `index`
 * is in terms of the class's parameters, NULL where there is one alone. */
typedef struct hwnas_port {
    const hwnas_stmt *stmt;
    const char *name;
    const hwnas_py *index;
    const hwnas_wire *wire;
    const hwnas_py *in; /* channels */
    hwnas_shape shape;
    bool is_current; /* of a result: it is also the tensor that goes on */
} hwnas_port;

typedef struct hwnas_class {
    hwnas_export *export;
    const hwnas_template *template;
    const char *name;
    const char *body;           /* what is written behind the name */
    bool is_duplicate;          /* another is written alike, and has the name */
    hwnas_py_name *in_channels; /* NULL: the network's, which are known */
    hwnas_py_name **parameters; /* one for each of the template */
    const hwnas_py **fallbacks; /* their defaults; NULL: must be given */
    hwnas_py_name *n_outputs;   /* the network's: outputs of its last layer, or NULL */
    const hwnas_py *n_outputs_value;
    const hwnas_py *out_channels; /* in terms of the parameters; NULL: the module knows */
    hwnas_py_name *unknown;       /* stands for channels that differ from call to call; nothing may
                                     read it */
    bool gives_unknown;           /* they come out */
    const hwnas_py *out_variable; /* then: the variable that tells it to the module */
    bool is_fresh;                /* its result may be overwritten */
    bool is_empty;                /* no layers: it is neither written nor used */
    const hwnas_py **concrete;    /* is_concrete: the arguments that the class was made for, */
    size_t first_node, n_nodes;   /* its nodes there, */
    hwnas_shape entry, shape;     /* what went in and what came out */
    size_t n_parts, part_capacity;
    hwnas_torch_piece **parts;
    bool has_lines;
    hwnas_variable *input; /* of forward() */
    size_t n_ports, port_capacity;
    hwnas_port *ports; /* more of them */
    size_t n_results, result_capacity;
    hwnas_port *results; /* what it returns beside the current tensor */
    bool gives_current;  /* it does return that */
    const char *table;   /* where its first embedding is, once written: ".stem[0]"; NULL: nowhere */
    const char *tied;    /* where the layer is that shares the table */
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
struct hwnas_torch_scope {
    hwnas_export *export;
    hwnas_class *class;
    hwnas_arena *arena;
    const hwnas_py **slots;  /* what each slot of the frame stands for */
    const hwnas_py *in;      /* channels of the current tensor */
    hwnas_shape shape;       /* is_concrete: the whole of it */
    hwnas_py_name *list;     /* collects the modules of one part after the other */
    hwnas_py_name *channels; /* the variable that keeps them where they are not known */
    unsigned n_assigned;     /* how often it was assigned */
    bool is_fresh;           /* the next module may overwrite what it is given */
    const hwnas_wire *wire;  /* of a class with lines: what `open` is applied to */
    hwnas_torch_piece *open; /* collects layers; NULL: none yet */
    struct hwnas_named *named;
};

/* The class of a template: translated and written when it is met first. Only a concrete one looks
 * at the channels, the shape and the arguments. */
hwnas_class *hwnas_class_of(hwnas_export *export, const hwnas_template *template,
                            const hwnas_py *in, const hwnas_shape *shape,
                            const hwnas_py *const *values);

/* ---- Statements: pytorch_translate.c, pytorch_layers.c, pytorch_flow.c ---- */

/* `to` is NULL at the top of a template, where parts may begin. */
void hwnas_torch_body(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to);
void hwnas_torch_layer(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_if(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_switch(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_for(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_repeat(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
/* Channels that the next statements may not change: a name of their own where a variable
 * has them. */
void hwnas_torch_pin_channels(hwnas_torch_scope *s);
/* The channels of a join from those of its branches. */
void hwnas_torch_join_channels(hwnas_torch_scope *s, const hwnas_stmt *stmt, int64_t axis,
                               const hwnas_py *const *exits, hwnas_sequence *to);
/* The axis of a join that has one, counted from the beginning with the batch as 0; else 1. */
int64_t hwnas_torch_join_axis(hwnas_torch_scope *s, const hwnas_stmt *stmt);

/* ---- What statements become, pytorch_steps.c ---- */

/* Room for one more element of an array in the arena. */
void *hwnas_torch_grown(hwnas_arena *arena, void *array, size_t n, size_t *capacity, size_t size);
/* A name of the class: ours, or one that the space gave, perhaps with a spelling that is better in
 * Python. */
hwnas_py_name *hwnas_torch_name(hwnas_torch_scope *s, const char *const *wishes, bool is_own);
hwnas_py_name *hwnas_torch_given_name(hwnas_torch_scope *s, const char *better, const char *text);
void hwnas_torch_push(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_step step);
void hwnas_torch_push_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                             const char *label);
void hwnas_torch_assign(hwnas_torch_scope *s, hwnas_sequence *to, hwnas_py_name *name,
                        const hwnas_py *value);
hwnas_arm *hwnas_torch_arms(hwnas_torch_scope *s, size_t n, hwnas_py_name *list);
hwnas_torch_piece *hwnas_torch_part(hwnas_torch_scope *s, hwnas_torch_piece_kind kind,
                                    size_t n_branches);
/* Where the next layers go: `to`, or at the top of a template its last part without branches. */
hwnas_sequence *hwnas_torch_target(hwnas_torch_scope *s, hwnas_sequence *to);
/* Slots of an arm or loop; returns those outside, to be put back. */
const hwnas_py **hwnas_torch_enter(hwnas_torch_scope *s);
/* Is it the variable that keeps the channels? */
bool hwnas_torch_is_running(const hwnas_torch_scope *s, const hwnas_py *expr);
void hwnas_torch_assign_channels(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *value);
/* Is the name read or assigned in the steps from `begin` on? */
bool hwnas_torch_mentions(const hwnas_sequence *sequence, size_t begin, const hwnas_py_name *name);
/* At the end of an arm or loop: puts the channels into the running variable. */
void hwnas_torch_settle_channels(hwnas_torch_scope *s, hwnas_sequence *arm);
/* Appends a module whose result has `out` channels. A formula for them is computed once. */
void hwnas_torch_add_module(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *module,
                            const char *label, const hwnas_py *out);

/* ---- Templates that name tensors, pytorch_wire.c ---- */

/* A tensor that was named, while it is watched or translated. */
typedef struct hwnas_named {
    int slot;
    int64_t index;
    hwnas_shape shape;
    const hwnas_wire *wire;
    const hwnas_py *in;
    struct hwnas_named *next;
} hwnas_named;
hwnas_named *hwnas_named_find(hwnas_named *list, int slot, int64_t index);

/* Is there an `as`, `from` or `output` in it, or a call of a template that has the network's inputs
 * or outputs? */
bool hwnas_names_tensors(const hwnas_body *body);
/* Does the template's forward() have lines? */
bool hwnas_has_lines(const hwnas_template *template);
void hwnas_wire_begin(hwnas_torch_scope *s);
void hwnas_wire_end(hwnas_torch_scope *s);
/* The sequence that the next layer belongs to. */
hwnas_sequence *hwnas_wire_target(hwnas_torch_scope *s);
void hwnas_wire_join(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_residual(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_as(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_from(hwnas_torch_scope *s, const hwnas_stmt *stmt);
void hwnas_wire_output(hwnas_torch_scope *s, const hwnas_stmt *stmt);
/* No layer is added to the open part any more. */
void hwnas_wire_close(hwnas_torch_scope *s);
/* A layer that forward() says itself. */
void hwnas_wire_form(hwnas_torch_scope *s, hwnas_torch_form form);
/* Weight(512, 64) as nn.Parameter(...). */
const hwnas_py *hwnas_torch_parameter(hwnas_torch_scope *s, const hwnas_py *module);
/* A learned tensor, of which `module` makes a parameter. */
void hwnas_wire_weight(hwnas_torch_scope *s, const hwnas_py *module, hwnas_torch_form form);
/* A call of a class that takes or gives more than x; the module is in the open part. */
void hwnas_wire_call(hwnas_torch_scope *s, const hwnas_class *class, hwnas_py_name *const *names,
                     const hwnas_py *const *values);
/* ---- Lines of forward(): made in pytorch_wire.c, written in pytorch_lines.c ---- */

const hwnas_wire *hwnas_wire_of(hwnas_torch_scope *s, hwnas_variable *variable);
const hwnas_wire *hwnas_wire_make(hwnas_torch_scope *s, hwnas_wire wire, size_t n_args,
                                  const hwnas_wire *const *args);
hwnas_variable *hwnas_wire_new_variable(hwnas_torch_scope *s, const char *wish);
void hwnas_wire_add_line(hwnas_torch_scope *s, size_t n, hwnas_variable *const *variables,
                         const hwnas_wire *wire);
/* May it be followed by a dot or stand beside an operator? */
bool hwnas_wire_is_primary(const hwnas_wire *wire);
/* How many forms one after the other. */
int hwnas_wire_depth(const hwnas_wire *wire);
/* The same tensor in a variable. */
const hwnas_wire *hwnas_wire_as_variable(hwnas_torch_scope *s, const hwnas_wire *wire);

/* forward(), when the attributes of the parts have their names. */
void hwnas_wire_write(hwnas_str *out, hwnas_class *class, bool is_after_init);
/* "PREFIX a + b": `n` texts joined, in brackets when they do not fit on a line. */
void hwnas_wire_layout(hwnas_str *out, hwnas_arena *arena, int indent, const char *prefix,
                       const hwnas_torch_join *join, int64_t axis, size_t n,
                       const char *const *texts);

/* ---- Layers, pytorch_layers.c, and those with a spelling of their own, pytorch_forms.c ---- */

/* The value of an attribute: as the space gives it, or the operator's default. */
const hwnas_py *hwnas_torch_attribute(hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                      const char *name);
/* The same of a list, item by item (at most HWNAS_MAX_RANK); returns how many. */
size_t hwnas_torch_items(const hwnas_py **items, hwnas_torch_scope *s, const hwnas_stmt *stmt,
                         const char *name);
/* An attribute that forward() depends on, so that it must be known. */
int64_t hwnas_torch_known(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *name);
const hwnas_py *hwnas_torch_keyword(hwnas_torch_scope *s, const char *name, const hwnas_py *expr);
/* The length of a dimension before a layer. */
const hwnas_py *hwnas_torch_length(hwnas_torch_scope *s, const hwnas_torch_observed *seen,
                                   hwnas_torch_side side);
/* What became of a statement: in a concrete class, its nodes. */
hwnas_torch_observed hwnas_torch_seen(hwnas_torch_scope *s, const hwnas_stmt *stmt, const char *op);
/* Channels after a statement that is not a layer with channels of its own. */
const hwnas_py *hwnas_torch_channels(hwnas_torch_scope *s, const hwnas_torch_observed *seen);

/* ---- Expressions, pytorch_expr.c ---- */

const hwnas_py *hwnas_torch_truth(hwnas_torch_scope *s, const hwnas_py *expr);
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

/* Where a class has its first embedding and the layer that shares the table, when its attributes
 * have their names; pytorch_tie.c. */
void hwnas_class_find_table(hwnas_class *class);
/* Of the network: "self.head[1].weight = self.embedding.weight". */
void hwnas_class_write_tie(hwnas_str *out, hwnas_class *class);
/* The module of a sequence is an attribute itself, no container of one. */
bool hwnas_sequence_is_single(const hwnas_sequence *sequence);
/* Is there anything but assignments in it that is written? */
bool hwnas_sequence_has_modules(const hwnas_sequence *sequence);
/* Its steps alone, at an indentation. */
void hwnas_sequence_write(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                          int indent);
/* What must be said before and then PREFIX callee(modules). */
void hwnas_sequence_write_modules(hwnas_str *out, hwnas_arena *arena,
                                  const hwnas_sequence *sequence, int indent, const char *prefix,
                                  const char *callee);
/* The constant rows that its loops walk. */
void hwnas_sequence_write_tables(hwnas_str *out, hwnas_arena *arena, const hwnas_sequence *sequence,
                                 int indent);

/* Drops the variables that nothing reads and spells the others; then what the parts are called. */
void hwnas_class_settle_names(hwnas_class *class);
void hwnas_class_name_attributes(hwnas_class *class);

/* Settles the names; then callers can tell which parameters the class takes. */
void hwnas_class_write(hwnas_str *out, hwnas_class *class);
static inline bool hwnas_name_is_truth(const hwnas_py_name *name)
{
    return name->uses && name->uses == name->truth_uses;
}

#endif
