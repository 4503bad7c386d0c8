/* torch_tree.h: what a PyTorch file says, between the two stages of its making. Stage 1 builds this
 * tree, of a space's templates (pytorch_priv.h) or of a graph (pytorch_flat.h), and settles its
 * names; stage 2 (torch_print.c) lays it out as text and changes nothing. All lives in one arena.
 */
#ifndef HWNAS_EXPORT_TORCH_TREE_H
#define HWNAS_EXPORT_TORCH_TREE_H

#include "export/python.h"
#include "graph/op.h"

/* ---- __init__: steps that make modules ---- */

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

/* How branches become one again. */
typedef struct hwnas_torch_join {
    hwnas_op_id op;
    const char *infix;  /* between the branches in forward(); NULL: a function of all */
    const char *call;   /* of them: "torch.cat" takes a list and `dim`; NULL: indexing, $0[$1] */
    const char *helper; /* the class for a join inside a sequence */
    const char *branch; /* what the only branch with layers is called */
} hwnas_torch_join;

/* A class is a chain of parts: forward() applies one after the other. When it has lines, all parts
 * are PLAIN and the lines say what forward() does. */
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
    const char **attributes; /* settled: what each branch is called; NULL: it has no layers */
    const char *stem;        /* of a class with lines: how to call it when it is several layers */
    bool is_buffer;          /* its only module is a tensor that nothing learns */
} hwnas_torch_piece;

/* ---- forward(): lines with variables ---- */

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

/* What a layer is in forward(), where it is not a module: "$0.transpose(1, 2)"; $0 is what it is
 * applied to. */
typedef struct hwnas_torch_form {
    const char *text; /* NULL: it cannot be said so here, a module can */
    bool is_primary;  /* may be followed by a dot or a bracket */
} hwnas_torch_form;

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
    bool is_dropped; /* settled: nobody reads the variables */
} hwnas_line;

/* ---- Classes ---- */

typedef struct hwnas_class {
    const char *label;     /* the name of its template, or of the network */
    hwnas_py_name *callee; /* its own name, which it gets when it is printed */
    struct hwnas_torch_file *module;
    struct hwnas_origin *origin; /* stage 1's notes */
    bool is_network;
    bool is_empty;              /* no layers: it is neither written nor used */
    hwnas_py_name *in_channels; /* NULL: the network's, which are known */
    size_t n_parameters;
    hwnas_py_name **parameters; /* what the template takes */
    const hwnas_py **fallbacks; /* their defaults; NULL: must be given */
    hwnas_py_name *n_outputs;   /* the network's: outputs of its last layer, or NULL */
    const hwnas_py *n_outputs_value;
    const hwnas_py *out_variable; /* a variable that tells the channels to who uses the module */
    size_t n_parts, part_capacity;
    hwnas_torch_piece **parts;
    bool has_lines;
    hwnas_variable *input; /* of forward() */
    size_t n_arguments;
    hwnas_variable **arguments; /* more of them; the network's may be items of one list */
    size_t n_lines, line_capacity;
    hwnas_line *lines;
    size_t n_names, name_capacity;
    hwnas_py_name **names; /* all of __init__ */
    const char *table;     /* settled: where its first embedding is, ".stem[0]"; NULL: nowhere */
    const char *tied;      /* settled: where the layer is that shares the table */
} hwnas_class;

/* An input of the network as an example: "tokens", "torch.randint(9, (1, 4))". */
typedef struct hwnas_example {
    const char *name, *text;
} hwnas_example;

typedef struct hwnas_torch_file {
    hwnas_arena *arena;
    const char *title, *about, *facts; /* of the docstring; about may be NULL */
    const char *weights;               /* the file that has them, beside this one; NULL: none */
    size_t n_classes, class_capacity;
    hwnas_class **classes; /* a class comes after those that it uses, the network last */
    size_t n_examples;
    hwnas_example *examples;
    bool is_by_name; /* forward() is given them by their names, else there is one */
    bool has_many_outputs;
    bool needs[40]; /* those of torch_helpers.h */
} hwnas_torch_file;

/* ---- Making and settling: torch_tree.c, torch_names.c ---- */

/* Room for one more element of an array in the arena. */
void *hwnas_torch_grown(hwnas_arena *arena, void *array, size_t n, size_t *capacity, size_t size);
hwnas_py_name *hwnas_class_name(hwnas_class *class, const char *const *wishes, bool is_own);
hwnas_torch_piece *hwnas_class_part(hwnas_class *class, hwnas_torch_piece_kind kind,
                                    size_t n_branches, hwnas_py_name *list);
void hwnas_class_push(hwnas_class *class, hwnas_sequence *to, hwnas_step step);
void hwnas_class_add_line(hwnas_class *class, size_t n, hwnas_variable *const *variables,
                          const hwnas_wire *wire);
bool hwnas_sequence_is_straight(const hwnas_sequence *sequence);
/* Is there anything in it that is written; anything but assignments? */
bool hwnas_step_is_visible(const hwnas_step *step);
bool hwnas_sequence_is_visible(const hwnas_sequence *sequence);
bool hwnas_sequence_has_modules(const hwnas_sequence *sequence);
/* The file will have this helper, if it is one. */
void hwnas_torch_file_need(hwnas_torch_file *module, const char *name);

bool hwnas_class_is_plain(const hwnas_class *class); /* is it an nn.Sequential? */

/* When a class is complete: drops what nothing reads and spells the rest. Then those who use the
 * class can tell which parameters it takes. */
void hwnas_class_settle(hwnas_class *class);
/* Is a settled name only asked whether it is true? */
bool hwnas_name_is_truth(const hwnas_py_name *name);

/* ---- Stage 2: torch_print.c ---- */

void hwnas_torch_file_print(hwnas_str *out, const hwnas_torch_file *module);

#endif
