/* pytorch_priv.h: stage 1 for an architecture: the tree of torch_tree.h from a space's templates.
 *
 * The graph is built once and looked at meanwhile (pytorch_watch.c), and what each condition, count
 * and dimension came to is noted; a condition that came out one way only will not be written. Then
 * each template becomes a class (pytorch_class.c): choices and constants are filled in, parameters
 * stay parameters. One that names tensors, or has layers that are no modules, gets a forward() with
 * variables (pytorch_wire.c). Where that depends on the arguments, all is translated again with
 * each call's arguments and sizes filled in, and equal classes are one.
 *
 * No file calls one behind it in this order:
 *
 * - pytorch_nodes.c: the graph's nodes beside the statements, and what was seen of them
 * - pytorch_expr.c: expressions of the space as Python, evaluated as far as they are known
 * - pytorch_steps.c: names, steps, and the number of channels
 * - pytorch_attrs.c: attributes of a layer, and what became of it
 * - pytorch_forms.c, pytorch_ops.c: layers with a spelling of their own; the table of operators
 * - pytorch_channels.c: channels where branches meet
 * - pytorch_watch.c
 * - pytorch_wire.c: lines of forward()
 * - pytorch_layers.c, pytorch_flow.c: operators and calls; conditions and loops
 * - pytorch_translate.c: all statements of a template's body
 * - pytorch_class.c
 * - pytorch.c: the choice between this and a graph's own class (pytorch_flat.h), then stage 2
 *
 * Statements have bodies, and calls have templates: both begin at the end of the list again,
 * through two pointers in hwnas_export. */
#ifndef HWNAS_EXPORT_PYTORCH_PRIV_H
#define HWNAS_EXPORT_PYTORCH_PRIV_H

#include "export/torch_tree.h"
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
    hwnas_torch_argument arguments[9]; /* the last has no name */
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

const hwnas_torch_join *hwnas_torch_join_of(const char *name);

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
    size_t next_node;          /* is_concrete: the node that the next layer made */
    bool is_flat;              /* the graph's nodes are written, no templates */
    bool is_concrete;          /* a class for each set of arguments, loops written out; the graph's
                                  nodes are followed */
    bool needs_values;         /* what forward() does depends on the arguments: start again so */
    const hwnas_stmt *trouble; /* (optional) where that was found */
    const hwnas_stmt *tied;    /* a layer that shares the first embedding's table, until it does */
    size_t n_seen, seen_capacity;
    hwnas_torch_observed *seen;
    size_t n_sights, sight_capacity;
    hwnas_sight *sights;
    hwnas_torch_file module;
    /* Translates a body; the class of a template. */
    void (*walk)(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to);
    hwnas_class *(*call)(struct hwnas_export *export, const hwnas_template *template,
                         const hwnas_py *in, const hwnas_shape *shape,
                         const hwnas_py *const *values);
} hwnas_export;

/* Of a class: what it was made of, and what those who use it must know. */
typedef struct hwnas_origin {
    hwnas_export *export;
    const hwnas_template *template;
    const hwnas_py *out_channels; /* in terms of the parameters; NULL: the module knows */
    hwnas_py_name *unknown;       /* stands for channels that differ from call to call; nothing may
                                     read it */
    bool gives_unknown;           /* they come out */
    bool is_fresh;                /* its result may be overwritten */
    const hwnas_py **concrete;    /* is_concrete: the arguments that the class was made for, */
    size_t first_node, n_nodes;   /* its nodes there, */
    hwnas_shape entry, shape;     /* what went in and what came out */
    size_t n_ports, port_capacity;
    struct hwnas_port *ports; /* what forward() takes beside x */
    size_t n_results, result_capacity;
    struct hwnas_port *results; /* what it returns beside the current tensor */
    bool gives_current;         /* it does return that */
} hwnas_origin;

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

/* Builds the graph of export->arch, of batch 1, and notes what is seen of it; sets `is_flat` where
 * templates cannot say it. */
HWNAS_CHECKED hwnas_status hwnas_export_watch(hwnas_graph **out, hwnas_export *export);
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
void hwnas_torch_translate(hwnas_torch_scope *s, const hwnas_body *body, hwnas_sequence *to);
static inline void hwnas_torch_body(hwnas_torch_scope *s, const hwnas_body *body,
                                    hwnas_sequence *to)
{
    s->export->walk(s, body, to);
}
void hwnas_torch_layer(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_if(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_switch(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_for(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
void hwnas_torch_repeat(hwnas_torch_scope *s, const hwnas_stmt *stmt, hwnas_sequence *to);
/* Channels that the next statements may not change: a name of their own where a variable
 * has them. */
void hwnas_torch_pin_channels(hwnas_torch_scope *s, hwnas_sequence *to);
/* The channels of a join from those of its branches. */
void hwnas_torch_join_channels(hwnas_torch_scope *s, const hwnas_stmt *stmt, int64_t axis,
                               const hwnas_py *const *exits, hwnas_sequence *to);
/* The axis of a join that has one, counted from the beginning with the batch as 0; else 1. */
int64_t hwnas_torch_join_axis(hwnas_torch_scope *s, const hwnas_stmt *stmt);

/* ---- What statements become, pytorch_steps.c ---- */

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
/* Starts again with everything filled in. */
void hwnas_torch_need_values(hwnas_torch_scope *s, const hwnas_stmt *stmt);
/* Channels that differ from call to call: whoever reads them must be translated with values. */
const hwnas_py *hwnas_torch_unknown(hwnas_torch_scope *s);
bool hwnas_torch_is_unknown(const hwnas_torch_scope *s, const hwnas_py *channels);
int hwnas_torch_dimension(const hwnas_shape *shape, hwnas_torch_side side);
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
#endif
