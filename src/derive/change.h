/* change.h: what may change in a model: a table of kinds.
 *
 * A space that was derived from a model is a list of changes (space/space.h), each of a kind, of a
 * named part of the model, to a value that the choices decide. */
#ifndef HWNAS_DERIVE_CHANGE_H
#define HWNAS_DERIVE_CHANGE_H

#include "base/str.h"
#include "derive/base_model.h"

/* A part of a model that a kind can change, as a choice. */
typedef struct hwnas_change_option {
    char *of;     /* its name; heap */
    char *choice; /* what the choice may be called; heap */
    char *values; /* "64, 56, 48", the model's own first; heap */
    char *about;  /* for a reader; heap */
} hwnas_change_option;

typedef struct hwnas_change_options {
    size_t n, capacity;
    hwnas_change_option *rows;
} hwnas_change_options;

void hwnas_change_options_add(hwnas_change_options *to, hwnas_change_option row);
void hwnas_change_options_done(hwnas_change_options *options);

typedef struct hwnas_change_kind {
    const char *name; /* as a space has it */
    const char *help;
    bool is_rare; /* a space has it only where that is asked for */
    /* Adds what it can change in a model. */
    void (*list)(hwnas_change_options *to, const hwnas_original *original);
    /* Makes the change. What is not there, or a value that cannot be, is HWNAS_E_INPUT at its
     * place. */
    hwnas_status (*apply)(hwnas_derivation *d, const hwnas_model_change *change,
                          const hwnas_value *value);
} hwnas_change_kind;

enum { HWNAS_MAX_CHANGE_KINDS = 8 };
extern const hwnas_change_kind hwnas_change_kinds[]; /* one without a name at the end */
/* HWNAS_E_INPUT, with what there is. */
HWNAS_CHECKED hwnas_status hwnas_change_kind_find(const hwnas_change_kind **out,
                                                  const hwnas_model_change *change);

#endif
