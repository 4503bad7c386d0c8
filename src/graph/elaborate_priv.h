/* elaborate_priv.h: a network that is being built of a space's statements. */
#ifndef HWNAS_GRAPH_ELABORATE_PRIV_H
#define HWNAS_GRAPH_ELABORATE_PRIV_H

#include "graph/elaborate.h"
#include "graph/op.h"

/* How often each name was used inside one template's call, to number the layers. */
typedef struct hwnas_name_count {
    const char *name;
    int n;
    struct hwnas_name_count *next;
} hwnas_name_count;

/* The tensors that one name stands for: one, or one for each index; -1 where none is given. */
typedef struct hwnas_tensor_list {
    int n;
    int *tensors;
} hwnas_tensor_list;

typedef struct hwnas_elaboration {
    hwnas_graph *graph;
    const hwnas_arch *arch;
    hwnas_arena *scratch;
    hwnas_value *choices;
    hwnas_tensor_list *inputs; /* one for each input of the space's */
    long steps;
    int depth;                              /* of template calls */
    const hwnas_elaborate_watcher *watcher; /* (optional) */
    const char *where; /* path of the innermost template that failed, without the last '/' */
} hwnas_elaboration;

/* One call of a template (or the network itself). */
typedef struct hwnas_call {
    hwnas_scope_frame frame;
    hwnas_tensor_list *tensors; /* one for each name of the template's */
    const char *path;           /* "" or "mbconv_1/" */
    hwnas_name_count *names;
} hwnas_call;

/* Counts steps, of which there are not too many. */
HWNAS_CHECKED hwnas_status hwnas_elaborate_steps(hwnas_elaboration *b, long n,
                                                 const hwnas_place *place);
/* A whole number; `tensor` is the current one, which an expression may ask for its dimensions. */
HWNAS_CHECKED hwnas_status hwnas_elaborate_int(hwnas_elaboration *b, hwnas_call *c, int tensor,
                                               const hwnas_expr *expr, int64_t *out);

/* ---- elaborate_attrs.c ---- */

/* Sets an attribute of an operator to what the space says. */
HWNAS_CHECKED hwnas_status hwnas_elaborate_attr(hwnas_attr *attr, const hwnas_attr_row *row,
                                                const hwnas_op *op, const hwnas_value *value,
                                                const hwnas_place *place);

/* ---- elaborate_tensors.c ---- */

/* A statement of the space language: replaces the current tensor. */
typedef hwnas_status hwnas_elaborate_run(hwnas_elaboration *b, hwnas_call *c,
                                         const hwnas_stmt *stmt, int *tensor);
HWNAS_CHECKED hwnas_elaborate_run hwnas_elaborate_as, hwnas_elaborate_from, hwnas_elaborate_output;
/* All inputs; gives the first, with which the network begins. */
HWNAS_CHECKED hwnas_status hwnas_elaborate_inputs(int *first, hwnas_elaboration *b,
                                                  const hwnas_space *space, int batch);
/* Ends the graph: outputs, unless statements named some, and inputs that are read. */
HWNAS_CHECKED hwnas_status hwnas_elaborate_finish(hwnas_elaboration *b, const hwnas_space *space,
                                                  int last);

#endif
