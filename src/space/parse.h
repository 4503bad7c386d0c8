/* parse.h: what the readers of a space's parts share. Private to space/. */
#ifndef HWNAS_SPACE_PARSE_H
#define HWNAS_SPACE_PARSE_H

#include "base/yaml.h"
#include "space/scope.h"

/* More than anybody writes by hand; they bound the time that searching by name takes. */
enum {
    HWNAS_MAX_GENES = 4096,
    HWNAS_MAX_VALUES = 4096,
    HWNAS_MAX_TEMPLATES = 1000,
    HWNAS_MAX_PARAMETERS = 64,
    HWNAS_MAX_SLOTS = 1000,
    HWNAS_MAX_TENSORS = 256,
    HWNAS_MAX_CONSTRAINTS = 256,
    HWNAS_MAX_INPUTS = 64,
    HWNAS_MAX_SETTINGS = 64,
    HWNAS_MAX_PHASE_NAME = 12, /* so that a metric's name with it stays short */
    HWNAS_MAX_CHANGES = 4096,
    HWNAS_MAX_NAME = 64
};

/* The expression that a node is; a sequence is a list. `what` names it in messages. */
HWNAS_CHECKED hwnas_status hwnas_parse_expr(hwnas_expr **out, const hwnas_scope *scope,
                                            const hwnas_yaml *node, const char *what);
/* A value that uses no name but those of settings: a number or a symbol. */
HWNAS_CHECKED hwnas_status hwnas_parse_constant(hwnas_value *out, const hwnas_scope *empty,
                                                const hwnas_yaml *node, const char *what);

HWNAS_CHECKED hwnas_status hwnas_parse_choices(hwnas_space *space, const hwnas_yaml *node);
/* `given` sets some of them: "phase=decode,length=64"; NULL: none. */
HWNAS_CHECKED hwnas_status hwnas_parse_settings(hwnas_space *space, const hwnas_yaml *node,
                                                const char *given);
/* `phases`, which set settings that are there. */
HWNAS_CHECKED hwnas_status hwnas_parse_phases(hwnas_space *space, const hwnas_yaml *node);
HWNAS_CHECKED hwnas_status hwnas_parse_inputs(hwnas_space *space, const hwnas_yaml *node);
/* `model` and `changes`. */
HWNAS_CHECKED hwnas_status hwnas_parse_changes(hwnas_space *space, const hwnas_yaml *model,
                                               const hwnas_yaml *changes);
/* A space with a `base`, whose values it has, or fewer. It owns what it has of it. */
HWNAS_CHECKED hwnas_status hwnas_parse_narrow(hwnas_space **out, const char *path,
                                              const hwnas_yaml *root, const char *settings);
/* A list of statements. */
HWNAS_CHECKED hwnas_status hwnas_parse_body(hwnas_body *out, hwnas_scope *scope,
                                            const hwnas_yaml *node, const char *what);

/* NULL when there is none. */
hwnas_template *hwnas_find_template(const hwnas_space *space, const char *name);
/* Does the name begin a statement that is not a layer? */
bool hwnas_is_stmt_word(const char *name);

/* For qsort() and bsearch() over strings. */
int hwnas_compare_texts(const void *a, const void *b);

#endif
