/* vector.h: an architecture as a plain vector, for models that others fit.
 *
 * Two layouts. `one-hot`: for each position of each choice, in the order of the code, one number
 * for each of its values: 1 for the value chosen, else 0. `values`: one number for each position:
 * the value itself where the choice's values are numbers, else its index from 0. In both a position
 * that does not count (its condition does not hold) is 0 throughout. */
#ifndef HWNAS_PREDICT_VECTOR_H
#define HWNAS_PREDICT_VECTOR_H

#include "predict/column.h"

typedef struct hwnas_vector {
    hwnas_arena *arena;
    size_t n;
    hwnas_column *columns;
} hwnas_vector;

typedef struct hwnas_vector_layout {
    const char *name; /* NULL ends the table */
    const char *help;
    /* Adds the columns of a gene. */
    void (*add)(hwnas_vector *vector, const hwnas_space *space, size_t gene);
} hwnas_vector_layout;

extern const hwnas_vector_layout hwnas_vector_layouts[];

/* HWNAS_E_USAGE for an unknown name. */
HWNAS_CHECKED hwnas_status hwnas_vector_find(const hwnas_vector_layout **out, const char *name);

hwnas_vector *hwnas_vector_new(const hwnas_vector_layout *layout, const hwnas_space *space);
void hwnas_vector_free(hwnas_vector *vector); /* accepts NULL */

/* `out` has room for vector->n numbers. */
void hwnas_vector_fill(float *out, const hwnas_vector *vector, const hwnas_arch *arch);

#endif
