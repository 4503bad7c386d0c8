/* registry.h: what the tables have in common that programs outside of the tree add to. A table is a
 * NULL-terminated array, built in rows first; it only grows, and before anything else is done. */
#ifndef HWNAS_BASE_REGISTRY_H
#define HWNAS_BASE_REGISTRY_H

#include <stddef.h>

#include "base/status.h"

enum { HWNAS_MAX_ROWS = 64 }; /* of a table, with the NULL */

/* Whether a row may be added: it was built for the interface `known`, and has a name that can be
 * written in a job. Called before anything else of the row is looked at. */
HWNAS_CHECKED hwnas_status hwnas_registry_check(const char *what, unsigned known, unsigned abi,
                                                const char *name);
/* The failure of one whose name is taken, and of the one behind the last. */
hwnas_status hwnas_registry_taken(const char *what, const char *name);
hwnas_status hwnas_registry_full(const char *what);

/* Adds `row` at the end of `table`, or returns the failure. */
#define HWNAS_REGISTER(what, known, table, row)                                                    \
    do {                                                                                           \
        size_t n_ = 0;                                                                             \
        if (!(row))                                                                                \
            return hwnas_fail(HWNAS_E_USAGE, NULL, "no %s to register", what);                     \
        TRY(hwnas_registry_check(what, known, (row)->abi,                                          \
                                 (row)->abi == (known) ? (row)->name : NULL));                     \
        for (; (table)[n_]; n_++)                                                                  \
            if (!strcmp((table)[n_]->name, (row)->name))                                           \
                return hwnas_registry_taken(what, (row)->name);                                    \
        if (n_ + 1 == HWNAS_MAX_ROWS)                                                              \
            return hwnas_registry_full(what);                                                      \
        (table)[n_] = (row);                                                                       \
    } while (0)

#endif
