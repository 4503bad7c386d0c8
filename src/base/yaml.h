/* yaml.h: YAML as a tree whose every node knows its place, through libyaml.
 *
 * Anchors, aliases, tags and several documents are refused: none is needed to describe a space or a
 * job, and a document whose size is the size of its text cannot be used as a bomb. The tree lives
 * in the arena it was read into. */
#ifndef HWNAS_BASE_YAML_H
#define HWNAS_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

typedef enum hwnas_yaml_kind {
    HWNAS_YAML_SCALAR,
    HWNAS_YAML_SEQUENCE,
    HWNAS_YAML_MAPPING,
} hwnas_yaml_kind;

typedef struct hwnas_yaml {
    hwnas_yaml_kind kind;
    hwnas_place place;
    const char *text; /* SCALAR; "" when nothing was written */
    bool is_quoted;   /* SCALAR */
    bool is_verbatim; /* SCALAR: one line without escapes, so text[i] stands i columns further on */
    size_t n;
    struct hwnas_yaml **keys;  /* MAPPING: n scalars, all different */
    struct hwnas_yaml **items; /* n values */
} hwnas_yaml;

/* `path` stands in messages. An empty document is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_yaml_parse(hwnas_yaml **out, hwnas_arena *arena, const char *path,
                                            const char *text, size_t length);

/* NULL when there is no such key (or `map` is not a mapping). */
const hwnas_yaml *hwnas_yaml_get(const hwnas_yaml *map, const char *key);

/* Readers; a wrong kind is HWNAS_E_INPUT at the node, saying what `what` must be. */
HWNAS_CHECKED hwnas_status hwnas_yaml_expect(const hwnas_yaml *node, hwnas_yaml_kind kind,
                                             const char *what);
HWNAS_CHECKED hwnas_status hwnas_yaml_int(int64_t *out, const hwnas_yaml *node, const char *what,
                                          int64_t low, int64_t high);
HWNAS_CHECKED hwnas_status hwnas_yaml_number(double *out, const hwnas_yaml *node, const char *what,
                                             double low, double high);
/* A scalar that is not empty. */
HWNAS_CHECKED hwnas_status hwnas_yaml_text(const char **out, const hwnas_yaml *node,
                                           const char *what);
/* Every key of the mapping is one of `names` (NULL-terminated); else "did you mean". */
HWNAS_CHECKED hwnas_status hwnas_yaml_check_keys(const hwnas_yaml *map, const char *what,
                                                 const char *const *names);

#endif
