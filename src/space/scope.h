/* scope.h: which names an expression can see while it is parsed. Private to space/. */
#ifndef HWNAS_SPACE_SCOPE_H
#define HWNAS_SPACE_SCOPE_H

#include "base/mem.h"
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

/* A part of a text without the blanks around it, in the arena. */
char *hwnas_trimmed(hwnas_arena *arena, const char *text, size_t n);
/* A new name must be a word, and none that always means something else. `what` is "a
 * choice", ... */
HWNAS_CHECKED hwnas_status hwnas_check_name(const char *name, const char *what,
                                            const hwnas_place *place);

/* The slot of a new name. */
int hwnas_scope_bind(hwnas_scope *scope, const char *name);
/* The same after a check: a value of a choice would be hidden by it without a word. */
HWNAS_CHECKED hwnas_status hwnas_scope_new_variable(int *out, hwnas_scope *scope, const char *name,
                                                    const char *what, const hwnas_place *place);
/* Ends the life of the names bound since the scope had `n`. */
void hwnas_scope_leave(hwnas_scope *scope, size_t n);
/* The slot of a tensor's name; a new one for a name that was not met yet. */
HWNAS_CHECKED hwnas_status hwnas_scope_find_tensor(int *out, hwnas_scope *scope, const char *name,
                                                   const hwnas_place *place);
/* Every name that a `from` asks for is given by some `as` of the template, before or in a loop. */
HWNAS_CHECKED hwnas_status hwnas_scope_check_tensors(const hwnas_scope *scope);
void hwnas_scope_done(hwnas_scope *scope);

/* A word among the values of the space's choices. */
bool hwnas_space_is_symbol(const hwnas_space *space, const char *name);
/* The setting or the input of that name, or NULL. */
const hwnas_setting *hwnas_space_setting(const hwnas_space *space, const char *name, size_t length);
const hwnas_input *hwnas_space_input(const hwnas_space *space, const char *name);

/* Reads an expression from the text that begins at `place`. Errors point into the text where the
 * file spells it as it is (`is_verbatim`), else to its beginning. */
HWNAS_CHECKED hwnas_status hwnas_expr_parse(hwnas_expr **out, const hwnas_scope *scope,
                                            const char *text, const hwnas_place *place,
                                            bool is_verbatim);

/* Once everything is read: every word that is not a name has a partner, and every choice is used; see
 * symbols.c. */
HWNAS_CHECKED hwnas_status hwnas_symbols_check(const hwnas_space *space);

#endif
