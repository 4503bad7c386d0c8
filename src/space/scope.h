/* scope.h: which names an expression can see while it is parsed. Private to space/. */
#ifndef HWNAS_SPACE_SCOPE_H
#define HWNAS_SPACE_SCOPE_H

#include "space/space.h"

/* A name given by `as`, or waited for by `from`. */
typedef struct hwnas_tensor_name {
    const char *name;
    hwnas_place place; /* of its first use */
    bool is_given;
} hwnas_tensor_name;

/* The names of the template that is being read; a name is visible from its binding on. */
typedef struct hwnas_scope {
    const hwnas_space *space; /* its choices are visible everywhere */
    size_t n, capacity;
    const char **names; /* heap; n of them are slots of the frame */
    bool *is_visible;   /* heap; a loop's names end with the loop */
    size_t n_tensors;   /* names of tensors: a room of their own */
    struct hwnas_tensor_name *tensors; /* heap */
} hwnas_scope;

/* Reads an expression from the text that begins at `place`. Errors point into the text where the
 * file spells it as it is (`is_verbatim`), else to its beginning. */
HWNAS_CHECKED hwnas_status hwnas_expr_parse(hwnas_expr **out, const hwnas_scope *scope,
                                            const char *text, const hwnas_place *place,
                                            bool is_verbatim);

/* Once everything is read: every word that is no name has a partner, see symbols.c. */
HWNAS_CHECKED hwnas_status hwnas_symbols_check(const hwnas_space *space);

#endif
